"""The minimum density index over a profile, and the depth of its valleys, compiled.

I is the density (see `density_sum_kernels.py`), Q the penalty outside of the interval, P the penalty of
labels, and F = I + Q + P. Where there are no labels they are None, and numba leaves out what follows
`if labels is not None`.
"""

from __future__ import annotations

import math

import numpy as np

from ravine._jit import inner, jit, jit_by_address
from ravine.index.density_sum_kernels import (
    FAR,
    ROOT_TWO_PI,
    Line,
    density_sums,
    first_right,
    log_density,
    nearest,
)
from ravine.index.interval import FARTHEST
from ravine.index.shared_kernels import MAX_NEWTON_STEPS, label_penalty, lowest_label_penalty, newton_step

SUMMABLE = (
    1e-90  # share of the mass: a smaller sum may lack points 21 bandwidths away (1e-96): use logarithms
)
CLOSE = 0.1  # log density: coarse minima this close to the lowest one may be lower after Newton's method
PER_BANDWIDTH = 4.0  # thresholds of a coarse grid; a choice: twice as many lower 2 of 32 000 values
MIN_GRID, MAX_GRID = 5, 1 << 15  # thresholds: where more are needed, single points are seen and make the grid
MAX_PER_POINT = 64  # thresholds per point, the same: points are then 16 bandwidths apart in the mean
FREE_STEPS = 10  # Newton's steps before every other one is a halving: in a wide gap they are all short
EDGE_STEP = 32.0  # first step out of the interval: this part of eta; the minimum is at most eta / 2 outside
SETTLED = 1e-9  # bandwidths: a Newton step shorter than this is the last
FOOT_STEPS = 8  # steps per overshoot, and at most one more of them, on the way to the foot of a valley
REACH = 10.0  # bandwidths from a point at which its density rises as steeply as that of a point alone
ALONE = 14.0  # bandwidths, above sqrt(REACH^2 + FAR): a point so far behind does not count at that place


@inner
def interval_penalty(line, b):
    """Return the excess of b over the interval with its sign, and log Q, Q = (L / eta) excess^2."""
    excess = b - min(max(b, -line.half), line.half)
    if excess == 0.0:
        return 0.0, -np.inf
    h = line.h
    return excess, 2.0 * math.log(abs(excess)) - math.log(line.eta * h * h * ROOT_TWO_PI) - 0.5


@inner
def add_logs(log_f, log_p):
    """Return log(f + p) and the share f / (f + p)."""
    gap = log_p - log_f
    small = math.exp(-abs(gap))
    if gap > 0.0:
        return log_p + math.log1p(small), small / (1.0 + small)
    return log_f + math.log1p(small), 1.0 / (1.0 + small)


@inner
def objective(line, labels, b):
    """Return log F(b), F'/F, F''/F and the shares I/F and Q/F."""
    value, d1, d2 = log_density(line, b)
    density, outside = 1.0, 0.0
    excess, log_q = interval_penalty(line, b)
    if excess != 0.0:
        value, density = add_logs(value, log_q)
        outside = 1.0 - density
        d1 = density * d1 + outside * 2.0 / excess
        d2 = density * d2 + outside * 2.0 / (excess * excess)
    if labels is not None:
        p, p1, p2 = label_penalty(labels, b)
        if p > 0.0:
            value, share = add_logs(value, math.log(p))
            d1 = share * d1 + (1.0 - share) * p1 / p
            d2 = share * d2 + (1.0 - share) * p2 / p
            density *= share
            outside *= share
    return value, d1, d2, density, outside


@jit
def curve(points, mass, total, h, half, eta, thresholds):
    """Return log(I + Q) at every threshold."""
    line = Line(points, mass, total, h, half, eta)
    out = np.empty(len(thresholds))
    for k in range(len(thresholds)):
        out[k] = objective(line, None, thresholds[k])[0]
    return out


@jit
def log_density_at(points, mass, total, h, b):
    """Return log I at a threshold."""
    return log_density(Line(points, mass, total, h, np.inf, h), b)[0]


