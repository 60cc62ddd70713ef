"""Minimum density: the lowest projected density at a threshold near the middle.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes (MDH). JMLR 17(156), 2016.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, LineFunction, PlacedLabels, Profile, Schedule, evaluate_line
from ravine.index.density_loops import MINIMUM
from ravine.index.density_valleys import ProfileLine, labeled_minimum

BINS_PER_BANDWIDTH = 8  # the error of a binned density falls with the square of the width; a choice
SMALLEST = 1e-12  # standard deviations: least bandwidth, four digits above the rounding of the points
BEHIND = 0.7  # log density: a start with twice the density of the best one at the first alpha is left behind
FIRST_ALPHA = 0.01  # standard deviations: alpha_min, "close to zero" in MDH, Section 5.1.1
PLACES = np.linspace(0.0, 20.0, 2001)  # x in `log_odds_slope`, and the rise of the log density there
RISES = np.log(np.cosh(PLACES)) - PLACES / 2.0 * np.tanh(PLACES)
FALLBACK_ALPHA = 2.5  # alpha_max of the fallback search, see docs/number-of-clusters.md; a choice


def bandwidth(deviation: float, total: float, factor: float = 1.0) -> float:
    """Return 0.9 factor sd n^(-1/5), the rule for rows of this total weight (MDH, Section 5.1.1)."""
    return float(max(0.9 * factor * deviation * total**-0.2, SMALLEST * deviation))


def bounded_depth(profile: Profile, threshold: float, bandwidth: float) -> float:
    """Return d / (1 + d) for the relative depth d of a threshold (MDH, Equation 30): a number in [0, 1].

    With I the density at the threshold and M at the lower of the two adjacent modes, d is M / I - 1, and
    this 1 - I / M: the same order, and 1 across an empty gap.

    >>> points = np.array([-2.0, -1.5, 1.5, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> bounded_depth(profile, 0.0, bandwidth=0.4) > 0.99
    True
    """
    return float(MinimumDensityIndex(bandwidth, np.inf).line(profile).relative_depth(threshold))


def log_odds_slope(profile: Profile, threshold: float, bandwidth: float) -> float:
    r"""Return by how much the log odds of the right side grow per unit of length, at a threshold.

    The density is taken for that of two Gaussians next to the threshold, at :math:`\pm c` with deviation
    :math:`\tau`. Their log odds are linear, with slope :math:`2 c / \tau^2`. With :math:`x = m c / \tau^2`,
    the mode of the sum lies at :math:`m = c \tanh x`, and its log over that at the threshold is
    :math:`\log \cosh x - (x / 2) \tanh x`, which gives x, and the slope 2 x / m. Each side gives one half of
    the slope, from its own mode; none, if the density does not rise on it.

    >>> points, weights = np.linspace(-6.0, 6.0, 1201), np.zeros(1201)
    >>> weights = np.exp(-0.5 * (points - 2.0) ** 2) + np.exp(-0.5 * (points + 2.0) ** 2)
    >>> profile = Profile(points, weights, float(weights.sum()), 2.2)
    >>> float(round(log_odds_slope(profile, 0.0, bandwidth=0.1), 1))
    4.0
    """
    line = MinimumDensityIndex(bandwidth, np.inf).line(profile)
    here, slope = float(line.log_density(threshold)[0]), 0.0
    for side, last in ((-1.0, profile.points[0] - bandwidth), (1.0, profile.points[-1] + bandwidth)):
        grid, values, _ = line.coarse_curve(min(threshold, last), max(threshold, last))
        grid, values = (grid[::-1], values[::-1]) if side < 0.0 else (grid, values)
        steps = np.diff(values)
        rising = int(np.argmax(steps > 0.0)) if (steps > 0.0).any() else len(steps)
        falling = np.flatnonzero(steps[rising:] <= 0.0)
        mode = rising + int(falling[0]) if len(falling) else len(steps)
        rise, length = values[mode] - here, side * (grid[mode] - threshold)
        if rising < len(steps) and rise > 0.0 and length > 0.0:
            slope += float(np.interp(rise, RISES, PLACES, right=2.0 * (rise + math.log(2.0)))) / length
    return slope


@dataclass(frozen=True)
class MinimumDensityIndex:
    r"""The penalized density on the best hyperplane with a given normal (MDH, Equations 10 and 13).

    .. math:: \phi(v) = \min_b \hat I(v, b) + \frac{L}{\eta}\max\{0, |b - \mu_v| - \alpha\sigma_v\}^2

    with I the Gaussian kernel density estimate of the projected rows and
    :math:`L = (e^{1/2} h^2 \sqrt{2\pi})^{-1}`, the steepest slope of a density with bandwidth h. The value
    is log phi: its gradient is relative, and it stays finite as the bandwidth goes to 0.

    Cost: two exponentials per point, and two products per point and candidate threshold.

    Parameters
    ----------
    bandwidth : float
        h, in units of the profile.
    alpha : float
        Half-width of the interval of thresholds around the mean, in standard deviations.
    eta : float
        How far the penalty lets a threshold leave the interval, in bandwidths. (0.01 in data units in the
        paper, Section 5.1.1, which finds that it does not matter; the exponent 2 - 1e-6 there is 2 here.)
    overshoot : float
        If the density still falls at the end of the interval, its minimum may be as far beyond, in
        bandwidths. (0 in the paper.)

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
    overshoot: float = 1.0

    @property
    def resolution(self) -> float:
        """An eighth of the bandwidth."""
        return self.bandwidth / BINS_PER_BANDWIDTH

    @property
    def parameters(self) -> FloatArray:
        """The parameters of the compiled `line_function`."""
        return np.array([self.bandwidth, self.alpha, self.eta, self.overshoot])

    @property
    def line_function(self) -> LineFunction:
        """The compiled function, see `LineFunction`."""
        return MINIMUM

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log phi at the best threshold, with its derivatives."""
        return evaluate_line(self, profile)

    def evaluate_with(self, profile: Profile, labels: PlacedLabels) -> IndexValue:
        """Return the same with the penalty of labels added to the density, except for `labeled_slope`."""
        slope, out = np.empty(len(profile.points)), np.empty(3)
        points, mass = np.ascontiguousarray(profile.points), np.ascontiguousarray(profile.mass)
        labeled_minimum(points, mass, profile.total, profile.std, self.parameters, labels, slope, out)
        value, threshold, d_std = out.tolist()
        return IndexValue(value, slope, threshold, d_std)

    def curve(self, profile: Profile, thresholds: FloatArray) -> FloatArray:
        """Return the logarithm of the penalized density at every threshold."""
        thresholds = np.asarray(thresholds, dtype=np.float64)
        return np.asarray(self.line(profile).curve(thresholds))

    def log_density(self, profile: Profile, threshold: float) -> float:
        """Return the logarithm of the density at a threshold, without the penalty."""
        return float(self.line(profile).log_density(threshold)[0])

    def lowest_valley(self, profile: Profile, min_weight: float) -> float | None:
        """Return the lowest local minimum of the density with `min_weight` on either side, or None."""
        min_weight = max(min_weight, np.finfo(float).tiny)
        threshold = replace(self, alpha=np.inf).line(profile).lowest_valley(min_weight)
        return None if np.isnan(threshold) else float(threshold)

    def line(self, profile: Profile) -> ProfileLine:
        """Return the profile for the loops, with the bandwidth and the interval of this index."""
        return ProfileLine(profile.points, profile.mass, profile.total, self.parameters, profile.std)


@dataclass(frozen=True)
class MinimumDensitySchedule(Schedule):
    """Minimum density with bandwidth 0.9 sd n^(-1/5) and alpha growing to `alpha_max` (MDH, Section 5.1.1).

    All values of alpha are followed, and the last valid optimum counts. Ten of them are a choice.
    """

    bandwidth_factor: float = 1.0
    alpha_max: float = 0.9
    n_alphas: int = 10
    overshoot: float = 1.0
    name: str = "minimum density"
    nested: ClassVar[bool] = True
    behind: ClassVar[float] = BEHIND
    gammas: ClassVar[Sequence[float]] = (0.1, 1.0)  # weights of partial labels against the density

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[MinimumDensityIndex]:
        """Return the index at `n_alphas` values of alpha from near 0 to the largest."""
        h = bandwidth(deviation, total, self.bandwidth_factor)
        alphas = np.linspace(min(FIRST_ALPHA, self.alpha_max), self.alpha_max, self.n_alphas).tolist()
        return [MinimumDensityIndex(h, alpha, overshoot=self.overshoot) for alpha in alphas]

    def rank(self, index: MinimumDensityIndex, profile: Profile, value: IndexValue) -> float:
        """Return the bounded relative depth."""
        return bounded_depth(profile, value.threshold, index.bandwidth)

    def value(self, index: MinimumDensityIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return the density on the hyperplane, without a penalty."""
        return math.exp(index.log_density(profile, value.threshold)) / unit

    def facts(self, index: MinimumDensityIndex, unit: float) -> Mapping[str, float]:
        """Return the bandwidth, and the half-width of the interval in standard deviations."""
        return {"bandwidth": unit * index.bandwidth, "alpha": index.alpha}

    def fallbacks(self) -> Sequence[MinimumDensitySchedule]:
        """Return the same with a wider interval, for groups far from the middle."""
        wide = self.alpha_max >= FALLBACK_ALPHA
        return () if wide else (replace(self, alpha_max=FALLBACK_ALPHA),)
