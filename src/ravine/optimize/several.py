"""Projection pursuit in several directions at once, over micro-clusters in memory.

The objective is log theta of the graph of the projected points. The directions are orthonormal by
construction (the paper's penalty, Equation 26 with a positive omega, only approaches that), or the penalty
-omega times their squared cosines makes them parallel (a negative omega in the paper; because of the
logarithm, omega here means the same for all data).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.microclusters import MicroClusters
from ravine.index.graph import GraphConnectivity, GraphValue
from ravine.optimize.descent import CONVERGED, Descent

ESCAPES = 5  # most times that a descent may leave a repeated eigenvalue
SHORTEST_STEP = 1e-6  # least step of the line search that leaves one
PROGRESS = 1e-6  # a descent ends at a step that decreases log theta by less
FLAT = 1e-8  # directional derivatives (of log theta) below this count as 0


@dataclass(frozen=True)
class Directions:
    """Unit directions (l, d), the index that they minimize, and its value there."""

    directions: FloatArray
    index: GraphConnectivity
    result: GraphValue
    value: float
    gradient_norm: float
    n_iter: int
    n_escapes: int
    status: str

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Which micro-clusters lie on the right: where the second eigenvector is positive."""
        return self.result.mode > 0


def _unit(free: FloatArray) -> FloatArray:
    return np.asarray(free / np.linalg.norm(free, axis=1, keepdims=True))


