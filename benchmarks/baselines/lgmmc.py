"""Label-generating maximum margin clustering (LG-MMC)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.squared_hinge import squared_hinge

Array = np.ndarray[Any, Any]


def lgmmc(X: Array, C: float = 1.0, balance: float = 0.3, *, max_iter: int = 10, tol: float = 1e-3) -> Array:
    r"""Return the sides of LG-MMC with a linear kernel; map the rows first for another one.

    .. math:: \min_{\mu \in \Delta} \max_{\alpha \ge 0} \; e^T \alpha - \tfrac12 \alpha^T \Big( \sum_t \mu_t
              K \circ y_t y_t^T + \tfrac1C I \Big) \alpha

    over labelings :math:`y_t` whose sum is at most `balance` n in size: the convex hull of the labelings
    takes the place of one of them. They are generated one by one, the most violated first (`worst_labels`),
    and mixed by multiple kernel learning. The sides are the signs of the leading direction of the mixture.

    Li, Tsang, Kwok, Zhou: Tighter and convex maximum margin clustering. AISTATS, 2009.
    """
    rows = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    labelings = [worst_labels(rows, np.full(len(X), 1 / len(X)), balance)]
    value = np.inf
    for _ in range(max_iter):
        shares, alpha, now = mix(rows, labelings, C)
        if value - now <= tol * abs(now):
            break
        value = now
        new = worst_labels(rows, alpha, balance)
        if any((new == old).all() or (new == -old).all() for old in labelings):
            break
        labelings.append(new)
    shares, _, _ = mix(rows, labelings, C)
    leading = np.linalg.svd(np.array(labelings).T * np.sqrt(shares), full_matrices=False)[0][:, 0]
    return np.asarray(leading > 0, dtype=np.int64)


def worst_labels(rows: Array, alpha: Array, balance: float) -> Array:
    """Return the labels y that make the largest entry of | sum alpha_i y_i x_i | as large as it can be.

    For one column the best labels are the signs of alpha_i x_ij, moved as little as possible until the
    balance holds; the paper tries every column.
    """
    n = len(rows)
    fewest = int(np.ceil((1 - balance) / 2 * n))
    best, found = -np.inf, np.ones(n)
    for column in rows.T:
        pull = alpha * column
        order = np.argsort(pull, kind="stable")
        negative = int(np.clip((pull < 0).sum(), fewest, n - fewest))
        labels = np.ones(n)
        labels[order[:negative]] = -1
        value = float(labels @ pull)
        if value > best:
            best, found = value, labels
    return found


def mix(rows: Array, labelings: list[Array], C: float, *, rounds: int = 6) -> tuple[Array, Array, float]:
    """Return the shares of the labelings, alpha and the objective of multiple kernel learning.

    For fixed shares this is a machine with the squared hinge on the joined rows; then every share is set in
    proportion to the length of its part of the normal (Xu, Jin, Yang, King, Lyu, ICML 2010).
    """
    shares = np.full(len(labelings), 1 / len(labelings))
    ones = np.ones(len(rows))
    for _ in range(rounds):
        joined = np.hstack([np.sqrt(m) * y[:, None] * rows for m, y in zip(shares, labelings, strict=True)])
        normal = squared_hinge(joined, ones, C * ones, np.eye(joined.shape[1]))
        slack = np.maximum(0, 1 - joined @ normal)
        lengths = np.linalg.norm(normal.reshape(len(labelings), -1), axis=1) * np.sqrt(shares)
        value = float(normal @ normal / 2 + C * (slack**2).sum() / 2)
        if len(labelings) == 1 or lengths.sum() == 0:
            break
        shares = lengths / lengths.sum()
    return shares, C * slack, value
