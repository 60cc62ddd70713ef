"""Spectral connectivity: large margins from a univariate split, and the search in several directions.

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
    FINE_SEEDS,
    Compared,
    MicroClusters,
    NearestSum,
    microclusters,
    nearest,
    sample_size,
)
from ravine.data.node import Node, Opened, sample
from ravine.data.principal import CovarianceTimes, power_samples, principal
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.features.neighbors import RowGraph
from ravine.index.connectivity import SIGMA, ConnectivityIndex
from ravine.index.graph import GraphConnectivity, GraphValue
from ravine.index.interval import contract_outliers
from ravine.optimize import several
from ravine.optimize.large_margin import around_threshold, minimize_at_scale
from ravine.optimize.pursuit import PASS_LIMIT
from ravine.split.boundary import Hyperplane, NearestCenter
from ravine.split.projection import USEFUL, ProjectionMethod
from ravine.split.search import BaseMethod, Outcome, measure_boundary
from ravine.split.split import Split

FINE_CENTERS = 600  # micro-clusters in the projection that give the reported eigenvalue
EXTRA_COMPONENTS = 3  # principal components beyond those of one start, from which other starts are made
CLEAR = 10.0  # least ratio of a clear gap to the spacing of the rows near it; a choice
WIDEST = 1024  # most columns for a search in all columns; wider rows are reduced to principal components
COMPONENTS = 32  # principal components of very wide rows
HALVINGS = 40  # most halvings of sigma
UNDERFLOW = 600.0  # gap in units of sigma at which halving ends: affinity 1e-260, margin exact to 1 %
SETTLED = 1e-3  # radians: halving ends when the normal turns by less
SETTLED_SEVERAL = 0.02  # radians: the same for several directions
SEEDS = "micro-clusters"  # the purpose of the random numbers of the micro-clusters that are searched
MARGIN_ROWS = "large margin"  # the same, of the sample on which the scale of a large node is decreased
RESOLVED = 1e-9  # share of the mass: a smaller eigenvalue of the dense solver is rounding

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LargeMarginMethod(ProjectionMethod):
    """Decrease sigma to zero from a univariate split: the hyperplane of large margin (LMSC, Section 5).

    At every step the rows nearest to the threshold count one by one, the others as means over intervals along
    the normal; each step costs two passes. The steps of a large node are those of its largest sample, and
    only the last threshold is placed among all rows. A step that leaves less than `least_share` of the weight
    on one side is not taken, and the search ends: rows without clusters have their largest gaps at the edges.
    If the gap is not clearly wider than the spacing of the rows when sigma has come down to that width, or at
    the end, the split at the fixed scale is returned: between gaps that exist by chance, rounding would
    decide.
    """

    least_share: float = 0.25
    n_rows: int = 400

    def refine(self, opened: Opened, split: Split) -> Query[Split]:
        """Halve sigma until the normal no longer turns."""
        node = opened.node
        few = replace(opened.finest_sample, deviation=node.deviation)
        own = few.standardization
        assert isinstance(split.boundary, Hyperplane)
        sigma, beta = split.facts["sigma"] / own.unit, split.facts["beta"]
        direction, threshold = split.direction, split.boundary.about(own.mean).threshold / own.unit
        n_iter, status, norm = split.n_iter, split.status, split.gradient_norm
        near = yield from around_threshold(few, direction, threshold, self.n_rows)
        balance = min(near.smaller, self.least_share * own.total)
        for _ in range(HALVINGS):
            is_clear = near.gap > CLEAR * near.spacing
            if near.gap > UNDERFLOW * sigma / 2.0 or (sigma < CLEAR * near.spacing and not is_clear):
                break  # the gap is exact; or only gaps that exist by chance are left to be found
            end = minimize_at_scale(
                near.rows, direction, ConnectivityIndex(sigma / 2.0, beta, normalized=False)
            )
            turned_to, there = end.point.direction, end.point.index_value.threshold
            attempt = yield from around_threshold(few, turned_to, there, self.n_rows)
            if attempt.smaller < balance:
                break
            angle = math.acos(min(1.0, abs(float(turned_to @ direction))))
            near, sigma, direction = attempt, sigma / 2.0, turned_to
            n_iter, status, norm = n_iter + end.n_iter, end.status, end.gradient_norm
            if angle < SETTLED:
                break
        if not node.is_local:
            middle = Hyperplane.of(own, direction, near.middle, own.mean).about(node.standardization.mean)
            own, status = node.standardization, PASS_LIMIT
            near = yield from around_threshold(node, direction, middle.threshold / own.unit, self.n_rows)
        if near.smaller < node.min_weight or not near.gap > CLEAR * near.spacing:
            return split
        margin = own.unit * near.gap / 2.0
        outcome = Outcome(
            direction=direction,
            threshold=near.middle,
            value=split.value,
            status=status,
            n_iter=n_iter,
            gradient_norm=norm,
            facts={"sigma": own.unit * sigma, "beta": beta, "margin": margin},
        )
        return (yield from measure_boundary(node, self, outcome)) or split


@dataclass(frozen=True)
class Coordinates:
    """Micro-clusters of a node, and the principal components from which starts are made.

    For very wide rows, both are coordinates along a few principal `axes`.
    """

    clusters: MicroClusters
    components: FloatArray
    deviation: float
    axes: FloatArray | None

    def are_too_few(self, n_directions: int) -> bool:
        """Return whether there are too few micro-clusters or components for a search."""
        return len(self.clusters.weights) < 3 or len(self.components) < min(2, n_directions)

    def directions(self, found: FloatArray) -> FloatArray:
        """Return directions in these coordinates as directions of the standardized space."""
        return found if self.axes is None else found @ self.axes


@dataclass(frozen=True)
class SeveralMethod(BaseMethod):
    """Minimize lambda_2 over several directions at once, on micro-clusters (Equation 26).

    With `omega` the directions become parallel, and the univariate search starts from their common direction.
    Otherwise a row belongs to the side of the nearest micro-cluster in the projection: the second eigenvector
    is known only for micro-clusters, and a hyperplane could not represent the boundary.
    """

    univariate: ProjectionMethod
    normalized: bool
    similarity: str
    n_directions: int
    omega: float | None
    sigma_factor: float
    betas: tuple[float, ...]
    least_share: float
    n_microclusters: int
    large_margin: bool = False
    given: Coordinates | None = None
    name: str = "spectral connectivity in several directions"

    @property
    def takes_labels(self) -> bool:  # type: ignore[override]
        """Only the univariate search, which follows with `omega`, takes labels."""
        return self.omega is not None

    @property
    def samples(self) -> bool:  # type: ignore[override]
        """Only the univariate search, which follows with `omega`, uses samples."""
        return self.omega is not None and self.univariate.samples

    @property
    def uses_graph(self) -> bool:  # type: ignore[override]
        return self.univariate.neighbor_cut

    def with_graph(self, graph: RowGraph | None) -> SeveralMethod:
        return replace(self, univariate=self.univariate.with_graph(graph))

    def test_quality(self, split: Split, total: float) -> float:
        """Return 1 - lambda_2."""
        return max(0.0, 1.0 - split.value / (1.0 if self.normalized else total))

    def ahead(self, node: Node) -> Sequence[Sample]:
        """Return the samples of the micro-clusters and of the neighbor graph."""
        seeds = node.sample_request(sample_size(node, self.n_microclusters), SEEDS)
        fine = node.sample_request(sample_size(node, FINE_CENTERS), FINE_SEEDS)
        more = _margin_samples(node) if self.large_margin else []
        return [seeds, fine, *more, *power_samples(node), *self.univariate.ahead(node)]

    def prepare(self, opened: Opened) -> Query[SeveralMethod | ProjectionMethod | None]:
        """Make the micro-clusters; return the univariate method with `omega`, or if there are too few."""
        node = opened.node
        given = yield from self._coordinates(node)
        if given.are_too_few(self.n_directions):
            return (yield from self.univariate.prepare(opened))
        ready = replace(self, given=given, univariate=(yield from self.univariate.make_graph(opened)))
        if self.omega is None:
            return ready
        ends = [ready.pursue(start) for start in ready.combinations()]
        ones = np.array([given.directions(_one(end.directions)[None, :])[0] for end in ends])
        joined = replace(self.univariate, init=node.standardization.normals(ones))
        return (yield from joined.prepare(opened))

    def _coordinates(self, node: Node) -> Query[Coordinates]:
        wide = node.n_features > WIDEST
        found = yield from principal(node, COMPONENTS if wide else self.n_directions + EXTRA_COMPONENTS)
        useful = found.directions[found.deviations > USEFUL * found.deviations[0]]
        axes = useful if wide else None
        clusters = yield from microclusters(node, self.n_microclusters, SEEDS, None, axes)
        components = np.eye(len(useful))[: self.n_directions + EXTRA_COMPONENTS] if wide else useful
        return Coordinates(clusters, components, float(found.deviations[0]), axes)

    def starts(self, node: Node) -> Query[tuple[Node, list[FloatArray]]]:
        yield from ()
        assert self.given is not None
        return replace(node, deviation=self.given.deviation), self.combinations()

    def combinations(self) -> list[FloatArray]:
        """Return sets of principal components, those with the smallest sum of ranks first."""
        assert self.given is not None
        components = self.given.components
        n = min(self.n_directions, len(components))
        sets = sorted(itertools.combinations(range(len(components)), n), key=lambda s: (sum(s), s))
        return [components[list(some)] for some in sets[: self.univariate.n_init]]

    def solve(self, node: Node, start: FloatArray) -> Query[several.Directions]:
        yield from ()
        return self.pursue(start)

    def pursue(self, start: FloatArray) -> several.Directions:
        """Minimize over the micro-clusters, with every beta in turn; no pass."""
        assert self.given is not None
        clusters, total = self.given.clusters, float(self.given.clusters.weights.sum())
        return several.pursue(
            clusters,
            start,
            self._indices(start),
            omega=self.omega,
            min_weight=self.least_share * total,
            tol=self.univariate.tol,
            max_iter=self.univariate.max_iter,
        )

    def _indices(self, start: FloatArray) -> list[GraphConnectivity]:
        """Return the index at every beta."""
        assert self.given is not None
        total = float(self.given.clusters.weights.sum())
        sigma = SIGMA * self.sigma_factor * math.sqrt(len(start)) * self.given.deviation * total**-0.2
        return [GraphConnectivity(sigma, beta, self.normalized, self.similarity) for beta in self.betas]

    def choose(self, node: Node, ends: Sequence[several.Directions]) -> Query[list[several.Directions]]:
        """Return the ends with two large enough sides, the best first."""
        yield from ()
        given = self.given
        assert given is not None
        ends = [end for end in ends if not _one_sided(end, given.clusters, self.least_share)] or list(ends)
        if len(ends) == 1 or not self.univariate.neighbor_cut:
            return sorted(ends, key=lambda end: end.result.value)
        graph = self.univariate.graph
        assert graph is not None

        def cut(end: several.Directions) -> float:
            centers = given.clusters.centers @ end.directions.T
            points = graph.project(node.standardization, given.directions(end.directions))
            return graph.cut(end.right[nearest(points, centers)[0]])

        return sorted(ends, key=cut)

    def finish(self, node: Node, end: several.Directions) -> Query[Outcome | None]:
        """Assign all rows to the nearest center in the projection."""
        assert self.given is not None
        clusters = self.given.clusters
        if self.large_margin:
            end, clusters = yield from self._shrink(node, end)
        return (yield from self.assign(node, end, clusters))

    def sides(self, found: GraphValue, mass: FloatArray) -> BoolArray:
        """Return which micro-clusters lie on the right: where the second eigenvector is positive."""
        return np.asarray(found.mode > 0)

    def assign(self, node: Node, end: several.Directions, clusters: MicroClusters) -> Query[Outcome | None]:
        """Assign all rows to the nearest of these centers in the projection."""
        assert self.given is not None
        own = node.standardization
        directions = self.given.directions(end.directions)
        centers = clusters.centers @ end.directions.T
        nearest_sum = NearestSum(Compared(own, directions), centers)
        (mass, _, _), (product,) = yield node.ask(nearest_sum, CovarianceTimes(own, directions))
        centers, mass = centers[mass > 0], mass[mass > 0]
        if len(mass) < 2:
            return None
        right = self.sides(end.index.evaluate(centers - mass @ centers / mass.sum(), mass), mass)
        if min(mass[right].sum(), mass[~right].sum()) < max(node.min_weight, np.finfo(float).tiny):
            return None
        boundary = NearestCenter(own.unit * own.normals(directions), own.mean, own.unit * centers, right)
        direction = boundary.line[0] @ directions
        variances = np.diag(product * own.inverse_scale @ directions.T) / own.total
        eigenvalue, bound = yield from self._eigenvalue(node, end.index, directions, np.sqrt(variances))
        return Outcome(
            direction=direction / float(np.linalg.norm(direction)),
            threshold=0.0,
            value=eigenvalue,
            status=end.status,
            n_iter=max(1, end.n_iter),
            gradient_norm=end.gradient_norm,
            facts={
                "sigma": own.unit * end.index.sigma,
                "beta": end.index.beta,
                "microclusters": float(len(centers)),
                "microcluster_error_bound": bound,
            },
            centers=boundary,
        )

    def _shrink(
        self, node: Node, best: several.Directions
    ) -> Query[tuple[several.Directions, MicroClusters]]:
        """Halve sigma, each time with new micro-clusters, until the directions no longer turn.

        The micro-clusters of a large node are those of a sample.
        """
        assert self.given is not None
        clusters, axes, few = self.given.clusters, self.given.axes, node
        for request in _margin_samples(node):
            few = yield from sample(node, request.n, MARGIN_ROWS)
        for k in range(HALVINGS):
            purpose = f"micro-clusters {k}"
            finer = yield from microclusters(few, self.n_microclusters, purpose, best.directions, axes)
            index = replace(best.index, sigma=best.index.sigma / 2.0)
            objective = several.Objective(finer, index, self.omega)
            settings = {"tol": self.univariate.tol, "max_iter": self.univariate.max_iter}
            end = several.descend(objective, best.directions, **settings)  # type: ignore[arg-type]
            unresolved = end.result.eigenvalue < RESOLVED * few.total
            if unresolved or _one_sided(end, finer, self.least_share):
                break
            turned = angle_between(best.directions, end.directions)
            best, clusters = replace(end, n_iter=best.n_iter + end.n_iter), finer
            if turned < SETTLED_SEVERAL:
                break
        shift = node.standardization.apply(few.standardization.mean[None, :])
        shift = shift if axes is None else shift @ axes.T
        return best, replace(clusters, centers=clusters.centers + shift)

    def _eigenvalue(
        self, node: Node, index: GraphConnectivity, directions: FloatArray, deviations: FloatArray
    ) -> Query[tuple[float, float]]:
        """Return lambda_2 of the rows projected on directions with these deviations, and its relative error.

        Outliers are contracted first and the micro-clusters are made in the projection, where distances are
        shortest: for those of the search, made in the whole space, the bound would be far too large.
        """
        edge = index.beta * deviations
        fine = yield from microclusters(
            node,
            FINE_CENTERS,
            FINE_SEEDS,
            axes=directions,
            place=lambda points: contract_outliers(points, edge, index.sigma)[0],
        )
        eigenvalue = replace(index, beta=1e9).evaluate(fine.centers, fine.weights).eigenvalue
        reach = 2.0 * float(fine.radii.max(initial=0.0))
        diameter = float(np.linalg.norm(np.ptp(fine.centers, axis=0))) + reach
        return eigenvalue, index.error_bound(float(np.sort(fine.radii)[-2:].mean()), diameter)


def _margin_samples(node: Node) -> list[Sample]:
    """Return the sample on which the scale of a large node is decreased; none for a small one."""
    if node.is_local or not node.sample_sizes:
        return []
    return [node.sample_request(node.sample_sizes[-1], MARGIN_ROWS)]


def _one(directions: FloatArray) -> FloatArray:
    """Return the common direction of almost parallel ones."""
    return np.asarray(np.linalg.svd(directions, full_matrices=False)[2][0])


def angle_between(old: FloatArray, new: FloatArray) -> float:
    """Return the largest angle between two subspaces."""
    a, b = np.linalg.qr(old.T)[0], np.linalg.qr(new.T)[0]
    return math.acos(min(1.0, float(np.linalg.svd(a.T @ b)[1].min())))


def _one_sided(end: several.Directions, clusters: MicroClusters, share: float) -> bool:
    right = float(clusters.weights[end.right].sum())
    total = float(clusters.weights.sum())
    return min(right, total - right) < share * total
