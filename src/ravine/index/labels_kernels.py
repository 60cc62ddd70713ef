"""The sums over labeled rows behind the penalty of labels, compiled."""

from __future__ import annotations

import numba
import numpy as np

from ravine.index import bracket_kernels

jit = numba.njit(cache=True, nogil=True)


@jit
def at(points, sides, strength, threshold):
    """Return P and its first two derivatives at a cut."""
    value = 0.0
    first = 0.0
    second = 0.0
    for i in range(len(points)):
        wrong = sides[i] * (threshold - points[i])
        if wrong > 0.0:
            pull = strength[i] * wrong
            value += pull * wrong
            first += 2.0 * sides[i] * pull
            second += 2.0 * strength[i]
    return value, first, second


@jit
def lowest(points, sides, strength):
    """Return the cut where P is least; the middle of all such cuts where the two sides lie apart."""
    left = np.inf
    right = -np.inf
    for i in range(len(points)):
        if sides[i] > 0.0:
            left = min(left, points[i])
        else:
            right = max(right, points[i])
    threshold = left / 2.0 + right / 2.0
    if right <= left:
        return threshold
    for _ in range(bracket_kernels.STEPS):
        _, first, second = at(points, sides, strength, threshold)
        before = threshold
        left, threshold, right = bracket_kernels.step(left, threshold, right, first, second)
        if abs(threshold - before) <= 1e-12 * (abs(left) + abs(right)):
            break
    return threshold
