"""AutoCluster: in the columns or along neighbors, whichever is found again."""

import pickle

import numpy as np
import pytest
from benchmarks.generators import customers
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import ravine
from ravine import AutoCluster, InvalidInputError, InvalidModelError, MinimumDensity, metrics
from ravine.estimators.auto_cluster import ALONG_NEIGHBORS, IN_COLUMNS
from ravine.store.archive import read_archive, write_archive

WINE, CLASSES = load_wine(return_X_y=True)
IRIS = load_iris().data


@pytest.fixture(scope="module")
def wine():
    return AutoCluster().fit(WINE)


# --- what is found ----------------------------------------------------------------------------------------


def test_known_tables(wine):
    assert wine.n_clusters_ == 3
    assert adjusted_rand_score(CLASSES, wine.labels_) > 0.85
    assert AutoCluster().fit(IRIS).n_clusters_ == 2
    X, y = load_breast_cancer(return_X_y=True)
    model = AutoCluster().fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.labels_) > 0.6


@pytest.mark.parametrize("draw", [lambda: make_circles(600, noise=0.05, factor=0.4, random_state=0),
                                  lambda: make_moons(600, noise=0.06, random_state=1)])  # fmt: skip
@pytest.mark.parametrize("n_clusters", ["auto", 2])
def test_curved_clusters_are_found_along_neighbors(draw, n_clusters):
    X, y = draw()
    model = AutoCluster(n_clusters).fit(X)
    assert model.candidates_[0].name == ALONG_NEIGHBORS
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_long_blobs_are_found_in_the_columns():
    X, y = make_blobs(900, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    model = AutoCluster().fit(X @ [[0.6, -0.6], [-0.4, 0.8]])
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_no_clusters_are_made_up():
    for X in (np.random.default_rng(0).random((500, 2)), np.random.default_rng(1).standard_normal((500, 5))):
        with pytest.warns(UserWarning, match="one cluster"):
            model = AutoCluster().fit(X)
        assert model.n_clusters_ == 1
        assert model.predict(X[:3]).tolist() == [0, 0, 0]
        assert "no clusters" in str(model.candidates_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plan", [False, True])
def test_discrete_columns_do_not_fool_it(plan):
    X, y = customers(np.random.default_rng(0), plan_is_segment=plan)
    for n_clusters in (4, "auto"):
        model = AutoCluster(n_clusters).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.filterwarnings("ignore")
def test_a_gap_of_a_discrete_column_is_no_cluster_along_neighbors():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((400, 2)), rng.random((400, 2)) < [0.5, 0.3]])
    assert MinimumDensity(kernel="diffusion").fit(X).n_clusters_ == 1
    assert AutoCluster().fit(X).n_clusters_ == 1
    (only,) = AutoCluster(2).fit(X).candidates_
    assert (only.name, only.verdict) == (IN_COLUMNS, "kept: the only one")


# --- the estimator ----------------------------------------------------------------------------------------


def test_everything_is_the_winners(wine):
    best = wine.best_estimator_
    assert wine.tree_ is best.tree_
    alone = MinimumDensity(kernel="diffusion").fit(WINE)
    np.testing.assert_array_equal(alone.labels_, wine.labels_)
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(wine, name)(WINE), getattr(best, name)(WINE))
    np.testing.assert_array_equal(wine.predict(WINE), wine.labels_)
    assert wine.get_feature_names_out().tolist() == ["autocluster0", "autocluster1"]


def test_the_table_says_why(wine):
    head, first, second = str(wine.candidates_).splitlines()
    assert head.split() == ["clusters", "figure", "seconds"]
    assert first.startswith(ALONG_NEIGHBORS)
    assert first.endswith("kept: found again more often")
    assert second.startswith(IN_COLUMNS)
    assert second.endswith("found again less often")
    assert wine.candidates_[0].figure > wine.candidates_[1].figure > 0.0


