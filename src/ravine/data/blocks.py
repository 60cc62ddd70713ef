"""Blocks of rows, requests for sums over them, and the driver that answers many askers in one pass.

An algorithm is a generator: it yields requests for sums and receives the answers. `together` runs many of
them side by side, so that one pass over the rows answers what all of them ask for; `drive` makes the passes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray

AnyArray = npt.NDArray[Any]
Answer = tuple[AnyArray, ...]
Result = TypeVar("Result")
Query = Generator[Sequence["Request"], list[Answer], Result]

BLOCK_BYTES = 1 << 21  # what one thread holds at a time: fits a cache, and is worth a call
CHUNK_ROWS = 8192  # the least number of rows that is worth a thread of its own
COPY_BYTES = 1 << 25  # samples up to this size are copied, because they are read many times
MAX_CHUNKS = 16  # partial sums that live at once, whatever the number of threads


class Rows(Protocol):
    """One block of rows in memory, dense or CSR, with its weights."""

    @property
    def weights(self) -> FloatArray:
        """The weight of every row."""

    def __len__(self) -> int: ...

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Return directions . (x - pivot) for every row x; shape (directions, rows)."""

    def product(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Project by one matrix product: faster, but the last bits may depend on the other directions."""

    def group_sums(self, pivot: FloatArray, weights: FloatArray, groups: IntArray, sums: FloatArray) -> None:
        """Add weights (x - pivot) of every row x to the row of `sums` that is its group."""

    def weighted_sums(self, pivot: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the sum over rows x of weights[k] (x - pivot) for every k; weights are (k, rows)."""

    def moments(
        self, pivot: FloatArray, scale: FloatArray, totals: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        """Add the first two weighted moments of scale (x - pivot), and widen the columns' ranges."""

    def take(self, picked: IntArray) -> Rows:
        """Return some of the rows."""

    def dense(self) -> FloatArray:
        """Return the rows as a C-ordered float64 array."""


@dataclass(frozen=True)
class DenseRows:
    """A C-ordered float64 block."""

    values: FloatArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Project one or two directions, or eight at a time: each has the same bits in any company."""
        from ravine.data import kernels

        k, d = directions.shape
        if k <= 2:
            out = np.empty((k, len(self)))
            if k == 1:
                kernels.project_one(self.values, pivot, directions, out)
            else:
                kernels.project_two(self.values, pivot, directions, out)
            return out
        out = np.empty((k + -k % 8, len(self)))
        padded = np.zeros((d, len(out)))
        padded[:, :k] = directions.T
        for c in range(0, k, 8):
            eight = np.ascontiguousarray(padded[:, c : c + 8])
            kernels.project_eight(self.values, pivot, eight, out[c : c + 8])
        return out[:k]

    def product(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Center the block and multiply."""
        return np.asarray(directions @ (self.values - pivot).T)

    def group_sums(self, pivot: FloatArray, weights: FloatArray, groups: IntArray, sums: FloatArray) -> None:
        """Scatter the rows into their groups."""
        from ravine.data import kernels

        kernels.group_sums(self.values, pivot, weights, groups, sums)

    def weighted_sums(self, pivot: FloatArray, weights: FloatArray) -> FloatArray:
        """Multiply the centered block by all weights at once."""
        return np.asarray(weights @ (self.values - pivot))

    def moments(
        self, pivot: FloatArray, scale: FloatArray, totals: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        """Sweep once over the block."""
        from ravine.data import kernels

        kernels.moments(self.values, pivot, scale, self.weights, totals, low, high)

    def take(self, picked: IntArray) -> DenseRows:
        """Copy some of the rows."""
        return DenseRows(self.values[picked], self.weights[picked])

    def dense(self) -> FloatArray:
        """Return the block itself."""
        return self.values


@dataclass(frozen=True)
class SparseRows:
    """A CSR block: every sum costs its stored entries, never its zeros."""

    matrix: sparse.csr_array
    weights: FloatArray

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @functools.cached_property
    def parts(self) -> tuple[FloatArray, npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
        """Stored values, their columns, and where each row starts."""
        data = np.ascontiguousarray(self.matrix.data, dtype=np.float64)
        return data, self.matrix.indices, self.matrix.indptr

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Project one direction after the other."""
        from ravine.data import kernels

        out = np.empty((len(directions), len(self)))
        for c, direction in enumerate(directions):
            kernels.project_csr(*self.parts, float(direction @ pivot), direction, out[c])
        return out

    def product(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Multiply the stored entries; the pivot is taken off at the end."""
        return np.asarray((self.matrix @ directions.T).T - (directions @ pivot)[:, None])

    def group_sums(self, pivot: FloatArray, weights: FloatArray, groups: IntArray, sums: FloatArray) -> None:
        """Scatter the stored entries into their groups."""
        from ravine.data import kernels

        kernels.group_sums_csr(*self.parts, pivot, weights, groups, sums)

    def weighted_sums(self, pivot: FloatArray, weights: FloatArray) -> FloatArray:
        """Multiply the stored entries by all weights at once; the pivot is taken off at the end."""
        return np.asarray((self.matrix.T @ weights.T).T - weights.sum(axis=1)[:, None] * pivot)

    def moments(
        self, pivot: FloatArray, scale: FloatArray, totals: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        """Sweep once over the stored entries."""
        from ravine.data import kernels

        kernels.moments_csr(*self.parts, pivot, scale, self.weights, totals, low, high)

    def take(self, picked: IntArray) -> SparseRows:
        """Copy some of the rows."""
        return SparseRows(self.matrix[picked], self.weights[picked])

    def dense(self) -> FloatArray:
        """Return the block with its zeros written out."""
        return np.ascontiguousarray(self.matrix.toarray(), dtype=np.float64)


class Request(Protocol):
    """A request for a sum over all rows."""

    def start(self, n_features: int) -> Answer:
        """Return the sum over no rows."""

    @staticmethod
    def add(rows: Rows, requests: Sequence[Any], answers: Sequence[Answer]) -> None:
        """Add one block to the answers of all requests of this kind, in place."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Return the sum over two sets of rows from the sum over each; may reuse `left`."""


class Additive:
    """A `Sum` whose answers are merged by adding them."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Add `right` to `left` in place."""
        for a, b in zip(left, right, strict=True):
            a += b
        return left


@dataclass
class ReadCount:
    """How many rows have been read so far, over all passes."""

    rows: int = 0


class RowBlocks(Protocol):
    """The only gateway to the data."""

    shape: tuple[int, int]
    total: float
    reads: ReadCount

    def pass_over(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request in one pass over the rows."""

    def map(self, function: Callable[[Rows], AnyArray]) -> AnyArray:
        """Return one value a row, in the order of the rows."""

    def select(self, rows: IntArray) -> RowBlocks:
        """Return these rows (in increasing order) as blocks of their own."""

    def sample(self, n_rows: int, rng: np.random.Generator) -> RowBlocks:
        """Return about evenly spread random rows of positive weight, in order, as blocks of their own."""

    def at_shares(self, shares: FloatArray) -> FloatArray:
        """Return the rows at which these shares of the weight are reached, rising from 0 to 1; in memory."""

    def counted(self) -> IntArray | None:
        """Return the rows of positive weight, or None where all are."""

    def stored(self) -> sparse.csr_array | None:
        """Return the rows as they are stored, where that is a sparse matrix; else None."""


def fold(merge: Callable[[Answer, Answer], Answer], parts: list[Answer]) -> Answer:
    """Merge neighbors until one is left: a tree that depends on the number of parts only."""
    while len(parts) > 1:
        paired = [merge(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = paired + parts[len(parts) - len(parts) % 2 :]
    return parts[0]


@dataclass
class ArrayBlocks:
    """Rows of an ndarray, a memmap, a CSR matrix, or anything with `shape` and row slices.

    Chunks depend on the number of rows only and are numbered in the rows of the whole array, also for a
    selection of rows; each chunk is read in blocks that fit a processor's cache, so that no copy of the
    data is ever made. Threads work on chunks, and the partial sums are folded in a fixed tree: the
    answer has the same bits for any `n_jobs`.

    >>> rows = ArrayBlocks(np.arange(6.0).reshape(3, 2))
    >>> rows.map(lambda block: block.dense().sum(axis=1)).tolist()
    [1.0, 5.0, 9.0]
    """

    array: Any
    weights: FloatArray | None = None
    n_jobs: int = 1
    picked: IntArray | None = None
    reads: ReadCount = field(default_factory=ReadCount)

    def __post_init__(self) -> None:
        n = len(self.picked) if self.picked is not None else self.array.shape[0]
        self.shape = (int(n), int(self.array.shape[1]))
        if self.weights is None:
            self.total = float(n)
        else:
            picked = self.weights if self.picked is None else self.weights[self.picked]
            self.total = float(picked.sum())

    def pass_over(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request in one pass over the rows."""
        kinds: dict[type, list[int]] = {}
        for i, request in enumerate(requests):
            kinds.setdefault(type(request), []).append(i)

        def read(chunk: tuple[int, int]) -> list[Answer]:
            answers = [request.start(self.shape[1]) for request in requests]
            for rows in self._blocks(*chunk):
                for kind, members in kinds.items():
                    kind.add(rows, [requests[i] for i in members], [answers[i] for i in members])  # type: ignore[attr-defined]
            return answers

        parts = self._over_chunks(read)
        return [fold(request.merge, [part[i] for part in parts]) for i, request in enumerate(requests)]

    def map(self, function: Callable[[Rows], AnyArray]) -> AnyArray:
        """Return one value a row, in the order of the rows."""

        def read(chunk: tuple[int, int]) -> list[AnyArray]:
            return [function(rows) for rows in self._blocks(*chunk)]

        return np.concatenate([values for part in self._over_chunks(read) for values in part])

    def select(self, rows: IntArray) -> Self:
        """Return these rows (in increasing order) as blocks of their own."""
        picked = rows if self.picked is None else self.picked[rows]
        return type(self)(self.array, self.weights, self.n_jobs, picked, self.reads)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Self:
        """Return one random row out of each of `n_rows` equal stretches; a copy where that is small.

        Stretches are counted in rows of positive weight. Fewer rows than asked for are all of them.
        """
        counted = self.counted()
        n = self.shape[0] if counted is None else len(counted)
        bounds = np.arange(min(n, n_rows) + 1) * n // min(n, n_rows)
        drawn = bounds[:-1] + (rng.random(len(bounds) - 1) * np.diff(bounds)).astype(np.int64)
        chosen = self.select(drawn if counted is None else counted[drawn])
        if sparse.issparse(self.array) or n_rows * self.shape[1] * 8 > COPY_BYTES:
            return chosen
        weights = None if self.weights is None else self.weights[chosen.picked]
        return type(self)(self.array[chosen.picked], weights, self.n_jobs, None, self.reads)

    def at_shares(self, shares: FloatArray) -> FloatArray:
        """Return the rows at which these shares of the weight are reached, rising from 0 to 1; in memory."""
        n = self.shape[0]
        if self.weights is None:
            places = (shares * n).astype(np.int64)
        else:
            reached = np.cumsum(self.weights if self.picked is None else self.weights[self.picked])
            places = np.searchsorted(reached, shares * reached[-1], side="right")
        found, again = np.unique(np.minimum(places, n - 1), return_inverse=True)
        return np.asarray(self.select(found).map(lambda block: block.dense())[again])

    def counted(self) -> IntArray | None:
        """Return the rows of positive weight, or None where all are."""
        if self.weights is None:
            return None
        weights = self.weights if self.picked is None else self.weights[self.picked]
        return None if (weights > 0).all() else np.flatnonzero(weights > 0)

    def stored(self) -> sparse.csr_array | None:
        """Return the rows as they are stored, where that is a sparse matrix; else None."""
        if not sparse.issparse(self.array):
            return None
        return sparse.csr_array(self.array if self.picked is None else self.array[self.picked])

    def _over_chunks(self, read: Callable[[tuple[int, int]], Result]) -> list[Result]:
        self.reads.rows += self.shape[0]
        chunks = self._chunks()
        if self.n_jobs == 1 or len(chunks) == 1:
            return [read(chunk) for chunk in chunks]
        with ThreadPoolExecutor(min(self.n_jobs, len(chunks))) as pool:
            return list(pool.map(read, chunks))

    def _chunks(self) -> list[tuple[int, int]]:
        """Return the chunks as ranges of the rows at hand, bounded in rows of the whole array."""
        n = self.array.shape[0]
        step = max(CHUNK_ROWS, -(-n // MAX_CHUNKS))
        bounds = np.append(np.arange(0, n, step), n)
        if self.picked is not None:
            bounds = np.searchsorted(self.picked, bounds)
        return [(int(a), int(b)) for a, b in itertools.pairwise(bounds) if a < b]

    def _blocks(self, start: int, stop: int) -> Iterator[Rows]:
        """Yield the rows start..stop in pieces that fit the cache."""
        step = max(64, BLOCK_BYTES // (8 * self.shape[1]))
        if sparse.issparse(self.array):  # small enough to be written out where that is needed
            step = min(CHUNK_ROWS, 8 * step)
        for a in range(start, stop, step):
            b = min(a + step, stop)
            where = slice(a, b) if self.picked is None else self.picked[a:b]
            weights = np.ones(b - a) if self.weights is None else self.weights[where]
            piece = self.array[where]
            if sparse.issparse(piece):
                yield SparseRows(sparse.csr_array(piece), weights)
            else:
                with np.errstate(over="ignore"):  # what float64 cannot hold is infinite, and found as that
                    values = np.ascontiguousarray(piece, dtype=np.float64)
                yield DenseRows(values, weights)


def gather(askers: Sequence[Query[Result]]) -> Query[list[Result]]:
    """Run all askers side by side: each round asks for what every live one of them needs."""
    results: dict[int, Result] = {}
    live: dict[int, Sequence[Request]] = {}

    def advance(i: int, answers: list[Answer] | None) -> None:
        try:
            live[i] = askers[i].send(answers)  # type: ignore[arg-type]
        except StopIteration as stop:
            live.pop(i, None)
            results[i] = stop.value

    for i in range(len(askers)):
        advance(i, None)
    while live:
        asked = list(live.items())
        answers = iter((yield [request for _, requests in asked for request in requests]))
        for i, requests in asked:
            advance(i, [next(answers) for _ in requests])
    return [results[i] for i in range(len(askers))]


def run(rows: RowBlocks, asker: Query[Result]) -> Result:
    """Run one asker to its end, one pass over the rows for each round of its questions."""
    answers: list[Answer] | None = None
    while True:
        try:
            requests = asker.send(answers)  # type: ignore[arg-type]
        except StopIteration as stop:
            result: Result = stop.value
            return result
        answers = rows.pass_over(requests)


class _OneBlasThread:
    """BLAS held to one thread while anyone is inside; the last to leave gives the threads back.

    The number belongs to the process, so that users are counted, except where BLAS runs on OpenMP: there it
    belongs to the thread that set it. threadpoolctl lets only one thread set the number of the process until
    that one lets go of it, so that whoever leaves does.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: list[int] = []
        self._users = 0

    @functools.cached_property
    def _libraries(self) -> list[Any]:
        from threadpoolctl import ThreadpoolController

        found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        return found

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in self._libraries]
            self._users += 1
            for library in self._libraries:
                library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            for library, before in zip(self._libraries, self._before, strict=True):
                if self._users == 0 or getattr(library, "threading_layer", "") == "openmp":
                    library.set_num_threads(before)
                if hasattr(library, "clear_controlling_thread"):  # threadpoolctl 3.8
                    library.clear_controlling_thread()


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread: the threads are spent on blocks of rows."""
    return _ONE_BLAS_THREAD
