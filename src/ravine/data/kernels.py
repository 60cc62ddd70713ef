"""The loops over the rows of one block, compiled.

Each loop adds in a fixed order, without fast-math, so that the bits of a result depend neither on how many
directions are projected together nor on the kind of array that the block came from. Three loops exist twice,
for dense and CSR blocks (project, group sums, moments); all others use only projected points.
"""

from __future__ import annotations

import numpy as np

from ravine._jit import inner, jit


@inner
def centered_dot(X, i, pivot, directions, k):
    """Return directions[k] . (X[i] - pivot), in four partial sums: the order of every dense projection."""
    d = X.shape[1]
    whole = d - d % 4
    a0 = 0.0
    a1 = 0.0
    a2 = 0.0
    a3 = 0.0
    for j in range(0, whole, 4):
        a0 += (X[i, j] - pivot[j]) * directions[k, j]
        a1 += (X[i, j + 1] - pivot[j + 1]) * directions[k, j + 1]
        a2 += (X[i, j + 2] - pivot[j + 2]) * directions[k, j + 2]
        a3 += (X[i, j + 3] - pivot[j + 3]) * directions[k, j + 3]
    for j in range(whole, d):
        a0 += (X[i, j] - pivot[j]) * directions[k, j]
    return (a0 + a1) + (a2 + a3)


@jit
def project_one(X, pivot, directions, out):
    """out[0, i] = directions[0] . (X[i] - pivot)."""
    for i in range(len(X)):
        out[0, i] = centered_dot(X, i, pivot, directions, 0)


@jit
def project_two(X, pivot, directions, out):
    """out[k, i] = directions[k] . (X[i] - pivot) for two directions, with the same bits as `project_one`."""
    n, d = X.shape
    whole = d - d % 4
    for i in range(n):
        a0 = 0.0
        a1 = 0.0
        a2 = 0.0
        a3 = 0.0
        b0 = 0.0
        b1 = 0.0
        b2 = 0.0
        b3 = 0.0
        for j in range(0, whole, 4):
            x0 = X[i, j] - pivot[j]
            x1 = X[i, j + 1] - pivot[j + 1]
            x2 = X[i, j + 2] - pivot[j + 2]
            x3 = X[i, j + 3] - pivot[j + 3]
            a0 += x0 * directions[0, j]
            a1 += x1 * directions[0, j + 1]
            a2 += x2 * directions[0, j + 2]
            a3 += x3 * directions[0, j + 3]
            b0 += x0 * directions[1, j]
            b1 += x1 * directions[1, j + 1]
            b2 += x2 * directions[1, j + 2]
            b3 += x3 * directions[1, j + 3]
        for j in range(whole, d):
            a0 += (X[i, j] - pivot[j]) * directions[0, j]
            b0 += (X[i, j] - pivot[j]) * directions[1, j]
        out[0, i] = (a0 + a1) + (a2 + a3)
        out[1, i] = (b0 + b1) + (b2 + b3)


@jit
def project_eight(X, pivot, directions, out):
    """out[c, i] = directions[:, c] . (X[i] - pivot) for eight directions in one sweep over the rows.

    One of the four partial sums after the other, so that the bits are those of `project_one`.
    """
    n, d = X.shape
    whole = d - d % 4
    strands = np.empty((4, 8))
    for i in range(n):
        for strand in range(4):
            a0 = 0.0
            a1 = 0.0
            a2 = 0.0
            a3 = 0.0
            a4 = 0.0
            a5 = 0.0
            a6 = 0.0
            a7 = 0.0
            for j in range(strand, whole, 4):
                x = X[i, j] - pivot[j]
                a0 += x * directions[j, 0]
                a1 += x * directions[j, 1]
                a2 += x * directions[j, 2]
                a3 += x * directions[j, 3]
                a4 += x * directions[j, 4]
                a5 += x * directions[j, 5]
                a6 += x * directions[j, 6]
                a7 += x * directions[j, 7]
            strands[strand, 0] = a0
            strands[strand, 1] = a1
            strands[strand, 2] = a2
            strands[strand, 3] = a3
            strands[strand, 4] = a4
            strands[strand, 5] = a5
            strands[strand, 6] = a6
            strands[strand, 7] = a7
        for j in range(whole, d):
            x = X[i, j] - pivot[j]
            for c in range(8):
                strands[0, c] += x * directions[j, c]
        for c in range(8):
            out[c, i] = (strands[0, c] + strands[1, c]) + (strands[2, c] + strands[3, c])


@jit
def project_csr(values, columns, starts, shift, direction, out):
    """out[i] = direction . row i - shift, for the rows of a CSR block."""
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * direction[columns[k]]
        out[i] = total - shift


@jit
def group_sums(X, pivot, weights, groups, sums):
    """sums[groups[i]] += weights[i] (X[i] - pivot)."""
    n, d = X.shape
    for i in range(n):
        row = sums[groups[i]]
        w = weights[i]
        for j in range(d):
            row[j] += w * (X[i, j] - pivot[j])


