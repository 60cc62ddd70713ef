"""Projection pursuit: value and gradient of an index at a direction, and the descent from one start.

An index knows only projected points. The chain rule that turns its derivatives into a gradient with respect
to the direction is here, for all indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import LOCAL_CELLS, Node, side_by_side
from ravine.data.profile import REACH, Grid, ProfileSum, SlopeSum
from ravine.data.query import Query
from ravine.data.standardization import Standardization
from ravine.index.base import CompiledIndex, IndexValue, Profile, ProjectionIndex
from ravine.optimize.descent import ITERATION_LIMIT, Descent, snap, spacing_for
from ravine.optimize.memory_loops import Projector, StandardizedRows

ORDINARY = 10.0  # size of ordinary values of an index; see `pursue_all`
MAX_ROW_SUMS = 1 << 17  # most bins x columns for which the bins keep sums of rows, which give the gradient
# cosine above which two ends are one hyperplane, if thresholds agree, too; at 0.999 they may still part
SAME_DIRECTION = 0.9999
SAME_THRESHOLD = 0.1  # standard deviations: difference below which thresholds agree
FULL_STEPS = 3  # most steps over all rows after the samples; more change the value by 1 %, no label

PASS_LIMIT = "pass limit"

Curvature = tuple[FloatArray, FloatArray]  # steps of a descent, and the changes of the gradient along them


@dataclass(frozen=True)
class Projected:
    """The rows projected on a direction: their profile, and the sum of each bin's rows if the bins keep it.

    `full` are the bins that are not empty.
    """

    direction: FloatArray
    grid: Grid
    full: IntArray
    profile: Profile
    rows: FloatArray | None


@dataclass(frozen=True)
class Evaluated:
    """An index at a direction: its value, the projection that it was computed from, its gradient."""

    projected: Projected
    index_value: IndexValue
    gradient: FloatArray

    @property
    def direction(self) -> FloatArray:
        return self.projected.direction

    @property
    def profile(self) -> Profile:
        """The profile that the index was evaluated on."""
        return self.projected.profile

    @property
    def value(self) -> float:
        return self.index_value.value

    @property
    def smaller_side(self) -> float:
        """The weight on the lighter side of the threshold."""
        return self.profile.smaller_side(self.index_value.threshold)


def keeps_row_sums(node: Node, width: float) -> bool:
    """Return whether bins of this width keep sums of their rows, so that an evaluation takes one pass."""
    grid = Grid.around_mean(REACH * node.deviation, width)
    return grid.n_bins * node.n_features <= MAX_ROW_SUMS


def project(node: Node, width: float, direction: FloatArray) -> Query[Projected]:
    """Project the rows on a direction, into bins of at most this width; one pass."""
    own = node.standardization
    grid = Grid.around_mean(REACH * node.deviation, width)
    with_rows = grid.n_bins * node.n_features <= MAX_ROW_SUMS
    ((mass, moment, rows),) = yield node.ask(ProfileSum(own, direction, grid, with_rows))
    full = np.flatnonzero(mass)
    points, weight = moment[full] / mass[full], mass[full]
    std = math.sqrt(weight @ points**2 / own.total)
    labeled = None if node.labels is None else node.standardized_labels @ direction
    profile = Profile(points, weight, own.total, std, labeled)
    return Projected(direction, grid, full, profile, rows if with_rows else None)


def slope_per_row(value: IndexValue, projected: Projected) -> FloatArray:
    """Return, for each bin, the derivative of an index with respect to a row's position, per row weight."""
    profile = projected.profile
    slope = np.zeros(projected.grid.n_bins)
    slope[projected.full] = value.slope / profile.mass
    if value.d_std and profile.std > 0.0:
        slope[projected.full] += value.d_std * profile.points / (profile.total * profile.std)
    return slope


def tangent(gradient: FloatArray, direction: FloatArray) -> FloatArray:
    """Project a gradient on the tangent plane of the sphere."""
    return gradient - (gradient @ direction) * direction


def evaluate_projected(node: Node, index: ProjectionIndex, projected: Projected) -> Query[Evaluated]:
    """Return an index of projected rows with its gradient, by the chain rule.

    Needs no pass if the bins have sums of their rows, otherwise one. In both cases the gradient is that of
    the binned value.
    """
    own, v = node.standardization, projected.direction
    value = index.evaluate(projected.profile)
    slope = slope_per_row(value, projected)
    if projected.rows is not None:
        total = slope @ projected.rows
    else:
        (((total,),),) = yield node.ask(SlopeSum(own, v, projected.grid, slope))
    gradient = total * own.inverse_scale
    if value.labeled_slope is not None:
        gradient = gradient + value.labeled_slope @ node.standardized_labels
    return Evaluated(projected, value, tangent(gradient, v))


