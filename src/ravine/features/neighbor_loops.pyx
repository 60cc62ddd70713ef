"""The nearest points of rows, from the inner products of all pairs.

Rows and points are arrays, or CSR matrices whose columns are in increasing order.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt

cdef double CANCEL = 1e-6  # share of |x|^2 + |y|^2: a smaller |x - y|^2 is summed from differences, not inner products


cdef class Rows:
    """Dense or CSR rows with their squared lengths."""

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


cdef double squared_difference(Rows a, Py_ssize_t i, Rows b, Py_ssize_t j) noexcept nogil:
    """Return |a_i - b_j|^2 as a sum over the columns."""
    cdef double total = 0.0, difference
    cdef Py_ssize_t k, p, q
    cdef int column
    if not a.sparse:
        for k in range(a.dense.shape[1]):
            difference = a.dense[i, k] - b.dense[j, k]
            total += difference * difference
        return total
    p, q = a.starts[i], b.starts[j]
    while p < a.starts[i + 1] or q < b.starts[j + 1]:
        difference = 0.0
        column = a.columns[p] if p < a.starts[i + 1] else b.columns[q]
        if q < b.starts[j + 1] and b.columns[q] < column:
            column = b.columns[q]
        if p < a.starts[i + 1] and a.columns[p] == column:
            difference += a.values[p]
            p += 1
        if q < b.starts[j + 1] and b.columns[q] == column:
            difference -= b.values[q]
            q += 1
        total += difference * difference
    return total


cdef void smallest(
    Rows rows, Py_ssize_t i, Rows points, const double* inner, double same, Py_ssize_t wanted, double* nearest,
    long long* places,
) noexcept nogil:
    """Fill `nearest` with the smallest squared distances of row i, in order; `places` are their points.

    `inner` has the inner products of row i. Copies, which differ by less than a share of `same`, have a
    distance of 0.
    """
    cdef Py_ssize_t j, k, size = 0
    cdef double limit = INFINITY, both, square
    for j in range(points.squares.shape[0]):
        both = rows.squares[i] + points.squares[j]
        square = both - 2.0 * inner[j]
        if square >= limit and square > CANCEL * both:
            continue
        if square <= CANCEL * both:
            square = squared_difference(rows, i, points, j)
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


cdef (Py_ssize_t, bint) count_near(
    const double* nearest, const long long* places, Py_ssize_t size, const double* masses, double n, double tie
) noexcept nogil:
    """Return how many of the nearest points are near, and whether one beyond the last may be near, too.

    A point is near if those that are strictly nearer have a mass below n; distances that differ by less
    than a share of `tie` are equal.
    """
    cdef double mass = 0.0, nearer = 0.0
    cdef Py_ssize_t k
    for k in range(size):
        if k > 0 and sqrt(nearest[k]) > (1.0 + tie) * sqrt(nearest[k - 1]):
            nearer = mass
        if nearer >= n:
            return k, False
        mass += masses[places[k]]
    return size, True


def find_near(
    const double[:, ::1] inner, Rows rows, Rows points, const double[::1] masses, Py_ssize_t n, double same,
    double tie,
):
    """Return how many points are near each row, and the numbers of these points, row after row."""
    cdef Py_ssize_t i, size, m = masses.shape[0]
    cdef double[::1] nearest = np.empty(m)
    cdef long long[::1] places = np.empty(m, dtype=np.int64)
    cdef bint more
    counts, found = np.zeros(inner.shape[0], dtype=np.int64), []
    cdef long long[::1] count = counts
    for i in range(inner.shape[0]):
        with nogil:
            size = min(n + 1, m)
            while True:
                smallest(rows, i, points, &inner[i, 0], same, size, &nearest[0], &places[0])
                count[i], more = count_near(&nearest[0], &places[0], size, &masses[0], n, tie)
                if not more or size == m:
                    break
                size = min(2 * size, m)
        found.append(np.sort(places[:count[i]]))
    return counts, np.concatenate(found)
