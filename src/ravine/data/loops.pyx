"""The loops over the rows of one block.

Each loop adds in a fixed order, without fast-math, so that the bits of a result depend neither on how many
directions are projected together nor on the kind of array that the block came from. Three loops exist twice,
for dense and CSR blocks (project, group sums, moments); all others use only projected points.
"""

import numpy as np

from libc.math cimport NAN, isfinite, isnan

cdef extern from "wide.h" nogil:
    void wide_centered_dots(
        const double* x, const double* pivot, const double* direction, Py_ssize_t n, Py_ssize_t d, double* out
    )
    void wide_group_sums(
        const double* x, const double* pivot, const double* weights, const long long* groups, Py_ssize_t n,
        Py_ssize_t d, double* sums
    )
    void wide_moments(
        const double* x, const double* pivot, const double* scale, const double* weights, Py_ssize_t n,
        Py_ssize_t d, double* first, double* second, double* low, double* high, double* missing
    )

ctypedef fused column_t:  # columns of a CSR matrix, numbers of leaves
    int
    long long


def project(const double[:, ::1] X, const double[::1] pivot, const double[:, ::1] directions, double[:, ::1] out):
    """out[k, i] = directions[k] . (X[i] - pivot), in one sweep over the rows for each direction."""
    cdef Py_ssize_t k, n = X.shape[0], d = X.shape[1]
    if n == 0:
        return
    with nogil:
        for k in range(directions.shape[0]):
            wide_centered_dots(&X[0, 0], &pivot[0], &directions[k, 0], n, d, &out[k, 0])


def project_csr(
    const double[::1] values, const column_t[::1] columns, const long long[::1] starts,
    double shift, const double[::1] direction, double[::1] out,
):
    """out[i] = direction . row i - shift, for the rows of a CSR block."""
    cdef Py_ssize_t i, k, n = starts.shape[0] - 1
    cdef double total
    with nogil:
        for i in range(n):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * direction[columns[k]]
            out[i] = total - shift


def group_sums(
    const double[:, ::1] X, const double[::1] pivot, const double[::1] weights, const long long[::1] groups,
    double[:, ::1] sums,
):
    """sums[groups[i]] += weights[i] (X[i] - pivot)."""
    if X.shape[0]:
        with nogil:
            wide_group_sums(
                &X[0, 0], &pivot[0], &weights[0], &groups[0], X.shape[0], X.shape[1], &sums[0, 0]
            )


def group_sums_csr(
    const double[::1] values, const column_t[::1] columns, const long long[::1] starts,
    const double[::1] pivot, const double[::1] weights, const long long[::1] groups, double[:, ::1] sums,
):
    """The same for the rows of a CSR block; the pivot is subtracted once per group."""
    cdef Py_ssize_t i, j, k, g, n = starts.shape[0] - 1
    cdef double[::1] mass = np.zeros(sums.shape[0])
    cdef double* row
    cdef double w
    with nogil:
        for i in range(n):
            row = &sums[groups[i], 0]
            w = weights[i]
            mass[groups[i]] += w
            for k in range(starts[i], starts[i + 1]):
                row[columns[k]] += w * values[k]
        for g in range(sums.shape[0]):
            if mass[g] != 0.0:
                for j in range(pivot.shape[0]):
                    sums[g, j] -= mass[g] * pivot[j]


def moments(
    const double[:, ::1] X, const double[::1] pivot, const double[::1] scale, const double[::1] weights,
    double[:, ::1] totals, double[::1] low, double[::1] high,
):
    """totals[0] += w z, totals[1] += w z^2 with z = scale (x - pivot); low and high by column.

    Rows of weight 0 are ignored, except that a NaN or an infinity in them still sets `high` to NaN.
    """
    cdef Py_ssize_t j, n = X.shape[0], d = X.shape[1]
    cdef double[::1] missing = np.zeros(d)
    if n == 0:
        return
    with nogil:
        wide_moments(
            &X[0, 0], &pivot[0], &scale[0], &weights[0], n, d, &totals[0, 0], &totals[1, 0], &low[0], &high[0],
            &missing[0],
        )
        for j in range(d):
            if missing[j] != 0.0:
                high[j] = NAN


