"""The nearest points among some hundreds or thousands.

Points have the inner products of all pairs, their squared lengths, and values: `dense` is an array, or None
and `csr` has (values, columns in increasing order, starts of rows) of a CSR matrix, up to a common shift.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt

cdef double CANCEL = 1e-6  # share of |x|^2 + |y|^2: a smaller |x - y|^2 is summed from differences, not inner products


cdef class Points:
    """Points with their squared lengths."""

    cdef const double[:, ::1] dense
    cdef const double[::1] squares, values
    cdef const int[::1] columns
    cdef const long long[::1] starts
    cdef bint sparse

    def __init__(self, squares, dense, csr):
        self.squares, self.sparse = squares, csr is not None
        if csr is not None:
            self.values, self.columns, self.starts = csr
        else:
            self.dense = dense

    cdef double squared_difference(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Return |x_i - x_j|^2 as a sum over the columns."""
        cdef double total = 0.0, difference
        cdef Py_ssize_t k, p, q
        cdef int column
        if not self.sparse:
            for k in range(self.dense.shape[1]):
                difference = self.dense[i, k] - self.dense[j, k]
                total += difference * difference
            return total
        p, q = self.starts[i], self.starts[j]
        while p < self.starts[i + 1] or q < self.starts[j + 1]:
            difference = 0.0
            column = self.columns[p] if p < self.starts[i + 1] else self.columns[q]
            if q < self.starts[j + 1] and self.columns[q] < column:
                column = self.columns[q]
            if p < self.starts[i + 1] and self.columns[p] == column:
                difference += self.values[p]
                p += 1
            if q < self.starts[j + 1] and self.columns[q] == column:
                difference -= self.values[q]
                q += 1
            total += difference * difference
        return total

    cdef void smallest(
        self, const double* inner, double same, Py_ssize_t i, Py_ssize_t wanted, double* nearest, long long* places
    ) noexcept nogil:
        """Fill `nearest` with the smallest squared distances of point i, in order; `places` are their points.

        `inner` has the inner products of point i. Copies, which differ by less than a share of `same`, have a
        distance of 0.
        """
        cdef Py_ssize_t j, k, size = 0
        cdef double limit = INFINITY, both, square
        for j in range(self.squares.shape[0]):
            both = self.squares[i] + self.squares[j]
            square = both - 2.0 * inner[j]
            if square >= limit and square > CANCEL * both:
                continue
            if square <= CANCEL * both:
                square = self.squared_difference(i, j)
                square = square if square > same * same * both else 0.0
                if square >= limit:
                    continue
            k = min(size, wanted - 1)
            while k > 0 and nearest[k - 1] > square:
                nearest[k] = nearest[k - 1]
                places[k] = places[k - 1]
                k -= 1
            nearest[k] = square
            places[k] = j
            size = min(size + 1, wanted)
            if size == wanted:
                limit = nearest[size - 1]


cdef (double, bint) reach(
    const double* nearest, const long long* places, Py_ssize_t size, const double* masses, double n, double tie
) noexcept nogil:
    """Return the largest squared distance of a near point, and whether one beyond the last may be near.

    A point is near if those that are strictly nearer have a mass below n; distances that differ by less
    than a share of `tie` are equal.
    """
    cdef double mass = 0.0, nearer = 0.0, limit = 0.0
    cdef Py_ssize_t k
    for k in range(size):
        if k > 0 and sqrt(nearest[k]) > (1.0 + tie) * sqrt(nearest[k - 1]):
            nearer = mass
        if nearer >= n:
            return limit, False
        limit = nearest[k]
        mass += masses[places[k]]
    return limit, True


def near_pairs(
    const double[:, ::1] inner, Py_ssize_t first, squares, dense, csr, const double[::1] masses, Py_ssize_t n,
    double same, double tie,
):
    """Return pairs (point, near point), without those of a point and itself.

    `inner` has a row for every point from number `first` on, of which the pairs are returned.
    """
    cdef Points points = Points(squares, dense, csr)
    cdef Py_ssize_t k, size, count, p, m = masses.shape[0]
    cdef double[::1] nearest = np.empty(m)
    cdef long long[::1] places = np.empty(m, dtype=np.int64)
    cdef double limit
    cdef bint more
    here, there = [], []
    for k in range(inner.shape[0]):
        with nogil:
            size = min(n + 1, m)
            while True:
                points.smallest(&inner[k, 0], same, first + k, size, &nearest[0], &places[0])
                limit, more = reach(&nearest[0], &places[0], size, &masses[0], n, tie)
                if not more or size == m:
                    break
                size = min(2 * size, m)
            count = 0
            for p in range(size):  # in front of the others, in the same array
                if nearest[p] <= limit and places[p] != first + k:
                    places[count] = places[p]
                    count += 1
        here.append(np.full(count, first + k))
        there.append(np.array(places[:count]))
    return np.concatenate(here), np.concatenate(there)
