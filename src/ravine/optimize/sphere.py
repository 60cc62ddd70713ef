"""A limited-memory quasi-Newton method on the unit sphere, as a query that asks for its evaluations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ravine._validate import FloatArray

MEMORY = 12  # pairs (step, change of the gradient) of the limited-memory update; a choice
FIRST_ANGLE = 0.15  # radians of the first step, before any curvature is known; a choice
LARGEST_ANGLE = 0.6  # radians of the longest step: the quadratic model is local; a choice
SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to reach: Armijo's rule, its usual value
SAME_VALUE = 1e-9  # minima of two intervals of thresholds that differ by less are the same
FINENESS = (
    64.0  # directions of a descent lie on a lattice of spacing tol / FINENESS / sqrt(d); docs/defaults.md
)
LEAST_SPACING = 2.0**-40  # of that lattice, for a tol near 0: 4 digits above rounding
BACKTRACKS = 6  # most steps of one line search, each at the cost of an evaluation; a choice

CONVERGED = "converged (gradient)"
CONVERGED_OBJECTIVE = "converged (objective)"
NO_LOWER = "converged (no step lowers the value)"
ITERATION_LIMIT = "iteration limit"


class Evaluation(Protocol):
    """A point on the sphere with the value there and the gradient in the tangent plane."""

    @property
    def direction(self) -> FloatArray:
        """The unit vector."""

    @property
    def value(self) -> float:
        """The value to be minimized."""

    @property
    def gradient(self) -> FloatArray:
        """The gradient, orthogonal to the direction."""


Point = TypeVar("Point", bound=Evaluation)


@dataclass
class Curvature:
    """The last steps and the changes of the gradient along them: a model of the inverse Hessian.

    The pairs are not transported between tangent planes: steps are short, and `_step` projects the result.
    """

    steps: list[FloatArray] = field(default_factory=list)
    changes: list[FloatArray] = field(default_factory=list)

    def update(self, step: FloatArray, change: FloatArray) -> None:
        """Keep a pair if it satisfies the curvature condition step . change > 0."""
        if step @ change > 1e-10 * _norm(step) * _norm(change):
            self.steps.append(step)
            self.changes.append(change)
            del self.steps[:-MEMORY], self.changes[:-MEMORY]

    def reset(self) -> None:
        """Start again from steepest descent."""
        self.steps.clear()
        self.changes.clear()

    def apply(self, gradient: FloatArray) -> FloatArray:
        """Return the inverse Hessian times the gradient, by the two-loop recursion."""
        if not self.steps:
            return gradient * (FIRST_ANGLE / _norm(gradient))
        from ravine.optimize import sphere_kernels

        moved = gradient.copy()
        sphere_kernels.multiply_by_inverse(np.array(self.steps), np.array(self.changes), moved)
        return moved


@dataclass(frozen=True)
class Descent(Generic[Point]):
    """Where a descent ended, after how many steps, and why."""

    point: Point
    n_iter: int
    status: str


def _norm(vector: FloatArray) -> float:
    return math.sqrt(vector @ vector)


def spacing_for(tol: float, n_features: int) -> float:
    """Return the spacing of the lattice of directions, a power of two: at most tol / FINENESS / sqrt(d)."""
    wanted = tol / FINENESS / math.sqrt(n_features)
    return max(2.0 ** math.floor(math.log2(wanted)), LEAST_SPACING) if wanted > 0.0 else LEAST_SPACING


def snapped(direction: FloatArray, spacing: float) -> FloatArray:
    """Return the unit vector of the lattice point next to a direction.

    A descent of fifty steps multiplies differences of rounding (another processor, noise of 1e-12 in the
    rows) by 1.5 in every step, until they are as large as the step. Between lattice points they vanish.

    >>> a, b = snapped(np.array([0.6, 0.8]), 1e-4), snapped(np.array([0.6 + 1e-9, 0.8]), 1e-4)
    >>> bool((a == b).all())
    True
    """
    coordinates = np.rint(direction / spacing)
    return np.asarray(coordinates / _norm(coordinates))


def exp_map(direction: FloatArray, tangent: FloatArray) -> FloatArray:
    """Follow the great circle from `direction` along `tangent` by the angle |tangent|."""
    angle = _norm(tangent)
    if angle == 0.0:
        return direction
    moved = math.cos(angle) * direction + (math.sin(angle) / angle) * tangent
    return np.asarray(moved / _norm(moved))


def descend(
    start: Point,
    evaluate: Callable[[FloatArray], Generator[Any, Any, Point]],
    curvature: Curvature,
    *,
    tol: float,
    progress: float,
    max_iter: int,
) -> Generator[Any, Any, Descent[Point]]:
    """Minimize until the norm of the gradient is at most `tol` or a step gains less than `progress`.

    All directions on the way lie on a lattice, see `snapped`.

    If no step of a line search decreases the value enough, as at a kink, one steepest descent step is tried,
    and if that fails, too, the descent ends. `max_iter` limits the evaluations, each of which costs a pass
    over the rows.
    """
    point = start
    spent, spacing = 0, spacing_for(tol, len(start.direction))
    for n_iter in itertools.count():
        if _norm(point.gradient) <= tol:
            return Descent(point, n_iter, CONVERGED)
        moved, cost = yield from _step(point, evaluate, curvature, max_iter - spent, spacing)
        spent += cost
        if moved is None and curvature.steps and spent < max_iter:
            curvature.reset()
            moved, cost = yield from _step(point, evaluate, curvature, max_iter - spent, spacing)
            spent += cost
        if moved is None or moved is point:
            return Descent(point, n_iter, ITERATION_LIMIT if spent >= max_iter else NO_LOWER)
        gain = point.value - moved.value
        point = moved
        if gain < progress:
            return Descent(point, n_iter + 1, CONVERGED_OBJECTIVE)
    raise AssertionError("unreachable")


def _step(
    point: Point,
    evaluate: Callable[[FloatArray], Generator[Any, Any, Point]],
    curvature: Curvature,
    allowed: int,
    spacing: float,
) -> Generator[Any, Any, tuple[Point | None, int]]:
    """Search along the quasi-Newton direction with at most `allowed` evaluations.

    Returns the new point, or None if no step decreases the value enough, and the number of evaluations. The
    point itself is returned if the step is shorter than the spacing of the lattice.
    """
    v, g = point.direction, point.gradient
    tangent = -curvature.apply(g)
    tangent -= (tangent @ v) * v
    slope = float(tangent @ g)
    if not slope < 0.0:
        return None, 0
    angle = _norm(tangent)
    length = min(1.0, LARGEST_ANGLE / angle)
    tries = min(BACKTRACKS, allowed)
    for n_tried in range(tries):
        there = snapped(exp_map(v, length * tangent), spacing)
        if (there == v).all():
            return point, n_tried
        trial = yield from evaluate(there)
        if trial.value <= point.value + SUFFICIENT * length * slope:
            curvature.update(there - v, trial.gradient - g)
            return trial, n_tried + 1
        # the minimum of the parabola through the value and the slope here and the value at the trial point
        rise = trial.value - point.value - length * slope
        shorter = -slope * length * length / (2.0 * rise) if np.isfinite(rise) else 0.0
        length = min(max(shorter, 0.1 * length), 0.5 * length)
    return None, tries
