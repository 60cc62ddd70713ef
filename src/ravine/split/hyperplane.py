"""A boundary between two sides, the split that it makes, and what a splitter is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Asker, RowBlocks, Rows
from ravine.data.frame import Frame


@dataclass(frozen=True)
class Hyperplane:
    """The rows x with weights . (x - pivot) = cut; the right side lies above.

    `weights` act on the raw columns, so the hyperplane is in the user's own units; a distance is measured
    in the standardised space in which it was found. The pivot is kept apart because columns with means of
    1e9 would otherwise lose their digits.

    >>> plane = Hyperplane(np.array([1.0, 0.0]), np.zeros(2), 0.5)
    >>> plane.intercept
    -0.5
    """

    weights: FloatArray
    pivot: FloatArray
    cut: float

    @property
    def intercept(self) -> float:
        """b in weights . x + b > 0, the right side."""
        return float(-(self.weights @ self.pivot) - self.cut)

    def distances(self, rows: Rows) -> FloatArray:
        """Return the signed distance of every row of a block, positive on the right."""
        return np.asarray(rows.project(self.pivot, self.weights[None, :])[0] - self.cut)

    def signed_distance(self, rows: RowBlocks) -> FloatArray:
        """Return the signed distance of every row, positive on the right."""
        return rows.map(self.distances)


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

    `direction` is the unit normal in the standardised space; `value` the index there (for minimum density,
    the density on the hyperplane), `quality` in [0, 1] for comparing splits, `gradient_norm` the relative
    gradient at the end, and `status` says why the search stopped. `evidence` is there where it was asked for;
    `facts` are further numbers that the method tells of its split, by name.
    """

    boundary: Hyperplane
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
        """The lower adjacent mode over the density at the cut, less one; infinite across an empty gap."""
        return self.quality / (1.0 - self.quality) if self.quality < 1.0 else np.inf

    def convinces(self, level: float) -> bool:
        """Say whether the evidence is strong enough at a level."""
        return self.evidence is not None and self.evidence.p_value <= level


class Splitter(Protocol):
    """Finds the best split of a set of rows."""

    def search(
        self, rows: RowBlocks, root: Frame | None, least: float, rng: np.random.Generator
    ) -> Asker[tuple[Frame, Split | None]]:
        """Return the frame of the rows, and their best split with at least `least` weight on each side.

        No split is an answer: None says that there is nothing to split here. `root` is the frame of all
        rows, whose scale is kept; None at the root itself.
        """

    def wider(self) -> Sequence[Splitter]:
        """Return splitters to try where this one finds nothing that convinces; may be empty."""
