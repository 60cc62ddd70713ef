"""Rows in memory: an ndarray, a memmap, a CSR matrix, or anything with `shape` and row slices."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.block_pass import BlockData, answer_rows, map_pieces
from ravine.data.blocks import CHUNK_ROWS, Block, checksum
from ravine.data.query import Answer, AnyArray, Asked, Divider, Request, Result, fold, places_by
from ravine.data.sample import Sample, bound_samples
from ravine.data.threads import ONE_THREAD, Threads

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
        requests = bound_samples(requests, self.n_counted)
        parts = self._over_chunks(lambda data, where: answer_rows(data, where, requests))
        answers = [
            request.merge_all([None if part is None else part[i] for part in parts])
            or request.start(self.shape[1])
            for i, request in enumerate(requests)
        ]
        drawn = [len(answers[i][0]) for i, request in enumerate(requests) if isinstance(request, Sample)]
        self.reads.add(sum(drawn) + (self.shape[0] if len(drawn) < len(requests) else 0))
        return answers

    def map(self, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row, in the order of the rows."""
        parts = self._over_chunks(lambda data, where: map_pieces(data, where, function))
        self.reads.add(self.shape[0])
        return np.concatenate([values for part in parts for values in part or ()])

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

    def _over_chunks(self, read: Callable[[BlockData, IntArray | slice], Result]) -> list[Result | None]:
        """Return the result of every chunk, given by its rows in the array; None for one without rows."""

        def read_chunk(chunk: tuple[int, int]) -> Result | None:
            if chunk[0] == chunk[1]:
                return None
            data = BlockData(self.array, self.weights, numbers=self.numbers_in_data)
            return read(data, slice(*chunk) if self.picked is None else self.picked[slice(*chunk)])

        enough = self.shape[0] * self.values_per_row >= THREADED_VALUES
        return (self.threads if enough else ONE_THREAD).map(read_chunk, self._chunks())

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


def chunk_rows(n: int) -> int:
    """Return how many rows the chunks of n rows have.

    >>> chunk_rows(10_000), chunk_rows(1_000_000)
    (8192, 62500)
    """
    return max(CHUNK_ROWS, -(-n // MAX_CHUNKS))


def _fold_sums(sums: list[Any]) -> float:
    return float(fold(operator.add, sums)) if sums else 0.0
