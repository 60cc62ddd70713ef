"""Profiles: the mass of projected rows on a grid, for an index, and sums of rows, for its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.loops import bin_points
from ravine.data.query import Additive, Answer, places_by
from ravine.data.standardization import Standardization

REACH = 5.0  # half-width of a grid, in standard deviations along the first principal direction
MAX_BINS = 1 << 15  # most bins of a grid (256 KiB per array), however small the bandwidth; a choice


@dataclass(frozen=True)
class Grid:
    """Bins of equal width around the mean; rows beyond the grid count in its outer bins."""

    low: float
    width: float
    n_bins: int

    @classmethod
    def around_mean(cls, reach: float, width: float) -> Self:
        """Return the grid from -reach to reach with bins of at most `width`.

        There are at most 32 768. A whole number of bins stays that number if reach or width are rounded:
        another one would start another search.

        >>> [Grid.around_mean(reach, 0.1).n_bins for reach in (5.0, 5.0 + 1e-14, 5.0 + 1e-6)]
        [100, 100, 101]
        """
        too_fine = width * MAX_BINS <= 2 * reach
        n_bins = MAX_BINS if too_fine else max(8, math.ceil(2 * reach / width * (1.0 - 1e-9)))
        return cls(-reach, 2 * reach / n_bins, n_bins)


@dataclass(frozen=True)
class ProfileSum(Additive):
    """Request for the mass and the first moment of the projected rows in each bin of a grid.

    With `with_rows`, also for the sum of the (centered) rows in each bin: these give the gradient of any
    function of the bins' centers without a second pass. Answer: mass (G,), moment (G,), and the sums of the
    rows (G, d), or (0, d) without `with_rows`.
    """

    standardization: Standardization
    direction: FloatArray
    grid: Grid
    with_rows: bool

    def start(self, n_features: int) -> Answer:
        n_bins = self.grid.n_bins
        rows = np.zeros((n_bins if self.with_rows else 0, n_features))
        return np.zeros(n_bins), np.zeros(n_bins), rows

    @staticmethod
    def add_many(block: Block, requests: Sequence[ProfileSum], answers: Sequence[Answer]) -> None:
        bins = np.empty(len(block), dtype=np.int64)
        for request, points, (mass, moment, sums) in zip(
            requests, _project(block, requests), answers, strict=True
        ):
            grid = request.grid
            bin_points(points, block.weights, grid.low, grid.width, bins, mass, moment)
            if request.with_rows:
                block.group_sums(request.standardization.mean, block.weights, bins, sums)


@dataclass(frozen=True)
class SlopeSum(Additive):
    """Request for the sum of the (centered) rows, each weighted by the slope of its bin. Answer: (1, d)."""

    standardization: Standardization
    direction: FloatArray
    grid: Grid
    slope: FloatArray

    def start(self, n_features: int) -> Answer:
        return (np.zeros((1, n_features)),)

    @staticmethod
    def add_many(block: Block, requests: Sequence[SlopeSum], answers: Sequence[Answer]) -> None:
        bins = np.empty(len(block), dtype=np.int64)
        one_group = np.zeros(len(block), dtype=np.int64)
        for request, points, (total,) in zip(requests, _project(block, requests), answers, strict=True):
            grid = request.grid
            ignored = np.zeros(grid.n_bins)
            bin_points(points, block.weights, grid.low, grid.width, bins, ignored, ignored)
            block.group_sums(
                request.standardization.mean, block.weights * request.slope[bins], one_group, total
            )


def _project(block: Block, requests: Sequence[ProfileSum | SlopeSum]) -> list[FloatArray]:
    """Project a block on all directions, in one call per standardization."""
    points: dict[int, FloatArray] = {}
    for members in places_by(request.standardization.key for request in requests).values():
        own = requests[members[0]].standardization
        normals = own.normals(np.array([requests[i].direction for i in members]))
        points.update(zip(members, block.project(own.mean, normals), strict=True))
    return [points[i] for i in range(len(requests))]
