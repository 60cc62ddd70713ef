"""The hyperplane of large margin: the limit of spectral connectivity as its scale goes to zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.microclusters import MicroClusters
from ravine.data.node import Node
from ravine.data.profile import REACH, Grid, ProfileSum
from ravine.data.query import Additive, Answer, AnyArray, Query, Request
from ravine.data.standardization import Standardization
from ravine.index.base import Profile
from ravine.index.connectivity import ConnectivityIndex
from ravine.optimize.descent import CONVERGED, CONVERGED_OBJECTIVE, ITERATION_LIMIT
from ravine.optimize.pursuit import Evaluated, Projected, slope_per_row, tangent

MAX_ITERATIONS = 200  # most iterations; they work on micro-clusters in memory and need no pass over the data
TOL = 1e-6  # largest component of the gradient of sigma log lambda_2 at convergence
ROUNDING = 1e-13  # share of the largest coordinate: points that differ by less are one
BINS = 1 << 12  # bins of the histogram from which intervals of equal weight are made


@dataclass(frozen=True)
class ScaleMinimum:
    """The minimizer at one scale, the gradient's norm (of sigma log lambda_2), and why iterations ended."""

    point: Evaluated
    gradient_norm: float
    n_iter: int
    status: str


def minimize_at_scale(rows: MicroClusters, start: FloatArray, index: ConnectivityIndex) -> ScaleMinimum:
    """Minimize the connectivity of rows in memory, projected exactly, without bins.

    As its scale sigma goes to zero, the minimizer becomes the normal of the hyperplane of largest margin
    (Theorem 4 of the paper). sigma log lambda_2 is minimized, which tends to minus the width of the margin.
    """

    def evaluate(free: FloatArray) -> Evaluated:
        projected = project_exactly(rows.centers, rows.weights, free / np.linalg.norm(free))
        value = index.evaluate(projected.profile)
        assert projected.rows is not None
        gradient = slope_per_row(value, projected) @ projected.rows
        return Evaluated(projected, value, tangent(gradient, projected.direction))

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        point = evaluate(free)
        return index.sigma * point.value, index.sigma * point.gradient / np.linalg.norm(free)

    options = {"maxiter": MAX_ITERATIONS, "maxcor": 20, "gtol": TOL, "ftol": 1e-12}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    status, norm = (
        ITERATION_LIMIT if found.status == 1 else CONVERGED_OBJECTIVE,
        float(np.linalg.norm(found.jac)),
    )
    if float(np.abs(found.jac).max()) <= TOL:
        status = CONVERGED
    return ScaleMinimum(evaluate(found.x), norm, int(found.nit), status)


def project_exactly(rows: FloatArray, mass: FloatArray, direction: FloatArray) -> Projected:
    """Project standardized rows in memory on a direction: sorted, without bins.

    Rows with the same projection (up to rounding) are one point.
    """
    projected = rows @ direction
    order = np.argsort(projected, kind="stable")
    line = projected[order]
    apart = np.diff(line) > ROUNDING * np.abs(line).max(initial=0.0)
    first = np.flatnonzero(np.append(True, apart))
    weight = np.add.reduceat(mass[order], first)
    sums = np.add.reduceat(mass[order, None] * rows[order], first, axis=0)
    points, total = sums @ direction / weight, float(mass.sum())
    profile = Profile(points, weight, total, math.sqrt(weight @ points**2 / total))
    return Projected(direction, None, np.arange(len(points)), profile, sums)


@dataclass(frozen=True)
class NearestRows(Request):
    """Request for the n rows nearest to a threshold along a direction, on each side of it.

    Rows at the same distance as the n-th are included, so that the order of the rows does not matter. Answer
    per side: positions along the direction, weights, and the standardized rows; then the weight of each side.
    """

    standardization: Standardization
    direction: FloatArray
    threshold: float
    n: int

    def start(self, n_features: int) -> Answer:
        none = np.empty(0), np.empty(0), np.empty((0, n_features))
        return [*none, *none, np.zeros(2)]  # type: ignore[return-value]  # a list: replaced in place

    def add(self, block: Block, answer: Answer) -> None:
        own = self.standardization
        points = block.project(own.mean, own.normals(self.direction)[None, :])[0]
        parts: list[FloatArray] = []
        sides = points <= self.threshold, points > self.threshold
        for side in sides:
            some = np.flatnonzero(side & (block.weights > 0))
            some = some[self._nearest(points[some])]
            parts += [points[some], block.weights[some], own.apply(block.take(some).dense())]
        weights = np.array([block.weights[side].sum() for side in sides])
        answer[:] = self.merge(answer, (*parts, weights))  # type: ignore[index]

    def merge(self, left: Answer, right: Answer) -> Answer:
        parts: list[FloatArray] = []
        for k in (0, 3):
            points, weights, rows = (np.concatenate([left[k + i], right[k + i]]) for i in range(3))
            near = self._nearest(points)
            parts += [points[near], weights[near], rows[near]]
        return [*parts, left[6] + right[6]]  # type: ignore[return-value]

    def _nearest(self, points: FloatArray) -> IntArray:
        if len(points) <= self.n:
            return np.arange(len(points))
        distances = np.abs(points - self.threshold)
        return np.flatnonzero(distances <= np.partition(distances, self.n - 1)[self.n - 1])


