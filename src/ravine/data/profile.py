"""The mass of projected rows on a grid, and the sum of rows weighted by a slope: value and gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.query import Additive, Answer
from ravine.data.standardization import Standardization

MAX_BINS = 1 << 17  # bins of a grid at most (1 MiB per array), however small the bandwidth; a choice


@dataclass(frozen=True)
class Grid:
    """Bins of one width around the mean; rows beyond it count in the bins at its ends."""

    low: float
    width: float
    n_bins: int

    @classmethod
    def around_mean(cls, reach: float, width: float) -> Self:
        """Return the grid from -reach to reach with bins of at most `width`, within reason."""
        n_bins = MAX_BINS if width * MAX_BINS <= 2 * reach else max(8, math.ceil(2 * reach / width))
        return cls(-reach, 2 * reach / n_bins, n_bins)


@dataclass(frozen=True)
class ProfileSum(Additive):
    """Request for the mass and the first moment of the projected rows in each bin of a grid.

    With `with_rows`, also for the sum of the (centered) rows in each bin, from which the gradient of any
    function of the bins' centers follows without a second pass. Answer: mass (G,), moment (G,) and rows
    (G, d), or (0, d) where they were not asked for.
    """

    standardization: Standardization
    direction: FloatArray
    grid: Grid
    with_rows: bool

    def start(self, n_features: int) -> Answer:
        """Return empty bins."""
        n_bins = self.grid.n_bins
        rows = np.zeros((n_bins if self.with_rows else 0, n_features))
        return np.zeros(n_bins), np.zeros(n_bins), rows

    @staticmethod
    def add(block: Block, requests: Sequence[ProfileSum], answers: Sequence[Answer]) -> None:
        """Project one block on the directions of all requests at once and put it into their bins."""
        from ravine.data import kernels

        bins = np.empty(len(block), dtype=np.int64)
        for request, points, (mass, moment, sums) in zip(
            requests, _project(block, requests), answers, strict=True
        ):
            grid = request.grid
            kernels.bin_points(points, block.weights, grid.low, grid.width, bins, mass, moment)
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
        """Return zeros."""
        return (np.zeros((1, n_features)),)

    @staticmethod
    def add(block: Block, requests: Sequence[SlopeSum], answers: Sequence[Answer]) -> None:
        """Find the rows' bins again and add the block, weighted."""
        from ravine.data import kernels

        bins = np.empty(len(block), dtype=np.int64)
        one_group = np.zeros(len(block), dtype=np.int64)
        for request, points, (total,) in zip(requests, _project(block, requests), answers, strict=True):
            grid = request.grid
            ignored = np.zeros(grid.n_bins)
            kernels.bin_points(points, block.weights, grid.low, grid.width, bins, ignored, ignored)
            block.group_sums(
                request.standardization.mean, block.weights * request.slope[bins], one_group, total
            )


def _project(block: Block, requests: Sequence[ProfileSum | SlopeSum]) -> list[FloatArray]:
    """Project a block on all directions; those that share a frame go together."""
    points: dict[int, FloatArray] = {}
    shared: dict[bytes, list[int]] = {}
    for i, request in enumerate(requests):
        shared.setdefault(request.standardization.key, []).append(i)
    for members in shared.values():
        own = requests[members[0]].standardization
        normals = own.normals(np.array([requests[i].direction for i in members]))
        points.update(zip(members, block.project(own.mean, normals), strict=True))
    return [points[i] for i in range(len(requests))]
