"""The engine of dask arrays and data frames; the only module that imports dask.

One pass is one graph: a task per partition answers the requests about all sets of rows, and the answers are
merged in a tree by the numbers of the partitions (`partition_tasks.py`). Requests are one key of the graph.
Leaf ids stay with the partitions (4 bytes per row); only samples, small nodes and merged answers come to the
client. Graphs run on the scheduler that is in use: threads, processes, or a cluster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from dask.array import concatenate, from_delayed
from dask.base import compute, persist
from dask.delayed import delayed
from scipy import sparse

from ravine._validate import FloatArray, IntArray, refuse_shared_names
from ravine.data import partition_tasks as tasks
from ravine.data.block_engine import BlockEngine, BlockRows, Leaves
from ravine.data.block_pass import Count, Group, Part, places_of
from ravine.data.blocks import Block
from ravine.data.memory import ReadCount
from ravine.data.query import Answer, AnyArray
from ravine.exceptions import InvalidInputError, RavineError

FAN_IN = 4  # answers that one task merges, a power of two: the tree stays that of `fold`


class DaskSource:
    """A dask array or data frame as rows in blocks: its partitions.

    Opening it reads every partition once, for its length and a checksum. What is not persisted is computed
    again in every pass.
    """

    path = "X"  # how messages name the data

    def __init__(self, collection: Any) -> None:
        self.partitions, self.names = partitions_of(collection)
        self._collection = collection  # a cluster keeps what is persisted while somebody refers to it
        self.opened: list[tasks.Opened] = _compute(
            [_task(tasks.open_partition, part, i) for i, part in enumerate(self.partitions)]
        )
        widths = {one.n_columns for one in self.opened}
        if len(widths) != 1:
            raise InvalidInputError(
                f"the partitions of X have {sorted(widths)} columns; all partitions need the same number"
            )
        self.lengths = tuple(one.n_rows for one in self.opened)
        self.shape = (sum(self.lengths), widths.pop())
        self.opened = [replace(one, start=int(a)) for one, a in zip(self.opened, self.bounds, strict=False)]
        self.map: Any = None  # the feature map, as one key of every graph

    @property
    def is_sparse(self) -> bool:
        """Whether partitions are sparse matrices."""
        return any(one.is_sparse for one in self.opened)

    @property
    def values_per_row(self) -> float:
        """How many values a row holds in the mean."""
        if self.map is not None or not self.is_sparse:
            return float(self.shape[1])
        return sum(one.n_values for one in self.opened) / self.shape[0]

    @cached_property
    def bounds(self) -> IntArray:
        """The number of the first row of every partition, and the number of all rows."""
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self.shape[0])

    def read(self, block: int) -> Any:
        """Return one partition: it comes to the client."""
        return self[np.arange(self.bounds[block], self.bounds[block + 1])]

    def __getitem__(self, numbers: IntArray) -> Any:
        """Return some rows, by their numbers in increasing order: they come to the client."""
        found = _compute(self._take(numbers)[0])
        return sparse.vstack(found, format="csr") if sparse.issparse(found[0]) else np.concatenate(found)

    def among(self, numbers: IntArray) -> Any:
        """Return some rows, by their numbers in increasing order, as a lazy array."""
        return _join(*self._take(numbers), self.shape[1:], float)

    def _take(self, numbers: IntArray) -> tuple[list[Any], list[int]]:
        """Return a task per partition that takes some of its rows, and how many."""
        ends = np.searchsorted(numbers, self.bounds)
        filled = np.flatnonzero(np.diff(ends)).tolist()
        places = [numbers[ends[i] : ends[i + 1]] - self.bounds[i] for i in filled]
        found = [
            _task(tasks.take, self.partitions[i], self.opened[i], some)
            for i, some in zip(filled, places, strict=True)
        ]
        return found, [len(some) for some in places]

    def mapped(self, feature_map: Any) -> DaskSource:
        """Return the rows seen through a feature map, which is applied in every pass."""
        other = copy.copy(self)
        other.map = _key_of(feature_map)
        other.shape = (self.shape[0], feature_map.n_components)
        return other

    def rows_in_place(self, weights: FloatArray | None) -> BlockRows:
        """Return the rows with an engine that reads them where they are."""
        return DaskEngine(self, weights).rows()


class DaskEngine(BlockEngine):
    """Answers requests about the partitions of a dask collection.

    The leaf ids of every partition, and the weights if there are any, are persisted. Where a worker is lost,
    the scheduler makes them again.
    """

    def __init__(self, source: DaskSource, weights: FloatArray | None = None) -> None:
        self.source: DaskSource = source
        self.weights, self.bounds = weights, source.bounds
        self.passes, self.reads = 1, ReadCount(source.shape[0])  # the opening pass
        self._ids = _persist([_task(np.zeros, n, np.int32) for n in source.lengths])
        self._weights: list[Any] = [None] * len(source.lengths)
        if weights is not None:
            cuts = np.split(weights, self.bounds[1:-1])
            self._weights = _persist([_task(tasks.content, tasks.Constant(own)) for own in cuts])
        self.leaves = Leaves(self.count((0,)))

    @property
    def values_per_row(self) -> float:
        return self.source.values_per_row

    def _task(self, function: Callable[..., Any], i: int, work: Any) -> Any:
        """Return a task about one partition."""
        own, ids, weights = self.source, self._ids[i], self._weights[i]
        return _task(function, own.partitions[i], ids, weights, own.opened[i], own.map, work)

    def _sums(self, blocks: Sequence[int], groups: Sequence[Group]) -> Sequence[Sequence[Answer] | None]:
        self._note(blocks)
        found: Sequence[Sequence[Answer] | None] = _compute([self._tree(blocks, groups)])[0]
        return found

    def _tree(self, blocks: Sequence[int], groups: Sequence[Group]) -> Any:
        """Return the task of the merged answers: the end of a tree of merges of the partitions' answers."""
        work = _key_of(groups)
        parts = {self.leaves.places[i]: self._task(tasks.answer, i, work) for i in blocks}
        while len(parts) > 1:
            merged = {}
            for k in sorted({place // FAN_IN for place in parts}):
                some = [parts.get(place) for place in range(FAN_IN * k, FAN_IN * (k + 1))]
                merged[k] = _task(tasks.merge, work, some)
            parts = merged
        return next(iter(parts.values()))

    def _relabel(self, blocks: Sequence[int], parts: Sequence[Part]) -> dict[int, dict[int, Count]]:
        self._note(blocks)
        work, before = _key_of(parts), self._ids
        sides = [(side,) for part in parts for side in (part.left, part.right)]
        try:
            divided = _persist([self._task(tasks.divide, i, work) for i in blocks])
            self._ids = [dict(zip(blocks, divided, strict=True)).get(i, ids) for i, ids in enumerate(before)]
            found = self._count(sides)
        except BaseException:  # on a cluster, ids are computed later: a failure shows when they are counted
            self._ids = before
            raise
        return {i: found[i] for i in blocks}

    def _count(self, sets: Sequence[tuple[int, ...]]) -> list[dict[int, Count]]:
        """Count the rows of sets of leaves in every partition; the rows themselves are not read."""
        work, starts = _key_of(sets), self.bounds[:-1].tolist()
        columns = zip(self._ids, self._weights, starts, strict=True)
        return _compute([_task(tasks.count_leaves, *own, work) for own in columns])

    def count(self, leaves: tuple[int, ...]) -> dict[int, Count]:
        """Count the rows of a set of leaves in every partition; the rows themselves are not read."""
        return {i: one[leaves[0]] for i, one in enumerate(self._count([leaves])) if one}

    def numbers(self, leaves: tuple[int, ...]) -> IntArray:
        """Return the numbers of the rows of some leaves: the ids come to the client, 4 bytes per row."""
        return places_of(np.concatenate(_compute(self._ids)), [leaves])[0]

    def checksums(self) -> list[int]:
        """Return the checksum of every partition, as the opening pass found it."""
        return [one.checksum for one in self.source.opened]

    def assign(self, parts: Sequence[BlockRows], labels: Sequence[int]) -> Any:
        """Return one label per row, as a lazy array with the chunks of the data."""
        label_of = _key_of(self._label_of(parts, labels))
        found = [_task(tasks.look_up, ids, label_of) for ids in self._ids]
        return _join(found, self.source.lengths, (), np.int64)

    def map(self, rows: BlockRows, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row: they come to the client."""
        blocks, work = sorted(rows.blocks), _key_of((rows.group(()), function))
        self._note(blocks)
        found = _compute([self._task(tasks.map_partition, i, work) for i in blocks])
        return np.concatenate([values for part in found for values in part])

    def _note(self, blocks: Sequence[int]) -> None:
        """Count a pass over some partitions."""
        self.passes += 1
        self.reads.add(sum(self.source.lengths[i] for i in blocks))


def partitions_of(collection: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return the partitions of a dask array or data frame, with whole rows each, and the columns' names."""
    if hasattr(collection, "columns"):
        refuse_shared_names(collection.columns)
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
    sample = np.zeros((1, _width(collection)))
    example = function(_like(collection, sample))
    work = _key_of((function, np.asarray(example[:0])))
    chunks = [_task(tasks.apply_to, work, part, i) for i, part in enumerate(partitions)]
    lengths = [np.nan] * len(partitions) if names is not None else collection.chunks[0]
    return _join(chunks, lengths, example.shape[1:], example.dtype)


def read_partitions(collection: Any) -> tuple[int, Iterator[Any]]:
    """Return the number of columns, and the rows of every partition, which come to the client one by one.

    Values may be missing: nothing is opened.
    """
    partitions, _ = partitions_of(collection)
    width = _width(collection)
    reading = (_task(tasks.matrix, part, i, width) for i, part in enumerate(partitions))
    return width, (_compute([one])[0] for one in reading)


def _width(collection: Any) -> int:
    """Return the number of columns of a dask array or data frame."""
    width = collection.shape[1]
    if np.isnan(width):
        raise InvalidInputError("the number of columns of X is not known; call X.compute_chunk_sizes() first")
    return int(width)


def _like(collection: Any, rows: FloatArray) -> Any:
    """Return rows in the container of a partition: a data frame has names."""
    meta = collection._meta
    return type(meta)(rows, columns=meta.columns) if hasattr(meta, "columns") else rows


def _join(chunks: Sequence[Any], lengths: Sequence[float], rest: tuple[int, ...], dtype: Any) -> Any:
    """Return results of tasks, one per partition, as a lazy array."""
    arrays = [from_delayed(chunk, (n, *rest), dtype=dtype) for chunk, n in zip(chunks, lengths, strict=True)]
    return concatenate(arrays, allow_unknown_chunksizes=True)


def _task(function: Callable[..., Any], *of: Any) -> Any:
    return delayed(function, pure=False, traverse=False)(*of)


def _key_of(content: Any) -> Any:
    """Return an object as one key of a graph, which many tasks use; dask does not look into it."""
    return delayed(tasks.Constant(content), pure=False, traverse=False)


def _compute(lazy: Sequence[Any]) -> list[Any]:
    """Compute tasks on the scheduler that is in use."""
    with _on_a_cluster():
        return list(compute(*lazy))


def _persist(lazy: Sequence[Any]) -> list[Any]:
    """Compute tasks whose results stay where they are."""
    with _on_a_cluster():
        return list(persist(*lazy))


@contextmanager
def _on_a_cluster() -> Iterator[None]:
    """Where a cluster ends a computation, say so: the rows are not the reason."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, CancelledError) and not type(error).__module__.startswith("distributed."):
            raise
        reason = str(error).partition("\n")[0]
        raise RavineError(
            "the cluster of Dask ended the computation, or the connection to the scheduler was lost "
            f"({reason}); look at its workers, connect again, and repeat the call"
        ) from error
