"""The path form against the dense eigenproblem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from ravine.index import connectivity_loops as loops
from ravine.index.connectivity_loops import contract_outliers
from tests.index.test_every_index import make_profile


def dense(points, mass, s):
    """The second eigenvalue of the normalized Laplacian over points, each counted as often as its mass."""
    K = np.exp(-np.abs(points[:, None] - points[None, :]) / s)
    root = np.sqrt(mass)
    A = root[:, None] * K * root[None, :]
    degree = K @ mass
    similar = A / np.sqrt(degree[:, None] * degree[None, :])
    return eigh(np.eye(len(points)) - similar, eigvals_only=True)[1]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.2, 2.0), st.floats(0.0, 2.0))
def test_lambda_is_that_of_the_dense_eigenproblem(seed, s, offset):
    profile = make_profile(seed, n=40, offset=offset)
    log_theta, mode = loops.connectivity(profile.points, profile.mass, s, np.empty(40))
    theta = np.exp(log_theta)
    found = theta / (1 + theta)
    expected = dense(profile.points, profile.mass, s)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert (np.diff(mode) >= 0).all()


def test_a_mass_of_two_is_two_points_in_the_dense_problem_too():
    profile = make_profile(3, n=30)
    counts = np.random.default_rng(0).integers(1, 4, 30)
    repeated = np.repeat(profile.points, counts)
    log_theta, _ = loops.connectivity(profile.points, counts.astype(float), 0.7, np.empty(30))
    theta = np.exp(log_theta)
    assert theta / (1 + theta) == pytest.approx(dense(repeated, np.ones(len(repeated)), 0.7), rel=1e-7)


def test_tiny_eigenvalues_keep_their_digits():
    apart = np.concatenate([np.linspace(0, 1, 20), np.linspace(251, 252, 20)])
    log_theta, _ = loops.connectivity(apart, np.ones(40), 1.0, np.empty(40))
    # two dense groups: theta is the conductance of the gap over the harmonic masses of the sides
    assert -252 < log_theta < -240
    closer = np.concatenate([np.linspace(0, 1, 20), np.linspace(241, 242, 20)])
    other, _ = loops.connectivity(closer, np.ones(40), 1.0, np.empty(40))
    assert other - log_theta == pytest.approx(10.0, rel=1e-9)


def test_points_very_close_together_do_no_harm():
    points = np.sort(np.concatenate([np.linspace(-2, 2, 20), np.linspace(-2, 2, 20) + 1e-9]))
    log_theta, _ = loops.connectivity(points, np.ones(40), 0.5, np.empty(40))
    theta = np.exp(log_theta)
    assert theta / (1 + theta) == pytest.approx(dense(points, np.ones(40), 0.5), rel=1e-6)


def test_the_contraction_is_continuous_and_moves_outliers_in():
    points = np.concatenate([np.linspace(-1, 1, 200), [30.0]])
    moved, steep = (found[:, 0] for found in contract_outliers(points[:, None], np.array([0.8]), 0.3))
    inside = np.abs(points) <= 0.8
    np.testing.assert_array_equal(moved[inside], points[inside])
    assert np.abs(moved[~inside][:-1]).max() < 0.8 + 0.2 * 0.2
    assert 0.8 < moved[-1] < 0.8 + 0.1 * (30.0 - 0.8)
    assert steep[-1] < 0.02
    wider, _ = contract_outliers(points[-1:, None], np.array([0.8 + 1e-6]), 0.3)
    assert (wider[0, 0] - moved[-1]) / 1e-6 == pytest.approx(1 - steep[-1], rel=1e-4)  # by the edge
