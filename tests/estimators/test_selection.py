"""The choice among clusterings without labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine

import ravine
from ravine import (
    InvalidInputError,
    MaximinSeparation,
    MinimumDensity,
    PrincipalDirection,
    compare,
    metrics,
    select,
)
from ravine.data.memory import MemoryRows
from ravine.estimators import judging
from ravine.estimators.judging import SCORE_REGULARIZATION, Judges, Judgment, best_first
from ravine.estimators.methods import CLUSTERERS
from ravine.features.neighbors import row_graph
from tests import judges
from tests.split.test_separation import with_a_far_row

WINE = load_wine().data


class FirstRows(ClusterMixin, BaseEstimator):
    """Puts the first rows into one cluster and the others into another."""

    def __init__(self, n_rows=1, n_clusters=2):
        self.n_rows = n_rows
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.labels_ = (np.arange(len(X)) >= self.n_rows).astype(int)
        return self


class Sizes(ClusterMixin, BaseEstimator):
    """Makes clusters of given sizes, in the order of the rows."""

    def __init__(self, sizes=(1, 1)):
        self.sizes = sizes

    def fit(self, X, y=None):
        self.labels_ = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return self


def test_the_highest_sum_of_ranks_wins():
    found = select(
        WINE, PrincipalDirection(2), {"threshold": ["mean", "density"], "standardize": [True, False]}
    )
    assert len(found.candidates) == 4
    for c in found.candidates:
        assert c.separation_probability == metrics.separation_probability(
            WINE, c.estimator.labels_, regularization=SCORE_REGULARIZATION
        )
        assert c.smallest_share == np.bincount(c.estimator.labels_).min() / len(WINE)
    scores = [c.rank_sum for c in found.candidates if c.allowed]
    assert scores == sorted(scores, reverse=True)
    assert found.best is found.candidates[0].estimator
    assert "threshold='density'" in str(found)


def with_an_outlier():
    """Two clusters, and a row that is not so far from them that it is left out: the judges see it."""
    X, truth = with_a_far_row()
    X[0] *= 0.15
    assert len(ravine.MinimumDensity(2).fit(X).outliers_) == 0
    return X, truth


def test_one_outlier_does_not_win():
    X, _ = with_an_outlier()
    found = select(X, {"true": FirstRows(500), "far row": FirstRows(1)})
    assert [c.name for c in found.candidates] == ["true", "far row"]
    best, far = found.candidates
    assert far.separation_probability > best.separation_probability
    assert not far.allowed
    assert "too small to count" in str(found)
    assert all(c.allowed for c in select(X, [FirstRows(500), FirstRows(1)], min_share=0.0))


def test_compare_does_not_rank_an_outlier_first():
    X, _ = with_an_outlier()
    found = compare(X, 2, methods=[FirstRows(1), *(make() for make in CLUSTERERS.values())])
    far = next(c for c in found.candidates if c.name == "FirstRows()")
    assert far.separation_probability == max(c.separation_probability for c in found.candidates)
    assert far is found.candidates[-1]
    assert found.candidates[0].smallest_share >= 0.05


def test_compare_uses_the_given_minimum_share():
    X, _ = with_an_outlier()
    methods = [FirstRows(1), FirstRows(500)]
    assert compare(X, 2, methods=methods).best.n_rows == 500
    assert [c.allowed for c in compare(X, 2, methods=methods)] == [True, False]
    assert all(c.allowed for c in compare(X, 2, methods=methods, min_share=0.0))


def test_if_no_cluster_is_large_enough_the_largest_wins_with_a_warning():
    X, _ = with_an_outlier()
    with pytest.warns(UserWarning, match="no candidate has 0.05"):
        found = select(X, [FirstRows(1), FirstRows(20)])
    assert found.best.n_rows == 20


def test_compare_runs_every_method():
    assert {"MinimumDensity", "MaximinSeparation"} <= CLUSTERERS.keys() <= set(ravine.__all__)
    found = compare(WINE, 3)
    assert {type(c.estimator) for c in found.candidates} == set(CLUSTERERS.values())
    kernels = [c.estimator.kernel for c in found.candidates]
    assert (len(kernels), kernels.count("diffusion")) == (len(CLUSTERERS) + 2, 2)
    assert all(c.n_clusters == 3 for c in found.candidates)
    assert found.candidates[0].separation_probability > 0.5


def test_estimators_of_scikit_learn_are_candidates_and_shares_are_relative_to_the_number_of_clusters():
    found = select(WINE, [KMeans(random_state=0, n_init=1)], {"n_clusters": [2, 8]})
    assert sorted(c.n_clusters for c in found.candidates) == [2, 8]
    X = np.random.default_rng(0).standard_normal((200, 2))
    allowed = {
        c.estimator.sizes: c.allowed
        for c in select(
            X, [Sizes(s) for s in ((10, 190), (9, 191), (5, 60, 60, 75), (4, 60, 60, 76))]
        ).candidates
    }
    # 5 % of 200 rows for two clusters, half of that for four
    assert allowed == {(10, 190): True, (9, 191): False, (5, 60, 60, 75): True, (4, 60, 60, 76): False}


def test_weights_reach_the_fit_and_the_score():
    counts = np.random.default_rng(0).integers(1, 4, len(WINE))
    one = select(WINE, [MinimumDensity(2), MaximinSeparation(2)], sample_weight=counts)
    two = select(np.repeat(WINE, counts, axis=0), [MinimumDensity(2), MaximinSeparation(2)])
    for a, b in zip(one.candidates, two.candidates, strict=True):
        assert a.name == b.name
        assert a.separation_probability == pytest.approx(b.separation_probability, rel=1e-6)


def test_no_split_and_no_candidates():
    with pytest.warns(UserWarning, match="no candidate"):
        found = select(np.ones((10, 2)), [MaximinSeparation(2)])
    assert (found.candidates[0].n_clusters, found.candidates[0].separation_probability) == (1, 0.0)
    assert "no split" in str(found)
    with pytest.raises(InvalidInputError, match="at least one candidate"):
        select(WINE, [])
    with pytest.raises(InvalidInputError, match="min_share"):
        select(WINE, [MinimumDensity(2)], min_share=2)


def test_every_candidate_is_an_estimator_of_its_own_and_the_given_one_stays_as_it_was():
    given = ravine.MinimumDensity(4)
    found = select(WINE, given, {"n_clusters": [2, 3]})
    assert {c.estimator.n_clusters for c in found} == {c.estimator.n_clusters_ for c in found} == {2, 3}
    assert given.n_clusters == 4
    assert not hasattr(given, "tree_")


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


def test_equal_candidates_keep_their_order():
    same = Judgment(0.9, 0.4, 0.1, 0.1, 0.3, 2)
    assert best_first([same, same, same], np.array([6.0, 6.0, 6.0]), 0.05) == [0, 1, 2]
    assert judging.ranks(np.array([0.3, 0.3 + 1e-13, 0.1])).tolist() == [2.5, 2.5, 1.0]


def test_weights_are_copies_for_all_judges():
    iris = load_iris().data
    counts = np.random.default_rng(0).integers(0, 3, len(iris))
    one = compare(iris, 3, sample_weight=counts)
    two = compare(np.repeat(iris, counts, axis=0), 3)
    assert [c.name for c in one] == [c.name for c in two]
    for a, b in zip(one, two, strict=True):
        for figure in (
            "separation_probability",
            "modularity",
            "normalized_cut",
            "agreement",
            "smallest_share",
        ):
            assert getattr(a, figure) == pytest.approx(getattr(b, figure), rel=1e-6, abs=1e-9)
