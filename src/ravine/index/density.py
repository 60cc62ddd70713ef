"""Minimum density: the lowest projected density that a cut near the middle can have.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, PlacedLabels, Profile

BINS_PER_BANDWIDTH = 8
SMALLEST = 1e-12  # bandwidth, in standard deviations: rounding of the points is not far below
FALLBACK_ALPHA = 2.5  # standard deviations: half-width of the interval when the usual one has no valley
UNLABELED = PlacedLabels(np.empty(0), np.empty(0), np.empty(0))
FARTHEST = 1e100  # bandwidths from the mean that a cut may lie: squares of them are finite


def bandwidth(deviation: float, total: float, factor: float = 1.0) -> float:
    """Return 0.9 factor sd n^(-1/5), the rule for rows of this total weight (MDH, Section 5.1.1)."""
    return float(max(0.9 * factor * deviation * total**-0.2, SMALLEST * deviation))


def relative_depth(profile: Profile, threshold: float, bandwidth: float) -> float:
    """Return depth / (1 + depth) for the relative depth of a threshold (Equation 30): a number in [0, 1].

    With I the density at the threshold and M at the lower of the two adjacent modes, that is 1 - I / M: it
    orders thresholds as the relative depth M / I - 1 does, and is 1 across an empty gap.

    >>> points = np.array([-2.0, -1.5, 1.5, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> relative_depth(profile, 0.0, bandwidth=0.4) > 0.99
    True
    """
    from ravine.index import density_kernels

    about = profile.points, profile.mass, profile.total, bandwidth
    return float(density_kernels.relative_depth(*about, threshold))


@dataclass(frozen=True)
class MinimumDensityIndex:
    r"""The penalized density on the best hyperplane with a given normal (Equations 10 and 13).

    .. math:: \phi(v) = \min_b \hat I(v, b) + \frac{L}{\eta}\max\{0, |b - \mu_v| - \alpha\sigma_v\}^2

    with I the Gaussian kernel density estimate of the projected rows and
    :math:`L = (e^{1/2} h^2 \sqrt{2\pi})^{-1}`, the steepest that a density of bandwidth h can be. The value
    is log phi, so that its gradient is the relative one and a bandwidth may fall to nothing.

    Cost: two exponentials a point, and two products a point and candidate cut.

    Parameters
    ----------
    bandwidth : float
        h, in units of the profile.
    alpha : float
        Cuts lie within alpha standard deviations of the mean.
    eta : float
        How far beyond that the penalty lets a cut go, in bandwidths. (The paper's 0.01 is in data units,
        and its exponent 1 + epsilon = 2 - 1e-6 is 2 here.)

    Examples
    --------
    >>> points = np.array([-2.0, -1.5, 1.5, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> index = MinimumDensityIndex(bandwidth=0.4, alpha=0.9)
    >>> round(abs(index.evaluate(profile).threshold), 6)
    0.0
    """

    bandwidth: float
    alpha: float
    eta: float = 0.05

    @property
    def resolution(self) -> float:
        """An eighth of the bandwidth."""
        return self.bandwidth / BINS_PER_BANDWIDTH

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log phi at the best threshold, with its derivatives."""
        return self.evaluate_with(profile, UNLABELED)

    def evaluate_with(self, profile: Profile, labels: PlacedLabels) -> IndexValue:
        """Return the same with the penalty of labels added to the density; `labeled_slope` is missing."""
        from ravine.index import density_kernels

        slope = np.empty(len(profile.points))
        half = self.half_width(profile)
        value, threshold, d_half, valid = density_kernels.minimum(
            *self._sums(profile), half, self.eta * self.bandwidth, *labels, slope
        )
        return IndexValue(value, slope, threshold, d_std=self.alpha * d_half, valid=valid)

    def curve(self, profile: Profile, thresholds: FloatArray) -> FloatArray:
        """Return the logarithm of the penalized density at every threshold."""
        from ravine.index import density_kernels

        sums, half = self._sums(profile), self.half_width(profile)
        thresholds = np.asarray(thresholds, dtype=np.float64)
        return np.asarray(density_kernels.curve(*sums, half, self.eta * self.bandwidth, thresholds))

    def log_density(self, profile: Profile, threshold: float) -> float:
        """Return the logarithm of the density at a threshold, without the penalty."""
        from ravine.index import density_kernels

        return float(density_kernels.curve(*self._sums(profile), np.inf, 1.0, np.array([threshold]))[0])

    def lowest_valley(self, profile: Profile, min_weight: float) -> float | None:
        """Return the lowest local minimum of the density with `min_weight` on either side, or None."""
        from ravine.index import density_kernels

        min_weight = max(min_weight, np.finfo(float).tiny)
        threshold = density_kernels.lowest_valley(*self._sums(profile), min_weight)
        return None if np.isnan(threshold) else float(threshold)

    def half_width(self, profile: Profile) -> float:
        """Return how far from the mean a threshold may lie without a penalty."""
        return min(self.alpha * profile.std, FARTHEST * self.bandwidth)

    def _sums(self, profile: Profile) -> tuple[FloatArray, FloatArray, float, float]:
        return profile.points, profile.mass, profile.total, self.bandwidth


@dataclass(frozen=True)
class MinimumDensitySchedule:
    """Minimum density with bandwidth 0.9 sd n^(-1/5), alpha growing to `alpha_max` (MDH, Section 5.1.1)."""

    bandwidth_factor: float = 1.0
    alpha_max: float = 0.9
    n_alphas: int = 10
    name: str = "minimum density"

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[MinimumDensityIndex]:
        """Return the index at `n_alphas` values of alpha from near 0 to the largest."""
        h = bandwidth(deviation, total, self.bandwidth_factor)
        alphas = np.linspace(min(0.01, self.alpha_max), self.alpha_max, self.n_alphas)
        return [MinimumDensityIndex(h, float(alpha)) for alpha in alphas]

    def accepts(self, value: IndexValue, profile: Profile) -> bool:
        """Return False: all values of alpha are followed, and the last valid optimum counts."""
        return False

    def rank(self, index: MinimumDensityIndex, profile: Profile, value: IndexValue) -> float:
        """Return the bounded relative depth."""
        return relative_depth(profile, value.threshold, index.bandwidth)

    def value(self, index: MinimumDensityIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return the density on the hyperplane, without a penalty."""
        return math.exp(index.log_density(profile, value.threshold)) / unit

    def facts(self, index: MinimumDensityIndex, width: float, unit: float) -> Mapping[str, float]:
        """Return the bandwidth and the half-width of the interval in standard deviations."""
        return {"bandwidth": unit * index.bandwidth, "alpha": index.alpha}

    def fallbacks(self) -> Sequence[MinimumDensitySchedule]:
        """Return the same with the interval grown to two and a half standard deviations."""
        wide = self.alpha_max >= FALLBACK_ALPHA
        return [] if wide else [replace(self, alpha_max=FALLBACK_ALPHA)]
