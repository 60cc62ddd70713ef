"""Splits by spectral connectivity: exact figures, balance, several directions, large margins."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import ravine
from ravine import RavineError, SpectralConnectivity
from ravine.data import node
from ravine.index.connectivity import BETAS, BINS_PER_SIGMA, ConnectivityIndex
from ravine.index.graph import GraphConnectivity
from ravine.optimize.large_margin import around_threshold, minimize_at_scale
from ravine.split import connectivity
from ravine.split.boundary import NearestCenter
from ravine.split.directions import OrthogonalDirections
from ravine.split.projection import EXACT
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


@pytest.mark.parametrize("laplacian", ["normalized", "standard"])
def test_the_eigenvalue_is_that_over_all_rows_within_the_reported_bound(laplacian):
    X = load_iris().data
    model = with_beta(SpectralConnectivity(2, laplacian=laplacian), 50.0).fit(X)
    split = model.tree_.splits[0]
    points = np.sort(split.boundary.signed_distance(model.tree_.rows(X)))
    normalized = laplacian == "normalized"
    exact = dense(points, np.ones(150), split.facts["sigma"], normalized)
    found = split.value / (1 + split.value) if normalized else split.value
    assert abs(found - exact) <= split.facts["binning_error_bound"] * exact
    assert split.facts["binning_error_bound"] < 0.1


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
    for options in ({"large_margin": True}, {"n_directions": 2}):
        method = SpectralConnectivity(n_clusters, **options)._method()
        assert method.schedule.least_share == pytest.approx(share)
        assert getattr(method, "least_share", share) == pytest.approx(share)


def test_the_reported_error_bound_is_that_of_the_fine_bins_which_gave_the_figures():
    split = SpectralConnectivity(2).fit(load_iris().data).tree_.splits[0]
    radius = split.facts["sigma"] / BINS_PER_SIGMA / EXACT
    index = ConnectivityIndex(split.facts["sigma"], split.facts["beta"])
    assert split.facts["binning_error_bound"] == pytest.approx(index.error_bound(radius))


def test_after_samples_all_rows_follow_the_beta_that_won(monkeypatch):
    monkeypatch.setattr(node, "LARGE_SAMPLE", 200)
    split = SpectralConnectivity(2).fit(two_blobs(4000, 3, gap=8.0)[0]).tree_.splits[0]
    assert split.facts["beta"] == BETAS[0]


@pytest.mark.parametrize(("n", "d"), [(150, 2), (150, 8), (2000, 4)])
def test_the_large_margin_is_that_of_a_hard_margin_machine(n, d):
    rng = np.random.default_rng(d)
    normal = rng.standard_normal(d)
    normal /= np.linalg.norm(normal)
    X = rng.standard_normal((n, d))
    X += np.outer(np.sign(X @ normal), normal)
    model = SpectralConnectivity(2, large_margin=True, standardize=False).fit(X)
    machine = SVC(kernel="linear", C=1e8).fit(X, model.labels_)
    margin = 1 / np.linalg.norm(machine.coef_)
    assert model.tree_.splits[0].facts["margin"] == pytest.approx(margin, rel=0.01)
    distances = np.abs(model.decision_function(X)) / np.linalg.norm(model.tree_.splits[0].boundary.normal)
    assert distances.min() == pytest.approx(margin, rel=0.01)


def test_chance_gaps_are_not_searched_for_a_large_margin(monkeypatch):
    """Rows without a gap: sigma is not halved below the width of a clear one, where rounding decides."""
    sigmas, spacings = [], []

    def minimize(rows, start, index):
        sigmas.append(index.sigma)
        return minimize_at_scale(rows, start, index)

    def around(node, direction, threshold, n):
        found = yield from around_threshold(node, direction, threshold, n)
        spacings.append(found.spacing)
        return found

    monkeypatch.setattr(connectivity, "minimize_at_scale", minimize)
    monkeypatch.setattr(connectivity, "around_threshold", around)
    SpectralConnectivity(2, large_margin=True).fit(np.random.default_rng(0).exponential(size=(900, 15)))
    assert 1 <= len(sigmas) < connectivity.HALVINGS
    assert all(2 * s >= connectivity.CLEAR * width for s, width in zip(sigmas, spacings, strict=False))


def test_a_large_margin_keeps_the_balance():
    model = SpectralConnectivity(2, large_margin=True).fit(load_breast_cancer().data)
    assert np.bincount(model.labels_).min() >= 569 / 4


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
        ({"large_margin": "yes"}, "large_margin"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ravine.InvalidInputError, match=message):
        SpectralConnectivity(2, **parameters).fit(load_iris().data)


@pytest.mark.parametrize("laplacian", ["normalized", "standard"])
def test_in_several_directions_the_eigenvalue_is_that_of_the_centers_with_their_rows(
    laplacian,
):
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    model = SpectralConnectivity(2, n_directions=2, laplacian=laplacian).fit(X)
    split = model.tree_.splits[0]
    centers = split.boundary.centers
    points = (X - split.boundary.pivot) @ split.boundary.directions.T
    nearest = ((points[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
    mass = np.bincount(nearest, minlength=len(centers)).astype(float)
    index = GraphConnectivity(split.facts["sigma"], split.facts["beta"], laplacian == "normalized")
    found = index.evaluate(centers - mass @ centers / mass.sum(), mass)
    assert split.value == pytest.approx(found.eigenvalue)
    assert split.facts["microclusters"] == len(centers)
