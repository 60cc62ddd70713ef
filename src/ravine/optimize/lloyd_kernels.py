"""Lloyd's iterations for two sides over rows in memory, compiled: all rounds in one call."""

from __future__ import annotations

import numpy as np

from ravine._jit import jit
from ravine.optimize.held_kernels import project, weighted_sum


@jit
def lloyd(rows, total, start, max_rounds, settled):
    """Run 2-means from the hyperplane through the mean across `start`.

    Rounds end when rows of at most the weight `settled` change side. Returns the normal and the threshold of
    the boundary, and the scatter between its sides.
    """
    n, weights = len(rows.weights), rows.weights
    points, change, inside = np.empty(n), np.empty(n), np.zeros(n, dtype=np.bool_)
    right, moved = np.zeros(len(start)), np.empty(len(start))
    normal, middle, weight, between = start.copy(), 0.0, 0.0, 0.0
    for _ in range(max_rounds):
        project(rows, normal, points)
        switched = 0.0
        for i in range(n):
            change[i] = 0.0
            now = points[i] > middle
            if now != inside[i]:
                inside[i] = now
                change[i] = weights[i] if now else -weights[i]
                switched += weights[i]
        weighted_sum(rows, change, moved)
        right += moved
        weight += np.sum(change)
        rest = total - weight
        if min(rest, weight) <= 0.0 or switched <= settled:
            break
        normal = right / weight + right / rest  # from the mean of the left side, -right / rest
        middle = np.sum(normal * (right / weight - right / rest)) / 2.0
        between = rest * weight / total * np.sum(normal * normal)
    return normal, middle, between
