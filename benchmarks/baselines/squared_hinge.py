"""Linear machines with the squared hinge, by Newton's method in the primal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve

Array = np.ndarray[Any, Any]


def squared_hinge(rows: Array, sides: Array, costs: Array, penalty: Array, *, max_iter: int = 50) -> Array:
    r"""Return the w that minimizes a quadratic penalty plus squared hinge losses.

    .. math:: \tfrac12 w^T P w + \tfrac12 \sum_i c_i \max(0, 1 - s_i w^T x_i)^2

    Each step solves the linear system of the rows within the margin; when these stay, the solution
    is exact. Chapelle: Training a support vector machine in the primal. Neural Computation 19, 2007.
    """
    inside = np.ones(len(rows), dtype=bool)
    for _ in range(max_iter):
        few, weighted = rows[inside], (costs * sides)[inside]
        system = penalty + (few.T * costs[inside]) @ few
        normal = _solve(system, few.T @ weighted)
        now = sides * (rows @ normal) < 1
        if (now == inside).all():
            break
        inside = now
    return np.asarray(normal)


def _solve(system: Array, right: Array) -> Array:
    """Solve a positive system; one without rows inside the margin may be singular, and has its least norm."""
    try:
        return np.asarray(solve(system, right, assume_a="pos"))
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])


def with_intercept(X: Array, ridge: float) -> tuple[Array, Array]:
    """Return the rows with a column of ones, and the penalty that leaves its coefficient free."""
    penalty = ridge * np.eye(X.shape[1] + 1)
    penalty[-1, -1] = 0.0
    return np.column_stack([X, np.ones(len(X))]), penalty
