"""What a data check needs to know about the columns and rows of a table, from one pass over blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.sample import UnsignedArray, hashes

KEPT_HASHES = 4096  # smallest hashes of a column: up to so many different values are counted exactly


@dataclass
class ColumnFacts:
    """Counts, range and hashes of every column, and a hash of every row.

    Ranges leave out what is not finite. The hashes of all values and of their places tell whether rows or
    columns are the same: two that differ share a hash with probability 2^-64.
    """

    n_columns: int
    n_rows: int = 0
    row_hashes: list[UnsignedArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        d = self.n_columns
        self.n_missing, self.n_infinite = np.zeros(d, np.int64), np.zeros(d, np.int64)
        self.low, self.high = np.full(d, np.inf), np.full(d, -np.inf)
        self.whole = np.ones(d, dtype=bool)  # whether all values are whole numbers
        self.different = [np.empty(0, dtype=np.uint64)] * d  # the smallest hashes of the values
        self.column_hash = np.zeros(d, dtype=np.uint64)

    def add(self, rows: Any) -> None:
        """Add a block of rows, an array or a CSR matrix."""
        if sparse.issparse(rows):
            self._add_stored(rows)
        else:
            self._add_values(np.asarray(rows, dtype=np.float64))
        self.n_rows += rows.shape[0]

    def _add_hashes(self, cells: Any) -> None:
        """Add the hashes of the values of a block, an array or a CSR matrix."""
        n, d = cells.shape
        self.row_hashes.append(cells @ _factors(0, d))
        self.column_hash += cells.T @ _factors(self.n_rows, n)

    def _add_stored(self, rows: Any) -> None:
        """Add the stored values of a CSR matrix: only counts, range and hashes."""
        values, where, d = rows.data.astype(np.float64), rows.indices, self.n_columns
        self._add_hashes(sparse.csr_array((_cells(values), where, rows.indptr), shape=rows.shape))
        self.n_missing += np.bincount(where[np.isnan(values)], minlength=d)
        self.n_infinite += np.bincount(where[np.isinf(values)], minlength=d)
        finite = np.where(np.isfinite(values), values, 0.0)
        bounded = sparse.csr_array((finite, where, rows.indptr), shape=rows.shape)
        self.low = np.minimum(self.low, bounded.min(axis=0).toarray().ravel())
        self.high = np.maximum(self.high, bounded.max(axis=0).toarray().ravel())

    def _add_values(self, values: FloatArray) -> None:
        cells, finite = _cells(np.ascontiguousarray(values)), np.isfinite(values)
        self._add_hashes(cells)
        self.n_missing += np.isnan(values).sum(axis=0)
        self.n_infinite += np.isinf(values).sum(axis=0)
        self.low = np.minimum(self.low, np.where(finite, values, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(finite, values, -np.inf).max(axis=0))
        self.whole &= (finite & (np.floor(values) == values)).all(axis=0)
        for j, kept in enumerate(self.different):
            # nobody asks how many different values other columns have
            if self.whole[j] or len(kept) <= 2:
                self.different[j] = np.union1d(kept, cells[finite[:, j], j])[:KEPT_HASHES]

    def n_different(self, column: int) -> float:
        """Return how many different values a column has, estimated beyond KEPT_HASHES.

        It is at least 3 for columns of more than two values that are not all whole numbers, and 0 for those
        of a sparse matrix.
        """
        kept = self.different[column]
        if len(kept) < KEPT_HASHES:
            return float(len(kept))
        return (KEPT_HASHES - 1) / (float(kept[-1]) / 2.0**64)

    def n_duplicate_rows(self) -> int:
        """Return how many rows repeat an earlier one; sorting takes less memory than `np.unique`."""
        ordered = np.concatenate([np.empty(0, dtype=np.uint64), *self.row_hashes])
        ordered.sort()
        return int(np.count_nonzero(ordered[1:] == ordered[:-1]))


def _cells(values: FloatArray) -> UnsignedArray:
    """Return a hash of every value; 0 for zero, and the same for all NaN."""
    bits = (np.where(np.isnan(values), np.nan, values) + 0.0).view(np.int64)
    return np.where(bits == 0, np.uint64(0), hashes(bits, 0))


def _factors(first: int, n: int) -> UnsignedArray:
    """Return odd multipliers by place, so that the sum of values times these depends on their places."""
    return hashes(np.arange(first, first + n), 1) | np.uint64(1)
