"""Projection pursuit: value and gradient of an index at a direction, and the descent from one start.

An index knows only projected points. The chain rule that turns its derivatives into a gradient with respect
to the direction is here, for all indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, side_by_side
from ravine.data.profile import REACH, Grid, ProfileSum, SlopeSum
from ravine.data.query import Query
from ravine.data.standardization import Standardization
from ravine.index.base import CompiledIndex, IndexValue, Profile, ProjectionIndex
from ravine.optimize.descent import Descent, snap, spacing_for
from ravine.optimize.memory_loops import Projector, StandardizedRows

ROUNDING = 1e-13  # share of the largest coordinate: points that differ by less are one
MAX_ROW_SUMS = 1 << 17  # most bins x columns for which the bins keep sums of rows, which give the gradient
SAME_VALUE = 1e-9  # minima of two intervals of thresholds that differ by less are the same
TOGETHER = 0.9999  # cosine above which two runs are at the same hyperplane, if their thresholds agree, too
SAME_THRESHOLD = 0.1  # standard deviations: difference below which thresholds agree
ORDINARY = 10.0  # size of ordinary values; among larger ones, of a tiny bandwidth, no run is clearly behind
HELD_CELLS = 1 << 22  # most values (rows x columns) of a node whose rows are standardized in memory: 32 MiB
TRANSPOSED_ROWS = 1024  # rows that are copied by columns at a time: a processor's cache holds them

Curvature = tuple[FloatArray, FloatArray]  # steps of a descent, and the changes of the gradient along them
NO_SLOPE: FloatArray = np.empty(0)
NO_CURVATURE: Curvature = (np.empty((0, 0)), np.empty((0, 0)))


@dataclass(frozen=True)
class Projected:
    """The rows projected on a direction: their profile, and the sum of each bin's rows if the bins keep it.

    `full` are the bins that are not empty. Without a grid every point of the profile is one row.
    """

    direction: FloatArray
    grid: Grid | None
    full: IntArray
    profile: Profile
    rows: FloatArray | None


@dataclass(frozen=True)
class Evaluated:
    """An index at a direction: its value, the projection that it was computed from, its gradient."""

    projected: Projected
    index_value: IndexValue
    gradient: FloatArray
    known_smaller_side: float | None = None

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
        known = self.known_smaller_side
        return self.profile.smaller_side(self.index_value.threshold) if known is None else known


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


def slope_per_row(value: IndexValue, projected: Projected) -> FloatArray:
    """Return, for each bin, the derivative of an index with respect to a row's position, per row weight."""
    profile = projected.profile
    slope = np.zeros(len(projected.full) if projected.grid is None else projected.grid.n_bins)
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
        assert projected.grid is not None
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
class Pursued:
    """The end of one pursuit: the last valid point, its index and the place of the index in the schedule."""

    point: Evaluated
    index: ProjectionIndex
    stage: int
    curvature: Curvature
    n_iter: int
    status: str


@dataclass(frozen=True)
class Limits:
    """When descents end, see `Descent`, and when the indices after an optimum are left out.

    That is so if the smaller side has `least_share` of the mass. If the intervals of thresholds are `nested`
    and the last one has the same minimum as this one, so have those between them, which are left out; the
    last one is not, because its steps bring ends together that rounding has set apart.
    """

    tol: float
    max_iter: int
    progress: float
    least_share: float = math.inf
    nested: bool = False


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
class InMemory:
    """Standardized rows in memory, in the bins of a grid, for a compiled index: what `descend` does there."""

    projector: Projector
    grid: Grid

    @classmethod
    def of(cls, node: Node, index: ProjectionIndex) -> InMemory | None:
        """Return the rows of a node if they are few and in memory and the index is compiled, else None."""
        held = held_rows(node) if hasattr(index, "line_function") else None
        if held is None:
            return None
        grid = Grid.around_mean(REACH * node.deviation, index.resolution)
        return cls(Projector(held, grid.low, grid.width, grid.n_bins, node.standardization.total), grid)

    def descend(self, index: CompiledIndex, descent: Descent) -> Evaluated:
        """Drive a descent to its end."""
        threshold, valid, smaller = self.projector.descend(index.line_function, index.parameters, descent)
        full, points, mass, std = self.projector.profile()
        profile = Profile(points, mass, self.projector.total, std)
        projected = Projected(descent.direction, self.grid, full, profile, None)
        value = IndexValue(descent.value, NO_SLOPE, threshold, valid=valid)
        return Evaluated(projected, value, descent.end_gradient, smaller)

    def value(self, index: CompiledIndex) -> float:
        """Return the value of another index where the descent ended."""
        return float(self.projector.value(index.line_function, index.parameters))


