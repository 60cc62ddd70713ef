"""Several methods over several sets: mean rank, regret, and the critical difference of Nemenyi's test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def mean_ranks(scores: Array) -> Array:
    """Return the mean rank of each method, 1 the best; equal scores share their ranks.

    `scores` has one row per set and one column per method, the higher the better. A score that is missing
    (nan) is worse than any other.
    """
    from scipy.stats import rankdata

    filled = np.where(np.isnan(scores), -np.inf, scores)
    return np.asarray(rankdata(-np.round(filled, 6), axis=1).mean(axis=0))


def regret(scores: Array) -> Array:
    """Return by how much each method is below the best one on each set; a missing score counts as 0."""
    filled = np.nan_to_num(scores, nan=0.0)
    return np.asarray(filled.max(axis=1, keepdims=True) - filled)


def critical_difference(n_sets: int, n_methods: int, level: float = 0.05) -> float:
    r"""Return the difference of mean ranks above which two methods differ at `level`.

    .. math:: CD = q_\alpha \sqrt{k (k + 1) / (6 N)}

    with q the quantile of the studentized range for k methods and infinitely many degrees of freedom, over
    the square root of 2. Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7,
    2006.
    """
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def cliques(ranks: Array, difference: float) -> list[tuple[float, float]]:
    """Return the widest ranges of mean ranks, best first, within which no two methods differ."""
    ordered = np.sort(ranks)
    found: list[tuple[float, float]] = []
    for first in ordered:
        last = ordered[ordered <= first + difference].max()
        if last > first and (not found or last > found[-1][1]):
            found.append((float(first), float(last)))
    return found


def plot_critical_differences(names: list[str], scores: Array, path: Path) -> None:
    """Draw the mean ranks on a line; a bar joins methods whose ranks do not differ significantly."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ranks = mean_ranks(scores)
    difference = critical_difference(*scores.shape)
    bars = cliques(ranks, difference)
    half = -(-len(names) // 2)
    top = 0.6 + 0.25 * len(bars)
    figure, ax = plt.subplots(figsize=(10, 1.2 + 0.28 * half + 0.2 * len(bars)), layout="constrained")
    low, high = 1.0, float(len(names))
    ax.plot([low, high], [0, 0], color="black")
    for tick in range(1, len(names) + 1):
        ax.plot([tick, tick], [0, 0.15], color="black")
        ax.text(tick, 0.25, str(tick), ha="center", fontsize=8)
    for level, (first, last) in enumerate(bars):
        ax.plot([first - 0.05, last + 0.05], [-0.3 - 0.25 * level] * 2, color="tab:red", linewidth=3)
    for place, index in enumerate(np.argsort(ranks, kind="stable")):
        left = place < half
        depth = -top - 0.45 * (place if left else len(names) - 1 - place)
        edge = low - 0.5 if left else high + 0.5
        ax.plot([ranks[index], ranks[index], edge], [0, depth, depth], color="grey", linewidth=0.7)
        text = f"{names[index]} {ranks[index]:.2f}"
        ax.text(edge, depth, text, ha="right" if left else "left", va="center", fontsize=8)
    ax.plot([low, low + difference], [0.9, 0.9], color="black", linewidth=2)
    ax.text(low + difference / 2, 1.0, f"critical difference {difference:.2f}", ha="center", fontsize=8)
    ax.set(xlim=(low - 4, high + 4), xticks=[], yticks=[])
    ax.axis("off")
    figure.savefig(path, dpi=110)
