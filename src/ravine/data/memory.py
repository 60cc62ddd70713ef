"""Rows in memory: an ndarray, a memmap, a CSR matrix, or anything with `shape` and row slices."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import NO_NUMBERS, Block, DenseBlock, SparseBlock, checksum
from ravine.data.query import Answer, AnyArray, Asked, Divider, Request, Result, blame, fold, places_by
from ravine.data.sample import Sample, UnsignedArray, bounded, hashes, smallest, stored
from ravine.data.scratch import BLOCK_BYTES
from ravine.data.threads import ONE_THREAD, Threads

CHUNK_ROWS = 8192  # least rows of a chunk, the part of the rows that one thread reads
MAX_CHUNKS = 16  # chunks of one pass: bounds the partial sums in memory, for any number of threads
THREADED_VALUES = 1 << 22  # least values of a pass that threads share: with fewer they wait for each other


@dataclass
class ReadCount:
    """The number of rows of the data that all passes together have read so far.

    `watch` is called after every read: a fit of hours has to say how far it is.
    """

    rows: int = 0
    watch: Callable[[], None] | None = None
    _lock: Any = field(default_factory=Lock, repr=False, compare=False)

    def add(self, n_rows: int) -> None:
        """Count rows that were read."""
        with self._lock:
            self.rows += n_rows
        if self.watch is not None:
            self.watch()


class InMemory:
    """The engine of rows in memory: one pass over each set of rows, one set after the other."""

    local = True

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        first = asked[0].rows
        if isinstance(first, MemoryRows) and all(one.rows is first for one in asked):
            return first.pass_over([one.request for one in asked])
        answers: dict[int, Answer] = {}
        for members in places_by(id(one.rows) for one in asked).values():
            rows = asked[members[0]].rows
            assert isinstance(rows, MemoryRows)
            found = rows.pass_over([asked[i].request for i in members])
            answers.update(zip(members, found, strict=True))
        return [answers[i] for i in range(len(asked))]

    def divide(self, parts: Sequence[tuple[MemoryRows, Divider]]) -> list[tuple[MemoryRows, MemoryRows]]:
        return [rows.divide(boundary.distances) for rows, boundary in parts]

    def union(self, parts: Sequence[MemoryRows]) -> MemoryRows:
        picked = np.sort(np.concatenate([rows.numbers for rows in parts]))
        return replace(parts[0], picked=picked)

    def assign(self, parts: Sequence[MemoryRows], labels: Sequence[int]) -> IntArray:
        found = np.zeros(parts[0].array.shape[0], dtype=np.int64)
        for rows, label in zip(parts, labels, strict=True):
            found[rows.numbers] = label
        return found


IN_MEMORY = InMemory()


@dataclass
class MemoryRows:
    """Rows in memory, all of an array or some of them, in increasing order (`picked`).

    Rows are read in chunks, which depend only on the number of rows of the whole array, also for a selection.
    Each chunk is read in blocks that fit into a processor's cache, so that the data is never copied as a
    whole. Threads work on chunks, and their partial sums are merged in a fixed tree: the answer has the same
    bits for any number of them.

    >>> rows = MemoryRows(np.arange(6.0).reshape(3, 2))
    >>> rows.map(lambda block: block.dense().sum(axis=1)).tolist()
    [1.0, 5.0, 9.0]
    """

    array: Any
    weights: FloatArray | None = None
    threads: Threads = ONE_THREAD
    picked: IntArray | None = None
    numbers_in_data: IntArray | None = None  # of rows that are copies: samples depend on these numbers
    reads: ReadCount = field(default_factory=ReadCount)

    def __post_init__(self) -> None:
        n = len(self.picked) if self.picked is not None else self.array.shape[0]
        self.shape = (int(n), int(self.array.shape[1]))
        own = self.own_weights
        # chunk by chunk, so that engines that read blocks find the same bits
        self.total = float(n) if own is None else _fold_sums([own[a:b].sum() for a, b in self._chunks()])

    @property
    def engine(self) -> InMemory:
        return IN_MEMORY

    @property
    def own_weights(self) -> FloatArray | None:
        """The weight of every row of this set; None if all weights are 1."""
        return self.weights if self.weights is None or self.picked is None else self.weights[self.picked]

    @property
    def numbers(self) -> IntArray:
        """The numbers of these rows in the whole array."""
        return np.arange(self.shape[0]) if self.picked is None else self.picked

    @cached_property
    def counted(self) -> IntArray | None:
        """The places of the rows of positive weight, or None if all rows have one."""
        own = self.own_weights
        return None if own is None or (own > 0).all() else np.flatnonzero(own > 0)

    @property
    def n_counted(self) -> int:
        return self.shape[0] if self.counted is None else len(self.counted)

    @property
    def values_per_row(self) -> float:
        """How many values a row of the array holds in the mean."""
        return self.array.nnz / self.array.shape[0] if sparse.issparse(self.array) else float(self.shape[1])

    def pass_over(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request in one pass; a sample reads only the rows that it draws."""
        sums = [i for i, request in enumerate(requests) if not isinstance(request, Sample)]
        if len(sums) == len(requests):
            return self._sums(requests)
        answers = dict(zip(sums, self._sums([requests[i] for i in sums]), strict=True)) if sums else {}
        for i, request in enumerate(requests):
            if isinstance(request, Sample):
                answers[i] = self._sample(request)
        return [answers[i] for i in range(len(requests))]

    def _sums(self, requests: Sequence[Request]) -> list[Answer]:
        kinds = places_by(type(request) for request in requests)

        def read(chunk: tuple[int, int]) -> list[Answer]:
            answers = [request.start(self.shape[1]) for request in requests]
            for block in self._blocks(*chunk):
                add_block(block, kinds, requests, answers)
            return answers

        parts = self._over_chunks(read)
        return [
            fold(request.merge, [None if part is None else part[i] for part in parts])
            or request.start(self.shape[1])
            for i, request in enumerate(requests)
        ]

    def _sample(self, request: Sample) -> Answer:
        """Return the rows of smallest hash, the same as `Sample.add` finds block by block."""
        keys, numbers, places = self._hashed(bounded(request, self.n_counted))
        if len(keys) < min(request.n, self.n_counted):  # see `bounded`: hardly ever
            keys, numbers, places = self._hashed(request)
        few = smallest(keys, numbers, request.n)
        chosen = self.select(places[few])
        self.reads.add(len(few))
        own = np.ones(len(few)) if chosen.own_weights is None else chosen.own_weights
        if sparse.issparse(self.array):
            values = sparse.csr_array(self.array[chosen.picked])
        else:
            none = np.empty((0, self.shape[1]))
            values = np.concatenate([none, *(block.dense() for block in chosen._blocks(0, len(few)))])
        return keys[few], numbers[few], own, *stored(values)

    def _hashed(self, request: Sample) -> tuple[UnsignedArray, IntArray, IntArray]:
        """Return hashes, numbers and places of the rows of positive weight below the bound of a sample."""

        def read(chunk: tuple[int, int]) -> tuple[UnsignedArray, IntArray, IntArray]:
            here = np.arange(*chunk)
            if self.counted is not None:
                here = self.counted[slice(*np.searchsorted(self.counted, chunk))]
            numbers = here if self.picked is None else self.picked[here]
            numbers = numbers if self.numbers_in_data is None else self.numbers_in_data[numbers]
            keys = hashes(numbers, request.seed)
            low = np.flatnonzero(keys <= np.uint64(request.highest))
            return keys[low], numbers[low], here[low]

        _ = self.counted  # computed here, not by several threads at the same time
        parts = self._threads_for(self.shape[0] * self.values_per_row).map(read, self._chunks() or [(0, 0)])
        keys, numbers, places = (np.concatenate(some) for some in zip(*parts, strict=True))
        return keys, numbers, places

    def map(self, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row, in the order of the rows."""

        def read(chunk: tuple[int, int]) -> list[AnyArray]:
            return [function(block) for block in self._blocks(*chunk)]

        return np.concatenate([values for part in self._over_chunks(read) for values in part or ()])

    def select(self, rows: IntArray) -> Self:
        """Return a subset of these rows, given by their places in increasing order."""
        return replace(self, picked=rows if self.picked is None else self.picked[rows])

    def divide(self, distances: Callable[[Block], FloatArray]) -> tuple[Self, Self]:
        """Return the rows of negative or zero distance, and those of positive distance; one pass."""
        right = self.map(distances) > 0
        return self.select(np.flatnonzero(~right)), self.select(np.flatnonzero(right))

    @property
    def is_whole(self) -> bool:
        return self.picked is None and self.counted is None

    @property
    def first(self) -> int:
        place = 0 if self.counted is None else int(self.counted[0])
        return place if self.picked is None else int(self.picked[place])

    def checksums(self) -> list[int]:
        """Return a checksum per chunk of the array; one pass."""
        self.reads.add(self.shape[0])
        return [checksum(self.array[a:b]) for a, b in self._chunks()]

    def _over_chunks(self, read: Callable[[tuple[int, int]], Result]) -> list[Result | None]:
        """Return the result of every chunk; None for one without rows."""
        self.reads.add(self.shape[0])
        chunks = self._chunks()
        filled = [k for k, (a, b) in enumerate(chunks) if a < b]
        found: list[Result | None] = [None] * len(chunks)
        threads = self._threads_for(self.shape[0] * self.values_per_row)
        for k, result in zip(filled, threads.map(read, [chunks[k] for k in filled]), strict=True):
            found[k] = result
        return found

    def _threads_for(self, n_values: float) -> Threads:
        """Return the threads that share a pass over so many values."""
        return ONE_THREAD if n_values < THREADED_VALUES else self.threads

    def _chunks(self) -> list[tuple[int, int]]:
        """Return the chunks as ranges of places of these rows; their bounds are rows of the whole array."""
        n = self.array.shape[0]
        if n <= CHUNK_ROWS:
            return [(0, self.shape[0])] if self.shape[0] else []
        step = chunk_rows(n)
        bounds = np.append(np.arange(0, n, step), n)
        if self.picked is not None:
            bounds = np.searchsorted(self.picked, bounds)
        return [(int(a), int(b)) for a, b in itertools.pairwise(bounds)]

    @cached_property
    def _single_block(self) -> Block | None:
        """All rows as one block if that needs no copy: small nodes are read many times."""
        array, n = self.array, self.shape[0]
        if self.picked is not None or type(array) is not np.ndarray or n > cache_rows(self.shape[1], False):
            return None
        if array.dtype != np.float64 or not array.flags.c_contiguous:
            return None
        weights = np.ones(n) if self.weights is None else self.weights
        return DenseBlock(
            array, weights, np.arange(n) if self.numbers_in_data is None else self.numbers_in_data
        )

    def _blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Yield the rows start..stop in blocks that fit into the cache."""
        if (start, stop) == (0, self.shape[0]) and self._single_block is not None:
            yield self._single_block
            return
        step = cache_rows(self.shape[1], sparse.issparse(self.array))
        for a in range(start, stop, step):
            b = min(a + step, stop)
            where = slice(a, b) if self.picked is None else self.picked[a:b]
            weights = np.ones(b - a) if self.weights is None else self.weights[where]
            numbers = np.arange(a, b) if self.picked is None else self.picked[a:b]
            numbers = numbers if self.numbers_in_data is None else self.numbers_in_data[numbers]
            yield make_block(rows_at(self.array, where), weights, numbers)


def chunk_rows(n: int) -> int:
    """Return how many rows the chunks of n rows have.

    >>> chunk_rows(10_000), chunk_rows(1_000_000)
    (8192, 62500)
    """
    return max(CHUNK_ROWS, -(-n // MAX_CHUNKS))


def cache_rows(n_features: int, is_sparse: bool) -> int:
    """Return how many rows are read at a time: they fit a processor's cache."""
    step = max(64, BLOCK_BYTES // (8 * n_features))
    return min(CHUNK_ROWS, 8 * step) if is_sparse else step  # a sparse block may be written out dense


def rows_at(array: Any, where: IntArray | slice) -> Any:
    """Return some rows of an array; `take` is twice as fast as an index, but copies other arrays whole."""
    if isinstance(where, slice) or not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        return array[where]
    return np.take(array, where, axis=0)


def make_block(values: Any, weights: FloatArray, numbers: IntArray = NO_NUMBERS) -> Block:
    """Return rows, dense or CSR, as a block of float64."""
    if sparse.issparse(values):
        return SparseBlock(sparse.csr_array(values), weights, numbers)
    with np.errstate(over="ignore"):  # what float64 cannot hold becomes infinite, and is refused
        return DenseBlock(np.ascontiguousarray(values, dtype=np.float64), weights, numbers)


def _fold_sums(sums: list[Any]) -> float:
    return float(fold(operator.add, sums)) if sums else 0.0


def add_block(
    block: Block, kinds: Mapping[type[Request], list[int]], requests: Sequence[Request], answers: list[Answer]
) -> None:
    """Add a block to the answers, all requests of one kind at once."""
    for kind, members in kinds.items():
        try:
            kind.add_many(block, [requests[i] for i in members], [answers[i] for i in members])
        except Exception as error:
            failed = next((i for i in members if _fails(block, requests[i], answers[i])), members[0])
            raise blame(error, requests[failed]) from error.__cause__


def _fails(block: Block, request: Request, answer: Answer) -> bool:
    """Return whether a request fails by itself. Spoils the answer, which is not used after a failure."""
    try:
        request.add(block, answer)
    except Exception:
        return True
    return False
