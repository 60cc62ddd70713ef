"""Spectral connectivity: the second eigenvalue of the Laplacian of the graph of projected points.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, Profile, register

BINS_PER_SIGMA = 16
DELTA = 0.01  # the exponent of the contraction, for distances in units of sigma


@dataclass(frozen=True)
class ConnectivityIndex:
    r"""The second eigenvalue of the graph Laplacian of a profile, with the Laplace kernel exp(-|t| / sigma).

    The value is :math:`\log\theta` with :math:`\theta = \lambda_2 / (1 - \lambda_2)` for the normalised
    Laplacian and :math:`\theta = \lambda_2` for the standard one. Points farther than `beta` standard
    deviations from the mean are drawn in (Equation 23), so that a few outliers are no cluster; `valid` says
    whether the smaller side has at least `least_share` of the mass. Cost: O(G) by the path form.

    Examples
    --------
    >>> points = np.array([-2.0, -1.8, 1.8, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> index = ConnectivityIndex(sigma=0.5, beta=3.0)
    >>> round(abs(index.evaluate(profile).cut), 6)
    0.0
    """

    sigma: float
    beta: float
    normalized: bool = True
    least_share: float = 0.0

    @property
    def resolution(self) -> float:
        """A sixteenth of sigma: affinities then are right within a factor of exp(1/8)."""
        return self.sigma / BINS_PER_SIGMA

    def contract(self, profile: Profile) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the points drawn in, the derivative of each by its position, and by the deviation."""
        edge = self.beta * profile.std
        points = profile.points
        excess = np.maximum(np.abs(points) - edge, 0.0) / self.sigma
        outside = excess > 0
        floor = (DELTA * (1 - DELTA)) ** (1 / DELTA)
        drawn = DELTA * ((excess + floor) ** (1 - DELTA) - floor ** (1 - DELTA))
        sign = np.sign(points)
        steep = np.where(outside, DELTA * (1 - DELTA) * (excess + floor) ** -DELTA, 1.0)
        moved = np.where(outside, sign * (edge + self.sigma * drawn), points)
        by_std = np.where(outside, sign * self.beta * (1.0 - steep), 0.0)
        return moved, steep, by_std

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log theta, with the cut where the second eigenvector changes its sign."""
        from ravine.index import connectivity_kernels

        points, steep, by_std = self.contract(profile)
        slope = np.empty(len(points))
        if len(points) < 2:
            return IndexValue(0.0, np.zeros(len(points)), 0.0, valid=False)
        value, mode = connectivity_kernels.connectivity(
            points, profile.mass, self.sigma, self.normalized, slope
        )
        k = int(np.searchsorted(mode > 0, True))
        k = min(max(k, 1), len(points) - 1)
        cut = float(profile.points[k - 1] / 2 + profile.points[k] / 2)
        left = float(profile.mass[:k].sum())
        share = min(left, profile.total - left) / profile.total
        return IndexValue(
            value, slope * steep, cut, d_std=float(slope @ by_std), valid=share >= self.least_share
        )

    def quality(self, profile: Profile, cut: float) -> float:
        """Return 1 - lambda_2, with lambda_2 in units of its largest value; in [0, 1]."""
        said = self.evaluate(profile)
        return float(1.0 / (1.0 + np.exp(said.value)))


@register("connectivity, normalised Laplacian")
def _normalised(profile: Profile) -> ConnectivityIndex:
    return ConnectivityIndex(profile.std * profile.total**-0.2, beta=1.5)


@register("connectivity, standard Laplacian")
def _standard(profile: Profile) -> ConnectivityIndex:
    return ConnectivityIndex(profile.std * profile.total**-0.2, beta=1.5, normalized=False)
