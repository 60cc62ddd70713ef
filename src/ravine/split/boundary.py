"""A boundary between two sides: a hyperplane, or the nearest of several centers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.blocks import Block, DenseBlock
from ravine.data.microclusters import nearest
from ravine.data.query import RowSet
from ravine.data.standardization import Standardization, safe_scale


class _WithDistances:
    """Signed distances of rows in memory, from those of blocks."""

    def distances(self, block: Block) -> FloatArray:
        """Return the signed distance of every row of a block, positive on the right."""
        raise NotImplementedError

    def signed_distance(self, rows: RowSet) -> FloatArray:
        """Return the signed distance of every row, positive on the right."""
        return rows.map(self.distances)

    def signed_distance_of(self, values: FloatArray) -> FloatArray:
        """Return the signed distance of every row of an array, positive on the right."""
        return self.distances(DenseBlock(values, np.ones(len(values))))


@dataclass(frozen=True)
class Hyperplane(_WithDistances):
    """The rows x with normal . (x - pivot) = threshold; the right side lies above.

    `normal` acts on the raw columns. Distances are in the user's units, or in standard deviations if columns
    are standardized. The pivot is not merged into the threshold, because columns with means of 1e9 would then
    lose digits.

    >>> plane = Hyperplane(np.array([1.0, 0.0]), np.zeros(2), 0.5)
    >>> plane.intercept
    -0.5
    """

    normal: FloatArray
    pivot: FloatArray
    threshold: float

    @classmethod
    def of(
        cls, standardization: Standardization, direction: FloatArray, threshold: float, pivot: FloatArray
    ) -> Hyperplane:
        """Return the hyperplane across a standardized direction, in the user's units and about a pivot."""
        normal = standardization.unit * standardization.normals(direction)
        return cls(normal, standardization.mean, standardization.unit * threshold).about(pivot)

    @property
    def intercept(self) -> float:
        """b in normal . x + b > 0, the right side."""
        return float(-(self.normal @ self.pivot) - self.threshold)

    def distances(self, block: Block) -> FloatArray:
        return np.asarray(block.project(self.pivot, self.normal[None, :])[0] - self.threshold)

    def about(self, pivot: FloatArray) -> Hyperplane:
        """Return the same hyperplane about another pivot."""
        return Hyperplane(self.normal, pivot, self.threshold + float(self.normal @ (self.pivot - pivot)))


@dataclass(frozen=True)
class NearestCenter(_WithDistances):
    """Two sides by the nearest of several centers, in the projection on a few directions.

    `directions` (l, d) act on the raw columns, about the pivot; `centers` (m, l) are in the projection, and
    `right` are those on the right side. The signed distance of a row is half the difference of its
    distances to the nearest center on the left and on the right: 0 on the boundary, with slope 1 across it.

    >>> centers, right = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([False, True])
    >>> sides = NearestCenter(np.eye(2), np.zeros(2), centers, right)
    >>> sides.normal.tolist(), sides.threshold
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
    def normal(self) -> FloatArray:
        """The line from the mean of the left centers to that of the right ones, in the raw columns."""
        return np.asarray(self.line[0] @ self.directions)

    @property
    def threshold(self) -> float:
        """The middle of that line."""
        return float(self.line[0] @ self.line[1])

    def distances(self, block: Block) -> FloatArray:
        points = block.project(self.pivot, self.directions).T
        unit = safe_scale(points, self.centers)
        points, centers = points * unit, self.centers * unit
        with np.errstate(over="ignore", invalid="ignore"):  # the distance of a row with NaN is NaN
            left, right = (nearest(points, centers[some])[1] for some in (~self.right, self.right))
            return np.asarray((left - right) / 2 / unit)

    def about(self, pivot: FloatArray) -> NearestCenter:
        """Return the same boundary about another pivot."""
        return replace(self, pivot=pivot, centers=self.centers + self.directions @ (self.pivot - pivot))


Boundary = Hyperplane | NearestCenter
