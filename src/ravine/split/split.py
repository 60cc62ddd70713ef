"""A split: a boundary with the numbers that describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ravine._validate import FloatArray
from ravine.split.boundary import Boundary

MADE_BY = "discrete column"  # name of the fact of a split: the number of the discrete column that makes it


@dataclass(frozen=True)
class Evidence:
    """How a valley compares with those that the same search finds in unimodal reference rows.

    `log_depth` is log(mode / valley), `null_mean` and `null_deviation` are its mean and standard deviation
    over the references, `n_draws` is their number, and `p_value` the probability that one of them is as deep.
    """

    p_value: float
    log_depth: float
    null_mean: float
    null_deviation: float
    n_draws: int


@dataclass(frozen=True)
class Split:
    """One boundary with the evidence for it.

    `direction` is the unit normal in the standardized space of the search. `value` is the method's own
    objective, smaller is better: for minimum density the density on the hyperplane, for spectral connectivity
    lambda_2, for maximum margin the objective divided by C, for maximin separation 1 - MSP. `quality` in
    [0, 1] is the bounded relative depth of the density of the signed distances, the same for every method:
    1 - I / M, with I the density at the boundary and M at the lower of the two adjacent modes.
    `gradient_norm` is the norm of the relative gradient at the end, and `status` says why the search stopped.
    `evidence` is the result of the significance test, if there was one. `facts` are further numbers of the
    method, by name. Lengths (bandwidth, sigma, margin) are in the user's units, or in standard deviations if
    columns are standardized; densities are in the inverse of that unit.
    """

    boundary: Boundary
    direction: FloatArray
    method: str
    value: float
    quality: float
    gradient_norm: float
    status: str
    n_iter: int
    evidence: Evidence | None = None
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def relative_depth(self) -> float:
        """The lower adjacent mode over the density at the threshold, minus one; infinite at an empty gap."""
        return self.quality / (1.0 - self.quality) if self.quality < 1.0 else np.inf

    def is_significant(self, level: float) -> bool:
        """Return whether there is a p-value and it is at most the level."""
        return self.evidence is not None and self.evidence.p_value <= level
