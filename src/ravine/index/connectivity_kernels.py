"""The second eigenvalue of a graph on a line, compiled: in linear time, with high relative accuracy.

For the Laplace kernel exp(-|t_i - t_j| / s) of sorted points with masses w the graph's second eigenvector is
that of a path: with degrees d = K w, gaps g_i in units of s, conductances c_i = d_i d_{i+1} / (2 sinh g_i)
and node masses m_i, it solves (path Laplacian of c) y = theta diag(m) y. For the normalized Laplacian m = w d
and theta = lambda / (1 - lambda); for the standard one m = w d / (d - lambda) and theta = lambda.
"""

from __future__ import annotations

import math

import numpy as np

from ravine._jit import inner, jit, jit_by_address
from ravine.index.interval import DELTA, SHIFT

WIDEST_GAP = 600.0  # units of s: products of two affinities exp(-gap) beyond it underflow
MAX_ITERATIONS = (
    500  # inverse iterations; the median on mixtures of up to four Gaussians is 10, the largest 100
)
MAX_FALSE_POSITIONS = 100  # steps of the Illinois rule; at most 5 on the same mixtures
NARROWEST_GAP = 1e-300  # units of s: keeps the conductance of points in one place finite


@inner
def kernel_sums(values, decay, left, right):
    """Fill the sums over j < i and over j > i of values[j] exp(-|t_i - t_j| / s), for every i."""
    n = len(values)
    left[0] = right[n - 1] = 0.0
    for i in range(1, n):
        left[i] = (left[i - 1] + values[i - 1]) * decay[i - 1]
    for i in range(n - 2, -1, -1):
        right[i] = (right[i + 1] + values[i + 1]) * decay[i]


@inner
def center(m, total, y):
    """Subtract the weighted mean."""
    mean = 0.0
    for i in range(len(m)):
        mean += m[i] * y[i]
    mean /= total
    for i in range(len(m)):
        y[i] -= mean


@inner
def smallest_mode(m, c, y):
    """Improve y to the second eigenvector of the path and return theta; inverse iteration by partial sums.

    The flow over an edge is the sum of m y on one side of it. It is summed from the end on which all y have
    one sign: without cancellation, a theta of 1e-100 keeps its digits.
    """
    n = len(m)
    flow, resistance = np.empty(n - 1), np.empty(n - 1)
    theta, norm, total = np.inf, 1.0, 0.0
    for i in range(n):
        total += m[i]
    for i in range(n - 1):
        resistance[i] = 1.0 / c[i]
    center(m, total, y)
    for _ in range(MAX_ITERATIONS):
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
        y[0] = at = mean = energy = 0.0
        for i in range(n - 1):
            step = flow[i] * resistance[i]
            energy += flow[i] * step
            at += step
            y[i + 1] = at
            mean += m[i + 1] * at
        mean /= total
        scale = 1.0 / max(mean, at - mean)  # y is monotone; its square may overflow
        norm = 0.0
        for i in range(n):
            y[i] = (y[i] - mean) * scale
            norm += m[i] * y[i] * y[i]
        before, theta = theta, energy * scale * scale / norm
        if abs(theta - before) <= 1e-13 * theta:
            break
    root = math.sqrt(norm)
    for i in range(n):
        y[i] /= root
    return theta


@inner
def mode_at(mass, degree, value, c, y, m):
    """Return theta of the standard Laplacian for a guess of lambda; m is overwritten."""
    for i in range(len(m)):
        m[i] = mass[i] * degree[i] / (degree[i] - value)
    return smallest_mode(m, c, y)


