"""The papers' competitors against textbook forms of themselves: brute force, other solvers, certificates."""

import importlib
import itertools

import numpy as np
import pytest
import sklearn.datasets
from benchmarks import baselines
from scipy.linalg import eigh
from scipy.stats import norm

from ravine import PrincipalDirection, metrics
from tests.oracles import two_blobs

# the package gives the functions of the same names; these are their files
DRSC, GMMC, LGMMC, MMC, NCUT, SPECTRAL, HINGE, TRANSDUCTIVE = (
    importlib.import_module(f"benchmarks.baselines.{name}")
    for name in ("drsc", "gmmc", "lgmmc", "mmc", "normalized_cut", "spectral", "squared_hinge", "tsvm")
)
SMALL, SMALL_LABELS = two_blobs(12, 2, gap=5.0, share=0.5)
IRIS = sklearn.datasets.load_iris(return_X_y=True)


def balanced_labelings(n, fewest):
    for bits in itertools.product((-1.0, 1.0), repeat=n - 1):
        y = np.array([1.0, *bits])
        if min((y > 0).sum(), (y < 0).sum()) >= fewest:
            yield y


def sides_agree(y, labels):
    return metrics.clustering_error(np.asarray(y) > 0, labels) == 0


def test_the_squared_hinge_is_that_of_liblinear():
    from sklearn.svm import LinearSVC

    X, y = IRIS[0][50:], IRIS[1][50:]
    rows, penalty = HINGE.with_intercept(X - X.mean(axis=0), 1.0)
    normal = HINGE.squared_hinge(rows, 2.0 * (y == 2) - 1, np.full(100, 2 * 0.5), penalty)
    machine = LinearSVC(C=0.5, dual=False, intercept_scaling=1000.0, tol=1e-9).fit(X - X.mean(axis=0), y)
    np.testing.assert_allclose(normal[:-1], machine.coef_[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("threshold", ["mean", "density"])
def test_principal_directions_split_as_the_library_does(threshold):
    X = IRIS[0]
    plain = baselines.pddp(X) if threshold == "mean" else baselines.depddp(X)
    ours = PrincipalDirection(2, threshold=threshold, standardize=False).fit(X).labels_
    assert metrics.clustering_error(ours, plain) <= 0.01  # a row on a grid point may fall on either side


def test_the_density_along_one_gaussian_has_no_minimum_and_is_not_split():
    quantiles = norm.ppf((np.arange(500) + 0.5) / 500)  # no row is alone in a tail
    X = np.column_stack([5 * quantiles, np.random.default_rng(0).standard_normal(500)])
    assert set(baselines.depddp(X)) == {0}
    assert len(set(baselines.pddp(X, 4))) == 4


def test_a_cluster_that_cannot_be_split_is_left_whole():
    X = np.arange(10.0)[:, None]
    labels = baselines.divide(X, 3, lambda rows: rows[:, 0] > 4.5 if len(rows) == 10 else None)
    assert set(labels) == {0, 1}


def test_the_embedding_has_the_eigenvectors_of_the_laplacian():
    similar = SPECTRAL.affinity(SMALL, 2.0)
    D = np.diag(similar.sum(axis=1))
    values, vectors = eigh(D - similar, D)  # the random walk's, D^(-1/2) times those of the normalized one
    found = SPECTRAL.eigenvectors(similar, 2, normalized=True)
    expected = np.sqrt(np.diag(D)) * vectors[:, 1]
    assert abs(found[:, 1] @ expected) / np.linalg.norm(expected) == pytest.approx(1, abs=1e-8)
    assert values[0] == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("most", [1000, 120])
@pytest.mark.parametrize("normalized", [True, False])
def test_spectral_clustering_separates_rings(normalized, most):
    X, y = sklearn.datasets.make_circles(200, noise=0.03, factor=0.3, random_state=0)
    assert metrics.purity(y, baselines.spectral(X, 2, None, normalized=normalized, most=most)) == 1.0


def test_the_normalized_cut_is_the_least_along_its_eigenvector():
    X, y = two_blobs(40, 2, gap=4.0, share=0.3)
    similar = SPECTRAL.affinity(X, 1.0)
    sides = baselines.normalized_cut(similar)
    assert metrics.clustering_error(y, sides) <= 0.05

    def ncut(sides):
        cut = similar[np.ix_(sides == 0, sides == 1)].sum()
        return sum(cut / similar[sides == s].sum() for s in (0, 1))

    order = np.argsort(X[:, 0])
    values = NCUT.cut_values(similar[np.ix_(order, order)])
    for place in (0, 7, 20):
        by_hand = np.zeros(40, dtype=int)
        by_hand[order[place + 1 :]] = 1
        assert values[place] == pytest.approx(ncut(by_hand))
    assert ncut(sides) <= values.min() + 1e-9


def test_the_semidefinite_program_of_gmmc_is_solved():
    kernel = SMALL @ SMALL.T
    module = GMMC
    Q = module.quadratic_form(kernel, 1.0, 1.0)
    V = module.least_diagonal(Q, tol=1e-12, max_sweeps=3000)
    gamma = module.multipliers(Q, V)
    assert gamma.min() > -1e-6
    assert np.linalg.eigvalsh(Q - np.diag(gamma)).min() > -1e-4 * np.abs(Q).max()  # feasible for the dual ...
    assert gamma.sum() == pytest.approx(np.sum(V * (Q @ V)), rel=1e-3)  # ... with the same value
    assert sides_agree(SMALL_LABELS, baselines.gmmc(kernel)) or sides_agree(
        2 * SMALL_LABELS - 1, baselines.gmmc(kernel)
    )


def test_the_relaxation_of_mmc_is_below_every_labeling_and_finds_the_best():
    X = SMALL[2:10] - SMALL[2:10].mean(axis=0)
    kernel = X @ X.T / 8
    module = MMC

    def value(M):
        return module.margin_value(kernel * M, module.machine(kernel * M, 1.0, max_sweeps=500))

    best = min(balanced_labelings(8, 2), key=lambda y: value(np.outer(y, y)))
    M = module.relaxed(kernel, 1.0, 0.5, 60)
    np.testing.assert_allclose(np.diag(M), 1.0)
    assert value(M) <= value(np.outer(best, best)) * 1.02
    assert sides_agree(best, baselines.mmc(kernel, balance=0.5))


def test_the_labels_that_lgmmc_generates_are_the_most_violated_ones():
    rng = np.random.default_rng(0)
    rows, alpha = rng.standard_normal((9, 3)), rng.random(9)
    found = LGMMC.worst_labels(rows, alpha, 0.4)
    assert abs(found.sum()) <= 0.4 * 9
    allowed = [s * y for y in balanced_labelings(9, 3) for s in (1, -1)]
    best = max(float(np.abs((y * alpha) @ rows).max()) for y in allowed)
    assert np.abs((found * alpha) @ rows).max() == pytest.approx(best)


def test_lgmmc_finds_the_labeling_of_the_largest_margin():
    module = LGMMC
    rows = np.column_stack([SMALL - SMALL.mean(axis=0), np.ones(len(SMALL))])
    best = min(balanced_labelings(12, 5), key=lambda y: module.mix(rows, [y], 1.0)[2])
    assert sides_agree(best, baselines.lgmmc(SMALL, 1.0, 0.2))


def test_the_slope_of_drsc_is_that_of_its_objective():
    module = DRSC
    rng = np.random.default_rng(0)
    X, W, scaled = rng.standard_normal((15, 4)), rng.standard_normal((4, 2)), rng.standard_normal((15, 3))
    slope = module.slope(X, W, scaled, 1.5)
    for i, j in ((0, 0), (2, 1), (3, 0)):
        step = np.zeros((4, 2))
        step[i, j] = 1e-5
        up, down = (module.objective(SPECTRAL.affinity(X @ (W + s * step), 1.5), scaled) for s in (1, -1))
        assert slope[i, j] == pytest.approx((up - down) / 2e-5, rel=1e-5)


def test_drsc_finds_the_column_that_separates():
    X, y = two_blobs(120, 5, gap=6.0)
    assert metrics.clustering_error(y, baselines.drsc(X, 2, 1.0)) < 0.02


def test_a_transductive_machine_ends_where_no_pair_lowers_the_loss():
    X, y = two_blobs(80, 3, gap=5.0)
    partly = np.full(80, -1)
    partly[[*np.flatnonzero(y == 0)[:2], *np.flatnonzero(y == 1)[:2]]] = [0, 0, 1, 1]
    assert np.mean(baselines.TSVM().fit_predict(X, partly) != y) <= 0.05
    sides, score = np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, -0.8, 0.9, -2.0])
    before = np.sum(np.maximum(0, 1 - sides * score) ** 2)
    assert TRANSDUCTIVE.switch(sides, score, np.arange(4), 10)
    assert sides.tolist() == [1.0, -1.0, 1.0, -1.0]
    assert np.sum(np.maximum(0, 1 - sides * score) ** 2) < before
    assert not TRANSDUCTIVE.switch(sides, score, np.arange(4), 10)
    one_gains_the_pair_loses = np.array([1.0, -1.0]), np.array([-0.1, -2.0])
    assert not TRANSDUCTIVE.switch(*one_gains_the_pair_loses, np.arange(2), 10)


@pytest.mark.parametrize(
    "method", [baselines.supervised_svm, baselines.self_training, baselines.label_spreading]
)
def test_classifiers_use_the_labels_they_get(method):
    X, y = two_blobs(100, 3, gap=8.0)
    partly = np.where(np.arange(100) % 5 == 0, y, -1)
    assert np.mean(method(X, partly) == y) > 0.98
