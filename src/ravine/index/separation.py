"""Separation probability: how surely a threshold separates the two sides, in the worst case.

Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, Profile, Schedule

BINS_PER_DEVIATION = 128  # a choice: the variance in a bin, which is lost, is 5e-6 of that of all rows
FLOOR = 1e-14  # share of the variance of the profile below which the variance of a side is rounding


@dataclass(frozen=True)
class SeparationIndex:
    r"""The probability of error of the best threshold, for the worst distributions with the sides' moments.

    .. math:: \kappa = \max_b \frac{\mu_2 - \mu_1}{\sqrt{\sigma_1^2 + r} + \sqrt{\sigma_2^2 + r}}, \qquad
              \text{MSP} = \frac{\kappa^2}{1 + \kappa^2}

    with the mean and the variance of the points on either side of the threshold b. The value is log(1 - MSP).
    One far row against the rest has the highest MSP, so both sides need a least share of the mass; `valid` is
    False where no threshold leaves it.

    Cost: linear in the number of points, six cumulative sums.

    Parameters
    ----------
    ridge : float
        r, in squared units of the profile: the regularizer on this line.
    resolution : float
        The widest bin: thresholds lie between bins, and the variance inside of a bin is lost.
    least_share : float
        The least share of the mass on the smaller side; 5 % is a choice.

    Examples
    --------
    >>> points = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> index = SeparationIndex(ridge=0.0, resolution=0.01)
    >>> index.evaluate(profile).threshold
    0.0
    >>> round(index.separation_probability(profile, 0.0), 6)  # kappa is 3 / (0.5 + 0.5)
    0.9
    """

    ridge: float
    resolution: float
    least_share: float = 0.05

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log(1 - MSP) at the best threshold, with its slope."""
        points, mass = profile.points, profile.mass
        kappa, means, deviations, left = self._at_every_gap(profile)
        allowed = np.minimum(left, profile.total - left) >= self.least_share * profile.total
        allowed &= points[1:] > points[:-1]
        if not allowed.any():
            return IndexValue(0.0, np.zeros(len(points)), 0.0, valid=False)
        k = int(np.argmax(np.where(allowed, kappa, -np.inf)))
        best = float(kappa[k])
        slope = np.empty(len(points))
        weight = left[k], profile.total - left[k]
        sides = slice(0, k + 1), slice(k + 1, len(points))
        for part, sign, side in zip(sides, (-1.0, 1.0), (0, 1), strict=True):
            away = (points[part] - means[side][k]) / deviations[side][k]
            slope[part] = mass[part] / weight[side] * (sign - best * away)
        slope *= -2.0 * best / (1.0 + best**2) / (deviations[0][k] + deviations[1][k])
        return IndexValue(-float(np.log1p(best**2)), slope, float(points[k] / 2 + points[k + 1] / 2))

    def separation_probability(self, profile: Profile, threshold: float) -> float:
        """Return the MSP of a threshold, in [0, 1]; 0 where it leaves nothing on one side."""
        k = int(np.searchsorted(profile.points, threshold, side="right"))
        if not 0 < k < len(profile.points):
            return 0.0
        kappa = float(self._at_every_gap(profile)[0][k - 1])
        return kappa**2 / (1.0 + kappa**2)

    def _at_every_gap(
        self, profile: Profile
    ) -> tuple[FloatArray, list[FloatArray], list[FloatArray], FloatArray]:
        """Return kappa, the sides' means and deviations and the left mass for a threshold in every gap."""
        points, mass = profile.points, profile.mass
        moments = np.stack((mass, mass * points, mass * points**2))
        left = np.cumsum(moments, axis=1)[:, :-1]
        right = np.cumsum(moments[:, ::-1], axis=1)[:, ::-1][:, 1:]
        floor = FLOOR * profile.std**2 + np.finfo(float).tiny
        means = [side[1] / side[0] for side in (left, right)]
        variances = [s[2] / s[0] - mean**2 for s, mean in zip((left, right), means, strict=True)]
        deviations = [np.sqrt(np.maximum(variance, floor) + self.ridge) for variance in variances]
        kappa = (means[1] - means[0]) / (deviations[0] + deviations[1])
        return kappa, means, deviations, left[0]


@dataclass(frozen=True)
class SeparationSchedule(Schedule):
    """Separation probability with the regularizer lambda times the mean variance of the columns."""

    regularization: float = 1.0
    min_share: float = 0.05
    name: str = "maximin separation, pursuit"

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[SeparationIndex]:
        """Return the one index."""
        ridge = self.regularization * mean_variance
        return [SeparationIndex(ridge, deviation / BINS_PER_DEVIATION, self.min_share)]

    def rank(self, index: SeparationIndex, profile: Profile, value: IndexValue) -> float:
        """Return the separation probability."""
        return index.separation_probability(profile, value.threshold)

    def value(self, index: SeparationIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return 1 - MSP, which has no unit."""
        return math.exp(value.value)
