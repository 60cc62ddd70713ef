"""Rows of any kind that a kernel takes: arrays, sparse matrices, data frames, lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray


def length(rows: Any) -> int:
    """Return the number of rows of an array, a matrix, a data frame or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take(rows: Any, where: slice | IntArray) -> Any:
    """Return some of the rows of an array, a matrix, a data frame or a list."""
    return rows.iloc[where] if hasattr(rows, "iloc") else rows[where]


def weights_of(weights: FloatArray | None, rows: IntArray) -> FloatArray:
    """Return the weights of some rows; None means that all weights are 1."""
    return np.ones(len(rows)) if weights is None else weights[rows]
