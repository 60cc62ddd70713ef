"""The signed distances of rows to every split that they reach, and how deep the valleys of the splits are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.query import Additive, Answer, Request
from ravine.data.standardization import safe_scale
from ravine.index.base import Profile
from ravine.index.density import bandwidth, bounded_depth, log_odds_slope
from ravine.tree.arrays import TreeArrays


@dataclass(frozen=True)
class DistanceMoments(Request):
    """Request for weight, first two moments and range of the distances to every split."""

    tree: TreeArrays

    def start(self, n_features: int) -> Answer:
        """Return the moments of no rows, (3, nodes), and an empty range."""
        n = self.tree.n_nodes
        return np.zeros((3, n)), np.full(n, np.inf), np.full(n, -np.inf)

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block."""
        moments, low, high = answer
        for node, here, distance in self.tree.visit_block(block):
            weight = block.weights[here]
            moments[:, node] += weight.sum(), weight @ distance, weight @ distance**2
            counted = distance[weight > 0]
            low[node] = min(low[node], counted.min(initial=np.inf))
            high[node] = max(high[node], counted.max(initial=-np.inf))

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Add the moments and join the ranges."""
        return left[0] + right[0], np.minimum(left[1], right[1]), np.maximum(left[2], right[2])


@dataclass(frozen=True)
class DistanceBins(Additive):
    """Request for the weight of the distances to every split in bins, (nodes, bins).

    The bins of a node begin at `low` and have one `width`; rows beyond them count in the outer ones.
    """

    tree: TreeArrays
    low: FloatArray
    width: FloatArray
    n_bins: int

    def start(self, n_features: int) -> Answer:
        """Return empty bins."""
        return (np.zeros((self.tree.n_nodes, self.n_bins)),)

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block."""
        (mass,) = answer
        for node, here, distance in self.tree.visit_block(block):
            place = (distance - self.low[node]) / self.width[node]
            bins = np.clip(place, 0, self.n_bins - 1).astype(np.int64)
            mass[node] += np.bincount(bins, block.weights[here], self.n_bins)


def mean_and_deviation(moments: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation from weight and first two moments."""
    total, first, second = moments
    mean = first / total
    return float(mean), float(np.sqrt(max(second / total - mean**2, 0.0)))


def measure_valley(distances: FloatArray, row_weight: FloatArray) -> tuple[float, float]:
    """Return quality and slope of the log odds of a split, from the density of signed distances at 0."""
    distances, row_weight = distances[row_weight > 0], row_weight[row_weight > 0]
    unit = safe_scale(distances)
    profile, mean = profile_of(distances * unit, row_weight)
    if profile.total == 0.0 or profile.points[0] == profile.points[-1]:
        return 0.0, 0.0
    valley = profile, -mean, bandwidth(profile.std, profile.total)
    return bounded_depth(*valley), log_odds_slope(*valley) * unit


def profile_of(distances: FloatArray, row_weight: FloatArray) -> tuple[Profile, float]:
    """Return the profile of the rows that have a weight, centered, and their mean."""
    order = np.argsort(distances, kind="stable")
    order = order[row_weight[order] > 0]
    points, mass = distances[order], row_weight[order]
    total = float(mass.sum())
    mean = float(mass @ points / (total or 1.0))
    std = float(np.sqrt(mass @ (points - mean) ** 2 / (total or 1.0)))
    return Profile(points - mean, mass, total, std), mean
