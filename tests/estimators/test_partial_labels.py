"""Partial labels, for every clusterer that supports them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ravine import (
    AutoCluster,
    InvalidInputError,
    MaximinSeparation,
    MaximumMargin,
    MinimumDensity,
    MinimumDensityClassifier,
    PrincipalDirection,
    SpectralConnectivity,
)
from ravine.data.node import Labels
from tests.every_estimator import ESTIMATORS

WITH_LABELS = {
    "density": MinimumDensity,
    "connectivity": SpectralConnectivity,
    "margin": MaximumMargin,
    "mpm": MaximinSeparation,
    "gep": partial(MaximinSeparation, solver="gep"),
    "eig": partial(MaximinSeparation, solver="eig"),
}
WINE, CLASSES = load_wine(return_X_y=True)


@pytest.fixture(params=sorted(WITH_LABELS))
def make(request):
    return WITH_LABELS[request.param]


def square(n=400, seed=3):
    """Four blobs on the corners of a rectangle: left from right is the wider gap, low from high the other."""
    corner = np.arange(n) % 4
    noise = np.random.default_rng(seed).normal(size=(n, 2))
    X = np.column_stack([8.0 * (corner % 2), 6.0 * (corner // 2)]) + noise
    return np.column_stack([X, X[:, 0] + 0.1 * noise[::-1, 1]]), corner


def partial_labels(y, each, seed=0):
    """Labels of a few rows of each class, -1 for all others."""
    rng = np.random.default_rng(seed)
    y_partial = np.full(len(y), -1)
    for c in np.unique(y):
        drawn = rng.choice(np.flatnonzero(y == c), each, replace=False)
        y_partial[drawn] = y[drawn]
    return y_partial


def test_labels_choose_between_two_valleys(make):
    X, corner = square()
    if make is MaximumMargin:  # labels choose between its ends, and with the third column all ends are one
        X = X[:, :2]
    low_or_high = corner // 2
    model = make(2, standardize=False)
    assert adjusted_rand_score(corner % 2, model.fit(X).labels_) > 0.9  # without labels, the wider gap
    assert adjusted_rand_score(low_or_high, model.fit(X, partial_labels(low_or_high, 4)).labels_) > 0.9
    assert adjusted_rand_score(corner % 2, model.fit(X, partial_labels(corner % 2, 4)).labels_) > 0.9


def test_leaves_with_two_classes_are_split_first(make):
    """The left blobs are two with a wide gap, and most of the rows; the labels treat them as one."""
    rng = np.random.default_rng(0)
    blob = np.repeat([0, 1, 2], [300, 100, 100])
    X = np.array([[0.0, 0.0], [14.0, 0.0], [14.0, 5.0]])[blob] + rng.normal(size=(500, 2))
    X[:150, 1] += 9.0
    model = make(n_clusters=3, standardize=False)
    assert adjusted_rand_score(blob, model.fit(X).labels_) < 0.7
    assert adjusted_rand_score(blob, model.fit(X, partial_labels(blob, 6)).labels_) > 0.9


def test_labels_improve_the_clusters_of_wine():
    plain = adjusted_rand_score(CLASSES, MinimumDensity(3).fit(WINE).labels_)
    with_labels = []
    for seed in range(3):
        y_partial = partial_labels(CLASSES, 6, seed)
        found = MinimumDensity(3).fit(WINE, y_partial).labels_
        with_labels.append(adjusted_rand_score(CLASSES[y_partial < 0], found[y_partial < 0]))
    assert np.mean(with_labels) > plain + 0.05


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_a_y_without_unlabeled_rows_is_ignored(name):
    model = ESTIMATORS[name](n_clusters=2)
    expected = model.fit(WINE).labels_
    target = WINE[:, 0] - WINE[:, 0].mean()
    target[3] = -1.0
    ignored = (CLASSES, target, CLASSES.astype(str), np.column_stack([CLASSES, CLASSES - 1]))
    for y in ignored if name == "MinimumDensity" else ignored[:1]:
        assert (model.fit(WINE, y).labels_ == expected).all()


def test_no_valley_between_the_labels_leaves_the_split_as_it_is():
    X, y = make_blobs(300, centers=[[0, 0], [12, 0]], random_state=0)
    y_partial = np.full(300, -1)
    inside = np.flatnonzero(y == 0)
    y_partial[inside[:40]] = (X[inside[:40], 1] > 0).astype(int)  # the upper and the lower half of one blob
    model = MinimumDensity(2).fit(X, y_partial)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert MinimumDensity("auto").fit(X, y_partial).n_clusters_ == 2


def test_labels_in_an_automatic_number_of_clusters():
    X, corner = square()
    model = MinimumDensity("auto").fit(X, partial_labels(corner, 3))
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(corner, model.labels_) > 0.95


@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity, MaximumMargin, MaximinSeparation])
def test_weights_are_copies_and_a_label_of_weight_0_is_ignored(make):
    y_partial = partial_labels(CLASSES, 8)
    counts = np.random.default_rng(0).integers(0, 3, len(WINE))
    model = make(2)
    weighted = model.fit(WINE, y_partial, sample_weight=counts).labels_
    copied = model.fit(np.repeat(WINE, counts, axis=0), np.repeat(y_partial, counts)).labels_
    assert (np.repeat(weighted, counts) == copied).all()
    plain = model.fit(WINE, sample_weight=(y_partial < 0) * 1.0).labels_
    assert (model.fit(WINE, y_partial, sample_weight=(y_partial < 0) * 1.0).labels_ == plain).all()


@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity])
def test_sparse_rows_memory_maps_threads_and_kernels(make, tmp_path):
    X, corner = square()
    y_partial = partial_labels(corner // 2, 4)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    expected = make(2).fit(X, y_partial).labels_
    assert adjusted_rand_score(corner // 2, expected) > 0.95
    for same in (sparse.csr_array(X), mapped):
        assert (make(2, standardize=True).fit(same, y_partial).labels_ == expected).all()
    assert (make(2, n_jobs=2).fit(X, y_partial).labels_ == expected).all()
    linear = make(2, kernel="linear").fit(X, y_partial)
    assert adjusted_rand_score(expected, linear.labels_) > 0.95


def test_many_rows_go_through_samples():
    X, corner = square(40_000)
    model = MinimumDensity(2).fit(X, partial_labels(corner // 2, 4))
    assert adjusted_rand_score(corner // 2, model.labels_) > 0.95
    assert model.n_passes_ < 30


def test_names_pipelines_and_fit_predict():
    X, corner = square()
    y_partial = partial_labels(corner // 2, 4)
    named = np.array(["low", "high", "-1"])[y_partial]
    expected = MinimumDensity(2).fit(X, y_partial).labels_
    assert (MinimumDensity(2).fit_predict(X, named) == expected).all()
    assert (MinimumDensity(2).fit(X, y_partial.astype(float)).labels_ == expected).all()
    piped = make_pipeline(StandardScaler(), MinimumDensity(2)).fit(X, y_partial)
    assert adjusted_rand_score(piped[-1].labels_, expected) > 0.95


@pytest.mark.parametrize("model", [PrincipalDirection(2), SpectralConnectivity(2, n_directions=2)], ids=type)
def test_a_method_without_partial_labels_warns(model):
    X, corner = square()
    expected = model.fit(X).labels_
    with pytest.warns(UserWarning, match=f"{type(model).__name__} .* ignores the partial labels"):
        model.fit(X, partial_labels(corner // 2, 4))
    assert (model.labels_ == expected).all()


UNKNOWN = {
    "float": lambda y: np.where(y < 0, np.nan, y),
    "list with None": lambda y: [None if k < 0 else int(k) for k in y],
    "object with NaN": lambda y: np.array([np.nan if k < 0 else float(k) for k in y], dtype=object),
    "object with -1.0 and None": lambda y: np.array([None, *np.where(y < 0, -1.0, y)[1:]], dtype=object),
    "texts with None": lambda y: np.array([None if k < 0 else f"c{k}" for k in y], dtype=object),
    "list of texts with NaN": lambda y: [np.nan if k < 0 else f"c{k}" for k in y],
    "Int64": lambda y: pd.Series(y, dtype="Int64").mask(y < 0),
    "string": lambda y: pd.Series([None if k < 0 else f"c{k}" for k in y], dtype="string"),
    "category": lambda y: pd.Series(pd.Categorical([None if k < 0 else f"c{k}" for k in y])),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_missing_label_is_unknown(kind):
    X, corner = square()
    y_partial = partial_labels(corner // 2, 4)
    y_partial[0] = -1
    y = UNKNOWN[kind](y_partial)
    found = MinimumDensity(2).fit(X, y).labels_
    assert adjusted_rand_score(corner // 2, found) > 0.9  # without labels, the other gap
    assert (found == MinimumDensity(2).fit(X, y_partial).labels_).all()
    classifier = MinimumDensityClassifier()
    expected = classifier.fit(X, y_partial).predict(X)
    predicted = classifier.fit(X, y).predict(X)
    assert (np.searchsorted(classifier.classes_, predicted) == expected).all()
    assert (np.searchsorted(classifier.classes_, classifier.transduction_) == expected).all()


@pytest.mark.parametrize("name", [*sorted(ESTIMATORS), "AutoCluster"])
@pytest.mark.filterwarnings("ignore:.* ignores the partial labels")
def test_nan_in_y_is_minus_one_for_every_estimator(name):
    y_partial = partial_labels(CLASSES, 6)
    model = AutoCluster(2) if name == "AutoCluster" else ESTIMATORS[name](2)
    expected = model.fit(WINE, y_partial).labels_
    assert (model.fit(WINE, np.where(y_partial < 0, np.nan, y_partial)).labels_ == expected).all()


def test_infinity_is_no_missing_label():
    X, corner = square()
    y = np.where(corner == 0, np.nan, corner / 1.0)
    y[1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        MinimumDensityClassifier().fit(X, y)
    assert (MinimumDensity(2).fit(X, y).labels_ == MinimumDensity(2).fit(X).labels_).all()


def test_labels_without_effect_are_a_warning_or_an_error():
    X, corner = square()
    with pytest.warns(UserWarning, match=r"one class only \(1\)"):
        one = MinimumDensity(2).fit(X, np.where(corner == 0, 1, -1))
    assert (one.labels_ == MinimumDensity(2).fit(X).labels_).all()
    with pytest.raises(InvalidInputError, match="3 labels for 400 rows"):
        MinimumDensity(2).fit(X, [0, 1, -1])


def test_pairs_on_one_side_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(12, 2)), rng.integers(0, 3, 12)
    weights = rng.integers(1, 4, 12).astype(float)
    w, pivot, threshold = np.array([0.6, 0.8]), np.array([0.1, -0.2]), 0.3
    right = [float((row - pivot) @ w) > threshold for row in rows]
    expected = sum(
        weights[i] * weights[j]
        for i in range(12)
        for j in range(i)
        if classes[i] != classes[j] and right[i] == right[j]
    )
    assert expected > 0
    assert Labels(rows, classes, weights).pairs_together(np.array(right)) == pytest.approx(expected)
