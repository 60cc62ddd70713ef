"""AutoCluster: several methods, judged without labels, one winner."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_circles, make_moons
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import ravine
from ravine import (
    AutoCluster,
    InvalidInputError,
    InvalidModelError,
    MinimumDensity,
    SpectralConnectivity,
    metrics,
)
from ravine.data.memory import MemoryRows
from ravine.estimators import judging, methods
from ravine.estimators.judging import Judges, Judgment, best_first
from ravine.features.neighbors import row_graph
from ravine.store.archive import read_archive, write_archive
from tests import judges

WINE, CLASSES = load_wine(return_X_y=True)
IRIS = load_iris().data
FEW = ["minimum-density", "maximin-separation", "minimum-density diffusion"]


@pytest.fixture(scope="module")
def wine():
    return AutoCluster(3).fit(WINE)


# --- the judges -------------------------------------------------------------------------------------------


def test_the_judges_say_what_the_metrics_say(wine):
    labelings = [c.estimator.labels_ for c in wine.candidates_]
    agreement = metrics.agreement(labelings)
    for c, labels, agrees in zip(wine.candidates_, labelings, agreement, strict=True):
        assert c.modularity == pytest.approx(judges.modularity(WINE, labels))
        assert c.normalized_cut == pytest.approx(judges.normalized_cut(WINE, labels))
        assert c.separation_probability == metrics.separation_probability(
            WINE, labels, regularization=judging.SCORE_REGULARIZATION
        )
        assert c.agreement == pytest.approx(agrees)


def test_the_winner_has_the_highest_sum_of_ranks(wine):
    names = ("separation_probability", "modularity", "agreement")
    figures = np.array([[getattr(c, name) for name in names] for c in wine.candidates_])
    sums = [
        sum((figures[:, j] < x[j]).sum() + (figures[:, j] <= x[j]).sum() for j in range(3)) for x in figures
    ]
    expected = [(s + 3) / 2 for s in sums]  # the mean of the lowest and the highest rank of equal figures
    assert [c.rank_sum for c in wine.candidates_] == expected
    assert expected[0] == max(expected)
    assert metrics.v_measure(CLASSES, wine.labels_) > 0.85


def judgment(msp, q, ratio, share=0.3, k=2):
    return Judgment(msp, q, 2 * ratio, ratio, share, k)


def test_a_clustering_that_separates_far_fewer_neighbors_goes_first():
    linear, ring = judgment(0.9, 0.48, 0.06), judgment(0.1, 0.47, 0.004)
    assert best_first([linear, ring], np.array([6.0, 3.0]), 0.05) == [1, 0]
    less_modular = judgment(0.1, 0.40, 0.004)
    assert best_first([linear, less_modular], np.array([6.0, 3.0]), 0.05) == [0, 1]
    a_few_more = judgment(0.1, 0.47, 0.02)
    assert best_first([linear, a_few_more], np.array([6.0, 3.0]), 0.05) == [0, 1]
    tiny = judgment(0.1, 0.47, 0.004, share=0.01)
    assert best_first([linear, tiny], np.array([6.0, 3.0]), 0.05) == [0, 1]


def test_a_clustering_that_separates_no_neighbors_goes_first_although_its_sizes_are_unequal():
    linear, apart = judgment(0.9, 0.48, 0.06), judgment(0.1, 0.35, 0.001)
    assert best_first([linear, apart], np.array([6.0, 3.0]), 0.05) == [1, 0]
    finer = judgment(0.9, 0.6, 0.06, k=3)  # of which the other may be groups
    assert best_first([finer, apart], np.array([6.0, 3.0]), 0.05) == [0, 1]
    assert best_first([linear, judgment(0.1, 0.35, 0.003)], np.array([6.0, 3.0]), 0.05) == [0, 1]
    assert best_first([linear, judgment(0.1, 0.35, 0.0, share=0.01)], np.array([6.0, 3.0]), 0.05) == [0, 1]


def test_moons_of_unequal_sizes_are_found():
    """A diagonal through both halves them, which is more modular."""
    X, y = make_moons((600, 180), noise=0.05, random_state=0)
    model = AutoCluster(2).fit(X)
    assert metrics.v_measure(y, model.labels_) > 0.99
    assert max(c.modularity for c in model.candidates_) > model.candidates_[0].modularity + 0.05


def test_ties_go_to_the_candidate_that_was_given_first():
    same = judgment(0.9, 0.4, 0.1)
    assert best_first([same, same, same], np.array([6.0, 6.0, 6.0]), 0.05) == [0, 1, 2]
    assert judging.ranks(np.array([0.3, 0.3 + 1e-13, 0.1])).tolist() == [2.5, 2.5, 1.0]


def test_wide_rows_are_judged_by_their_principal_components():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60)
    X = rng.standard_normal((120, 300)) + 0.7 * labels[:, None]
    judges = Judges(MemoryRows(X), None)
    assert judges._columns.shape == (120, judging.MSP_COLUMNS)
    assert (
        judges(labels).separation_probability > 0.9 > judges(rng.permutation(labels)).separation_probability
    )
    wide = sparse.random_array(
        (80, 6000), density=0.01, random_state=0, format="csr"
    )  # above the limit of the MSP itself
    assert 0 < Judges(MemoryRows(sparse.csr_matrix(wide)), None)(np.arange(80) % 2).separation_probability < 1


def test_more_rows_are_judged_on_a_sample():
    X = np.random.default_rng(0).standard_normal((7000, 2))
    graph = row_graph(MemoryRows(X))
    assert len(graph.numbers) == 5000 == len(np.unique(graph.numbers))
    labels = (X[:, 0] > 0).astype(int)
    found = Judges(MemoryRows(X), None)(labels)
    assert found.smallest_share == min(labels.mean(), 1 - labels.mean())
    assert found.modularity == pytest.approx(judges.modularity(X, labels, max_rows=7000), abs=0.01)


# --- the estimator ----------------------------------------------------------------------------------------


def test_rings_are_separated_although_no_hyperplane_does():
    X, ring = make_circles(400, noise=0.05, factor=0.4, random_state=0)
    model = AutoCluster(2).fit(X)
    assert metrics.v_measure(ring, model.labels_) > 0.95
    assert model.candidates_[0].name.endswith("diffusion")
    assert model.tree_.mapped


def test_the_winner_is_what_it_would_be_alone(wine):
    for c in wine.candidates_:
        alone = methods.make_method(c.name).set_params(n_clusters=3).fit(WINE)
        np.testing.assert_array_equal(alone.labels_, c.estimator.labels_)
        assert alone.n_passes_ == pytest.approx(c.estimator.n_passes_, abs=0.01)
        assert alone.tree_ == c.estimator.tree_
    mapped = [c.estimator.feature_map_ for c in wine.candidates_ if c.name.endswith("diffusion")]
    assert len(mapped) == 2
    assert mapped[0] is mapped[1]


def test_everything_else_is_the_winners(wine):
    best = wine.best_estimator_
    assert best is wine.candidates_[0].estimator
    assert wine.tree_ is best.tree_
    assert wine.n_clusters_ == 3
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(wine, name)(WINE), getattr(best, name)(WINE))
    np.testing.assert_array_equal(wine.predict(WINE), wine.labels_)
    assert wine.get_feature_names_out().tolist() == ["autocluster0", "autocluster1"]
    shown = str(wine.candidates_).splitlines()
    assert len(shown) == 7
    assert all(word in shown[0] for word in ("MSP", "modularity", "cut", "agreement", "ranks"))


def test_the_number_of_clusters_is_found():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.3, (80, 2)) for m in ([0, 0], [3, 0], [0, 3])])
    model = AutoCluster(methods=FEW).fit(X)
    assert model.n_clusters_ == 3
    assert {c.estimator.level for c in model.candidates_} == {0.01 / 3}
    none = AutoCluster(methods=FEW[:2])
    with pytest.warns(UserWarning, match="no candidate"):
        assert none.fit(rng.standard_normal((200, 3))).n_clusters_ == 1
    assert none.predict(X[:3] @ np.ones((2, 3))).tolist() == [0, 0, 0]


def test_weights_are_copies():
    counts = np.random.default_rng(0).integers(0, 3, len(IRIS))
    one = AutoCluster(3, methods=FEW).fit(IRIS, sample_weight=counts)
    two = AutoCluster(3, methods=FEW).fit(np.repeat(IRIS, counts, axis=0))
    assert [c.name for c in one.candidates_] == [c.name for c in two.candidates_]
    for a, b in zip(one.candidates_, two.candidates_, strict=True):
        for figure in (
            "separation_probability",
            "modularity",
            "normalized_cut",
            "agreement",
            "smallest_share",
        ):
            assert getattr(a, figure) == pytest.approx(getattr(b, figure), rel=1e-6, abs=1e-9)
    np.testing.assert_array_equal(np.repeat(one.labels_, counts), two.labels_)


def test_units_of_the_columns_do_not_matter():
    one = AutoCluster(3, methods=FEW).fit(IRIS)
    two = AutoCluster(3, methods=FEW).fit(IRIS * [1.0, 1e-5, 1e4, 10.0] + 7.0)
    assert one.candidates_[0].name == two.candidates_[0].name
    assert metrics.v_measure(one.labels_, two.labels_) > 0.99


def test_a_data_frame_gives_names():
    frame = load_wine(as_frame=True).data
    model = AutoCluster(3, methods=["minimum-density"]).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert "proline" in str(model.tree_)
    model.predict(frame)  # without a warning about names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    page = ravine.report(model, frame)
    assert "AutoCluster" in page


def test_sparse_rows(wine):
    rng = np.random.default_rng(0)
    topic = np.repeat([0, 1], 80)
    X = rng.poisson(np.array([[2.0] * 10 + [0.1] * 10, [0.1] * 10 + [2.0] * 10])[topic]).astype(float)
    model = AutoCluster(2, methods=["minimum-density", "maximum-margin"]).fit(sparse.csr_matrix(X))
    assert metrics.v_measure(topic, model.labels_) > 0.9


# --- methods of other packages -----------------------------------------------------------------------------


class FirstRows(ClusterMixin, BaseEstimator):
    """Has labels, and nothing else."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.labels_ = (np.arange(len(X)) >= 50).astype(int) + (np.arange(len(X)) >= 100)
        self.seen_ = np.asarray(X)
        return self


