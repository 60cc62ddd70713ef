"""The sums over a profile behind the minimum density index, compiled.

All are taken in logarithms about the nearest point, so that a cut many bandwidths away from any mass still
has a density to compare: that is what lets the bandwidth fall until the widest margin is found.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from ravine.index import bracket_kernels, labels_kernels

jit = numba.njit(cache=True, nogil=True)

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
FAR = 80.0  # terms exp(-40) below the largest do not show in the sum
TINY = 1e-250
CLOSE = 0.1  # coarse minima whose log density is this close to the lowest are settled, too
MAX_CUTS = 1 << 15  # evenly spaced cuts at most: where more were needed, the density shows single points
REACH = 10.0  # bandwidths from a point at which its density rises as steeply as that of a point alone
ALONE = 14.0  # bandwidths, above sqrt(REACH^2 + FAR): a point so far behind does not count at that place


@jit
def log_density(points, mass, total, h, b):
    """Return log I(b), and I'(b) / I(b), I''(b) / I(b)."""
    n = len(points)
    right = np.searchsorted(points, b)
    nearest = np.inf
    if right < n:
        nearest = points[right] - b
    if right > 0:
        nearest = min(nearest, b - points[right - 1])
    least = (nearest / h) ** 2
    if least == np.inf:
        return -np.inf, 0.0, 0.0
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    for j in range(right, n):
        u = (b - points[j]) / h
        if u * u - least > FAR:
            break
        e = mass[j] * math.exp(-0.5 * (u * u - least))
        s0 += e
        s1 += u * e
        s2 += u * u * e
    for j in range(right - 1, -1, -1):
        u = (b - points[j]) / h
        if u * u - least > FAR:
            break
        e = mass[j] * math.exp(-0.5 * (u * u - least))
        s0 += e
        s1 += u * e
        s2 += u * u * e
    value = math.log(s0 / (total * h * ROOT_TWO_PI)) - 0.5 * least
    bend = (s2 / s0 - 1.0) / (h * h) if h * h > 0.0 else np.inf
    return value, -s1 / (s0 * h), bend


@jit
def densities(points, mass, h, first, step, out):
    """Fill out[k] with the sum of mass exp(-(b_k - t)^2 / 2h^2) at b_k = first + k step.

    Each point spreads from the nearest b_k outwards, with a factor that itself shrinks by a constant factor:
    two exponentials a point and two products a pair.
    """
    m = len(out)
    shrink = math.exp(-((step / h) ** 2))
    out[:] = 0.0
    for j in range(len(points)):
        place = (points[j] - first) / step
        k0 = int(min(max(round(place), 0.0), m - 1.0))
        u = (first + k0 * step - points[j]) / h
        top = mass[j] * math.exp(-0.5 * u * u)
        if top < TINY:
            continue
        out[k0] += top
        half = math.exp(-0.5 * (step / h) ** 2)
        cross = math.exp(-u * step / h)
        e = top
        ratio = cross * half
        for k in range(k0 + 1, m):
            e *= ratio
            ratio *= shrink
            if e < TINY:
                break
            out[k] += e
        e = top
        ratio = half / cross
        for k in range(k0 - 1, -1, -1):
            e *= ratio
            ratio *= shrink
            if e < TINY:
                break
            out[k] += e


@jit
def penalty(b, half, eta, h):
    """Return the excess of b over [-half, half] with its sign, and the log of (L / eta) excess^2."""
    excess = 0.0
    if b > half:
        excess = b - half
    elif b < -half:
        excess = b + half
    if excess == 0.0:
        return 0.0, -np.inf
    return excess, 2.0 * math.log(abs(excess)) - math.log(eta * h * h * ROOT_TWO_PI) - 0.5


@jit
def penalized(points, mass, total, h, half, eta, b):
    """Return log f(b), f'/f, f''/f and the share I/f of the density in f at the cut b."""
    log_i, d1, d2 = log_density(points, mass, total, h, b)
    excess, log_p = penalty(b, half, eta, h)
    if excess == 0.0:
        return log_i, d1, d2, 1.0
    gap = log_p - log_i
    if gap > 0.0:
        share = math.exp(-gap) / (1.0 + math.exp(-gap))
        value = log_p + math.log1p(math.exp(-gap))
    else:
        share = 1.0 / (1.0 + math.exp(gap))
        value = log_i + math.log1p(math.exp(gap))
    slope = share * d1 + (1.0 - share) * 2.0 / excess
    bend = share * d2 + (1.0 - share) * 2.0 / (excess * excess)
    return value, slope, bend, share


