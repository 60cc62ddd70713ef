"""What a data check needs to know about the columns and rows of a table, from one pass over blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.sample import UnsignedArray, hashes

KEPT_HASHES = 4096  # smallest hashes of a column: up to so many different values are counted exactly
COLUMN_SEED, ROW_SEED = 1, 2  # of the multipliers that make a hash of a row or a column out of its values


@dataclass
class ColumnFacts:
    """Counts, range, moments and hashes of every column, and a hash of every row.

    Moments are about `center` and in units of `unit`, both from the first block, and leave out what is not
    finite. The hashes of all values and of their places tell whether rows or columns are the same: two that
    differ share a hash with probability 2^-64.
    """

    n_columns: int
    n_rows: int = 0
    row_hashes: list[UnsignedArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        d = self.n_columns
        self.n_missing, self.n_infinite = np.zeros(d, np.int64), np.zeros(d, np.int64)
        self.low, self.high = np.full(d, np.inf), np.full(d, -np.inf)
        self.moments = np.zeros((3, d))  # sums of z, z^2, z^3
        self.center, self.unit = np.zeros(d), np.zeros(d)
        self.whole = np.ones(d, dtype=bool)  # whether all values are whole numbers
        self.different = [np.empty(0, dtype=np.uint64)] * d  # the smallest hashes of the values
        self.few: list[FloatArray | None] = [np.empty(0)] * d  # all values if there are one or two
        self.column_hash = np.zeros(d, dtype=np.uint64)

    def add(self, rows: Any) -> None:
        """Add a block of rows, an array or a CSR matrix."""
        if sparse.issparse(rows):
            self._add_hashes(*_sparse_hashes(rows, self.n_rows))
            finite = np.where(np.isfinite(rows.data), rows.data, 0.0)
            self.n_missing += np.bincount(rows.indices[np.isnan(rows.data)], minlength=self.n_columns)
            self.n_infinite += np.bincount(rows.indices[np.isinf(rows.data)], minlength=self.n_columns)
            bounded = sparse.csr_array((finite, rows.indices, rows.indptr), shape=rows.shape)
            self.low = np.minimum(self.low, bounded.min(axis=0).toarray().ravel())
            self.high = np.maximum(self.high, bounded.max(axis=0).toarray().ravel())
        else:
            values = np.asarray(rows, dtype=np.float64)
            self._add_hashes(*_dense_hashes(values, self.n_rows))
            self._add_values(values)
        self.n_rows += rows.shape[0]

    def _add_hashes(self, of_rows: UnsignedArray, of_columns: UnsignedArray) -> None:
        self.row_hashes.append(of_rows)
        self.column_hash += of_columns

    def _add_values(self, values: FloatArray) -> None:
        finite = np.isfinite(values)
        missing = np.isnan(values)
        self.n_missing += missing.sum(axis=0)
        self.n_infinite += (~finite & ~missing).sum(axis=0)
        self.low = np.minimum(self.low, np.where(finite, values, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(finite, values, -np.inf).max(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n_rows == 0:
                self.center = np.where(np.isfinite(self.low), self.low / 2 + self.high / 2, 0.0)
                spread = self.high / 2 - self.low / 2
                self.unit = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
            z = np.where(finite, (values - self.center) / self.unit, 0.0)
            for k in range(3):
                self.moments[k] += (z ** (k + 1)).sum(axis=0)
            self.whole &= (finite & (np.floor(values) == values)).all(axis=0)
        for j, few in enumerate(self.few):
            if few is not None and not np.isin(values[:, j], few).all():
                few = np.union1d(few, values[finite[:, j], j])
                self.few[j] = few if len(few) <= 2 else None
        for j in np.flatnonzero(self.whole).tolist():
            seen = np.concatenate([self.different[j], np.unique(_cells(values[:, j]))])
            self.different[j] = np.unique(seen)[:KEPT_HASHES]

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Whether each column has two different values."""
        return self.low < self.high

    def n_different(self, column: int) -> float:
        """Return how many different values a column of whole numbers has, estimated beyond KEPT_HASHES."""
        kept = self.different[column]
        if len(kept) < KEPT_HASHES:
            return float(len(kept))
        return (KEPT_HASHES - 1) / (float(kept[-1]) / 2.0**64)

    def variances(self) -> FloatArray:
        """Return the variance of every column in its own unit squared."""
        mean, square = self.moments[:2] / np.maximum(self.n_present, 1)
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(square - mean**2, 0.0) * self.unit**2)

    def skewness(self) -> FloatArray:
        """Return the skewness of every column, the third standardized moment; 0 where it is constant."""
        with np.errstate(all="ignore"):
            mean, square, cube = self.moments / np.maximum(self.n_present, 1)
            third = cube - 3 * mean * square + 2 * mean**3
            found = third / np.maximum(square - mean**2, 0.0) ** 1.5
        return np.where(np.isnan(found), 0.0, found)

    @property
    def n_present(self) -> IntArray:
        """The number of finite values of every column."""
        return np.asarray(self.n_rows - self.n_missing - self.n_infinite)

    def n_duplicate_rows(self) -> int:
        """Return how many rows repeat an earlier one; sorting takes less memory than `np.unique`."""
        ordered = np.concatenate([np.empty(0, dtype=np.uint64), *self.row_hashes])
        ordered.sort()
        return int(np.count_nonzero(ordered[1:] == ordered[:-1]))


def _cells(values: FloatArray) -> UnsignedArray:
    """Return a hash of every value; 0 for zero, and the same for all NaN."""
    bits = (np.where(np.isnan(values), np.nan, values) + 0.0).view(np.int64)
    return np.where(bits == 0, np.uint64(0), hashes(bits, 0))


def _dense_hashes(values: FloatArray, first: int) -> tuple[UnsignedArray, UnsignedArray]:
    n, d = values.shape
    cells = _cells(np.ascontiguousarray(values))
    return cells @ _factors(0, d, COLUMN_SEED), _factors(first, n, ROW_SEED) @ cells


def _sparse_hashes(rows: Any, first: int) -> tuple[UnsignedArray, UnsignedArray]:
    n, d = rows.shape
    cells = sparse.csr_array((_cells(rows.data.astype(np.float64)), rows.indices, rows.indptr), shape=(n, d))
    return cells @ _factors(0, d, COLUMN_SEED), cells.T @ _factors(first, n, ROW_SEED)


def _factors(first: int, n: int, seed: int) -> UnsignedArray:
    """Return odd multipliers by place, so that the sum of values times these depends on their places."""
    return hashes(np.arange(first, first + n), seed) | np.uint64(1)
