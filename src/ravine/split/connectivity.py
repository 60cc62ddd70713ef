"""Spectral connectivity: its search in several directions, and its large margins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import ArrayBlocks, Query, RowBlocks, run
from ravine.data.microclusters import MicroClusters, around_threshold, microclusters, nearest, of_points
from ravine.data.standardization import Standardization, fix_sign, principal, standardization_of
from ravine.index.connectivity import SIGMA, ConnectivityIndex
from ravine.index.graph import GraphConnectivity
from ravine.index.interval import contract_outliers
from ravine.optimize import several
from ravine.optimize.large_margin import widen
from ravine.split.hyperplane import Hyperplane, NearestCenter, Split
from ravine.split.labels import Labels
from ravine.split.neighbor_cut import NeighborGraph
from ravine.split.projection import ProjectionSplitter

FINE = 600  # micro-clusters in the projection that the reported figures are made of
SPARE = 3  # principal components beyond those of one start, to make other starts from
CLEAR = 10.0  # a gap is one if it is this many times wider than the spacing of the rows beside it
WIDEST = 1024  # columns: wider rows are searched in their principal components
COMPONENTS = 32  # of these
HALVINGS = 40  # of sigma at most
UNDERFLOW = 600.0  # widths of a gap, in units of sigma: its affinity is 1e-260, and the margin exact to 1 %
SETTLED = 1e-3  # the change of the normal, in radians, that ends the search for a large margin
SETTLED_SEVERAL = 0.02  # the same for several directions
RESOLVED = 1e-9  # the share of the mass below which a dense eigenvalue is noise


@dataclass(frozen=True)
class LargeMarginSplitter:
    """Follows sigma to zero from a univariate split: the hyperplane of large margin (LMSC, Section 5).

    At every step the rows nearest to the cut count one by one, the others in groups of neighbors along the
    normal; each step costs three passes. A step that leaves less than `least_share` of the weight on one side
    is not taken, and the search ends there: rows that no hyperplane separates have large gaps at their edges.
    Where the gap at the end is no clear one, such rows have none, and the split of the fixed scale is kept:
    of chance gaps, rounding would choose one.
    """

    univariate: ProjectionSplitter
    least_share: float
    n_rows: int = 400

    def wider(self) -> Sequence[LargeMarginSplitter]:
        """Return nothing."""
        return []

    def steered(self, labels: Labels) -> LargeMarginSplitter:
        """Return the same search from the split of the fixed scale that minds the labels."""
        return replace(self, univariate=self.univariate.steered(labels))

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the split of the fixed scale, then halve the scale until the normal settles."""
        standardization, split = yield from self.univariate.search(rows, root, min_weight, rng)
        if split is None:
            return standardization, None
        assert isinstance(split.boundary, Hyperplane)
        sigma, beta = split.facts["sigma"] / standardization.unit, split.facts["beta"]
        direction = split.direction
        threshold = split.boundary.about(standardization.mean).threshold / standardization.unit
        n_iter, status, norm = split.n_iter, split.status, split.gradient_norm
        near = around_threshold(rows, standardization, direction, threshold, self.n_rows)
        balance = min(near.smaller, self.least_share * standardization.total)
        for _ in range(HALVINGS):
            if near.gap > UNDERFLOW * sigma / 2.0:
                break
            end = widen(near.rows, direction, ConnectivityIndex(sigma / 2.0, beta, normalized=False))
            point = end.point
            trial = around_threshold(
                rows, standardization, point.direction, point.index_value.threshold, self.n_rows
            )
            if trial.smaller < balance:
                break
            turned = math.acos(min(1.0, abs(float(point.direction @ direction))))
            near, sigma, direction, threshold = (
                trial,
                sigma / 2.0,
                point.direction,
                point.index_value.threshold,
            )
            n_iter, status, norm = n_iter + end.n_iter, end.status, end.gradient_norm
            if turned < SETTLED:
                break
        direction, sign = fix_sign(direction), 1.0 if fix_sign(direction) is direction else -1.0
        if near.smaller < min_weight or not near.gap > CLEAR * near.spacing:
            return standardization, split
        return standardization, replace(
            split,
            boundary=Hyperplane.of(
                standardization, direction, sign * near.middle, (root or standardization).mean
            ),
            direction=direction,
            gradient_norm=norm,
            status=status,
            n_iter=n_iter,
            facts={
                "sigma": standardization.unit * sigma,
                "beta": beta,
                "margin": standardization.unit * near.gap / 2.0,
            },
        )


