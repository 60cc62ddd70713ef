"""The penalty of the supervised boundary, by labeled rows that are left out."""

import numpy as np
import pytest

from ravine import MinimumDensityClassifier
from ravine.data.node import Labels
from ravine.split import penalty, supervised
from ravine.split.penalty import PENALTIES, best_penalty, left_out_loss, penalty_losses
from ravine.split.support import logistic
from tests.nodes import measured


def overlapping(n=40, d=3, seed=0, apart=1.0):
    """Two classes that differ in the first column."""
    rng = np.random.default_rng(seed)
    right = np.arange(n) % 2 == 1
    X = rng.normal(size=(n, d))
    X[:, 0] += apart * right
    return X, right


def loss_without(X, right, weights, C):
    """The same by as many regressions as rows."""
    total = 0.0
    for i in range(len(X)):
        fewer = weights.copy()
        fewer[i] -= min(1.0, weights[i])
        normal, offset = logistic(X, right, fewer, C)
        value = X[i] @ normal + offset
        total += weights[i] * np.logaddexp(0.0, -value if right[i] else value)
    return total


@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("C", [0.1, 1.0, 5.0])
def test_the_loss_is_nearly_that_of_regressions_without_a_row(C, d):
    X, right = overlapping(60, d)
    exact = loss_without(X, right, np.ones(60), C)
    assert left_out_loss(X, right, np.ones(60), C) == pytest.approx(exact, rel=0.02)
    normal, offset = logistic(X, right, np.ones(60), C)
    with_them = np.logaddexp(0.0, np.where(right, -1.0, 1.0) * (X @ normal + offset)).sum()
    assert exact > 1.03 * with_them


def test_weights_are_copies_of_which_one_is_left_out():
    X, right = overlapping(30)
    weights = np.random.default_rng(1).integers(1, 4, 30)
    copies = left_out_loss(
        np.repeat(X, weights, axis=0), np.repeat(right, weights), np.ones(weights.sum()), 2.0
    )
    weights = weights.astype(float)
    assert left_out_loss(X, right, weights, 2.0) == pytest.approx(copies, rel=1e-4)
    assert copies == pytest.approx(loss_without(X, right, weights, 2.0), rel=0.02)


def test_classes_that_are_far_apart_have_finite_losses():
    X, right = overlapping(40, apart=1e3)
    for weights in (np.ones(40), np.full(40, 1e9), np.full(40, 1e-9)):
        losses = [left_out_loss(X, right, weights, C) for C in (1e-3, 1.0, 1e3)]
        assert np.isfinite(losses).all()


def test_more_columns_than_rows_have_the_same_losses_as_their_inner_products():
    X, right = overlapping(24, 100)
    rotated = np.linalg.qr(X.T)[1].T
    ones = np.ones(24)
    assert left_out_loss(rotated, right, ones, 0.3) == pytest.approx(
        left_out_loss(X, right, ones, 0.3), rel=1e-4
    )
    node = measured(X, labels=Labels(X, right.astype(int), ones))
    losses = penalty_losses(node, (1,))
    square = (node.standardized_labels**2).sum(axis=1).mean()
    direct = [left_out_loss(node.standardized_labels, right, ones, c / square) for c in PENALTIES]
    np.testing.assert_allclose(losses, direct, rtol=1e-3)


def test_a_penalty_far_from_the_default_has_to_gain_more():
    flat = np.full(5, 30.0)
    assert best_penalty([flat]) == best_penalty([]) == 20.0
    for k, c in enumerate(PENALTIES[1:], start=1):
        needed = np.log(c / 20.0) ** 2
        for gain, chosen in ((needed - 0.01, 20.0), (needed + 0.01, c)):
            assert best_penalty([flat, -gain * (np.arange(5) == k)]) == chosen
    assert best_penalty([np.array([9.0, 9.0 - np.log(2.0) ** 2 - 1e-9, 20.0, 20.0, 20.0])]) == 20.0


def chosen_by(monkeypatch, X, y, **parameters):
    """Return the penalties that the boundaries of a classifier are fitted with."""
    found = []

    def spy(rows, right, weights, C):
        found.append(C)
        return plane(rows, right, weights, C)

    plane = supervised.supervised_plane
    with monkeypatch.context() as patched:
        patched.setattr(supervised, "supervised_plane", spy)
        patched.setattr(supervised, "mean_square", lambda node: 1.0)
        model = MinimumDensityClassifier(**parameters).fit(X, y)
    return model, found


def test_noise_has_a_strong_penalty_and_a_clear_boundary_a_weak_one(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 8))
    noise, clear = rng.integers(0, 2, 300), (X @ np.arange(8.0) > 0).astype(int)
    known = np.arange(300) < 60
    _, strong = chosen_by(monkeypatch, X, np.where(known, noise, -1))
    _, weak = chosen_by(monkeypatch, X, np.where(known, clear, -1))
    assert len(strong) == len(weak) == 1
    assert strong[0] < 20.0 < weak[0]


def test_few_labels_have_the_default(monkeypatch):
    rng = np.random.default_rng(2)
    X, noise = rng.normal(size=(300, 8)), np.arange(300) % 2
    for n, enough in ((18, False), (20, True)):
        _, found = chosen_by(monkeypatch, X, np.where(np.arange(300) < n, noise, -1))
        assert (found != [20.0]) is enough


def test_very_many_labels_prefer_no_penalty(monkeypatch):
    X, right = overlapping(40)
    node = measured(X, labels=Labels(X, right.astype(int), np.ones(40)))
    for most, chosen in ((40, True), (39, False)):
        monkeypatch.setattr(penalty, "MOST_ROWS", most)  # instead of a thousand rows
        assert penalty_losses(node, (1,)).any() == chosen


@pytest.mark.parametrize("scheme", ["one-vs-one", "tree"])
def test_all_pairs_have_one_penalty_and_the_boundaries_of_a_tree_their_own(monkeypatch, scheme):
    """Classes 0 and 1 are noise, class 2 is far from both."""
    rng = np.random.default_rng(3)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 6))
    X[:, 0] += 8.0 * (y == 2)
    model, found = chosen_by(monkeypatch, X, np.where(np.arange(300) < 90, y, -1), multi_class=scheme)
    assert len(model.boundaries_) == len(found) == (3 if scheme == "one-vs-one" else 2)
    assert len(set(found)) == (1 if scheme == "one-vs-one" else 2)


def test_the_choice_does_not_depend_on_rounding():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, (200, 10)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=200) > 5).astype(int)
    partial = np.where(np.arange(200) < 60, y, -1)
    one = MinimumDensityClassifier().fit(X, partial)
    two = MinimumDensityClassifier().fit(X * (1.0 + 1e-12 * rng.normal(size=X.shape)), partial)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)


def test_without_the_fallback_nothing_is_chosen(monkeypatch):
    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr(penalty, "left_out_loss", never)
    X, _ = overlapping(90)
    y = np.where(np.arange(90) < 45, np.arange(90) % 3, -1)
    MinimumDensityClassifier(supervised_fallback=False).fit(X, y)
    with pytest.raises(AssertionError):
        MinimumDensityClassifier().fit(X, y)