def evaluate(
    node: Node, index: ProjectionIndex, direction: FloatArray, *, fineness: int = 1
) -> Query[Evaluated]:
    """Return an index and its gradient at a direction, in one or two passes over the rows.

    One is enough if bins x columns <= MAX_ROW_SUMS. `fineness` divides the width of the bins: the error
    decreases with its square.
    """
    projected = yield from project(node, index.resolution / fineness, direction)
    return (yield from evaluate_projected(node, index, projected))


@dataclass(frozen=True)
class Optimum:
    """The end of one pursuit: the last valid point, its index and the place of the index in the schedule."""

    point: Evaluated
    index: ProjectionIndex
    stage: int
    curvature: Curvature
    n_iter: int
    status: str

    def is_near(self, other: Optimum) -> bool:
        """Return whether both are nearly the same hyperplane."""
        cosine = float(self.point.direction @ other.point.direction)
        threshold = math.copysign(1.0, cosine) * other.point.index_value.threshold
        apart = abs(self.point.index_value.threshold - threshold)
        return abs(cosine) > SAME_DIRECTION and apart < SAME_THRESHOLD * self.point.profile.std


def distinct(ends: Sequence[Optimum]) -> list[Optimum]:
    """Return ends, the best first, without those that are nearly the same hyperplane as a better one."""
    kept: list[Optimum] = []
    for end in ends:
        if not any(end.is_near(better) for better in kept):
            kept.append(end)
    return kept


@dataclass(frozen=True)
class StoppingRule:
    """When descents end, see `Descent`, and when the indices after an optimum are left out.

    That is so if the smaller side has `least_share` of the mass. If the intervals of thresholds are `nested`
    and the last one has the same minimum as this one (up to `progress`), those between are left out; the
    last one is not, because its steps bring ends together that rounding has set apart.
    """

    tol: float
    max_iter: int
    progress: float
    least_share: float = math.inf
    nested: bool = False
    behind: float = math.inf


def limit_steps(node: Node, max_iter: int, most: int = FULL_STEPS) -> int:
    """Return how many steps a solver may take on the rows of a node.

    Solvers converge on samples, which are in memory. On all rows of a node that is too large for that they
    only take the last steps, and say so in their status. The rule does not ask which engine holds the rows,
    so that the answer is the same for all engines.
    """
    return max_iter if node.is_local else min(max_iter, most)


def limit_status(node: Node, status: str) -> str:
    """Return the status of a solver, which is "pass limit" if `limit_steps` ended it."""
    return PASS_LIMIT if status == ITERATION_LIMIT and not node.is_local else status


def descend(
    node: Node, index: ProjectionIndex, descent: Descent, projected: Projected | None = None
) -> Query[Evaluated]:
    """Drive a descent by requests: rows anywhere, any index. `projected` may be known at its start."""
    point: Evaluated | None = None
    while descent.running:
        if projected is None or (projected.direction != descent.direction).any():
            projected = yield from project(node, index.resolution, descent.direction)
        trial = yield from evaluate_projected(node, index, projected)
        if descent.tell(trial.value, trial.gradient):
            point = trial
    assert point is not None
    return point


@dataclass(frozen=True)
class CompiledDescent:
    """What `descend` does, for few rows in memory and a compiled index: projections without requests."""

    projector: Projector
    grid: Grid

    @classmethod
    def of(cls, node: Node, index: ProjectionIndex) -> CompiledDescent | None:
        """Return it for a node that has its rows standardized if the index is compiled, else None."""
        if node.standardized is None or not hasattr(index, "line_function"):
            return None
        grid = Grid.around_mean(REACH * node.deviation, index.resolution)
        total = node.standardization.total
        return cls(Projector(node.standardized, grid.low, grid.width, grid.n_bins, total), grid)

    def descend(self, index: CompiledIndex, descent: Descent) -> Evaluated:
        """Drive a descent to its end."""
        threshold, valid = self.projector.descend(index.line_function, index.parameters, descent)
        full, points, mass, std = self.projector.profile()
        profile = Profile(points, mass, self.projector.total, std)
        projected = Projected(descent.direction, self.grid, full, profile, None)
        value = IndexValue(
            descent.value, np.empty(0), threshold, valid=valid
        )  # the slope is not needed again
        return Evaluated(projected, value, descent.end_gradient)

    def value(self, index: CompiledIndex) -> float:
        """Return the value of another index where the descent ended."""
        return float(self.projector.value(index.line_function, index.parameters))