@jit
def curve(points, mass, total, h, half, eta, cuts):
    """Return log f at every cut."""
    out = np.empty(len(cuts))
    for k in range(len(cuts)):
        out[k] = penalized(points, mass, total, h, half, eta, cuts[k])[0]
    return out


@jit
def log_sum(a, b):
    """Return log(exp(a) + exp(b))."""
    high = max(a, b)
    return high + math.log1p(math.exp(min(a, b) - high))


@jit
def even_curve(points, mass, total, h, half, eta, first, step, m):
    """Return log f at m cuts, `step` apart; quickly, unless the density is next to nothing somewhere."""
    out = np.empty(m)
    densities(points, mass, h, first, step, out)
    if np.min(out) <= TINY * 1e20 * total:
        return curve(points, mass, total, h, half, eta, first + step * np.arange(m))
    for k in range(m):
        out[k] = math.log(out[k] / (total * h * ROOT_TWO_PI))
        excess, log_p = penalty(first + k * step, half, eta, h)
        if excess != 0.0:
            out[k] = log_sum(out[k], log_p)
    return out


@jit
def cuts_at_points(points, low, high):
    """Return low, high, and between them all points and the middles of neighboring points, in order.

    A bandwidth far smaller than the range of the points has its modes and valleys there, and the number of
    cuts does not depend on it.
    """
    n = len(points)
    first = np.searchsorted(points, low, side="right")
    last = np.searchsorted(points, high)
    cuts = np.empty(2 * (last - first) + 3)
    cuts[0] = low
    m = 1
    for j in range(first, last + 1):
        if 0 < j < n:
            middle = points[j - 1] / 2.0 + points[j] / 2.0
            if low < middle < high:
                cuts[m] = middle
                m += 1
        if j < last:
            cuts[m] = points[j]
            m += 1
    cuts[m] = high
    return cuts[: m + 1]


@jit
def coarse_cuts(points, mass, total, h, half):
    """Return cuts in [-half, half], the log density there, and how far from one of them a minimum may be.

    The cuts are at most a quarter of a bandwidth apart, or at the points and in the middle of their gaps.
    """
    step = h / 2.0
    if 8.0 * half > MAX_CUTS * h:
        cuts = cuts_at_points(points, -half, half)
    else:
        m = max(5, math.ceil(8.0 * half / h) + 1)
        step = 2.0 * half / (m - 1)
        cuts = -half + step * np.arange(m)
        curve = np.empty(m)
        densities(points, mass, h, -half, step, curve)
        if np.min(curve) > TINY * 1e20 * total:
            return cuts, np.log(curve), step
    curve = np.empty(len(cuts))
    for k in range(len(cuts)):
        curve[k] = log_density(points, mass, total, h, cuts[k])[0]
    return cuts, curve, step


@jit
def lowest_cut(points, mass, total, h, half, eta):
    """Return the cut with the least f: the best settled of all coarse minima close to the lowest."""
    if half == 0.0:
        return settle(points, mass, total, h, half, eta, -eta, 0.0, eta)
    cuts, curve, step = coarse_cuts(points, mass, total, h, half)
    m = len(cuts)
    bound = np.min(curve) + CLOSE
    best = 0.0
    lowest = np.inf
    for k in range(m):
        left_ok = k == 0 or curve[k] <= curve[k - 1]
        right_ok = k == m - 1 or curve[k] <= curve[k + 1]
        if curve[k] <= bound and left_ok and right_ok:
            left = cuts[k] - step if k > 0 else -half - eta
            right = cuts[k] + step if k < m - 1 else half + eta
            b = settle(points, mass, total, h, half, eta, left, cuts[k], right)
            value = penalized(points, mass, total, h, half, eta, b)[0]
            if value < lowest:
                lowest = value
                best = b
    return best


@jit
def minimum(points, mass, total, h, half, eta, slope):
    """Minimize log f over the cut; fill `slope` with its derivative by each point.

    Returns the value, the cut, the derivative by `half`, and whether the cut is a minimizer of the
    density itself. A cut at the edge of the interval is none, unless the foot of the valley is at hand.
    """
    b = lowest_cut(points, mass, total, h, half, eta)
    value, _, d2, _ = penalized(points, mass, total, h, half, eta, b)
    d_half = slopes(points, mass, total, h, half, eta, b, slope)
    excess = penalty(b, half, eta, h)[0]
    if excess == 0.0:
        return value, b, 0.0, d2 > 0.0
    reachable, foot = slide(points, mass, total, h, eta, b, h / 8.0 if excess > 0.0 else -h / 8.0)
    return value, foot, d_half, reachable


