"""The engine of dask arrays and data frames: it builds graphs; the only module that imports dask.

One pass is one graph: a task per partition answers the requests about all sets of rows, and the answers are
merged in a tree by the numbers of the partitions (`partition_tasks.py`). Requests are one key of the graph.
Leaf ids stay with the partitions (4 bytes per row); only samples, small nodes and merged answers come to the
client. Graphs run on the scheduler that is in use: threads, processes, or a cluster.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cached_property, partial
from inspect import iscoroutinefunction
from typing import Any

import numpy as np
from dask.array import Array, concatenate, from_delayed
from dask.base import compute
from dask.core import get_dependencies
from dask.delayed import Delayed, delayed
from scipy import sparse

from ravine._validate import FloatArray, IntArray, refuse_shared_names
from ravine.data import partition_tasks as tasks
from ravine.data.block_engine import BlockEngine, BlockRows
from ravine.data.block_pass import (
    Count,
    Group,
    Part,
    count,
    places_of,
)
from ravine.data.blocks import Block
from ravine.data.leaves import Leaves
from ravine.data.memory import ReadCount
from ravine.data.query import Answer, AnyArray, blame
from ravine.exceptions import InvalidInputError, RavineError

FAN_IN = 4  # answers that one task merges, a power of two: the tree stays that of `fold`

Graph = dict[Any, Any]


class DaskSource:
    """A dask array or data frame as rows in blocks: its partitions.

    Opening it reads every partition once, for its length and a checksum. What is not persisted is computed
    again in every pass.
    """

    def __init__(self, collection: Any) -> None:
        self.partitions, self.names = partitions_of(collection)
        self.graph = _graph_of(collection, self.partitions)
        opening, name = dict(self.graph), _name("open")
        for i, part in enumerate(self.partitions):
            opening[name, i] = (tasks.open_partition, part.key, i)
        keys = [(name, i) for i in range(len(self.partitions))]
        self.opened: list[tasks.Opened] = _compute_all(opening, keys)
        widths = {one.n_columns for one in self.opened}
        if len(widths) != 1:
            raise InvalidInputError(
                f"the partitions of X have {sorted(widths)} columns; all partitions need the same number"
            )
        self.lengths = tuple(one.n_rows for one in self.opened)
        self.shape = (sum(self.lengths), widths.pop())
        self.map_key: str | None = None

    @property
    def path(self) -> str:
        """How messages name the data."""
        return "X"

    @property
    def is_sparse(self) -> bool:
        """Whether partitions are sparse matrices."""
        return any(one.is_sparse for one in self.opened)

    @property
    def values_per_row(self) -> float:
        """How many values a row holds in the mean."""
        if self.map_key is not None or not self.is_sparse:
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
        ends = np.searchsorted(numbers, self.bounds)
        graph, name, keys = dict(self.graph), _name("take"), []
        for i in np.flatnonzero(np.diff(ends)).tolist():
            places = numbers[ends[i] : ends[i + 1]] - self.bounds[i]
            graph[name, i] = (tasks.take, self.partitions[i].key, self.opened[i], places)
            keys.append((name, i))
        found = _compute_all(graph, keys)
        return sparse.vstack(found, format="csr") if sparse.issparse(found[0]) else np.concatenate(found)

    def among(self, numbers: IntArray) -> Any:
        """Return some rows, by their numbers in increasing order, as a lazy array."""
        ends = np.searchsorted(numbers, self.bounds)
        chunks, lengths = [], []
        for i in np.flatnonzero(np.diff(ends)).tolist():
            places = numbers[ends[i] : ends[i + 1]] - self.bounds[i]
            chunks.append(_delay(tasks.take, self.partitions[i], self.opened[i], places))
            lengths.append(len(places))
        return _joined(chunks, lengths, self.shape[1:], float)

    def mapped(self, feature_map: Any) -> DaskSource:
        """Return the rows seen through a feature map, which is applied in every pass."""
        other = copy.copy(self)
        other.map_key = _name("map")
        other.graph = {**self.graph, other.map_key: (tasks.content, tasks.Constant(feature_map))}
        other.shape = (self.shape[0], feature_map.n_components)
        return other

    def rows_in_place(self, weights: FloatArray | None) -> BlockRows:
        """Return the rows with an engine that reads them where they are."""
        return DaskEngine(self, weights).rows()


class DaskEngine(BlockEngine):
    """Answers requests about the partitions of a dask collection.

    The leaf ids, and the weights if there are any, are persisted arrays with the chunks of the rows. Where a
    worker is lost, their graphs make them again. Samples are searched on the workers that draw them.
    """

    has_workers = True

    def __init__(self, source: DaskSource, weights: FloatArray | None = None) -> None:
        self.source: DaskSource = source
        self.weights, self.bounds = weights, source.bounds
        self.passes, self.reads = 1, ReadCount(source.shape[0])  # the opening pass
        name = _name("ids")
        zeros = {(name, i): (np.zeros, n, np.int32) for i, n in enumerate(source.lengths)}
        self._ids = self._column(name, zeros, np.int32)
        self._weights: Any = None
        if weights is not None:
            name = _name("weights")
            cut = zip(self.bounds[:-1], self.bounds[1:], strict=True)
            own = {(name, i): tasks.Constant(weights[a:b]) for i, (a, b) in enumerate(cut)}
            self._weights = self._column(name, {key: (tasks.content, one) for key, one in own.items()}, float)
        self.leaves = Leaves(self.count((0,)))

    @property
    def values_per_row(self) -> float:
        return self.source.values_per_row

    def _column(self, name: str, graph: Graph, dtype: Any) -> Any:
        """Persist one value per row, by partition."""
        with _on_a_cluster():
            return Array(graph, name, (self.source.lengths,), dtype=dtype).persist()

    def _sums(self, blocks: Sequence[int], groups: Sequence[Group]) -> Sequence[Sequence[Answer] | None]:
        graph, keys = self._tree(blocks, groups)
        merged, *ends = self._compute(graph, keys, blocks)
        for found in (merged, *ends):
            if isinstance(found, tasks.Failed):
                raise blame(found.error, groups[found.group].requests[found.request])
        return tasks.with_ends(merged, tasks.searches_of(groups), ends)

    def _tree(self, blocks: Sequence[int], groups: Sequence[Group]) -> tuple[Graph, list[Any]]:
        """Return a graph, and the keys of the merged answers and of the ends of searches of samples.

        It has a task per partition, then a tree of merges, and beside it a task per search.
        """
        searches, requests = tasks.searches_of(groups), _name("requests")
        graph, keys = self._tasks(blocks, tasks.answer, requests, tuple(groups))
        found = []
        if searches:  # sums and samples go to different workers
            drawn, own = _name("drawn"), _name("search")
            pieces = [(drawn, i) for i in blocks]
            graph.update(
                {(drawn, i): (tasks.drawn, requests, key) for (_, i), key in zip(pieces, keys, strict=True)}
            )
            found = [(own, k) for k in range(len(searches))]
            graph.update({key: (tasks.search, requests, k, pieces) for k, key in enumerate(found)})
            sums = _name("sums")
            graph.update(
                {(sums, i): (tasks.sums, requests, key) for i, key in zip(blocks, keys, strict=True)}
            )
            keys = [(sums, i) for i in blocks]
        return graph, [self._merges(graph, requests, dict(zip(blocks, keys, strict=True))), *found]

    def _merges(self, graph: Graph, requests: str, keys: dict[int, Any]) -> Any:
        """Add the tree that merges answers of blocks to a graph; return the key of its end."""
        places = {self.leaves.places[i]: key for i, key in keys.items()}
        merged, level = _name("merge"), 0
        while len(places) > 1:
            level += 1
            parents = sorted({place // FAN_IN for place in places})
            for k in parents:
                parts = [places.get(place) for place in range(FAN_IN * k, FAN_IN * (k + 1))]
                graph[merged, level, k] = (tasks.merge, requests, parts)
            places = {k: (merged, level, k) for k in parents}
        return next(iter(places.values()))

    def _tasks(
        self, blocks: Sequence[int], function: Callable[..., Any], name: str, work: Any
    ) -> tuple[Graph, list[Any]]:
        """Return a graph with a task per partition, and their keys; `work` is one key of it."""
        source, own = self.source, _name(function.__name__)
        graph = {**source.graph, **_flat(self._ids), **_flat(self._weights)}
        graph[name] = (tasks.content, tasks.Constant(work))
        for i in blocks:
            weights = None if self._weights is None else (self._weights.name, i)
            part, ids = source.partitions[i].key, (self._ids.name, i)
            seen = tasks.Seen(source.opened[i], int(self.bounds[i]))
            graph[own, i] = (function, part, ids, weights, seen, source.map_key, name)
        return graph, [(own, i) for i in blocks]

    def _relabel(self, blocks: Sequence[int], parts: Sequence[Part]) -> dict[int, dict[int, Count]]:
        self._note(blocks)
        graph, keys = self._tasks(blocks, tasks.divide, _name("boundaries"), tuple(parts))
        name, divided = _name("ids"), dict(zip(blocks, keys, strict=True))
        for i in range(len(self.source.lengths)):
            graph[name, i] = divided.get(i, (self._ids.name, i))
        before, sides = self._ids, [(side,) for part in parts for side in (part.left, part.right)]
        try:
            self._ids = self._column(name, graph, np.int32)
            found = self._count(sides)
        except BaseException:
            self._ids = before
            raise
        return {i: found[i] for i in blocks}

    def _count(self, sets: Sequence[tuple[int, ...]]) -> list[dict[int, Count]]:
        """Count the rows of sets of leaves in every partition; the rows themselves are not read."""
        graph, name, own = {**_flat(self._ids), **_flat(self._weights)}, _name("count"), _name("sets")
        graph[own] = (tasks.content, tasks.Constant(sets))
        for i, start in enumerate(self.bounds[:-1].tolist()):
            weights = None if self._weights is None else (self._weights.name, i)
            graph[name, i] = (count, (self._ids.name, i), weights, start, own)
        return _compute_all(graph, [(name, i) for i in range(len(self.source.lengths))])

    def count(self, leaves: tuple[int, ...]) -> dict[int, Count]:
        """Count the rows of a set of leaves in every partition; the rows themselves are not read."""
        return {i: one[leaves[0]] for i, one in enumerate(self._count([leaves])) if one}

    def numbers(self, leaves: tuple[int, ...]) -> IntArray:
        """Return the numbers of the rows of some leaves: the ids come to the client, 4 bytes per row."""
        with _on_a_cluster():
            return places_of(self._ids.compute(), [leaves])[0]

    def checksums(self) -> list[int]:
        """Return the checksum of every partition, as the opening pass found it."""
        return [one.checksum for one in self.source.opened]

    def assign(self, parts: Sequence[BlockRows], labels: Sequence[int]) -> Any:
        """Return one label per row, as a lazy array with the chunks of the data."""
        return self._ids.map_blocks(tasks.look_up, self._label_of(parts, labels), dtype=np.int64)

    def each(self, function: Callable[[Any], AnyArray], dtype: Any) -> Any:
        """Return one value per row as a lazy array: a function of the rows of every partition."""
        blocks = range(len(self.source.lengths))
        graph, keys = self._tasks(blocks, tasks.each, _name("function"), (function, np.zeros(0, dtype)))
        return Array(graph, keys[0][0], (self.source.lengths,), dtype=dtype)

    def map(self, rows: BlockRows, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row: they come to the client."""
        blocks = sorted(rows.blocks)
        graph, keys = self._tasks(blocks, tasks.map_partition, _name("function"), (rows.group(()), function))
        return np.concatenate([values for part in self._compute(graph, keys, blocks) for values in part])

    def _compute(self, graph: Graph, keys: Sequence[Any], blocks: Sequence[int]) -> list[Any]:
        self._note(blocks)
        return _compute_all(graph, keys)

    def _note(self, blocks: Sequence[int]) -> None:
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
    work = delayed((function, np.asarray(example[:0])), traverse=False)
    chunks = [_delay(tasks.apply_to, work, part, i) for i, part in enumerate(partitions)]
    lengths = [np.nan] * len(partitions) if names is not None else collection.chunks[0]
    return _joined(chunks, lengths, example.shape[1:], example.dtype)


