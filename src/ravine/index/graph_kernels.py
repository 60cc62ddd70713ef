"""Similarities between all pairs of points and the slopes of an eigenvalue through them, compiled."""

from __future__ import annotations

import math

from ravine._jit import jit

LAPLACE, NEAR_LAPLACE, GAUSSIAN = 0, 1, 2


@jit
def similarities(points, sigma, kind, alpha, k, k_over):
    """Fill k(x) for the distance x = |p_i - p_j| / sigma of every pair, and k'(x) / x."""
    n, d = points.shape
    for i in range(n):
        k[i, i], k_over[i, i] = 1.0, 0.0
        for j in range(i):
            square = 0.0
            for c in range(d):
                square += (points[i, c] - points[j, c]) ** 2
            x = math.sqrt(square) / sigma
            if kind == GAUSSIAN:
                value = math.exp(-0.5 * x * x)
                over = -value
            elif kind == NEAR_LAPLACE:
                value = (x / alpha + 1.0) ** alpha * math.exp(-x)
                over = -value / (x + alpha)
            else:
                value = math.exp(-x)
                over = -value / max(x, 1e-12)
            k[i, j] = k[j, i] = value
            k_over[i, j] = k_over[j, i] = over


@jit
def slopes(points, mass, k_over, a, b, eigenvalue, out):
    """Fill out with the derivative of a' L b by every coordinate, for eigenvectors a and b of the Laplacian.

    a' L b = 1/2 sum of w_i w_j k_ij (a_i - a_j)(b_i - b_j), minus, for the normalized Laplacian, the change
    of the degrees times its eigenvalue (0 for the standard one).
    """
    n, d = points.shape
    out[:] = 0.0
    for i in range(n):
        for j in range(i):
            pair = (a[i] - a[j]) * (b[i] - b[j]) - eigenvalue * (a[i] * b[i] + a[j] * b[j])
            factor = mass[i] * mass[j] * k_over[i, j] * pair
            for c in range(d):
                step = factor * (points[i, c] - points[j, c])
                out[i, c] += step
                out[j, c] -= step
