"""How deep the valleys of a tree's splits are in a set of rows."""

from __future__ import annotations

import numpy as np

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.standardization import safe_scale
from ravine.index.base import Profile
from ravine.index.density import bandwidth, relative_depth
from ravine.tree.arrays import TreeArrays


def depth_of_splits(tree: TreeArrays, rows: MemoryRows) -> float:
    """Return the bounded relative depth of the splits in these rows, weighted by the rows that reach each.

    The density along each normal has the bandwidth 0.9 sd n^(-1/5) of the rows that reach the split. Costs
    one pass per level of the tree.
    """
    row_weight = rows.map(lambda block: block.weights)
    depths, masses = [], []
    for _, members, distances in tree.visit(rows):
        depths.append(depth_at_boundary(distances, row_weight[members]))
        masses.append(float(row_weight[members].sum()))
    return float(np.average(depths, weights=masses)) if sum(masses) > 0 else 0.0


def depth_at_boundary(distances: FloatArray, row_weight: FloatArray) -> float:
    """Return the bounded relative depth of the density of signed distances at 0, with h = 0.9 sd n^(-1/5)."""
    profile, mean = profile_of(distances * safe_scale(distances), row_weight)
    if profile.total == 0.0 or profile.points[0] == profile.points[-1]:
        return 0.0
    return relative_depth(profile, -mean, bandwidth(profile.std, profile.total))


def profile_of(distances: FloatArray, row_weight: FloatArray) -> tuple[Profile, float]:
    """Return the profile of the rows that have a weight, centered, and their mean."""
    order = np.argsort(distances, kind="stable")
    order = order[row_weight[order] > 0]
    points, mass = distances[order], row_weight[order]
    total = float(mass.sum())
    mean = float(mass @ points / (total or 1.0))
    std = float(np.sqrt(mass @ (points - mean) ** 2 / (total or 1.0)))
    return Profile(points - mean, mass, total, std), mean
