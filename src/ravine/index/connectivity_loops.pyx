"""The second eigenvalue of the graph of points on a line, in linear time.

For the Laplace kernel exp(-|t_i - t_j| / s) of sorted points with masses w the graph's second eigenvector is
that of a path: with degrees d = K w, gaps g_i in units of s, conductances c_i = d_i d_{i+1} / (2 sinh g_i)
and node masses m_i = w_i d_i, it solves (path Laplacian of c) y = theta diag(m) y, and lambda of the
normalized Laplacian is theta / (1 + theta).
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, copysign, exp, fabs, isfinite, log, pow, sinh, sqrt, tanh
from libc.stdlib cimport free, malloc

from ravine.index.line cimport LineFunction

cdef double DELTA = 0.01  # the paper's distance reducing parameter (Section 7.1: min(0.01, sigma^2)); sigma is 1 here
cdef double SHIFT = pow(DELTA * (1.0 - DELTA), 1.0 / DELTA)  # makes T_Delta continuously differentiable at the edge
cdef double WIDEST_GAP = 600.0  # units of s: products of two affinities exp(-gap) beyond it underflow
cdef double NARROWEST_GAP = 1e-300  # units of s: keeps the conductance of points in one place finite
cdef enum:
    MAX_ITERATIONS = 500  # on mixtures of up to four Gaussians 10 in the median, at most 100
    N_ARRAYS = 16  # arrays of an evaluation, each with a place per point

cdef struct Path:  # the arrays of a path of n points, see above; `flow` and `resistance` are places for sums
    Py_ssize_t n
    double* gaps
    double* decay
    double* c
    double* left
    double* right
    double* degree
    double* weight
    double* flow
    double* resistance
    double* energy  # one place more than points
    double* by_degree
    double* left_sums
    double* right_sums
    double* y


cdef Path path_in(double* memory, Py_ssize_t n) noexcept nogil:
    """Return a path whose arrays are parts of a piece of memory of N_ARRAYS (n + 1) places."""
    cdef Path path
    cdef Py_ssize_t m = n + 1
    path.n = n
    path.gaps, path.decay, path.c = memory, memory + m, memory + 2 * m
    path.left, path.right, path.degree = memory + 3 * m, memory + 4 * m, memory + 5 * m
    path.weight, path.flow, path.resistance = memory + 6 * m, memory + 7 * m, memory + 8 * m
    path.energy, path.by_degree = memory + 9 * m, memory + 10 * m
    path.left_sums, path.right_sums, path.y = memory + 11 * m, memory + 12 * m, memory + 13 * m
    return path


cdef void kernel_sums(
    const double* values, const double* decay, Py_ssize_t n, double* left, double* right
) noexcept nogil:
    """Fill the sums over j < i and over j > i of values[j] exp(-|t_i - t_j| / s), for every i."""
    cdef Py_ssize_t i
    left[0] = right[n - 1] = 0.0
    for i in range(1, n):
        left[i] = (left[i - 1] + values[i - 1]) * decay[i - 1]
    for i in range(n - 2, -1, -1):
        right[i] = (right[i + 1] + values[i + 1]) * decay[i]


cdef void center(const double* m, Py_ssize_t n, double* y) noexcept nogil:
    """Subtract the weighted mean."""
    cdef double mean = 0.0, total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        mean += m[i] * y[i]
        total += m[i]
    mean /= total
    for i in range(n):
        y[i] -= mean


cdef double smallest_mode(Path* path) noexcept nogil:
    """Improve y to the second eigenvector of the path and return theta; inverse iteration by partial sums.

    The flow over an edge is the sum of m y on one side of it. It is summed from the end on which all y have
    one sign: without cancellation, a theta of 1e-100 keeps its digits.
    """
    cdef Py_ssize_t i, k, n = path.n
    cdef const double* m = path.weight
    cdef double* y = path.y
    cdef double* flow = path.flow
    cdef double theta = INFINITY, norm = 1.0, total = 0.0, run, at, mean, energy, step, scale, before
    for i in range(n):
        total += m[i]
    for i in range(n - 1):
        path.resistance[i] = 1.0 / path.c[i]
    center(m, n, y)
    for k in range(MAX_ITERATIONS):
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
            step = flow[i] * path.resistance[i]
            energy += flow[i] * step
            at += step
            y[i + 1] = at
            mean += m[i + 1] * at
        mean /= total
        scale = 1.0 / (mean if mean > at - mean else at - mean)  # y is monotone; its square may overflow
        norm = 0.0
        for i in range(n):
            y[i] = (y[i] - mean) * scale
            norm += m[i] * y[i] * y[i]
        before = theta
        theta = energy * scale * scale / norm
        if fabs(theta - before) <= 1e-13 * theta:
            break
    norm = sqrt(norm)
    for i in range(n):
        y[i] /= norm
    return theta


cdef double log_theta(
    const double* points, const double* mass, double s, double* slope, Path* path
) noexcept nogil:
    """Return log theta, fill `slope` with its derivative by each point, and y with the eigenvector."""
    cdef Py_ssize_t i, n = path.n
    cdef double theta, gap
    for i in range(n - 1):
        gap = (points[i + 1] - points[i]) / s
        path.gaps[i] = NARROWEST_GAP if gap < NARROWEST_GAP else WIDEST_GAP if gap > WIDEST_GAP else gap
        path.decay[i] = exp(-path.gaps[i])
    kernel_sums(mass, path.decay, n, path.left, path.right)
    for i in range(n):
        path.degree[i] = mass[i] + path.left[i] + path.right[i]
        path.weight[i] = mass[i] * path.degree[i]
        path.y[i] = points[i]
    for i in range(n - 1):
        path.c[i] = path.degree[i] * path.degree[i + 1] / (2.0 * sinh(path.gaps[i]))
    center(mass, n, path.y)
    theta = smallest_mode(path)
    fill_slope(mass, theta, s, path, slope)
    return log(theta)


cdef void fill_slope(const double* mass, double theta, double s, Path* path, double* slope) noexcept nogil:
    """Fill the derivative of log theta by each point, which moves all degrees and the gaps beside it."""
    cdef Py_ssize_t i, n = path.n
    cdef double* y = path.y
    cdef double* energy = path.energy
    cdef double scale = 0.0, square, by_gap
    energy[0] = energy[n] = 0.0
    for i in range(n - 1):
        energy[i + 1] = path.c[i] * (y[i + 1] - y[i]) * (y[i + 1] - y[i])
    for i in range(n):
        square = mass[i] * y[i] * y[i]
        path.by_degree[i] = (energy[i] + energy[i + 1]) / path.degree[i] - theta * square
        scale += square * path.degree[i]
    kernel_sums(path.by_degree, path.decay, n, path.left_sums, path.right_sums)
    for i in range(n):
        slope[i] = (
            path.by_degree[i] * ((path.right[i] - path.left[i]) / s)
            + mass[i] * (path.right_sums[i] - path.left_sums[i]) / s
        )
    for i in range(n - 1):
        by_gap = energy[i + 1] / (tanh(path.gaps[i]) * s)
        slope[i] += by_gap
        slope[i + 1] -= by_gap
    for i in range(n):
        slope[i] /= theta * scale


cdef (double, double) contract(double point, double edge, double s) noexcept nogil:
    """Return a point moved towards [-edge, edge] if it is outside (T_Delta, Equation 23, in units of s).

    The second number is the derivative by its own position; that by the edge is sign(point) (1 - this).
    """
    cdef double excess = (fabs(point) - edge) / s, shortened
    if excess <= 0.0:
        return point, 1.0
    shortened = DELTA * (pow(excess + SHIFT, 1.0 - DELTA) - pow(SHIFT, 1.0 - DELTA))
    return copysign(edge + s * shortened, point), DELTA * (1.0 - DELTA) * pow(excess + SHIFT, -DELTA)


cdef void contracted(
    const double* points, const double* mass, Py_ssize_t n, double total, double std,
    const double* parameters, bint final, double* slope, double* out,
) noexcept nogil:
    """Write log theta after `contract`: a `LineFunction`.

    The parameters are sigma and beta. The threshold is in the middle of the two points between which the
    second eigenvector changes its sign.
    """
    cdef double s = parameters[0], edge = parameters[1] * std
    cdef double* memory = NULL
    cdef double* moved
    cdef double* by_point
    cdef Path path
    cdef Py_ssize_t i, k = 1
    out[0], out[1], out[2], out[3] = INFINITY, 0.0, 0.0, 0.0
    if n >= 2:  # otherwise all rows are at one place: no split
        memory = <double*> malloc(N_ARRAYS * (n + 1) * sizeof(double))
    if memory == NULL:
        for i in range(n):
            slope[i] = 0.0
        return
    path = path_in(memory, n)
    moved, by_point = memory + 14 * (n + 1), memory + 15 * (n + 1)
    for i in range(n):
        moved[i], by_point[i] = contract(points[i], edge, s)
    out[0] = log_theta(moved, mass, s, slope, &path)
    while k < n - 1 and not path.y[k] > 0.0:
        k += 1
    out[1] = points[k - 1] / 2.0 + points[k] / 2.0
    for i in range(n):  # by the edge, towards which a point outside is moved
        out[2] += slope[i] * copysign(1.0 - by_point[i], points[i])
        slope[i] *= by_point[i]
    out[2] *= parameters[1]
    out[3] = 1.0 if isfinite(out[0]) else 0.0
    free(memory)


CONTRACTED = PyCapsule_New(<void*> <LineFunction> contracted, "ravine.LineFunction", NULL)


def connectivity(const double[::1] points, const double[::1] mass, double s, double[::1] slope):
    """Return log theta, fill `slope` with its derivative by each point, and return the eigenvector y."""
    cdef Py_ssize_t n = points.shape[0]
    cdef double[::1] memory = np.empty(N_ARRAYS * (n + 1))
    cdef Path path = path_in(&memory[0], n)
    cdef double value = log_theta(&points[0], &mass[0], s, &slope[0], &path)
    return value, np.array(<double[:n]> path.y)


def contract_outliers(const double[:, :] points, const double[::1] edges, double s):
    """Contract every column of some points with its own edge; return the points, and their derivatives."""
    cdef Py_ssize_t i, c
    moved, by_point = np.empty((2, points.shape[0], points.shape[1]))
    cdef double[:, ::1] to = moved, slope = by_point
    for i in range(points.shape[0]):
        for c in range(points.shape[1]):
            to[i, c], slope[i, c] = contract(points[i, c], edges[c], s)
    return moved, by_point
