"""Generalized maximum margin clustering (GMMC): the semidefinite program with one multiplier per row."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def gmmc(kernel: Array, C: float = 1.0, balance: float = 1.0, *, tol: float = 1e-6) -> Array:
    r"""Return the sides of GMMC for a kernel matrix.

    Over the scores f of the rows, the margin problem is :math:`\min_{f, b} (f - b)^T K_C^{-1} (f - b) + \rho
    (e^T f)^2` with :math:`f_i^2 \ge 1`, where :math:`K_C = K + I / C` (squared slacks). Its relaxation is

    .. math:: \max_\gamma \sum_i \gamma_i \quad \text{with} \quad Q - \operatorname{diag}(\gamma) \succeq 0,
              \gamma \ge 0,

    Q the matrix of the quadratic form with the best b. It is solved by its dual (`least_diagonal`), and the
    sides are the signs of the leading direction. Memory O(n^2): for a few hundred rows.

    Valizadegan, Jin: Generalized maximum margin clustering and unsupervised kernel learning. NIPS, 2007.
    """
    factor = least_diagonal(quadratic_form(kernel, C, balance), tol=tol)
    leading = np.linalg.svd(factor, full_matrices=False)[0][:, 0]
    return np.asarray(leading > 0, dtype=np.int64)


def quadratic_form(kernel: Array, C: float, balance: float) -> Array:
    """Return Q: the inverse of K + I / C with the bias eliminated, plus the penalty of unequal sides."""
    n = len(kernel)
    inverse = np.linalg.inv(kernel + np.eye(n) / C)
    sums = inverse.sum(axis=1)
    return np.asarray(inverse - np.outer(sums, sums) / sums.sum() + balance / n * inverse.trace() / n)


def least_diagonal(Q: Array, *, tol: float = 1e-6, max_sweeps: int = 300) -> Array:
    r"""Minimize :math:`\operatorname{tr}(Q V V^T)` over V whose rows have length at least 1.

    This is :math:`\min \operatorname{tr}(Q U), U \succeq 0, U_{ii} \ge 1` with :math:`U = V V^T`, and more
    columns than :math:`\sqrt{2 n}`, so that local minima are global (Burer, Monteiro: Mathematical
    Programming 103, 2005). One row at a time has a closed form: the minimum of its isotropic quadratic, moved
    out to length 1 (the mixing method of Wang, Chang, Kolter, 2017).
    """
    n = len(Q)
    V = np.random.default_rng(0).standard_normal((n, int(np.ceil(np.sqrt(2 * n))) + 1))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    value = np.inf
    for _ in range(max_sweeps):
        for i in range(n):
            best = V[i] - (Q[i] @ V) / Q[i, i]
            length = float(np.linalg.norm(best))
            V[i] = best if length >= 1 or length == 0 else best / length
        now = float(np.sum(V * (Q @ V)))
        if value - now <= tol * abs(now):
            break
        value = now
    return V


def multipliers(Q: Array, V: Array) -> Array:
    """Return the gamma of the rows at a solution: Q V = diag(gamma) V."""
    return np.asarray(np.sum(V * (Q @ V), axis=1) / np.sum(V * V, axis=1))