@inner
def grid_at_points(points, low, high):
    """Return low, high, and between them all points and the middles of neighboring points, in order.

    A bandwidth far smaller than the range of the points has its modes and valleys there, and the number of
    thresholds does not depend on it.
    """
    first, last = first_right(points, low), first_right(points, high)
    while first < len(points) and points[first] == low:
        first += 1
    grid = np.empty(4 + 2 * max(last - first, 0))
    grid[0] = low
    size = 1
    for k in range(first, last + 1):  # a loop, because sorting takes seconds to compile
        if 0 < k < len(points):
            middle = points[k - 1] / 2.0 + points[k] / 2.0
            if low < middle < high:
                grid[size] = middle
                size += 1
        if k < last:
            grid[size] = points[k]
            size += 1
    grid[size] = high
    return grid[: size + 1]


@inner
def inserted(grid, value):
    """Return a grid in order with one more threshold."""
    longer = np.empty(len(grid) + 1)
    place = first_right(grid, value)
    for k in range(len(grid)):
        longer[k if k < place else k + 1] = grid[k]
    longer[place] = value
    return longer


@inner
def coarse_curve(line, labels):
    """Return a grid, log F there up to a constant, and how far from a threshold of it a minimum may be.

    Q and P are convex, so the least F lies in the interval, or between it and the least P. The grid has
    steps of at most h / 4, or lies at the points and in the middle of their gaps.
    """
    low, high, best, h = -line.half, line.half, 0.0, line.h
    if labels is not None:
        best = lowest_label_penalty(labels.points, labels.sides, labels.strength)[0]
        low, high = min(low, best), max(high, best)
    step, sparse = h / 2.0, False
    if PER_BANDWIDTH * (high - low) > min(MAX_GRID, MAX_PER_POINT * len(line.points)) * h:
        grid = grid_at_points(line.points, low, high)
        if labels is not None:
            grid = inserted(grid, best)
        sparse = True
    else:
        m = 1 if low == high else max(MIN_GRID, math.ceil(PER_BANDWIDTH * (high - low) / h) + 1)
        step = h / 2.0 if m == 1 else (high - low) / (m - 1)
        grid = np.empty(m)
        for k in range(m):
            grid[k] = low + step * k
    values = np.empty(len(grid))
    if not sparse and len(grid) > 1:
        density_sums(line, low, step, values)
        for k in range(len(grid)):
            sparse = sparse or not values[k] > SUMMABLE * line.total
    for k in range(len(grid)):
        if sparse or len(grid) == 1:
            values[k] = objective(line, labels, grid[k])[0]
            continue
        if labels is not None:
            penalties = math.exp(interval_penalty(line, grid[k])[1]) + label_penalty(labels, grid[k])[0]
            values[k] += line.total * h * ROOT_TWO_PI * penalties  # in the unit of the sums behind I
        values[k] = math.log(values[k])
    return grid, values, step


@inner
def settle(line, labels, left, b, right):
    """Return the minimizer of F between left and right, and `objective` there: Newton's steps, or halving.

    Where P begins at b the second derivative jumps, and Newton's steps may end higher than they began.
    """
    start, first = b, objective(line, labels, b)
    here = first
    for k in range(MAX_NEWTON_STEPS):
        before = b
        left, b, right = newton_step(left, b, right, here[1], here[2])
        if k >= FREE_STEPS and k % 2 == 0:  # a halving alone would end within SETTLED, not at the minimum
            b = left / 2.0 + right / 2.0
        here = objective(line, labels, b)
        if abs(b - before) <= SETTLED * line.h:
            break
    if labels is not None and first[0] < here[0]:
        return start, first
    return b, here


@inner
def vertex(grid, values, k):
    """Return the vertex of the parabola through the values at a coarse minimum and beside it."""
    before, after = grid[k] - grid[k - 1], grid[k + 1] - grid[k]
    rise, fall = (values[k - 1] - values[k]) / before, (values[k + 1] - values[k]) / after
    both = rise + fall  # both are at least 0
    if not both > 0.0 or np.isinf(both):
        return grid[k]
    return grid[k] + 0.5 * (rise * after - fall * before) / both


