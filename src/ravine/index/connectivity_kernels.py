"""The second eigenvalue of a graph on a line, compiled: O(G) an evaluation, with high relative accuracy.

For the Laplace kernel exp(-|t_i - t_j| / s) of sorted points with masses w the graph's second eigenvector is
that of a path: with degrees d = K w, gaps g_i in units of s, conductances c_i = d_i d_{i+1} / (2 sinh g_i)
and node masses m_i, it solves (path Laplacian of c) y = theta diag(m) y. For the normalized Laplacian m = w d
and theta = lambda / (1 - lambda); for the standard one m = w d / (d - lambda) and theta = lambda.
"""

from __future__ import annotations

import math

import numpy as np

from ravine._jit import jit

WIDEST_GAP = 600.0  # in units of s: beyond, exp underflows


@jit
def kernel_sums(values, decay, left, right):
    """left[i] = sum over j < i of values[j] exp(-(t_i - t_j) / s), right[i] the same over j > i."""
    n = len(values)
    left[0] = 0.0
    right[n - 1] = 0.0
    for i in range(1, n):
        left[i] = (left[i - 1] + values[i - 1]) * decay[i - 1]
    for i in range(n - 2, -1, -1):
        right[i] = (right[i + 1] + values[i + 1]) * decay[i]


@jit
def smallest_mode(m, c, y):
    """Improve y to the second eigenvector of the path and return theta; inverse iteration by partial sums.

    Flows are summed from both ends, over nodes of one sign, so that a theta of 1e-100 keeps its digits.
    """
    n = len(m)
    flow = np.empty(n - 1)
    theta = np.inf
    total = np.sum(m)
    for _ in range(500):
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
        new = energy / largest / largest / norm
        y /= math.sqrt(norm)
        if abs(new - theta) <= 1e-13 * new:
            theta = new
            break
        theta = new
    return theta


@jit
def standard_eigenvalue(mass, degree, c, y):
    """Return the second eigenvalue of the standard Laplacian: the fixed point of theta(lambda) below min d.

    theta falls as lambda grows, so the difference has one zero, found by false position (Illinois rule).
    """
    low = 0.0
    above = smallest_mode(mass, c, y)
    high = min(above, np.min(degree) * (1.0 - 1e-12))
    below = smallest_mode(mass * degree / (degree - high), c, y) - high
    side = 0
    value = low + (high - low) * (above / (above - below))
    for _ in range(100):
        excess = smallest_mode(mass * degree / (degree - value), c, y) - value
        if abs(excess) <= 1e-12 * value:
            break
        if excess > 0.0:
            low, above = value, excess
            if side == 1:
                below *= 0.5
            side = 1
        else:
            high, below = value, excess
            if side == -1:
                above *= 0.5
            side = -1
        value = low + (high - low) * (above / (above - below))
    return value


@jit
def connectivity(points, mass, s, normalized, slope):
    """Return log theta, fill `slope` with its derivative by each point, and return the eigenvector y."""
    n = len(points)
    gaps = np.empty(n - 1)
    for i in range(n - 1):
        gaps[i] = min(max((points[i + 1] - points[i]) / s, 1e-300), WIDEST_GAP)
    decay = np.exp(-gaps)
    left = np.empty(n)
    right = np.empty(n)
    kernel_sums(mass, decay, left, right)
    degree = mass + left + right
    pull = (right - left) / s
    c = np.empty(n - 1)
    for i in range(n - 1):
        c[i] = degree[i] * degree[i + 1] / (2.0 * math.sinh(gaps[i]))
    y = points - np.sum(mass * points) / np.sum(mass)
    m = mass * degree
    theta = smallest_mode(m, c, y)
    if not normalized:
        theta = standard_eigenvalue(mass, degree, c, y)
        m = mass * degree / (degree - theta)
    fill_slope(mass, degree, gaps, decay, pull, c, m, y, theta, s, normalized, slope)
    return math.log(theta), y


@jit
def fill_slope(mass, degree, gaps, decay, pull, c, m, y, theta, s, normalized, slope):
    """slope[k] = d log theta / d t_k: through the degrees of all points, and through the gaps beside k."""
    n = len(mass)
    energy = np.zeros(n + 1)
    for i in range(n - 1):
        energy[i + 1] = c[i] * (y[i + 1] - y[i]) ** 2
    a = np.empty(n)
    scale = 0.0
    for i in range(n):
        square = mass[i] * y[i] * y[i]
        a[i] = (energy[i] + energy[i + 1]) / degree[i]
        if normalized:
            a[i] -= theta * square
            scale += square * degree[i]
        else:
            rest = degree[i] - theta
            a[i] += theta * theta * square / (rest * rest)
            scale += square * degree[i] * degree[i] / (rest * rest)
    left = np.empty(n)
    right = np.empty(n)
    kernel_sums(a, decay, left, right)
    for k in range(n):
        total = a[k] * pull[k] + mass[k] * (right[k] - left[k]) / s
        if k < n - 1:
            total += energy[k + 1] / (math.tanh(gaps[k]) * s)
        if k > 0:
            total -= energy[k] / (math.tanh(gaps[k - 1]) * s)
        slope[k] = total / (theta * scale)
