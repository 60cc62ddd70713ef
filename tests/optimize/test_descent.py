from itertools import pairwise

import numpy as np
import pytest

from ravine.optimize.descent import (
    CONVERGED,
    CONVERGED_OBJECTIVE,
    ITERATION_LIMIT,
    Descent,
    snap,
    spacing_for,
)

LARGEST_ANGLE = 0.6  # radians: no step is longer


def drive(evaluate, start, curvature=None, **limits):
    """Drive a descent to its end; return it, and the directions that it asked for."""
    descent = Descent(start / np.linalg.norm(start), curvature, **limits)
    asked = []
    while descent.running:
        asked.append(descent.direction)
        descent.tell(*evaluate(asked[-1]))
    return descent, asked


def rayleigh(matrix):
    def evaluate(v):
        g = 2 * matrix @ v
        return float(v @ matrix @ v), g - (g @ v) * v

    return evaluate


@pytest.mark.parametrize("d", [2, 10, 60])
def test_the_least_rayleigh_quotient_is_the_least_eigenvalue(d):
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d))
    matrix = root @ root.T / d
    end, _ = drive(rayleigh(matrix), rng.standard_normal(d), tol=1e-7, progress=0, max_iter=2000)
    assert end.status == CONVERGED
    assert end.value == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=1e-6, abs=1e-9)
    assert end.value == pytest.approx(rayleigh(matrix)(end.direction)[0], abs=1e-12)
    np.testing.assert_allclose(end.end_gradient, rayleigh(matrix)(end.direction)[1], atol=1e-12)


def test_it_needs_far_fewer_evaluations_than_steepest_descent():
    matrix, start = np.diag(np.linspace(1, 100, 30)), np.ones(30)
    _, asked = drive(rayleigh(matrix), start, tol=1e-4, progress=0, max_iter=3000)
    evaluate, v, n = rayleigh(matrix), start / np.linalg.norm(start), 0
    while np.linalg.norm(evaluate(v)[1]) > 1e-4:
        v, n = v - 0.005 * evaluate(v)[1], n + 1
        v /= np.linalg.norm(v)
    assert len(asked) * 3 < n


def test_the_steps_are_those_of_the_two_loop_recursion_in_numpy():
    """The second proposal, after one pair, against the formula of the limited-memory update."""
    matrix = np.diag([1.0, 2.0, 4.0, 9.0])
    evaluate, start = rayleigh(matrix), np.array([1.0, 0.3, 0.2, 0.1])
    descent, asked = drive(evaluate, start, tol=1e-9, progress=0, max_iter=2)
    (s,), (y,) = (some[:1] for some in descent.curvature)
    g = evaluate(asked[1])[1]
    rho = 1.0 / (s @ y)
    q = g - rho * (s @ g) * y
    r = q * (s @ y) / (y @ y)
    step = -(r + s * rho * (s @ g) - s * rho * (y @ r))
    step -= (step @ asked[1]) * asked[1]
    angle = min(np.linalg.norm(step), LARGEST_ANGLE)
    expected = np.cos(angle) * asked[1] + np.sin(angle) * step / np.linalg.norm(step)
    np.testing.assert_allclose(asked[2], expected, atol=1e-8)


def test_max_iter_limits_the_evaluations():
    matrix = np.diag(np.arange(1.0, 21.0))
    end, asked = drive(rayleigh(matrix), np.ones(20), tol=1e-12, progress=0, max_iter=4)
    assert len(asked) == 1 + 4
    assert end.status == ITERATION_LIMIT


def test_at_a_kink_it_stops_and_says_so():
    def evaluate(v):
        g = np.array([0.0, np.sign(v[1] - 0.1234567)])
        return abs(v[1] - 0.1234567), g - (g @ v) * v

    end, _ = drive(evaluate, np.array([1.0, 0.3]), tol=1e-9, progress=0, max_iter=500)
    assert end.status == "converged (no step lowers the value)"
    assert end.value < 1e-3


def test_no_progress_ends_it():
    end, _ = drive(rayleigh(np.diag([1.0, 1.0 + 1e-9])), np.ones(2), tol=0, progress=1e-3, max_iter=50)
    assert end.status == CONVERGED_OBJECTIVE