@inner
def lowest(line, labels):
    """Return the threshold with the least F, and `objective` there.

    It is the best of all coarse minima close to the lowest, each settled. The slope of Q exceeds the steepest
    slope of I from eta / 2 on, so that eta is as far as a minimum can lie outside.
    """
    grid, values, step = coarse_curve(line, labels)
    last, bound = len(grid) - 1, np.inf
    for k in range(len(grid)):
        bound = min(bound, values[k] + CLOSE)
    best = (0.0, (np.inf, 0.0, 0.0, 1.0, 0.0))
    for k in range(last + 1):
        lower_left = k > 0 and values[k - 1] < values[k]
        lower_right = k < last and values[k + 1] < values[k]
        if values[k] > bound or lower_left or lower_right:
            continue
        left = grid[k] - (step if k > 0 else line.eta)
        right = grid[k] + (step if k < last else line.eta)
        b = grid[k]
        if 0 < k < last:
            b = vertex(grid, values, k)
        elif labels is None and last > 0:  # F falls outwards: begin where Q bends it upwards
            b += line.eta / EDGE_STEP if k == last else -line.eta / EDGE_STEP
        found = settle(line, labels, left, b if left < b < right else grid[k], right)
        if found[1][0] < best[1][0]:
            best = found
    return best


@inner
def line_of(points, mass, total, std, parameters):
    """Return the line of a profile; the parameters are bandwidth, alpha, eta and overshoot."""
    h = parameters[0]
    return Line(points, mass, total, h, min(parameters[1] * std, FARTHEST * h), parameters[2] * h)


@jit_by_address
def minimum(points, mass, total, std, parameters, final, slope, out):
    """Minimize log F over the threshold, without labels: a `LineFunction` (see `index/base.py`).

    A threshold at the edge of the interval is valid if the foot of the valley is at most `overshoot`
    bandwidths away. Whether it is takes some time, and is looked up only if this call is `final`.
    """
    line = line_of(points, mass, total, std, parameters)
    excess, bend = penalized(line, None, slope, out)
    out[2] = parameters[1] * out[2] if out[2] != 0.0 else 0.0  # alpha may be infinite
    if excess == 0.0:
        out[3] = 1.0 if bend > 0.0 else 0.0
    elif parameters[3] == 0.0:
        out[3] = 0.0
    elif not final:
        out[3] = np.nan
    else:
        valid, out[1] = slide(line, out[1], math.copysign(parameters[3] * line.h / FOOT_STEPS, excess))
        out[3] = 1.0 if valid else 0.0


@jit
def labeled_minimum(points, mass, total, std, parameters, labels, slope, out):
    """Do the same with labels, which decide where the threshold belongs: it is always valid."""
    penalized(line_of(points, mass, total, std, parameters), labels, slope, out)
    out[2] = parameters[1] * out[2] if out[2] != 0.0 else 0.0


@inner
def penalized(line, labels, slope, out):
    """Minimize log F over the threshold; fill `slope` with its derivative by each point.

    Writes the value, the threshold, and the derivative by `half`. Returns how far the threshold is outside of
    the interval, and the second derivative of F over F there.
    """
    b, (value, _, bend, density, outside) = lowest(line, labels)
    fill_slope(line, b, density, slope)
    excess = interval_penalty(line, b)[0]
    out[0], out[1] = value, b
    out[2] = 0.0 if excess == 0.0 else -outside * 2.0 / abs(excess)
    return excess, bend


@inner
def slide(line, b, step):
    """Look for the foot of the valley in a few steps beyond a threshold at the edge of the interval.

    By default they add up to one bandwidth, which is what the density can resolve: a valley whose foot is
    closer than that to the edge has been found. Returns whether there is one, and the threshold: the foot, or
    the edge itself.
    """
    before = log_density(line, b)[0]
    for k in range(1, FOOT_STEPS + 2):
        now = log_density(line, b + k * step)[0]
        if now > before:
            if k == 1:
                break
            middle = b + (k - 1) * step
            free = Line(line.points, line.mass, line.total, line.h, np.inf, line.eta)
            return True, settle(free, None, middle - abs(step), middle, middle + abs(step))[0]
        before = now
    return False, b


