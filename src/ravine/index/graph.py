"""Spectral connectivity of points in several dimensions: the dense eigenproblem over micro-clusters.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ravine._validate import FloatArray
from ravine.index.connectivity import draw_in

NOISE = 1e-16  # of the largest eigenvalue: below, the second one is not resolved
COALESCED = 1e-4  # eigenvalues this close to each other, relative to the second, count as one
SIMILARITIES = ("laplace", "near-laplace", "gaussian")  # in the order of the compiled code
ALPHA = 0.1  # of the near-Laplace kernel


@dataclass(frozen=True)
class GraphValue:
    """What the graph says of projected points.

    `value` is log theta as in `ConnectivityIndex`; `slopes` (t, t, points, l) the derivatives of Q' L Q by
    every coordinate of every point for the t eigenvectors Q of the second eigenvalue, divided by what makes
    them derivatives of `value`: for a simple eigenvalue, `slopes[0, 0]` is its gradient. `mode` is the second
    eigenvector in the scale of an indicator: its sign tells the side of each point.
    """

    value: float
    eigenvalue: float
    slopes: FloatArray
    mode: FloatArray

    @property
    def multiplicity(self) -> int:
        """How many eigenvalues coincide with the second."""
        return len(self.slopes)


@dataclass(frozen=True)
class GraphConnectivity:
    """lambda_2 of the (normalised) Laplacian of weighted points in l dimensions, O(m^3) for m points."""

    sigma: float
    beta: float
    normalized: bool = True
    similarity: str = "near-laplace"

    def evaluate(self, points: FloatArray, mass: FloatArray) -> GraphValue:
        """Return the value with its derivatives by every coordinate of every (centred) point."""
        from ravine.index import graph_kernels

        std = np.sqrt(mass @ points**2 / mass.sum())
        moved, steep, by_edge = draw_in(points, self.beta * std, self.sigma)
        k, k_over = np.empty((2, len(points), len(points)))
        graph_kernels.similarities(moved, self.sigma, SIMILARITIES.index(self.similarity), k, k_over)
        values, modes = self._modes(k, mass)
        second = max(float(values[1]), NOISE * (1.0 if self.normalized else float(mass.sum())))
        t = 1 + int(np.sum(values[2:] - second <= COALESCED * second))
        value, by_lambda = np.log(second), 1.0 / second
        if self.normalized:
            rest = max(1.0 - second, 1e-12)
            value, by_lambda = value - np.log(rest), by_lambda / rest
        slopes = np.empty((t, t, *points.shape))
        for a in range(t):
            for b in range(t):
                ya, yb = (np.ascontiguousarray(modes[:, 1 + c]) for c in (a, b))
                by_moved = slopes[a, b]
                graph_kernels.slopes(moved, mass, k_over, ya, yb, second * self.normalized, by_moved)
                by_moved *= by_lambda / self.sigma**2
                d_std = self.beta * (by_moved * by_edge).sum(axis=0)
                through_std = np.divide(d_std, mass.sum() * std, out=np.zeros_like(std), where=std > 0)
                slopes[a, b] = by_moved * steep + mass[:, None] * points * through_std
        return GraphValue(float(value), float(values[1]), slopes, modes[:, 1])

    def _modes(self, k: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest eigenvalues and their vectors, as functions on the rows that are counted."""
        degree = k @ mass
        scale = np.sqrt(mass / degree) if self.normalized else np.sqrt(mass)
        matrix = -k * np.multiply.outer(scale, scale)
        matrix[np.diag_indices_from(matrix)] += 1.0 if self.normalized else degree
        last = min(3, len(mass) - 1)
        values, vectors = eigh(matrix, subset_by_index=(0, last))
        return values, vectors / np.sqrt(mass * degree if self.normalized else mass)[:, None]

    def error_bound(self, radius: float, diameter: float) -> float:
        """Bound the relative error of lambda_2 when points stand for others within `radius` (Corollary 7)."""
        r = 2.0 * radius
        if self.similarity == "gaussian":
            exponent = ((diameter + r) ** 2 - diameter**2) / (2.0 * self.sigma**2)
        else:
            alpha = ALPHA * (self.similarity == "near-laplace")
            shift = self.sigma * alpha
            ratio = (diameter + shift) / (diameter + r + shift)
            exponent = r / self.sigma + (alpha * np.log(ratio) if alpha else 0.0)
        return float(np.expm1(min(700.0, 2.0 * exponent if self.normalized else exponent)))
