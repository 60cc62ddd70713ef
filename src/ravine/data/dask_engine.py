"""The engine of dask arrays and data frames; the only module that imports dask.

One pass is one graph: a task per partition answers the requests about all sets of rows, and the answers are
merged in a tree, in the order of the partitions. Requests are one key of the graph. Leaf ids stay with the
partitions (4 bytes per row); only samples, small nodes and merged answers come to the client. Graphs run on
the scheduler that is in use: threads, processes, or a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from dask.array import concatenate, from_delayed
from dask.base import compute, persist, tokenize
from dask.delayed import delayed
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.block_engine import BlockEngine, BlockRows
from ravine.data.block_pass import (
    BlockData,
    Count,
    Group,
    LeafIds,
    Part,
    answer_block,
    checksum,
    count,
    divide_block,
    map_block,
    places_of,
)
from ravine.data.blocks import Block
from ravine.data.leaves import Leaves
from ravine.data.memory import ReadCount
from ravine.data.query import Answer, AnyArray, blame
from ravine.data.threads import one_blas_thread
from ravine.exceptions import InvalidInputError, RavineError


class Opened(NamedTuple):
    """What the opening pass found in a partition; later passes have to find the same."""

    number: int
    n_rows: int
    n_columns: int
    checksum: int


class DaskSource:
    """A dask array or data frame as rows in blocks: its partitions.

    Opening it reads every partition once, for its length and a checksum. What is not persisted is computed
    again in every pass.
    """

    def __init__(self, collection: Any) -> None:
        self.partitions, self.names = partitions_of(collection)
        opened = [_delay(_open, part, i) for i, part in enumerate(self.partitions)]
        with _naming_partitions(self.partitions):
            self.opened: tuple[Opened, ...] = compute(*opened)
        widths = {one.n_columns for one in self.opened}
        if len(widths) != 1:
            raise InvalidInputError(f"the partitions of X have {sorted(widths)} columns; all need as many")
        self.lengths = tuple(one.n_rows for one in self.opened)
        self.shape = (sum(self.lengths), widths.pop())
        self.feature_map: Any = None

    @property
    def path(self) -> str:
        """How messages name the data."""
        return "X"

    @cached_property
    def bounds(self) -> IntArray:
        """The number of the first row of every partition, and the number of all rows."""
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self.shape[0])

    def read(self, block: int) -> Any:
        """Return one partition: it comes to the client."""
        (values,) = compute(_delay(_checked, self.partitions[block], self.opened[block]))
        return values

    def __getitem__(self, numbers: IntArray) -> Any:
        """Return some rows, by their numbers in increasing order."""
        ends = np.searchsorted(numbers, self.bounds)
        taken = [
            _delay(_take, self.partitions[i], self.opened[i], numbers[ends[i] : ends[i + 1]] - self.bounds[i])
            for i in np.flatnonzero(np.diff(ends))
        ]
        found = compute(*taken)
        return sparse.vstack(found, format="csr") if sparse.issparse(found[0]) else np.concatenate(found)

    def mapped(self, feature_map: Any) -> DaskSource:
        """Return the rows seen through a feature map, which is applied in every pass."""
        other = object.__new__(DaskSource)
        other.__dict__.update(self.__dict__)
        other.feature_map = delayed(feature_map, traverse=False)
        other.shape = (self.shape[0], feature_map.n_components)
        return other

    def rows_in_place(self, weights: FloatArray | None) -> BlockRows:
        """Return the rows with an engine that reads them where they are."""
        return DaskEngine(self, weights).rows()


class DaskEngine(BlockEngine):
    """Answers requests about the partitions of a dask collection."""

    def __init__(self, source: DaskSource, weights: FloatArray | None = None) -> None:
        self.source: DaskSource = source
        self.weights, self.bounds = weights, source.bounds
        self.passes, self.reads = 1, ReadCount(source.shape[0])  # the opening pass
        self._ids = [_delay(np.zeros, n, np.int32) for n in source.lengths]
        self._weights: Sequence[Any] = [None] * len(source.lengths)
        if weights is not None:
            cut = [weights[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
            self._weights = persist(*[delayed(one, traverse=False) for one in cut])
        self.leaves = Leaves(self.count((0,)))

    def _sums(self, blocks: Sequence[int], groups: Sequence[Group]) -> Sequence[Sequence[Answer] | None]:
        merged = self._graph(blocks, groups)
        (found,) = self._compute([merged], blocks)
        if isinstance(found, Failed):
            raise blame(found.error, groups[found.group].requests[found.request])
        return list(found)

    def _graph(self, blocks: Sequence[int], groups: Sequence[Group]) -> Any:
        """Return the merged answers, not yet computed: a task per partition, and a tree that merges them."""
        requests = delayed(tuple(groups), name=_name("requests"), traverse=False)
        parts = [_delay(_answer, *self._block(i), requests) for i in blocks]
        while len(parts) > 1:
            pairs = [_delay(_merge, *parts[k : k + 2], requests) for k in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[len(parts) - len(parts) % 2 :]
        return parts[0]

    def _relabel(self, blocks: Sequence[int], parts: Sequence[Part]) -> dict[int, dict[int, Count]]:
        boundaries = delayed(tuple(parts), name=_name("boundaries"), traverse=False)
        divided = [_delay(_divide, *self._block(i), boundaries) for i in blocks]
        # The ids stay with their partitions; where a worker is lost, its graph makes them again.
        both = persist(*[one[0] for one in divided], *[one[1] for one in divided])
        counts = self._compute(both[len(blocks) :], blocks)
        for i, ids in zip(blocks, both[: len(blocks)], strict=True):
            self._ids[i] = ids
        return dict(zip(blocks, counts, strict=True))

    def count(self, leaves: tuple[int, ...]) -> dict[int, Count]:
        """Count the rows of a set of leaves in every partition; the rows themselves are not read."""
        starts = self.bounds[:-1].tolist()
        counted = [_delay(count, *of, [leaves]) for of in zip(self._ids, self._weights, starts, strict=True)]
        return {i: one[leaves[0]] for i, one in enumerate(compute(*counted)) if one}

    def numbers(self, leaves: tuple[int, ...]) -> IntArray:
        """Return the numbers of the rows of some leaves: 8 bytes per row come to the client."""
        found = compute(*[_delay(places_of, ids, [leaves]) for ids in self._ids])
        return np.concatenate([self.bounds[i] + places for i, (places,) in enumerate(found)])

    def assign(self, parts: Sequence[BlockRows], labels: Sequence[int]) -> Any:
        """Return one label per row, as a lazy array with the chunks of the data."""
        table = delayed(self._label_of(parts, labels), traverse=False)
        chunks = [_delay(np.take, table, ids) for ids in self._ids]
        return _joined(chunks, self.source.lengths, (), np.dtype(np.int64))

    def map(self, rows: BlockRows, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row: they come to the client."""
        work = delayed((rows.group(()), function), traverse=False)
        blocks = sorted(rows.blocks)
        found = self._compute([_delay(_map, *self._block(i), work) for i in blocks], blocks)
        return np.concatenate([values for part in found for values in part])

    def _block(self, i: int) -> tuple[Any, ...]:
        """Return what a task needs to know of a partition."""
        seen = (self.source.opened[i], int(self.bounds[i]))
        return self.source.partitions[i], self._ids[i], self._weights[i], seen, self.source.feature_map

    def _compute(self, tasks: Sequence[Any], blocks: Sequence[int]) -> Sequence[Any]:
        self.passes += 1
        self.reads.rows += sum(self.source.lengths[i] for i in blocks)
        with _naming_partitions(self.source.partitions):
            found: Sequence[Any] = compute(*tasks)
        return found