@jit
def group_sums_csr(values, columns, starts, pivot, weights, groups, sums):
    """The same for the rows of a CSR block; the pivot is subtracted once per group."""
    mass = np.zeros(len(sums))
    for i in range(len(starts) - 1):
        row = sums[groups[i]]
        w = weights[i]
        mass[groups[i]] += w
        for k in range(starts[i], starts[i + 1]):
            row[columns[k]] += w * values[k]
    for g in range(len(sums)):
        if mass[g] != 0.0:
            for j in range(len(pivot)):
                sums[g, j] -= mass[g] * pivot[j]


@jit
def moments(X, pivot, scale, weights, totals, low, high):
    """totals[0] += w z, totals[1] += w z^2 with z = scale (x - pivot); low and high by column.

    Rows of weight 0 are ignored, except that a NaN or an infinity in them still sets `high` to NaN.
    """
    n, d = X.shape
    for i in range(n):
        w = weights[i]
        for j in range(d):
            x = X[i, j]
            if not np.isfinite(x):
                high[j] = np.nan
            if w > 0.0:
                z = scale[j] * (x - pivot[j])
                totals[0, j] += w * z
                totals[1, j] += w * z * z
                if x < low[j]:
                    low[j] = x
                if x > high[j]:
                    high[j] = x


@jit
def moments_csr(values, columns, starts, pivot, scale, weights, totals, low, high):
    """The same for the rows of a CSR block: stored entries one by one, the zeros of a column together."""
    d = len(pivot)
    projected = np.zeros(d)
    stored = np.zeros(d, dtype=np.int64)
    total = 0.0
    rows = 0
    for i in range(len(starts) - 1):
        w = weights[i]
        if w > 0.0:
            total += w
            rows += 1
        for k in range(starts[i], starts[i + 1]):
            j = columns[k]
            x = values[k]
            if not np.isfinite(x):
                high[j] = np.nan
            if w > 0.0:
                z = scale[j] * (x - pivot[j])
                totals[0, j] += w * z
                totals[1, j] += w * z * z
                projected[j] += w
                stored[j] += 1
                if x < low[j]:
                    low[j] = x
                if x > high[j]:
                    high[j] = x
    for j in range(d):
        if stored[j] < rows:
            z = -scale[j] * pivot[j]
            totals[0, j] += (total - projected[j]) * z
            totals[1, j] += (total - projected[j]) * z * z
            low[j] = min(low[j], 0.0)
            if not high[j] >= 0.0 and not np.isnan(high[j]):
                high[j] = 0.0


@jit
def bin_points(points, weights, low, width, bins, mass, moment):
    """Put weighted points into bins of equal width; points beyond the grid go to the outer bins.

    bins[i] is the bin of point i; mass[g] and moment[g] add the weights and weight x point of bin g, so
    that moment / mass is the exact center of a bin's points.
    """
    last = len(mass) - 1
    inverse = 1.0 / width
    for i in range(len(points)):
        place = (points[i] - low) * inverse
        if place <= 0.0:
            g = 0
        elif place >= last:
            g = last
        else:
            g = int(place)
        bins[i] = g
        mass[g] += weights[i]
        moment[g] += weights[i] * points[i]


@jit
def sort_places(ids, set_of, ends, order):
    """Sort the places of ids by the set of the id (-1: in none); ends[k] is where set k ends in `order`.

    `ends` has to be 0 before.
    """
    for i in range(len(ids)):
        k = set_of[ids[i]]
        if k >= 0:
            ends[k] += 1
    start = 0
    for k in range(len(ends)):
        n = ends[k]
        ends[k] = start
        start += n
    for i in range(len(ids)):
        k = set_of[ids[i]]
        if k >= 0:
            order[ends[k]] = i
            ends[k] += 1


@jit
def route(X, pivot, normals, thresholds, left, right, out):
    """Walk every row down a tree of hyperplanes; out[i] is its leaf, or -1 if the row is not finite.

    The distance has the same bits as in `project_one`, so that a training row gets the leaf of the fit.
    """
    for i in range(len(X)):
        node = 0
        while left[node] >= 0:
            total = centered_dot(X, i, pivot, normals, node)
            if not np.isfinite(total):
                break
            node = right[node] if total > thresholds[node] else left[node]
        out[i] = node if left[node] < 0 else -1


@jit
def hash_words(words, multiplier):
    """Return eight polynomials in the multiplier whose coefficients are every eighth word, modulo 2^64.

    Any changed word changes one of them, as an odd multiplier is invertible, and so does any other order.
    """
    found = np.zeros(8, dtype=np.uint64)
    for i in range(0, len(words), 8):
        for k in range(8):
            found[k] = found[k] * multiplier + words[i + k]
    return found
