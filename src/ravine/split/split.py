"""A split: a boundary with the numbers that describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ravine._validate import FloatArray
from ravine.split.boundary import Boundary

# Names of facts of a split: the number of the discrete column that makes it, and, where there is no valley,
# the bandwidth at which there is one, as a share of the nominal one.
MADE_BY, NO_VALLEY = "discrete column", "no valley"


@dataclass(frozen=True)
class Evidence:
    """How a valley compares with those that the same search finds in unimodal reference rows.

    Attributes
    ----------
    p_value : float
        Probability that a valley of the reference rows is at least as deep.
    log_depth : float
        log(mode / valley) of the split.
    null_mean, null_deviation : float
        Mean and standard deviation of the same over the reference samples.
    n_draws : int
        Number of reference samples.
    """

    p_value: float
    log_depth: float
    null_mean: float
    null_deviation: float
    n_draws: int


@dataclass(frozen=True)
class Split:
    """One boundary with its figures and the evidence for it.

    Lengths (bandwidth, sigma, margin) are in the user's units, or in standard deviations if columns are
    standardized; densities are in the inverse of that unit.

    Attributes
    ----------
    boundary : Hyperplane or NearestCenter
        The boundary; rows at a positive signed distance are on the right.
    direction : array of shape (n_features,)
        Unit normal in the standardized space of the search.
    method : str
        Name of the method.
    value : float
        The method's own objective, smaller is better: for minimum density the density on the hyperplane, for
        spectral connectivity lambda_2, for maximum margin the objective divided by C, for maximin separation
        1 - MSP.
    quality : float
        Bounded relative depth of the density of the signed distances, from 0 to 1, for every method:
        1 - I / M, with I the density at the boundary and M at the lower of the two adjacent modes.
    log_odds : float
        Slope of the log odds of the right side, per unit of distance from the boundary: from it follow the
        memberships. 0 where the density has no valley.
    gradient_norm : float
        Norm of the relative gradient where the search stopped.
    status : str
        Why the search stopped.
    n_iter : int
        Number of iterations.
    evidence : Evidence or None
        Result of the significance test, if there was one.
    facts : mapping from name to number
        Further figures. Every method: "bandwidth" of the density that gives `quality`; "discrete column", the
        number of the column between whose values the split runs, if there is one; "no valley", of a split
        that was made for the number of clusters only, the share of the bandwidth at which the density has a
        valley. Minimum density: "alpha",
        half-width of the interval of the threshold in standard deviations; with labels "gamma", the weight of
        their penalty. Spectral connectivity: "sigma"; "beta", half-width of the interval outside of which
        rows are drawn together, in standard deviations; in several directions "microclusters", their number.
        Maximum margin:
        "margin"; "support", share of the rows inside it; "slack"; "violation", by how much the objective,
        divided by C, may exceed the least one for these sides; "C"; "rounds", the number of planes that were
        the best so far.
    """

    boundary: Boundary
    direction: FloatArray
    method: str
    value: float
    quality: float
    log_odds: float
    gradient_norm: float
    status: str
    n_iter: int
    evidence: Evidence | None = None
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def relative_depth(self) -> float:
        """The lower adjacent mode over the density at the threshold, minus 1; infinite at an empty gap."""
        return self.quality / (1.0 - self.quality) if self.quality < 1.0 else np.inf

    def is_significant(self, level: float) -> bool:
        """Return whether there is a p-value and it is at most the level."""
        return self.evidence is not None and self.evidence.p_value <= level
