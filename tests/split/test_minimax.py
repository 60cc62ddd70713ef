import numpy as np
import pytest
from scipy.optimize import minimize

from ravine.optimize.minimax import minimax
from tests.oracles import central_difference


def moments(seed, d):
    rng = np.random.default_rng(seed)
    A, B = (m @ m.T / (2 * d) for m in rng.standard_normal((2, d, 2 * d)))
    return A, B * rng.uniform(0.1, 10), rng.standard_normal(d)


def kappa(w, A, B, apart):
    return w @ apart / (np.sqrt(w @ A @ w) + np.sqrt(w @ B @ w))


@pytest.mark.parametrize("seed", range(8))
def test_no_optimizer_finds_a_higher_kappa(seed):
    A, B, apart = moments(seed, 6)
    found = minimax(A, B, apart)
    assert found.kappa == pytest.approx(kappa(found.direction, A, B, apart))
    slope = central_difference(lambda w: kappa(w, A, B, apart), found.direction, 1e-6)
    assert np.linalg.norm(slope) * np.linalg.norm(found.direction) < 1e-4 * found.kappa
    starts = np.random.default_rng(0).standard_normal((5, 6))
    best = max(-minimize(lambda w: -kappa(w, A, B, apart), start).fun for start in starts)
    assert found.kappa >= best - 1e-7
    assert minimax(A, B, apart, 0.01).kappa == pytest.approx(found.kappa, rel=1e-9)


def test_the_threshold_is_as_sure_on_both_sides():
    A, B, apart = moments(3, 4)
    found = minimax(A, B, apart)
    w = found.direction
    left, right = np.sqrt(w @ A @ w), np.sqrt(w @ B @ w)
    assert found.reach / right == pytest.approx(found.kappa)
    assert (w @ apart - found.reach) / left == pytest.approx(found.kappa)


def test_means_apart_where_nothing_varies_are_told_apart_for_sure():
    flat = np.diag([1.0, 1.0, 0.0])
    sure = minimax(flat, flat, np.array([0.1, 0.0, 0.5]))
    assert sure.probability == 1.0
    assert sure.direction @ [0.1, 0.0, 0.5] == pytest.approx(2 * sure.reach)
    unsure = minimax(flat, flat, np.array([2.0, 0.0, 0.0]))
    assert unsure.kappa == pytest.approx(1.0)
    assert minimax(np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2)).probability == 1.0


def test_equal_means_are_not_told_apart():
    A, B, _ = moments(0, 3)
    assert minimax(A, B, np.zeros(3)).probability == 0.0
