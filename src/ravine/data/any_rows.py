"""Rows of any kind that a kernel takes: arrays, sparse matrices, data frames, lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray, check_standardize, is_block_source


def length(rows: Any) -> int:
    """Return the number of rows of an array, a matrix, a data frame or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take(rows: Any, where: slice | IntArray) -> Any:
    """Return some of the rows of an array, a matrix, a data frame or a list."""
    return rows.iloc[where] if hasattr(rows, "iloc") else rows[where]


def weights_of(weights: FloatArray | None, rows: IntArray) -> FloatArray:
    """Return the weights of some rows; None means that all weights are 1."""
    return np.ones(len(rows)) if weights is None else weights[rows]


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame; dask is not imported for it."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def scales_columns(standardize: Any, rows: Any) -> bool:
    """Return whether columns are scaled to unit variance; with "auto", those of a sparse matrix are not.

    >>> scales_columns("auto", np.eye(2)), scales_columns("auto", sparse.eye_array(2))
    (True, False)
    """
    found = check_standardize(standardize)
    if found != "auto":
        return bool(found)
    return not (sparse.issparse(rows) or (is_block_source(rows) and getattr(rows, "is_sparse", False)))