@dataclass
class Pursuit:
    """A pursuit on its way: it minimizes indices (of one resolution), each from the end of the last.

    `kept` is the last valid end (for the density: the last hyperplane that is a minimizer of the projected
    density), or the very last one if none is valid. Few rows in memory are projected in compiled code, all
    others by requests.
    """

    node: Node
    descent: Descent
    indices: Sequence[ProjectionIndex]
    limits: Limits
    in_memory: InMemory | None
    stage: int = 0  # the next one
    n_iter: int = 0
    kept: Pursued | None = None

    @classmethod
    def begin(
        cls,
        node: Node,
        start: FloatArray,
        indices: Sequence[ProjectionIndex],
        limits: Limits,
        curvature: Curvature | None = None,
    ) -> Pursuit:
        """Return a run that is to begin at a start, with the curvature of an earlier one."""
        descent = Descent(
            start, curvature, tol=limits.tol, progress=limits.progress, max_iter=limits.max_iter
        )
        return cls(node, descent, indices, limits, InMemory.of(node, indices[0]))

    def follow(self, stop: int) -> Query[None]:
        """Minimize the next indices before the one with the number `stop`."""
        last: Evaluated | None = None if self.kept is None else self.kept.point
        while self.stage < stop:
            if not self.descent.running:
                self.descent.restart()
            index: Any = self.indices[self.stage]
            if self.in_memory is not None:
                last = self.in_memory.descend(index, self.descent)
            else:
                known = None if last is None else last.projected
                last = yield from descend(self.node, index, self.descent, known)
            self.note(last, index)

    def note(self, end: Evaluated, index: ProjectionIndex) -> None:
        """Keep the end of a descent if it is better, and find out which index comes next."""
        self.n_iter += self.descent.n_iter
        if self.kept is None or end.index_value.valid or not self.kept.point.index_value.valid:
            self.kept = Pursued(end, index, self.stage, NO_CURVATURE, self.n_iter, self.descent.status)
        self.stage += 1
        final: Any = self.indices[-1]
        if end.smaller_side >= self.limits.least_share * end.profile.total:
            self.stage = len(self.indices)
        elif self.limits.nested and self.stage < len(self.indices) - 1:
            again = self.in_memory.value(final) if self.in_memory else final.evaluate(end.profile).value
            if end.value - again <= SAME_VALUE:
                self.stage = len(self.indices) - 1

    @property
    def end(self) -> Pursued:
        """The end that is kept, with all curvature that is known."""
        assert self.kept is not None
        return replace(self.kept, curvature=self.descent.curvature)


def pursue(
    node: Node,
    start: FloatArray,
    indices: Sequence[ProjectionIndex],
    limits: Limits,
    curvature: Curvature | None = None,
) -> Query[Pursued]:
    """Minimize a sequence of indices, the first from `start`, with the curvature of an earlier descent."""
    pursuit = Pursuit.begin(node, start, indices, limits, curvature)
    yield from pursuit.follow(len(indices))
    return pursuit.end


def pursue_all(
    node: Node,
    starts: Sequence[FloatArray],
    indices: Sequence[ProjectionIndex],
    limits: Limits,
    behind: float,
) -> Query[list[Pursued]]:
    """Run `pursue` from several starts.

    Those that are clearly behind after the first index end at their optimum of it: those whose value is
    higher by `behind`, or that are at the same hyperplane as a better one.
    """
    snapped = [snap(start, spacing_for(limits.tol, len(start))) for start in starts]
    runs = [Pursuit.begin(node, start, indices, limits) for start in snapped]
    yield from side_by_side(node, [run.follow(1) for run in runs])
    firsts = [run.kept.point for run in runs if run.kept]
    ahead = [
        run
        for i, run in enumerate(runs)
        if not any(_leads(firsts, i, j, behind, SAME_THRESHOLD * node.deviation) for j in range(len(runs)))
    ]
    yield from side_by_side(node, [run.follow(len(indices)) for run in ahead])
    return [run.end for run in runs]


def _leads(ends: Sequence[Evaluated], i: int, j: int, behind: float, same: float) -> bool:
    """Return whether end j is so far ahead of end i, or so near to it, that i need not go on."""
    own, other = ends[i], ends[j]
    ahead = own.value - other.value
    if not ahead >= 0.0 or (ahead == 0.0 and i <= j):  # also if both values are infinite
        return False
    if ahead > behind and abs(other.value) <= ORDINARY:
        return True
    cosine = float(own.direction @ other.direction)
    threshold = math.copysign(1.0, cosine) * other.index_value.threshold
    return abs(cosine) > TOGETHER and abs(own.index_value.threshold - threshold) < same


def held_rows(node: Node) -> StandardizedRows | None:
    """Return the rows of a small node in memory, standardized once for all pursuits; else None."""
    rows = node.rows
    if not node.is_local or not isinstance(rows, MemoryRows):  # the same for all engines: the bits differ
        return None
    if rows.picked is not None or node.labels is not None:  # no selections and no labels
        return None
    if rows.shape[0] * (rows.shape[1] if not sparse.issparse(rows.array) else 1) > HELD_CELLS:
        return None
    key = node.standardization.key
    with node.memo.setdefault("holding", Lock()):  # threads that resume from several ends share the rows
        known: tuple[bytes, StandardizedRows] | None = node.memo.get("held")
        if known is None or known[0] != key:
            known = node.memo["held"] = key, _hold(rows, node.standardization)
    return known[1]


def release_rows(node: Node) -> None:
    """Forget the standardized rows of a node: those of all leaves that wait for a pass would add up."""
    node.memo.pop("held", None)


def _hold(rows: MemoryRows, own: Standardization) -> StandardizedRows:
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    if not sparse.issparse(rows.array):
        dense = np.ascontiguousarray(rows.map(lambda block: own.apply(block.dense())))
        return StandardizedRows(weights, dense, _transposed(dense))
    matrix = sparse.csr_array(rows.array)
    values = matrix.data * own.inverse_scale[matrix.indices]
    places = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
    return StandardizedRows(weights, csr=(values, *places), center=own.mean * own.inverse_scale)


def _transposed(array: FloatArray) -> FloatArray:
    """Copy an array by columns, some rows at a time, which stay in the cache: twice as fast for many rows."""
    found = np.empty(array.shape[::-1])
    for a in range(0, len(array), TRANSPOSED_ROWS):
        found[:, a : a + TRANSPOSED_ROWS] = array[a : a + TRANSPOSED_ROWS].T
    return found