@jit
def slopes(points, mass, total, h, half, eta, b, slope):
    """Fill `slope` with the derivative of log f(b) by each point; return that by `half`."""
    share = penalized(points, mass, total, h, half, eta, b)[3]
    fill_slope(points, mass, h, b, share, slope)
    excess = penalty(b, half, eta, h)[0]
    return 0.0 if excess == 0.0 else -(1.0 - share) * 2.0 / abs(excess)


@jit
def settle(points, mass, total, h, half, eta, left, b, right):
    """Return the minimizer of f between left and right: Newton's steps, halving where they leave it."""
    for _ in range(bracket_kernels.STEPS):
        _, d1, d2, _ = penalized(points, mass, total, h, half, eta, b)
        before = b
        left, b, right = bracket_kernels.step(left, b, right, d1, d2)
        if abs(b - before) <= 1e-9 * h:
            break
    return b


@jit
def with_labels(points, mass, total, h, half, eta, places, sides, strength, b):
    """Return log F, F'/F, F''/F of F = f + P at the cut b, and the share f/F; P is the labels' penalty."""
    log_f, d1, d2, _ = penalized(points, mass, total, h, half, eta, b)
    p, p1, p2 = labels_kernels.at(places, sides, strength, b)
    if p == 0.0:
        return log_f, d1, d2, 1.0
    value = log_sum(log_f, math.log(p))
    share = math.exp(log_f - value)
    scale = math.exp(-value)
    return value, share * d1 + scale * p1, share * d2 + scale * p2, share


@jit
def settle_with_labels(points, mass, total, h, half, eta, places, sides, strength, left, b, right):
    """Return the minimizer of f + P between left and right: Newton's steps, halving where they leave it."""
    for _ in range(bracket_kernels.STEPS):
        _, d1, d2, _ = with_labels(points, mass, total, h, half, eta, places, sides, strength, b)
        before = b
        left, b, right = bracket_kernels.step(left, b, right, d1, d2)
        if abs(b - before) <= 1e-9 * h:
            break
    return b


@jit
def least_with_labels(points, mass, total, h, half, eta, places, sides, strength):
    """Minimize log F, F = f + P, over the cut; return the least, its cut and the share f/F.

    The penalty of the interval and P are convex: the least lies between the interval and the least P.
    """
    lowest = labels_kernels.lowest(places, sides, strength)
    low = min(-half, lowest) - h / 2.0
    high = max(half, lowest) + h / 2.0
    step = h / 2.0
    if 2.0 * (high - low) > MAX_CUTS * h:
        cuts = np.sort(np.append(cuts_at_points(points, low, high), lowest))
        log_f = curve(points, mass, total, h, half, eta, cuts)
    else:
        m = max(7, math.ceil(2.0 * (high - low) / h) + 1)
        step = (high - low) / (m - 1)
        cuts = low + step * np.arange(m)
        log_f = even_curve(points, mass, total, h, half, eta, low, step, m)
    for k in range(len(cuts)):
        p = labels_kernels.at(places, sides, strength, cuts[k])[0]
        if p > 0.0:
            log_f[k] = log_sum(log_f[k], math.log(p))
    bound = np.min(log_f) + CLOSE
    threshold = cuts[np.argmin(log_f)]
    value, _, _, share = with_labels(points, mass, total, h, half, eta, places, sides, strength, threshold)
    for k in range(1, len(cuts) - 1):
        if log_f[k] <= bound and log_f[k] <= log_f[k - 1] and log_f[k] <= log_f[k + 1]:
            b = cuts[k]
            b = settle_with_labels(
                points, mass, total, h, half, eta, places, sides, strength, b - step, b, b + step
            )
            now, _, _, s = with_labels(points, mass, total, h, half, eta, places, sides, strength, b)
            if now < value:
                value, threshold, share = now, b, s
    return value, threshold, share


