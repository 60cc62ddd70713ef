"""The density of a profile on a line, its derivatives and sums of it, compiled.

Densities are taken in logarithms about the nearest point, so that a threshold many bandwidths away from any
mass still has a density to compare: that is what lets the bandwidth shrink until the widest margin is found.

Loops are written out instead of expressions of whole arrays, which take longer to compile: all of this is
compiled at the first fit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ravine._jit import inner
from ravine._validate import FloatArray

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
FAR = 80.0  # squared bandwidths: a term exp(-FAR / 2) = 4e-18 below the largest is lost in rounding
STRETCH = 64  # thresholds whose sums are taken together, at most 16 bandwidths wide
WITHIN = 37.0  # bandwidths: exp(-WITHIN^2 / 2) = 5e-298, before products of terms become subnormal


class Line(NamedTuple):
    """A profile, the bandwidth h, and the interval [-half, half] beyond which Q grows with 1 / eta."""

    points: FloatArray
    mass: FloatArray
    total: float
    h: float
    half: float
    eta: float


@inner
def first_right(points, b):
    """Return the number of points left of b, by bisection (np.searchsorted takes longer to compile)."""
    low, high = 0, len(points)
    while low < high:
        middle = (low + high) // 2
        if points[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def nearest(line, b):
    """Return the number of points left of b, and the squared distance of the nearest in bandwidths."""
    right = first_right(line.points, b)
    ahead = line.points[right] - b if right < len(line.points) else np.inf
    behind = b - line.points[right - 1] if right > 0 else np.inf
    return right, (min(ahead, behind) / line.h) ** 2


@inner
def log_density(line, b):
    """Return log I(b), and I'(b) / I(b), I''(b) / I(b).

    The terms mass exp((least - u^2) / 2) times 1, u, u^2, with u = (b - t) / h, are added outwards from b on
    both sides until they are lost in rounding.
    """
    right, least = nearest(line, b)
    if least == np.inf:
        return -np.inf, 0.0, 0.0
    s0, s1, s2 = 0.0, 0.0, 0.0
    j, step = right, 1
    while j >= 0:
        u = (b - line.points[j]) / line.h if j < len(line.points) else np.inf
        if u * u - least > FAR:
            if step < 0:
                break
            j, step = right - 1, -1
            continue
        e = line.mass[j] * math.exp(-0.5 * (u * u - least))
        s0 += e
        s1 += u * e
        s2 += u * u * e
        j += step
    h = line.h
    value = math.log(s0 / (line.total * h * ROOT_TWO_PI)) - 0.5 * least
    bend = (s2 / s0 - 1.0) / (h * h) if h * h > 0.0 else np.inf
    return value, -s1 / (s0 * h), bend


@inner
def density_sums(line, first, step, out):
    """Fill out[k] with the sum of mass exp(-(b_k - t)^2 / 2h^2) at b_k = first + k step, step <= h / 4.

    From one b_k to the next a term changes by a factor that itself shrinks by a constant factor: two
    exponentials per point and stretch of thresholds, and two products per pair. Four points at a time,
    because each product waits for the one before. Points beyond WITHIN are left out: see SUMMABLE.
    """
    m, n, h = len(out), len(line.points), line.h
    half = math.exp(-0.5 * (step / h) ** 2)
    shrink = half * half
    terms, ratios = np.empty(4), np.empty(4)
    for k in range(m):
        out[k] = 0.0
    near = 0
    for begin in range(0, m, STRETCH):
        end = min(begin + STRETCH, m)
        low, high = first + begin * step, first + (end - 1) * step
        while near < n and high - line.points[near] > WITHIN * h:
            near += 1
        j = near
        while j < n and line.points[j] - low <= WITHIN * h:
            for i in range(4):
                terms[i] = ratios[i] = 0.0
                if j < n:
                    u = (low - line.points[j]) / h
                    terms[i] = line.mass[j] * math.exp(-0.5 * u * u)
                    ratios[i] = math.exp(-u * (step / h)) * half
                    j += 1
            e0, e1, e2, e3 = terms[0], terms[1], terms[2], terms[3]
            r0, r1, r2, r3 = ratios[0], ratios[1], ratios[2], ratios[3]
            for k in range(begin, end):
                out[k] += (e0 + e1) + (e2 + e3)
                e0, e1, e2, e3 = e0 * r0, e1 * r1, e2 * r2, e3 * r3
                r0, r1, r2, r3 = r0 * shrink, r1 * shrink, r2 * shrink, r3 * shrink
