"""The hyperplane of large margin as the limit of weak connectivity, over the rows nearest to a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.microclusters import MicroClusters
from ravine.data.node import Node
from ravine.data.profile import Grid, ProfileSum
from ravine.data.query import Additive, Answer, AnyArray, Query
from ravine.data.standardization import Standardization
from ravine.index.connectivity import ConnectivityIndex
from ravine.optimize.pursuit import REACH, Evaluated, project_exactly, slope_per_row, tangent
from ravine.optimize.sphere import CONVERGED, CONVERGED_OBJECTIVE, ITERATION_LIMIT

MAX_ITERATIONS = 200  # iterations over micro-clusters in memory; they cost no pass over the data
TOL = 1e-6  # of the gradient of sigma log lambda_2, which tends to minus the width of the margin
BINS = 1 << 12  # bins of the histogram that the stretches are made from


@dataclass(frozen=True)
class Widened:
    """The end of one step, its gradient (of sigma log lambda_2), its iterations, and why it ended."""

    point: Evaluated
    gradient_norm: float
    n_iter: int
    status: str


def widen(rows: MicroClusters, start: FloatArray, index: ConnectivityIndex) -> Widened:
    """Minimize the connectivity of rows in memory, sorted along each direction and not binned.

    As its scale goes to zero the minimizer becomes the normal of the hyperplane of largest margin (Theorem 4
    of the paper).
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
    return Widened(evaluate(found.x), norm, int(found.nit), status)


@dataclass(frozen=True)
class NearestRows:
    """Request for the n rows nearest to a threshold along a direction, on each side of it.

    Rows as far as the last of them are in it, too: whether a row counts does not hang on the order of rows.
    Answer per side: places along the direction, weights, and the rows (standardized); then the weight of each
    side.
    """

    standardization: Standardization
    direction: FloatArray
    threshold: float
    n: int

    def start(self, n_features: int) -> Answer:
        """Return no rows."""
        none = np.empty(0), np.empty(0), np.empty((0, n_features))
        return [*none, *none, np.zeros(2)]  # type: ignore[return-value]

    @staticmethod
    def add(block: Block, requests: Sequence[NearestRows], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, so_far in zip(requests, answers, strict=True):
            own = request.standardization
            points = block.project(own.mean, own.normals(request.direction)[None, :])[0]
            parts: list[FloatArray] = []
            for side in (points <= request.threshold, points > request.threshold):
                some = np.flatnonzero(side & (block.weights > 0))
                some = some[request._nearest(points[some])]
                parts += [points[some], block.weights[some], own.apply(block.take(some).dense())]
            sides = [
                block.weights[points <= request.threshold].sum(),
                block.weights[points > request.threshold].sum(),
            ]
            so_far[:] = request.merge(so_far, (*parts, np.array(sides)))  # type: ignore[index]

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Keep the nearest of both."""
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
class StretchSum(Additive):
    """Request for the weight and the sum of the rows between each two edges along a direction."""

    standardization: Standardization
    direction: FloatArray
    edges: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return the sums of no rows."""
        return np.zeros(len(self.edges) + 1), np.zeros((len(self.edges) + 1, n_features))

    @staticmethod
    def add(block: Block, requests: Sequence[StretchSum], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (mass, sums) in zip(requests, answers, strict=True):
            own = request.standardization
            points = block.project(own.mean, own.normals(request.direction)[None, :])[0]
            stretch = np.searchsorted(request.edges, points)
            mass += np.bincount(stretch, block.weights, len(mass))
            block.group_sums(own.mean, block.weights, stretch, sums)


@dataclass(frozen=True)
class AroundThreshold:
    """Rows near a threshold one by one, the others in stretches along its normal; standardized.

    `smaller` is the weight of the lighter side, `gap` the distance between the rows next to the threshold,
    `middle` the place halfway between them, and `spacing` the mean distance between consecutive rows near
    the threshold, without the gap.
    """

    rows: MicroClusters
    smaller: float
    gap: float
    middle: float
    spacing: float


def around_threshold(node: Node, direction: FloatArray, threshold: float, n: int) -> Query[AroundThreshold]:
    """Return about n micro-clusters around a threshold: half of them are its nearest rows; two passes."""
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
    ((mass, sums),) = yield node.ask(StretchSum(own, direction, edges))
    mass[np.searchsorted(edges, high)] = 0.0  # these rows count one by one
    full = mass > 0
    centers = [near[2], near[5], sums[full] * own.inverse_scale / mass[full, None]]
    clusters = MicroClusters(np.concatenate(centers), np.concatenate([near[1], near[4], mass[full]]))
    gap = float(above.min() - below.max()) if len(below) and len(above) else 0.0
    middle = float(below.max() / 2 + above.min() / 2) if gap else threshold
    spacing = (high - low - gap) / max(1, len(below) + len(above) - 2)
    return AroundThreshold(clusters, float(near[6].min()), gap, middle, spacing)


def _edges(grid: Grid, mass: FloatArray, low: float, high: float, n: int) -> FloatArray:
    """Return edges of about n stretches of equal weight on each side of the rows from low to high.

    They are counted outward from there, so that a mirror image has the mirrored edges; a row on an edge
    belongs to the stretch nearer to the threshold.
    """
    ends = grid.low + grid.width * np.arange(1, grid.n_bins + 1)
    right = _even(ends[ends > high], mass[ends > high], n)
    starts = (ends - grid.width)[::-1]
    left = _even(starts[starts < low], mass[::-1][starts < low], n)
    return np.unique(np.concatenate([np.nextafter([low, *left], -np.inf), [high, *right]]))


def _even(ends: AnyArray, mass: FloatArray, n: int) -> FloatArray:
    """Return the places where the cumulative mass passes each of n equal shares."""
    if mass.sum() == 0.0:
        return np.empty(0)
    reached = np.cumsum(mass) / mass.sum()
    return np.asarray(ends[np.unique(np.searchsorted(reached, np.arange(1, n) / n))])