@dataclass(frozen=True)
class Objective:
    """Log theta of the projected micro-clusters, for orthonormal directions or with a penalty.

    `omega` is the strength of the penalty that makes directions parallel; None: they are orthonormal.
    """

    clusters: MicroClusters
    index: GraphConnectivity
    omega: float | None = None

    def minimize(self, start: FloatArray, *, tol: float, max_iter: int) -> tuple[FloatArray, int, str]:
        """Descend from orthonormal or unit directions; return directions, number of steps, and status.

        The objective does not depend on the length of all directions together, so that the descent is that
        on the unit sphere.
        """
        length = float(np.linalg.norm(start))
        descent = Descent(start.ravel() / length, tol=length * tol, progress=PROGRESS, max_iter=max_iter)
        while descent.running:
            v = descent.direction
            value, gradient = self.of_free(v, start.shape)
            descent.tell(value, gradient - (gradient @ v) * v)
        return self.place(descent.direction.reshape(start.shape)), descent.n_iter, descent.status

    def place(self, free: FloatArray) -> FloatArray:
        """Return the directions for arbitrary vectors: normalized, or the nearest orthonormal ones."""
        if self.omega is not None:
            return _unit(free)
        left, _, right = np.linalg.svd(free, full_matrices=False)
        return np.asarray(left @ right)

    def look(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph's value, the objective, and its gradients (t, t, l, d) in the tangent space."""
        graph, value, gradients = self._free_gradients(directions)
        return graph, value, np.array([[self._tangent(g, directions) for g in row] for row in gradients])

    def of_free(self, flat: FloatArray, shape: tuple[int, int]) -> tuple[float, FloatArray]:
        """Return value and gradient at arbitrary vectors, for an unconstrained optimizer."""
        free = flat.reshape(shape)
        directions = self.place(free)
        _, value, gradients = self._free_gradients(directions)
        if self.omega is None:
            return value, _through_polar(free, directions, gradients[0, 0]).ravel()
        tangent = self._tangent(gradients[0, 0], directions)
        return value, (tangent / np.linalg.norm(free, axis=1, keepdims=True)).ravel()

    def _free_gradients(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph's value, the objective, and its gradients (t, t, l, d), not projected."""
        graph = self.index.evaluate(self.clusters.centers @ directions.T, self.clusters.weights)
        gradients = np.einsum("abml,md->abld", graph.slopes, self.clusters.centers)
        if self.omega is None:
            return graph, graph.value, gradients
        cosines = directions @ directions.T
        np.fill_diagonal(cosines, 0.0)
        for a in range(len(gradients)):
            gradients[a, a] -= 4.0 * self.omega * cosines @ directions
        return graph, graph.value - self.omega * float((cosines**2).sum()), gradients

    def _tangent(self, gradient: FloatArray, directions: FloatArray) -> FloatArray:
        """Project a gradient on the tangent space of the constraint (orthonormal, or unit length)."""
        products = gradient @ directions.T
        if self.omega is None:
            return np.asarray(gradient - (products + products.T) / 2.0 @ directions)
        return np.asarray(gradient - np.diag(products)[:, None] * directions)


def _through_polar(free: FloatArray, directions: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the gradient with respect to F of a function of V, the polar factor of F = P V.

    P is symmetric and the rows of V are orthonormal. The differential dV has two parts. Inside the span of V
    it is W V with W = dV V' skew-symmetric and dF V' - V dF' = P W + W P, a Sylvester equation that is
    diagonal in the eigenvectors of P; outside of the span it is P^-1 dF. The gradient is the adjoint of both.
    """
    stretch, basis = np.linalg.eigh(free @ directions.T)
    products = gradient @ directions.T
    skew = basis.T @ (products - products.T) @ basis / np.add.outer(stretch, stretch)
    across = np.linalg.solve(free @ directions.T, gradient - products @ directions)
    return np.asarray(across + basis @ skew @ basis.T @ directions)


def descend(objective: Objective, start: FloatArray, *, tol: float, max_iter: int) -> Directions:
    """Minimize the objective from a start (Algorithm 1 of the paper).

    Alternates between a quasi-Newton descent, which assumes that the second eigenvalue is simple, and, if it
    ends at a repeated one, a step along the coordinate that lowers all the equal eigenvalues most.
    """
    directions, n_iter, n_escapes = objective.place(start), 0, 0
    while True:
        directions, n_steps, status = objective.minimize(directions, tol=tol, max_iter=max_iter)
        n_iter += n_steps
        result, value, gradients = objective.look(directions)
        if result.multiplicity == 1 or n_escapes == ESCAPES:
            break
        escaped = leave_coalescence(objective, directions, value, gradients)
        if escaped is None:
            break
        directions, n_escapes = escaped, n_escapes + 1
    norm = float(np.linalg.norm(gradients[0, 0]))
    status = CONVERGED if norm <= tol else status
    return Directions(directions, objective.index, result, value, norm, n_iter, n_escapes, status)


def leave_coalescence(
    objective: Objective, directions: FloatArray, value: float, gradients: FloatArray
) -> FloatArray | None:
    """Return a point of lower value near a repeated eigenvalue, or None if no coordinate leads to one.

    Along a coordinate, the derivative of the second eigenvalue is the smallest eigenvalue of Q' (dL) Q, and
    in the opposite direction minus the largest. Coordinates for which that one is simple are tried first:
    a step along them separates the eigenvalues.
    """
    t = len(gradients)
    spectra = np.linalg.eigvalsh(np.moveaxis(gradients.reshape(t, t, -1), -1, 0))
    falls = np.concatenate([-spectra[:, 0], spectra[:, -1]])
    simple = np.concatenate([spectra[:, 1] - spectra[:, 0], spectra[:, -1] - spectra[:, -2]]) > FLAT
    n = len(spectra)
    for k in np.lexsort((-falls, ~simple))[:8]:
        if falls[k] <= FLAT:
            continue
        step = np.zeros(n)
        step[k % n] = 1.0 if k < n else -1.0
        length = 0.5
        while length > SHORTEST_STEP:
            trial = objective.place(directions + length * step.reshape(directions.shape))
            if objective.look(trial)[1] < value - 1e-4 * length * falls[k]:
                return trial
            length /= 2.0
    return None


def pursue(
    clusters: MicroClusters,
    start: FloatArray,
    indices: Sequence[GraphConnectivity],
    *,
    omega: float | None,
    min_weight: float,
    tol: float,
    max_iter: int,
) -> Directions:
    """Minimize indices from the largest beta on, each from the end of the last; stop at two large sides."""
    end: Directions | None = None
    for index in indices:
        begin = start if end is None else end.directions
        end = descend(Objective(clusters, index, omega), begin, tol=tol, max_iter=max_iter)
        right = float(clusters.weights[end.right].sum())
        if min(right, clusters.weights.sum() - right) >= min_weight:
            break
    assert end is not None
    return end
