"""Spectral connectivity of points in several dimensions: the dense eigenproblem over micro-clusters.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from ravine._validate import FloatArray
from ravine.index.connectivity_loops import contract_outliers

RESOLVED = 1e-9  # share of the largest possible eigenvalue below which the second eigenvector is rounding
SMALLEST = 1e-200  # smaller eigenvalues are replaced by this, so that their inverse is finite
ALPHA = 0.1  # shape of the near-Laplace kernel (Equation 30; value of Section 7.1)


@dataclass(frozen=True)
class GraphValue:
    """The connectivity of projected points.

    `value` is log theta as in `ConnectivityIndex`, and `slopes` (points, l) its derivatives by every
    coordinate of every point. `mode` is the second eigenvector in the scale of an indicator: its sign is the
    side of each point. `volume` is the sum of the degrees, or of the masses without normalization.
    """

    value: float
    eigenvalue: float
    slopes: FloatArray
    mode: FloatArray
    volume: float
    normalized: bool


@dataclass(frozen=True)
class GraphConnectivity:
    """lambda_2 of the (normalized) Laplacian of weighted points in l dimensions, O(m^3) for m points.

    The similarity is the near-Laplace kernel (x / alpha + 1)^alpha exp(-x) of the distance x / sigma.
    """

    sigma: float
    beta: float
    normalized: bool = True

    def evaluate(self, points: FloatArray, mass: FloatArray) -> GraphValue:
        """Return the value with its derivatives by every coordinate of every (centered) point."""
        std = np.sqrt(mass @ points**2 / mass.sum())
        moved, by_point = contract_outliers(points, self.beta * std, self.sigma)
        x = cdist(moved, moved) / self.sigma
        k = (x / ALPHA + 1.0) ** ALPHA * np.exp(-x)
        volume, found, mode = self._second_mode(moved, k, mass)
        eigenvalue = max(found, SMALLEST)
        value, by_lambda = np.log(eigenvalue), 1.0 / eigenvalue
        if self.normalized:
            rest = max(1.0 - eigenvalue, 1e-12)
            value, by_lambda = value - np.log(rest), by_lambda / rest
        by_moved = self._slopes(moved, mass, -k / (x + ALPHA), mode, eigenvalue)
        for factor in (by_lambda, 1.0 / self.sigma, 1.0 / self.sigma):  # their product may overflow
            by_moved *= factor
        # a point outside of the interval moves with its edge, which is beta deviations from the mean
        d_std = self.beta * (by_moved * np.sign(points) * (1.0 - by_point)).sum(axis=0)
        through_std = np.divide(d_std, mass.sum() * std, out=np.zeros_like(std), where=std > 0)
        slopes = by_moved * by_point + mass[:, None] * points * through_std
        return GraphValue(float(value), found, slopes, mode, volume, self.normalized)

    def _slopes(
        self, points: FloatArray, mass: FloatArray, k_over: FloatArray, mode: FloatArray, eigenvalue: float
    ) -> FloatArray:
        """Return sigma^2 times the derivative of y' L y by every coordinate, for the eigenvector y.

        y' L y = 1/2 sum of w_i w_j k_ij (y_i - y_j)^2, minus, for the normalized Laplacian, the change of the
        degrees times its eigenvalue. `k_over` is k'(x) / x.
        """
        squares = mode**2
        pairs = np.subtract.outer(mode, mode) ** 2
        if self.normalized:
            pairs -= eigenvalue * np.add.outer(squares, squares)
        pull = np.multiply.outer(mass, mass) * k_over * pairs
        return np.asarray(pull.sum(axis=1)[:, None] * points - pull @ points)

    def _second_mode(
        self, points: FloatArray, k: FloatArray, mass: FloatArray
    ) -> tuple[float, float, FloatArray]:
        """Return the volume, the smallest eigenvalue except 0, and its vector, as a function on the rows.

        The vector of the eigenvalue 0 is known; it is lifted above all others, so that none of them can mix
        with it where they are 0 up to rounding, too. There the graph is not connected: its components are
        divided at the widest gap between points (single linkage), as rounding must not decide.
        """
        degree = k @ mass
        volume = mass * degree if self.normalized else mass
        scale = np.sqrt(mass / degree) if self.normalized else np.sqrt(mass)
        largest = 2.0 if self.normalized else 2.0 * float(degree.max())
        trivial = np.sqrt(volume / volume.sum())
        matrix = largest * np.multiply.outer(trivial, trivial) - k * np.multiply.outer(scale, scale)
        matrix[np.diag_indices_from(matrix)] += 1.0 if self.normalized else degree
        (value,), vectors = eigh(matrix, subset_by_index=(0, 0))
        mode = (vectors[:, 0] - trivial * (trivial @ vectors[:, 0])) / np.sqrt(volume)
        if value <= RESOLVED * largest:
            right = beyond_widest_gap(points)
            mode = np.where(right, 1.0 / volume[right].sum(), -1.0 / volume[~right].sum())
        mode /= np.sqrt(volume @ mode**2)
        # As a sum of squares the eigenvalue keeps its relative accuracy close to 0.
        weighted = k * np.multiply.outer(mass, mass)
        return float(volume.sum()), 0.5 * float((weighted * np.subtract.outer(mode, mode) ** 2).sum()), mode


def beyond_widest_gap(points: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which points lie on one side of the widest gap: the longest edge of their minimum spanning tree.

    >>> beyond_widest_gap(np.array([[0.0], [1.0], [5.0], [5.5]])).tolist()
    [False, False, True, True]
    """
    n, merges = len(points), linkage(points, "single")[:, :2].astype(np.int64)
    right = np.zeros(2 * n - 1, dtype=np.bool_)  # of the points, then of the merges in their order
    right[merges[-1, 1]] = True
    for i in range(n - 3, -1, -1):  # all but the last merge; `cut_tree` takes a thousand times as long
        right[merges[i]] = right[n + i]
    return np.asarray(right[:n] != right[0])
