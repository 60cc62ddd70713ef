"""A descent over standardized rows in memory: projections, bins, index and gradient without Python between.

The steps are those of `pursuit.py`, where every projection is a request.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport isnan, sqrt
from libc.string cimport memset

from ravine.data.loops cimport bin_of
from ravine.index.line cimport LineFunction
from ravine.optimize.descent cimport Descent, dot, subtract

cdef extern from "../data/wide.h" nogil:
    void wide_project(const double* x, const double* v, Py_ssize_t n, Py_ssize_t d, double* out)
    void wide_weighted_sum(const double* x, const double* factors, Py_ssize_t n, Py_ssize_t d, double* out)


cdef class StandardizedRows:
    """Standardized rows with weights: an array, or a CSR matrix minus a center.

    The array is held twice, by rows for sums of rows and by columns for projections, which are then sums of
    whole columns: twice as fast, because the processor adds several rows at a time.
    """

    cdef const double[:, ::1] dense, by_column
    cdef const double[::1] values, center, weights
    cdef const int[::1] columns
    cdef const long long[::1] starts
    cdef readonly Py_ssize_t n, d
    cdef bint sparse

    def __init__(self, const double[::1] weights, dense=None, by_column=None, csr=None, center=None):
        self.weights, self.n, self.sparse = weights, weights.shape[0], csr is not None
        if csr is not None:
            self.values, self.columns, self.starts = csr
            self.center, self.d = center, len(center)
        else:
            self.dense, self.by_column, self.d = dense, by_column, dense.shape[1]

    cdef void project(self, const double* v, double* out) noexcept nogil:
        """out[i] = v . row i."""
        cdef Py_ssize_t i, k
        cdef double total, shift
        if not self.sparse:
            wide_project(&self.by_column[0, 0], v, self.n, self.d, out)
            return
        shift = dot(&self.center[0], v, self.d)
        for i in range(self.n):
            total = 0.0
            for k in range(self.starts[i], self.starts[i + 1]):
                total += self.values[k] * v[self.columns[k]]
            out[i] = total - shift

    cdef void weighted_sum(self, const double* factors, double* out) noexcept nogil:
        """out = sum of factors[i] row i."""
        cdef Py_ssize_t i, k
        cdef double total = 0.0
        memset(out, 0, self.d * sizeof(double))
        if not self.sparse:
            wide_weighted_sum(&self.dense[0, 0], factors, self.n, self.d, out)
            return
        for i in range(self.n):
            if factors[i] != 0.0:
                total += factors[i]
                for k in range(self.starts[i], self.starts[i + 1]):
                    out[self.columns[k]] += factors[i] * self.values[k]
        subtract(out, total, &self.center[0], self.d)

    def lloyd(self, start, int max_rounds, double least_switched):
        """Run Lloyd's iterations of 2-means from the hyperplane through the mean across `start`.

        Rounds end when at most this share of the weight changes side. Returns the normal and the threshold
        of the boundary, and the scatter between its sides.
        """
        cdef Py_ssize_t i, j, k
        cdef double[::1] points = np.empty(self.n), change = np.empty(self.n), right = np.zeros(self.d)
        cdef double[::1] moved = np.empty(self.d), normal = np.array(start)
        cdef unsigned char[::1] inside = np.zeros(self.n, dtype=np.uint8)
        cdef double total = np.sum(self.weights), middle = 0.0, weight = 0.0, between = 0.0, switched, rest, length
        cdef bint now
        with nogil:
            for k in range(max_rounds):
                self.project(&normal[0], &points[0])
                switched = 0.0
                for i in range(self.n):
                    now = points[i] > middle
                    change[i] = 0.0
                    if now != inside[i]:
                        inside[i] = now
                        change[i] = self.weights[i] if now else -self.weights[i]
                        switched += self.weights[i]
                        weight += change[i]
                self.weighted_sum(&change[0], &moved[0])
                rest = total - weight
                for j in range(self.d):
                    right[j] += moved[j]
                if min(rest, weight) <= 0.0 or switched <= least_switched * total:
                    break
                middle = length = 0.0
                for j in range(self.d):  # from the mean of the left side, -right / rest
                    normal[j] = right[j] / weight + right[j] / rest
                    middle += normal[j] * (right[j] / weight - right[j] / rest) / 2.0
                    length += normal[j] * normal[j]
                between = rest * weight / total * length
        return np.array(normal), middle, between


cdef class Projector:
    """Rows in memory, projected on a direction into the bins of a grid, and an index of that profile.

    The bins keep the last projection, so that another index at the same direction needs no new one.
    """

    cdef StandardizedRows rows
    cdef double low, width, std
    cdef readonly double total
    cdef Py_ssize_t m, n_bins  # bins that are not empty: the points of the profile; all bins
    cdef double[::1] direction, points, mass, moment, centers, masses, slope, by_bin
    cdef long long[::1] bins, full
    cdef double[4] out  # value, threshold, derivative by the deviation, validity

    def __init__(self, StandardizedRows rows, double low, double width, Py_ssize_t n_bins, double total):
        self.rows, self.low, self.width, self.n_bins, self.total, self.m = rows, low, width, n_bins, total, 0
        self.direction, self.points = np.zeros(rows.d), np.empty(rows.n)
        self.mass, self.moment, self.centers, self.masses, self.slope, self.by_bin = np.empty((6, n_bins))
        self.bins, self.full = np.empty(rows.n, dtype=np.int64), np.empty(n_bins, dtype=np.int64)

    cdef void project(self, const double* v) noexcept nogil:
        """Project the rows on v, unless the bins already have that projection."""
        cdef Py_ssize_t i, g, last = self.n_bins - 1
        cdef bint same = True
        cdef double inverse = 1.0 / self.width, square = 0.0, center, w
        for i in range(self.rows.d):
            same = same and self.direction[i] == v[i]
            self.direction[i] = v[i]
        if same:
            return
        self.rows.project(v, &self.points[0])
        for g in range(self.n_bins):
            self.mass[g] = self.moment[g] = 0.0
        for i in range(self.rows.n):
            g = bin_of(self.points[i], self.low, inverse, last)
            w = self.rows.weights[i]
            self.bins[i] = g
            self.mass[g] += w
            self.moment[g] += w * self.points[i]
        self.m = 0
        for g in range(self.n_bins):
            if self.mass[g] != 0.0:
                center = self.moment[g] / self.mass[g]
                self.full[self.m], self.centers[self.m], self.masses[self.m] = g, center, self.mass[g]
                square += self.mass[g] * center * center
                self.m += 1
        self.std = sqrt(square / self.total)

    cdef void evaluate(self, LineFunction function, const double* parameters, bint final) noexcept nogil:
        """Evaluate an index on the profile."""
        function(
            &self.centers[0], &self.masses[0], self.m, self.total, self.std, parameters, final,
            &self.slope[0], self.out,
        )

    cdef void fill_gradient(self, double* gradient) noexcept nogil:
        """Sum the rows by the slopes of their bins, and project the sum on the tangent plane."""
        cdef Py_ssize_t i, g, k
        cdef double slope, d_std = self.out[2]
        cdef bint spread = d_std != 0.0 and self.std > 0.0
        for g in range(self.n_bins):
            self.by_bin[g] = 0.0
        for k in range(self.m):
            slope = self.slope[k] / self.masses[k]
            if spread:
                slope += d_std * self.centers[k] / (self.total * self.std)
            self.by_bin[self.full[k]] = slope
        for i in range(self.rows.n):
            self.points[i] = self.rows.weights[i] * self.by_bin[self.bins[i]]
        self.rows.weighted_sum(&self.points[0], gradient)
        subtract(gradient, dot(gradient, &self.direction[0], self.rows.d), &self.direction[0], self.rows.d)

    def descend(self, capsule, const double[::1] parameters, Descent descent):
        """Drive a descent of an index to its end; return the threshold there, and whether it is valid."""
        cdef LineFunction function = <LineFunction> PyCapsule_GetPointer(capsule, "ravine.LineFunction")
        cdef double threshold = 0.0, valid = 0.0
        with nogil:
            while descent.end == 0:
                self.project(&descent.trial[0])
                self.evaluate(function, &parameters[0], False)
                if descent.accepts(self.out[0]):
                    threshold, valid = self.out[1], self.out[3]
                    self.fill_gradient(&descent.new_gradient[0])
                    descent.move(self.out[0])
                else:
                    descent.refuse(self.out[0])
            self.project(&descent.point[0])
            if isnan(valid):
                self.evaluate(function, &parameters[0], True)
                threshold, valid = self.out[1], self.out[3]
        return threshold, valid > 0.0

    def value(self, capsule, const double[::1] parameters):
        """Return the value of another index on the same profile."""
        cdef LineFunction function = <LineFunction> PyCapsule_GetPointer(capsule, "ravine.LineFunction")
        with nogil:
            self.evaluate(function, &parameters[0], False)
        return self.out[0]

    def profile(self):
        """Return the bins that are not empty, their centers and masses, and the deviation of these."""
        cdef Py_ssize_t m = self.m
        return np.array(self.full[:m]), np.array(self.centers[:m]), np.array(self.masses[:m]), self.std
