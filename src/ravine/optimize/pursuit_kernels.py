"""A whole pursuit over rows in memory, compiled: projections, index, gradient and descent in one call.

The steps are those of `pursuit.py` and `sphere.py`, where every projection is a request. Rows are
standardized: `dense` is an array, or None and `csr` has (values, columns, starts of rows, center) of a CSR
matrix from which the center is not subtracted. One of `density` and `connectivity` has a row of parameters
for every stage, and the other is None: numba leaves out what follows `if x is not None` if x is None.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ravine._jit import jit
from ravine._validate import FloatArray, IntArray
from ravine.data.kernels import bin_points
from ravine.index.connectivity_kernels import contracted
from ravine.index.density import FARTHEST
from ravine.index.density_kernels import Line, lowest, own_minimum, penalized, unlabeled
from ravine.optimize.sphere import BACKTRACKS, FIRST_ANGLE, LARGEST_ANGLE, SAME_VALUE, SUFFICIENT
from ravine.optimize.sphere_kernels import two_loop


class Bins(NamedTuple):
    """A grid, and what every evaluation writes: the points and bins of rows, the sums and slopes of bins."""

    low: float
    width: float
    points: FloatArray
    bins: IntArray
    mass: FloatArray
    moment: FloatArray
    slope: FloatArray


@jit
def project(dense, csr, v, out):
    """out[i] = v . row i."""
    if dense is not None:
        n, d = dense.shape
        whole = d - d % 4
        for i in range(n):
            a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
            for j in range(0, whole, 4):
                a0 += dense[i, j] * v[j]
                a1 += dense[i, j + 1] * v[j + 1]
                a2 += dense[i, j + 2] * v[j + 2]
                a3 += dense[i, j + 3] * v[j + 3]
            for j in range(whole, d):
                a0 += dense[i, j] * v[j]
            out[i] = (a0 + a1) + (a2 + a3)
    if csr is not None:
        values, columns, starts, center = csr
        shift = np.sum(center * v)
        for i in range(len(starts) - 1):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * v[columns[k]]
            out[i] = total - shift


@jit
def weighted_sum(dense, csr, factors, out):
    """out = sum of factors[i] row i."""
    out[:] = 0.0
    if dense is not None:
        n, d = dense.shape
        for i in range(n):
            f = factors[i]
            if f != 0.0:
                for j in range(d):
                    out[j] += f * dense[i, j]
    if csr is not None:
        values, columns, starts, center = csr
        for i in range(len(starts) - 1):
            f = factors[i]
            if f != 0.0:
                for k in range(starts[i], starts[i + 1]):
                    out[columns[k]] += f * values[k]
        out -= np.sum(factors) * center


@jit
def fill_bins(dense, csr, weights, total, v, bins):
    """Project the rows on v, into bins. Returns the profile and its standard deviation."""
    project(dense, csr, v, bins.points)
    bins.mass[:] = 0.0
    bins.moment[:] = 0.0
    bin_points(bins.points, weights, bins.low, bins.width, bins.bins, bins.mass, bins.moment)
    full = np.flatnonzero(bins.mass)
    mass = bins.mass[full]
    points = bins.moment[full] / mass
    return full, points, mass, math.sqrt(np.sum(mass * points * points) / total)


@jit
def line_of(profile, total, parameters):
    """Return the profile with the parameters of a minimum density index: bandwidth, alpha, eta, overshoot."""
    _, points, mass, std = profile
    h = parameters[0]
    return Line(points, mass, total, h, min(parameters[1] * std, FARTHEST * h), parameters[2] * h)


@jit
def evaluate(profile, total, density, connectivity, stage, bins):
    """Return value, threshold and excess of the index of a stage; bins.slope is its derivative per row."""
    full, points, mass, std = profile
    slope = np.zeros(len(points))
    value, threshold, excess, bend, d_std = np.inf, 0.0, 0.0, 1.0, 0.0
    if density is not None:
        line = line_of(profile, total, density[stage])
        value, threshold, d_half, excess, bend = penalized(line, unlabeled(), slope)
        d_std = density[stage, 1] * d_half if d_half != 0.0 else 0.0
    if connectivity is not None and len(points) > 1:  # otherwise all rows are at one place: no split
        sigma, beta, normalized = connectivity[stage, 0], connectivity[stage, 1], connectivity[stage, 2] > 0.0
        value, threshold, by_edge = contracted(points, mass, sigma, beta * std, normalized, slope)
        d_std = beta * by_edge
    slope /= mass
    if d_std != 0.0 and std > 0.0:
        slope += d_std * points / (total * std)
    bins.slope[:] = 0.0
    for k in range(len(full)):
        bins.slope[full[k]] = slope[k]
    return value, threshold, excess, bend


@jit
def fill_gradient(dense, csr, weights, v, bins, gradient):
    """Sum the rows by the slopes of their bins, and project the sum on the tangent plane."""
    for i in range(len(weights)):
        bins.points[i] = weights[i] * bins.slope[bins.bins[i]]
    weighted_sum(dense, csr, bins.points, gradient)
    gradient -= np.sum(gradient * v) * v


@jit
def length_of(vector):
    """Return the Euclidean norm."""
    return math.sqrt(np.sum(vector * vector))


@jit
def quasi_newton(v, gradient, pairs, n_pairs):
    """Return the step in the tangent plane of v that the pairs (step, change of the gradient) propose."""
    if n_pairs == 0:
        tangent = gradient * (-FIRST_ANGLE / length_of(gradient))
    else:
        tangent = -two_loop(pairs[0, :n_pairs], pairs[1, :n_pairs], gradient)
    tangent -= np.sum(tangent * v) * v
    return tangent


@jit
def remember(pairs, n_pairs, step, change):
    """Keep a pair if it satisfies the curvature condition, instead of the oldest if there are too many."""
    if not np.sum(step * change) > 1e-10 * length_of(step) * length_of(change):
        return n_pairs
    # Loops instead of assignments of slices, whose checks take seconds to compile.
    full = n_pairs == pairs.shape[1]
    n_pairs -= full
    for j in range(len(step)):
        if full:
            for k in range(n_pairs):
                pairs[0, k, j] = pairs[0, k + 1, j]
                pairs[1, k, j] = pairs[1, k + 1, j]
        pairs[0, n_pairs, j] = step[j]
        pairs[1, n_pairs, j] = change[j]
    return n_pairs + 1


@jit
def descend(rows, stage, state, profile, found, pairs, n_pairs, tol, progress, max_iter):
    """Minimize the index of a stage from state (direction, gradient), in place; see `sphere.descend`.

    Returns the profile and the value at the end, the number of pairs, steps, why it ended, and whether the
    bins are those of the end.
    """
    dense, csr, weights, total, density, connectivity, bins = rows
    v, gradient = state
    spent, n_steps, fresh = 0, 0, True
    while True:
        if length_of(gradient) <= tol:
            return profile, found, n_pairs, n_steps, 0, fresh
        moved = False
        for _ in range(2):  # the second time as steepest descent
            tangent = quasi_newton(v, gradient, pairs, n_pairs)
            slope = np.sum(tangent * gradient)
            if slope < 0.0:
                length = min(1.0, LARGEST_ANGLE / length_of(tangent))
                for _ in range(min(BACKTRACKS, max_iter - spent)):
                    angle = length * length_of(tangent)
                    trial = math.cos(angle) * v + (math.sin(angle) / angle * length) * tangent
                    trial /= length_of(trial)
                    there = fill_bins(dense, csr, weights, total, trial, bins)
                    value = evaluate(there, total, density, connectivity, stage, bins)
                    spent += 1
                    fresh = False
                    if value[0] <= found[0] + SUFFICIENT * length * slope:
                        moved = True
                        break
                    rise = value[0] - found[0] - length * slope
                    shorter = -slope * length * length / (2.0 * rise) if np.isfinite(rise) else 0.0
                    length = min(max(shorter, 0.1 * length), 0.5 * length)
            if moved or n_pairs == 0 or spent >= max_iter:
                break
            n_pairs = 0
        if not moved:
            return profile, found, n_pairs, n_steps, 3 if spent >= max_iter else 2, fresh
        before = gradient.copy()
        fill_gradient(dense, csr, weights, trial, bins, gradient)
        n_pairs = remember(pairs, n_pairs, length * tangent, gradient - before)
        for j in range(len(v)):
            v[j] = trial[j]
        gain = found[0] - value[0]
        profile, found, fresh, n_steps = there, value, True, n_steps + 1
        if gain < progress:
            return profile, found, n_pairs, n_steps, 1, fresh


@jit
def pursue(
    dense,
    csr,
    weights,
    total,
    grid,
    start,
    n_stages,
    density,
    connectivity,
    tol,
    progress,
    max_iter,
    enough,
    pairs,
    n_pairs,
):
    """Minimize the indices of all stages in order, see `pursuit.pursue`.

    Stages end at the first one with a mass of `enough` on both sides. If the last interval of thresholds has
    the same minimum as the one before, so have those between them: they are left out. The last one is not,
    because its steps bring ends together that rounding has set apart.
    """
    n, n_bins = len(weights), grid[2]
    bins = Bins(
        grid[0],
        grid[1],
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n_bins),
        np.empty(n_bins),
        np.empty(n_bins),
    )
    rows = dense, csr, weights, total, density, connectivity, bins
    v, gradient = start.copy(), np.zeros(len(start))
    profile = fill_bins(dense, csr, weights, total, v, bins)
    fresh, status, n_iter = True, 0, 0
    kept = (v, gradient, profile, np.inf, 0.0, False, -1, 0, 0)
    first = 0  # stages before this one are left out
    for stage in range(n_stages):  # a counter that starts at a constant would compile everything twice
        if stage < first:
            continue
        found = evaluate(profile, total, density, connectivity, stage, bins)
        if not fresh:
            fill_bins(dense, csr, weights, total, v, bins)
        fill_gradient(dense, csr, weights, v, bins, gradient)
        profile, found, n_pairs, steps, status, fresh = descend(
            rows, stage, (v, gradient), profile, found, pairs, n_pairs, tol, progress, max_iter
        )
        n_iter += steps
        valid, threshold = np.isfinite(found[0]), found[1]
        if density is not None:
            line = line_of(profile, total, density[stage])
            valid, threshold = own_minimum(line, found[1], found[2], found[3], density[stage, 3])
        if valid or not kept[5]:
            kept = (v.copy(), gradient.copy(), profile, found[0], threshold, valid, stage, n_iter, status)
        left = np.sum(profile[2][profile[1] <= threshold])
        if min(left, total - left) >= enough:
            break
        if density is not None and stage < n_stages - 2:
            value = lowest(line_of(profile, total, density[n_stages - 1]), unlabeled())[1][0]
            if found[0] - value <= SAME_VALUE:
                first = n_stages - 1
    return kept, n_pairs