@inner
def fill_slope(line, b, share, slope):
    """slope[j] = d log F / d t_j = share * mass_j (b - t_j) phi_h(b - t_j) / (h^2 sum of mass phi_h)."""
    least = nearest(line, b)[1]
    total = 0.0
    for j in range(len(slope)):
        u = (b - line.points[j]) / line.h
        slope[j] = 0.0
        if u * u - least <= FAR:
            e = line.mass[j] * math.exp(-0.5 * (u * u - least))
            total += e
            slope[j] = u * e
    for j in range(len(slope)):
        slope[j] *= share / (total * line.h)


@jit
def relative_depth(points, mass, total, h, b):
    """Return 1 - I / M at b, with M the density at the lower of the two adjacent modes; at least 0."""
    line = Line(points, mass, total, h, np.inf, h)
    here = log_density(line, b)[0]
    step = h / PER_BANDWIDTH
    lower = min(log_mode(line, b, -step), log_mode(line, b, step))
    return -math.expm1(here - lower) if here < lower else 0.0


@inner
def neighbors(points, at, step):
    """Return the nearest points behind a place and ahead of it for a walk in steps of this sign."""
    k = first_right(points, at)
    if step > 0.0:
        while k < len(points) and points[k] == at:
            k += 1
        return points[k - 1] if k > 0 else -np.inf, points[k] if k < len(points) else np.inf
    return points[k] if k < len(points) else np.inf, points[k - 1] if k > 0 else -np.inf


@inner
def skip_empty(at, step, h, behind, ahead):
    """Return the place, whole steps on, where the density already rises to the next point, or `at` itself."""
    if np.isinf(ahead):
        return at
    steps = np.floor((abs(ahead - at) - REACH * h) / abs(step))
    there = at + steps * step
    return there if steps >= 1.0 and abs(there - behind) > ALONE * h else at


@inner
def log_mode(line, b, step):
    """Walk from b in steps until the density falls again; return the log of the mode passed.

    Empty stretches are skipped, so that the number of steps is at most a hundred per point, whatever the
    bandwidth. Where a step is below rounding, every point is a mode of its own.
    """
    last, at, rising = log_density(line, b)[0], b, False
    end = line.points[0] - line.h if step < 0 else line.points[-1] + line.h
    while (at > end) if step < 0 else (at < end):
        behind, ahead = neighbors(line.points, at, step)
        # a rising density may be about to fall behind the last point
        near = at if rising else skip_empty(at, step, line.h, behind, ahead)
        if near != at:
            at = near
            last = log_density(line, at)[0]
        if at + step == at:
            return last if np.isinf(ahead) else log_density(line, ahead)[0]
        at += step
        now = log_density(line, at)[0]
        if now > last:
            rising = True
        elif rising:
            before = log_density(line, at - 2.0 * step)[0]
            bend = 2.0 * last - now - before
            return last + (before - now) ** 2 / (8.0 * bend) if bend > 0.0 else last
        last = now
    return last


@jit
def lowest_valley(points, mass, total, h, min_weight):
    """Return the lowest local minimum of the density with this much mass on either side, or NaN."""
    line = Line(points, mass, total, h, np.inf, h)
    step = h / PER_BANDWIDTH
    if points[-1] - points[0] > MAX_GRID * step:
        grid = grid_at_points(points, points[0], points[-1])
    else:
        grid = points[0] + step * np.arange(int((points[-1] - points[0]) / step) + 3)
    values = curve(points, mass, total, h, np.inf, h, grid)
    left_of = np.cumsum(mass)
    best, least = np.nan, np.inf
    for k in range(1, len(grid) - 1):
        if values[k] < min(least, values[k - 1]) and values[k] <= values[k + 1]:
            threshold = settle(line, None, grid[k] - step, grid[k], grid[k] + step)[0]
            j = first_right(points, threshold)
            left = left_of[j - 1] if j > 0 else 0.0
            if min(left, total - left) >= min_weight:
                least = values[k]
                best = threshold
    return best
