"""Projection pursuit: value and gradient of a direction, and the descent from one start.

The chain rule from an index on the line to the space of the rows is written here, once, for all indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Asker
from ravine.data.frame import Frame
from ravine.data.profile import Grid, ProfileSum, SlopeSum
from ravine.index.base import IndexValue, Profile, ProjectionIndex
from ravine.optimise.sphere import Curvature, descend

REACH = 5.0  # the grid goes this many standard deviations (of the widest direction) from the mean
MOST_ROW_SUMS = 1 << 17  # up to here, bins keep the sums of their rows and one pass gives the gradient


@dataclass(frozen=True)
class View:
    """How one set of rows is looked at: its frame, and the greatest standard deviation of a direction."""

    frame: Frame
    widest: float


@dataclass(frozen=True)
class Evaluated:
    """An index at a direction: what it says, the profile that it saw, and the gradient on the sphere."""

    direction: FloatArray
    profile: Profile
    index_value: IndexValue
    gradient: FloatArray

    @property
    def value(self) -> float:
        """The value of the index."""
        return self.index_value.value


def evaluate(
    view: View, index: ProjectionIndex, direction: FloatArray, *, fineness: int = 1
) -> Asker[Evaluated]:
    """Return an index and its gradient at a direction, in one pass over the rows or in two.

    With the rows of each bin summed (bins x features <= 131072) one pass is enough; otherwise the slope
    is summed in a second one. Either way the gradient is that of the binned value. `fineness` divides the
    width of the bins: the error falls with its square.
    """
    frame = view.frame
    grid = Grid.around_mean(REACH * view.widest, index.resolution / fineness)
    with_rows = grid.n_bins * len(frame.mean) <= MOST_ROW_SUMS
    ((mass, moment, rows),) = yield [ProfileSum(frame, direction, grid, with_rows)]
    full = np.flatnonzero(mass)
    points, weight = moment[full] / mass[full], mass[full]
    std = float(np.sqrt(weight @ points**2 / frame.total))
    profile = Profile(points, weight, frame.total, std)
    said = index.evaluate(profile)
    slope = np.zeros(grid.n_bins)
    slope[full] = said.slope / weight
    if std > 0.0:
        slope[full] += said.d_std * points / (frame.total * std)
    if with_rows:
        total = slope @ rows
    else:
        (((total,),),) = yield [SlopeSum(frame, direction, grid, slope)]
    gradient = total * frame.inverse_scale
    return Evaluated(direction, profile, said, gradient - (gradient @ direction) * direction)


@dataclass(frozen=True)
class Pursued:
    """The end of one pursuit: the last valid point, its index and that one's rank, and why it ended."""

    point: Evaluated
    index: ProjectionIndex
    rank: int
    curvature: Curvature
    n_iter: int
    status: str

    def quality(self) -> float:
        """How good the cut is, in the index's own measure; 0 for an invalid one."""
        if not self.point.index_value.valid:
            return 0.0
        return self.index.quality(self.point.profile, self.point.index_value.cut)


def pursue(
    view: View,
    start: FloatArray,
    indices: Sequence[ProjectionIndex],
    *,
    tol: float,
    max_iter: int,
    progress: float = 1e-4,
    curvature: Curvature | None = None,
) -> Asker[Pursued]:
    """Follow a sequence of indices from one start, each from where the last one ended.

    Returns the last valid point (for the density: the last hyperplane that is a minimiser of the projected
    density), or the very last point where none is.
    """
    curvature = curvature or Curvature()
    direction = start
    kept: Pursued | None = None
    n_iter = 0
    for rank, index in enumerate(indices):
        first = yield from evaluate(view, index, direction)
        end = yield from descend(
            first,
            partial(evaluate, view, index),
            curvature,
            tol=tol,
            progress=progress,
            max_iter=max_iter,
        )
        n_iter += end.n_iter
        direction = end.point.direction
        if kept is None or end.point.index_value.valid or not kept.point.index_value.valid:
            kept = Pursued(end.point, index, rank, curvature, n_iter, end.status)
    assert kept is not None
    return kept
