"""Maximin separation probability: alternate between two sides and the hyperplane that tells them apart best.

Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Query, RowBlocks, gather
from ravine.data.profile import Grid, ProfileSum
from ravine.data.standardization import Standardization, fix_sign, principal, standardization_of
from ravine.exceptions import InvalidInputError
from ravine.index.density import MinimumDensityIndex, bandwidth, relative_depth
from ravine.index.separation import SeparationSchedule
from ravine.optimize.pursuit import REACH, View, project
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.labels import Labels, support_machine
from ravine.split.minimax import minimax
from ravine.split.projection import ProjectionSplitter
from ravine.split.sides import LineMoments, Side, SideSums, kappa, variance, varying

SOLVERS = ("mpm", "gep", "eig", "pursuit")
MAX_FEATURES = 4096  # above, the (d, d) matrices of mpm and gep no longer fit
LLOYD_ROUNDS = 50  # of the k-means start
SWITCHED = 1e-4  # rounds end when less than this share of the weight changes side
CUT_BINS = 1 << 14  # of the projected rows, between which gep looks for its threshold
LEAST_RIDGE = 1e-12  # keeps a covariance of unit variances invertible

SETTLED = "no row changes side"
STOPPED = "the limit of rounds was reached"


@dataclass(frozen=True)
class Found:
    """A hyperplane w . z = cut in the frame of a solver, how many rounds it took, and why they ended."""

    direction: FloatArray
    threshold: float
    n_iter: int
    status: str


def two_means(standardization: Standardization, starts: FloatArray) -> Query[Hyperplane]:
    """Run 2-means from the hyperplanes across some directions at the mean; return the best end's boundary.

    All starts share passes. The best is the one with the least scatter within the two sides.
    """
    ends = yield from gather([_lloyd(standardization, start) for start in starts])
    return max(ends, key=lambda end: end[1])[0]


def _lloyd(standardization: Standardization, direction: FloatArray) -> Query[tuple[Hyperplane, float]]:
    """Return the boundary at the end of Lloyd's rounds, and the scatter between its sides."""
    plane, before, between = (
        Hyperplane(standardization.weights(direction), standardization.mean, 0.0),
        None,
        0.0,
    )
    right = Side(0.0, np.zeros(len(direction)), np.zeros((0, 0)))
    for _ in range(LLOYD_ROUNDS):
        (answer,) = yield [SideSums(standardization, plane, before, squares=False)]
        right += Side.of(answer)
        left_weight = standardization.total - right.weight
        if min(left_weight, right.weight) <= 0.0 or answer[0][1] <= SWITCHED * standardization.total:
            break
        centers = -right.total / left_weight, right.total / right.weight
        apart = centers[1] - centers[0]
        between = left_weight * right.weight / standardization.total * float(apart @ apart)
        before = plane
        plane = Hyperplane(
            standardization.weights(apart), standardization.mean, float(apart @ (centers[0] + centers[1])) / 2
        )
    return plane, between


class Step(Protocol):
    """Half a round: the hyperplane for two sides."""

    def take(self, right: Side) -> Query[tuple[FloatArray, float] | None]:
        """Return direction and cut for the rows on the right and all others; None if there is no cut."""


class MinimaxStep:
    """The minimax probability machine of both sides: it sees their moments and no rows."""

    def __init__(self, own: Standardization, whole: Side, regularization: float) -> None:
        self.whole, self.balance, self.slope = whole, 0.5, -1.0
        self.varies, self.regularization = varying(own), regularization

    def take(self, right: Side) -> Query[tuple[FloatArray, float] | None]:
        """Return the machine's direction and threshold; it starts from where the last round's ended."""
        yield from ()
        left = self.whole - right
        spread = [side.covariance(self.varies) for side in (left, right)]
        for matrix in spread:
            matrix[np.diag_indices(len(self.varies))] += self.regularization
        apart = (right.mean - left.mean)[self.varies]
        machine = minimax(spread[0], spread[1], apart, self.balance, self.slope)
        self.balance, self.slope = machine.balance, machine.slope
        w = np.zeros(len(right.total))
        w[self.varies] = machine.direction
        return w, float(w @ right.mean) - machine.reach


