"""The alternating solvers against slow versions of them, the paper's theorems, and its invariances."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import SVC

from ravine import InvalidInputError, MaximinSeparation, metrics
from ravine.data.profile import Grid
from ravine.data.query import run
from ravine.optimize.alternation import best_threshold, two_means
from ravine.optimize.minimax import minimax
from ravine.optimize.sides import Side, SideSums, signed_distances
from ravine.split.boundary import Hyperplane
from ravine.split.separation import SeparationMethod
from ravine.split.split import NO_VALLEY
from tests.changed_method import with_method
from tests.nodes import measured
from tests.oracles import two_blobs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
CANCER = load_breast_cancer().data
WINE = load_wine().data
SOLVERS = ["mpm", "gep", "eig"]


def same(a, b):
    """Whether two labelings with two labels are the same partition."""
    return bool((a == b).all() or (a != b).all())


def sides(X, right):
    return [(X[s].mean(axis=0), np.cov(X[s].T, bias=True)) for s in (~right, right)]


def slow_mpm(X, right, regularization, rounds=50):
    """Table 1, first column, with all moments anew in every round."""
    ridge = regularization * np.diag(X.var(axis=0))
    for _ in range(rounds):
        (m1, S1), (m2, S2) = sides(X, right)
        found = minimax(S1 + ridge, S2 + ridge, m2 - m1)
        now = X @ found.direction > found.direction @ m2 - found.reach
        if (now == right).all():
            break
        right = now
    return right


def bound(t, k, regularization_term):
    """Equation 4 for sorted points of which the first k are on the left."""
    n = len(t)
    r = k / n
    apart = t[k:].mean() - t[:k].mean()
    spread = 2 / min(r, 1 - r) * (t.var() + regularization_term)
    return apart**2 / (spread - 2 * max(r, 1 - r) * apart**2)


def slow_gep(X, right, regularization, rounds=50):
    """Table 1, second column: every threshold is tried."""
    ridge = regularization * np.diag(X.var(axis=0))
    S = np.cov(X.T, bias=True) + ridge
    for _ in range(rounds):
        w = np.linalg.solve(S, X[right].mean(axis=0) - X[~right].mean(axis=0))
        t = np.sort(X @ w)
        low = int(np.ceil(0.05 * len(t)))
        best = max(range(low, len(t) - low + 1), key=lambda k: bound(t, k, w @ ridge @ w))
        now = X @ w > (t[best - 1] + t[best]) / 2
        if (now == right).all():
            break
        right = now
    return right


@dataclass(frozen=True)
class FromPlane(SeparationMethod):
    """The method from one hyperplane instead of 2-means."""

    plane: Hyperplane | None = None

    def starts(self, node):
        node, _ = yield from SeparationMethod.starts(self, node)
        return node, [self.plane]


def started(model, normal, threshold):
    """The estimator that starts from the rows with normal . x > threshold as the right side."""
    plane = Hyperplane(normal, np.zeros(len(normal)), threshold)
    return with_method(model, lambda method, rows: FromPlane(**vars(method), plane=plane))


@pytest.mark.parametrize("regularization", [0.0, 0.1, 10.0])
@pytest.mark.parametrize(("solver", "slow"), [("mpm", slow_mpm), ("gep", slow_gep)])
@pytest.mark.parametrize("X", [WINE, CANCER[:300]], ids=["wine", "cancer"])
def test_the_solver_is_the_papers(solver, slow, X, regularization):
    if X is not WINE:
        X = X[:, :20]
    start = X[:, 0] > np.median(X[:, 0])
    expected = slow(X, start, regularization)
    assert 0.05 <= expected.mean() <= 0.95
    model = MaximinSeparation(2, solver=solver, regularization=regularization)
    model = started(model, np.eye(X.shape[1])[0], np.median(X[:, 0])).fit(X)
    assert same(model.labels_ == 1, expected)


def test_the_threshold_leaves_the_least_mass_on_both_sides():
    t = np.sort(np.append(np.random.default_rng(0).standard_normal(99), 60.0))
    t -= t.mean()
    grid = Grid.around_mean(100.0, 0.01)
    at = np.floor((t - grid.low) / grid.width).astype(int)
    mass = np.bincount(at, minlength=grid.n_bins).astype(float)
    moment = np.bincount(at, weights=t, minlength=grid.n_bins)
    for min_weight in (0.0, 5.0, 30.0):
        low = max(int(min_weight), 1)
        best = max(range(low, 101 - low), key=lambda k: bound(t, k, 0.1))
        threshold = best_threshold(grid, mass, moment, t.var() + 0.1, min_weight)
        assert (t < threshold).sum() == best
    assert (t > best_threshold(grid, mass, moment, t.var(), 0.0)).sum() == 1  # the far point
    assert best_threshold(grid, mass, moment, t.var(), 51.0) is None


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("regularization", [0.01, 100.0])
def test_eig_is_theorem_3_with_its_matrix_of_rows(standardize, regularization):
    X = WINE / WINE.std(axis=0) if standardize else WINE / WINE.max(axis=0)
    Z = X - X.mean(axis=0)
    scatter = Z / (regularization * Z.var(axis=0)) @ Z.T
    matrix = np.eye(len(Z)) - np.linalg.inv(np.eye(len(Z)) + scatter)
    q = np.linalg.eigh(matrix)[1][:, -1]
    model = MaximinSeparation(
        2, solver="eig", regularization=regularization, standardize=standardize, n_init=1
    ).fit(X)
    assert same(model.labels_ == 1, Z @ Z.T @ q > 0)


def test_of_several_eigenvectors_eig_takes_the_surest():
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 2
    loose = rng.standard_normal((400, 1)) + 0.5 * rng.standard_normal((400, 4))  # the first, with one mode
    apart = 4.0 * truth[:, None] + rng.standard_normal((400, 2))  # the second, with two
    X = np.column_stack([loose, apart])
    one, two = (MaximinSeparation(2, solver="eig", n_init=k).fit(X).labels_ for k in (1, 2))
    assert metrics.clustering_error(truth, one) > 0.3
    assert metrics.clustering_error(truth, two) < 0.05


def test_eig_with_more_columns_than_rows():
    X, truth = two_blobs(60, 2000, gap=40.0)
    assert same(MaximinSeparation(2, solver="eig").fit(X).labels_, truth)
    assert same(MaximinSeparation(2, solver="eig").fit(sparse.csr_array(X)).labels_, truth)


def test_the_moments_are_updated_by_the_rows_that_switched():
    X = WINE
    node = measured(X, np.random.default_rng(0).integers(0, 3, len(X)).astype(float))
    rows, own = node.rows, node.standardization
    rng = np.random.default_rng(1)
    columns = np.arange(13)
    cuts = [(rng.standard_normal(13), rng.normal()) for _ in range(3)]
    fresh = [Side.of(rows.pass_over([SideSums(own, cut)])[0]) for cut in cuts]
    for i, j in ((0, 1), (1, 2)):
        (answer,) = rows.pass_over([SideSums(own, cuts[j], cuts[i])])
        updated = fresh[i] + Side.of(answer)
        assert updated.weight == fresh[j].weight
        np.testing.assert_allclose(updated.covariance(columns), fresh[j].covariance(columns), atol=1e-12)
        sign = [rows.map(lambda block, cut=cut: signed_distances(block, own, cut)) > 0 for cut in cuts]
        assert answer[0][1] == rows.weights[sign[i] != sign[j]].sum()
    Z = own.apply(X)
    right = sign[2]
    np.testing.assert_allclose(
        fresh[2].covariance(columns),
        np.cov(Z[right].T, bias=True, aweights=rows.weights[right]),
        atol=1e-12,
    )


@pytest.mark.parametrize("X", [WINE, CANCER, load_iris().data], ids=["wine", "cancer", "iris"])
def test_the_start_is_within_a_thousandth_of_ten_starts_of_k_means(X):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    node = measured(X, standardize=False)
    starts = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :4].T
    normal, threshold = run(two_means(node, starts))
    right = node.standardization.apply(X) @ normal > threshold
    inertia = sum(((X[s] - X[s].mean(axis=0)) ** 2).sum() for s in (right, ~right))
    assert inertia <= KMeans(2, n_init=10, random_state=0).fit(X).inertia_ * 1.001


# --- invariance ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_units_of_the_columns_do_not_matter(solver):
    scales = 10.0 ** np.random.default_rng(0).integers(-3, 4, WINE.shape[1])
    one = MaximinSeparation(3, solver=solver).fit(WINE)
    two = MaximinSeparation(3, solver=solver).fit(WINE * scales)
    for k in range(3):  # a side that is right in one may be left in the other
        mass = np.bincount(two.labels_[one.labels_ == k], minlength=3)
        assert (mass > 0).sum() == 1
    values = [sorted(s.value for s in m.tree_.splits if s is not None) for m in (one, two)]
    np.testing.assert_allclose(*values, rtol=1e-6)


@pytest.mark.parametrize("solver", ["mpm", "gep"])
def test_without_regularization_no_invertible_map_matters(solver):
    rng = np.random.default_rng(0)
    P = rng.standard_normal((13, 13)) + 3 * np.eye(13)
    normal, middle = np.linalg.inv(P)[:, 0], np.median(WINE[:, 0])
    planes = [
        (WINE, np.eye(13)[0], middle),
        (WINE @ P + 5.0, normal, middle + 5.0 * normal.sum()),
    ]  # the same sides
    free = MaximinSeparation(2, solver=solver, regularization=0.0)
    one, two = (started(free, v, b).fit(Z) for Z, v, b in planes)
    assert same(one.labels_, two.labels_)
    assert one.tree_.splits[0].value == pytest.approx(two.tree_.splits[0].value, rel=1e-4)
    regularized = [started(MaximinSeparation(2, solver=solver), v, b).fit(Z) for Z, v, b in planes]
    assert not same(*(m.labels_ for m in regularized))  # lambda diag(S) is not invariant under such maps


def test_the_value_is_the_separation_probability():
    X = two_blobs(300, 4, gap=5.0, seed=2)[0]
    for regularization in (0.0, 0.3):
        model = MaximinSeparation(2, regularization=regularization).fit(X)
        expected = metrics.separation_probability(X, model.labels_, regularization=regularization)
        assert 1 - model.tree_.splits[0].value == pytest.approx(expected, rel=1e-6)


# --- theorems --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_theorem_2_bounds_kappa_from_below(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3)) * [1.0, 2.0, 0.5]
    right = X @ rng.standard_normal(3) > rng.normal(0.0, 0.3)
    (m1, S1), (m2, S2) = sides(X, right)
    t = X @ rng.standard_normal(3)
    order = np.argsort(right, kind="stable")
    apart = t[right].mean() - t[~right].mean()
    kappa = abs(apart) / (t[right].std() + t[~right].std())
    assert kappa**2 >= bound(t[order], int((~right).sum()), 0.0) * (1 - 1e-12)
    assert minimax(S1, S2, m2 - m1).kappa >= kappa


@pytest.mark.parametrize("gap", [6.0, 10.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_theorem_4_a_hard_margin_bounds_the_separation_probability(gap, share):
    X, truth = two_blobs(200, 3, gap=gap, seed=4, share=share)
    machine = SVC(kernel="linear", C=1e6).fit(X, truth)
    labels = machine.predict(X)
    assert (labels == truth).all()
    margin = 2 / np.linalg.norm(machine.coef_)
    widest = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    r = min(labels.mean(), 1 - labels.mean())
    min_weight = 1 / (2 / r * widest / margin**2 - 2 * (1 - r) + 1)
    assert 0 < min_weight <= metrics.separation_probability(X, labels)
    assert min_weight <= 1 - MaximinSeparation(2, regularization=0.0).fit(X).tree_.splits[0].value


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_theorem_5_most_rows_are_far_from_the_hyperplane(rho):
    X = two_blobs(400, 4, gap=7.0, seed=1)[0]
    model = MaximinSeparation(2, regularization=0.0).fit(X)
    p = 1 - model.tree_.splits[0].value
    t = model.transform(X)[:, 0]
    means = [t[model.labels_ == k].mean() for k in (0, 1)]
    apart, middle = means[1] - means[0], sum(means) / 2
    r = (1 / p - 1) / (1 / p - 1 + (1 - rho) ** 2 / 4)
    for k, sign in ((0, -1), (1, 1)):
        assert (sign * (t[model.labels_ == k] - middle) >= rho * apart / 2).mean() >= 1 - r


# --- one far row, pursuit, shares ------------------------------------------------------------------------


def with_a_far_row():
    X, truth = two_blobs(1000, 20, gap=5.0, seed=0)
    X[0] += 100.0 * np.random.default_rng(1).standard_normal(20)
    return X, truth


def test_the_far_row_alone_has_the_higher_separation_probability():
    X, truth = with_a_far_row()
    alone = np.arange(1000) == 0
    assert metrics.separation_probability(X, alone) > metrics.separation_probability(X, truth)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_far_row_is_no_cluster(solver):
    X, truth = with_a_far_row()
    model = MaximinSeparation(2, solver=solver, standardize=False).fit(X)
    assert model.n_clusters_ == 2
    assert metrics.clustering_error(truth, model.labels_) < 0.05


def test_min_share_is_kept_or_there_is_no_split():
    X = two_blobs(300, 3, gap=10.0, share=0.2)[0]
    for solver in SOLVERS:
        smaller = np.bincount(MaximinSeparation(2, solver=solver, min_share=0.1).fit(X).labels_).min()
        assert 0.1 * 300 <= smaller < 0.4 * 300
        model = MaximinSeparation(2, solver=solver, min_share=0.4).fit(X)
        if solver == "mpm":  # its threshold is that of the best direction, and no other is tried
            assert NO_VALLEY in model.tree_.splits[0].facts
        else:
            assert np.bincount(model.labels_).min() in range(119, 151)
            assert model.n_clusters_ == 2


# --- all solvers: weights, sparse rows, threads, auto ----------------------------------------------------


@pytest.mark.parametrize("solver", ["gep", "eig"])
def test_weights_sparse_rows_and_threads(solver):
    counts = np.random.default_rng(0).integers(0, 4, len(CANCER))
    model = MaximinSeparation(3, solver=solver, standardize=True).fit(CANCER, sample_weight=counts)
    repeated = MaximinSeparation(3, solver=solver).fit(np.repeat(CANCER, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(model.labels_, counts), repeated.labels_)
    np.testing.assert_array_equal(model.predict(CANCER), model.labels_)
    few = CANCER * (np.median(CANCER, axis=0) < CANCER)
    dense, csr = (
        MaximinSeparation(2, solver=solver, standardize=True).fit(X) for X in (few, sparse.csr_array(few))
    )
    np.testing.assert_array_equal(dense.labels_, csr.labels_)
    X = two_blobs(20_000, 4, gap=4.0)[0]
    one, two = (MaximinSeparation(2, solver=solver, n_jobs=k).fit(X) for k in (1, 2))
    assert one.tree_.splits[0].boundary.threshold == two.tree_.splits[0].boundary.threshold


@pytest.mark.parametrize("solver", SOLVERS)
def test_auto_does_not_split_one_mode_and_finds_as_many_as_there_are(solver):
    rng = np.random.default_rng(0)
    blob = rng.standard_normal((400, 4))
    assert MaximinSeparation("auto", solver=solver).fit(blob).n_clusters_ == 1
    centers = np.array([[0.0, 0, 0, 0], [12.0, 0, 0, 0], [0, 12.0, 0, 0]])
    if solver == "eig":  # divides across the first principal direction at the mean, whatever is there
        centers = np.array([[0.0] * 4, [6.0] * 4])
    X = rng.standard_normal((150 * len(centers), 4)) + np.repeat(centers, 150, axis=0)
    assert MaximinSeparation("auto", solver=solver).fit(X).n_clusters_ == len(centers)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularization": -1}, "regularization"),
        ({"min_share": 0.6}, "min_share .*at most 0.5"),
        ({"n_init": 0}, "n_init"),
    ],
)
def test_bad_parameters_are_one_clear_error(parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        MaximinSeparation(**parameters).fit(WINE)


def test_too_many_features_for_a_square_matrix_are_an_error():
    X = sparse.random_array((20, 5000), density=0.1, format="csr", random_state=0)
    with pytest.raises(InvalidInputError, match=r"4096 features, got 5000.*solver='eig'"):
        MaximinSeparation(2).fit(X)
    assert MaximinSeparation(2, solver="eig").fit(X).n_features_in_ == 5000


def test_a_start_with_all_rows_on_one_side_finds_no_split():
    """Rows on the other side have no weight."""
    middle = np.median(WINE[:, 0])
    weights = np.where(WINE[:, 0] > middle, 1.0, 0.0)
    model = started(MaximinSeparation(2), np.eye(13)[0], middle).fit(WINE, sample_weight=weights)
    assert NO_VALLEY in model.tree_.splits[0].facts


def test_eig_with_a_kernel_is_refused_because_all_its_directions_are_equal():
    with pytest.raises(InvalidInputError, match=r'solver="eig".*rbf.*use solver="mpm"'):
        MaximinSeparation(2, solver="eig", kernel="rbf").fit(WINE)
