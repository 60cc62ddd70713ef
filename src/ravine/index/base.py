"""The contract of an index: it maps a profile (points with mass on a line) to a value with derivatives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ravine._validate import FloatArray
from ravine.index import line


class PlacedLabels(NamedTuple):
    """Labeled rows on a line: their points, their sides (-1 or 1), and the penalty per squared length."""

    points: FloatArray
    sides: FloatArray
    strength: FloatArray


@dataclass(frozen=True)
class Profile:
    """Mass on a line: the only form in which an index receives data.

    `points` are sorted and centered (their weighted mean is 0), `mass` is positive and sums to `total`, and
    `std` is the standard deviation. A point is one row, or the exact center of the rows of one bin. `labeled`
    are the points of the labeled rows, if there are any, in their own order and not binned.
    """

    points: FloatArray
    mass: FloatArray
    total: float
    std: float
    labeled: FloatArray | None = None

    def smaller_side(self, threshold: float) -> float:
        """Return the mass on the lighter side of a threshold."""
        left = float(self.mass[self.points <= threshold].sum())
        return min(left, self.total - left)


@dataclass(frozen=True)
class IndexValue:
    """The value of an index at its best threshold, to be minimized over directions.

    `slope` is the derivative of `value` by the position of each point with `std` held fixed, `d_std` that by
    `std`, and `labeled_slope` that by the position of each labeled row. `valid` is False where the threshold
    is not an optimum of what the index is about, such as one at the edge of the interval that is searched.
    """

    value: float
    slope: FloatArray
    threshold: float
    d_std: float = 0.0
    valid: bool = True
    labeled_slope: FloatArray | None = None


class ProjectionIndex(Protocol):
    """Maps a profile to a value and a threshold; knows nothing of rows, directions or files."""

    @property
    def resolution(self) -> float:
        """The widest bin of a profile that this index can work with."""

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return the value at the best threshold, with its derivatives."""


# The capsule of a compiled index, see `line.pxd`: compiled searches call any index by it.
LineFunction = Any


class CompiledIndex(ProjectionIndex, Protocol):
    """An index with a compiled function, for searches over few rows in memory."""

    @property
    def parameters(self) -> FloatArray:
        """The numbers that the function takes."""

    @property
    def line_function(self) -> LineFunction:
        """The compiled function."""


def evaluate_line(index: CompiledIndex, profile: Profile) -> IndexValue:
    """Return the value of a compiled index."""
    slope = np.empty(len(profile.points))
    points, mass = np.ascontiguousarray(profile.points), np.ascontiguousarray(profile.mass)
    given = points, mass, profile.total, profile.std, index.parameters, slope
    value, threshold, d_std, valid = line.evaluate(index.line_function, *given)
    return IndexValue(value, slope, threshold, d_std, valid)


class Schedule(Protocol):
    """The sequence of indices that a search follows, from the easiest to the one that is meant.

    Every index has one, a subclass of this, in its own file. `index` is always one of those that `indices`
    returned, and `value` the result of its `evaluate` for `profile`.
    """

    gammas: ClassVar[Sequence[float]] = (10.0,)  # weights of partial labels against the logarithm of an index
    behind: ClassVar[float] = math.inf  # a start whose first optimum is this much above the lowest is left
    nested: ClassVar[bool] = False  # whether the thresholds of an index are among those of the next one
    least_share: float = math.inf  # of the mass on the smaller side: the sequence ends at an optimum with it

    @property
    def name(self) -> str:
        """The name of the method, for results."""

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[ProjectionIndex]:
        """Return the sequence, all of one resolution, for rows with these summaries.

        `deviation` is the standard deviation along the first principal direction, `total` the weight of the
        rows, and `mean_variance` the mean variance of the columns that vary.
        """

    def accepts(self, value: IndexValue, profile: Profile) -> bool:
        """Return whether the optimum of one index is good enough to leave out the indices after it."""
        return profile.smaller_side(value.threshold) >= self.least_share * profile.total

    def rank(self, index: Any, profile: Profile, value: IndexValue) -> float:
        """Return how good an optimum is, in [0, 1], to choose among starts; higher is better."""

    def value(self, index: Any, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return the method's own value to report; a unit of the profile is `unit` user's units."""

    def test_quality(self, value: float) -> float | None:
        """Return what the significance test compares, in [0, 1], from the reported value; None: the depth."""
        return None

    def facts(self, index: Any, unit: float) -> Mapping[str, float]:
        """Return further numbers to report; a unit of the profile is `unit` user's units."""
        return {}

    def fallbacks(self) -> Sequence[Schedule]:
        """Return the schedules to try when this one finds nothing."""
        return ()
