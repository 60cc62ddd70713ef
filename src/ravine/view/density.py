"""The density of the rows along the normal of every split, in two passes over all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows
from ravine.data.query import Additive, Answer, Request
from ravine.index.density import bandwidth
from ravine.split.split import Split
from ravine.tree.arrays import TreeArrays

N_BINS = 160  # of a curve: about three pixels each in the report
REACH = 4.0  # standard deviations that are shown around the mean; rows beyond count in the outer bins


def bandwidth_of(split: Split, deviation: float, total: float) -> float:
    """Return the bandwidth that the fit used for a split.

    A method without one gets 0.9 sd n^(-1/5), with the standard deviation of the distances to the split.
    """
    return float(split.facts.get("bandwidth", bandwidth(deviation, total)))


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
    """Request for the weight of the rows in bins of their distance to every split: (nodes, bins)."""

    tree: TreeArrays
    low: FloatArray
    width: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return empty bins."""
        return (np.zeros((self.tree.n_nodes, N_BINS)),)

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block."""
        (mass,) = answer
        for node, here, distance in self.tree.visit_block(block):
            place = (distance - self.low[node]) / self.width[node]
            bins = np.clip(place, 0, N_BINS - 1).astype(np.int64)
            mass[node] += np.bincount(bins, block.weights[here], N_BINS)


@dataclass(frozen=True)
class NodeDensity:
    """The density of the rows of a node at some signed distances from its split, which is at 0."""

    points: FloatArray
    density: FloatArray
    bandwidth: float
    weight: float


def densities(tree: TreeArrays, rows: MemoryRows) -> dict[int, NodeDensity]:
    """Return the density along the normal of every split that rows reach; two passes."""
    ((moments, low, high),) = rows.pass_over([DistanceMoments(tree)])
    start, width, bandwidths = np.zeros(tree.n_nodes), np.ones(tree.n_nodes), {}
    for node, split in enumerate(tree.splits):
        total = float(moments[0, node])
        if split is None or total == 0.0:
            continue
        mean = moments[1, node] / total
        deviation = float(np.sqrt(max(moments[2, node] / total - mean**2, 0.0)))
        h = bandwidths[node] = bandwidth_of(split, deviation, total)
        # The split itself, at 0, is always shown.
        first = min(max(mean - REACH * deviation, low[node]), 0.0)
        last = max(min(mean + REACH * deviation, high[node]), 0.0)
        # Three bandwidths, as `_smooth` widens them, let the curve fall to 0 at the ends; the last term keeps
        # the width above 0 where all rows are equal.
        margin = 3 * max(h, (last - first) / N_BINS / 2) + 1e-12 * (1.0 + abs(mean))
        start[node], width[node] = first - margin, (last - first + 2 * margin) / N_BINS
    ((mass,),) = rows.pass_over([DistanceBins(tree, start, width)])
    return {
        node: _smooth(mass[node], float(start[node]), float(width[node]), h) for node, h in bandwidths.items()
    }


def _smooth(mass: FloatArray, start: float, width: float, bandwidth: float) -> NodeDensity:
    points: FloatArray = start + width * (np.arange(N_BINS, dtype=np.float64) + 0.5)
    h = max(bandwidth, width / 2)  # bins cannot show less
    kernel = np.exp(-0.5 * ((points[:, None] - points[None, :]) / h) ** 2) / (h * np.sqrt(2 * np.pi))
    return NodeDensity(points, kernel @ mass / mass.sum(), h, float(mass.sum()))
