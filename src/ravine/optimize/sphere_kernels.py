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


@jit
def two_loop(steps, changes, m, x):
    """Multiply x by the inverse Hessian of the first m pairs (step, change of the gradient), in place."""
    share, inverse = np.empty(m), np.empty(m)
    for i in range(m - 1, -1, -1):
        inverse[i] = 1.0 / dot(steps[i], changes[i])
        share[i] = inverse[i] * dot(steps[i], x)
        subtract(x, share[i], changes[i])
    largest = inverse[m - 1] * dot(changes[m - 1], changes[m - 1])
    for j in range(len(x)):
        x[j] /= largest
    for i in range(m):
        subtract(x, inverse[i] * dot(changes[i], x) - share[i], steps[i])
