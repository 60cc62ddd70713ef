"""An order and signs of the columns that depend on the rows alone.

Reference rows are drawn with these, so that a table whose columns are permuted or negated gets the permuted
or negated references, and so the same result of a test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray

ORIENTATION_DIGITS = 6  # decimal digits of standardized values by which columns are distinguished
CLEARLY = 1e-3  # a standardized value below this is near the mean: its sign may be rounding


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
    """Return the orientation of standardized rows.

    A column is positive in the first row where it is clearly not 0, and columns are ordered by their sizes in
    the first row where these differ. Only columns that are equal up to their sign keep the user's order.
    """
    columns = standardized[:, varies].T
    sizes = np.round(np.minimum(np.abs(columns), 1e9) * 10.0**ORIENTATION_DIGITS).astype(">i8")
    order = np.array(sorted(range(len(varies)), key=lambda j: sizes[j].tobytes()), dtype=np.int64)
    first = np.argmax(np.abs(columns) > CLEARLY, axis=1)
    signs = np.where(columns[np.arange(len(varies)), first] < 0.0, -1.0, 1.0)
    return Orientation(varies[order], signs[order], standardized.shape[1])