@jit
def slide(points, mass, total, h, eta, b, step):
    """Look for the foot of the valley within one bandwidth beyond a cut at the edge of the interval.

    The bandwidth is what the density can resolve: a valley whose foot is closer than that to the edge has
    been found. Returns whether there is one, and the cut: the foot, or the edge itself.
    """
    last = log_density(points, mass, total, h, b)[0]
    for k in range(1, 10):
        now = log_density(points, mass, total, h, b + k * step)[0]
        if now > last:
            if k == 1:
                return False, b
            middle = b + (k - 1) * step
            low, high = min(middle - step, middle + step), max(middle - step, middle + step)
            return True, settle(points, mass, total, h, np.inf, eta, low, middle, high)
        last = now
    return False, b


@jit
def fill_slope(points, mass, h, b, share, slope):
    """slope[j] = d log f / d t_j = share * mass_j (b - t_j) phi_h(b - t_j) / (h^2 sum of mass phi_h)."""
    n = len(points)
    least = np.inf
    for j in range(n):
        u = (b - points[j]) / h
        least = min(least, u * u)
    total = 0.0
    for j in range(n):
        u = (b - points[j]) / h
        slope[j] = 0.0
        if u * u - least <= FAR:
            e = mass[j] * math.exp(-0.5 * (u * u - least))
            total += e
            slope[j] = u * e
    for j in range(n):
        slope[j] *= share / (total * h)


@jit
def neighbors(points, at, step):
    """Return the nearest points behind a place and ahead of it for a walk in steps of this sign."""
    if step > 0.0:
        k = np.searchsorted(points, at, side="right")
        return points[k - 1] if k > 0 else -np.inf, points[k] if k < len(points) else np.inf
    k = np.searchsorted(points, at)
    return points[k] if k < len(points) else np.inf, points[k - 1] if k > 0 else -np.inf


@jit
def skip_empty(at, step, h, behind, ahead):
    """Return the place, whole steps on, where the density already rises to the next point, or `at` itself."""
    if np.isinf(ahead):
        return at
    steps = np.floor((abs(ahead - at) - REACH * h) / abs(step))
    there = at + steps * step
    return there if steps >= 1.0 and abs(there - behind) > ALONE * h else at


@jit
def log_mode(points, mass, total, h, b, step):
    """Walk from the cut b in steps until the density falls again; return the log of the mode passed.

    Empty stretches are skipped, so that the number of steps is at most a hundred per point, whatever the
    bandwidth. Where a step is below rounding, every point is a mode of its own.
    """
    last = log_density(points, mass, total, h, b)[0]
    rising = False
    end = points[0] - h if step < 0 else points[-1] + h
    at = b
    while (at > end) if step < 0 else (at < end):
        behind, ahead = neighbors(points, at, step)
        # a rising density may be about to fall behind the last point
        near = at if rising else skip_empty(at, step, h, behind, ahead)
        if near != at:
            at = near
            last = log_density(points, mass, total, h, at)[0]
        if at + step == at:
            return last if np.isinf(ahead) else log_density(points, mass, total, h, ahead)[0]
        at += step
        now = log_density(points, mass, total, h, at)[0]
        if now > last:
            rising = True
        elif rising:
            before = log_density(points, mass, total, h, at - 2.0 * step)[0]
            bend = 2.0 * last - now - before
            return last + (before - now) ** 2 / (8.0 * bend) if bend > 0.0 else last
        last = now
    return last


@jit
def lowest_valley(points, mass, total, h, least):
    """Return the local minimum of the density with the lowest value, or NaN if there is none.

    At least `least` of the mass lies on either side of it.
    """
    step = h / 4.0
    if points[-1] - points[0] > MAX_CUTS * step:
        cuts = cuts_at_points(points, points[0], points[-1])
    else:
        cuts = points[0] + step * np.arange(int((points[-1] - points[0]) / step) + 3)
    left_of = np.cumsum(mass)
    best = np.nan
    lowest = np.inf
    before = np.inf
    now = log_density(points, mass, total, h, cuts[0])[0]
    for k in range(1, len(cuts)):
        after = log_density(points, mass, total, h, cuts[k])[0]
        if now < before and now <= after and now < lowest and k > 1:
            b = cuts[k - 1]
            threshold = settle(points, mass, total, h, np.inf, h, b - step, b, b + step)
            j = np.searchsorted(points, threshold)
            left = left_of[j - 1] if j > 0 else 0.0
            if min(left, total - left) >= least:
                lowest = now
                best = threshold
        before = now
        now = after
    return best
