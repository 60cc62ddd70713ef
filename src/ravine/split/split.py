"""A split: a boundary with the numbers that describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ravine._validate import FloatArray
from ravine.split.boundary import Boundary


@dataclass(frozen=True)
class Evidence:
    """How a valley compares with those that the same search finds in rows with one mode.

    `log_depth` is log(mode / valley), `null_mean` and `null_deviation` those of the references, `n_draws`
    how many there were, and `p_value` the chance that one of them is as deep.
    """

    p_value: float
    log_depth: float
    null_mean: float
    null_deviation: float
    n_draws: int


@dataclass(frozen=True)
class Split:
    """One boundary with the evidence for it.

    `direction` is the unit normal in the space of the search, with standardized columns where that was asked
    for. `value` is the method's own figure, and the smaller the better: for minimum density the density on
    the hyperplane, for spectral connectivity lambda_2, for maximum margin the objective over C, for maximin
    separation 1 - MSP. `quality` in [0, 1] is the bounded relative depth of the density of the signed
    distances at the boundary, the same for every method: 1 - I / M, with I the density there and M at the
    lower of the two adjacent modes. `gradient_norm` is the relative gradient at the end, and `status` says
    why the search stopped. `evidence` is there where it was asked for; `facts` are further numbers that the
    method gives of its split, by name. Lengths (bandwidth, sigma, margin) are in the user's units, or in
    standard deviations where columns are standardized, and so is the density by its inverse.
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
        """Return whether the p-value is at most a level."""
        return self.evidence is not None and self.evidence.p_value <= level
