"""Blocks: rows in memory, dense or CSR, with the sums and projections that requests are made of."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data import loops

NO_NUMBERS: IntArray = np.empty(0, dtype=np.int64)
BLOCK_BYTES = 1 << 22  # bytes of a block, which a thread reads at a time: with fewer, threads wait for Python
CHUNK_ROWS = 8192  # least rows of a chunk, the part of the rows that one thread reads
CHECKED_WORDS = 512  # words of a line of a checksum


class Block(Protocol):
    """Consecutive rows in memory, dense or CSR, with their weights."""

    @property
    def weights(self) -> FloatArray:
        """The weight of every row."""

    @property
    def numbers(self) -> IntArray:
        """The number of every row in the whole data; empty if the engine does not provide it."""

    def __len__(self) -> int: ...

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Return directions . (x - pivot) for every row x; shape (directions, rows).

        Each projection has the same bits, whichever other directions are projected in the same call.
        """

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

    def take(self, picked: IntArray) -> Block:
        """Return some of the rows."""

    def dense(self) -> FloatArray:
        """Return the rows as a C-ordered float64 array."""


@dataclass(frozen=True)
class DenseBlock:
    """A C-ordered float64 block."""

    values: FloatArray
    weights: FloatArray
    numbers: IntArray = field(default_factory=lambda: NO_NUMBERS)

    def __len__(self) -> int:
        return len(self.values)

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        out = np.empty((len(directions), len(self)))
        loops.project(self.values, pivot, np.ascontiguousarray(directions), out)
        return out

    def product(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        return np.asarray(directions @ (self.values - pivot).T)

    def group_sums(self, pivot: FloatArray, weights: FloatArray, groups: IntArray, sums: FloatArray) -> None:
        loops.group_sums(self.values, pivot, weights, groups, sums)

    def weighted_sums(self, pivot: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ (self.values - pivot))

    def moments(
        self, pivot: FloatArray, scale: FloatArray, totals: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        loops.moments(self.values, pivot, scale, self.weights, totals, low, high)

    def take(self, picked: IntArray) -> DenseBlock:
        return DenseBlock(
            np.take(self.values, picked, axis=0), self.weights[picked], _some(self.numbers, picked)
        )

    def dense(self) -> FloatArray:
        return self.values


@dataclass(frozen=True)
class SparseBlock:
    """A CSR block. Sums cost time in proportion to the stored entries: the pivot is subtracted at the end."""

    matrix: sparse.csr_array
    weights: FloatArray
    numbers: IntArray = field(default_factory=lambda: NO_NUMBERS)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @functools.cached_property
    def parts(self) -> tuple[FloatArray, npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
        """Stored values, their columns, and the start of each row."""
        data = np.ascontiguousarray(self.matrix.data, dtype=np.float64)
        return data, self.matrix.indices, self.matrix.indptr.astype(np.int64, copy=False)

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        out = np.empty((len(directions), len(self)))
        for c, direction in enumerate(np.ascontiguousarray(directions)):
            loops.project_csr(*self.parts, float(direction @ pivot), direction, out[c])
        return out

    def product(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        return np.asarray((self.matrix @ directions.T).T - (directions @ pivot)[:, None])

    def group_sums(self, pivot: FloatArray, weights: FloatArray, groups: IntArray, sums: FloatArray) -> None:
        loops.group_sums_csr(*self.parts, pivot, weights, groups, sums)

    def weighted_sums(self, pivot: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray((self.matrix.T @ weights.T).T - weights.sum(axis=1)[:, None] * pivot)

    def moments(
        self, pivot: FloatArray, scale: FloatArray, totals: FloatArray, low: FloatArray, high: FloatArray
    ) -> None:
        loops.moments_csr(*self.parts, pivot, scale, self.weights, totals, low, high)

    def take(self, picked: IntArray) -> SparseBlock:
        return SparseBlock(self.matrix[picked], self.weights[picked], _some(self.numbers, picked))

    def dense(self) -> FloatArray:
        return np.ascontiguousarray(self.matrix.toarray(), dtype=np.float64)


def _some(numbers: IntArray, picked: IntArray) -> IntArray:
    return numbers[picked] if len(numbers) else numbers


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


def checksum(values: Any) -> int:
    """Return a checksum of the bits of a block, which depends on their order.

    The sums of the words by line and by column say which value stands where, and cost a quarter of a CRC-32.
    """
    arrays = (values.data, values.indices, values.indptr) if sparse.issparse(values) else (values,)
    found = 0
    for array in arrays:
        if array.size:
            array = array.T if array.flags.f_contiguous else np.ascontiguousarray(array)
            content = array.reshape(-1).view(np.uint8)
            whole = len(content) - len(content) % (8 * CHECKED_WORDS)
            words = content[:whole].view(np.uint64).reshape(-1, CHECKED_WORDS)
            for part in (words.sum(axis=0), words.sum(axis=1), content[whole:]):
                found = zlib.crc32(part.tobytes(), found)
    return found
