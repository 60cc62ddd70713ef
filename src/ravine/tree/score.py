"""How deep the valleys of a tree's splits are in a set of rows."""

from __future__ import annotations

import math

import numpy as np

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.profile import FINE, REACH
from ravine.data.query import Asked, RowSet, answer
from ravine.data.standardization import safe_scale
from ravine.index.base import Profile
from ravine.index.density import bandwidth, bounded_depth
from ravine.tree.arrays import TreeArrays
from ravine.tree.distances import DistanceBins, DistanceMoments, mean_and_deviation

EXACT_ROWS = 1 << 17  # rows up to which distances are held one by one


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
