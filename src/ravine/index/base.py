"""What an index sees and what it says: a profile of mass on a line, and a value with its slope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ravine._validate import FloatArray


class PlacedLabels(NamedTuple):
    """Labeled rows on a line: their points, sides (-1 or 1), and the cost of a unit on the wrong side."""

    points: FloatArray
    sides: FloatArray
    strength: FloatArray


@dataclass(frozen=True)
class Profile:
    """Mass on a line: all that an index ever sees of the data.

    `points` are sorted and centered (their weighted mean is 0), `mass` is positive. A point is one row, or
    the exact center of the rows of one bin. `labeled` are the exact places of the rows whose class is known,
    in their own order, where there are such rows.
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
    """What an index says of a profile, to be minimized.

    `slope` is the derivative of `value` by the position of each point, all else held fixed, and `d_std`
    its derivative by the standard deviation of the profile; `labeled_slope` is that by the place of each
    labeled row. `valid` says whether the cut is one in the index's own sense; a minimum at the edge of the
    search interval, say, is not.
    """

    value: float
    slope: FloatArray
    threshold: float
    d_std: float = 0.0
    valid: bool = True
    labeled_slope: FloatArray | None = None


class ProjectionIndex(Protocol):
    """Maps a profile to a value and a cut; knows nothing of rows, weights, files or clusters of machines."""

    @property
    def resolution(self) -> float:
        """The widest bin that still shows this index all it needs."""

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return the value at the best cut, with its derivatives."""


class Schedule(Protocol):
    """The sequence of indices that a search follows, from the easiest to the one that is meant.

    Every index has one. `index` is always one of those that `indices` returned.
    """

    @property
    def name(self) -> str:
        """The name of the method, for results."""

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[ProjectionIndex]:
        """Return the sequence for rows with these summaries.

        `deviation` is the standard deviation along the first principal direction, `total` the weight of the
        rows, and `mean_variance` the mean variance of the columns that vary.
        """

    def accepts(self, value: IndexValue, profile: Profile) -> bool:
        """Return whether the optimum of one index is good enough to leave out the indices after it."""

    def rank(self, index: Any, profile: Profile, value: IndexValue) -> float:
        """Return how good an optimum is, in [0, 1], to choose among starts; higher is better."""

    def value(self, index: Any, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return the value to report, with `unit` the length of one unit of the profile for the user."""

    def facts(self, index: Any, width: float, unit: float) -> Mapping[str, float]:
        """Return further numbers to report, for profiles with bins of this width."""

    def fallbacks(self) -> Sequence[Schedule]:
        """Return the schedules to try when this one finds nothing; may be empty."""
