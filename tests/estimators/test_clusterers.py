"""What holds for every clusterer; a new one joins by itself."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ravine
from ravine import (
    InterruptedWarning,
    InvalidInputError,
    MaximinSeparation,
    MinimumDensity,
    MinimumDensityClassifier,
    OneClusterWarning,
    PrincipalDirection,
    Progress,
    compare,
)
from ravine.estimators.clusterer import AUTO_MIN_SIZE
from ravine.split.boundary import Hyperplane
from ravine.tree import grow
from tests.changed_method import with_order
from tests.every_estimator import ESTIMATORS
from tests.oracles import two_blobs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WINE, TARGET = load_wine(return_X_y=True)
DIGITS = load_digits().data


@pytest.fixture(params=sorted(ESTIMATORS))
def make(request):
    """Makes a clusterer, for two clusters where the test names no number."""

    def make_one(n_clusters=2, **parameters):
        return ESTIMATORS[request.param](n_clusters, **parameters)

    return make_one


# --- bad input: one clear sentence, and nothing else happens ---------------------------------------------

GOOD = np.random.default_rng(0).standard_normal((30, 3))
SPOILED = {
    "NaN": (np.where(np.arange(90).reshape(30, 3) == 40, np.nan, GOOD), "NaN or infinity in column 1"),
    "infinity": (np.where(np.arange(90).reshape(30, 3) == 41, np.inf, GOOD), "NaN or infinity in column 2"),
    "strings": (np.array([["a", "b"]] * 30), "could not convert string|dtype='numeric'"),
    "complex": (GOOD + 1j, "[Cc]omplex"),
    "empty": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((30, 0)), "0 feature"),
    "one row": (GOOD[:1], "1 sample"),
    "1-D": (GOOD[:, 0], "1D array|2D array"),
    "3-D": (GOOD.reshape(5, 6, 3), "dim 3|3D"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_bad_rows_are_one_clear_error(make, case):
    X, message = SPOILED[case]
    model = make()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(30, -1.0), "30 negative"),
        (np.where(np.arange(30) == 3, np.nan, 1.0), "NaN"),
        (np.zeros(30), "zero for every row"),
        (np.ones(29), r"30 rows, got shape \(29,\)"),
    ],
)
def test_bad_weights_are_one_clear_error(make, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        make().fit(GOOD, sample_weight=weights)


def test_more_clusters_than_rows(make):
    with pytest.raises(InvalidInputError, match="n_clusters=31 is more than n_samples=30"):
        make(n_clusters=31).fit(GOOD)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, 'n_clusters has to be a whole number of at least 1 or "auto", got 0'),
        ({"n_clusters": 2.5}, "n_clusters has to be a whole number"),
        ({"min_cluster_size": 0}, "min_cluster_size"),
        ({"verbose": "loud"}, "verbose has to be True, False or a function"),
        ({"random_state": "seed"}, "random_state"),
        ({"random_state": -1}, "random_state has to be None, a whole number of at least 0"),
        ({"n_jobs": "all"}, "n_jobs has to be None or a whole number"),
        ({"n_jobs": 0}, "n_jobs has to be None or a whole number except 0"),
        ({"min_cluster_size": 10**400}, "min_cluster_size has to be a whole number below"),
        ({"level": 10**400, "n_clusters": "auto"}, "level has to be a number above 0 and at most 0.5"),
    ],
)
def test_bad_common_parameters(make, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        make(**parameters).fit(GOOD)


@pytest.mark.parametrize(
    "parameters",
    [
        {"bandwidth_factor": 0},
        {"alpha_max": -1},
        {"n_init": 0},
        {"max_iter": -1},
        {"bandwidth_factor": np.nan},
        {"bandwidth_factor": "wide"},
    ],
)
def test_bad_parameters_of_minimum_density(parameters):
    with pytest.raises(InvalidInputError, match=next(iter(parameters))):
        MinimumDensity(**parameters).fit(GOOD)


def switches():
    """Every parameter of every estimator that is on or off; `verbose` may be a function, too."""
    for name, make in {**ESTIMATORS, "classifier": MinimumDensityClassifier}.items():
        for parameter, usual in make().get_params(deep=False).items():
            if isinstance(usual, bool) and parameter != "verbose":
                yield pytest.param(make, parameter, id=f"{name}-{parameter}")


@pytest.mark.parametrize(("make", "parameter"), list(switches()))
def test_boolean_parameters_accept_only_booleans(make, parameter):
    y = np.repeat([0, 1], 15)
    for wrong in ("no", "False", 0, 1, None, []):
        with pytest.raises(InvalidInputError, match=f"{parameter} has to be True or False, got"):
            make(**{parameter: wrong}).fit(GOOD, y)
    make(**{parameter: np.False_}).fit(GOOD, y)


def test_a_refused_refit_leaves_the_model_as_it_was(make):
    frame = pd.DataFrame(WINE).add_prefix("x")
    model = quiet_fit(make(3), frame)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    labels = model.predict(frame)
    spoiled = GOOD.copy()
    spoiled[3, 1] = np.nan
    for X, y, weights in ((spoiled, None, None), (GOOD[:1], None, None), (GOOD, None, -np.ones(30))):
        with pytest.raises(ValueError, match=r"NaN|sample|negative"):
            model.fit(X, y, weights)
    with pytest.raises(InvalidInputError, match="n_clusters=3 is more than"):
        model.fit(GOOD[:2])
    with pytest.raises(InvalidInputError, match="level"):
        model.set_params(n_clusters="auto", level=-1).fit(GOOD)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(model.predict(frame), labels)


def test_a_function_as_verbose_that_raises_leaves_the_model_as_it_was(make):
    def stop(progress):
        raise RuntimeError("enough")

    model = make(2)
    with pytest.raises(RuntimeError, match="enough"):
        model.set_params(verbose=stop).fit(WINE)
    with pytest.raises(NotFittedError):
        model.predict(WINE)
    assert not hasattr(model, "n_features_in_")


def test_unfitted(make):
    with pytest.raises(NotFittedError):
        make().predict(GOOD)


def test_new_rows_are_checked_too(make):
    model = make().fit(WINE)
    with pytest.raises(ValueError, match="13 features"):
        model.predict(WINE[:, :5])
    spoiled = WINE.copy()
    spoiled[3, 4] = np.nan
    for method in (model.predict, model.transform, model.decision_function):
        with pytest.raises(InvalidInputError, match="NaN or infinity"):
            method(spoiled)


LARGE = {
    "1e307": GOOD * 1e307,
    "1e308": np.where(GOOD > 0, 1e308, -1e308),
    "one value of 1e308": np.where(np.arange(90).reshape(30, 3) == 40, 1e308, GOOD),
    "longdouble": GOOD.astype(np.longdouble) * np.longdouble("1e400"),
}


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("case", LARGE)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_whose_sums_overflow_are_one_clear_error(make, case, standardize):
    with pytest.raises(InvalidInputError, match=r"in column.* (scale the column|remove those rows)"):
        make(standardize=standardize).fit(LARGE[case])


@pytest.mark.parametrize("scale", [1e-308, 1e-320, 5e-324])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_columns_that_hardly_differ_from_0_are_constant(make, scale):
    with pytest.warns(UserWarning, match="1 of 5 columns are constant"):
        model = make().fit(np.hstack([BLOBS, scale * BLOBS[:, :1]]))
    without = quiet_fit(make(), np.hstack([BLOBS, np.zeros((300, 1))]))
    np.testing.assert_array_equal(model.labels_, without.labels_)
    assert quiet_fit(make(), scale * BLOBS).n_clusters_ == 1


@pytest.mark.parametrize("scale", [1e150, 1e200, 1e300, 1e307, 1e-320])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_new_rows_of_any_size_give_no_warning(make, scale):
    model = quiet_fit(make(3), WINE)
    rows = scale * ((WINE - WINE.mean(axis=0)) / np.abs(WINE).max(axis=0))
    for method in (model.predict, model.transform, model.decision_function, model.predict_proba):
        try:
            assert np.isfinite(method(rows)).all()
        except InvalidInputError as error:
            assert "NaN or infinity" in str(error)  # noqa: PT017 - which of both depends on the method


# --- odd input that works ----------------------------------------------------------------------------


def quiet_fit(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, **options)


BLOBS, TRUTH = two_blobs(300, 4, gap=12.0, seed=1)
HALVES = {n: np.repeat([0, 1], n // 2) for n in (2, 20, 40, 60, 300)}  # the truth of every odd case
ODD = {
    "one column": np.concatenate([GOOD[:, 0], GOOD[:, 1] + 20])[:, None],
    "more columns than rows": two_blobs(20, 60, gap=40.0)[0],
    "duplicates": np.repeat(BLOBS[::10], 10, axis=0),
    "1e300": BLOBS * 1e300 / 20,
    "1e-300": BLOBS * 1e-300,
    "mixed magnitudes": BLOBS * [1e300, 1e-300, 1.0, 1e9],
    "far away": BLOBS + 1e9,
    "integers": (BLOBS * 100).astype(np.int32),
    "bytes": ((BLOBS - BLOBS.min()) * 5).astype(np.uint8),
    "booleans": np.repeat([[True, False, True], [False, True, True]], 20, axis=0),
    "float32": BLOBS.astype(np.float32),
    "float16": BLOBS.astype(np.float16),
    "Fortran order": np.asfortranarray(BLOBS),
    "a constant column": np.column_stack([BLOBS, np.full(300, 7.0)]),
    "lists": BLOBS.tolist(),
    "csr": sparse.csr_array(BLOBS),
    "csc": sparse.csc_matrix(BLOBS),
    "two rows": np.array([[0.0, 1.0], [5.0, 2.0]]),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_rows_work_and_predict_gives_the_labels(make, case):
    X = ODD[case]
    model = quiet_fit(make(n_clusters=2), X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    if case in ("booleans", "two rows") and model.kernel == "diffusion":
        assert model.n_clusters_ == 1  # a graph of two points is connected
        return
    truth = HALVES[len(model.labels_)]
    assert max((model.labels_ == truth).mean(), (model.labels_ != truth).mean()) > 0.97


def test_a_column_constant_only_inside_a_node(make):
    X = np.column_stack([BLOBS, 3.0 * TRUTH])
    model = quiet_fit(make(n_clusters=4), X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert 2 <= model.n_clusters_ <= 4


def test_constant_columns_are_ignored_with_a_warning(make):
    with pytest.warns(UserWarning, match="1 of 5 columns are constant"):
        with_constant = make().fit(ODD["a constant column"])
    np.testing.assert_array_equal(with_constant.labels_, make().fit(BLOBS).labels_)


def test_all_rows_equal_is_one_cluster_and_a_warning(make):
    with pytest.warns(ConvergenceWarning, match="found 1 of 3 clusters"):
        model = make(n_clusters=3).fit(np.ones((10, 2)))
    assert model.n_clusters_ == 1
    assert model.labels_.tolist() == [0] * 10
    assert model.predict([[1.0, 1.0]]).tolist() == [0]
    assert model.transform(np.ones((3, 2))).shape == (3, 0)
    with pytest.raises(InvalidInputError, match="NaN"):
        model.predict([[1.0, np.nan]])


def test_read_only_input_is_never_written_to(make):
    X = BLOBS.copy()
    X.flags.writeable = False
    before = X.copy()
    quiet_fit(make(n_clusters=3), X).predict(X)
    np.testing.assert_array_equal(X, before)


def test_a_sparse_matrix_with_duplicate_entries_is_read_correctly_and_not_modified(make):
    plain = sparse.csr_array(WINE)
    halves = sparse.csr_array(
        (np.repeat(plain.data, 2) / 2, np.repeat(plain.indices, 2), 2 * plain.indptr), shape=plain.shape
    )
    model = quiet_fit(make(), halves)
    assert halves.nnz == 2 * plain.nnz
    np.testing.assert_array_equal(model.predict(halves), model.labels_)
    assert halves.nnz == 2 * plain.nnz
    np.testing.assert_array_equal(model.labels_, quiet_fit(make(), plain).labels_)


# --- defaults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["MinimumDensity", "MaximumMargin", "MaximinSeparation", "MinimumDensityClassifier"]
)
def test_by_default_dense_rows_are_standardized_and_sparse_ones_are_not(name):
    X, y = WINE[:, [0, 4, 12]], np.where(np.arange(len(WINE)) % 5, -1, TARGET)
    make = getattr(ravine, name)
    parameters = {} if name.endswith("Classifier") else {"n_clusters": 3}

    def fitted(rows, **more):
        model = make(**parameters, **more).fit(rows, y)
        return model.predict(rows).tolist()

    stored = sparse.csr_array(X)
    assert fitted(X) == fitted(X, standardize=True) != fitted(X, standardize=False)
    assert fitted(stored) == fitted(stored, standardize=False)
    if name == "MinimumDensity":
        assert fitted(X, kernel="rbf") == fitted(X, kernel="rbf", standardize=True)
        assert fitted(stored, kernel="rbf") == fitted(stored, kernel="rbf", standardize=False)
    with pytest.raises(InvalidInputError, match="standardize has to be True, False or \"auto\", got 'no'"):
        make(standardize="no").fit(X, y)


def test_the_number_of_clusters_is_found_by_default_everywhere():
    from ravine.cli.arguments import build_parser

    X = np.concatenate([two_blobs(200, 2, gap=30.0)[0], two_blobs(200, 2, gap=30.0)[0] + [0.0, 60.0]])
    assert MinimumDensity().fit(X).n_clusters_ == 4
    found = compare(X, methods=[MinimumDensity(), PrincipalDirection()])
    assert {candidate.estimator.n_clusters for candidate in found.candidates} == {"auto"}
    for command in ("fit", "compare"):
        assert build_parser().parse_args([command, "t.csv"]).clusters == "auto"


@pytest.mark.filterwarnings("default::UserWarning")
def test_one_cluster_is_a_warning_that_says_why_and_what_to_try():
    X = np.random.default_rng(0).standard_normal((300, 2))
    with pytest.warns(OneClusterWarning, match="set n_clusters, try SpectralConnectivity or") as caught:
        model = MinimumDensity().fit(X)
    refused = model.tree_.refused[0]
    (reason,) = (str(one.message) for one in caught)
    assert f"quality {refused.quality:.2f} (p = {refused.evidence.p_value:.2g})" in reason
    assert "not significant at the level 0.01" in reason
    with pytest.warns(OneClusterWarning, match="no hyperplane has enough rows on both sides"):
        MinimumDensity().fit(X[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MinimumDensity(1).fit(X)
        MinimumDensity(max_depth=0).fit(X)


# --- the contract beyond scikit-learn's own checks -------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_predict_transform_and_decision_function_agree_with_labels(make, n_clusters):
    model = quiet_fit(make(n_clusters=n_clusters), WINE)
    k = model.n_clusters_
    np.testing.assert_array_equal(model.predict(WINE), model.labels_)
    assert model.transform(WINE).shape == (len(WINE), k - 1)
    scores = model.decision_function(WINE)
    if k == 2:
        np.testing.assert_array_equal((scores > 0).astype(int), model.labels_)
    elif k > 2:
        np.testing.assert_array_equal(np.argmax(scores, axis=1), model.labels_)
        assert ((scores > 0).sum(axis=1) <= 1).all()
    assert sorted(set(model.labels_)) == list(range(k))
    assert model.tree_.n_leaves == k


def test_a_row_of_weight_zero_has_no_influence_but_gets_a_label(make):
    far = np.vstack([BLOBS, [[1e3] * 4]])
    weights = np.append(np.ones(300), 0.0)
    one, two = make().fit(BLOBS), make().fit(far, sample_weight=weights)
    np.testing.assert_array_equal(one.labels_, two.labels_[:300])
    assert len(two.labels_) == 301


def test_weights_are_repeats(make):
    counts = np.random.default_rng(0).integers(1, 4, len(WINE))
    one = quiet_fit(make(n_clusters=3), WINE, sample_weight=counts)
    two = quiet_fit(make(n_clusters=3), np.repeat(WINE, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(one.labels_, counts), two.labels_)


def test_the_same_bits_for_any_n_jobs(make):
    X = two_blobs(20_000, 4, gap=4.0)[0]
    one, many = (quiet_fit(make(n_clusters=3, n_jobs=n_jobs), X) for n_jobs in (None, 3))
    np.testing.assert_array_equal(one.labels_, many.labels_)
    for a, b in zip(one.tree_.splits, many.tree_.splits, strict=True):
        if a is not None:
            np.testing.assert_array_equal(a.boundary.normal, b.boundary.normal)
            assert a.boundary.threshold == b.boundary.threshold


def test_memmap_is_read_in_place(make, tmp_path):
    np.save(tmp_path / "wine.npy", WINE)
    mapped = np.load(tmp_path / "wine.npy", mmap_mode="r")
    np.testing.assert_array_equal(make().fit(mapped).labels_, make().fit(WINE).labels_)


def test_the_same_labels_from_run_to_run(make):
    one, two = (quiet_fit(make(n_clusters=3), DIGITS) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_labels_run_from_left_to_right(make):
    model = quiet_fit(make(n_clusters=2), BLOBS)
    assert (
        model.transform(BLOBS)[model.labels_ == 0].max()
        <= 0
        < model.transform(BLOBS)[model.labels_ == 1].min()
    )


def test_hyperplanes_are_in_the_users_own_units(make):
    model = make().fit(WINE)
    plane = model.tree_.splits[0].boundary
    if not isinstance(plane, Hyperplane) or model.tree_.mapped:
        pytest.skip("no hyperplane of the columns")
    np.testing.assert_array_equal((WINE @ plane.normal + plane.intercept > 0).astype(int), model.labels_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_and_feature_names(make, frame):
    data = load_iris(as_frame=True).data
    names = list(data.columns)
    X = frame({name: data[name].to_numpy() for name in names})
    model = make(n_clusters=3).fit(X)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.labels_, make(n_clusters=3).fit(data.to_numpy()).labels_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[names[::-1]])


def test_set_output_names_the_splits(make):
    data = load_wine(as_frame=True).data
    model = make(n_clusters=3).set_output(transform="pandas").fit(data)
    out = model.transform(data)
    prefix = type(model).__name__.lower()
    assert list(out.columns) == [f"{prefix}0", f"{prefix}1"]
    assert list(out.index) == list(data.index)
    assert len(model.decision_function(data)) == len(data)


def test_clone_pickle_and_pipeline(make):
    model = quiet_fit(make(n_clusters=3), WINE)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(WINE), model.labels_)
    np.testing.assert_array_equal(quiet_fit(clone(model), WINE).labels_, model.labels_)
    piped = make_pipeline(StandardScaler(), make(n_clusters=3, standardize=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = piped.fit_predict(WINE)
    agree = pd.crosstab(labels, model.labels_).max(axis=1).sum()
    assert agree > 0.97 * len(WINE)


def test_with_auto_the_minimum_weight_grows_with_the_weight_not_with_the_number_of_rows():
    X = np.concatenate([BLOBS, two_blobs(10, 4, gap=0.0)[0] + 40])
    weights = np.full(310, 4.0)
    min_weight = AUTO_MIN_SIZE * np.sqrt(4 * 310)  # 53 of 1240: the last ten rows, of weight 40, are too few
    assert MinimumDensity("auto")._limits(len(X), weights.sum(), "auto").min_weight == pytest.approx(
        min_weight
    )
    options = {"outliers": "include"}  # otherwise a lighter group is a cluster, because it is far
    model = quiet_fit(MinimumDensity("auto", **options), X, sample_weight=weights)
    assert 4 * np.bincount(model.labels_).min() >= min_weight
    lower = quiet_fit(MinimumDensity("auto", min_cluster_size=30, **options), X, sample_weight=weights)
    assert np.bincount(lower.labels_).min() == 10


def test_min_cluster_size(make):
    model = quiet_fit(make(n_clusters=8, min_cluster_size=30), WINE)
    assert model.n_clusters_ >= 3
    assert np.bincount(model.labels_).min() >= 30
    assert np.bincount(quiet_fit(make(n_clusters=8), WINE).labels_).min() < 30


def test_fewer_clusters_than_requested_is_a_warning(make):
    with pytest.warns(ConvergenceWarning, match=r"found \d+ of 100 clusters"):
        model = make(n_clusters=100, min_cluster_size=40).fit(WINE)
    assert model.n_clusters_ < 100
    assert model.n_clusters_ == len(set(model.labels_))


def test_weights_that_add_up_to_one_row_are_a_warning(make):
    with pytest.warns(UserWarning, match="the weights add up to 1 rows, .* scale the weights"):
        make().fit(WINE, sample_weight=np.full(len(WINE), 1 / len(WINE)))


def test_few_rows_with_weight_among_many_without(make):
    X = np.random.default_rng(0).standard_normal((40_000, 3))
    weights = np.zeros(40_000)
    few = np.arange(20_000, 20_300)
    X[few[:150]] += 15
    weights[few] = 1.0
    model = quiet_fit(make(), X, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_[few], quiet_fit(make(), X[few]).labels_)


# --- progress, interrupts, passes ------------------------------------------------------------------------


def test_verbose_prints_one_line_per_split(make, capsys):
    model = quiet_fit(make(n_clusters=4, verbose=True), WINE)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_clusters_ - 1
    for word in ("clusters", "rows with quality", "passes", " s)"):
        assert word in lines[0]


def test_a_function_as_verbose_sees_every_split_and_nothing_is_printed(make, capsys):
    received = []
    model = quiet_fit(make(n_clusters=4, verbose=received.append), WINE)
    assert all(isinstance(progress, Progress) for progress in received)
    assert [progress.n_leaves for progress in received] == list(range(2, model.n_clusters_ + 1))
    assert received[0].weight == len(WINE)
    assert not capsys.readouterr().out


def test_an_interrupt_keeps_the_tree_found_so_far(make):
    def stop(progress):
        if progress.n_leaves == 3:
            raise KeyboardInterrupt

    model = make(n_clusters=10, verbose=stop)
    with pytest.warns(InterruptedWarning, match="interrupted: .* with 3 clusters") as caught:
        model.fit(DIGITS)
    assert not [w for w in caught if "found 3 of 10" in str(w.message)]  # nobody knows whether there are more
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.predict(DIGITS), model.labels_)


def test_only_leaves_that_may_be_split_are_searched(make, monkeypatch):
    calls = []
    find = grow.Growth.find
    monkeypatch.setattr(grow.Growth, "find", lambda *args: calls.append(1) or find(*args))
    model = quiet_fit(make(n_clusters=4), DIGITS)
    assert model.n_clusters_ == 4
    assert 3 <= len(calls) <= 2 * 4 - 3  # light leaves may wait until there are enough


def test_n_passes_counts_the_rows_read(make):
    model = quiet_fit(make(n_clusters=3), WINE)
    assert model.n_passes_ >= 3
    steps = [split.n_iter for split in model.tree_.splits if split is not None]
    assert len(steps) == 2
    assert model.n_iter_ == (sum(steps) or 1)
    if not isinstance(model, PrincipalDirection):
        assert min(steps) >= 1


# --- the orders of growth --------------------------------------------------------------------------------


def test_split_order_size_splits_the_largest_leaf_first():
    tree = with_order(MinimumDensity(8), "size").fit(DIGITS).tree_
    for k, node in enumerate(tree.inner[1:], start=1):
        open_leaves = [
            other
            for other in range(tree.n_nodes)
            if (other == 0 or tree.order[tree.parent[other]] < k) and not 0 <= tree.order[other] < k
        ]
        splittable = [other for other in open_leaves if tree.splits[other] is not None]
        assert tree.weight[node] == max(tree.weight[other] for other in splittable)


# --- warnings ---------------------------------------------------------------------------------------------


def test_warnings_of_a_fit_name_the_line_of_the_caller():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=200), np.ones(200)])
    far = np.vstack([rng.normal(size=(200, 2)), [[1e6, 0.0]]])
    discrete = np.column_stack([rng.normal(size=200), rng.integers(0, 2, 200)])
    one_class = np.where(np.arange(200) == 0, 1, -1)
    two_classes = np.where(np.arange(200) < 4, np.arange(200) % 2, -1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MinimumDensity().fit(rows)
        MinimumDensity(90, max_depth=2).fit(far)
        MinimumDensity(2).fit(np.column_stack([np.arange(200), discrete[:, 1]]))
        MinimumDensity().fit(rows, sample_weight=np.full(200, 1e-3))
        MinimumDensity(2).fit(discrete, one_class)
        PrincipalDirection(2).fit(discrete, two_classes)
    messages = " ".join(str(warning.message) for warning in caught)
    for words in ("constant", "one cluster", "far from all", "of 90 clusters", "discrete column"):
        assert words in messages
    for words in ("add up to", "one class only", "ignores the partial labels"):
        assert words in messages
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("model", [PrincipalDirection(), MaximinSeparation(solver="eig")])
def test_with_auto_a_mean_within_a_cluster_does_not_hide_three_clusters(model):
    centers = np.array([[3.0, 3.0], [17.0, 4.0], [4.0, 30.0]])
    labels = np.repeat(np.arange(3), 300)
    X = centers[labels] + np.random.default_rng(3).standard_normal((900, 2))
    assert adjusted_rand_score(labels, model.fit(X).labels_) == 1.0
    assert model.fit(np.random.default_rng(4).standard_normal((900, 2))).n_clusters_ == 1


def test_an_interrupt_before_the_first_split_leaves_the_model_as_it_was(make, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    model = quiet_fit(make(3), WINE)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    monkeypatch.setattr("ravine.data.memory.MemoryRows.pass_over", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(GOOD[:, :2])
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


def test_a_fit_leaves_nothing_of_the_one_before():
    frame = pd.DataFrame(WINE).add_prefix("x")
    model = MinimumDensity().fit(frame)
    model.fill_ = np.zeros(13)  # as the command line leaves it
    with pytest.raises(InvalidInputError, match="NaN"):
        model.fit(frame * np.nan)
    assert {"fill_", "feature_names_in_"} <= vars(model).keys()
    model.set_params(n_clusters=2, kernel=lambda A, B: np.asarray(A) @ np.asarray(B).T).fit(WINE)
    assert not {"fill_", "feature_names_in_"} & vars(model).keys()
