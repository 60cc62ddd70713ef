"""Spectral connectivity in several orthogonal directions at once, over micro-clusters in memory.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.microclusters import (
    Compared,
    MicroClusters,
    NearestSum,
    microclusters,
    nearest,
    sample_size,
)
from ravine.data.node import Node, Opened
from ravine.data.principal import power_samples, principal
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.features.neighbors import RowGraph
from ravine.index.connectivity import ConnectivitySchedule
from ravine.index.graph import GraphConnectivity, GraphValue
from ravine.optimize.descent import Descent
from ravine.split.boundary import NearestCenter
from ravine.split.projection import PROGRESS, USEFUL, ProjectionMethod
from ravine.split.search import BaseMethod, Outcome
from ravine.split.split import Split

EXTRA_COMPONENTS = 3  # principal components beyond those of one start, from which other starts are made
WIDEST = 1024  # most columns for a search in all columns; wider rows are reduced to principal components
COMPONENTS = 32  # principal components of very wide rows
SEEDS = "micro-clusters"  # the purpose of the random numbers of the micro-clusters that are searched

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Directions:
    """Unit directions (l, d) that minimize an index of micro-clusters, the graph there, and its value."""

    directions: FloatArray
    clusters: MicroClusters
    index: GraphConnectivity
    graph: GraphValue
    value: float
    gradient_norm: float
    n_iter: int
    status: str

    @property
    def right(self) -> BoolArray:
        """Which micro-clusters lie on the right: where the second eigenvector is positive."""
        return self.graph.mode > 0

    def has_sides(self, right: BoolArray, min_weight: float) -> bool:
        """Return whether both sides have a least weight."""
        weights = self.clusters.weights
        return min(float(weights[right].sum()), float(weights[~right].sum())) >= min_weight


@dataclass(frozen=True)
class Objective:
    """Log theta of the graph of projected micro-clusters, as a function of orthonormal directions.

    (The paper's penalty, Equation 26, only approaches that they are orthogonal.)
    """

    clusters: MicroClusters
    index: GraphConnectivity

    def minimize(self, start: FloatArray, *, tol: float, max_iter: int) -> Directions:
        """Descend from some directions.

        The objective does not depend on the length of all directions together, so that the descent is that
        on the unit sphere.
        """
        length = float(np.linalg.norm(start))
        descent = Descent(start.ravel() / length, tol=length * tol, progress=PROGRESS, max_iter=max_iter)
        while descent.running:
            v = descent.direction
            value, gradient = self.of_free(v, start.shape)
            descent.tell(value, gradient - (gradient @ v) * v)
        norm = float(np.linalg.norm(descent.end_gradient)) / length
        return self.end_at(descent.direction.reshape(start.shape), norm, descent.n_iter, descent.status)

    def end_at(self, free: FloatArray, gradient_norm: float, n_iter: int, status: str) -> Directions:
        """Return the end of a descent."""
        directions = self.place(free)
        graph, value, _ = self.evaluate(directions)
        return Directions(directions, self.clusters, self.index, graph, value, gradient_norm, n_iter, status)

    def place(self, free: FloatArray) -> FloatArray:
        """Return the orthonormal directions nearest to arbitrary vectors."""
        left, _, right = np.linalg.svd(free, full_matrices=False)
        return np.asarray(left @ right)

    def evaluate(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        """Return the graph, the value, and the gradient by the directions."""
        graph = self.index.evaluate(self.clusters.centers @ directions.T, self.clusters.weights)
        return graph, graph.value, graph.slopes.T @ self.clusters.centers

    def of_free(self, flat: FloatArray, shape: tuple[int, int]) -> tuple[float, FloatArray]:
        """Return value and gradient at arbitrary vectors, for an unconstrained optimizer."""
        free = flat.reshape(shape)
        directions = self.place(free)
        _, value, gradient = self.evaluate(directions)
        return value, self.through_place(free, directions, gradient).ravel()

    def through_place(self, free: FloatArray, directions: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient with respect to F of a function of V, the polar factor of F = P V.

        P is symmetric and the rows of V are orthonormal. The differential dV has two parts. Inside the span
        of V it is W V with W = dV V' skew-symmetric and dF V' - V dF' = P W + W P, a Sylvester equation that
        is diagonal in the eigenvectors of P; outside of the span it is P^-1 dF. The gradient is the adjoint
        of both.
        """
        stretch, basis = np.linalg.eigh(free @ directions.T)
        products = gradient @ directions.T
        skew = basis.T @ (products - products.T) @ basis / np.add.outer(stretch, stretch)
        across = np.linalg.solve(free @ directions.T, gradient - products @ directions)
        return np.asarray(across + basis @ skew @ basis.T @ directions)


@dataclass(frozen=True)
class Coordinates:
    """Micro-clusters of a node, and the principal components from which starts are made.

    For very wide rows, both are coordinates along a few principal `axes`.
    """

    clusters: MicroClusters
    components: FloatArray
    deviation: float
    axes: FloatArray | None

    def directions(self, found: FloatArray) -> FloatArray:
        """Return directions in these coordinates as directions of the standardized space."""
        return found if self.axes is None else found @ self.axes


@dataclass(frozen=True)
class OrthogonalDirections(BaseMethod):
    """Minimize lambda_2 over several orthogonal directions at once, on micro-clusters.

    The schedule, the tolerances and the number of starts are those of the search in one direction, which also
    takes over where there are too few micro-clusters. A row belongs to the side of the nearest micro-cluster
    in the projection: the second eigenvector is known only for micro-clusters, and a hyperplane could not
    represent the boundary.
    """

    univariate: ProjectionMethod
    n_directions: int
    n_microclusters: int
    given: Coordinates | None = None
    name: str = "spectral connectivity in several directions"

    @property
    def schedule(self) -> ConnectivitySchedule:
        """The scale, the betas and the balance."""
        assert isinstance(self.univariate.schedule, ConnectivitySchedule)
        return self.univariate.schedule

    @property
    def coordinates(self) -> Coordinates:
        """The micro-clusters of the node that the method is prepared for."""
        assert self.given is not None
        return self.given

    @property
    def uses_graph(self) -> bool:  # type: ignore[override]
        return self.univariate.neighbor_cut

    def with_graph(self, graph: RowGraph | None) -> OrthogonalDirections:
        return replace(self, univariate=self.univariate.with_graph(graph))

    def test_quality(self, split: Split, total: float) -> float:
        """Return 1 - lambda_2."""
        return self.schedule.test_quality(split.value)

    def ahead(self, node: Node) -> Sequence[Sample]:
        """Return the samples of the micro-clusters and of the neighbor graph."""
        seeds = node.sample_request(sample_size(node, self.n_microclusters), SEEDS)
        return [seeds, *power_samples(node), *self.univariate.ahead(node)]

    def prepare(self, opened: Opened) -> Query[OrthogonalDirections | ProjectionMethod | None]:
        """Make the micro-clusters; return the univariate method if there are too few."""
        node = opened.node
        wide = node.n_features > WIDEST
        found = yield from principal(node, COMPONENTS if wide else self.n_directions + EXTRA_COMPONENTS)
        useful = found.directions[found.deviations > USEFUL * found.deviations[0]]
        axes = useful if wide else None
        clusters = yield from microclusters(node, self.n_microclusters, SEEDS, None, axes)
        components = np.eye(len(useful))[: self.n_directions + EXTRA_COMPONENTS] if wide else useful
        if len(clusters.weights) < 3 or len(components) < min(2, self.n_directions):
            return (yield from self.univariate.prepare(opened))
        given = Coordinates(clusters, components, float(found.deviations[0]), axes)
        return replace(self, given=given, univariate=(yield from self.univariate.make_graph(opened)))

    def starts(self, node: Node) -> Query[tuple[Node, list[FloatArray]]]:
        """Return sets of principal components, those with the smallest sum of ranks first."""
        yield from ()
        components = self.coordinates.components
        n = min(self.n_directions, len(components))
        sets = sorted(itertools.combinations(range(len(components)), n), key=lambda s: (sum(s), s))
        starts = [components[list(some)] for some in sets[: self.univariate.n_init]]
        return replace(node, deviation=self.coordinates.deviation), starts

    def solve(self, node: Node, start: FloatArray) -> Query[Directions]:
        """Minimize with every beta in turn, each from the end of the last, until both sides are large."""
        yield from ()
        end: Directions | None = None
        for index in self.indices(start):
            begin = start if end is None else end.directions
            end = self.minimize(self.coordinates.clusters, index, begin)
            if end.has_sides(end.right, self.schedule.least_share * float(end.clusters.weights.sum())):
                break
        assert end is not None
        return end

    def indices(self, start: FloatArray) -> list[GraphConnectivity]:
        """Return the index at every beta; distances grow with the root of the number of directions."""
        deviation = math.sqrt(len(start)) * self.coordinates.deviation
        total = float(self.coordinates.clusters.weights.sum())
        plain = self.schedule.indices(deviation, total, mean_variance=1.0)
        return [GraphConnectivity(one.sigma, one.beta) for one in plain]

    def minimize(self, clusters: MicroClusters, index: GraphConnectivity, start: FloatArray) -> Directions:
        """Descend from some directions; no pass."""
        one = self.univariate
        return Objective(clusters, index).minimize(start, tol=one.tol, max_iter=one.max_iter)

    def choose(self, node: Node, ends: Sequence[Directions]) -> Query[list[Directions]]:
        """Return the ends with two large enough sides, the best first."""
        yield from ()
        least = self.schedule.least_share * float(self.coordinates.clusters.weights.sum())
        ends = [end for end in ends if end.has_sides(end.right, least)] or list(ends)
        if len(ends) == 1 or not self.univariate.neighbor_cut:
            return sorted(ends, key=lambda end: end.value)
        graph = self.univariate.graph
        assert graph is not None

        def cut(end: Directions) -> float:
            centers = end.clusters.centers @ end.directions.T
            points = graph.project(node.standardization, self.coordinates.directions(end.directions))
            return graph.cut(end.right[nearest(points, centers)[0]])

        return sorted(ends, key=cut)

    def sides(self, found: GraphValue, mass: FloatArray) -> BoolArray:
        """Return which micro-clusters lie on the right: where the second eigenvector is positive."""
        return np.asarray(found.mode > 0)

    def finish(self, node: Node, end: Directions) -> Query[Outcome | None]:
        """Assign all rows to the nearest of the end's centers in the projection; one pass."""
        own = node.standardization
        directions = self.coordinates.directions(end.directions)
        centers = end.clusters.centers @ end.directions.T
        ((mass, _),) = yield node.ask(NearestSum(Compared(own, directions), centers))
        centers, mass = centers[mass > 0], mass[mass > 0]
        if len(mass) < 2:
            return None
        graph = end.index.evaluate(centers - mass @ centers / mass.sum(), mass)
        right = self.sides(graph, mass)
        if min(mass[right].sum(), mass[~right].sum()) < max(node.min_weight, np.finfo(float).tiny):
            return None
        boundary = NearestCenter(own.unit * own.normals(directions), own.mean, own.unit * centers, right)
        direction = boundary.line[0] @ directions
        return Outcome(
            direction=direction / float(np.linalg.norm(direction)),
            threshold=0.0,
            value=graph.eigenvalue,
            status=end.status,
            n_iter=max(1, end.n_iter),
            gradient_norm=end.gradient_norm,
            facts={
                "sigma": own.unit * end.index.sigma,
                "beta": end.index.beta,
                "microclusters": float(len(centers)),
            },
            centers=boundary,
        )
