"""Spectral connectivity: the second eigenvalue of the Laplacian of the graph of projected points.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, Profile
from ravine.index.interval import contract_outliers

BINS_PER_SIGMA = 8
BETAS = (1.5, 1.0, 0.5)  # half-widths of the interval, in standard deviations: a larger one finds outliers
SIGMA = 0.5  # the scale, times sd n^(-1/5)


@dataclass(frozen=True)
class ConnectivityIndex:
    r"""The second eigenvalue of the graph Laplacian of a profile, with the Laplace kernel exp(-|t| / sigma).

    The value is :math:`\log\theta` with :math:`\theta = \lambda_2 / (1 - \lambda_2)` for the normalized
    Laplacian and :math:`\theta = \lambda_2` for the standard one. Points farther than `beta` standard
    deviations from the mean are drawn in (Equation 23), so that a few outliers are no cluster.
    Cost: O(G) by the path form.

    Examples
    --------
    >>> points = np.array([-2.0, -1.8, 1.8, 2.0])
    >>> profile = Profile(points, np.ones(4), total=4.0, std=points.std())
    >>> index = ConnectivityIndex(sigma=0.5, beta=3.0)
    >>> round(abs(index.evaluate(profile).threshold), 6)
    0.0
    """

    sigma: float
    beta: float
    normalized: bool = True

    @property
    def resolution(self) -> float:
        """An eighth of sigma: affinities are right within a factor of exp(1/4), and mostly much better."""
        return self.sigma / BINS_PER_SIGMA

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log theta, with the cut where the second eigenvector changes its sign."""
        from ravine.index import connectivity_kernels

        points, steep, by_edge = contract_outliers(
            profile.points, np.array(self.beta * profile.std), self.sigma
        )
        slope = np.empty(len(points))
        if len(points) < 2:
            return IndexValue(0.0, np.zeros(len(points)), 0.0, valid=False)
        value, mode = connectivity_kernels.connectivity(
            points, profile.mass, self.sigma, self.normalized, slope
        )
        k = int(np.searchsorted(mode > 0, True))
        k = min(max(k, 1), len(points) - 1)
        threshold = float(profile.points[k - 1] / 2 + profile.points[k] / 2)
        return IndexValue(value, slope * steep, threshold, d_std=self.beta * float(slope @ by_edge))

    def eigenvalue(self, profile: Profile) -> float:
        """Return lambda_2 itself."""
        theta = float(np.exp(self.evaluate(profile).value))
        return theta / (1.0 + theta) if self.normalized else theta

    def error_bound(self, radius: float) -> float:
        """Bound the relative error of lambda_2 when points stand for others within `radius` of them.

        Distances are then right within 2 radius, so affinities within a factor of exp(r), r = 2 radius /
        sigma. For the standard Laplacian that bounds lambda_2 itself (Corollary 7 with alpha = 0), for the
        normalized one lambda_2 is right within exp(2 r).
        """
        r = 2.0 * radius / self.sigma
        return float(np.expm1(2.0 * r if self.normalized else r))


@dataclass(frozen=True)
class ConnectivitySchedule:
    """Spectral connectivity with sigma = 0.5 sd n^(-1/5) and beta lowered until the threshold is balanced.

    Of `betas` the first counts whose smaller side has at least `least_share` of the weight, or the last. The
    factor one half was found on the data sets of the paper (Section 7.2) with the first beta, 1.5.
    """

    normalized: bool = True
    sigma_factor: float = 1.0
    betas: tuple[float, ...] = BETAS
    least_share: float = 0.25
    name: str = "spectral connectivity"

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[ConnectivityIndex]:
        """Return the index at every beta, from the largest."""
        sigma = SIGMA * self.sigma_factor * deviation * total**-0.2
        return [ConnectivityIndex(sigma, beta, self.normalized) for beta in self.betas]

    def accepts(self, value: IndexValue, profile: Profile) -> bool:
        """Return whether the smaller side is large enough."""
        return profile.smaller_side(value.threshold) >= self.least_share * profile.total

    def rank(self, index: ConnectivityIndex, profile: Profile, value: IndexValue) -> float:
        """Return 1 - lambda_2, with lambda_2 of the standard Laplacian divided by the mass."""
        largest = 1.0 if index.normalized else profile.total
        return max(0.0, 1.0 - index.eigenvalue(profile) / largest)

    def value(self, index: ConnectivityIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return lambda_2; the value of the index is log theta."""
        return index.eigenvalue(profile)

    def facts(self, index: ConnectivityIndex, width: float, unit: float) -> Mapping[str, float]:
        """Return sigma, beta and the bound on the relative error of lambda_2 by bins of this width."""
        bound = index.error_bound(width)
        return {"sigma": unit * index.sigma, "beta": index.beta, "binning_error_bound": bound}

    def fallbacks(self) -> Sequence[ConnectivitySchedule]:
        """Return nothing: the first beta has the widest interval already."""
        return ()
