"""A boundary between two sides, the split that it makes, and what a splitter is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.blocks import Query, RowBlocks, Rows
from ravine.data.standardization import Standardization, safe_scale
from ravine.split.labels import Labels

BLOCK = 1024  # rows whose distances to all centers are held at a time


@dataclass(frozen=True)
class Hyperplane:
    """The rows x with weights . (x - pivot) = cut; the right side lies above.

    `weights` act on the raw columns. Distances are in the user's own units, or in standard deviations where
    columns are standardized. The pivot is kept apart because columns with means of
    1e9 would otherwise lose their digits.

    >>> plane = Hyperplane(np.array([1.0, 0.0]), np.zeros(2), 0.5)
    >>> plane.intercept
    -0.5
    """

    weights: FloatArray
    pivot: FloatArray
    threshold: float

    @classmethod
    def of(
        cls, standardization: Standardization, direction: FloatArray, threshold: float, pivot: FloatArray
    ) -> Hyperplane:
        """Return the hyperplane across a direction of a frame, in the user's units and about a pivot."""
        weights = standardization.unit * standardization.weights(direction)
        return cls(weights, standardization.mean, standardization.unit * threshold).about(pivot)

    @property
    def intercept(self) -> float:
        """b in weights . x + b > 0, the right side."""
        return float(-(self.weights @ self.pivot) - self.threshold)

    def distances(self, rows: Rows) -> FloatArray:
        """Return the signed distance of every row of a block, positive on the right."""
        return np.asarray(rows.project(self.pivot, self.weights[None, :])[0] - self.threshold)

    def signed_distance(self, rows: RowBlocks) -> FloatArray:
        """Return the signed distance of every row, positive on the right."""
        return rows.map(self.distances)

    def about(self, pivot: FloatArray) -> Hyperplane:
        """Return the same hyperplane told from another pivot."""
        return Hyperplane(self.weights, pivot, self.threshold + float(self.weights @ (self.pivot - pivot)))


@dataclass(frozen=True)
class NearestCenter:
    """Two sides by the nearest of several centers, in the projection on a few directions.

    `directions` (l, d) act on the raw columns, about the pivot; `centers` (m, l) lie in the projection, and
    `right` says on which side each is. The signed distance of a row is half the difference of its distances
    to the nearest center of either side: 0 on the boundary, with slope 1 across it.

    >>> centers, right = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([False, True])
    >>> sides = NearestCenter(np.eye(2), np.zeros(2), centers, right)
    >>> sides.weights.tolist(), sides.threshold
    ([1.0, 0.0], 0.0)
    """

    directions: FloatArray
    pivot: FloatArray
    centers: FloatArray
    right: npt.NDArray[np.bool_]

    @cached_property
    def line(self) -> tuple[FloatArray, FloatArray]:
        """The unit vector from the left centers' mean to the right ones', and the middle between them."""
        left, right = self.centers[~self.right].mean(axis=0), self.centers[self.right].mean(axis=0)
        apart = (right - left) / (float(np.abs(right - left).max()) or 1.0)  # so that no square overflows
        return apart / (float(np.linalg.norm(apart)) or 1.0), left / 2 + right / 2

    @property
    def weights(self) -> FloatArray:
        """The straight way from the left side to the right one, as weights of the raw columns."""
        return np.asarray(self.line[0] @ self.directions)

    @property
    def threshold(self) -> float:
        """The middle of that way."""
        return float(self.line[0] @ self.line[1])

    def distances(self, rows: Rows) -> FloatArray:
        """Return the signed distance of every row of a block, positive on the right."""
        points = rows.project(self.pivot, self.directions).T
        unit = safe_scale(points, self.centers)
        points, centers = points * unit, self.centers * unit
        out = np.empty(len(points))
        for a in range(0, len(points), BLOCK):
            with np.errstate(over="ignore", invalid="ignore"):  # a row that is not finite has no distance
                near = [
                    np.sqrt(((points[a : a + BLOCK, None, :] - side) ** 2).sum(axis=2)).min(axis=1)
                    for side in (centers[~self.right], centers[self.right])
                ]
                out[a : a + BLOCK] = (near[0] - near[1]) / 2 / unit
        return out

    def signed_distance(self, rows: RowBlocks) -> FloatArray:
        """Return the signed distance of every row, positive on the right."""
        return rows.map(self.distances)

    def about(self, pivot: FloatArray) -> NearestCenter:
        """Return the same boundary told from another pivot."""
        return replace(self, pivot=pivot, centers=self.centers + self.directions @ (self.pivot - pivot))


Boundary = Hyperplane | NearestCenter


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
    separation 1 - MSP. `quality` in [0, 1] is for comparing splits, `gradient_norm` the relative gradient at
    the end, and `status` says why the search stopped. `evidence` is there where it was asked for; `facts` are
    further numbers that the method gives of its split, by name. Lengths (bandwidth, sigma, margin) are in the
    user's units, or in standard deviations where columns are standardized, and so is the density by its
    inverse.
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
        """The lower adjacent mode over the density at the cut, less one; infinite across an empty gap."""
        return self.quality / (1.0 - self.quality) if self.quality < 1.0 else np.inf

    def convinces(self, level: float) -> bool:
        """Say whether the evidence is strong enough at a level."""
        return self.evidence is not None and self.evidence.p_value <= level


class Splitter(Protocol):
    """Finds the best split of a set of rows."""

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Return the frame of the rows, and their best split with at least `least` weight on each side.

        No split is an answer: None says that there is nothing to split here. `root` is the frame of all
        rows, whose scale is kept; None at the root itself.
        """

    def wider(self) -> Sequence[Splitter]:
        """Return splitters to try where this one finds nothing that convinces; may be empty."""

    def steered(self, labels: Labels) -> Splitter | None:
        """Return a splitter that minds labels of two classes or more, or None where the method takes none."""
