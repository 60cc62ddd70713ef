"""The loops of the cutting plane method, compiled: sums over the rows of one block, and the small QP.

Planes are in raw columns: f_k(x) = normals[k] . (x - pivot) + offsets[k]. The first `k` are constraints, the
next one is the plane at whose signs they are linearized; with one more, the plane `before` it, sums over
constraints are differences to those at its signs, so that only rows that change sign are added.
"""

from __future__ import annotations

import numpy as np

from ravine._jit import jit
from ravine.data.kernels import centered_dot

UNBOUNDED = 1e30  # a bound that daqp takes as none


@jit
def constraint_sums(X, pivot, weights, normals, offsets, k, weight, sign, vector, right):
    """Add the rows of a dense block to the sums of every constraint, and last of the plane's own."""
    d = X.shape[1]
    differences = len(normals) > k + 1
    for i in range(len(X)):
        f = centered_dot(X, i, pivot, normals, k) + offsets[k]
        if f > 0.0:
            right[0] += weights[i]
        signed = weights[i] if f >= 0.0 else -weights[i]
        if abs(f) < 1.0:
            weight[k] += weights[i]
            sign[k] += signed
            for j in range(d):
                vector[k, j] += signed * (X[i, j] - pivot[j])
        if differences:
            if (centered_dot(X, i, pivot, normals, k + 1) + offsets[k + 1] >= 0.0) == (f >= 0.0):
                continue
            signed *= 2.0
        for c in range(k):
            if abs(centered_dot(X, i, pivot, normals, c) + offsets[c]) < 1.0:
                if not differences:
                    weight[c] += weights[i]
                sign[c] += signed
                for j in range(d):
                    vector[c, j] += signed * (X[i, j] - pivot[j])


@jit
def stored_dot(data, indices, start, end, direction):
    """Return direction . x of a row whose entries are stored from `start` to `end`."""
    total = 0.0
    for e in range(start, end):
        total += data[e] * direction[indices[e]]
    return total


@jit
def constraint_sums_csr(data, indices, indptr, weights, normals, offsets, k, weight, sign, vector, right):
    """Add the rows of a CSR block; the pivot is part of the offsets, and not subtracted from the rows."""
    differences = len(normals) > k + 1
    for i in range(len(indptr) - 1):
        start, end = indptr[i], indptr[i + 1]
        f = stored_dot(data, indices, start, end, normals[k]) + offsets[k]
        if f > 0.0:
            right[0] += weights[i]
        signed = weights[i] if f >= 0.0 else -weights[i]
        if abs(f) < 1.0:
            weight[k] += weights[i]
            sign[k] += signed
            for e in range(start, end):
                vector[k, indices[e]] += signed * data[e]
        if differences:
            if (stored_dot(data, indices, start, end, normals[k + 1]) + offsets[k + 1] >= 0.0) == (f >= 0.0):
                continue
            signed *= 2.0
        for c in range(k):
            if abs(stored_dot(data, indices, start, end, normals[c]) + offsets[c]) < 1.0:
                if not differences:
                    weight[c] += weights[i]
                sign[c] += signed
                for e in range(start, end):
                    vector[c, indices[e]] += signed * data[e]


@jit
def dual_problem(gram, weight, sign, C, balance):
    """Return the QP of one CCCP step, see `solve`: matrix, linear term, constraint rows, bounds below, above.

    The variables are p, then m. The rows are sum p, m - sign.p and m + sign.p; the first bounds are those of
    the variables.
    """
    k = len(weight)
    matrix, linear = np.zeros((k + 1, k + 1)), np.empty(k + 1)
    rows = np.zeros((3, k + 1))
    low, high = np.zeros(k + 4), np.full(k + 4, UNBOUNDED)
    for i in range(k):
        for j in range(k):
            matrix[i, j] = C * gram[i, j]
        linear[i] = -weight[i]
        rows[0, i] = 1.0
        rows[1, i] = -sign[i]
        rows[2, i] = sign[i]
    linear[k] = balance
    rows[1, k] = rows[2, k] = 1.0
    low[k + 1] = -UNBOUNDED
    high[k + 1] = 1.0
    return matrix, linear, rows, low, high


@jit
def best_offset(level, slope, balance):
    """Return the b in [-balance, balance] that minimizes max(0, max of level - slope b).

    The function is convex and piecewise linear: where a line of positive slope is on top, it decreases, and
    the minimum is at a larger b; so bisection on the sign of that slope finds it.
    """
    low, high = -balance, balance
    for _ in range(60):  # halvings until the interval is shorter than the rounding of b
        b = (low + high) / 2
        top = 0
        for i in range(1, len(level)):
            if level[i] - slope[i] * b > level[top] - slope[top] * b:
                top = i
        if level[top] - slope[top] * b <= 0.0 or slope[top] == 0.0:
            return b
        if slope[top] > 0.0:
            low = b
        else:
            high = b
    return (low + high) / 2
