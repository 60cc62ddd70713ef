"""Spectral connectivity to the letter of its paper: Equation 26, BFGS, sides by spectral clustering.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray
from ravine.data.microclusters import MicroClusters, microclusters
from ravine.data.node import Node
from ravine.data.query import Query
from ravine.index.graph import RESOLVED, SMALLEST, GraphConnectivity, GraphValue
from ravine.optimize.descent import CONVERGED, CONVERGED_OBJECTIVE, ITERATION_LIMIT
from ravine.papers.variable_metric import variable_metric
from ravine.split.directions import BoolArray, Directions, Objective, OrthogonalDirections
from ravine.split.split import Split

HALVINGS = 40  # most halvings of sigma
SAME_SPACE = 0.02  # radians: halving sigma ends when the space of the directions turns by less; a choice


@dataclass(frozen=True)
class PublishedObjective(Objective):
    """lambda_2 + omega times the squared cosines of the directions (Equation 26), minimized by BFGS.

    A positive `omega` makes directions nearly orthogonal, a negative one parallel. lambda_2 of the standard
    Laplacian is divided by the mass, so that omega means the same for any number of rows. The steps are those
    of `optim` in R, which the authors' package uses: parallel directions become one within a few steps, and
    which one depends on the lengths of the first steps.
    """

    omega: float

    def minimize(self, start: FloatArray, *, tol: float, max_iter: int) -> Directions:
        """Descend by BFGS."""
        found = minimize(
            self.of_free,
            self.place(start).ravel(),
            args=(start.shape,),
            jac=True,
            method=variable_metric,
            options={"maxiter": max_iter, "gtol": tol},
        )
        norm = float(np.linalg.norm(found.jac))
        status = ITERATION_LIMIT if found.status == 1 else CONVERGED_OBJECTIVE
        status = CONVERGED if norm <= tol else status
        return self.end_at(found.x.reshape(start.shape), norm, int(found.nit), status)

    def place(self, free: FloatArray) -> FloatArray:
        """Return unit vectors."""
        return np.asarray(free / np.linalg.norm(free, axis=1, keepdims=True))

    def through_place(self, free: FloatArray, directions: FloatArray, gradient: FloatArray) -> FloatArray:
        """Project the gradient of each direction on the tangent plane of the sphere."""
        tangent = gradient - np.sum(gradient * directions, axis=1, keepdims=True) * directions
        return np.asarray(tangent / np.linalg.norm(free, axis=1, keepdims=True))

    def evaluate(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph, the value of Equation 26, and its gradient by the directions."""
        graph, _, gradient = super().evaluate(directions)
        second = max(graph.eigenvalue, SMALLEST)
        by_value = second * (1.0 - second) if self.index.normalized else second  # d lambda / d log theta
        unit = 1.0 if self.index.normalized else 1.0 / float(self.clusters.weights.sum())
        cosines = directions @ directions.T
        np.fill_diagonal(cosines, 0.0)
        gradient = unit * by_value * gradient + 4.0 * self.omega * cosines @ directions
        return graph, unit * second + self.omega * float((cosines**2).sum()), gradient


@dataclass(frozen=True)
class PublishedConnectivity(OrthogonalDirections):
    """Minimize lambda_2 + omega cos^2 for one beta after the other, until both sides are large enough.

    The sides are those of spectral clustering: 2-means of the first two eigenvectors. The smaller one must
    have half the mean size of a cluster, `least_share` of *all* rows, not of those of the leaf (Section 7.1).
    With `large_margin`, sigma is halved for each beta until the directions no longer turn.
    Every beta begins at the same start, as in the package of the authors.
    """

    omega: float = 0.5
    normalized: bool = True
    large_margin: bool = False
    name: str = "spectral connectivity as published"

    def test_quality(self, split: Split, total: float) -> float:
        """Return 1 - lambda_2, with lambda_2 of the standard Laplacian divided by the mass."""
        largest = 1.0 if self.normalized else total
        return super().test_quality(replace(split, value=split.value / largest), total)

    def indices(self, start: FloatArray) -> list[GraphConnectivity]:
        """Return the index at every beta, with the Laplacian of the method."""
        return [replace(index, normalized=self.normalized) for index in super().indices(start)]

    def sides(self, found: GraphValue, mass: FloatArray) -> BoolArray:
        """Return the sides of spectral clustering."""
        return sides_of_means(found, mass)

    def solve(self, node: Node, start: FloatArray) -> Query[Directions]:
        """Lower beta until both sides are large enough."""
        everything, end = node.root_standardization or node.standardization, None
        for index in self.indices(start):
            end = self.minimize(self.coordinates.clusters, index, start)
            if self.large_margin:
                end = yield from self.halve_sigma(node, end)
            right = self.sides(end.graph, end.clusters.weights)
            if end.has_sides(right, self.schedule.least_share * everything.total):
                break
        assert end is not None
        return end

    def minimize(self, clusters: MicroClusters, index: GraphConnectivity, start: FloatArray) -> Directions:
        """Descend from some directions; no pass."""
        objective = PublishedObjective(clusters, index, self.omega)
        return objective.minimize(start, tol=self.univariate.tol, max_iter=self.univariate.max_iter)

    def halve_sigma(self, node: Node, best: Directions) -> Query[Directions]:
        """Halve sigma, each time with new micro-clusters, until the directions no longer turn."""
        axes = self.coordinates.axes
        for k in range(HALVINGS):
            purpose = f"micro-clusters {k}"
            finer = yield from microclusters(node, self.n_microclusters, purpose, best.directions, axes)
            index = replace(best.index, sigma=best.index.sigma / 2.0)
            end = self.minimize(finer, index, best.directions)
            if end.graph.eigenvalue < RESOLVED * node.total:
                break
            turned = angle_between(best.directions, end.directions)
            best = replace(end, n_iter=best.n_iter + end.n_iter)
            if turned < SAME_SPACE:
                break
        return best

    def choose(self, node: Node, ends: Sequence[Directions]) -> Query[list[Directions]]:
        """Return the ends by their value."""
        yield from ()
        return sorted(ends, key=lambda end: end.value)


def angle_between(old: FloatArray, new: FloatArray) -> float:
    """Return the largest angle between two subspaces."""
    a, b = np.linalg.qr(old.T)[0], np.linalg.qr(new.T)[0]
    return math.acos(min(1.0, float(np.linalg.svd(a.T @ b)[1].min())))


def sides_of_means(graph: GraphValue, mass: FloatArray) -> BoolArray:
    """Return the sides by 2-means of the first two eigenvectors, as spectral clustering has them.

    With the normalized Laplacian the rows of the eigenvectors have unit length (Ng, Jordan, Weiss). The
    groups are separated in the second eigenvector, so that the two of least variance are found by cumulative
    sums.
    """
    second = graph.mode * np.sqrt(graph.volume)  # in units of the first eigenvector
    points = np.column_stack([np.ones_like(second), second])
    if graph.normalized:
        points /= np.hypot(1.0, second)[:, None]
    rank = np.argsort(second, kind="stable")
    below, sums = np.cumsum(mass[rank]), np.cumsum(mass[rank, None] * points[rank], axis=0)
    left, right = below[:-1], below[-1] - below[:-1]
    between = (sums[:-1] ** 2).sum(axis=1) / left + ((sums[-1] - sums[:-1]) ** 2).sum(axis=1) / right
    return np.asarray(second > second[rank[int(np.argmax(between))]])
