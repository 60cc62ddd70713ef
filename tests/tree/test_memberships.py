"""Memberships follow from the densities of the two sides next to each boundary."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from ravine import MaximinSeparation, MinimumDensity, SpectralConnectivity
from ravine.index.base import Profile
from ravine.index.density import log_odds_slope


def profile_of_two(apart, deviation=1.0):
    """The exact profile of two equal Gaussians, so many deviations apart."""
    points = np.linspace(-8.0, 8.0, 3201)
    mass = sum(np.exp(-0.5 * ((points - side * apart / 2) / deviation) ** 2) for side in (-1, 1))
    total = mass.sum()
    return Profile(points, mass, float(total), float(np.sqrt(mass @ points**2 / total)))


@pytest.mark.parametrize("apart", [2.2, 3.0, 4.0, 7.0])
@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_log_odds_of_two_gaussians_have_their_slope(apart, deviation):
    found = log_odds_slope(profile_of_two(apart * deviation, deviation), 0.0, 0.02 * deviation)
    assert found == pytest.approx(apart / deviation, rel=0.1)


def test_a_density_without_a_valley_has_even_odds():
    assert log_odds_slope(profile_of_two(1.0), 0.0, 0.05) == 0.0


@pytest.mark.parametrize("n_clusters", [2, 5, 10, 20, 30])
def test_memberships_in_clean_clusters_are_near_one(n_clusters):
    X, _ = make_blobs(100 * n_clusters, 10, centers=n_clusters, center_box=(-20, 20), random_state=n_clusters)
    model = MinimumDensity(n_clusters).fit(X)
    share = model.predict_proba(X)
    assert np.median(share.max(axis=1)) > 0.95
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    np.testing.assert_array_equal(share.argmax(axis=1), model.labels_)


@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity, MaximinSeparation])
def test_memberships_in_overlapping_gaussians_are_shares_of_right_rows(make):
    right = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 2000)
        X = rng.standard_normal((2000, 5))
        X[:, 0] += 3.0 * y
        model = make(2, standardize=False).fit(X)
        largest = model.predict_proba(X).max(axis=1)
        agrees = model.labels_ == y
        agrees = agrees if agrees.mean() > 0.5 else ~agrees
        right.append(agrees[(largest > 0.7) & (largest < 0.8)])
    assert 0.65 < np.concatenate(right).mean() < 0.85


def test_memberships_do_not_depend_on_the_unit():
    X, _ = make_blobs(300, 3, centers=3, cluster_std=2.0, random_state=0)
    one = MinimumDensity(3, standardize=False).fit(X)
    other = MinimumDensity(3, standardize=False).fit(1000.0 * X)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(1000.0 * X), rtol=1e-6, atol=1e-9)


def test_a_moved_threshold_has_memberships_of_its_own_place():
    X = np.concatenate([np.arange(20.0), np.arange(30.0, 50.0)])[:, None]
    tree = MinimumDensity(2, standardize=False).fit(X).tree_
    moved = tree.move(0, 3.0, X)
    assert moved.predict_proba(np.array([[27.0]])).argmax() == 0 == moved.predict(np.array([[27.0]]))[0]