def test_clusterers_of_other_packages_are_judged_alike():
    methods = [
        "maximin-separation",
        KMeans(random_state=0, n_init=1),
        GaussianMixture(random_state=0),
        FirstRows(),
    ]
    model = AutoCluster(3, methods=methods).fit(IRIS)
    assert {c.n_clusters for c in model.candidates_} == {3}
    rows = next(c.estimator for c in model.candidates_ if c.name == "FirstRows()")
    np.testing.assert_allclose(rows.seen_.std(axis=0), 1.0)  # standardized, as for the others
    assert rows.n_clusters == 3
    assert all(
        c.modularity == pytest.approx(judges.modularity(IRIS, c.estimator.labels_))
        for c in model.candidates_
        if hasattr(c.estimator, "labels_")
    )


def test_a_winner_with_predict_gets_rows_on_the_same_scale():
    model = AutoCluster(3, methods=[KMeans(random_state=0, n_init=1)]).fit(WINE)
    np.testing.assert_array_equal(model.predict(WINE), model.labels_)
    assert not hasattr(model, "tree_")


def test_a_winner_without_predict_says_so(tmp_path):
    model = AutoCluster(3, methods=[FirstRows()]).fit(IRIS)
    assert model.n_clusters_ == 3
    with pytest.raises(InvalidInputError, match=r"FirstRows\(\), which has no predict"):
        model.predict(IRIS)
    with pytest.raises(InvalidInputError, match="a model file cannot hold"):
        ravine.save(model, tmp_path / "m")
    with pytest.raises(InvalidInputError, match="takes no sample_weight"):
        AutoCluster(3, methods=[FirstRows()]).fit(IRIS, sample_weight=np.ones(150))


