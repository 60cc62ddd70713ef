"""Spectral connectivity to the letter of its paper: Equation 26, BFGS, sides by spectral clustering.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray
from ravine.data.microclusters import MicroClusters, microclusters
from ravine.data.node import Node, Opened
from ravine.data.query import Query
from ravine.index.graph import SMALLEST, GraphConnectivity, GraphValue
from ravine.optimize import several
from ravine.optimize.descent import CONVERGED_OBJECTIVE, ITERATION_LIMIT
from ravine.papers.variable_metric import variable_metric
from ravine.split.connectivity import (
    HALVINGS,
    RESOLVED,
    SETTLED_SEVERAL,
    BoolArray,
    SeveralMethod,
    angle_between,
)
from ravine.split.projection import ProjectionMethod
from ravine.split.search import Outcome

Found = tuple[several.Directions, MicroClusters]


@dataclass(frozen=True)
class PublishedObjective(several.Objective):
    """lambda_2 + omega times the squared cosines of the directions (Equation 26), minimized by BFGS.

    A positive `omega` makes directions nearly orthogonal, a negative one parallel. lambda_2 of the standard
    Laplacian is divided by the mass, so that omega means the same for any number of rows. The steps are those
    of `optim` in R, which the authors' package uses: parallel directions become one within a few steps, and
    which one depends on the lengths of the first steps.
    """

    def minimize(self, start: FloatArray, *, tol: float, max_iter: int) -> tuple[FloatArray, int, str]:
        """Descend by BFGS; return directions, number of steps, and status."""
        found = minimize(
            self.of_free,
            start.ravel(),
            args=(start.shape,),
            jac=True,
            method=variable_metric,
            options={"maxiter": max_iter, "gtol": tol},
        )
        status = ITERATION_LIMIT if found.status == 1 else CONVERGED_OBJECTIVE
        return self.place(found.x.reshape(start.shape)), int(found.nit), status

    def _free_gradients(self, directions: FloatArray) -> tuple[GraphValue, float, FloatArray]:
        graph = self.index.evaluate(self.clusters.centers @ directions.T, self.clusters.weights)
        second = max(graph.eigenvalue, SMALLEST)
        by_value = second * (1.0 - second) if self.index.normalized else second  # d lambda / d log theta
        unit = 1.0 if self.index.normalized else 1.0 / float(self.clusters.weights.sum())
        gradients = np.einsum("abml,md->abld", unit * by_value * graph.slopes, self.clusters.centers)
        cosines = directions @ directions.T
        np.fill_diagonal(cosines, 0.0)
        omega = self.omega or 0.0
        for a in range(len(gradients)):
            gradients[a, a] += 4.0 * omega * cosines @ directions
        return graph, unit * second + omega * float((cosines**2).sum()), gradients


@dataclass(frozen=True)
class PublishedConnectivity(SeveralMethod):
    """Minimize lambda_2 + omega cos^2 for one beta after the other, until both sides are large enough.

    The sides are those of spectral clustering: 2-means of the first two eigenvectors. The smaller one must
    have half the mean size of a cluster, `least_share` of *all* rows, not of those of the leaf (Section 7.1).
    With `large_margin`, sigma is halved for each beta until the directions no longer turn.
    Every beta begins at the same start, as in the package of the authors.
    """

    takes_labels = False
    samples = False
    name: str = "spectral connectivity as published"

    def prepare(self, opened: Opened) -> Query[SeveralMethod | ProjectionMethod | None]:
        """Make the micro-clusters; return the univariate method if there are too few."""
        given = yield from self._coordinates(opened.node)
        if given.are_too_few(self.n_directions):
            return (yield from self.univariate.prepare(opened))
        return replace(self, given=given, univariate=(yield from self.univariate.make_graph(opened)))

    def sides(self, found: GraphValue, mass: FloatArray) -> BoolArray:
        """Return the sides of spectral clustering."""
        return found.sides_of_means(mass)

    def solve(self, node: Node, start: FloatArray) -> Query[Found]:  # type: ignore[override]
        """Lower beta until both sides are large enough."""
        assert self.given is not None
        everything = node.root or node.standardization
        least, end, clusters = self.least_share * everything.total, None, self.given.clusters
        for index in self._indices(start):
            end, clusters = self._descend(self.given.clusters, index, start), self.given.clusters
            if self.large_margin:
                end, clusters = yield from self._halve_sigma(node, end)
            right = float(clusters.weights[self.sides(end.result, clusters.weights)].sum())
            if min(right, node.total - right) >= least:
                break
        assert end is not None
        return end, clusters

    def _descend(
        self, clusters: MicroClusters, index: GraphConnectivity, start: FloatArray
    ) -> several.Directions:
        objective = PublishedObjective(clusters, index, self.omega)
        return several.descend(objective, start, tol=self.univariate.tol, max_iter=self.univariate.max_iter)

    def _halve_sigma(self, node: Node, best: several.Directions) -> Query[Found]:
        """Halve sigma, with micro-clusters of the projection each time, until the directions settle."""
        assert self.given is not None
        clusters = self.given.clusters
        for k in range(HALVINGS):
            purpose = f"micro-clusters {k}"
            finer = yield from microclusters(
                node, self.n_microclusters, purpose, best.directions, self.given.axes
            )
            index = replace(best.index, sigma=best.index.sigma / 2.0)
            end = self._descend(finer, index, best.directions)
            if end.result.eigenvalue < RESOLVED * node.total:
                break
            turned = angle_between(best.directions, end.directions)
            best, clusters = replace(end, n_iter=best.n_iter + end.n_iter), finer
            if turned < SETTLED_SEVERAL:
                break
        return best, clusters

    def choose(self, node: Node, ends: Sequence[Found]) -> Query[list[Found]]:  # type: ignore[override]
        """Return the ends by their value."""
        yield from ()
        return sorted(ends, key=lambda found: found[0].value)

    def finish(self, node: Node, end: Found) -> Query[Outcome | None]:  # type: ignore[override]
        """Assign all rows to the nearest center in the projection."""
        return (yield from self.assign(node, *end))