@dataclass(frozen=True)
class IntervalSum(Additive):
    """Request for the weight and the sum of the rows in each interval between edges along a direction."""

    standardization: Standardization
    direction: FloatArray
    edges: FloatArray

    def start(self, n_features: int) -> Answer:
        return np.zeros(len(self.edges) + 1), np.zeros((len(self.edges) + 1, n_features))

    def add(self, block: Block, answer: Answer) -> None:
        (mass, sums), own = answer, self.standardization
        points = block.project(own.mean, own.normals(self.direction)[None, :])[0]
        interval = np.searchsorted(self.edges, points)
        mass += np.bincount(interval, block.weights, len(mass))
        block.group_sums(own.mean, block.weights, interval, sums)


@dataclass(frozen=True)
class AroundThreshold:
    """The rows near a threshold one by one, and the others as means over intervals along the normal.

    `smaller` is the weight of the lighter side, `gap` the distance between the rows next to the threshold,
    `middle` the position halfway between them, and `spacing` the mean distance between consecutive rows near
    the threshold, without the gap.
    """

    rows: MicroClusters
    smaller: float
    gap: float
    middle: float
    spacing: float


def around_threshold(node: Node, direction: FloatArray, threshold: float, n: int) -> Query[AroundThreshold]:
    """Return about n micro-clusters, half of them the rows nearest to a threshold; two passes."""
    own, quarter = node.standardization, max(1, n // 4)
    reach = REACH * node.deviation
    grid = Grid(-reach, 2 * reach / BINS, BINS)
    near, (mass, _, _) = yield node.ask(
        NearestRows(own, direction, threshold, quarter), ProfileSum(own, direction, grid, with_rows=False)
    )
    below, above = near[0], near[3]
    low = float(below.min()) if len(below) else threshold
    high = float(above.max()) if len(above) else threshold
    edges = _edges(grid, mass, low, high, quarter)
    ((mass, sums),) = yield node.ask(IntervalSum(own, direction, edges))
    mass[np.searchsorted(edges, high)] = 0.0  # the interval of the nearest rows, which count one by one
    full = mass > 0
    centers = [near[2], near[5], sums[full] * own.inverse_scale / mass[full, None]]
    clusters = MicroClusters(np.concatenate(centers), np.concatenate([near[1], near[4], mass[full]]))
    gap = float(above.min() - below.max()) if len(below) and len(above) else 0.0
    middle = float(below.max() / 2 + above.min() / 2) if gap else threshold
    spacing = (high - low - gap) / max(1, _n_places(below) + _n_places(above) - 2)
    return AroundThreshold(clusters, float(near[6].min()), gap, middle, spacing)


def _n_places(points: FloatArray) -> int:
    """Return the number of different points, so that copies are like weights; up to rounding."""
    apart = np.diff(np.sort(points)) > ROUNDING * np.abs(points).max(initial=0.0)
    return min(len(points), 1) + int(apart.sum())


def _edges(grid: Grid, mass: FloatArray, low: float, high: float, n: int) -> FloatArray:
    """Return the edges of about n intervals of equal weight on each side of the interval from low to high.

    The weight is counted outward from there, so that mirrored rows have mirrored edges. For the same reason a
    row at an edge belongs to the interval nearer to the threshold: `searchsorted` puts a row at an edge into
    the interval left of it, so that edges left of the threshold are moved down by one floating-point number.
    """
    ends = grid.low + grid.width * np.arange(1, grid.n_bins + 1)
    right = _even(ends[ends > high], mass[ends > high], n)
    starts = (ends - grid.width)[::-1]
    left = _even(starts[starts < low], mass[::-1][starts < low], n)
    return np.unique(np.concatenate([np.nextafter([low, *left], -np.inf), [high, *right]]))


def _even(ends: AnyArray, mass: FloatArray, n: int) -> FloatArray:
    """Return the ends at which the cumulative mass reaches 1/n, 2/n, ... of the total."""
    if mass.sum() == 0.0:
        return np.empty(0)
    reached = np.cumsum(mass) / mass.sum()
    return np.asarray(ends[np.unique(np.searchsorted(reached, np.arange(1, n) / n))])
