"""The two-loop recursion of the limited-memory quasi-Newton update, compiled."""

from __future__ import annotations

import numpy as np

from ravine._jit import inner, jit


@inner
def dot(a, b):
    """Return a . b, in order (np.dot and np.sum take longer to compile)."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@inner
def subtract(x, factor, y):
    """x -= factor y."""
    for j in range(len(x)):
        x[j] -= factor * y[j]


@inner
def two_loop(steps, changes, m, scratch, x):
    """Multiply x by the inverse Hessian of the first m pairs (step, change of the gradient), in place.

    `scratch` has two places for every pair.
    """
    for i in range(m - 1, -1, -1):
        inverse = 1.0 / dot(steps[i], changes[i])
        share = inverse * dot(steps[i], x)
        subtract(x, share, changes[i])
        scratch[2 * i], scratch[2 * i + 1] = share, inverse
    largest = scratch[2 * m - 1] * dot(changes[m - 1], changes[m - 1])
    for j in range(len(x)):
        x[j] /= largest
    for i in range(m):
        subtract(x, scratch[2 * i + 1] * dot(changes[i], x) - scratch[2 * i], steps[i])


@jit
def multiply_by_inverse(steps, changes, x):
    """Do the same with all pairs, called from Python."""
    two_loop(steps, changes, len(steps), np.empty(2 * len(steps)), x)