def read_partitions(collection: Any) -> tuple[int, Iterator[Any]]:
    """Return the number of columns, and the rows of every partition, which come to the client one by one.

    Values may be missing: nothing is opened.
    """
    partitions, _ = partitions_of(collection)
    graph, width, name = _graph_of(collection, partitions), _width(collection), _name("read")

    def read(i: int) -> Any:
        own = {**graph, (name, i): (tasks.matrix, partitions[i].key, i, width)}
        return _compute_all(own, [(name, i)])[0]

    return width, map(read, range(len(partitions)))


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


def _joined(chunks: Sequence[Any], lengths: Sequence[float], rest: tuple[int, ...], dtype: Any) -> Any:
    arrays = [from_delayed(chunk, (n, *rest), dtype=dtype) for chunk, n in zip(chunks, lengths, strict=True)]
    return concatenate(arrays, allow_unknown_chunksizes=True)


def _delay(function: Callable[..., Any], *of: Any) -> Any:
    return delayed(function, pure=False, traverse=False)(*of)


def _name(what: str) -> str:
    return f"ravine-{what}-{uuid.uuid4().hex}"


def _flat(collection: Any) -> Graph:
    """Return the tasks of a persisted collection."""
    return {} if collection is None else dict(collection.__dask_graph__())


def _graph_of(collection: Any, partitions: Sequence[Any]) -> Graph:
    """Return the tasks of all partitions, whose errors name the first partition that needs the task."""
    graph = _flat(collection)  # partitions that are persisted on a cluster are only here
    for own in {id(part.dask): part.dask for part in partitions}.values():
        graph.update(own)
    seen = set()
    for i, part in enumerate(partitions):
        todo = [part.key]
        while todo:
            key = todo.pop()
            if key in graph and key not in seen:
                seen.add(key)
                todo.extend(get_dependencies(graph, key))
                graph[key] = _naming(graph[key], i)
    return graph