class BoundStep:
    """The lower bound of MSP (Equations 4 and 5): Fisher's direction, and the best threshold along it."""

    def __init__(self, own: Standardization, whole: Side, regularization: float, min_share: float) -> None:
        from scipy.linalg import cho_factor

        self.own, self.whole, self.regularization, self.min_share = own, whole, regularization, min_share
        self.varies = varying(own)
        self.covariance = whole.covariance(self.varies).T  # the upper triangle, as LAPACK stores it
        ridge = max(regularization, LEAST_RIDGE) * np.eye(len(self.varies))
        self.factor = cho_factor(self.covariance + ridge)

    def take(self, right: Side) -> Query[tuple[FloatArray, float] | None]:
        """Return the direction for these means and, after a pass, its best threshold."""
        from scipy.linalg import cho_solve
        from scipy.linalg.blas import dsymv

        left_mean = (self.whole.total - right.total) / (self.whole.weight - right.weight)
        short = cho_solve(self.factor, (right.mean - left_mean)[self.varies])
        short /= np.linalg.norm(short)
        w = np.zeros(len(right.total))
        w[self.varies] = short
        variance = float(short @ dsymv(1.0, self.covariance, short))
        reach = REACH * math.sqrt(variance)
        grid = Grid.around_mean(reach, 2 * reach / CUT_BINS)
        ((mass, moment, _),) = yield [ProfileSum(self.own, w, grid, with_rows=False)]
        min_weight = self.min_share * self.own.total
        threshold = best_threshold(grid, mass, moment, variance + self.regularization, min_weight)
        return None if threshold is None else (w, threshold)


