"""The density of a profile as Python code asks for it: curves, modes, the depth of valleys, labels."""

import numpy as np

from libc.math cimport INFINITY, NAN, ceil, expm1
from libc.stdlib cimport free

from ravine.index.density_loops cimport (
    PER_BANDWIDTH, Curve, Line, Objective, density_sums, first_right, line_of, log_density, make_curve, minimize,
    objective, settle,
)
from ravine.index.line cimport Labels, place_labels


cdef double log_mode(const Curve* curve, int step) noexcept nogil:
    """Walk over a curve, from its end where the threshold is, until it falls again; return the mode passed.

    Where steps are equal it is that of the parabola through three values, otherwise a point itself.
    """
    cdef const double* values = curve.values
    cdef Py_ssize_t k = 0 if step > 0 else curve.n - 1
    cdef bint rising = False
    cdef double bend
    while 0 <= k + step and k + step < curve.n:
        if values[k + step] > values[k]:
            rising = True
        elif rising:
            bend = 2.0 * values[k] - values[k - 1] - values[k + 1]
            if curve.even and bend > 0.0:
                return values[k] + (values[k - 1] - values[k + 1]) ** 2 / (8.0 * bend)
            break
        k += step
    return values[k]


cdef class ProfileLine:
    """A profile with a bandwidth and an interval, as Python code asks for its density."""

    cdef Line line
    cdef const double[::1] points, mass

    def __init__(
        self, const double[::1] points, const double[::1] mass, double total, const double[::1] parameters, double std
    ):
        self.points, self.mass = points, mass
        self.line = line_of(&points[0], &mass[0], points.shape[0], total, std, &parameters[0])

    def log_density(self, double b):
        """Return log I at a threshold, and I' / I, I'' / I."""
        return log_density(&self.line, b)

    def density_sums(self, double first, double step, double[::1] out):
        """Fill `out` with sums of mass exp(-(b - t)^2 / 2h^2) at equally spaced thresholds."""
        density_sums(&self.line, first, step, &out[0], out.shape[0])

    def curve(self, const double[::1] thresholds):
        """Return log(I + Q) at every threshold."""
        cdef Py_ssize_t k
        found = np.empty(thresholds.shape[0])
        cdef double[::1] out = found
        with nogil:
            for k in range(thresholds.shape[0]):
                out[k] = objective(&self.line, NULL, thresholds[k]).value
        return found

    def coarse_curve(self, double low, double high, labels=None):
        """Return the coarse grid between two thresholds, log F there, and its step."""
        cdef Labels placed
        cdef Curve curve
        if labels is not None:
            placed = place_labels(labels)
        if not make_curve(&self.line, NULL if labels is None else &placed, low, high, &curve):
            raise MemoryError
        try:
            return (
                np.array(<double[:curve.n]> curve.grid), np.array(<double[:curve.n]> curve.values), curve.step
            )
        finally:
            free(curve.grid)

    def log_mode(self, double b, int step):
        """Return the log of the density at the next mode right of b, or left of it for a step of -1."""
        cdef Curve curve
        cdef double h = self.line.h, last = self.points[0] if step < 0 else self.points[self.line.n - 1], end = b
        if step * (last - b) > -h:  # whole steps of the grid, to one bandwidth beyond the last point
            end += step * ceil(PER_BANDWIDTH * (step * (last - b) / h + 1.0)) * h / <double> PER_BANDWIDTH
        if not make_curve(&self.line, NULL, min(b, end), max(b, end), &curve):
            raise MemoryError
        try:
            return log_mode(&curve, step)
        finally:
            free(curve.grid)

    def relative_depth(self, double b):
        """Return 1 - I / M at b, with M the density at the lower of the two adjacent modes; at least 0."""
        cdef double here = log_density(&self.line, b)[0], lower = min(self.log_mode(b, -1), self.log_mode(b, 1))
        return -expm1(here - lower) if here < lower else 0.0

    def lowest_valley(self, double min_weight):
        """Return the lowest local minimum of the density with this much mass on either side, or NaN."""
        cdef double threshold, left, best = NAN, least = INFINITY
        cdef Objective found
        cdef Py_ssize_t k, j
        thresholds, densities, step = self.coarse_curve(self.points[0], self.points[self.line.n - 1])
        cdef const double[::1] grid = thresholds, values = densities, left_of = np.cumsum(self.mass)
        for k in range(1, grid.shape[0] - 1):
            if values[k] < min(least, values[k - 1]) and values[k] <= values[k + 1]:
                threshold = settle(&self.line, NULL, grid[k] - step, grid[k], grid[k] + step, &found)
                j = first_right(self.line.points, self.line.n, threshold)
                left = left_of[j - 1] if j > 0 else 0.0
                if min(left, self.line.total - left) >= min_weight:
                    least = values[k]
                    best = threshold
        return best


def labeled_minimum(
    const double[::1] points, const double[::1] mass, double total, double std, const double[::1] parameters,
    labels, double[::1] slope, double[::1] out,
):
    """Minimize log F with labels, which decide where the threshold belongs: it is always valid."""
    cdef Labels placed = place_labels(labels)
    cdef Line line = line_of(&points[0], &mass[0], points.shape[0], total, std, &parameters[0])
    with nogil:
        minimize(&line, &placed, &slope[0], &out[0])
        out[2] = parameters[1] * out[2] if out[2] != 0.0 else 0.0
