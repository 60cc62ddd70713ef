"""The second eigenvalue of a graph on a line, compiled: in linear time, with high relative accuracy.

For the Laplace kernel exp(-|t_i - t_j| / s) of sorted points with masses w the graph's second eigenvector is
that of a path: with degrees d = K w, gaps g_i in units of s, conductances c_i = d_i d_{i+1} / (2 sinh g_i)
and node masses m_i, it solves (path Laplacian of c) y = theta diag(m) y. For the normalized Laplacian m = w d
and theta = lambda / (1 - lambda); for the standard one m = w d / (d - lambda) and theta = lambda.
"""

from __future__ import annotations

import math

import numpy as np

from ravine._jit import jit
from ravine.index.interval import DELTA, SHIFT

WIDEST_GAP = 600.0  # units of s: products of two affinities exp(-gap) beyond it underflow
MAX_ITERATIONS = (
    500  # inverse iterations; the median on mixtures of up to four Gaussians is 10, the largest 100
)
MAX_FALSE_POSITIONS = 100  # steps of the Illinois rule; at most 5 on the same mixtures
NARROWEST_GAP = 1e-300  # units of s: keeps the conductance of points in one place finite


@jit
def kernel_sums(values, decay):
    """Return the sums over j < i and over j > i of values[j] exp(-|t_i - t_j| / s), for every i."""
    n = len(values)
    left, right = np.zeros(n), np.zeros(n)
    for i in range(1, n):
        left[i] = (left[i - 1] + values[i - 1]) * decay[i - 1]
    for i in range(n - 2, -1, -1):
        right[i] = (right[i + 1] + values[i + 1]) * decay[i]
    return left, right


@jit
def smallest_mode(m, c, y):
    """Improve y to the second eigenvector of the path and return theta; inverse iteration by partial sums.

    The flow over an edge is the sum of m y on one side of it. It is summed from the end on which all y have
    one sign: without cancellation, a theta of 1e-100 keeps its digits.
    """
    n = len(m)
    flow, total = np.empty(n - 1), np.sum(m)
    theta = np.inf
    for _ in range(MAX_ITERATIONS):
        y -= np.sum(m * y) / total
        run = 0.0
        for i in range(n - 1):
            run -= m[i] * y[i]
            if y[i] >= 0.0:
                break
            flow[i] = run
        run = 0.0
        for i in range(n - 2, -1, -1):
            if y[i + 1] < 0.0:
                break
            run += m[i + 1] * y[i + 1]
            flow[i] = run
        y[0] = 0.0
        energy = 0.0
        for i in range(n - 1):
            step = flow[i] / c[i]
            energy += flow[i] * step
            y[i + 1] = y[i] + step
        y -= np.sum(m * y) / total
        largest = max(abs(y[0]), abs(y[n - 1]))  # y is monotone; its square may overflow
        y /= largest
        norm = np.sum(m * y * y)
        before, theta = theta, energy / largest / largest / norm
        y /= math.sqrt(norm)
        if abs(theta - before) <= 1e-13 * theta:
            break
    return theta


@jit
def standard_eigenvalue(mass, degree, c, y):
    """Return the second eigenvalue of the standard Laplacian: the fixed point of theta(lambda) below min d.

    theta falls as lambda grows, so the difference has one zero, found by false position (Illinois rule).
    """
    low, side = 0.0, 0
    above = smallest_mode(mass, c, y)
    high = min(above, np.min(degree) * (1.0 - 1e-12))
    below = smallest_mode(mass * degree / (degree - high), c, y) - high
    for _ in range(MAX_FALSE_POSITIONS):
        value = low + (high - low) * (above / (above - below))
        excess = smallest_mode(mass * degree / (degree - value), c, y) - value
        if abs(excess) <= 1e-12 * value:
            break
        if excess > 0.0:
            low, above = value, excess
            below *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            high, below = value, excess
            above *= 0.5 if side == -1 else 1.0
            side = -1
    return value


@jit
def connectivity(points, mass, s, normalized, slope):
    """Return log theta, fill `slope` with its derivative by each point, and return the eigenvector y."""
    gaps = np.minimum(np.maximum(np.diff(points) / s, NARROWEST_GAP), WIDEST_GAP)
    decay = np.exp(-gaps)
    left, right = kernel_sums(mass, decay)
    degree = mass + left + right
    c = degree[:-1] * degree[1:] / (2.0 * np.sinh(gaps))
    y = points - np.sum(mass * points) / np.sum(mass)
    theta = smallest_mode(mass * degree, c, y)
    if not normalized:
        theta = standard_eigenvalue(mass, degree, c, y)
    energy = np.zeros(len(points) + 1)
    energy[1:-1] = c * np.diff(y) ** 2
    square = mass * y * y
    by_degree = (energy[:-1] + energy[1:]) / degree
    if normalized:
        by_degree -= theta * square
        scale = np.sum(square * degree)
    else:
        rest = degree - theta
        by_degree += theta * theta * square / (rest * rest)
        scale = np.sum(square * degree * degree / (rest * rest))
    # a point moves the degrees of all points, its own included, and the gaps on both sides of it
    left_sums, right_sums = kernel_sums(by_degree, decay)
    slope[:] = by_degree * ((right - left) / s) + mass * (right_sums - left_sums) / s
    by_gap = energy[1:-1] / (np.tanh(gaps) * s)
    slope[:-1] += by_gap
    slope[1:] -= by_gap
    slope /= theta * scale
    return math.log(theta), y


@jit
def contracted(points, mass, s, edge, normalized, slope):
    """Return log theta after `contract_outliers`, the threshold, and the derivative by the edge.

    The threshold is in the middle of the two points between which the second eigenvector changes its sign.
    """
    n = len(points)
    moved, by_point, by_edge = points.copy(), np.ones(n), np.zeros(n)
    for i in range(n):
        excess = (abs(points[i]) - edge) / s
        if excess > 0.0:
            sign = 1.0 if points[i] > 0.0 else -1.0
            shortened = DELTA * ((excess + SHIFT) ** (1.0 - DELTA) - SHIFT ** (1.0 - DELTA))
            by_point[i] = DELTA * (1.0 - DELTA) * (excess + SHIFT) ** -DELTA
            by_edge[i] = sign * (1.0 - by_point[i])
            moved[i] = sign * (edge + s * shortened)
    value, mode = connectivity(moved, mass, s, normalized, slope)
    k: int = min(max(int(np.searchsorted(mode > 0.0, True)), 1), n - 1)
    total = np.sum(slope * by_edge)
    slope *= by_point
    return value, points[k - 1] / 2.0 + points[k] / 2.0, total
