"""Neighbours: the nearest of some points, found exactly, or approximately where there are very many."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import RowBlocks
from ravine.data.frame import Frame

SAME = 1e-9  # of the largest coordinate: rows closer than this are copies
EXACT_ROWS = 50_000  # above this many points, pynndescent finds neighbours where it is installed


class Nearest:
    """Finds the `n` nearest of the points for any row; a point that is asked for is its own nearest.

    Up to 50 000 points the search is exact. Above, it is approximate by pynndescent (the extra `neighbours`);
    without that it stays exact, and says that it may take long.
    """

    def __init__(self, points: FloatArray, n: int) -> None:
        self.n = min(n, len(points))
        self.approximate = len(points) > EXACT_ROWS and _has_pynndescent(len(points))
        self._index: Any
        if self.approximate:
            from pynndescent import NNDescent

            self._index = NNDescent(points, n_neighbors=max(30, 2 * self.n), random_state=0)
            self._index.prepare()
        else:
            from sklearn.neighbors import NearestNeighbors

            self._index = NearestNeighbors(n_neighbors=self.n).fit(points)

    def __call__(self, rows: FloatArray) -> IntArray:
        """Return the numbers of the nearest points of every row; shape (rows, n)."""
        if not self.approximate:
            return np.asarray(self._index.kneighbors(rows, return_distance=False))
        near = self._index.query(rows, k=self.n)[0]
        return np.asarray(np.where(near < 0, near[:, :1], near))  # -1 where fewer were found

    def graph(self, points: FloatArray) -> sparse.csr_array:
        """Return 1 where a column is one of the nearest of the row's point, for the points themselves."""
        near = self(points)
        starts = np.arange(0, near.size + 1, near.shape[1])
        shape = (len(points), len(points))
        return sparse.csr_array((np.ones(near.size), near.ravel(), starts), shape=shape)


def _has_pynndescent(n: int) -> bool:
    if importlib.util.find_spec("pynndescent") is not None:
        return True
    warnings.warn(
        f"neighbours among {n} rows are searched exactly, which may take long; pynndescent is faster "
        "(pip install 'ravine[neighbours]'), or give fewer landmarks",
        UserWarning,
        stacklevel=2,
    )
    return False


def distinct(rows: RowBlocks, frame: Frame) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return one row for every group of copies: as it is, in the frame, and the weight of the copies.

    They come in an order that does not depend on that of the rows. All are held in memory.
    """
    raw = rows.map(lambda block: block.dense())
    points = (raw - frame.mean) * frame.inverse_scale
    unit = SAME * np.abs(points).max(initial=0.0) or 1.0
    _, first, group = np.unique(np.round(points / unit), axis=0, return_index=True, return_inverse=True)
    weights = rows.map(lambda block: block.weights)
    return raw[first], points[first], np.bincount(group.ravel(), weights).astype(np.float64)


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
