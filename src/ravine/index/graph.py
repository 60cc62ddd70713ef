"""Spectral connectivity of points in several dimensions: the dense eigenproblem over micro-clusters.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage
from scipy.linalg import eigh

from ravine._validate import FloatArray
from ravine.index.connectivity_loops import similarities
from ravine.index.connectivity_loops import slopes as slopes_of
from ravine.index.interval import contract_outliers

RESOLVED = 1e-9  # share of the largest possible eigenvalue below which the second eigenvector is rounding
SMALLEST = 1e-200  # smaller eigenvalues are replaced by this, so that their inverse is finite
COALESCED = 1e-4  # relative difference of eigenvalues that count as one; a choice
SIMILARITIES = ("laplace", "near-laplace", "gaussian")  # in the order of the compiled code
ALPHA = 0.1  # shape of the near-Laplace kernel (Equation 30; value of Section 7.1)


@dataclass(frozen=True)
class GraphValue:
    """The connectivity of projected points.

    `value` is log theta as in `ConnectivityIndex`; `slopes` (t, t, points, l) are the derivatives of Q' L Q
    by every coordinate of every point for the t eigenvectors Q of the second eigenvalue, scaled to be those
    of `value`: for a simple eigenvalue, `slopes[0, 0]` is its gradient. `mode` is the second eigenvector in
    the scale of an indicator: its sign is the side of each point. `volume` is the sum of the degrees, or of
    the masses without normalization.
    """

    value: float
    eigenvalue: float
    slopes: FloatArray
    mode: FloatArray
    volume: float
    normalized: bool

    def sides_of_means(self, mass: FloatArray) -> npt.NDArray[np.bool_]:
        """Return the sides by 2-means of the first two eigenvectors, as spectral clustering has them.

        With the normalized Laplacian the rows of the eigenvectors have unit length (Ng, Jordan, Weiss).
        """
        second = self.mode * np.sqrt(self.volume)  # in units of the first eigenvector
        points = np.column_stack([np.ones_like(second), second])
        if self.normalized:
            points /= np.hypot(1.0, second)[:, None]
        return two_means(second, points, mass)

    @property
    def multiplicity(self) -> int:
        """The number of eigenvalues that coincide with the second, itself included."""
        return len(self.slopes)


@dataclass(frozen=True)
class GraphConnectivity:
    """lambda_2 of the (normalized) Laplacian of weighted points in l dimensions, O(m^3) for m points."""

    sigma: float
    beta: float
    normalized: bool = True
    similarity: str = "near-laplace"

    def evaluate(self, points: FloatArray, mass: FloatArray) -> GraphValue:
        """Return the value with its derivatives by every coordinate of every (centered) point."""
        std = np.sqrt(mass @ points**2 / mass.sum())
        moved, by_point, by_edge = contract_outliers(points, self.beta * std, self.sigma)
        k, k_over = np.empty((2, len(points), len(points)))
        kind = SIMILARITIES.index(self.similarity)
        moved = np.ascontiguousarray(moved)
        similarities(moved, self.sigma, kind, ALPHA, k, k_over)
        volume, values, modes = self._modes(moved, k, mass)
        second = max(float(values[0]), SMALLEST)
        t = 1 + int(np.sum(values[1:] - second <= COALESCED * second))
        value, by_lambda = np.log(second), 1.0 / second
        if self.normalized:
            rest = max(1.0 - second, 1e-12)
            value, by_lambda = value - np.log(rest), by_lambda / rest
        slopes = np.empty((t, t, *points.shape))
        for a in range(t):
            for b in range(t):
                ya, yb = (np.ascontiguousarray(modes[:, c]) for c in (a, b))
                by_moved = slopes[a, b]
                slopes_of(moved, mass, k_over, ya, yb, second * self.normalized, by_moved)
                for factor in (by_lambda, 1.0 / self.sigma, 1.0 / self.sigma):  # their product may overflow
                    by_moved *= factor
                d_std = self.beta * (by_moved * by_edge).sum(axis=0)
                through_std = np.divide(d_std, mass.sum() * std, out=np.zeros_like(std), where=std > 0)
                slopes[a, b] = by_moved * by_point + mass[:, None] * points * through_std
        return GraphValue(float(value), float(values[0]), slopes, modes[:, 0], volume, self.normalized)

    def _modes(
        self, points: FloatArray, k: FloatArray, mass: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the volume, the smallest eigenvalues except 0, and their vectors, as functions on the rows.

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
        values, vectors = eigh(matrix, subset_by_index=(0, min(2, len(mass) - 2)))
        modes = (vectors - np.outer(trivial, trivial @ vectors)) / np.sqrt(volume)[:, None]
        if values[0] <= RESOLVED * largest:
            right = beyond_widest_gap(points)
            sides = np.array([volume[~right].sum(), volume[right].sum()])
            modes = np.where(right, 1.0 / sides[1], -1.0 / sides[0])[:, None]
        modes /= np.sqrt(volume @ modes**2)
        return float(volume.sum()), rayleigh(k, mass, modes), modes

    def error_bound(self, radius: float, diameter: float) -> float:
        """Bound the relative error of lambda_2 when points represent others within `radius` (Corollary 7)."""
        r = 2.0 * radius
        if self.similarity == "gaussian":
            exponent = ((diameter + r) ** 2 - diameter**2) / (2.0 * self.sigma**2)
        else:
            alpha = ALPHA * (self.similarity == "near-laplace")
            shift = self.sigma * alpha
            ratio = (diameter + shift) / (diameter + r + shift)
            exponent = r / self.sigma + (alpha * np.log(ratio) if alpha else 0.0)
        return float(np.expm1(min(700.0, 2.0 * exponent if self.normalized else exponent)))


def two_means(order: FloatArray, points: FloatArray, mass: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which points are in the upper group: the two groups, separated in `order`, of least variance.

    >>> two_means(np.array([0.0, 9.0, 1.0]), np.array([[0.0], [9.0], [1.0]]), np.ones(3)).tolist()
    [False, True, False]
    """
    rank = np.argsort(order, kind="stable")
    below, sums = np.cumsum(mass[rank]), np.cumsum(mass[rank, None] * points[rank], axis=0)
    left, right = below[:-1], below[-1] - below[:-1]
    between = (sums[:-1] ** 2).sum(axis=1) / left + ((sums[-1] - sums[:-1]) ** 2).sum(axis=1) / right
    cut = int(np.argmax(between))
    return np.asarray(order > order[rank[cut]])


def rayleigh(k: FloatArray, mass: FloatArray, modes: FloatArray) -> FloatArray:
    """Return the sum of m_i m_j k_ij (y_i - y_j)^2 / 2 for every column y of `modes`.

    As a sum of squares it keeps its relative accuracy where an eigenvalue is close to 0.
    """
    weighted = k * np.multiply.outer(mass, mass)
    return np.array([0.5 * (weighted * np.subtract.outer(y, y) ** 2).sum() for y in modes.T])


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
