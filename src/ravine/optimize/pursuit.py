"""Projection pursuit: value and gradient of an index at a direction, and the descent from one start.

An index knows only projected points. The chain rule that turns its derivatives into a gradient with respect
to the direction is here, for all indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node
from ravine.data.profile import REACH, Grid, ProfileSum, SlopeSum
from ravine.data.query import Query, gather
from ravine.data.standardization import Standardization
from ravine.index.base import CompiledIndex, IndexValue, Profile, ProjectionIndex
from ravine.optimize import first_fit
from ravine.optimize.sphere import (
    CONVERGED,
    CONVERGED_OBJECTIVE,
    ITERATION_LIMIT,
    MEMORY,
    NO_LOWER,
    SAME_VALUE,
    Curvature,
    descend,
    snapped,
    spacing_for,
)

if TYPE_CHECKING:
    from ravine.optimize.held_kernels import Rows
    from ravine.optimize.pursuit_kernels import Runs

ROUNDING = 1e-13  # share of the largest coordinate: points that differ by less are one
MAX_ROW_SUMS = 1 << 17  # most bins x columns for which the bins keep sums of rows, which give the gradient
TOGETHER = 0.9999  # cosine above which two runs are at the same hyperplane, if their thresholds agree, too
SAME_THRESHOLD = 0.1  # standard deviations: difference below which thresholds agree
HELD_CELLS = 1 << 22  # most values (rows x columns) of a node whose rows are standardized in memory: 32 MiB
TRANSPOSED_ROWS = 1024  # rows that are copied by columns at a time: a processor's cache holds them
THREADED_CELLS = 1 << 16  # least values (starts x rows x columns) of a pursuit whose starts threads share


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
    grid = Grid.around_mean(REACH * node.deviation, width, node.n_rows)
    return grid.n_bins * node.n_features <= MAX_ROW_SUMS


def project(node: Node, width: float, direction: FloatArray) -> Query[Projected]:
    """Project the rows on a direction, into bins of at most this width; one pass."""
    own = node.standardization
    grid = Grid.around_mean(REACH * node.deviation, width, node.n_rows)
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


def pursue(
    node: Node,
    start: FloatArray,
    indices: Sequence[ProjectionIndex],
    *,
    tol: float,
    max_iter: int,
    progress: float = 1e-4,
    curvature: Curvature | None = None,
    least_share: float = math.inf,
    nested: bool = False,
) -> Query[Pursued]:
    """Minimize a sequence of indices (of one resolution), the first from `start`, each from the last end.

    Returns the last valid end (for the density: the last hyperplane that is a minimizer of the projected
    density), or the very last one if none is valid. The sequence stops at the first end with
    `least_share` of the mass on the smaller side. If the intervals of thresholds are `nested` and the last
    one has the same minimum as this one, so have those between them, which are left out; the last one is
    not, because its steps bring ends together that rounding has set apart. Few rows in memory are projected
    in compiled code, all others by requests.
    """
    curvature = curvature or Curvature()
    held = held_rows(node)
    if held is not None and hasattr(indices[0], "line_function"):
        options = _Options(tol, progress, max_iter, least_share, nested)
        return _pursue_held(held, node, [start], indices, [curvature], options)[0]
    kept: Pursued | None = None
    n_iter = 0
    stage, last = 0, len(indices) - 1
    projected = yield from project(node, indices[0].resolution, start)
    while stage <= last:
        index = indices[stage]
        first = yield from evaluate_projected(node, index, projected)
        end = yield from descend(
            first,
            partial(evaluate, node, index),
            curvature,
            tol=tol,
            progress=progress,
            max_iter=max_iter,
        )
        n_iter += end.n_iter
        projected = end.point.projected
        if kept is None or end.point.index_value.valid or not kept.point.index_value.valid:
            kept = Pursued(end.point, index, stage, curvature, n_iter, end.status)
        if end.point.smaller_side >= least_share * node.standardization.total:
            break
        stage += 1
        if nested and stage < last:
            again = indices[last].evaluate(projected.profile).value
            stage = last if end.point.value - again <= SAME_VALUE else stage
    assert kept is not None
    return kept


def pursue_all(
    node: Node,
    starts: Sequence[FloatArray],
    indices: Sequence[ProjectionIndex],
    *,
    tol: float,
    max_iter: int,
    progress: float,
    least_share: float,
    nested: bool,
    behind: float,
) -> Query[list[Pursued]]:
    """Run `pursue` from several starts; those over few rows in memory in one compiled call.

    There, starts that are clearly behind after the first index end at their optimum of it: those whose value
    is higher by `behind`, or that are at the same hyperplane as a better one.
    """
    starts = [snapped(start, spacing_for(tol, len(start))) for start in starts]
    held = held_rows(node)
    if starts and held is not None and hasattr(indices[0], "line_function"):
        options = _Options(tol, progress, max_iter, least_share, nested, behind)
        return _pursue_held(held, node, starts, indices, [Curvature() for _ in starts], options)
    each = partial(pursue, node, indices=indices, tol=tol, max_iter=max_iter, progress=progress)
    return (yield from gather([each(start, least_share=least_share, nested=nested) for start in starts]))


def held_rows(node: Node) -> Rows | None:
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
        known: tuple[bytes, Rows] | None = node.memo.get("held")
        if known is None or known[0] != key:
            known = node.memo["held"] = key, _hold(rows, node.standardization)
    return known[1]


def release_rows(node: Node) -> None:
    """Forget the standardized rows of a node: those of all leaves that wait for a pass would add up."""
    node.memo.pop("held", None)


def _hold(rows: MemoryRows, own: Standardization) -> Rows:
    from ravine.optimize.held_kernels import Rows

    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    none, no_columns, no_rows = np.empty(0), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    if not sparse.issparse(rows.array):
        dense = np.ascontiguousarray(rows.map(lambda block: own.apply(block.dense())))
        return Rows(dense, _transposed(dense), none, no_columns, no_rows, none, weights)
    matrix = sparse.csr_array(rows.array)
    values = matrix.data * own.inverse_scale[matrix.indices]
    places = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
    return Rows(np.empty((0, 0)), np.empty((0, 0)), values, *places, own.mean * own.inverse_scale, weights)


def _transposed(array: FloatArray) -> FloatArray:
    """Copy an array by columns, some rows at a time, which stay in the cache: twice as fast for many rows."""
    found = np.empty(array.shape[::-1])
    for a in range(0, len(array), TRANSPOSED_ROWS):
        found[:, a : a + TRANSPOSED_ROWS] = array[a : a + TRANSPOSED_ROWS].T
    return found


class _Options(NamedTuple):
    """The options of `pursue` and `pursue_all`."""

    tol: float
    progress: float
    max_iter: int
    least_share: float
    nested: bool
    behind: float = math.inf


def _pursue_held(
    held: Rows,
    node: Node,
    starts: Sequence[FloatArray],
    indices: Sequence[ProjectionIndex],
    curvatures: Sequence[Curvature],
    options: _Options,
) -> list[Pursued]:
    """Run `pursue` from all starts in compiled code."""
    from ravine.optimize import pursuit_kernels as compiled

    indices = cast("Sequence[CompiledIndex]", indices)
    total = node.standardization.total
    grid = Grid.around_mean(REACH * node.deviation, indices[0].resolution, node.n_rows)
    pairs = np.zeros((len(starts), 2, MEMORY, len(starts[0])))
    n_pairs = np.array([len(curvature.steps) for curvature in curvatures])
    for own, curvature, n in zip(pairs, curvatures, n_pairs, strict=True):
        if n:
            own[0, :n], own[1, :n] = curvature.steps, curvature.changes
    tol, progress, max_iter, least_share, nested, behind = options
    spacing = spacing_for(tol, len(starts[0]))
    runs = compiled.runs_from(np.array(starts), pairs, n_pairs, grid.n_bins)
    limits = tol, progress, max_iter, least_share * total, nested, spacing
    race = behind, TOGETHER, SAME_THRESHOLD * node.deviation
    index = compiled.address_of_index(indices[0].line_function)
    first_fit.wait()
    stages = np.array([index.parameters for index in indices])
    given = held, compiled.Options(grid.low, grid.width, total, *limits, *race), stages, runs

    def run_some(first: int, last: int, *, begins: bool, ends: bool) -> None:
        # one place for every row that is held: `node.n_rows` does not count those of weight 0
        bins = compiled.bins_for(len(held.weights), grid.n_bins)
        descent = compiled.address_of_descent(index, *given, bins)
        compiled.pursue(index, descent, *given, bins, first, last, begins, ends)

    n, threads = len(starts), node.rows.threads
    if threads.n == 1 or n * len(held.weights) * node.n_features < THREADED_CELLS:
        run_some(0, n, begins=True, ends=True)
    else:
        threads.map(lambda i: run_some(i, i + 1, begins=True, ends=False), range(n))
        run_some(0, 0, begins=False, ends=False)
        threads.map(lambda i: run_some(i, i + 1, begins=False, ends=True), range(n))
    return [_end_of(runs, i, indices, grid, total, curvature) for i, curvature in enumerate(curvatures)]


def _end_of(
    runs: Runs, i: int, indices: Sequence[ProjectionIndex], grid: Grid, total: float, curvature: Curvature
) -> Pursued:
    """Return the end of one compiled run."""
    from ravine.optimize.pursuit_kernels import END, END_GRADIENT, KEPT

    n_pairs, stage, steps, status, _, _, m = runs.counts[i].tolist()
    value, threshold, _, valid, deviation = runs.figures[i, KEPT].tolist()
    points, masses = runs.profiles[i, :, :m].copy()
    profile = Profile(points, masses, total, deviation)
    projected = Projected(runs.states[i, END], grid, runs.full[i, :m].copy(), profile, None)
    index_value = IndexValue(value, np.empty(0), threshold, valid=bool(valid))
    curvature.steps[:], curvature.changes[:] = runs.pairs[i, 0, :n_pairs], runs.pairs[i, 1, :n_pairs]
    why = (CONVERGED, CONVERGED_OBJECTIVE, NO_LOWER, ITERATION_LIMIT)[status]
    point = Evaluated(projected, index_value, runs.states[i, END_GRADIENT])
    return Pursued(point, indices[stage], stage, curvature, steps, why)
