import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import estimator_checks
from sklearn.utils._testing import assert_allclose_dense_sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import ravine
from ravine import InvalidInputError, MinimumDensityClassifier
from ravine.data.memory import MemoryRows
from ravine.data.node import Labels
from ravine.data.query import run
from ravine.estimators import class_boundaries
from ravine.index.density import MinimumDensityIndex
from ravine.index.labels import LabeledIndex
from ravine.optimize.pursuit import evaluate
from tests.nodes import measured
from tests.oracles import central_difference, two_blobs

EXPECTED_TO_FAIL = {
    "check_classifiers_classes": "fits y in {-1, 1}, but -1 is a row without a label; scikit-learn exempts "
    "its own semi-supervised classes by name",
}


@parametrize_with_checks(
    [MinimumDensityClassifier(), MinimumDensityClassifier(kernel="rbf", kernel_params={"n_components": 5})],
    expected_failed_checks=lambda estimator: EXPECTED_TO_FAIL,
)
def test_scikit_learn_check(estimator, check, monkeypatch):
    # sums over copies and over weights agree to rounding, which the pursuit amplifies to some 1e-7 of a
    # distance; the check of weights asks for 1e-7, which would hang on the processor
    close = partial(assert_allclose_dense_sparse, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", close)
    check(estimator)


def few_labels(y, n_labels, seed=0):
    """Labels of about as many rows of each class, -1 for all others."""
    rng = np.random.default_rng(seed)
    known = np.full(len(y), -1)
    classes = np.unique(y)
    for k, c in enumerate(classes):
        share = n_labels // len(classes) + (k < n_labels % len(classes))
        drawn = rng.choice(np.flatnonzero(y == c), share, replace=False)
        known[drawn] = y[drawn]
    return known


def ridge_and_noise(n=300, seed=0):
    """Two long blobs side by side: the valley between them runs along the widest direction."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return np.column_stack([rng.normal(0, 5, n), rng.normal(0, 0.5, n) + 4.0 * y]), y


def test_the_gradient_in_the_space_of_the_rows_is_the_derivative():
    X, _ = two_blobs(60, d=4, gap=3.0, seed=2)
    few = np.arange(0, 60, 4)
    sides = np.where(np.random.default_rng(1).random(len(few)) < 0.5, -1.0, 1.0)  # of no use, on purpose
    node = measured(X, labels=Labels(X[few], (sides > 0).astype(int), np.ones(len(few))))
    index = LabeledIndex(MinimumDensityIndex(0.5, 0.9), sides, np.ones(len(few)), 0.5, 1.0)
    v = np.array([0.5, 0.1, -0.7, 0.3])
    v /= np.linalg.norm(v)

    def value(w):
        return run(evaluate(node, index, w / np.linalg.norm(w), fineness=4096)).value

    result = run(evaluate(node, index, v, fineness=4096))
    assert (result.index_value.labeled_slope != 0).any()
    np.testing.assert_allclose(result.gradient, central_difference(value, v, 1e-6), rtol=1e-3, atol=1e-5)


def test_two_labels_are_enough_where_the_valley_is_clear():
    X, y = ridge_and_noise()
    model = MinimumDensityClassifier().fit(X, few_labels(y, 2))
    assert (model.transduction_ == y).mean() > 0.98
    assert (model.predict(X) == y).mean() > 0.98


def test_swapped_labels_swap_the_classes():
    X, y = ridge_and_noise()
    known = few_labels(y, 4)
    swapped = np.where(known < 0, -1, 1 - known)
    one, two = (MinimumDensityClassifier().fit(X, k) for k in (known, swapped))
    assert (one.predict(X) == 1 - two.predict(X)).all()
    np.testing.assert_allclose(one.decision_function(X), -two.decision_function(X), atol=1e-6)


def test_labels_overrule_the_deepest_valley():
    """Four blobs on a square: the labels say which of the two valleys is meant."""
    rng = np.random.default_rng(3)
    corner = np.arange(400) % 4
    X = np.column_stack([6.0 * (corner % 2), 4.0 * (corner // 2)]) + rng.normal(size=(400, 2))
    for y in (corner % 2, corner // 2):
        model = MinimumDensityClassifier(standardize=False).fit(X, few_labels(y, 8))
        assert (model.transduction_ == y).mean() > 0.95


def test_unlabeled_rows_help_on_real_rows():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    X, y = load_breast_cancer(return_X_y=True)
    density, default, machine = [], [], []
    for seed in range(20):
        known = few_labels(y, 6, seed)
        there = known >= 0
        for found, fallback in ((density, False), (default, True)):
            model = MinimumDensityClassifier(supervised_fallback=fallback)
            found.append((model.fit(X, known).predict(X) == y).mean())
        alone = make_pipeline(StandardScaler().fit(X), LinearSVC(dual=False))
        machine.append((alone.fit(X[there], y[there]).predict(X) == y).mean())
    for found in (density, default):
        assert np.median(found) > 0.9
        assert np.median(found) > np.median(machine) + 0.02


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = MinimumDensityClassifier().fit(X, few_labels(y, 15))
    assert (model.transduction_ == y).mean() > 0.85
    assert len(model.boundaries_) == 3
    scores, memberships = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == memberships.shape == (150, 3)
    for shown in (scores, memberships):
        assert (model.classes_[shown.argmax(axis=1)] == model.predict(X)).all()
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0)


def three_blobs(seed=0):
    """Three blobs in a row; the first two are near each other."""
    y = np.repeat([0, 1, 2], 80)
    return np.random.default_rng(seed).normal(size=(240, 2)) + np.array([[0, 0], [6, 0], [20, 0]])[y], y


def test_distances_never_outvote_votes():
    X, y = three_blobs()
    model = MinimumDensityClassifier().fit(X, few_labels(y, 15))
    everywhere = np.random.default_rng(1).normal(0, 200, (2000, 2))
    votes = np.zeros((2000, 3), dtype=int)
    for between in model.boundaries_:
        right = between.split.boundary.signed_distance(MemoryRows(everywhere)) > 0
        votes[right, between.right] += 1
        votes[~right, between.left] += 1
    scores = model.decision_function(everywhere)
    assert (np.abs(scores - votes) < 1 / 3).all()
    clear = votes.max(axis=1) == 2
    assert clear.any()
    np.testing.assert_array_equal(model.predict(everywhere)[clear], votes.argmax(axis=1)[clear])


def test_a_labeled_row_counts_for_its_own_class_in_every_pair(monkeypatch):
    """Whatever class a machine assigns to it: a few labels are at the wrong place."""
    X, y = three_blobs()
    known = few_labels(y, 30)
    known[[5, 85, 165]] = 1, 2, 0
    members = {}
    between = class_boundaries.BoundarySearch._between

    def spy(fitting, left, right, rows):
        members[left, right] = rows.map(lambda block: block.numbers)
        return between(fitting, left, right, rows)

    monkeypatch.setattr(class_boundaries.BoundarySearch, "_between", spy)
    MinimumDensityClassifier().fit(X, known)
    for pair, rows in members.items():
        assert set(np.flatnonzero(np.isin(known, pair))) <= set(rows)
        assert set(known[rows]) == {*pair, -1}


def test_every_boundary_is_found_in_the_scale_of_all_rows():
    X, y = load_iris(return_X_y=True)
    scale = measured(X).standardization.inverse_scale
    for between in MinimumDensityClassifier().fit(X, few_labels(y, 15)).boundaries_:
        split = between.split
        np.testing.assert_allclose(split.boundary.normal, split.direction * scale, rtol=1e-9)


def test_five_digits_beat_the_supervised_machine_at_three_labels_each():
    from sklearn.svm import LinearSVC

    X, y = load_digits(return_X_y=True)
    X, y = X[y < 5][:400], y[y < 5][:400]
    known = few_labels(y, 15)
    there = known >= 0
    with pytest.warns(UserWarning, match="constant"):
        model = MinimumDensityClassifier().fit(X, known)
    machine = LinearSVC(dual=False).fit(X[there], y[there])
    assert (model.predict(X) == y).mean() > (machine.predict(X) == y).mean()


@pytest.mark.parametrize(
    "name", [lambda k: np.array(["no", "yes"])[k], lambda k: k + 7, lambda k: k + 0.0, lambda k: k > 0]
)
def test_labels_may_be_strings_numbers_or_truths(name):
    X, y = ridge_and_noise()
    known = few_labels(y, 10)
    named = np.array([name(k) if k >= 0 else -1 for k in known], dtype=object)
    model = MinimumDensityClassifier().fit(X, named)
    assert model.classes_.tolist() == sorted({name(0), name(1)})
    assert (model.predict(X) == name(y)).mean() > 0.98
    if isinstance(name(0), str):
        assert "-1" in (text := named.astype(str))
        assert (MinimumDensityClassifier().fit(X, text).transduction_ == model.transduction_).all()


def test_given_labels_stay_in_the_transduction():
    X, y = ridge_and_noise()
    known = few_labels(y, 60)
    wrong = np.flatnonzero(known >= 0)[:3]
    known[wrong] = 1 - known[wrong]
    model = MinimumDensityClassifier().fit(X, known)
    assert (model.transduction_[known >= 0] == known[known >= 0]).all()
    assert (model.predict(X)[wrong] == y[wrong]).all()  # three wrong labels do not move the boundary


def test_all_rows_labeled():
    X, y = load_breast_cancer(return_X_y=True)
    model = MinimumDensityClassifier().fit(X, y)
    assert (model.predict(X) == y).mean() > 0.95


def test_labels_that_no_hyperplane_separates():
    """Each blob has labels of both classes: the valley is found, and the majority names its sides."""
    X, y = ridge_and_noise()
    known = few_labels(y, 80)
    odd = np.flatnonzero(known >= 0)[::4]
    known[odd] = 1 - known[odd]
    assert (MinimumDensityClassifier().fit(X, known).predict(X) == y).mean() > 0.9


def test_a_class_without_labels_is_never_predicted():
    X, y = make_blobs(150, centers=3, random_state=0)
    known = few_labels(y, 9)
    known[known == 2] = -1
    model = MinimumDensityClassifier().fit(X, known)
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize("y", [[-1, -1, -1, -1], [3, -1, -1, 3]])
def test_fewer_than_two_classes_are_an_error(y):
    with pytest.raises(InvalidInputError, match="at least two classes"):
        MinimumDensityClassifier().fit(np.arange(8.0).reshape(4, 2), y)


def test_wrong_labels_and_parameters_are_errors():
    X, y = ridge_and_noise(20)
    with pytest.raises(InvalidInputError, match="one per row"):
        MinimumDensityClassifier().fit(X, y[:-1])
    for gammas in ((), "x", [[1.0], [2.0, 3.0]], 10**400):
        with pytest.raises(InvalidInputError, match="gammas"):
            MinimumDensityClassifier(gammas=gammas).fit(X, y)
    with pytest.raises(InvalidInputError, match="all rows of the classes 0, 1 are the same"):
        MinimumDensityClassifier().fit(np.ones((20, 2)), y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_of_any_size_give_no_warning():
    X, y = make_blobs(60, centers=3, random_state=0)
    X = (X - X.mean(axis=0)) / np.abs(X - X.mean(axis=0)).max()
    model = MinimumDensityClassifier().fit(X, y)
    for scale in (1e150, 1e200, 1e300, 3e307, 1e-320):
        assert set(model.predict(scale * X)) <= {0, 1, 2}
        assert np.isfinite(model.predict_proba(scale * X)).all()
    for scale in (1e307, 1.7e308):
        with pytest.raises(InvalidInputError, match="in column 0"):
            MinimumDensityClassifier().fit(scale * X, y)
    with pytest.raises(InvalidInputError, match="all rows of the classes 0, 1, 2 are the same"):
        MinimumDensityClassifier().fit(1e-320 * X, y)


def test_a_refused_refit_leaves_the_classifier_as_it_was():
    X, y = ridge_and_noise(20)
    model = MinimumDensityClassifier().fit(X, y)
    classes, wider = model.predict(X), np.hstack([X, X[:, :1]])
    for rows, labels in (
        (wider, np.full(len(y), -1)),
        (np.ones((20, 3)), np.where(y == -1, -1, y + 5)),
        (np.where(wider == wider[3], np.nan, wider), y),
    ):
        with pytest.raises(InvalidInputError):
            model.fit(rows, labels)
        np.testing.assert_array_equal(model.predict(X), classes)


def test_weights_are_copies_and_weight_zero_has_no_effect():
    X, y = load_iris(return_X_y=True)
    known = few_labels(y, 30)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    model = MinimumDensityClassifier()
    weighted = model.fit(X, known, sample_weight=weights).predict(X)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(known, weights)).predict(X)
    assert (weighted == repeated).all()


def test_sparse_rows_memory_maps_and_threads_give_the_same_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    known = few_labels(y, 15)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    model = MinimumDensityClassifier(standardize=True)
    expected = model.fit(X, known).transduction_
    for same in (sparse.csr_array(X), mapped):
        assert (model.fit(same, known).transduction_ == expected).all()
    model.set_params(n_jobs=2)
    assert (model.fit(X, known).transduction_ == expected).all()


def test_coefficients_are_the_boundary_in_the_units_of_the_data():
    X, y = load_iris(return_X_y=True)
    model = MinimumDensityClassifier().fit(X, np.where(y == 2, -1, y))
    np.testing.assert_allclose(
        X @ model.coef_[0] + model.intercept_[0], model.decision_function(X), atol=1e-9
    )


def test_units_of_the_columns_do_not_matter():
    X, y = load_breast_cancer(return_X_y=True)
    known = few_labels(y, 10)
    one = MinimumDensityClassifier().fit(X, known).predict(X)
    scaled = X * 2.0 ** np.arange(-10, 20)
    two = MinimumDensityClassifier().fit(scaled, known).predict(scaled)
    assert (one == two).all()
    plain = MinimumDensityClassifier(standardize=False)
    assert (plain.fit(X, known).predict(X) == plain.fit(X * 1024.0, known).predict(X * 1024.0)).all()


def test_many_rows_go_through_samples():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40_000)
    X = rng.standard_normal((40_000, 3)) + 5.0 * y[:, None] * np.array([0.0, 0.6, 0.8])
    known = few_labels(y, 4)
    model = MinimumDensityClassifier().fit(X, known)
    assert (model.predict(X) == y).mean() > 0.98
    assert model.n_passes_ < 20


# --- kernels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        (make_moons(400, noise=0.06, random_state=0), "diffusion"),
        (make_circles(400, noise=0.05, factor=0.4, random_state=0), "diffusion"),
        (make_circles(400, noise=0.05, factor=0.4, random_state=0), "rbf"),
    ],
    ids=["moons", "rings", "rings by rbf"],
)
def test_kernels_separate_what_no_hyperplane_does(rows, kernel):
    X, y = rows
    known = few_labels(y, 6 if kernel == "diffusion" else 20)
    assert (MinimumDensityClassifier().fit(X, known).predict(X) == y).mean() < 0.95
    model = MinimumDensityClassifier(kernel=kernel).fit(X, known)
    assert (model.transduction_ == y).mean() > 0.97
    assert (model.predict(X) == y).mean() > 0.97
    assert (model.predict(X[:20]) == model.predict(X)[:20]).all()


def test_a_kernel_named_computed_or_called_is_the_same():
    X, y = load_iris(return_X_y=True)
    known = few_labels(y, 15)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    make = partial(MinimumDensityClassifier)
    named = make(kernel="rbf", kernel_params={"gamma": 0.1, "n_components": 5}).fit(X, known)
    K = rbf_kernel(Z, gamma=0.1)
    given = make(kernel="precomputed", kernel_params={"n_components": 5}).fit(K, known)
    called = make(kernel=partial(rbf_kernel, gamma=0.1), kernel_params={"n_components": 5}).fit(Z, known)
    assert named.coef_.shape[1] == named.feature_map_.n_components == 5
    assert (named.predict(X) == y).mean() > 0.8
    assert (given.predict(K[:40]) == named.predict(X[:40])).all()
    assert (called.predict(Z) == named.predict(X)).all()
    again = pickle.loads(pickle.dumps(named))
    assert (again.decision_function(X) == named.decision_function(X)).all()


def test_weights_are_copies_in_the_space_of_a_kernel():
    X, y = load_iris(return_X_y=True)
    known = few_labels(y, 30)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = MinimumDensityClassifier(kernel="rbf", kernel_params={"n_components": 6})
    weighted = model.fit(X, known, sample_weight=weights).predict(X)
    copied = model.fit(np.repeat(X, weights, axis=0), np.repeat(known, weights)).predict(X)
    assert (weighted == copied).all()


def test_a_kernel_of_strings():
    words = ["aab", "abab", "bbaa", "baab", "cdc", "ddcc", "cddc", "dcd"] * 5
    y = np.arange(40) % 8 // 4

    def letters(A, B):
        count = [np.array([[word.count(c) for c in "abcd"] for word in ws], float) for ws in (A, B)]
        return count[0] @ count[1].T

    known = np.where(np.arange(40) % 8 % 4 == 0, y, -1)
    known[8:] = -1
    model = MinimumDensityClassifier(kernel=letters).fit(words, known)
    assert (model.transduction_ == y).all()
    assert model.predict(["abba", "dccd"]).tolist() == [0, 1]


def test_the_command_line_has_no_clusters_of_a_classifier(tmp_path, capsys):
    from ravine.cli.main import main

    X, y = ridge_and_noise()
    ravine.save(MinimumDensityClassifier().fit(X, few_labels(y, 4)), tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",")
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "rows.csv")]) == 2
    assert (
        "contains a MinimumDensityClassifier, but this command needs a clusterer" in capsys.readouterr().err
    )
