"""Labeled rows on the wrong side of the cut: a penalty around another index.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, PlacedLabels, Profile, ProjectionIndex


@dataclass(frozen=True)
class Penalty:
    """P(b), the sum over labeled rows of strength max(0, -side (t - b))^2: convex in the cut b."""

    points: FloatArray
    sides: FloatArray
    strength: FloatArray

    @property
    def labels(self) -> PlacedLabels:
        """All that P is made of."""
        return self.points, self.sides, self.strength

    def at(self, threshold: float) -> tuple[float, float, float]:
        """Return P and its first two derivatives by the cut."""
        from ravine.index import labels_kernels

        value, first, second = labels_kernels.at(*self.labels, threshold)
        return value, first, second

    def slope(self, threshold: float) -> FloatArray:
        """Return the derivative of P at a cut by the place of every labeled row."""
        return -2.0 * self.strength * self.sides * np.maximum(self.sides * (threshold - self.points), 0.0)

    def lowest(self) -> float:
        """Return the cut where P is least; the middle of all such cuts where the two sides lie apart."""
        from ravine.index import labels_kernels

        return float(labels_kernels.lowest(*self.labels))


@runtime_checkable
class CurveIndex(Protocol):
    """An index that is the least of a curve f over the cut, and lets others add to f before."""

    def least(self, profile: Profile, labels: PlacedLabels) -> tuple[float, float, float]:
        """Return the least log F over the cut, F = f + P, where that is, and the share f / F there."""

    def slopes(self, profile: Profile, threshold: float) -> tuple[FloatArray, float]:
        """Return the derivatives of log f at a cut by each point and by the standard deviation."""


@dataclass(frozen=True)
class LabeledIndex:
    r"""Another index, with a penalty for labeled rows on the wrong side of the cut (Equations 16 and 17).

    .. math:: \phi_{SSC}(v) = \min_b f(v, b) + \frac{\gamma}{s^3}
              \sum_{i \le l} w_i \max\{0, -y_i (v \cdot x_i - b)\}^2

    for an index that is the least of a curve f over the cut, as the density is; its value is log phi. To any
    other index, gamma / s^2 times the least of the sum over the cut is added as it is. (The paper's exponent
    1 + epsilon is 2 here.)

    Cost: that of the index, and a product a labeled row and candidate cut.

    Parameters
    ----------
    index : ProjectionIndex
        The index itself.
    sides : array of shape (n_labeled,)
        -1 for the rows whose place is left of the cut, 1 for those right of it.
    weights : array of shape (n_labeled,)
        How often each of them counts.
    gamma : float
        The weight of the labels against the density.
    unit : float
        s, the length that makes gamma a pure number: the root mean square deviation of the columns, which is
        1 for standardized rows and makes gamma the paper's own.

    Examples
    --------
    >>> from ravine.index.density import MinimumDensityIndex
    >>> points = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> profile = Profile(points, np.ones(4), 4.0, points.std(), labeled=np.array([1.0, 3.0]))
    >>> index = MinimumDensityIndex(bandwidth=0.4, alpha=2.0)
    >>> labeled = LabeledIndex(index, np.array([-1.0, 1.0]), np.ones(2), gamma=1.0, unit=1.0)
    >>> 1.0 < labeled.evaluate(profile).threshold < 3.0
    True
    """

    index: ProjectionIndex
    sides: FloatArray
    weights: FloatArray
    gamma: float
    unit: float

    @property
    def resolution(self) -> float:
        """That of the index itself: the labeled rows are seen exactly."""
        return self.index.resolution

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return the value at the best cut, with its derivatives, also by the labeled rows' places."""
        assert profile.labeled is not None
        if isinstance(self.index, CurveIndex):
            penalty = self._penalty(profile.labeled, self.gamma / self.unit**3)
            value, threshold, share = self.index.least(profile, penalty.labels)
            slope, d_std = self.index.slopes(profile, threshold)
            by_label = penalty.slope(threshold) * (np.exp(-value) if share < 1.0 else 0.0)
            return IndexValue(value, share * slope, threshold, share * d_std, labeled_slope=by_label)
        penalty = self._penalty(profile.labeled, self.gamma / self.unit**2)
        result = self.index.evaluate(profile)
        threshold = penalty.lowest()
        value = result.value + penalty.at(threshold)[0]
        return IndexValue(
            value, result.slope, result.threshold, result.d_std, result.valid, penalty.slope(threshold)
        )

    def _penalty(self, points: FloatArray, strength: float) -> Penalty:
        return Penalty(points, self.sides, strength * self.weights)