def _naming(task: Any, number: int) -> Any:
    """Return a task of the user's graph whose errors name a partition; data and references stay as they are.

    Up to dask 2024.11 a task is a tuple, which may have others within it.
    """
    is_tuple = type(task) is tuple and len(task) > 0
    function = task[0] if is_tuple else getattr(task, "func", None)
    if not callable(function) or iscoroutinefunction(function):
        return task
    named = partial(tasks.of_partition, number, function)
    if is_tuple:
        return (named, *(_naming(one, number) for one in task[1:]))
    is_plain = type(task).__name__ == "Task"  # and not a list, or a barrier that the scheduler looks for
    return type(task)(task.key, named, *task.args, **task.kwargs) if is_plain else task


def _compute_all(graph: Graph, keys: Sequence[Any]) -> list[Any]:
    """Compute some keys of a graph on the scheduler that is in use."""
    with _on_a_cluster():
        if len(keys) == 1:
            return list(compute(Delayed(keys[0], graph)))
        name = _name("all")
        (found,) = compute(Delayed(name, {**graph, name: (list, list(keys))}))
        return list(found)


@contextmanager
def _on_a_cluster() -> Iterator[None]:
    """Where a cluster ends a computation, say so: the rows are not the reason."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, CancelledError) and not tasks.is_of_cluster(error):
            raise
        reason = str(error).partition("\n")[0]
        if "connection-lost" in reason or isinstance(error, OSError):
            text = "the connection to the scheduler of Dask was lost; connect again, and repeat the call"
        elif isinstance(error, CancelledError) and "reason" not in reason:  # an older Dask does not say why
            text = "the connection to the scheduler of Dask was lost, or the computation cancelled; repeat it"
        else:
            text = f"the cluster of Dask ended the computation ({reason}); look at its workers, and repeat it"
        raise RavineError(text) from error
