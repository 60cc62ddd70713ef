"""The sums of the cutting plane method over the rows of a block.

All projections of a row are computed while it is in the cache, and sums of constraints are updated by the
difference of two planes, so that only rows that change sign are added.
"""

from libc.math cimport fabs

from ravine.data.loops cimport centered_dot

ctypedef fused column_t:  # the columns of a CSR matrix
    int
    long long


def constraint_sums(
    const double[:, ::1] X, const double[::1] pivot, const double[::1] weights, const double[:, ::1] normals,
    const double[::1] offsets, Py_ssize_t k, double[::1] weight, double[::1] sign, double[:, ::1] vector,
    double[::1] right,
):
    """Add the rows of a dense block to the sums of every constraint, and last of the plane's own."""
    cdef Py_ssize_t i, j, c, d = X.shape[1]
    cdef bint differences = normals.shape[0] > k + 1
    cdef double f, signed
    cdef const double* x
    with nogil:
        for i in range(X.shape[0]):
            x = &X[i, 0]
            f = centered_dot(x, &pivot[0], &normals[k, 0], d) + offsets[k]
            if f > 0.0:
                right[0] += weights[i]
            signed = weights[i] if f >= 0.0 else -weights[i]
            if fabs(f) < 1.0:
                weight[k] += weights[i]
                sign[k] += signed
                for j in range(d):
                    vector[k, j] += signed * (x[j] - pivot[j])
            if differences:
                if (centered_dot(x, &pivot[0], &normals[k + 1, 0], d) + offsets[k + 1] >= 0.0) == (f >= 0.0):
                    continue
                signed *= 2.0
            for c in range(k):
                if fabs(centered_dot(x, &pivot[0], &normals[c, 0], d) + offsets[c]) < 1.0:
                    if not differences:
                        weight[c] += weights[i]
                    sign[c] += signed
                    for j in range(d):
                        vector[c, j] += signed * (x[j] - pivot[j])


cdef inline double stored_dot(
    const double* data, const column_t* indices, Py_ssize_t n, const double* direction
) noexcept nogil:
    """Return direction . x of a row with n stored entries."""
    cdef double total = 0.0
    cdef Py_ssize_t e
    for e in range(n):
        total += data[e] * direction[indices[e]]
    return total


def constraint_sums_csr(
    const double[::1] data, const column_t[::1] indices, const long long[::1] indptr,
    const double[::1] weights, const double[:, ::1] normals, const double[::1] offsets, Py_ssize_t k,
    double[::1] weight, double[::1] sign, double[:, ::1] vector, double[::1] right,
):
    """Add the rows of a CSR block; the pivot is part of the offsets, and not subtracted from the rows."""
    cdef Py_ssize_t i, c, e, n
    cdef bint differences = normals.shape[0] > k + 1
    cdef double f, signed
    cdef const double* x
    cdef const column_t* at
    if data.shape[0] == 0:
        x, at = NULL, NULL  # rows of zeros: nothing is read
    else:
        x, at = &data[0], &indices[0]
    with nogil:
        for i in range(indptr.shape[0] - 1):
            e, n = indptr[i], indptr[i + 1] - indptr[i]
            f = stored_dot(x + e, at + e, n, &normals[k, 0]) + offsets[k]
            if f > 0.0:
                right[0] += weights[i]
            signed = weights[i] if f >= 0.0 else -weights[i]
            if fabs(f) < 1.0:
                weight[k] += weights[i]
                sign[k] += signed
                add(&vector[k, 0], signed, x + e, at + e, n)
            if differences:
                if (stored_dot(x + e, at + e, n, &normals[k + 1, 0]) + offsets[k + 1] >= 0.0) == (f >= 0.0):
                    continue
                signed *= 2.0
            for c in range(k):
                if fabs(stored_dot(x + e, at + e, n, &normals[c, 0]) + offsets[c]) < 1.0:
                    if not differences:
                        weight[c] += weights[i]
                    sign[c] += signed
                    add(&vector[c, 0], signed, x + e, at + e, n)


cdef inline void add(
    double* sums, double factor, const double* data, const column_t* indices, Py_ssize_t n
) noexcept nogil:
    """sums += factor x of a row with n stored entries."""
    cdef Py_ssize_t e
    for e in range(n):
        sums[indices[e]] += factor * data[e]


def best_offset(const double[::1] level, const double[::1] slope, double balance):
    """Return the b in [-balance, balance] that minimizes max(0, max of level - slope b).

    The function is convex and piecewise linear: where a line of positive slope is on top, it decreases, and
    the minimum is at a larger b; so bisection on the sign of that slope finds it.
    """
    cdef double low = -balance, high = balance, b
    cdef Py_ssize_t i, top, step
    for step in range(60):  # halvings until the interval is shorter than the rounding of b
        b = (low + high) / 2
        top = 0
        for i in range(1, level.shape[0]):
            if level[i] - slope[i] * b > level[top] - slope[top] * b:
                top = i
        if level[top] - slope[top] * b <= 0.0 or slope[top] == 0.0:
            return b
        if slope[top] > 0.0:
            low = b
        else:
            high = b
    return (low + high) / 2
