"""A whole pursuit over rows in memory, compiled: projections, index, gradient and descent in one call.

The steps are those of `pursuit.py` and `sphere.py`, where every projection is a request. The index is called
by its address (`index/base.py`, `LineFunction`), and rows are dense or sparse at run time, so that all of
this is compiled once. Loops are written out instead of expressions of whole arrays, which take longer to
compile, and so do `min`, `max` and `int`, which numba compiles for every kind of caller.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float64, int64, types
from numba.extending import intrinsic

from ravine._jit import address_for, address_of, by_address, call_address, inner, jit
from ravine._validate import FloatArray, IntArray
from ravine.data.kernels import bin_points
from ravine.index.base import LineFunction
from ravine.optimize.held_kernels import Rows, project, weighted_sum
from ravine.optimize.sphere import BACKTRACKS, FIRST_ANGLE, LARGEST_ANGLE, SAME_VALUE, SUFFICIENT
from ravine.optimize.sphere_kernels import dot, subtract, two_loop

ORDINARY = 10.0  # size of ordinary values; among larger ones, of a tiny bandwidth, no run is clearly behind


class Bins(NamedTuple):
    """What an evaluation writes: points and bins of the rows, and sums of the bins (see MASS ... BIN_SLOPE).

    Every array of a tuple takes time to compile, in every function that has it, so the arrays are few.
    """

    points: FloatArray
    bins: IntArray
    full: IntArray  # the bins that are not empty, one per point of the profile
    sums: FloatArray


# rows of `Bins.sums`: mass and moment of every bin, the profile (centers and masses of the full bins), and
# the slopes by its points and by the bins
MASS, MOMENT, CENTERS, MASSES, SLOPE, BIN_SLOPE = range(6)


def bins_for(n_rows: int, n_bins: int) -> Bins:
    """Return bins to be filled."""
    places, full = np.empty(n_rows, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
    return Bins(np.empty(n_rows), places, full, np.empty((6, n_bins)))


class Options(NamedTuple):
    """Of a pursuit: the grid of the bins, the total weight, when stages and runs end, the lattice."""

    low: float
    width: float
    total: float
    tol: float
    progress: float
    max_iter: int
    enough: float
    nested: bool
    spacing: float
    behind: float
    same: float
    apart: float


VECTOR = float64[::1]
LINE_FUNCTION = types.void(VECTOR, VECTOR, float64, float64, VECTOR, boolean, VECTOR, VECTOR)


@cache
def address_of_index(function: LineFunction) -> int:
    """Return the address of a compiled index."""
    return address_of(function, LINE_FUNCTION)


@intrinsic
def call_index(typing, address, points, mass, total, std, parameters, final, slope, out):
    """Call the compiled index at an address (see `index/base.py`, `LineFunction`)."""
    return types.void(int64, *LINE_FUNCTION.args), call_address


@inner
def fill_bins(rows, options, v, bins):
    """Project the rows on v, into bins. Returns the number of points of the profile, and its deviation."""
    project(rows, v, bins.points)
    mass, moment, centers, masses = bins.sums[MASS], bins.sums[MOMENT], bins.sums[CENTERS], bins.sums[MASSES]
    for g in range(len(mass)):
        mass[g] = moment[g] = 0.0
    bin_points(bins.points, rows.weights, options.low, options.width, bins.bins, mass, moment)
    m, square = 0, 0.0
    for g in range(len(mass)):
        if mass[g] != 0.0:
            center = moment[g] / mass[g]
            bins.full[m], centers[m], masses[m] = g, center, mass[g]
            square += mass[g] * center * center
            m += 1
    return m, math.sqrt(square / options.total)


@inner
def evaluate(index, sums, profile, total, parameters, final, out):
    """Evaluate an index on the profile; out has value, threshold, derivative by the deviation, validity."""
    m, std = profile
    points, mass, slope = sums[CENTERS, :m], sums[MASSES, :m], sums[SLOPE, :m]
    call_index(index, points, mass, total, std, parameters, final, slope, out)  # type: ignore[call-arg]


@inner
def fill_gradient(rows, options, v, bins, profile, d_std, gradient):
    """Sum the rows by the slopes of their bins, and project the sum on the tangent plane."""
    m, std = profile
    sums, of_bin, factors = bins.sums, bins.sums[BIN_SLOPE], bins.points
    for g in range(len(of_bin)):
        of_bin[g] = 0.0
    spread = d_std != 0.0 and std > 0.0
    for k in range(m):
        slope = sums[SLOPE, k] / sums[MASSES, k]
        if spread:
            slope += d_std * sums[CENTERS, k] / (options.total * std)
        of_bin[bins.full[k]] = slope
    for i in range(len(factors)):
        factors[i] = rows.weights[i] * of_bin[bins.bins[i]]
    weighted_sum(rows, factors, gradient)
    subtract(gradient, dot(gradient, v), v)


@inner
def quasi_newton(v, gradient, pairs, n_pairs, scratch, tangent):
    """Fill the step in the tangent plane of v that the pairs (step, change of the gradient) propose.

    Returns its slope and its length.
    """
    factor = -1.0 if n_pairs else -FIRST_ANGLE / math.sqrt(dot(gradient, gradient))
    for j in range(len(v)):
        tangent[j] = factor * gradient[j]
    if n_pairs:
        two_loop(pairs[0], pairs[1], n_pairs, scratch, tangent)
    subtract(tangent, dot(tangent, v), v)
    return dot(tangent, gradient), math.sqrt(dot(tangent, tangent))


@inner
def remember(pairs, n_pairs, step, change):
    """Keep a pair if it satisfies the curvature condition, instead of the oldest if there are too many."""
    lengths = math.sqrt(dot(step, step)) * math.sqrt(dot(change, change))
    if not dot(step, change) > 1e-10 * lengths:
        return n_pairs
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


@inner
def follow(v, tangent, angle, length, spacing, trial):
    """Fill the lattice point next to that on the great circle from v along `length` times the tangent.

    The tangent has the length `angle`; see `sphere.snapped`. Returns whether the point is another one than v.
    """
    turn = length * angle
    along, square, moved = math.sin(turn) / turn * length, 0.0, False
    for j in range(len(v)):
        trial[j] = math.cos(turn) * v[j] + along * tangent[j]
    norm = math.sqrt(dot(trial, trial))
    for j in range(len(v)):
        trial[j] = round(trial[j] / norm / spacing)
        square += trial[j] * trial[j]
    norm = math.sqrt(square)
    for j in range(len(v)):
        trial[j] /= norm
        moved = moved or trial[j] != v[j]
    return moved


@by_address
def descend(index, rows, options, parameters, state, figures, pairs, bins, places):
    """Minimize an index from v, in place: v and its gradient, and the figures there; see `sphere.descend`.

    The course, the first of the `places`, has the number of points and the deviation of the profile of v, the
    number of pairs, and whether the bins have that profile, as they do at the end; then also the number of
    steps, and why it ended. For the other arguments see `Runs`.
    """
    v, gradient, trial = state[V], state[GRADIENT], state[TRIAL]
    tangent, before = state[TANGENT], state[BEFORE]
    found, value, course, scratch = figures[HERE], figures[THERE], places[COURSE], places[SCRATCH]
    d, profile = len(v), (np.int64(course[0]), course[1])
    n_pairs: Any = np.int64(course[2])
    if course[3] == 0.0:
        profile = fill_bins(rows, options, v, bins)
    evaluate(index, bins.sums, profile, options.total, parameters, False, found)
    there, spent, n_steps, fresh, gain = profile, 0, 0, True, np.inf
    while True:
        fill_gradient(rows, options, v, bins, profile, found[2], gradient)
        if n_steps:
            for j in range(d):
                before[j] = gradient[j] - before[j]
            n_pairs = remember(pairs, n_pairs, tangent, before)
        if gain < options.progress:
            status = 1
            break
        if math.sqrt(dot(gradient, gradient)) <= options.tol:
            status = 0
            break
        moved, still, length = False, False, 0.0
        for _ in range(2):  # the second time as steepest descent
            slope, angle = quasi_newton(v, gradient, pairs, n_pairs, scratch, tangent)
            length = LARGEST_ANGLE / angle if angle > LARGEST_ANGLE else 1.0
            left = options.max_iter - spent
            tries = 0 if not slope < 0.0 else left if left < BACKTRACKS else BACKTRACKS
            while tries > 0 and not moved:
                still = not follow(v, tangent, angle, length, options.spacing, trial)
                if still:  # the step is shorter than the spacing of the lattice
                    break
                there = fill_bins(rows, options, trial, bins)
                evaluate(index, bins.sums, there, options.total, parameters, False, value)
                spent, tries, fresh = spent + 1, tries - 1, False
                moved = value[0] <= found[0] + SUFFICIENT * length * slope
                if not moved:
                    rise = value[0] - found[0] - length * slope
                    shorter = -slope * length * length / (2.0 * rise) if np.isfinite(rise) else 0.0
                    shortest, longest = 0.1 * length, 0.5 * length
                    length = shortest if shorter < shortest else longest if shorter > longest else shorter
            if moved or still or n_pairs == 0 or spent >= options.max_iter:
                break
            n_pairs = 0
        if not moved:
            status = 3 if spent >= options.max_iter else 2
            break
        for j in range(d):
            tangent[j] = trial[j] - v[j]
            before[j] = gradient[j]
            v[j] = trial[j]
        gain = found[0] - value[0]
        for k in range(4):
            found[k] = value[k]
        profile, fresh, n_steps = there, True, n_steps + 1
    if not fresh:
        fill_bins(rows, options, v, bins)
    if np.isnan(found[3]):
        evaluate(index, bins.sums, profile, options.total, parameters, True, found)
    course[0], course[1], course[2], course[3] = profile[0], profile[1], n_pairs, 1.0
    course[4], course[5] = n_steps, status


def _call_descend(typing, address, index, rows, options, parameters, state, figures, pairs, bins, places):
    """Call `descend` by its address: what is around it is then compiled without it."""
    given = index, rows, options, parameters, state, figures, pairs, bins, places
    return types.void(int64, *given), call_address


call_descend: Any = intrinsic(_call_descend)


@inner
def smaller_side(sums, m, total, threshold):
    """Return the mass on the lighter side of a threshold."""
    left, centers, masses = 0.0, sums[CENTERS], sums[MASSES]
    for k in range(m):
        if centers[k] <= threshold:
            left += masses[k]
    return left if left < total - left else total - left


class Runs(NamedTuple):
    """Several runs, one row each: what they have found, and how far they are.

    `full` and `profiles` are the profile of the end that is kept, `pairs` are steps and changes of the
    gradient. The others have places for a descent, too.
    """

    states: FloatArray  # directions and gradients, see V ... BEFORE
    figures: FloatArray  # value, threshold, derivative by the deviation, validity, and the deviation
    pairs: FloatArray
    counts: IntArray  # see N_PAIRS ... N_POINTS
    full: IntArray
    profiles: FloatArray  # points and masses
    places: FloatArray  # see `descend`


# rows of `Runs.states`: the direction and its gradient, the same two of the end that is kept, and of a
# descent the trial direction, the step, and the gradient before it
V, GRADIENT, END, END_GRADIENT, TRIAL, TANGENT, BEFORE = range(7)
# rows of `Runs.figures`: of the end that is kept, of the direction, and of the trial direction
KEPT, HERE, THERE = range(3)
COURSE, SCRATCH = range(2)  # rows of `Runs.places`
# columns of `Runs.counts`: pairs, stage, steps and status of the end that is kept, all steps, the stage that
# comes next, points of the profile
N_PAIRS, STAGE, STEPS, STATUS, ALL_STEPS, NEXT, N_POINTS = range(7)


def runs_from(starts: FloatArray, pairs: FloatArray, n_pairs: IntArray, n_bins: int) -> Runs:
    """Return runs that are to begin at some starts."""
    k, d = starts.shape
    states, counts = np.empty((k, 7, d)), np.zeros((k, 7), dtype=np.int64)
    states[:, V], counts[:, N_PAIRS], counts[:, STAGE] = starts, n_pairs, -1
    full, profiles = np.empty((k, n_bins), dtype=np.int64), np.empty((k, 2, n_bins))
    places = np.zeros((k, 2, max(6, 2 * pairs.shape[2])))
    return Runs(states, np.empty((k, 3, 5)), pairs, counts, full, profiles, places)


@inner
def follow_stages(index, descent, rows, options, stages, stop, runs, i, bins):
    """Minimize an index at the parameters of the next stages of run i before `stop`, see `pursuit.pursue`."""
    state, figures, counts, places = runs.states[i], runs.figures[i], runs.counts[i], runs.places[i]
    here, course, last = figures[HERE], places[COURSE], len(stages) - 1
    course[3] = 0.0  # the bins are those of another run
    while counts[NEXT] < stop:
        stage = counts[NEXT]
        course[2] = counts[N_PAIRS]
        call_descend(
            descent, index, rows, options, stages[stage], state, figures, runs.pairs[i], bins, places
        )
        m = np.int64(course[0])
        counts[N_PAIRS] = np.int64(course[2])
        counts[ALL_STEPS] += np.int64(course[4])
        counts[NEXT] = stage + 1
        if here[3] > 0.0 or counts[STAGE] < 0 or not figures[KEPT, 3] > 0.0:
            counts[STAGE], counts[STEPS], counts[STATUS] = stage, counts[ALL_STEPS], np.int64(course[5])
            counts[N_POINTS] = m
            keep(state, figures, runs.full[i], runs.profiles[i], bins.full, bins.sums, m, course[1])
        if smaller_side(bins.sums, m, options.total, here[1]) >= options.enough:
            counts[NEXT] = last + 1
        elif options.nested and stage < last - 1:
            value = here[0]
            evaluate(index, bins.sums, (m, course[1]), options.total, stages[last], False, here)
            if value - here[0] <= SAME_VALUE:
                counts[NEXT] = last


@inner
def keep(state, figures, full, profile, bins_full, sums, m, std):
    """Keep the end of a run: its direction, gradient, figures and profile."""
    for k in range(4):
        figures[KEPT, k] = figures[HERE, k]
    figures[KEPT, 4] = std
    for j in range(state.shape[1]):
        state[END, j], state[END_GRADIENT, j] = state[V, j], state[GRADIENT, j]
    for k in range(m):
        full[k], profile[0, k], profile[1, k] = bins_full[k], sums[CENTERS, k], sums[MASSES, k]


@inner
def leads(states, figures, options, i, j):
    """Return whether run j is so far ahead of run i after the first stage, or so near, that i may end."""
    own, other = figures[i, KEPT], figures[j, KEPT]
    ahead = own[0] - other[0]
    if not ahead >= 0.0 or (ahead == 0.0 and i <= j):  # also if both values are infinite
        return False
    cosine = dot(states[i, END], states[j, END])
    apart = abs(own[1] - math.copysign(other[1], cosine * other[1]))
    clearly = ahead > options.behind and abs(other[0]) <= ORDINARY
    return clearly or (abs(cosine) > options.same and apart < options.apart)


def address_of_descent(
    index: int, rows: Rows, options: Options, stages: FloatArray, runs: Runs, bins: Bins
) -> int:
    """Return the address of `descend` for arguments of these types.

    numba's look at the types takes longer than a small pursuit, so addresses are kept by what may differ.
    """
    kinds = (*map(type, options), *((array.dtype, array.flags.num) for array in rows))
    if kinds not in _descents:
        run = stages[0], runs.states[0], runs.figures[0], runs.pairs[0]
        _descents[kinds] = address_for(descend, index, rows, options, *run, bins, runs.places[0])
    return _descents[kinds]


_descents: dict[tuple[Any, ...], int] = {}


@jit
def pursue(index, descent, rows, options, stages, runs, bins, first, last, begins, ends):
    """Minimize an index at the parameters of all stages in order, from the starts from `first` to `last`.

    After the first stage, runs that are clearly behind another one, or at the same hyperplane, end there.
    Threads share the runs in three calls: one that only `begins` and does the first stage, one that does
    neither and compares all runs, and one that only `ends` and does the other stages.
    """
    n_runs, n_stages = len(runs.states), len(stages)
    for part in range(2):
        stop = n_stages if part else 1
        for i in range(first, last if (ends if part else begins) else first):
            if runs.counts[i, NEXT] < stop:
                follow_stages(index, descent, rows, options, stages, stop, runs, i, bins)
        if part == 0 and begins == ends:
            for i in range(n_runs):
                for j in range(n_runs):
                    if leads(runs.states, runs.figures, options, i, j):
                        runs.counts[i, NEXT] = n_stages
