"""The two-loop recursion of the limited-memory quasi-Newton update, compiled."""

from __future__ import annotations

import numpy as np

from ravine._jit import jit


@jit
def two_loop(steps, changes, gradient):
    """Return the inverse Hessian of the pairs (step, change of the gradient), times the gradient."""
    m = len(steps)
    share = np.empty(m)
    inverse = np.empty(m)
    q = gradient.copy()
    for i in range(m - 1, -1, -1):
        inverse[i] = 1.0 / np.sum(steps[i] * changes[i])
        share[i] = inverse[i] * np.sum(steps[i] * q)
        q -= share[i] * changes[i]
    q /= inverse[m - 1] * np.sum(changes[m - 1] ** 2)
    for i in range(m):
        back = inverse[i] * np.sum(changes[i] * q)
        q += (share[i] - back) * steps[i]
    return q
