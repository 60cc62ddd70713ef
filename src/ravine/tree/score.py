"""The signed distances of rows to every split that they reach, and how deep the valleys of the splits are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows
from ravine.data.profile import FINE, REACH
from ravine.data.query import Additive, Answer, Asked, Request, RowSet, answer
from ravine.data.standardization import safe_scale
from ravine.index.base import Profile
from ravine.index.density import bandwidth, bounded_depth
from ravine.tree.arrays import TreeArrays

EXACT_ROWS = 1 << 17  # rows up to which distances are held one by one


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


def depth_of_splits(tree: TreeArrays, rows: MemoryRows) -> float:
    """Return the bounded relative depth of the splits in these rows, weighted by the rows that reach each.

    The density along each normal has the bandwidth 0.9 sd n^(-1/5) of the rows that reach the split. Costs
    one pass per level of the tree; of more than EXACT_ROWS rows the distances are counted in bins, which
    costs two passes and no memory per row.
    """
    if rows.shape[0] > EXACT_ROWS:
        return _depth_in_bins(tree, rows)
    row_weight = rows.map(lambda block: block.weights)
    depths, masses = [], []
    for _, members, distances in tree.visit(rows):
        depths.append(depth_at_boundary(distances, row_weight[members]))
        masses.append(float(row_weight[members].sum()))
    return float(np.average(depths, weights=masses)) if sum(masses) > 0 else 0.0


def _depth_in_bins(tree: TreeArrays, rows: RowSet) -> float:
    """Return the same of distances in bins of an eighth of the bandwidth."""
    ((moments, _, _),) = answer([Asked(rows, DistanceMoments(tree))])
    reached = [node for node in tree.inner.tolist() if moments[0, node] > 0]
    lines = {node: mean_and_deviation(moments[:, node]) for node in reached}
    lines = {node: line for node, line in lines.items() if line[1] > 0}
    total = float(moments[0, reached].sum()) if reached else 0.0
    if not lines:
        return 0.0
    h = {node: bandwidth(lines[node][1], float(moments[0, node])) for node in lines}
    n_bins = max(math.ceil(2 * REACH * lines[node][1] / h[node] * FINE) for node in lines)
    low, width = np.zeros(tree.n_nodes), np.ones(tree.n_nodes)
    for node, (mean, _) in lines.items():
        width[node] = h[node] / FINE
        low[node] = mean - n_bins / 2 * width[node]
    ((mass, moment),) = answer([Asked(rows, DistanceBins(tree, low, width, n_bins))])
    depths = 0.0
    for node, (mean, deviation) in lines.items():
        full = np.flatnonzero(mass[node])
        own = mass[node, full]
        profile = Profile(moment[node, full] / own - mean, own, float(own.sum()), deviation)
        depths += float(own.sum()) * bounded_depth(profile, -mean, h[node])
    return depths / total


def depth_at_boundary(distances: FloatArray, row_weight: FloatArray) -> float:
    """Return the bounded relative depth of the density of signed distances at 0, with h = 0.9 sd n^(-1/5)."""
    distances, row_weight = distances[row_weight > 0], row_weight[row_weight > 0]
    profile, mean = profile_of(distances * safe_scale(distances), row_weight)
    if profile.total == 0.0 or profile.points[0] == profile.points[-1]:
        return 0.0
    return bounded_depth(profile, -mean, bandwidth(profile.std, profile.total))


def profile_of(distances: FloatArray, row_weight: FloatArray) -> tuple[Profile, float]:
    """Return the profile of the rows that have a weight, centered, and their mean."""
    order = np.argsort(distances, kind="stable")
    order = order[row_weight[order] > 0]
    points, mass = distances[order], row_weight[order]
    total = float(mass.sum())
    mean = float(mass @ points / (total or 1.0))
    std = float(np.sqrt(mass @ (points - mean) ** 2 / (total or 1.0)))
    return Profile(points - mean, mass, total, std), mean