class Pursuit:
    """A pursuit from one start: it minimizes indices (of one resolution), each from the end of the last.

    `best` is the last valid end (for the density: the last hyperplane that is a minimizer of the projected
    density), or the very last one if none is valid.
    """

    def __init__(
        self,
        node: Node,
        start: FloatArray,
        indices: Sequence[ProjectionIndex],
        rule: StoppingRule,
        curvature: Curvature | None = None,
    ) -> None:
        self.node, self.indices, self.rule = node, indices, rule
        self.descent = Descent(start, curvature, tol=rule.tol, progress=rule.progress, max_iter=rule.max_iter)
        self.compiled = CompiledDescent.of(node, indices[0])
        self.next_stage, self.n_iter = 0, 0
        self.best: Optimum | None = None

    def minimize(self, stop: int) -> Query[None]:
        """Minimize the next indices before the one with the number `stop`."""
        end: Evaluated | None = None if self.best is None else self.best.point
        while self.next_stage < stop:
            if not self.descent.running:
                self.descent.restart()
            index: Any = self.indices[self.next_stage]
            if self.compiled is not None:
                end = self.compiled.descend(index, self.descent)
            else:
                known = None if end is None else end.projected
                end = yield from descend(self.node, index, self.descent, known)
            self.n_iter += self.descent.n_iter
            if self.best is None or end.index_value.valid or not self.best.point.index_value.valid:
                curvature, status = self.descent.curvature, self.descent.status
                self.best = Optimum(end, index, self.next_stage, curvature, self.n_iter, status)
            self.next_stage = self.stage_after(end)

    def stage_after(self, end: Evaluated) -> int:
        """Return the number of the index to minimize after the end of a descent."""
        following, last = self.next_stage + 1, len(self.indices) - 1
        if end.smaller_side >= self.rule.least_share * end.profile.total:
            return len(self.indices)
        if self.rule.nested and following < last:
            final: Any = self.indices[last]
            lowest = self.compiled.value(final) if self.compiled else final.evaluate(end.profile).value
            return last if end.value - lowest <= self.rule.progress else following
        return following


def pursue(
    node: Node,
    start: FloatArray,
    indices: Sequence[ProjectionIndex],
    rule: StoppingRule,
    curvature: Curvature | None = None,
) -> Query[Optimum]:
    """Minimize a sequence of indices, the first from `start`, with the curvature of an earlier descent."""
    pursuit = Pursuit(with_standardized_rows(node), start, indices, rule, curvature)
    yield from pursuit.minimize(len(indices))
    assert pursuit.best is not None
    return pursuit.best


def pursue_all(
    node: Node, starts: Sequence[FloatArray], indices: Sequence[ProjectionIndex], rule: StoppingRule
) -> Query[list[Optimum]]:
    """Run `pursue` from several starts.

    Those that are clearly behind after the first index end there, and so do those that have met a better one
    at nearly the same hyperplane.
    """
    snapped = [snap(start, spacing_for(rule.tol, len(start))) for start in starts]
    node = with_standardized_rows(node)
    runs = [Pursuit(node, start, indices, rule) for start in snapped]
    yield from side_by_side(node, [run.minimize(1) for run in runs])
    firsts = sorted((run.best for run in runs if run.best), key=lambda end: end.point.value)
    lowest = firsts[0].point.value
    # the log density of a tiny bandwidth is huge everywhere, and no start is clearly behind
    behind = rule.behind if abs(lowest) <= ORDINARY else math.inf
    ahead = {id(end) for end in distinct(firsts) if not end.point.value - lowest > behind}
    yield from side_by_side(node, [run.minimize(len(indices)) for run in runs if id(run.best) in ahead])
    return [run.best for run in runs if run.best]


def with_standardized_rows(node: Node) -> Node:
    """Return a small node in memory with its rows standardized once, for all pursuits; others as they are."""
    rows = node.rows
    if node.standardized is not None or not node.is_local or not isinstance(rows, MemoryRows):
        return node  # the same for all engines: the bits differ
    if rows.picked is not None or rows.shape[0] * rows.values_per_row > LOCAL_CELLS:
        return node
    return replace(node, standardized=standardize(rows, node.standardization))


def standardize(rows: MemoryRows, own: Standardization) -> StandardizedRows:
    """Return a standardized copy of rows in memory, dense or CSR."""
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    if not sparse.issparse(rows.array):
        dense = np.ascontiguousarray(rows.map(lambda block: own.apply(block.dense())))
        return StandardizedRows(weights, dense, np.ascontiguousarray(dense.T))
    matrix = sparse.csr_array(rows.array)
    values = matrix.data * own.inverse_scale[matrix.indices]
    places = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
    return StandardizedRows(weights, csr=(values, *places), center=own.mean * own.inverse_scale)