@inner
def standard_eigenvalue(mass, degree, c, y):
    """Return the second eigenvalue of the standard Laplacian: the fixed point of theta(lambda) below min d.

    theta falls as lambda grows, so the difference has one zero, found by false position (Illinois rule).
    """
    low, side = 0.0, 0
    above = smallest_mode(mass, c, y)
    high, m = np.inf, np.empty(len(mass))
    for i in range(len(degree)):
        high = min(high, degree[i] * (1.0 - 1e-12))
    high = min(above, high)
    below = mode_at(mass, degree, high, c, y, m) - high
    for _ in range(MAX_FALSE_POSITIONS):
        value = low + (high - low) * (above / (above - below))
        excess = mode_at(mass, degree, value, c, y, m) - value
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
    n = len(points)
    gaps, decay, c = np.empty(n - 1), np.empty(n - 1), np.empty(n - 1)
    for i in range(n - 1):
        gaps[i] = min(max((points[i + 1] - points[i]) / s, NARROWEST_GAP), WIDEST_GAP)
        decay[i] = math.exp(-gaps[i])
    left, right, degree, weight, y = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    kernel_sums(mass, decay, left, right)
    total = 0.0
    for i in range(n):
        degree[i] = mass[i] + left[i] + right[i]
        weight[i] = mass[i] * degree[i]
        total += mass[i]
        y[i] = points[i]
    for i in range(n - 1):
        c[i] = degree[i] * degree[i + 1] / (2.0 * math.sinh(gaps[i]))
    center(mass, total, y)
    theta = smallest_mode(weight, c, y)
    if not normalized:
        theta = standard_eigenvalue(mass, degree, c, y)
    fill_slope(gaps, decay, c, left, right, degree, mass, y, theta, s, normalized, slope)
    return math.log(theta), y


@inner
def fill_slope(gaps, decay, c, left, right, degree, mass, y, theta, s, normalized, slope):
    """Fill the derivative of log theta by each point, which moves all degrees and the gaps beside it."""
    n = len(mass)
    energy, by_degree = np.zeros(n + 1), np.empty(n)
    left_sums, right_sums = np.empty(n), np.empty(n)
    scale = 0.0
    for i in range(n - 1):
        energy[i + 1] = c[i] * (y[i + 1] - y[i]) ** 2
    for i in range(n):
        square = mass[i] * y[i] * y[i]
        by_degree[i] = (energy[i] + energy[i + 1]) / degree[i]
        if normalized:
            by_degree[i] -= theta * square
            scale += square * degree[i]
        else:
            rest = degree[i] - theta
            by_degree[i] += theta * theta * square / (rest * rest)
            scale += square * degree[i] * degree[i] / (rest * rest)
    kernel_sums(by_degree, decay, left_sums, right_sums)
    for i in range(n):
        slope[i] = by_degree[i] * ((right[i] - left[i]) / s) + mass[i] * (right_sums[i] - left_sums[i]) / s
    for i in range(n - 1):
        by_gap = energy[i + 1] / (math.tanh(gaps[i]) * s)
        slope[i] += by_gap
        slope[i + 1] -= by_gap
    for i in range(n):
        slope[i] /= theta * scale


@jit_by_address
def contracted(points, mass, total, std, parameters, final, slope, out):
    """Write log theta after `contract_outliers`: a `LineFunction` (see `index/base.py`).

    The parameters are sigma, beta, and whether the Laplacian is normalized. The threshold is in the middle of
    the two points between which the second eigenvector changes its sign.
    """
    n, s, edge = len(points), parameters[0], parameters[1] * std
    out[0], out[1], out[2], out[3] = np.inf, 0.0, 0.0, 0.0
    if n < 2:  # all rows are at one place: no split
        slope[0] = 0.0
        return
    moved, by_point, by_edge = np.empty(n), np.ones(n), np.zeros(n)
    for i in range(n):
        moved[i] = points[i]
        excess = (abs(points[i]) - edge) / s
        if excess > 0.0:
            sign = 1.0 if points[i] > 0.0 else -1.0
            shortened = DELTA * ((excess + SHIFT) ** (1.0 - DELTA) - SHIFT ** (1.0 - DELTA))
            by_point[i] = DELTA * (1.0 - DELTA) * (excess + SHIFT) ** -DELTA
            by_edge[i] = sign * (1.0 - by_point[i])
            moved[i] = sign * (edge + s * shortened)
    out[0], mode = connectivity(moved, mass, s, parameters[2] > 0.0, slope)
    k = 1
    while k < n - 1 and not mode[k] > 0.0:
        k += 1
    out[1] = points[k - 1] / 2.0 + points[k] / 2.0
    for i in range(n):
        out[2] += slope[i] * by_edge[i]
        slope[i] *= by_point[i]
    out[2] *= parameters[1]
    out[3] = 1.0 if np.isfinite(out[0]) else 0.0
