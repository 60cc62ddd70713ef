"""Splits by spectral connectivity: exact figures, balance, several directions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import ravine
from ravine import RavineError, SpectralConnectivity
from ravine.data import node
from ravine.index.connectivity import BETAS
from ravine.index.graph import GraphConnectivity
from ravine.split.boundary import NearestCenter
from ravine.split.directions import OrthogonalDirections
from tests.changed_method import with_method
from tests.index.test_connectivity import dense
from tests.oracles import two_blobs


def with_beta(model, beta):
    """The estimator that moves rows beyond one beta inwards."""

    def change(method, rows):
        schedule = replace(method.schedule, betas=(beta,))
        if isinstance(method, OrthogonalDirections):
            return replace(method, univariate=replace(method.univariate, schedule=schedule))
        return replace(method, schedule=schedule)

    return with_method(model, change)


def test_the_eigenvalue_is_that_over_all_rows():
    X = load_iris().data
    model = with_beta(SpectralConnectivity(2), 50.0).fit(X)
    split = model.tree_.splits[0]
    points = np.sort(split.boundary.signed_distance(model.tree_.rows(X)))
    exact = dense(points, np.ones(150), split.facts["sigma"])
    assert split.value / (1 + split.value) == pytest.approx(exact, rel=0.01)


def outlying(seed=0):
    """Two groups, and a few rows far away."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    X[:140, 0] += 6.0
    X[:6, 1] += 60.0
    return X, np.arange(300) < 140


@pytest.mark.parametrize("n_directions", [1, 2])
def test_beta_is_lowered_until_the_sides_are_balanced(n_directions):
    X, truth = outlying()
    options = {"n_directions": n_directions, "outliers": "include"}  # otherwise the six rows are a cluster
    wide = with_beta(SpectralConnectivity(2, **options), 8.0).fit(X)
    assert np.bincount(wide.labels_).min() < 20
    balanced = SpectralConnectivity(2, **options).fit(X)
    assert np.bincount(balanced.labels_).min() >= 300 / 4
    assert adjusted_rand_score(truth, balanced.labels_) > 0.9


@pytest.mark.parametrize(("n_clusters", "share"), [(2, 0.25), (5, 0.1), ("auto", 0.25)])
def test_the_balance_that_beta_is_lowered_for_is_half_a_fair_share(n_clusters, share):
    for n_directions in (1, 2):
        method = SpectralConnectivity(n_clusters, n_directions=n_directions)._method()
        assert method.schedule.least_share == pytest.approx(share)


def test_after_samples_all_rows_follow_the_beta_that_won(monkeypatch):
    monkeypatch.setattr(node, "LARGE_SAMPLE", 200)
    split = SpectralConnectivity(2).fit(two_blobs(4000, 3, gap=8.0)[0]).tree_.splits[0]
    assert split.facts["beta"] == BETAS[0]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(400, noise=0.04, random_state=0)
    noise = 0.05 * np.random.default_rng(0).standard_normal((400, 3))
    return np.hstack([X, noise]), y


@pytest.fixture(scope="module")
def curved(moons):
    return SpectralConnectivity(2, n_directions=2, standardize=False, sigma_factor=0.4).fit(moons[0])


def test_orthogonal_directions_follow_a_boundary_that_no_hyperplane_does(moons, curved):
    X, y = moons
    assert isinstance(curved.tree_.splits[0].boundary, NearestCenter)
    straight = SpectralConnectivity(2, standardize=False).fit(X)
    assert adjusted_rand_score(y, curved.labels_) > 0.95
    assert adjusted_rand_score(y, straight.labels_) < 0.8


def test_several_directions_predict_their_labels_everywhere(moons, curved, tmp_path):
    X = moons[0]
    np.testing.assert_array_equal(curved.predict(X), curved.labels_)
    np.testing.assert_array_equal(curved.predict(sparse.csr_array(X)), curved.labels_)
    np.testing.assert_array_equal(curved.predict_proba(X).argmax(axis=1), curved.labels_)
    path = tmp_path / "curved.ravine"
    ravine.save(curved, path)
    np.testing.assert_array_equal(ravine.load(path).predict(X), curved.labels_)
    again = ravine.ClusterTree.from_json(curved.tree_.to_json())
    np.testing.assert_array_equal(again.predict(X), curved.labels_)


def test_several_directions_have_no_sql_and_say_so(curved):
    with pytest.raises(RavineError, match="SQL is not available"):
        curved.tree_.export_sql("rows", columns=list("abcde"))


def test_several_directions_can_be_grafted(moons, curved):
    X = moons[0]
    base = SpectralConnectivity(2).fit(X)
    part = base.labels_ == 0
    alone = clone(curved).fit(X[part])
    assert alone.n_clusters_ == 2
    grafted = base.tree_.resplit(1, curved, X).predict(X)
    np.testing.assert_array_equal(grafted[part], alone.labels_)
    np.testing.assert_array_equal(grafted[~part], 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_directions": 0}, "n_directions"),
        ({"sigma_factor": 0.0}, "sigma_factor"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ravine.InvalidInputError, match=message):
        SpectralConnectivity(2, **parameters).fit(load_iris().data)


def test_in_several_directions_the_eigenvalue_is_that_of_the_centers_with_their_rows():
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    model = SpectralConnectivity(2, n_directions=2).fit(X)
    split = model.tree_.splits[0]
    centers = split.boundary.centers
    points = (X - split.boundary.pivot) @ split.boundary.directions.T
    nearest = ((points[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
    mass = np.bincount(nearest, minlength=len(centers)).astype(float)
    index = GraphConnectivity(split.facts["sigma"], split.facts["beta"])
    found = index.evaluate(centers - mass @ centers / mass.sum(), mass)
    assert split.value == pytest.approx(found.eigenvalue)
    assert split.facts["microclusters"] == len(centers)