@dataclass(frozen=True)
class SeveralSplitter:
    """Pursues lambda_2 in several directions at once over micro-clusters (Equation 26).

    With `correlated` directions, which end as one, it goes on from there with the univariate search over all
    rows. Otherwise the sides are told by the nearest micro-cluster in the projection: the second eigenvector
    is known there, and only there (a hyperplane could not follow the boundary).
    """

    univariate: ProjectionSplitter
    normalized: bool
    similarity: str
    n_directions: int
    omega: float | None
    sigma_factor: float
    betas: tuple[float, ...]
    least_share: float
    n_microclusters: int
    large_margin: bool = False

    def wider(self) -> Sequence[SeveralSplitter]:
        """Return nothing."""
        return []

    def steered(self, labels: Labels) -> SeveralSplitter | None:
        """Return the same search with labels in its last, univariate part; without one it takes none."""
        return replace(self, univariate=self.univariate.steered(labels)) if self.omega is not None else None

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the best split; one pass for the micro-clusters and one at the end, beside the moments."""
        standardization = yield from standardization_of(rows, root, self.univariate.standardize)
        if not (standardization.inverse_scale > 0).any():
            return standardization, None
        if rows.shape[1] > WIDEST:
            return standardization, (
                yield from self._search_in_components(rows, root, standardization, min_weight, rng)
            )
        found = yield from principal(rows, standardization, self.n_directions + SPARE, rng)
        useful = found.directions[found.deviations > 1e-6 * found.deviations[0]]
        clusters = yield from microclusters(rows, standardization, self.n_microclusters, rng)
        if len(clusters.weights) < 3 or len(useful) < min(2, self.n_directions):
            return (yield from self.univariate.search(rows, root, min_weight, rng))
        n = min(self.n_directions, len(useful))
        sigma = (
            SIGMA
            * self.sigma_factor
            * math.sqrt(n)
            * float(found.deviations[0])
            * standardization.total**-0.2
        )
        ends = [self._pursue(clusters, useful[list(start)], sigma) for start in self._starts(len(useful), n)]
        if self.omega is not None:
            ones = np.array([_one(end.directions) for end in ends])
            return (
                yield from replace(self.univariate, init=standardization.weights(ones)).search(
                    rows, root, min_weight, rng
                )
            )
        best = self._best(rows, standardization, ends, clusters)
        if self.large_margin:
            best, clusters = yield from self._shrink(rows, standardization, best, clusters, rng)
        return standardization, self._finish(
            rows, standardization, best, clusters, min_weight, (root or standardization).mean, rng
        )

    def _search_in_components(
        self,
        rows: RowBlocks,
        root: Standardization | None,
        standardization: Standardization,
        min_weight: float,
        rng: np.random.Generator,
    ) -> Query[Split | None]:
        """Search the principal components of very wide rows: there, rows and micro-clusters are short.

        The directions of the split are in the span of the components. Correlated ones are only a start, from
        which the univariate search goes on in all columns.
        """
        found = yield from principal(rows, standardization, COMPONENTS, rng)
        axes = found.directions[found.deviations > 1e-6 * found.deviations[0]]
        points = rows.map(lambda block: block.project(standardization.mean, standardization.weights(axes)).T)
        narrow = ArrayBlocks(points, rows.map(lambda block: block.weights))
        split = run(
            narrow,
            self.search(narrow, Standardization.identity(len(axes), standardization.total), min_weight, rng),
        )[1]
        if split is None:
            return None
        if isinstance(split.boundary, Hyperplane):
            init = split.boundary.weights @ standardization.weights(axes)
            return (
                yield from replace(self.univariate, init=init[None, :]).search(rows, root, min_weight, rng)
            )[1]
        boundary, direction = split.boundary.about(np.zeros(len(axes))), split.direction @ axes
        flip = fix_sign(direction) is not direction
        whole = NearestCenter(
            standardization.unit * boundary.directions @ standardization.weights(axes),
            standardization.mean,
            standardization.unit * boundary.centers,
            boundary.right != flip,
        )
        return replace(
            split,
            boundary=whole.about((root or standardization).mean),
            direction=fix_sign(direction),
            facts={**split.facts, "sigma": standardization.unit * split.facts["sigma"]},
        )

    def _starts(self, n_useful: int, n: int) -> list[tuple[int, ...]]:
        """Return sets of principal components, the strongest first."""
        sets = sorted(itertools.combinations(range(n_useful), n), key=lambda s: (sum(s), s))
        return sets[: self.univariate.n_init]

    def _pursue(self, clusters: MicroClusters, start: FloatArray, sigma: float) -> several.Directions:
        return several.pursue(
            clusters,
            start,
            [GraphConnectivity(sigma, beta, self.normalized, self.similarity) for beta in self.betas],
            omega=self.omega,
            min_weight=self.least_share * float(clusters.weights.sum()),
            tol=self.univariate.tol,
            max_iter=self.univariate.max_iter,
        )

    def _best(
        self,
        rows: RowBlocks,
        standardization: Standardization,
        ends: list[several.Directions],
        clusters: MicroClusters,
    ) -> several.Directions:
        """Return the best of the ends with two large enough sides, judged as the univariate splitter does."""
        ends = [end for end in ends if not _one_sided(end, clusters, self.least_share)] or ends
        if len(ends) == 1 or not self.univariate.spare_neighbors:
            return min(ends, key=lambda end: end.result.value)
        graph = NeighborGraph.of(rows, standardization)

        def cut(end: several.Directions) -> float:
            centers = clusters.centers @ end.directions.T
            return graph.cut(end.right[nearest(graph.project(end.directions), centers)[0]])

        return min(ends, key=cut)

    def _shrink(
        self,
        rows: RowBlocks,
        standardization: Standardization,
        best: several.Directions,
        clusters: MicroClusters,
        rng: np.random.Generator,
    ) -> Query[tuple[several.Directions, MicroClusters]]:
        """Halve sigma, with micro-clusters made anew in the projection, until the plane settles."""
        for _ in range(HALVINGS):
            finer = yield from microclusters(
                rows, standardization, self.n_microclusters, rng, best.directions
            )
            index = replace(best.index, sigma=best.index.sigma / 2.0)
            objective = several.Objective(finer, index, self.omega)
            end = several.descend(
                objective, best.directions, tol=self.univariate.tol, max_iter=self.univariate.max_iter
            )
            if end.result.eigenvalue < RESOLVED * standardization.total or _one_sided(
                end, finer, self.least_share
            ):
                break
            turned = _angle(best.directions, end.directions)
            best, clusters = replace(end, n_iter=best.n_iter + end.n_iter), finer
            if turned < SETTLED_SEVERAL:
                break
        return best, clusters

    def _finish(
        self,
        rows: RowBlocks,
        standardization: Standardization,
        best: several.Directions,
        clusters: MicroClusters,
        min_weight: float,
        pivot: FloatArray,
        rng: np.random.Generator,
    ) -> Split | None:
        """Assign all rows to the nearest center in the projection, and judge the split by finer ones."""
        weights = standardization.weights(best.directions)
        points = rows.map(lambda block: block.project(standardization.mean, weights).T)
        row_weights = rows.map(lambda block: block.weights)
        counted = row_weights > 0
        points, row_weights = points[counted], row_weights[counted]
        centers = clusters.centers @ best.directions.T
        group = nearest(points, centers)[0]
        mass = np.asarray(np.bincount(group, row_weights, len(centers)), dtype=np.float64)
        centers, mass = centers[mass > 0], mass[mass > 0]
        if len(mass) < 2:
            return None
        right = best.index.evaluate(centers - mass @ centers / mass.sum(), mass).mode > 0
        if min(mass[right].sum(), mass[~right].sum()) < max(min_weight, 1e-300):
            return None
        boundary = NearestCenter(
            standardization.unit * weights, standardization.mean, standardization.unit * centers, right
        )
        direction = boundary.line[0] @ best.directions
        if fix_sign(direction) is not direction:
            boundary, direction = replace(boundary, right=~right), -direction
        eigenvalue, bound = _measure(best.index, points, row_weights, rng)
        quality = 1.0 - eigenvalue / (1.0 if self.normalized else standardization.total)
        return Split(
            boundary=boundary.about(pivot),
            direction=direction / float(np.linalg.norm(direction)),
            method="spectral connectivity in several directions",
            value=eigenvalue,
            quality=min(max(quality, 0.0), 1.0),
            gradient_norm=best.gradient_norm,
            status=best.status,
            n_iter=max(1, best.n_iter),
            facts={
                "sigma": standardization.unit * best.index.sigma,
                "beta": best.index.beta,
                "microclusters": float(len(centers)),
                "microcluster_error_bound": bound,
            },
        )


def _measure(
    index: GraphConnectivity, points: FloatArray, weights: FloatArray, rng: np.random.Generator
) -> tuple[float, float]:
    """Return lambda_2 of projected rows, and the bound on its relative error.

    The rows are drawn in first and gathered there, where distances are shortest: the micro-clusters that
    the directions were found with are far too coarse for the bound to mean anything.
    """
    std = np.sqrt(weights @ points**2 / weights.sum())
    drawn = contract_outliers(points, index.beta * std, index.sigma)[0]
    fine, radii = of_points(drawn, weights, FINE, rng)
    eigenvalue = replace(index, beta=1e9).evaluate(fine.centers, fine.weights).eigenvalue
    diameter = float(np.linalg.norm(np.ptp(drawn, axis=0)))
    return eigenvalue, index.error_bound(float(np.sort(radii)[-2:].mean()), diameter)


def _one(directions: FloatArray) -> FloatArray:
    """Return the common direction of almost parallel ones."""
    return np.asarray(np.linalg.svd(directions, full_matrices=False)[2][0])


def _angle(old: FloatArray, new: FloatArray) -> float:
    """Return the largest angle between two subspaces."""
    a, b = np.linalg.qr(old.T)[0], np.linalg.qr(new.T)[0]
    return math.acos(min(1.0, float(np.linalg.svd(a.T @ b)[1].min())))


def _one_sided(end: several.Directions, clusters: MicroClusters, share: float) -> bool:
    right = float(clusters.weights[end.right].sum())
    total = float(clusters.weights.sum())
    return min(right, total - right) < share * total
