"""PDDP and dePDDP in their plainest form: every cluster is split along its first principal component."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.divisive import divide

Array = np.ndarray[Any, Any]

GRID = 1024  # points at which the density along the component is looked at


def first_component(X: Array) -> Array:
    """Return the centered rows along their first principal component."""
    centered = X - X.mean(axis=0)
    return np.asarray(centered @ np.linalg.eigh(centered.T @ centered)[1][:, -1])


def pddp(X: Array, n_clusters: int = 2) -> Array:
    """Split the cluster with the greatest scatter at its mean along the first component.

    Boley: Principal direction divisive partitioning. Data Mining and Knowledge Discovery 2(4), 1998.
    """
    return divide(X, n_clusters, lambda rows: first_component(rows) > 0, scatter)


def depddp(X: Array, n_clusters: int = 2) -> Array:
    r"""Split at the lowest local minimum of the density along the first component.

    The density has a Gaussian kernel with :math:`h = (4 / 3)^{1/5} \sigma n^{-1/5}`. The cluster with the
    lowest such minimum is split first; where none has one, nothing is split.

    Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
    43(10), 2010.
    """
    return divide(X, n_clusters, _at_lowest_minimum, lambda rows: -_lowest_minimum(first_component(rows))[1])


def scatter(X: Array) -> float:
    """Return the sum of squared distances from the mean."""
    return float(((X - X.mean(axis=0)) ** 2).sum())


def _at_lowest_minimum(X: Array) -> Array | None:
    along = first_component(X)
    threshold, density = _lowest_minimum(along)
    return None if np.isinf(density) else along > threshold


def _lowest_minimum(along: Array) -> tuple[float, float]:
    """Return the place and the density of the lowest local minimum; the density is inf without one."""
    spread = float(along.std())
    if spread == 0:
        return 0.0, np.inf
    bandwidth = (4 / 3) ** 0.2 * spread * len(along) ** -0.2
    grid = np.linspace(along.min(), along.max(), GRID)
    density = np.zeros(GRID)
    for part in np.array_split(along, -(-len(along) // 2000)):  # so that memory stays small
        density += np.exp(-(((grid[:, None] - part) / bandwidth) ** 2) / 2).sum(axis=1)
    density /= len(along) * bandwidth * np.sqrt(2 * np.pi)
    inner = np.flatnonzero((density[1:-1] < density[:-2]) & (density[1:-1] <= density[2:])) + 1
    if not len(inner):
        return 0.0, np.inf
    best = inner[np.argmin(density[inner])]
    return float(grid[best]), float(density[best])
