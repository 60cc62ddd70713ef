"""The supervised boundary, and when a valley is preferred to it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from ravine import MinimumDensityClassifier
from ravine.data.node import Labels
from ravine.data.query import run
from ravine.split.boundary import Hyperplane
from ravine.split.labeled import SupervisedMethod, is_better, supervised_plane
from ravine.split.search import search
from tests.nodes import measured


def labeled(n=30, seed=0):
    rng = np.random.default_rng(seed)
    right = np.arange(n) % 2 == 1
    return rng.normal(size=(n, 3)) + 1.5 * right[:, None], np.where(right, 1.0, -1.0)


def loss_of(X, signs, weights, C):
    """The objective of logistic regression, by its formula, as a function of (normal, intercept)."""

    def loss(at):
        margins = signs * (X @ at[:-1] + at[-1])
        return 0.5 * at[:-1] @ at[:-1] + C * weights @ np.logaddexp(0.0, -margins)

    return loss


def test_the_plane_is_that_of_a_logistic_regression():
    X, right = labeled()
    normal, threshold = supervised_plane(X, right, np.ones(30), 4.0)
    best = minimize(loss_of(X, right, np.ones(30), 4.0), np.zeros(4), tol=1e-12).x
    length = np.linalg.norm(best[:-1])
    np.testing.assert_allclose(normal, best[:-1] / length, atol=1e-4)
    assert threshold == pytest.approx(-best[-1] / length, abs=1e-4)


def test_the_unit_of_the_rows_does_not_matter():
    X, right = labeled()
    one = supervised_plane(X, right, np.ones(30), 4.0)
    two = supervised_plane(4.0 * X, right, np.ones(30), 4.0 / 16.0)
    np.testing.assert_allclose(one[0], two[0], atol=1e-4)
    assert 4.0 * one[1] == pytest.approx(two[1], abs=1e-3)


@pytest.mark.parametrize("standardize", [True, False])
def test_the_penalty_is_relative_to_the_variance_of_all_rows(standardize):
    """Not of the labeled rows, and about the mean."""
    X = np.random.default_rng(5).normal(size=(300, 3)) * [1.0, 2.0, 3.0] + 7.0
    right = np.arange(18) % 2 == 1
    labels = Labels(X[:18], right.astype(int), np.ones(18))
    node = measured(X, labels=labels, standardize=standardize)
    _, split = run(search(node, SupervisedMethod(0.5, (1,))))
    rows = (X - X.mean(axis=0)) / (X.std(axis=0) if standardize else 1.0)
    normal, threshold = supervised_plane(
        rows[:18], np.where(right, 1.0, -1.0), np.ones(18), 20.0 / (rows**2).sum(axis=1).mean()
    )
    distances = split.boundary.signed_distance(node.rows)
    np.testing.assert_allclose(distances, rows @ normal - threshold, atol=1e-3)


def test_weights_are_copies():
    X, right = labeled()
    weights = np.random.default_rng(1).integers(1, 4, 30)
    one = supervised_plane(X, right, weights.astype(float), 3.0)
    many = np.ones(weights.sum())
    two = supervised_plane(np.repeat(X, weights, axis=0), np.repeat(right, weights), many, 3.0)
    np.testing.assert_allclose(one[0], two[0], atol=1e-4)
    assert one[1] == pytest.approx(two[1], abs=1e-4)


def test_the_same_rows_on_both_sides_have_no_plane():
    X = np.repeat([[0.0, 0.0]], 4, axis=0)
    assert supervised_plane(X, np.array([-1.0, 1.0, -1.0, 1.0]), np.ones(4), 1.0) is None


def boundary(X, y, **parameters):
    return MinimumDensityClassifier(**parameters).fit(X, y).boundaries_[0].split


def two_rows_of_blobs(seed=0, n=400):
    """Two groups, one above the other, and the classes left and right of 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + np.column_stack([np.zeros(n), 6.0 * (rng.random(n) < 0.5)])
    return X, (X[:, 0] > 0).astype(int)


def known(y, n):
    return np.where(np.arange(len(y)) < n, y, -1)