def test_a_trial_that_is_higher_is_refused_and_the_step_shortened():
    evaluate = rayleigh(np.diag([1.0, 2.0, 4.0]))
    descent = Descent(np.ones(3) / np.sqrt(3), tol=0, progress=0, max_iter=50)
    value, gradient = evaluate(descent.direction)
    assert descent.tell(value, gradient)
    first, far = np.ones(3) / np.sqrt(3), descent.direction
    assert not descent.tell(value + 1.0, gradient)
    assert descent.value == value
    assert np.linalg.norm(descent.direction - first) < 0.6 * np.linalg.norm(far - first)
    assert not len(descent.curvature[0])


def test_the_curvature_is_learned_from_the_step_that_was_taken_and_passed_on():
    evaluate = rayleigh(np.diag([1.0, 2.0, 4.0]))
    start = np.ones(3) / np.sqrt(3)
    end, asked = drive(evaluate, start, tol=0, progress=np.inf, max_iter=50)
    assert end.n_iter == 1
    steps, changes = end.curvature
    np.testing.assert_array_equal(steps[0], end.direction - asked[0])
    np.testing.assert_allclose(changes[0], end.end_gradient - evaluate(asked[0])[1], atol=1e-12)
    again, _ = drive(evaluate, end.direction, end.curvature, tol=1e-9, progress=np.inf, max_iter=50)
    assert len(again.curvature[0]) == 2
    np.testing.assert_array_equal(again.curvature[0][0], steps[0])


def test_at_most_twelve_pairs_are_kept_the_last_ones():
    matrix = np.diag(np.linspace(1, 1000, 40))
    end, asked = drive(rayleigh(matrix), np.ones(40), tol=1e-9, progress=0, max_iter=60)
    steps, _ = end.curvature
    assert len(steps) == 12
    assert min(np.linalg.norm(steps[-1] - (end.direction - v)) for v in asked) < 1e-15


def test_noise_does_not_grow_along_a_descent():
    """A valley that bends: without the lattice, the two ends differ a thousand times as much as the noise."""

    def valley(noise):
        def evaluate(v):
            bend = v[1] - v[0] ** 3 * np.sin(9 * v[0])
            d_bend = -3 * v[0] ** 2 * np.sin(9 * v[0]) - 9 * v[0] ** 3 * np.cos(9 * v[0])
            value = 300 * bend**2 + (v[0] - 0.9) ** 2
            g = np.array([600 * bend * d_bend + 2 * (v[0] - 0.9), 600 * bend, 0.0]) + noise
            return value, g - (g @ v) * v

        return evaluate

    start = np.array([-0.9, 0.3, 0.3])
    ends = [drive(valley(noise), start, tol=1e-3, progress=0.0, max_iter=300)[0] for noise in (0.0, 1e-12)]
    assert ends[0].n_iter > 10
    np.testing.assert_array_equal(ends[0].direction, ends[1].direction)


@pytest.mark.parametrize(("tol", "n_features"), [(0.02, 3), (0.02, 10_000), (1e-6, 50), (0.0, 4)])
def test_the_lattice_is_finer_than_the_tolerance(tol, n_features):
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(n_features)
    direction /= np.linalg.norm(direction)
    spacing = spacing_for(tol, n_features)
    assert np.log2(spacing) == round(np.log2(spacing))
    found = snap(direction, spacing)
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.norm(found - direction) <= max(tol / 64, 1e-11)
    np.testing.assert_array_equal(snap(-direction, spacing), -found)
    np.testing.assert_array_equal(snap(direction[::-1], spacing), found[::-1])


def test_no_step_is_longer_than_the_largest_angle():
    evaluate = rayleigh(np.diag([1.0, 1.0001, 30.0]))
    _, asked = drive(evaluate, np.array([0.01, 1.0, 0.02]), tol=1e-8, progress=0, max_iter=100)
    angles = [np.arccos(np.clip(a @ b, -1, 1)) for a, b in pairwise(asked)]
    assert max(angles) <= LARGEST_ANGLE + 1e-6