def moments_csr(
    const double[::1] values, const column_t[::1] columns, const long long[::1] starts,
    const double[::1] pivot, const double[::1] scale, const double[::1] weights,
    double[:, ::1] totals, double[::1] low, double[::1] high,
):
    """The same for the rows of a CSR block: stored entries one by one, the zeros of a column together."""
    cdef Py_ssize_t i, j, k, rows = 0, n = starts.shape[0] - 1, d = pivot.shape[0]
    cdef double[::1] stored_weight = np.zeros(d)
    cdef long long[::1] stored = np.zeros(d, dtype=np.int64)
    cdef double w, x, z, total = 0.0
    with nogil:
        for i in range(n):
            w = weights[i]
            if w > 0.0:
                total += w
                rows += 1
            for k in range(starts[i], starts[i + 1]):
                j = columns[k]
                x = values[k]
                if not isfinite(x):
                    high[j] = NAN
                if w > 0.0:
                    z = scale[j] * (x - pivot[j])
                    totals[0, j] += w * z
                    totals[1, j] += w * z * z
                    stored_weight[j] += w
                    stored[j] += 1
                    if x < low[j]:
                        low[j] = x
                    if x > high[j]:
                        high[j] = x
        for j in range(d):
            if stored[j] < rows:
                z = -scale[j] * pivot[j]
                totals[0, j] += (total - stored_weight[j]) * z
                totals[1, j] += (total - stored_weight[j]) * z * z
                if low[j] > 0.0:
                    low[j] = 0.0
                if not high[j] >= 0.0 and not isnan(high[j]):
                    high[j] = 0.0


def bin_points(
    const double[::1] points, const double[::1] weights, double low, double width,
    long long[::1] bins, double[::1] mass, double[::1] moment,
):
    """Put weighted points into bins of equal width; points beyond the grid go to the outer bins.

    bins[i] is the bin of point i; mass[g] and moment[g] add the weights and weight x point of bin g, so
    that moment / mass is the exact center of a bin's points.
    """
    cdef Py_ssize_t i, g, last = mass.shape[0] - 1
    cdef double inverse = 1.0 / width
    with nogil:
        for i in range(points.shape[0]):
            g = bin_of(points[i], low, inverse, last)
            bins[i] = g
            mass[g] += weights[i]
            moment[g] += weights[i] * points[i]


def sort_places(const column_t[::1] ids, const long long[::1] set_of, long long[::1] ends, long long[::1] order):
    """Sort the places of ids by the set of the id (-1: in none); ends[k] is where set k ends in `order`.

    `ends` has to be 0 before.
    """
    cdef Py_ssize_t i, k, n, start = 0
    with nogil:
        for i in range(ids.shape[0]):
            k = set_of[ids[i]]
            if k >= 0:
                ends[k] += 1
        for k in range(ends.shape[0]):
            n = ends[k]
            ends[k] = start
            start += n
        for i in range(ids.shape[0]):
            k = set_of[ids[i]]
            if k >= 0:
                order[ends[k]] = i
                ends[k] += 1


def route(
    const double[:, ::1] X, const double[::1] pivot, const double[:, ::1] normals,
    const double[::1] thresholds, const long long[::1] left, const long long[::1] right, long long[::1] out,
):
    """Walk every row down a tree of hyperplanes; out[i] is its leaf, or -1 if the row is not finite.

    The distance has the same bits as in `project`, so that a training row gets the leaf of the fit.
    """
    cdef Py_ssize_t i, node, n = X.shape[0], d = X.shape[1]
    cdef double total
    with nogil:
        for i in range(n):
            node = 0
            while left[node] >= 0:
                total = centered_dot(&X[i, 0], &pivot[0], &normals[node, 0], d)
                if not isfinite(total):
                    break
                node = right[node] if total > thresholds[node] else left[node]
            out[i] = node if left[node] < 0 else -1


def line_moments(const double[::1] distances, const double[::1] weights, double[:, ::1] sums):
    """sums[side] += weight, weight x distance, weight x distance^2; side 1 has the positive distances."""
    cdef Py_ssize_t i, side
    cdef double t, w
    with nogil:
        for i in range(distances.shape[0]):
            t, w = distances[i], weights[i]
            side = 1 if t > 0.0 else 0
            sums[side, 0] += w
            sums[side, 1] += w * t
            sums[side, 2] += w * t * t