def test_named_methods_of_other_packages(monkeypatch):
    model = AutoCluster(3, methods=["spectral-clustering", "hdbscan"]).fit(IRIS)
    assert {c.name for c in model.candidates_} == {"spectral-clustering", "hdbscan"}
    monkeypatch.setitem(methods.FOREIGN, "genie", ("a_package_that_nobody_has", "Genie", {}))
    with pytest.raises(InvalidInputError, match="package a_package_that_nobody_has"):
        AutoCluster(3, methods=["genie"]).fit(IRIS)


def test_with_auto_they_get_the_number_of_clusters_of_the_best_of_ravine():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.3, (80, 2)) for m in ([0, 0], [3, 0], [0, 3])])
    model = AutoCluster(methods=["minimum-density", KMeans(n_init=1, random_state=0)]).fit(X)
    assert [c.n_clusters for c in model.candidates_] == [3, 3]
    with pytest.raises(InvalidInputError, match="needs a method of ravine"):
        AutoCluster(methods=[KMeans()]).fit(X)


# --- errors, files, pipelines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": "many"}, "n_clusters"),
        ({"methods": ["k-means"]}, "methods may name .*'minimum-density'"),
        ({"methods": "minimum-density"}, "a list of methods"),
        ({"methods": []}, "at least one method"),
        ({"methods": ["minimum-density"] * 2}, "twice"),
        ({"methods": [3]}, "clusterers with fit_predict, got 3"),
        ({"min_share": 0.7}, "min_share"),
        ({"level": 2}, "level"),
        ({"standardize": "no"}, "standardize has to be True, False"),
        ({"verbose": "loud"}, "verbose"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters_are_one_clear_error(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        AutoCluster(**{"n_clusters": 2, **parameters}).fit(IRIS)


def test_a_failed_fit_leaves_the_last_result(wine):
    model = AutoCluster(2, methods=["minimum-density"]).fit(IRIS)
    labels = model.labels_
    with pytest.raises(InvalidInputError, match="NaN"):
        model.fit(np.full((10, 4), np.nan))
    assert model.labels_ is labels


def test_save_and_load(wine, tmp_path):
    frame = load_wine(as_frame=True).data
    for model in (
        AutoCluster(3).fit(frame),
        AutoCluster(3, methods=("maximin-separation",), random_state=1).fit(frame),
    ):
        path = tmp_path / f"{len(model.candidates_)}.ravine"
        ravine.save(model, path)
        again = ravine.load(path)
        assert type(again) is AutoCluster
        assert again.tree_ == model.tree_
        assert str(again.candidates_) == str(model.candidates_)
        assert again.n_clusters_ == 3
        assert again.random_state == model.random_state
        assert list(again.methods or ()) == list(model.methods or ())
        np.testing.assert_array_equal(again.predict(frame), model.labels_)
        assert list(again.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    "change",
    [
        lambda auto: auto.update(candidates=[]),
        lambda auto: auto["candidates"][0].update(modularity="high"),
        lambda auto: auto["candidates"][0].update(allowed="yes"),
        lambda auto: auto["parameters"].update(methods=["none such"]),
        lambda auto: auto.pop("parameters"),
    ],
)
def test_a_damaged_choice_is_refused(change, tmp_path):
    path = tmp_path / "m.ravine"
    ravine.save(AutoCluster(2, methods=["minimum-density"]).fit(IRIS), path)
    with open(path, "rb") as file:
        stored = read_archive(file)
    change(stored.facts["auto"])
    path.write_bytes(write_archive(stored.facts, stored.arrays))
    with pytest.raises(InvalidModelError):
        ravine.load(path)


def test_pickle_pipeline_and_threads(wine):
    again = pickle.loads(pickle.dumps(wine))
    np.testing.assert_array_equal(again.predict(WINE), wine.labels_)
    pipe = make_pipeline(FunctionTransformer(), AutoCluster(3, methods=FEW[:2], n_jobs=2)).fit(WINE)
    np.testing.assert_array_equal(pipe[-1].labels_, AutoCluster(3, methods=FEW[:2]).fit(WINE).labels_)


def test_progress_and_verbose(capsys):
    seen = []
    AutoCluster(3, methods=FEW, verbose=seen.append).fit(WINE)
    assert len(seen) == 2 * len(FEW)
    assert not capsys.readouterr().out
    AutoCluster(3, methods=FEW, verbose=True).fit(WINE)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"[AutoCluster] {name}" for name in FEW]


def test_only_the_winners_warnings_are_given():
    X = np.column_stack([IRIS, np.ones(150)])
    with pytest.warns(UserWarning, match="1 of 5 columns are constant") as caught:
        AutoCluster(2, methods=FEW).fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_expensive_methods_are_left_out_of_large_data():
    assert len(methods.default_methods((1000, 20))) == 6
    assert "maximum-margin" not in methods.default_methods((70000, 784))
    assert methods.default_methods((200, 5000)) == [
        *("minimum-density", "spectral-connectivity"),
        *("minimum-density diffusion", "spectral-connectivity diffusion"),
    ]


def test_estimators_of_ravine_keep_their_own_parameters():
    given = [MinimumDensity(bandwidth_factor=0.5), SpectralConnectivity(sigma_factor=2.0)]
    model = AutoCluster(3, methods=given).fit(IRIS)
    found = {type(c.estimator).__name__: c.estimator for c in model.candidates_}
    assert found["MinimumDensity"].bandwidth_factor == 0.5
    assert found["SpectralConnectivity"].sigma_factor == 2.0
    assert given[0].n_clusters == "auto"  # a clone was fitted


# --- the best number of clusters, which is not a test ------------------------------------------------------


def blobs(n=100):
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [4, 0], [0, 4], [4, 4], [9, 9]])
    y = np.repeat(np.arange(5), n)
    return centers[y] + 0.5 * rng.standard_normal((5 * n, 2)), y


