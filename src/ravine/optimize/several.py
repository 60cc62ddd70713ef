"""Projection pursuit in several directions at once, over micro-clusters in memory.

The objective is log theta of the graph of the projected points. The directions are orthonormal by
construction (the paper has a penalty, Equation 26 with a positive omega, which only tends to that), or they
are drawn together by the penalty -omega times their squared cosines (a negative omega there; with the
logarithm, omega means the same for any data).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from ravine._validate import FloatArray
from ravine.data.microclusters import MicroClusters
from ravine.index.graph import GraphConnectivity, GraphValue
from ravine.optimize.sphere import CONVERGED, CONVERGED_OBJECTIVE, ITERATION_LIMIT

ESCAPES = 5  # times that a descent may leave a coalescence
SHORTEST_STEP = 1e-6  # of the search along the direction that leaves one
FLAT = 1e-8  # directional derivatives below this are none


@dataclass(frozen=True)
class Directions:
    """Unit directions (l, d), the index that they were found with, and what it says of them."""

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
    """Log theta of the projected micro-clusters, for orthonormal directions or with a penalty to join them.

    `omega` is the strength of that penalty; None keeps the directions orthonormal.
    """

    clusters: MicroClusters
    index: GraphConnectivity
    omega: float | None = None

    def place(self, free: FloatArray) -> FloatArray:
        """Return the directions that any vectors stand for: scaled, or the nearest orthonormal ones."""
        if self.omega is not None:
            return _unit(free)
        left, _, right = np.linalg.svd(free, full_matrices=False)
        return np.asarray(left @ right)

    def look(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph's value, the objective, and the gradients (t, t, l, d) along the constraint."""
        graph, value, gradients = self._free_gradients(directions)
        return graph, value, np.array([[self._tangent(g, directions) for g in row] for row in gradients])

    def of_free(self, flat: FloatArray, shape: tuple[int, int]) -> tuple[float, FloatArray]:
        """Return value and gradient at vectors of any length, as an optimizer without constraints asks."""
        free = flat.reshape(shape)
        directions = self.place(free)
        _, value, gradients = self._free_gradients(directions)
        if self.omega is None:
            return value, _through_polar(free, directions, gradients[0, 0]).ravel()
        tangent = self._tangent(gradients[0, 0], directions)
        return value, (tangent / np.linalg.norm(free, axis=1, keepdims=True)).ravel()

    def _free_gradients(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph's value, the objective, and its gradients (t, t, l, d) without the constraint."""
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
        """Return the part of a gradient that keeps the constraint."""
        products = gradient @ directions.T
        if self.omega is None:
            return np.asarray(gradient - (products + products.T) / 2.0 @ directions)
        return np.asarray(gradient - np.diag(products)[:, None] * directions)


def _through_polar(free: FloatArray, directions: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the gradient by F of a function of V, where F = P V with P symmetric and V orthonormal.

    dF V' - V dF' = P W + W P for W = dV V', which is skew-symmetric, and P dV = dF across the span of V.
    """
    stretch, basis = np.linalg.eigh(free @ directions.T)
    products = gradient @ directions.T
    skew = basis.T @ (products - products.T) @ basis / np.add.outer(stretch, stretch)
    across = np.linalg.solve(free @ directions.T, gradient - products @ directions)
    return np.asarray(across + basis @ skew @ basis.T @ directions)


def descend(objective: Objective, start: FloatArray, *, tol: float, max_iter: int) -> Directions:
    """Minimize the objective from a start (Algorithm 1 of the paper).

    A quasi-Newton descent as if the second eigenvalue were simple; where it ends on a repeated one, a step
    along the coordinate that lowers the whole group most, and again.
    """
    directions, n_iter, n_escapes = objective.place(start), 0, 0
    while True:
        found = minimize(
            objective.of_free,
            directions.ravel(),
            args=(directions.shape,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-6},
        )
        directions = objective.place(found.x.reshape(directions.shape))
        n_iter += int(found.nit)
        result, value, gradients = objective.look(directions)
        if result.multiplicity == 1 or n_escapes == ESCAPES:
            break
        escaped = leave_coalescence(objective, directions, value, gradients)
        if escaped is None:
            break
        directions, n_escapes = escaped, n_escapes + 1
    norm = float(np.linalg.norm(gradients[0, 0]))
    status = CONVERGED if norm <= tol else ITERATION_LIMIT if found.status == 1 else CONVERGED_OBJECTIVE
    return Directions(directions, objective.index, result, value, norm, n_iter, n_escapes, status)


def leave_coalescence(
    objective: Objective, directions: FloatArray, value: float, gradients: FloatArray
) -> FloatArray | None:
    """Return a lower point off a repeated eigenvalue, or None where no coordinate leads to one.

    Along a coordinate the second eigenvalue falls as the smallest eigenvalue of Q' (dL) Q says, against it as
    the largest does; coordinates for which that one is simple come first, because they part the group.
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
    """Follow indices from the largest beta, each from where the last ended, until both sides have `least`."""
    end: Directions | None = None
    for index in indices:
        begin = start if end is None else end.directions
        end = descend(Objective(clusters, index, omega), begin, tol=tol, max_iter=max_iter)
        right = float(clusters.weights[end.right].sum())
        if min(right, clusters.weights.sum() - right) >= min_weight:
            break
    assert end is not None
    return end
