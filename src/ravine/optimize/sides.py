"""The two sides of a hyperplane: their weights, sums and second moments, updated by the rows that switch.

A hyperplane is a `Cut`: a direction v of the standardized space and a threshold t. Rows with v . z > t are on
its right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data import loops
from ravine.data.blocks import Block
from ravine.data.query import Additive, Answer
from ravine.data.standardization import Standardization

Cut = tuple[FloatArray, float]


def signed_distances(block: Block, own: Standardization, cut: Cut) -> FloatArray:
    """Return v . z - t for every row of a block."""
    return np.asarray(block.project(own.mean, own.normals(cut[0])[None, :])[0] - cut[1])


@dataclass(frozen=True)
class SideSums(Additive):
    """Request for the weight, the sum and the second moments of the standardized rows right of a hyperplane.

    Without a hyperplane: of all rows. With `before`, the answer is the difference to the sums right of that
    hyperplane: only the rows that switch sides are summed.

    Answer: the weight, and the weight of the rows that switched (2,); the sum (d,); the second moments of the
    columns that vary (empty without `squares`).
    """

    standardization: Standardization
    cut: Cut | None
    before: Cut | None = None
    squares: bool = True

    def start(self, n_features: int) -> Answer:
        k = int(self.standardization.varies.sum()) if self.squares else 0
        return np.zeros(2), np.zeros(n_features), np.zeros((k, k))

    def add(self, block: Block, answer: Answer) -> None:
        (weight, total, square), own = answer, self.standardization
        change = self._change(block)
        rows = np.flatnonzero(change)
        if len(rows) == 0:
            return
        block, change = (block if len(rows) == len(block) else block.take(rows)), change[rows]
        weight += change.sum(), np.abs(change).sum()
        if not self.squares:  # sparse rows are not written out
            sums = np.zeros((1, len(own.mean)))
            block.group_sums(own.mean, change, np.zeros(len(rows), dtype=np.int64), sums)
            total += sums[0] * own.inverse_scale
            return
        standardized = own.apply(block.dense())
        total += change @ standardized
        varying = standardized[:, own.varies]
        square += varying.T @ (change[:, None] * varying)

    def _change(self, block: Block) -> FloatArray:
        """Return the weight of every row that moves to the right, negative for one that leaves it."""
        if self.cut is None:
            return block.weights
        own, weights = self.standardization, block.weights
        change = np.where(signed_distances(block, own, self.cut) > 0.0, weights, 0.0)
        if self.before is not None:
            change -= np.where(signed_distances(block, own, self.before) > 0.0, weights, 0.0)
        return change


@dataclass(frozen=True)
class LineMoments(Additive):
    """Request for weight, sum and sum of squares of the signed distances, left and right: (2, 3)."""

    standardization: Standardization
    cut: Cut

    def start(self, n_features: int) -> Answer:
        return (np.zeros((2, 3)),)

    def add(self, block: Block, answer: Answer) -> None:
        distances = signed_distances(block, self.standardization, self.cut)
        loops.line_moments(distances, block.weights, answer[0])


@dataclass(frozen=True)
class Side:
    """The standardized rows on one side: their weight, sum and second moments."""

    weight: float
    total: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, answer: Answer) -> Side:
        """Read the answer of `SideSums`."""
        return cls(float(answer[0][0]), answer[1], answer[2])

    def __add__(self, other: Side) -> Side:
        return Side(self.weight + other.weight, self.total + other.total, self.square + other.square)

    def __sub__(self, other: Side) -> Side:
        return Side(self.weight - other.weight, self.total - other.total, self.square - other.square)

    @property
    def mean(self) -> FloatArray:
        """The mean of the side's rows."""
        return self.total / self.weight

    def covariance(self, columns: IntArray) -> FloatArray:
        """Return the covariance of the columns that vary (divided by the weight)."""
        mean = self.mean[columns]
        return np.asarray(self.square / self.weight - np.outer(mean, mean))


def variance(sums: FloatArray) -> float:
    """Return the variance from weight, sum and sum of squares."""
    return float(sums[2] / sums[0] - (sums[1] / sums[0]) ** 2)


def kappa(sides: FloatArray, ridge: float) -> float:
    """Return kappa, the distance of two means over the sum of the deviations (variance plus ridge).

    `sides` has weight, sum and sum of squares of each side on a line.
    """
    spread = sum(math.sqrt(max(variance(side), 0.0) + ridge) for side in sides)
    apart = float(sides[1, 1] / sides[1, 0] - sides[0, 1] / sides[0, 0])
    return apart / spread if spread > 0.0 else math.inf