# --- on the client ---


def partitions_of(collection: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return the partitions of a dask array or data frame, with whole rows each, and the columns' names."""
    if hasattr(collection, "columns"):
        names = [str(name) for name in collection.columns]
        text = [
            name
            for name, kind in zip(names, collection.dtypes, strict=True)
            if getattr(kind, "kind", "O") not in "biuf"
        ]
        if text:
            raise InvalidInputError(f"column {text[0]!r} of X does not hold numbers; drop it, or encode it")
        return list(collection.to_delayed()), tuple(names)
    if getattr(collection, "ndim", 2) != 2:
        raise InvalidInputError(f"X has to have rows and columns, got a dask array of {collection.ndim} axes")
    if len(collection.chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    return list(collection.to_delayed().ravel()), None


def map_rows(collection: Any, function: Callable[[Any], AnyArray]) -> Any:
    """Apply a function of rows to every partition; return a lazy array with the same chunks."""
    partitions, names = partitions_of(collection)
    width = len(names) if names is not None else int(collection.shape[1])
    sample = np.zeros((1, width))
    example = function(_like(collection, sample))
    work = delayed((function, np.asarray(example[:0])), traverse=False)
    chunks = [_delay(_apply, work, part) for part in partitions]
    lengths = [np.nan] * len(partitions) if names is not None else collection.chunks[0]
    return _joined(chunks, lengths, example.shape[1:], example.dtype)


def _like(collection: Any, rows: FloatArray) -> Any:
    """Return rows in the container of a partition: a data frame has names."""
    meta = collection._meta
    return type(meta)(rows, columns=meta.columns) if hasattr(meta, "columns") else rows


def _joined(chunks: Sequence[Any], lengths: Sequence[float], rest: tuple[int, ...], dtype: Any) -> Any:
    arrays = [from_delayed(chunk, (n, *rest), dtype=dtype) for chunk, n in zip(chunks, lengths, strict=True)]
    return concatenate(arrays, allow_unknown_chunksizes=True)


def _delay(function: Callable[..., Any], *of: Any) -> Any:
    return delayed(function, pure=False, traverse=False)(*of)


def _name(what: str) -> str:
    return f"ravine-{what}-{tokenize(object())}"


@contextmanager
def _naming_partitions(partitions: Sequence[Any]) -> Iterator[None]:
    """Where a computation fails that is not ours, find the partition that cannot be computed, and name it."""
    try:
        yield
    except RavineError:
        raise
    except Exception as failure:
        for i, part in enumerate(partitions):
            try:
                compute(_delay(_probe, part))
            except Exception as error:
                raise RavineError(f"partition {i} of X cannot be computed: {error}") from error
        raise failure


# --- in the tasks ---


@dataclass(frozen=True)
class Failed:
    """A request that failed, by its place: objects have other identities on other machines."""

    error: Exception
    group: int
    request: int


def _values(partition: Any) -> Any:
    """Return a partition as an array or a CSR matrix."""
    if sparse.issparse(partition):
        rows = sparse.csr_array(partition)
        rows.sum_duplicates()
        return rows
    return np.asarray(partition)


def _probe(partition: Any) -> None:
    """Do nothing with a partition that was computed."""


def _open(partition: Any, number: int) -> Opened:
    values = _values(partition)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"partition {number} of X has to be a matrix of numbers, got type {values.dtype} and shape "
            f"{values.shape}"
        )
    return Opened(number, values.shape[0], values.shape[1], checksum(values))


def _checked(partition: Any, opened: Opened) -> Any:
    values = _values(partition)
    if _open(values, opened.number) != opened:
        raise InvalidInputError(
            f"partition {opened.number} of X changed since it was computed before: a fit needs the same rows "
            "in every pass; persist X, or fix the seed of what makes it"
        )
    return values


def _take(partition: Any, opened: Opened, places: IntArray) -> Any:
    return _checked(partition, opened)[places]


def _data(partition: Any, weights: Any, seen: tuple[Opened, int], feature_map: Any) -> BlockData:
    opened, start = seen
    values = _checked(partition, opened)
    if feature_map is not None:
        from ravine.data.feature_map import MappedRows, held

        nothing = np.empty((0, feature_map.n_components))
        values = held(MappedRows(values, feature_map)) if opened.n_rows else nothing
    return BlockData(values, weights, start)


def _answer(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, groups: Sequence[Group]
) -> Any:
    block = _data(partition, weights, seen, feature_map)
    with one_blas_thread():
        try:
            return answer_block(block, ids, groups)
        except Exception as error:
            places = [(g, k) for g, group in enumerate(groups) for k in range(len(group.requests))]
            blamed = getattr(error, "request", None)
            found = [(g, k) for g, k in places if groups[g].requests[k] is blamed]
            if not found:
                raise
            del error.request  # type: ignore[attr-defined]
            error.add_note(f"in partition {seen[0].number}")
            return Failed(error, *found[0])


def _merge(left: Any, right: Any, groups: Sequence[Group]) -> Any:
    if isinstance(left, Failed) or isinstance(right, Failed):
        return left if isinstance(left, Failed) else right
    merged = []
    for group, a, b in zip(groups, left, right, strict=True):
        merged.append(group.merge(_copy(a), b) if a is not None and b is not None else a or b)
    return merged


def _copy(answers: Sequence[Answer]) -> list[Answer]:
    """Copy what a merge may change in place: the scheduler may need the part again."""
    return [type(answer)(part.copy() for part in answer) for answer in answers]


def _divide(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, parts: Sequence[Part]
) -> tuple[LeafIds, dict[int, Count]]:
    with one_blas_thread():
        return divide_block(_data(partition, weights, seen, feature_map), ids, parts)


def _map(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, work: tuple[Group, Any]
) -> list[AnyArray]:
    with one_blas_thread():
        return map_block(_data(partition, weights, seen, feature_map), ids, *work)


def _apply(work: tuple[Callable[[Any], AnyArray], AnyArray], partition: Any) -> AnyArray:
    """Apply a function to a partition; one without rows gives none."""
    function, nothing = work
    return np.asarray(function(partition)) if partition.shape[0] else nothing