@dataclass(frozen=True)
class SeparationSplitter:
    """Looks for the split with the highest separation probability, by one of four solvers.

    `mpm` and `gep` start from 2-means (or from the labels `init`) and alternate: the hyperplane for the
    sides, then the sides of the hyperplane. They work in a frame in which every column of the rows at hand
    has unit variance, so that the regularizer lambda diag(covariance) is lambda times the identity.

    Labels add starts to `mpm` and `gep`, the hyperplanes of a support vector machine on the labeled rows; of
    several ends (for `eig`, eigenvectors) the one counts that leaves the fewest pairs of different classes on
    one side. In `pursuit` they are a penalty.
    """

    solver: str = "mpm"
    regularization: float = 1.0
    min_share: float = 0.05
    standardize: bool = True
    n_init: int = 4
    init: IntArray | None = None
    max_iter: int = 50
    labels: Labels | None = None

    def wider(self) -> tuple[()]:
        """Return nothing: cuts may lie anywhere as it is."""
        return ()

    def steered(self, labels: Labels) -> SeparationSplitter:
        """Return the same search with labels; those given as `init` are the start as before."""
        return replace(self, labels=labels)

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the split; a pass a round for mpm, two for gep.

        Its value is 1 - MSP, and its quality the relative depth of the density at the cut, as in all methods.
        """
        standardization = yield from standardization_of(rows, root, self.standardize)
        varies = standardization.inverse_scale > 0
        if not varies.any():
            return standardization, None
        own = replace(
            standardization, inverse_scale=1.0 / np.where(varies, standardization.deviation, np.inf)
        )
        if self.solver == "pursuit":
            found = yield from self._pursue(rows, root, own, min_weight, rng)
        else:
            min_weight = max(min_weight, self.min_share * standardization.total)
            if self.solver == "eig":
                found = yield from self._relaxed(rows, standardization, own, min_weight, rng)
            else:
                found = yield from self._alternate(rows, root, standardization, own, rng)
        if found is None:
            return standardization, None
        pivot = (root or standardization).mean
        return standardization, (yield from self._finish(standardization, own, found, min_weight, pivot))

    def _alternate(
        self,
        rows: RowBlocks,
        root: Standardization | None,
        standardization: Standardization,
        own: Standardization,
        rng: np.random.Generator,
    ) -> Query[Found | None]:
        """Start, measure both sides, and run the rounds of mpm or gep from each start."""
        if rows.shape[1] > MAX_FEATURES:
            raise InvalidInputError(
                f"solver={self.solver!r} holds matrices of n_features x n_features, with {MAX_FEATURES} "
                f"features at most, got {rows.shape[1]}: use solver='eig' or 'pursuit'"
            )
        squares = self.solver == "mpm"
        if self.init is not None and root is None:
            (first,) = self._given(rows).pass_over([SideSums(own, None, squares=squares)])
            (answer,) = yield [SideSums(own, None)]
            return (yield from self._rounds(own, Side.of(answer), None, Side.of(first)))
        found = yield from principal(rows, standardization, self.n_init, rng)
        usual = yield from two_means(standardization, found.directions)
        planes = [usual, *self._labeled_starts(standardization)]
        *firsts, answer = yield [
            *(SideSums(own, plane, squares=squares) for plane in planes),
            SideSums(own, None),
        ]
        ends = yield from gather(
            [
                self._rounds(own, Side.of(answer), plane, Side.of(first))
                for plane, first in zip(planes, firsts, strict=True)
            ]
        )
        there = [end for end in ends if end is not None]
        return min(there, key=lambda end: self._pairs_together(own, end), default=None)

    def _labeled_starts(self, standardization: Standardization) -> list[Hyperplane]:
        """Return the hyperplanes of a support vector machine on the labeled rows."""
        if self.labels is None:
            return []
        standardized = (self.labels.rows - standardization.mean) * standardization.inverse_scale
        normals, intercepts = support_machine(standardized, self.labels.classes, self.labels.weights)
        return [
            Hyperplane(standardization.weights(w), standardization.mean, -float(b))
            for w, b in zip(normals, intercepts, strict=True)
            if w.any()
        ]

    def _pairs_together(self, own: Standardization, end: Found) -> float:
        """Return the weight of labeled pairs of different classes that an end leaves on one side."""
        if self.labels is None:
            return 0.0
        return self.labels.left_together(own.mean, own.weights(end.direction), end.threshold)

    def _rounds(
        self, own: Standardization, whole: Side, plane: Hyperplane | None, right: Side
    ) -> Query[Found | None]:
        """Alternate between the hyperplane for two sides and the sides of the hyperplane."""
        squares = self.solver == "mpm"
        step: Step
        if squares:
            step = MinimaxStep(own, whole, self.regularization)
        else:
            step = BoundStep(own, whole, self.regularization, self.min_share)
        for n_iter in range(1, self.max_iter + 1):
            if min(whole.weight - right.weight, right.weight) <= 0.0:
                return None
            taken = yield from step.take(right)
            if taken is None:
                return None
            w, threshold = taken
            before, plane = plane, Hyperplane(own.weights(w), own.mean, threshold)
            (answer,) = yield [SideSums(own, plane, before, squares)]
            if before is not None and answer[0][1] <= SWITCHED * own.total:
                return Found(w, threshold, n_iter, SETTLED)
            right = Side.of(answer) if before is None else right + Side.of(answer)
        return Found(w, threshold, self.max_iter, STOPPED)

    def _given(self, rows: RowBlocks) -> RowBlocks:
        """Return the rows of the second of the two given labels."""
        assert self.init is not None
        values = np.unique(self.init)
        if len(self.init) != rows.shape[0] or len(values) != 2:
            raise InvalidInputError(
                f"init has to hold one of two labels for each of the {rows.shape[0]} rows, "
                f"got {len(self.init)} labels with {len(values)} different values"
            )
        return rows.select(np.flatnonzero(self.init == values[1]))

    def _relaxed(
        self,
        rows: RowBlocks,
        standardization: Standardization,
        own: Standardization,
        min_weight: float,
        rng: np.random.Generator,
    ) -> Query[Found | None]:
        """Return the relaxed solution (Theorem 3), cut at the mean: of several eigenvectors, the surest.

        The indicator is the top eigenvector q of X (X'X + lambda Lambda)^-1 X'. With u = X'q this is
        X'X y = mu Lambda y for y = (X'X + lambda Lambda)^-1 u, whatever lambda: y is the first principal
        direction of the rows with unit variances, and u is Lambda y. So no (n, n) matrix is needed, and
        above 256 features no (d, d) one either. Rows are labeled by the sign of X u, as in the paper.
        """
        found = yield from principal(rows, own, self.n_init, rng)
        candidates = found.directions * (standardization.deviation * standardization.inverse_scale) ** 2
        answers = yield [LineMoments(Hyperplane(own.weights(u), own.mean, 0.0)) for u in candidates]
        allowed = [
            (Found(u, 0.0, 1, "the relaxed problem has a closed solution"), sides)
            for u, (sides,) in zip(candidates, answers, strict=True)
            if sides[:, 0].min() >= max(min_weight, np.finfo(float).tiny)
        ]

        def rank(candidate: tuple[Found, FloatArray]) -> tuple[float, float]:
            end, sides = candidate
            ridge = self.regularization * float(end.direction @ end.direction)
            return self._pairs_together(own, end), -kappa(sides, ridge)

        return min(allowed, key=rank)[0] if allowed else None

    def _pursue(
        self,
        rows: RowBlocks,
        root: Standardization | None,
        own: Standardization,
        min_weight: float,
        rng: np.random.Generator,
    ) -> Query[Found | None]:
        """Maximize the separation probability directly, with the best threshold of every direction."""
        start = None
        if self.init is not None and root is None:
            (answer,) = self._given(rows).pass_over([SideSums(own, None, squares=False)])
            start = own.weights(answer[1])[None, :]
        pursuit = ProjectionSplitter(
            SeparationSchedule(self.regularization, self.min_share),
            standardize=self.standardize,
            n_init=self.n_init,
            init=start,
            max_iter=self.max_iter,
        )
        if self.labels is not None:
            pursuit = pursuit.steered(self.labels)
        standardization, split = yield from pursuit.search(rows, root, min_weight, rng)
        if split is None:
            return None
        plane = split.boundary
        threshold = plane.threshold - float(plane.weights @ (standardization.mean - plane.pivot))
        direction = _divide(plane.weights / standardization.unit, own.inverse_scale)
        return Found(direction, threshold / standardization.unit, split.n_iter, split.status)

    def _finish(
        self,
        standardization: Standardization,
        own: Standardization,
        found: Found,
        min_weight: float,
        pivot: FloatArray,
    ) -> Query[Split | None]:
        """Measure the split by exact sums, fix its sign, and tell its cut from the common pivot."""
        direction = _divide(own.weights(found.direction), standardization.inverse_scale)
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            return None
        direction, threshold = direction / length, found.threshold / length
        turned = fix_sign(direction)
        threshold = threshold if turned is direction else -threshold
        plane = Hyperplane(standardization.weights(turned), standardization.mean, threshold)
        ((sides,),) = yield [LineMoments(plane)]
        if sides[:, 0].min() < max(min_weight, np.finfo(float).tiny):
            return None
        ridge = self.regularization * float(
            np.sum((turned * standardization.deviation * standardization.inverse_scale) ** 2)
        )
        deviation = math.sqrt(max(variance(sides.sum(axis=0)), 0.0))
        index = MinimumDensityIndex(bandwidth(deviation, standardization.total), alpha=np.inf)
        projected = yield from project(View(standardization, deviation), index.resolution, turned)
        return Split(
            boundary=Hyperplane.of(standardization, turned, threshold, pivot),
            direction=turned,
            method=f"maximin separation, {self.solver}",
            value=1.0 / (1.0 + kappa(sides, ridge) ** 2),
            quality=relative_depth(projected.profile, threshold, index.bandwidth),
            gradient_norm=np.nan,
            status=found.status,
            n_iter=found.n_iter,
        )


def best_threshold(
    grid: Grid, mass: FloatArray, moment: FloatArray, variance: float, min_weight: float
) -> float | None:
    """Return the cut of binned centered points with the highest bound of MSP (Equation 4), or None.

    `variance` is that of all points plus the regularizer; each side has at least `least` mass.
    """
    full = np.flatnonzero(mass)
    weight, first = np.cumsum(mass[full])[:-1], np.cumsum(moment[full])[:-1]
    total = float(mass.sum())
    share = weight / total
    apart = (moment.sum() - first) / (total - weight) - first / weight
    smaller = np.minimum(share, 1 - share)
    bound = apart**2 / (2 / smaller * variance - 2 * (1 - smaller) * apart**2)
    allowed = smaller * total >= max(min_weight, np.finfo(float).tiny)
    if not allowed.any():
        return None
    k = int(np.argmax(np.where(allowed, bound, -np.inf)))
    centers = moment[full] / mass[full]
    low, high = grid.low + grid.width * (full[k] + 1), grid.low + grid.width * full[k + 1]
    return float(min(max((centers[k] + centers[k + 1]) / 2, low), high))


def _divide(weights: FloatArray, scale: FloatArray) -> FloatArray:
    """Return weights / scale, and 0 where the scale is."""
    return np.asarray(weights / np.where(scale > 0, scale, np.inf))
