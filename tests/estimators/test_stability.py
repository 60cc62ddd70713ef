"""Stability: how well clusters are found again."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.metrics import adjusted_rand_score

from ravine import MaximinSeparation, MinimumDensity, SpectralConnectivity
from ravine.estimators.stability import Stability, count_splits, measure_stability
from ravine.metrics import adjusted_rand_index

CENTERS = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [9.0, 9.0, 9.0]])


def blobs(n=400, seed=0):
    return make_blobs(n, centers=CENTERS, random_state=seed)


def test_the_adjusted_rand_index_is_that_of_scikit_learn_and_weights_are_copies():
    rng = np.random.default_rng(0)
    for a, b in itertools.product((1, 2, 5), repeat=2):
        one, two, weights = rng.integers(a, size=60), rng.integers(b, size=60), rng.integers(1, 4, 60)
        assert adjusted_rand_index(one, two) == pytest.approx(adjusted_rand_score(one, two))
        copies = adjusted_rand_score(np.repeat(one, weights), np.repeat(two, weights))
        assert adjusted_rand_index(one, two, sample_weight=weights) == pytest.approx(copies)


@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity, MaximinSeparation])
def test_clean_clusters_are_found_again_and_others_less(make):
    found = measure_stability(make(), blobs()[0], None)
    assert found.by_number[4] > 0.95
    assert found.n_clusters == 4
    assert all(value < 0.95 for k, value in found.by_number.items() if k > 4)


@pytest.mark.parametrize("kernel", [None, "diffusion"])
def test_cuts_of_a_uniform_square_are_not_stable(kernel):
    X = np.random.default_rng(0).random((1000, 2))
    found = measure_stability(MinimumDensity(kernel=kernel), X, None)
    assert found.best < 0.7
    assert found.n_clusters == 1


def test_the_number_is_the_largest_near_the_best():
    assert Stability({2: 0.90, 3: 0.93, 4: 0.89, 5: 0.6}, 0.0).n_clusters == 4
    assert Stability({2: 0.90, 3: 0.93, 4: 0.87}, 0.0).n_clusters == 3
    assert Stability({2: 0.9}, 0.85).n_clusters == 1
    assert Stability({2: 0.5}, 0.0).n_clusters == 1
    assert Stability({2: 0.6}, 0.0).n_clusters == 2
    assert Stability({2: 1.0}, 1.0).n_clusters == 1
    assert Stability({}, 0.0).n_clusters == 1


def test_the_same_rows_and_seed_give_the_same_stability():
    X = blobs()[0]
    assert measure_stability(MinimumDensity(), X, None) == measure_stability(MinimumDensity(), X, None)
    other = measure_stability(MinimumDensity(random_state=1), X, None)
    assert other != measure_stability(MinimumDensity(), X, None)
    assert other.n_clusters == 4


def test_a_split_in_doubt_is_made_if_it_is_found_again():
    model = MinimumDensity().fit(load_breast_cancer().data)
    assert model.n_clusters_ == 2
    assert model.stability_ is not None
    assert (
        0.01
        < MinimumDensity(level=0.001).fit(load_breast_cancer().data).tree_.refused[0].evidence.p_value
        < 0.1
    )


def test_in_a_feature_space_the_number_is_the_one_that_is_found_again():
    model = MinimumDensity(kernel="rbf").fit(blobs()[0])
    assert model.n_clusters_ == 4 == model.stability_.n_clusters
    K = np.exp(-((blobs(200)[0][:, None] - blobs(200)[0][None]) ** 2).sum(axis=2) / 20.0)
    assert MinimumDensity(kernel="precomputed").fit(K).n_clusters_ == 4


def test_splits_are_counted_up_to_the_first_one_of_a_discrete_column():
    rng = np.random.default_rng(0)
    X, _ = make_blobs(400, centers=[[0.0, 0.0], [9.0, 0.0]], random_state=0)
    X = np.column_stack([X, rng.random(400) < 0.4])
    model = MinimumDensity(2, kernel="diffusion").fit(X[:, :2])
    assert count_splits(model, X[:, :2], np.ones(400)) == 1
    model = MinimumDensity(4, kernel="diffusion").fit(X)
    assert count_splits(model, X, np.ones(400)) < 3
