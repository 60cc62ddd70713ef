"""Projection pursuit: value and gradient of a direction, and the descent from one start.

The chain rule from an index on the line to the space of the rows is written here, once, for all indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Query
from ravine.data.profile import Grid, ProfileSum, SlopeSum
from ravine.data.standardization import Standardization
from ravine.index.base import IndexValue, Profile, ProjectionIndex
from ravine.optimize.sphere import Curvature, descend

REACH = 5.0  # the grid goes this many standard deviations (of the widest direction) from the mean
ROUNDING = 1e-13  # of the largest coordinate: closer points are one
MAX_ROW_SUMS = 1 << 17  # up to here, bins keep the sums of their rows and one pass gives the gradient


@dataclass(frozen=True)
class View:
    """How one set of rows is looked at: its frame, and the greatest standard deviation of a direction.

    `labeled` are the raw rows whose class is known, held in memory, where an index is to know of them.
    """

    standardization: Standardization
    widest: float
    labeled: FloatArray | None = None

    @cached_property
    def standardized(self) -> FloatArray:
        """The labeled rows in the frame."""
        assert self.labeled is not None
        return (self.labeled - self.standardization.mean) * self.standardization.inverse_scale


@dataclass(frozen=True)
class Projected:
    """The rows projected on a direction: their profile, and the sum of each bin's rows if kept.

    Without a grid every point of the profile is one row.
    """

    direction: FloatArray
    grid: Grid | None
    full: IntArray
    profile: Profile
    rows: FloatArray | None


@dataclass(frozen=True)
class Evaluated:
    """An index at a direction: what it says, what it saw, and the gradient on the sphere."""

    projected: Projected
    index_value: IndexValue
    gradient: FloatArray

    @property
    def direction(self) -> FloatArray:
        """The unit vector."""
        return self.projected.direction

    @property
    def profile(self) -> Profile:
        """The profile that the index saw."""
        return self.projected.profile

    @property
    def value(self) -> float:
        """The value of the index."""
        return self.index_value.value

    @property
    def smaller_side(self) -> float:
        """The weight on the lighter side of the cut."""
        left = float(self.profile.mass[self.profile.points <= self.index_value.threshold].sum())
        return min(left, self.profile.total - left)


def project(view: View, width: float, direction: FloatArray) -> Query[Projected]:
    """Project the rows on a direction and put them into bins of at most this width; one pass."""
    standardization = view.standardization
    grid = Grid.around_mean(REACH * view.widest, width)
    with_rows = grid.n_bins * len(standardization.mean) <= MAX_ROW_SUMS
    ((mass, moment, rows),) = yield [ProfileSum(standardization, direction, grid, with_rows)]
    full = np.flatnonzero(mass)
    points, weight = moment[full] / mass[full], mass[full]
    std = math.sqrt(weight @ points**2 / standardization.total)
    labeled = None if view.labeled is None else view.standardized @ direction
    profile = Profile(points, weight, standardization.total, std, labeled)
    return Projected(direction, grid, full, profile, rows if with_rows else None)


def project_exactly(view: View, rows: FloatArray, mass: FloatArray, direction: FloatArray) -> Projected:
    """Project rows in memory, that are standardized already, on a direction: sorted, without bins.

    Rows at one place (up to rounding) are one point.
    """
    projected = rows @ direction
    order = np.argsort(projected, kind="stable")
    line = projected[order]
    apart = np.diff(line) > ROUNDING * np.abs(line).max(initial=0.0)
    first = np.flatnonzero(np.append(True, apart))
    weight = np.add.reduceat(mass[order], first)
    sums = np.add.reduceat(mass[order, None] * rows[order], first, axis=0)
    points = sums @ direction / weight
    profile = Profile(
        points, weight, view.standardization.total, math.sqrt(weight @ points**2 / view.standardization.total)
    )
    return Projected(direction, None, np.arange(len(points)), profile, sums)


def evaluate_projected(view: View, index: ProjectionIndex, projected: Projected) -> Query[Evaluated]:
    """Return what an index says of projected rows, with its gradient: the chain rule, for all indices.

    Where the bins kept the sums of their rows no pass is needed; otherwise the slope is summed in one. Either
    way the gradient is that of the binned value.
    """
    standardization, profile, v = view.standardization, projected.profile, projected.direction
    result = index.evaluate(profile)
    slope = np.zeros(len(projected.full) if projected.grid is None else projected.grid.n_bins)
    slope[projected.full] = result.slope / profile.mass
    if result.d_std and profile.std > 0.0:
        slope[projected.full] += result.d_std * profile.points / (standardization.total * profile.std)
    if projected.rows is not None:
        total = slope @ projected.rows
    else:
        assert projected.grid is not None
        (((total,),),) = yield [SlopeSum(standardization, v, projected.grid, slope)]
    gradient = total * standardization.inverse_scale
    if result.labeled_slope is not None:
        gradient = gradient + result.labeled_slope @ view.standardized
    return Evaluated(projected, result, gradient - (gradient @ v) * v)


def evaluate(
    view: View, index: ProjectionIndex, direction: FloatArray, *, fineness: int = 1
) -> Query[Evaluated]:
    """Return an index and its gradient at a direction, in one pass over the rows or in two.

    One is enough where bins x features <= 131072. `fineness` divides the width of the bins: the error falls
    with its square.
    """
    projected = yield from project(view, index.resolution / fineness, direction)
    return (yield from evaluate_projected(view, index, projected))


@dataclass(frozen=True)
class Pursued:
    """The end of one pursuit: the last valid point, its index and that one's rank, and why it ended."""

    point: Evaluated
    index: ProjectionIndex
    rank: int
    curvature: Curvature
    n_iter: int
    status: str


def pursue(
    view: View,
    start: FloatArray,
    indices: Sequence[ProjectionIndex],
    *,
    tol: float,
    max_iter: int,
    progress: float = 1e-4,
    curvature: Curvature | None = None,
    enough: Callable[[Evaluated], bool] = lambda point: False,
) -> Query[Pursued]:
    """Follow a sequence of indices (of one resolution) from one start, each from where the last one ended.

    Returns the last valid point (for the density: the last hyperplane that is a minimizer of the projected
    density), or the very last point where none is. An index whose end is `enough` is the last one followed.
    """
    curvature = curvature or Curvature()
    kept: Pursued | None = None
    n_iter = 0
    projected = yield from project(view, indices[0].resolution, start)
    for rank, index in enumerate(indices):
        first = yield from evaluate_projected(view, index, projected)
        end = yield from descend(
            first,
            partial(evaluate, view, index),
            curvature,
            tol=tol,
            progress=progress,
            max_iter=max_iter,
        )
        n_iter += end.n_iter
        projected = end.point.projected
        if kept is None or end.point.index_value.valid or not kept.point.index_value.valid:
            kept = Pursued(end.point, index, rank, curvature, n_iter, end.status)
        if enough(end.point):
            break
    assert kept is not None
    return kept
