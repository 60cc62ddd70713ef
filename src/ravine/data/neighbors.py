"""Neighbors: the nearest of some points, found exactly, or approximately where there are very many."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray

SAME = 1e-7  # of the largest coordinate: rows closer than this are copies
TIE = 1e-6  # distances that differ by a smaller share are equal: rounding does not choose between them
EXACT_ROWS = 50_000  # above this many points, pynndescent finds neighbors where it is installed


class Nearest:
    """Finds the nearest of some points for any row; a point that is asked for is its own nearest.

    A point is near if fewer than `n` points are nearer (or less than n of their masses, of 1 each at least).
    So of several points at one distance all are near or none, and there may be more than n.

    Up to 50 000 points the search is exact. Above, it is approximate by pynndescent (the extra `neighbors`);
    without that it stays exact, and says that it may take long.
    """

    def __init__(
        self, points: FloatArray, n: int, masses: FloatArray | None = None, metric: str = "euclidean"
    ) -> None:
        self.n, self.n_points = n, len(points)
        self.masses = np.maximum(1.0, np.ones(len(points)) if masses is None else masses)
        self.approximate = len(points) > EXACT_ROWS and _has_pynndescent(len(points))
        self._index: Any
        if self.approximate:
            from pynndescent import NNDescent

            self._index = NNDescent(points, n_neighbors=max(30, 2 * n), random_state=0)
            self._index.prepare()
        else:
            from sklearn.neighbors import NearestNeighbors

            self._index = NearestNeighbors(metric=metric).fit(points)

    def graph(self, rows: FloatArray) -> sparse.csr_array:
        """Return 1 where a column is one of the points near a row, else 0; shape (rows, points)."""
        here, there = self._pairs(rows, np.arange(len(rows)), min(self.n + 1, self.n_points))
        return sparse.csr_array((np.ones(len(here)), (here, there)), shape=(len(rows), self.n_points))

    def _pairs(self, rows: FloatArray, which: IntArray, k: int) -> tuple[IntArray, IntArray]:
        """Return the rows, numbered by `which`, and their near points: of the k nearest, or of more."""
        distance, near = self._query(rows, k)
        mass = self.masses[near]
        farther = np.ones(near.shape, dtype=bool)
        farther[:, 1:] = distance[:, 1:] > (1.0 + TIE) * distance[:, :-1]
        nearer = np.maximum.accumulate(np.where(farther, np.cumsum(mass, axis=1) - mass, 0.0), axis=1)
        inside = (nearer < self.n) & (near >= 0)
        unsure = inside[:, -1] & (k < self.n_points) & (not self.approximate)
        here, place = np.nonzero(inside & ~unsure[:, None])
        pairs = which[here], near[here, place]
        if not unsure.any():
            return pairs
        others = self._pairs(rows[unsure], which[unsure], min(2 * k, self.n_points))
        return np.concatenate([pairs[0], others[0]]), np.concatenate([pairs[1], others[1]])

    def _query(self, rows: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
        """Return distances and numbers of the k nearest points of every row, -1 for one that is missing."""
        if self.approximate:
            near, distance = self._index.query(rows, k=k)
        else:
            distance, near = self._index.kneighbors(rows, k)
        return np.asarray(distance, dtype=np.float64), np.asarray(near, dtype=np.int64)


def _has_pynndescent(n: int) -> bool:
    if importlib.util.find_spec("pynndescent") is not None:
        return True
    warnings.warn(
        f"neighbors among {n} rows are searched exactly, which may take long; pynndescent is faster "
        "(pip install 'ravine[neighbors]'), or give fewer landmarks",
        UserWarning,
        stacklevel=2,
    )
    return False


def copies(points: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the number of the first point of every group of copies, and the group of every point.

    Groups come in an order that does not depend on that of the points.
    """
    unit = SAME * np.abs(points).max(initial=0.0) or 1.0
    _, first, group = np.unique(np.round(points / unit), axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def distinct(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return one point for every group of copies, the weight of the copies, and the places of these points.

    They come in an order that does not depend on that of the points.
    """
    first, group = copies(points)
    return points[first], np.bincount(group, weights).astype(np.float64), first


def nth_nearest(distances: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Return for every row of a matrix of distances to weighted points how far the n-th nearest is.

    The row is one of the points (at distance 0) and does not count itself; a weight of k is k copies.
    """
    order = np.argsort(distances, axis=1, kind="stable")
    mass = np.cumsum(weights[order], axis=1)
    place = np.minimum((mass < n + 1 - 1e-9).sum(axis=1), len(weights) - 1)
    every = np.arange(len(distances))
    return np.asarray(distances[every, order[every, place]])


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the value that half of the weight does not exceed."""
    order = np.argsort(values)
    return float(values[order[np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)]])
