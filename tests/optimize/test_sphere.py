from dataclasses import dataclass

import numpy as np
import pytest

from ravine.optimize import sphere
from ravine.optimize.sphere import Curvature, descend, exp_map


@dataclass(frozen=True)
class At:
    direction: np.ndarray
    value: float
    gradient: np.ndarray


def run(generator):
    """Run a descent whose evaluations ask for nothing."""
    try:
        next(generator)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("nothing is asked for here")


def rayleigh(matrix):
    def evaluate(v):
        g = 2 * matrix @ v
        return At(v, float(v @ matrix @ v), g - (g @ v) * v)
        yield

    return evaluate


def start_at(evaluate, v):
    return run(evaluate(v / np.linalg.norm(v)))


@pytest.mark.parametrize("d", [2, 10, 60])
def test_the_least_rayleigh_quotient_is_the_least_eigenvalue(d):
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d))
    matrix = root @ root.T / d
    evaluate = rayleigh(matrix)
    end = run(
        descend(
            start_at(evaluate, rng.standard_normal(d)),
            evaluate,
            Curvature(),
            tol=1e-7,
            progress=0,
            max_iter=2000,
        )
    )
    assert end.status == sphere.CONVERGED
    assert end.point.value == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=1e-6, abs=1e-9)


def test_it_needs_far_fewer_evaluations_than_steepest_descent():
    matrix = np.diag(np.linspace(1, 100, 30))
    start = np.ones(30)

    def count(curvature):
        calls = 0
        plain = rayleigh(matrix)

        def counted(v):
            nonlocal calls
            calls += 1
            return (yield from plain(v))

        run(descend(start_at(plain, start), counted, curvature, tol=1e-4, progress=0, max_iter=3000))
        return calls

    class Forgetful(Curvature):
        def update(self, step, change):
            pass

        def apply(self, gradient):
            return gradient * 0.005

    assert count(Curvature()) * 3 < count(Forgetful())


def test_max_iter_limits_the_evaluations():
    calls = []
    plain = rayleigh(np.diag(np.arange(1.0, 21.0)))

    def counted(v):
        calls.append(v)
        return (yield from plain(v))

    end = run(descend(start_at(plain, np.ones(20)), counted, Curvature(), tol=1e-12, progress=0, max_iter=4))
    assert len(calls) == 4
    assert end.status == sphere.ITERATION_LIMIT


def test_at_a_kink_it_stops_and_says_so():
    def evaluate(v):
        g = np.array([0.0, np.sign(v[1] - 0.1234567)])
        return At(v, abs(v[1] - 0.1234567), g - (g @ v) * v)
        yield

    end = run(
        descend(
            start_at(evaluate, np.array([1.0, 0.3])),
            evaluate,
            Curvature(),
            tol=1e-9,
            progress=0,
            max_iter=500,
        )
    )
    assert end.status == sphere.NO_LOWER
    assert end.point.value < 1e-3


def test_no_progress_ends_it():
    evaluate = rayleigh(np.diag([1.0, 1.0 + 1e-9]))
    end = run(
        descend(start_at(evaluate, np.ones(2)), evaluate, Curvature(), tol=0, progress=1e-3, max_iter=50)
    )
    assert end.status == sphere.CONVERGED_OBJECTIVE


def test_the_curvature_is_learned_from_the_step_that_was_taken():
    class Bold(Curvature):
        """Proposes steps that are too long, and keeps every pair."""

        def apply(self, gradient):
            return gradient * (2.0 / np.linalg.norm(gradient))

        def update(self, step, change):
            self.steps.append(step)
            self.changes.append(change)

    evaluate, curvature = rayleigh(np.diag([1.0, 2.0, 4.0])), Bold()
    start = start_at(evaluate, np.ones(3))
    end = run(descend(start, evaluate, curvature, tol=0, progress=np.inf, max_iter=50))
    assert end.n_iter == 1
    assert np.linalg.norm(curvature.steps[0]) <= sphere.LARGEST_ANGLE + 1e-12
    np.testing.assert_array_equal(curvature.steps[0], end.point.direction - start.direction)
    np.testing.assert_allclose(curvature.changes[0], end.point.gradient - start.gradient, atol=1e-12)


def test_noise_does_not_grow_along_a_descent():
    """A valley that bends: without the lattice, the two ends differ a thousand times as much as the noise."""

    def valley(noise):
        def evaluate(v):
            bend = v[1] - v[0] ** 3 * np.sin(9 * v[0])
            d_bend = -3 * v[0] ** 2 * np.sin(9 * v[0]) - 9 * v[0] ** 3 * np.cos(9 * v[0])
            value = 300 * bend**2 + (v[0] - 0.9) ** 2
            g = np.array([600 * bend * d_bend + 2 * (v[0] - 0.9), 600 * bend, 0.0]) + noise
            return At(v, value, g - (g @ v) * v)
            yield

        return evaluate

    ends = []
    for noise in (0.0, 1e-12):
        evaluate = valley(noise)
        start = start_at(evaluate, np.array([-0.9, 0.3, 0.3]))
        ends.append(run(descend(start, evaluate, Curvature(), tol=1e-3, progress=0.0, max_iter=300)))
    assert ends[0].n_iter > 10
    np.testing.assert_array_equal(ends[0].point.direction, ends[1].point.direction)


@pytest.mark.parametrize(("tol", "n_features"), [(0.02, 3), (0.02, 10_000), (1e-6, 50), (0.0, 4)])
def test_the_lattice_is_finer_than_the_tolerance(tol, n_features):
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(n_features)
    direction /= np.linalg.norm(direction)
    spacing = sphere.spacing_for(tol, n_features)
    assert np.log2(spacing) == round(np.log2(spacing))
    found = sphere.snapped(direction, spacing)
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.norm(found - direction) <= max(tol / sphere.FINENESS, 1e-11)
    np.testing.assert_array_equal(sphere.snapped(-direction, spacing), -found)
    np.testing.assert_array_equal(sphere.snapped(direction[::-1], spacing), found[::-1])


def test_a_move_follows_the_great_circle():
    v, tangent = np.array([1.0, 0.0, 0.0]), np.array([0.0, np.pi / 2, 0.0])
    np.testing.assert_allclose(exp_map(v, tangent), [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(exp_map(v, 0 * tangent), v)
