"""Newton's method between two ends, compiled."""

from __future__ import annotations

import numba
import numpy as np

jit = numba.njit(cache=True, nogil=True)

STEPS = 60  # of Newton or of halving: what is left of a bracket is beyond rounding


@jit
def step(left, b, right, first, second):
    """Return the bracket of a minimizer after b was seen, and Newton's next b, or the middle."""
    if first > 0.0:
        right = b
    else:
        left = b
    new = b - first / second if second > 0.0 else np.inf
    if not left < new < right:
        new = left / 2.0 + right / 2.0
    return left, new, right
