"""Nearest neighbors: exact, or approximate for very many points; ties are treated alike."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.features.neighbor_loops import near_pairs as pairs_in

SAME = 1e-7  # share of the largest coordinate: points that differ by less are copies of each other
TIE = 1e-6  # relative difference below which distances are equal, so that rounding decides nothing
PART_CELLS = 1 << 17  # most inner products that are computed at a time: 1 MiB
DISTANCES = 64  # MiB of distances at a time; scikit-learn's own limit is 1024
EXACT_ROWS = 50_000  # most points for an exact search; above, pynndescent is used if it is installed


class Nearest:
    """Finds the nearest of some points for any row. The nearest one of a row that is a point is itself.

    A point is near a row if the points that are strictly nearer have a total mass below `n` (masses are at
    least 1). So points at equal distances are all near or none is, and there may be more than n. Points and
    rows are dense or CSR.

    The search is exact for up to 50 000 points. Above, it is approximate by pynndescent (the extra
    `neighbors`); without that package it is exact, with a warning that it may take long.
    """

    def __init__(
        self, points: Any, n: int, masses: FloatArray | None = None, metric: str = "euclidean"
    ) -> None:
        self.n, self.n_points = n, int(points.shape[0])
        self.masses = np.maximum(1.0, np.ones(self.n_points) if masses is None else masses)
        self.approximate = self.n_points > EXACT_ROWS and _has_pynndescent(self.n_points)
        self._index: Any
        if self.approximate:
            from pynndescent import NNDescent

            self._index = NNDescent(points, n_neighbors=max(30, 2 * n), random_state=0)
            self._index.prepare()
        else:
            from sklearn.neighbors import NearestNeighbors

            self._index = NearestNeighbors(metric=metric).fit(points)

    def graph(self, rows: Any) -> sparse.csr_array:
        """Return 1 where a column is one of the points near a row, else 0; shape (rows, points)."""
        n = int(rows.shape[0])
        here, there = self._pairs(rows, np.arange(n), min(self.n + 1, self.n_points))
        return sparse.csr_array((np.ones(len(here)), (here, there)), shape=(n, self.n_points))

    def _pairs(self, rows: Any, which: IntArray, k: int) -> tuple[IntArray, IntArray]:
        """Return pairs of a row (numbered by `which`) and a point near it.

        The k nearest points are queried. If the last of them is near, there may be more beyond: these rows
        are queried again with twice as many.
        """
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

    def _query(self, rows: Any, k: int) -> tuple[FloatArray, IntArray]:
        """Return distances and numbers of the k nearest points of every row; -1 for a missing one."""
        if self.approximate:
            near, distance = self._index.query(rows, k=k)
        else:
            from sklearn import config_context

            with config_context(working_memory=DISTANCES):
                distance, near = self._index.kneighbors(rows, k)
        return np.asarray(distance, dtype=np.float64), np.asarray(near, dtype=np.int64)


def near_pairs(
    points: FloatArray | sparse.csr_array, inner: FloatArray | None, masses: FloatArray, n: int
) -> tuple[IntArray, IntArray]:
    """Return all pairs (i, j), i != j, of points such that j is near i, as `Nearest` defines it.

    `inner` has the inner products of all points; those of dense ones are computed here, in parts that fit
    into a processor's cache. Sparse points are given before they are centered, so that they are never
    written out: their differences are the same.
    """
    least = np.maximum(1.0, masses)
    if inner is not None:
        ordered = sparse.csr_array(points).sorted_indices()
        csr = ordered.data, ordered.indices.astype(np.int32), ordered.indptr.astype(np.int64)
        squares = np.ascontiguousarray(np.diag(inner))
        here, there = pairs_in(inner, 0, squares, None, csr, least, n, SAME, TIE)
        return here, there
    points = np.ascontiguousarray(points)
    squares = np.einsum("ij,ij->i", points, points)
    step = max(1, PART_CELLS // len(masses))
    parts = [
        pairs_in(points[first : first + step] @ points.T, first, squares, points, None, least, n, SAME, TIE)
        for first in range(0, len(masses), step)
    ]
    return np.concatenate([here for here, _ in parts]), np.concatenate([there for _, there in parts])


def _has_pynndescent(n: int) -> bool:
    if importlib.util.find_spec("pynndescent") is not None:
        return True
    warnings.warn(
        f"the exact search for the neighbors of {n} rows may take long; install pynndescent "
        "(pip install 'ravine[neighbors]'), or use fewer landmarks",
        UserWarning,
        stacklevel=2,
    )
    return False


def unit_rows(rows: Any) -> Any:
    """Return rows, dense or CSR, divided by their lengths; rows of zeros stay as they are.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if not sparse.issparse(rows):
        largest = np.abs(rows).max(axis=1, initial=0.0)
        scaled = rows / np.where(largest > 0, largest, 1.0)[:, None]  # so that no square leaves the range
        length = np.linalg.norm(scaled, axis=1)
        return scaled / np.where(length > 0, length, 1.0)[:, None]
    largest = np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64).ravel()
    scaled = sparse.csr_array(sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ rows)
    length = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ scaled)


def copies(points: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the number of the first point of every group of copies, and the group of every point.

    The order of the groups does not depend on that of the points.
    """
    unit = SAME * np.abs(points).max(initial=0.0) or 1.0
    _, first, group = np.unique(np.round(points / unit), axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def distinct(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return one point per group of copies, the total weights of the groups, and the places of these points.

    The order of the groups does not depend on that of the points.
    """
    first, group = copies(points)
    return points[first], np.bincount(group, weights).astype(np.float64), first


def nth_nearest(distances: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Return the distance to the n-th nearest point, for every row of a matrix of distances.

    The row is one of the weighted points (at distance 0) and does not count; a weight of k means k copies.
    """
    order = np.argsort(distances, axis=1, kind="stable")
    mass = np.cumsum(weights[order], axis=1)
    place = np.minimum((mass < n + 1 - 1e-9).sum(axis=1), len(weights) - 1)
    every = np.arange(len(distances))
    return np.asarray(distances[every, order[every, place]])


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the smallest value such that at least half of the weight does not exceed it."""
    order = np.argsort(values)
    return float(values[order[np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)]])