@pytest.mark.parametrize("kernel", [None, "diffusion"])
@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity])
def test_best_is_the_cut_that_is_best_in_the_neighbor_graph(make, kernel):
    X, y = blobs()
    model = make("best", kernel=kernel).fit(X)
    assert model.n_clusters_ == 5
    assert metrics.v_measure(y, model.labels_) > 0.99
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.cut_values_[5] == max(model.cut_values_.values())
    modularity = judges.modularity(X, model.labels_)
    cut = 1 - np.array([(model.labels_ == k).mean() ** 2 for k in range(5)]).sum()  # volumes, nearly
    assert model.cut_values_[5] == pytest.approx(modularity * (modularity / cut) ** 2, rel=0.02)
    assert make(5, kernel=kernel, min_cluster_size=10).fit(X).n_clusters_ == 5


def test_best_with_one_number_for_all_candidates(tmp_path):
    X, y = blobs()
    model = AutoCluster("best", methods=[*FEW, KMeans(n_init=1, random_state=0)]).fit(X)
    assert {c.n_clusters for c in model.candidates_} == {5}
    assert metrics.v_measure(y, model.labels_) > 0.99
    single = MinimumDensity("best").fit(X)
    ravine.save(single, tmp_path / "m")
    assert ravine.load(tmp_path / "m").n_clusters == "best"


def test_best_where_there_is_no_split_is_one_cluster():
    with pytest.warns(UserWarning, match="no candidate|constant"):
        model = AutoCluster("best", methods=FEW).fit(np.ones((30, 2)))
    assert model.n_clusters_ == 1


def test_candidates_have_the_seed_and_the_threads_of_all():
    model = AutoCluster(2, methods=FEW, random_state=7, n_jobs=2).fit(IRIS)
    assert [(one.estimator.random_state, one.estimator.n_jobs) for one in model.candidates_] == [(7, 2)] * 3


def test_a_second_fit_is_like_a_first_one():
    model = AutoCluster(2, methods=["minimum-density diffusion"]).fit(IRIS)
    again, new = model.fit(WINE), AutoCluster(2, methods=["minimum-density diffusion"]).fit(WINE)
    np.testing.assert_array_equal(again.labels_, new.labels_)
    np.testing.assert_array_equal(again.predict(WINE), new.predict(WINE))
