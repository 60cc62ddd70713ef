"""The nearest points among some hundreds or thousands, compiled.

Points have the inner products of all pairs, their squared lengths, and values: `dense` is an array, or None
and `csr` has (values, columns in increasing order, starts of rows) of a CSR matrix, up to a common shift.
"""

from __future__ import annotations

import math

import numpy as np

from ravine._jit import jit

CANCEL = 1e-6  # share of |x|^2 + |y|^2: a smaller |x - y|^2 is summed from differences, not inner products


@jit
def sparse_difference(csr, i, j):
    """Return |x_i - x_j|^2 of two rows of a CSR matrix."""
    values, columns, starts = csr
    p, q, total = starts[i], starts[j], 0.0
    while p < starts[i + 1] or q < starts[j + 1]:
        difference = 0.0
        here = columns[p] if p < starts[i + 1] else columns[q]
        column = min(here, columns[q]) if q < starts[j + 1] else here
        if p < starts[i + 1] and columns[p] == column:
            difference += values[p]
            p += 1
        if q < starts[j + 1] and columns[q] == column:
            difference -= values[q]
            q += 1
        total += difference * difference
    return total


@jit
def squared_difference(dense, csr, i, j):
    """Return |x_i - x_j|^2 as a sum over the columns."""
    total = 0.0
    if dense is not None:
        for k in range(dense.shape[1]):
            total += (dense[i, k] - dense[j, k]) ** 2
    if csr is not None:
        total += sparse_difference(csr, i, j)
    return total


@jit
def smallest(inner, squares, dense, csr, same, i, nearest, places):
    """Fill `nearest` with the smallest squared distances of point i, in order; `places` are their points.

    `inner` has the inner products of point i. Copies, which differ by less than a share of `same`, have a
    distance of 0.
    """
    size, limit, own = 0, np.inf, squares[i]
    for j in range(len(squares)):
        both = own + squares[j]
        square = both - 2.0 * inner[j]
        if square >= limit and square > CANCEL * both:
            continue
        if square <= CANCEL * both:
            square = squared_difference(dense, csr, i, j)
            square = square if square > same * same * both else 0.0
            if square >= limit:
                continue
        k = min(size, len(nearest) - 1)
        while k > 0 and nearest[k - 1] > square:
            nearest[k] = nearest[k - 1]
            places[k] = places[k - 1]
            k -= 1
        nearest[k] = square
        places[k] = j
        size = min(size + 1, len(nearest))
        if size == len(nearest):
            limit = nearest[size - 1]


@jit
def reach(nearest, places, masses, n, tie):
    """Return the largest squared distance of a near point, and whether one beyond the last may be near.

    A point is near if those that are strictly nearer have a mass below n; distances that differ by less
    than a share of `tie` are equal.
    """
    mass, nearer, limit = 0.0, 0.0, 0.0
    for k in range(len(nearest)):
        if k > 0 and math.sqrt(nearest[k]) > (1.0 + tie) * math.sqrt(nearest[k - 1]):
            nearer = mass
        if nearer >= n:
            return limit, False
        limit = nearest[k]
        mass += masses[places[k]]
    return limit, True


@jit
def near_pairs(inner, first, squares, dense, csr, masses, n, same, tie):
    """Return pairs (point, near point), without those of a point and itself.

    `inner` has a row for every point from number `first` on, of which the pairs are returned.
    """
    m = len(masses)
    here, there = [0 for _ in range(0)], [0 for _ in range(0)]
    for k in range(len(inner)):
        i = first + k
        size = min(n + 1, m)
        nearest, places = np.empty(size), np.empty(size, dtype=np.int64)
        smallest(inner[k], squares, dense, csr, same, i, nearest, places)
        limit, more = reach(nearest, places, masses, n, tie)
        while more and size < m:
            size = min(2 * size, m)
            nearest, places = np.empty(size), np.empty(size, dtype=np.int64)
            smallest(inner[k], squares, dense, csr, same, i, nearest, places)
            limit, more = reach(nearest, places, masses, n, tie)
        for p in range(size):
            if nearest[p] <= limit and places[p] != i:
                here.append(i)
                there.append(places[p])
    return np.array(here, dtype=np.int64), np.array(there, dtype=np.int64)


@jit
def edge_weights(ends, weights, right):
    """Return the weight of the edges between both sides, of those inside the left, and inside the right."""
    between, inside_left, inside_right = 0.0, 0.0, 0.0
    for k in range(len(weights)):
        one, other = right[ends[0, k]], right[ends[1, k]]
        if one != other:
            between += weights[k]
        elif one:
            inside_right += weights[k]
        else:
            inside_left += weights[k]
    return between, inside_left, inside_right
