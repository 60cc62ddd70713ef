"""Partial labels: another index with a penalty for labeled rows on the wrong side of the threshold.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes (MDH). JMLR 17(156), 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, PlacedLabels, Profile, ProjectionIndex
from ravine.index.line import lowest_label_penalty


@runtime_checkable
class CurveIndex(Protocol):
    """An index that minimizes a curve over the threshold, to which a penalty can be added before."""

    def evaluate_with(self, profile: Profile, labels: PlacedLabels) -> IndexValue:
        """Return the value for the curve plus the penalty of the labels, except for `labeled_slope`."""


@dataclass(frozen=True)
class LabeledIndex:
    r"""Another index, with a penalty for labeled rows on the wrong side (MDH, Equations 16 and 17).

    .. math:: \phi_{SSC}(v) = \min_b f(v, b) + \frac{\gamma}{s^3}
              \sum_{i \le l} w_i \max\{0, -y_i (v \cdot x_i - b)\}^2

    for an index that minimizes a curve f over the threshold, as the density is; its value is log phi. To the
    value of any other index, gamma / s^2 times the least sum over the threshold is added. (The paper's
    exponent 1 + epsilon is 2 here.)

    Cost: that of the index, and one product per labeled row and candidate threshold.

    Parameters
    ----------
    index : ProjectionIndex
        The index without labels.
    sides : array of shape (n_labeled,)
        -1 for rows that belong on the left of the threshold, 1 for those that belong on the right.
    weights : array of shape (n_labeled,)
        The weights of the labeled rows.
    gamma : float
        The weight of the labels against the density.
    unit : float
        s, the length that makes gamma a pure number: the root mean square deviation of the columns, which is
        1 for standardized rows, so that gamma is the paper's there.

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
        """That of the index: labeled rows are not binned."""
        return self.index.resolution

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return the value at the best threshold, with its derivatives, also by the labeled rows."""
        assert profile.labeled is not None
        if isinstance(self.index, CurveIndex):
            labels = self._labels(profile.labeled, self.gamma / self.unit**3)
            result = self.index.evaluate_with(profile, labels)
            by_label = penalty_slope(labels, result.threshold)
            if by_label.any():  # phi is at least the penalty here, and 1 / phi finite
                by_label *= math.exp(min(-result.value, 700.0))
            return replace(result, labeled_slope=by_label)
        labels = self._labels(profile.labeled, self.gamma / self.unit**2)
        threshold, penalty = lowest_label_penalty(labels)
        result = self.index.evaluate(profile)
        by_label = penalty_slope(labels, threshold)
        return replace(result, value=result.value + penalty, labeled_slope=by_label)

    def _labels(self, points: FloatArray, strength: float) -> PlacedLabels:
        return PlacedLabels(points, self.sides, strength * self.weights)


def penalty_slope(labels: PlacedLabels, threshold: float) -> FloatArray:
    """Return the derivative of the penalty at a threshold by the point of every labeled row."""
    wrong = np.maximum(labels.sides * (threshold - labels.points), 0.0)
    return np.asarray(-2.0 * labels.strength * labels.sides * wrong)
