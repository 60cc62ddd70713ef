"""The loops over projected rows that tell on which side of a hyperplane they are, compiled."""

from __future__ import annotations

from ravine._jit import jit


@jit
def right_rows(now, weights, rows, change):
    """Write the rows of positive weight right of a hyperplane, and their weights; return their number."""
    n = 0
    for i in range(len(now)):
        if now[i] > 0.0 and weights[i] > 0.0:
            rows[n] = i
            change[n] = weights[i]
            n += 1
    return n


@jit
def switched_rows(now, before, weights, rows, change):
    """Write the rows that change side and their weights, negative if they leave; return their number."""
    n = 0
    for i in range(len(now)):
        right = now[i] > 0.0
        if right != (before[i] > 0.0) and weights[i] > 0.0:
            rows[n] = i
            change[n] = weights[i] if right else -weights[i]
            n += 1
    return n


@jit
def line_moments(distances, weights, sums):
    """sums[side] += weight, weight x distance, weight x distance^2; side 1 has the positive distances."""
    for i in range(len(distances)):
        t, w = distances[i], weights[i]
        side = 1 if t > 0.0 else 0
        sums[side, 0] += w
        sums[side, 1] += w * t
        sums[side, 2] += w * t * t
