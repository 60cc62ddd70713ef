"""Spectral connectivity: the second eigenvalue of the Laplacian of the graph of projected points.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.index.base import IndexValue, LineFunction, Profile, Schedule, evaluate_line
from ravine.index.connectivity_loops import CONTRACTED

BINS_PER_SIGMA = 8  # affinities then err by a factor of exp(1/4) at most, and mostly by far less; a choice
# Standard deviations: half-widths of the interval, in the paper's steps of 0.5 (Section 7.1). The largest,
# and the factor of sd n^(-1/5) in sigma (1 in the paper), were chosen by looking at the means of
# `benchmarks/papers.py --table scpp`.
BETAS = (1.5, 1.0, 0.5)
SIGMA = 0.5


@dataclass(frozen=True)
class ConnectivityIndex:
    r"""The second eigenvalue of the normalized Laplacian of a profile, with the kernel exp(-|t| / sigma).

    The value is :math:`\log\theta` with :math:`\theta = \lambda_2 / (1 - \lambda_2)`. Points farther than
    `beta` standard deviations from the mean are moved towards it (Equation 23), so that a few outliers are
    not a cluster.

    Cost: linear in the number of points, for each of some inverse iterations.

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

    @property
    def resolution(self) -> float:
        """An eighth of sigma."""
        return self.sigma / BINS_PER_SIGMA

    @property
    def parameters(self) -> FloatArray:
        """The parameters of the compiled `line_function`."""
        return np.array([self.sigma, self.beta])

    @property
    def line_function(self) -> LineFunction:
        """The compiled function, see `LineFunction`."""
        return CONTRACTED

    def evaluate(self, profile: Profile) -> IndexValue:
        """Return log theta, with the threshold where the second eigenvector changes its sign."""
        return evaluate_line(self, profile)

    def eigenvalue(self, profile: Profile) -> float:
        """Return lambda_2."""
        theta = float(np.exp(self.evaluate(profile).value))
        return theta / (1.0 + theta)


@dataclass(frozen=True)
class ConnectivitySchedule(Schedule):
    """Spectral connectivity with sigma = 0.5 sd n^(-1/5) and beta lowered until the split is balanced.

    The first of `betas` whose smaller side has at least `least_share` of the weight counts, or else the last
    (Section 7.1, where that share is 1 / 2K for K clusters).
    """

    sigma_factor: float = 1.0
    betas: tuple[float, ...] = BETAS
    least_share: float = 0.25
    name: str = "spectral connectivity"

    def indices(self, deviation: float, total: float, mean_variance: float) -> Sequence[ConnectivityIndex]:
        """Return the index at every beta, from the largest."""
        sigma = SIGMA * self.sigma_factor * deviation * total**-0.2
        return [ConnectivityIndex(sigma, beta) for beta in self.betas]

    def rank(self, index: ConnectivityIndex, profile: Profile, value: IndexValue) -> float:
        """Return 1 - lambda_2."""
        return max(0.0, 1.0 - index.eigenvalue(profile))

    def value(self, index: ConnectivityIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return lambda_2."""
        return index.eigenvalue(profile)

    def test_quality(self, value: float) -> float:
        """Return 1 - lambda_2: the threshold need not lie at a valley, so depths by chance are mostly 0."""
        return max(0.0, 1.0 - value)

    def facts(self, index: ConnectivityIndex, unit: float) -> Mapping[str, float]:
        """Return sigma and beta."""
        return {"sigma": unit * index.sigma, "beta": index.beta}
