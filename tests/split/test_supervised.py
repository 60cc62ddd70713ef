"""The supervised boundary, and when a valley is preferred to it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from ravine import MinimumDensityClassifier
from ravine.split import support
from ravine.split.supervised import is_better
from ravine.split.support import supervised_plane


def labeled(n=30, seed=0):
    rng = np.random.default_rng(seed)
    right = np.arange(n) % 2 == 1
    return rng.normal(size=(n, 3)) + 1.5 * right[:, None], right


def test_the_plane_is_the_mean_of_a_machine_and_a_logistic_regression():
    X, right = labeled()
    normal, threshold = supervised_plane(X, right, np.ones(30))
    models = [SVC(kernel="linear", tol=1e-8).fit(X, right), LogisticRegression(tol=1e-8).fit(X, right)]
    value = sum(m.decision_function(X) / np.linalg.norm(m.coef_) for m in models)
    np.testing.assert_allclose(np.linalg.norm(normal), 1.0)
    ratio = value / (X @ normal - threshold)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert ratio[0] > 0


def test_weights_are_copies():
    X, right = labeled()
    weights = np.random.default_rng(1).integers(1, 4, 30)
    one = supervised_plane(X, right, weights.astype(float))
    two = supervised_plane(np.repeat(X, weights, axis=0), np.repeat(right, weights), np.ones(weights.sum()))
    np.testing.assert_allclose(one[0], two[0], atol=1e-4)
    assert one[1] == pytest.approx(two[1], abs=1e-4)


def test_many_labels_take_the_machine_in_linear_time(monkeypatch):
    X, right = labeled(60)
    exact = supervised_plane(X, right, np.ones(60))
    monkeypatch.setattr(support, "HINGE_LABELS", 50)
    normal, _ = supervised_plane(X, right, np.ones(60))
    assert normal @ exact[0] > 0.98
    assert normal @ exact[0] != 1.0


def test_the_same_rows_on_both_sides_have_no_plane():
    X = np.repeat([[0.0, 0.0]], 4, axis=0)
    assert supervised_plane(X, np.array([False, True, False, True]), np.ones(4)) is None


def boundary(X, y, **parameters):
    return MinimumDensityClassifier(**parameters).fit(X, y).boundaries_[0].split


def two_rows_of_blobs(seed=0, n=400):
    """Two groups, one above the other, and the classes left and right of 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + np.column_stack([np.zeros(n), 6.0 * (rng.random(n) < 0.5)])
    return X, (X[:, 0] > 0).astype(int)


def known(y, n):
    return np.where(np.arange(len(y)) < n, y, -1)


@pytest.mark.parametrize(
    ("valley", "alone", "better"),
    [
        ((0.9, 1.0), (0.1, 2.0), True),
        ((0.39, 1.0), (0.0, 2.0), False),  # not deep enough
        ((0.9, 1.0), (0.75, 2.0), False),  # the other one is nearly as deep
        ((0.9, 1.0), (0.1, 1.5), False),  # and this one nearly as sparse
        ((1.0, 0.0), (0.5, 0.1), True),
    ],
)
def test_a_valley_has_to_be_deep_deeper_and_sparser(valley, alone, better):
    X, y = two_rows_of_blobs()
    split = boundary(X, known(y, 6))
    one, two = (replace(split, quality=quality, value=value) for quality, value in (valley, alone))
    assert is_better(one, two) is better


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