def split_of(split, quality, value, wrong):
    """A boundary across the first column of `line_of_labels` with these figures and mistakes."""
    plane = Hyperplane(np.array([1.0, 0.0]), np.zeros(2), wrong - 0.5)
    return replace(split, quality=quality, value=value, boundary=plane)


def line_of_labels(weights=(1.0,) * 8):
    """Four rows of class 0 at -4 to -1, four of class 1 at 0 to 3."""
    rows = np.column_stack([np.arange(-4.0, 4.0), np.zeros(8)])
    return Labels(rows, np.arange(8) // 4, np.array(weights))


@pytest.mark.parametrize(
    ("valley", "alone", "better"),
    [
        ((0.9, 1.0, 0), (0.1, 2.0, 0), True),
        ((0.9, 1.0, 0), (0.1, 1.6, 0), False),  # the other one is nearly as sparse
        ((0.9, 1.0, 0), (0.9, 1.7, 0), True),
        ((1.0, 0.0, 0), (0.5, 0.1, 0), True),
        ((0.9, 1.0, 1), (0.1, 2.0, 0), False),  # a labeled row on the wrong side, on the left
        ((0.9, 1.0, -1), (0.1, 2.0, 0), False),  # and on the right
        ((0.9, 1.0, 2), (0.1, 2.0, -2), True),
        ((0.9, 1.0, 2), (0.1, 2.0, 3), True),
    ],
)
def test_a_valley_has_to_be_sparse_and_to_separate_the_labels(valley, alone, better):
    X, y = two_rows_of_blobs()
    split = boundary(X, known(y, 6))
    one, two = split_of(split, *valley), split_of(split, *alone)
    assert is_better(one, two, line_of_labels(), (1,)) is better


def test_mistakes_are_weighed_and_their_sums_are_not_compared_to_the_last_digit():
    X, y = two_rows_of_blobs()
    split = boundary(X, known(y, 6))
    left, right = split_of(split, 0.9, 1.0, -3), split_of(split, 0.1, 2.0, 1)
    weights = np.ones(8)
    weights[1:4], weights[4] = 0.1, 0.3  # 0.1 + 0.1 + 0.1 is not 0.3
    assert is_better(left, right, line_of_labels(weights), (1,))
    weights[4] = 0.2
    assert not is_better(left, right, line_of_labels(weights), (1,))


def test_a_valley_that_does_not_separate_the_labels_is_not_taken():
    """A deep gap between low and high groups, and classes on the left and on the right."""
    X, y = two_rows_of_blobs()
    density = boundary(X, known(y, 10), gammas=[1e-6], supervised_fallback=False)
    assert density.quality > 0.9
    split = boundary(X, known(y, 10), gammas=[1e-6])
    assert split.method == "supervised"
    assert split.value > 2.0 * density.value


def long_groups():
    """Two long groups side by side: the labels of four rows mislead about the direction."""
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    return np.column_stack([rng.normal(0, 5, 400), rng.normal(0, 0.5, 400) + 4 * y]), y


def test_with_many_labels_the_boundary_is_the_supervised_one():
    X, y = long_groups()
    few, many = (boundary(X, known(y, n)) for n in (4, 22))
    assert many.method == "supervised"
    assert few.method == "minimum density with labels"
    assert boundary(X, known(y, 22), supervised_fallback=False).method == "minimum density with labels"


def test_the_supervised_boundary_is_measured_in_the_density_of_all_rows():
    X, y = two_rows_of_blobs()
    split = boundary(X, known(y, 40))
    assert split.method == "supervised"
    density = boundary(X, known(y, 40), supervised_fallback=False)
    assert 0.0 <= split.quality <= 1.0
    assert split.value > density.value > 0.0
    assert split.facts["bandwidth"] == pytest.approx(density.facts["bandwidth"])


def test_weights_decide_how_many_labels_there_are():
    X, y = long_groups()
    weights = np.ones(400)
    weights[:4] = 6.0
    model = MinimumDensityClassifier().fit(X, known(y, 4), sample_weight=weights)
    assert model.boundaries_[0].split.method == "supervised"
