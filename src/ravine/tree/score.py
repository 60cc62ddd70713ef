"""How deep the valleys of a tree's splits are in a set of rows."""

from __future__ import annotations

import numpy as np

from ravine._validate import FloatArray, not_finite
from ravine.data.blocks import RowBlocks
from ravine.data.standardization import safe_scale
from ravine.index.base import Profile
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.tree.tree import ClusterTree


def depth_of_splits(tree: ClusterTree, rows: RowBlocks) -> float:
    """Return the bounded relative depth of the splits in these rows, averaged by the weight reaching each.

    The density along each normal has the bandwidth 0.9 sd n^(-1/5) of the rows that reach the split. Costs
    one pass a level of the tree.
    """
    weights = rows.map(lambda block: block.weights)
    node_of = np.zeros(rows.shape[0], dtype=np.int32)
    depths: list[float] = []
    masses: list[float] = []
    for node in range(tree.n_nodes):
        split = tree.splits[node]
        members = np.flatnonzero(node_of == node)
        if split is None or len(members) == 0:
            continue
        distances = split.boundary.signed_distance(rows.select(members))
        if not np.isfinite(distances).all():
            raise not_finite()
        depths.append(depth_of_cut(distances, weights[members]))
        masses.append(float(weights[members].sum()))
        node_of[members] = np.where(distances > 0, tree.right[node], tree.left[node])
    return float(np.average(depths, weights=masses)) if sum(masses) > 0 else 0.0


def depth_of_cut(distances: FloatArray, weights: FloatArray) -> float:
    """Return the bounded relative depth of the cut at distance 0, with bandwidth 0.9 sd n^(-1/5)."""
    distances, weights = distances[weights > 0], weights[weights > 0]
    order = np.argsort(distances, kind="stable")
    points, mass = distances[order] * safe_scale(distances), weights[order]
    total = float(mass.sum())
    if total == 0.0 or points[0] == points[-1]:
        return 0.0
    mean = mass @ points / total
    std = float(np.sqrt(mass @ (points - mean) ** 2 / total))
    profile = Profile(points, mass, total, std)
    return MinimumDensityIndex(bandwidth(std, total), alpha=np.inf).quality(profile, 0.0)
