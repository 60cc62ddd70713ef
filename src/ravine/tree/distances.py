"""Requests about the signed distances of rows to every split that they reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.query import Additive, Answer, Request
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
    """Request for weight and first moment of the distances to every split in bins: two arrays (nodes, bins).

    The bins of a node begin at `low` and have one `width`; rows beyond them count in the outer ones.
    """

    tree: TreeArrays
    low: FloatArray
    width: FloatArray
    n_bins: int

    def start(self, n_features: int) -> Answer:
        """Return empty bins."""
        shape = self.tree.n_nodes, self.n_bins
        return np.zeros(shape), np.zeros(shape)

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block."""
        mass, moment = answer
        for node, here, distance in self.tree.visit_block(block):
            place = (distance - self.low[node]) / self.width[node]
            bins = np.clip(place, 0, self.n_bins - 1).astype(np.int64)
            mass[node] += np.bincount(bins, block.weights[here], self.n_bins)
            moment[node] += np.bincount(bins, block.weights[here] * distance, self.n_bins)


def mean_and_deviation(moments: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation from weight and first two moments."""
    total, first, second = moments
    mean = first / total
    return float(mean), float(np.sqrt(max(second / total - mean**2, 0.0)))
