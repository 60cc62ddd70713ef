"""An order and signs of the columns that depend on the rows alone.

Reference rows are drawn with these, so that a table whose columns are permuted or negated gets the permuted
or negated references, and so the same result of a test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray

ORIENTATION_DIGITS = 6  # decimal digits of standardized values by which columns are distinguished
ORIENTATION_ROWS = 2048  # rows that are compared, at most: every tested node is oriented


@dataclass(frozen=True)
class Orientation:
    """The columns that vary, in their own order, the sign of each, and the number of all columns."""

    order: IntArray
    signs: FloatArray
    n_columns: int

    def apply(self, rows: FloatArray) -> FloatArray:
        """Return the columns that vary, in their order and with their signs.

        >>> found = Orientation(np.array([2, 0]), np.array([-1.0, 1.0]), 3)
        >>> found.apply(np.array([[1.0, 2.0, 3.0]])).tolist()
        [[-3.0, 1.0]]
        """
        return np.asarray(rows[:, self.order] * self.signs)

    def undo(self, rows: FloatArray) -> FloatArray:
        """Return rows in the order and with the signs of the user's columns; 0 in the constant ones."""
        found = np.zeros((len(rows), self.n_columns))
        found[:, self.order] = rows * self.signs
        return found


def orientation(standardized: FloatArray, varies: IntArray) -> Orientation:
    """Return the orientation of standardized rows, whatever their order, and whether some are copies.

    Columns are ordered by their largest absolute value, then by the next one, and so on. A column is positive
    at the largest absolute value that it has with one sign only. Only columns that are equal up to their sign
    keep the user's order.
    """
    columns = standardized[:ORIENTATION_ROWS, varies].T
    values = np.round(np.clip(columns, -1e9, 1e9) * 10.0**ORIENTATION_DIGITS).astype(np.int64)
    different = [np.unique(column) for column in values]
    sizes = [np.unique(np.abs(column))[::-1].tolist() for column in different]
    order = np.array(sorted(range(len(varies)), key=sizes.__getitem__), dtype=np.int64)
    signs = np.array([_sign(column) for column in different])
    return Orientation(varies[order], signs[order], standardized.shape[1])


def _sign(different: IntArray) -> float:
    """Return the sign of the largest value without its negative among different values; 1 without one."""
    single = np.setdiff1d(different, -different)
    return -1.0 if len(single) and single[np.argmax(np.abs(single))] < 0 else 1.0