def test_weights_are_copies_with_a_given_number():
    counts = np.random.default_rng(0).integers(0, 3, len(IRIS))
    one = AutoCluster(3).fit(IRIS, sample_weight=counts)
    two = AutoCluster(3).fit(np.repeat(IRIS, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(one.labels_, counts), two.labels_)


def test_units_of_the_columns_do_not_matter():
    one, two = AutoCluster().fit(IRIS), AutoCluster().fit(IRIS * [1.0, 1e-5, 1e4, 10.0] + 7.0)
    assert one.candidates_[0].name == two.candidates_[0].name
    assert metrics.v_measure(one.labels_, two.labels_) > 0.99


def test_a_data_frame_gives_names():
    frame = load_iris(as_frame=True).data
    model = AutoCluster().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert "petal" in str(model.tree_)
    model.predict(frame)  # without a warning about names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    assert "AutoCluster" in ravine.report(model, frame)


def test_sparse_rows():
    rng = np.random.default_rng(0)
    topic = np.repeat([0, 1], 80)
    X = rng.poisson(np.array([[2.0] * 10 + [0.1] * 10, [0.1] * 10 + [2.0] * 10])[topic]).astype(float)
    for n_clusters in (2, "auto"):
        model = AutoCluster(n_clusters).fit(sparse.csr_matrix(X))
        assert metrics.v_measure(topic, model.labels_) > 0.9


def test_candidates_have_the_parameters_of_all():
    model = AutoCluster(random_state=7, n_jobs=2, outliers="include").fit(IRIS)
    best = model.best_estimator_
    assert (best.random_state, best.n_jobs, best.outliers, best.n_clusters) == (7, 2, "include", "auto")


def test_a_second_fit_is_like_a_first_one(wine):
    again = AutoCluster().fit(IRIS).fit(WINE)
    np.testing.assert_array_equal(again.labels_, wine.labels_)
    np.testing.assert_array_equal(again.predict(WINE), wine.predict(WINE))


def test_only_the_winners_warnings_are_given():
    X = np.column_stack([IRIS, np.ones(150)])
    with pytest.warns(UserWarning, match="1 of 5 columns are constant") as caught:
        AutoCluster(2).fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_progress_and_verbose(capsys):
    seen = []
    AutoCluster(3, verbose=seen.append).fit(WINE)
    assert len(seen) == 4
    assert not capsys.readouterr().out
    AutoCluster(verbose=True).fit(WINE)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"[AutoCluster] {x}" for x in (ALONG_NEIGHBORS, IN_COLUMNS)
    ]


# --- errors, files, pipelines -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": "best"}, "n_clusters"),
        ({"standardize": "no"}, "standardize has to be True, False"),
        ({"outliers": "drop"}, "outliers"),
        ({"verbose": "loud"}, "verbose"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters_are_one_clear_error(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        AutoCluster(**{"n_clusters": 2, **parameters}).fit(IRIS)


def test_a_failed_fit_leaves_the_last_result():
    model = AutoCluster(2).fit(IRIS)
    labels = model.labels_
    with pytest.raises(InvalidInputError, match="NaN"):
        model.fit(np.full((10, 4), np.nan))
    assert model.labels_ is labels


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_save_and_load(n_clusters, tmp_path):
    frame = load_wine(as_frame=True).data
    model = AutoCluster(n_clusters, random_state=1).fit(frame)
    ravine.save(model, tmp_path / "m.ravine")
    again = ravine.load(tmp_path / "m.ravine")
    assert type(again) is AutoCluster
    assert again.tree_ == model.tree_
    assert str(again.candidates_) == str(model.candidates_)
    assert (again.n_clusters, again.random_state) == (n_clusters, 1)
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    assert list(again.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    "change",
    [
        lambda auto: auto.update(candidates=[]),
        lambda auto: auto["candidates"][0].update(figure="high"),
        lambda auto: auto["candidates"][0].update(verdict=3),
        lambda auto: auto["parameters"].update(outliers="none such"),
        lambda auto: auto.pop("parameters"),
    ],
)
def test_a_damaged_choice_is_refused(change, tmp_path):
    path = tmp_path / "m.ravine"
    ravine.save(AutoCluster(2).fit(IRIS), path)
    with open(path, "rb") as file:
        stored = read_archive(file)
    change(stored.facts["auto"])
    path.write_bytes(write_archive(stored.facts, stored.arrays))
    with pytest.raises(InvalidModelError):
        ravine.load(path)


def test_pickle_and_pipeline(wine):
    again = pickle.loads(pickle.dumps(wine))
    np.testing.assert_array_equal(again.predict(WINE), wine.labels_)
    pipe = make_pipeline(FunctionTransformer(), AutoCluster(n_jobs=2)).fit(WINE)
    np.testing.assert_array_equal(pipe[-1].labels_, wine.labels_)
