"""The density of the rows along the normal of every split, in two passes over all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Additive, Answer, RowBlocks, Rows
from ravine.tree.tree import ClusterTree

N_BINS = 160
REACH = 4.0  # standard deviations that are shown around the mean; rows beyond count at the ends


def distances_on_the_way(tree: ClusterTree, rows: Rows) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Yield, for every split that rows of a block reach, which rows and their signed distances."""
    node_of = np.zeros(len(rows), dtype=np.int64)
    for node, split in enumerate(tree.splits):
        here = np.flatnonzero(node_of == node)
        if split is None or len(here) == 0:
            continue
        distance = split.boundary.distances(rows.take(here))
        node_of[here] = np.where(distance > 0, tree.right[node], tree.left[node])
        yield node, here, distance


@dataclass(frozen=True)
class SpreadSum:
    """Request for weight, first two moments and range of the distances to every split: (5, nodes)."""

    tree: ClusterTree

    def start(self, n_features: int) -> Answer:
        """Return those of no rows."""
        n = self.tree.n_nodes
        return np.zeros((3, n)), np.full(n, np.inf), np.full(n, -np.inf)

    @staticmethod
    def add(rows: Rows, requests: Sequence[SpreadSum], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (moments, low, high) in zip(requests, answers, strict=True):
            for node, here, distance in distances_on_the_way(request.tree, rows):
                weight = rows.weights[here]
                moments[:, node] += weight.sum(), weight @ distance, weight @ distance**2
                counted = distance[weight > 0]
                low[node] = min(low[node], counted.min(initial=np.inf))
                high[node] = max(high[node], counted.max(initial=-np.inf))

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Add the moments and join the ranges."""
        return left[0] + right[0], np.minimum(left[1], right[1]), np.maximum(left[2], right[2])


@dataclass(frozen=True)
class BinSum(Additive):
    """Request for the weight of the rows in bins of their distance to every split: (nodes, bins)."""

    tree: ClusterTree
    low: FloatArray
    width: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return empty bins."""
        return (np.zeros((self.tree.n_nodes, N_BINS)),)

    @staticmethod
    def add(rows: Rows, requests: Sequence[BinSum], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (mass,) in zip(requests, answers, strict=True):
            for node, here, distance in distances_on_the_way(request.tree, rows):
                place = (distance - request.low[node]) / request.width[node]
                bins = np.clip(place, 0, N_BINS - 1).astype(np.int64)
                mass[node] += np.bincount(bins, rows.weights[here], N_BINS)


@dataclass(frozen=True)
class NodeDensity:
    """The density of a node's rows at some distances from its cut, which is at 0, and how they spread.

    The bandwidth is 0.9 sd n^(-1/5), with the standard deviation of the distances.
    """

    points: FloatArray
    density: FloatArray
    bandwidth: float
    weight: float


def densities(tree: ClusterTree, rows: RowBlocks) -> dict[int, NodeDensity]:
    """Return the density along the normal of every split that rows reach; two passes."""
    ((moments, low, high),) = rows.pass_over([SpreadSum(tree)])
    weight = moments[0]
    reached = np.flatnonzero(weight > 0)
    safe = np.where(weight > 0, weight, 1.0)
    mean = moments[1] / safe
    deviation = np.sqrt(np.maximum(moments[2] / safe - mean**2, 0.0))
    bandwidth = 0.9 * deviation * safe**-0.2
    floor = np.maximum(np.finfo(float).tiny, 1e-12 * (1.0 + np.abs(mean)))
    # the cut itself is always in the picture
    start = np.minimum(np.maximum(mean - REACH * deviation, low), 0.0) - 3 * bandwidth - floor
    stop = np.maximum(np.minimum(mean + REACH * deviation, high), 0.0) + 3 * bandwidth + floor
    start, stop = np.where(weight > 0, start, 0.0), np.where(weight > 0, stop, 1.0)
    width = (stop - start) / N_BINS
    ((mass,),) = rows.pass_over([BinSum(tree, start, width)])
    return {
        int(node): _smooth(mass[node], float(start[node]), float(width[node]), float(bandwidth[node]))
        for node in reached
    }


def _smooth(mass: FloatArray, start: float, width: float, bandwidth: float) -> NodeDensity:
    points: FloatArray = start + width * (np.arange(N_BINS, dtype=np.float64) + 0.5)
    h = max(bandwidth, width / 2)
    kernel = np.exp(-0.5 * ((points[:, None] - points[None, :]) / h) ** 2) / (h * np.sqrt(2 * np.pi))
    return NodeDensity(points, kernel @ mass / mass.sum(), h, float(mass.sum()))


def density_of(model: Any, X: Any, sample_weight: Any = None) -> dict[int, NodeDensity]:
    """Return the densities of a fitted clusterer's splits, or of a tree's, in the rows of X."""
    from ravine.view.node import rows_of

    tree = getattr(model, "tree_", model)
    return densities(tree, rows_of(model, X, sample_weight))
