"""Maximum margin clustering (MMC) as a semidefinite program, by conditional gradients: small sets only."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def mmc(kernel: Array, C: float = 1.0, balance: float = 0.1, *, max_iter: int = 40) -> Array:
    r"""Return the sides of MMC for a kernel matrix of at most a hundred rows or so.

    .. math:: \min_M \max_{0 \le \alpha \le C} 2 e^T \alpha - \alpha^T (K \circ M) \alpha \quad \text{with}
              \quad M \succeq 0, \operatorname{diag} M = e, -l e \le M e \le l e

    is convex in M, the relaxation of :math:`y y^T`. Conditional gradients (Jaggi, ICML 2013) replace the
    interior-point solver of the paper: the best M of a linear function with a unit diagonal is found by
    `largest_trace`. The balance l = `balance` n is a squared penalty here. As in the paper there is no bias,
    so the kernel should be centered. The sides are the signs of the leading eigenvector of M.

    Xu, Neufeld, Larson, Schuurmans: Maximum margin clustering. NIPS, 2004.
    """
    M = relaxed(kernel, C, balance, max_iter)
    return np.asarray(np.linalg.eigh(M)[1][:, -1] > 0, dtype=np.int64)


def relaxed(kernel: Array, C: float, balance: float, max_iter: int) -> Array:
    """Return the M of the relaxation."""
    n = len(kernel)
    M = np.eye(n)
    weight = float(np.abs(kernel).mean()) * C**2
    for step in range(max_iter):
        alpha = machine(kernel * M, C)
        sums = M.sum(axis=1)
        excess = np.sign(sums) * np.maximum(np.abs(sums) - balance * n, 0)
        wanted = np.outer(alpha, alpha) * kernel - weight * (excess[:, None] + excess) / 2
        V = largest_trace(wanted)
        M += 2 / (step + 3) * (V @ V.T - M)
    return M


def machine(Q: Array, C: float, *, max_sweeps: int = 60) -> Array:
    """Return the alpha in [0, C] that maximizes 2 sum(alpha) - alpha' Q alpha, one at a time."""
    alpha = np.zeros(len(Q))
    diagonal = np.maximum(np.diag(Q), 1e-12)
    for _ in range(max_sweeps):
        before = alpha.copy()
        for i in range(len(Q)):
            alpha[i] = np.clip(alpha[i] + (1 - Q[i] @ alpha) / diagonal[i], 0, C)
        if np.abs(alpha - before).max() < 1e-4 * C:
            break
    return alpha


def margin_value(Q: Array, alpha: Array) -> float:
    """Return 2 sum(alpha) - alpha' Q alpha."""
    return float(2 * alpha.sum() - alpha @ Q @ alpha)


def largest_trace(W: Array, *, sweeps: int = 15) -> Array:
    """Return V with rows of unit length for which tr(W V V') is about as large as it can be."""
    n = len(W)
    V = np.random.default_rng(0).standard_normal((n, int(np.ceil(np.sqrt(2 * n))) + 1))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    off = W - np.diag(np.diag(W))
    for _ in range(sweeps):
        for i in range(n):
            pull = off[i] @ V
            length = float(np.linalg.norm(pull))
            if length > 0:
                V[i] = pull / length
    return V
