"""Constraints, the QP of one CCCP step and whole runs, held to the plain problems that they solve."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ravine.data.query import run
from ravine.data.standardization import Standardization
from ravine.data.threads import one_blas_thread
from ravine.optimize.alternation import two_means
from ravine.optimize.cutting_plane import LinearFunctions, cutting_planes, linearize, move, solve
from ravine.optimize.cutting_plane_loops import best_offset
from tests.nodes import measured, node_of
from tests.oracles import two_blobs


def centered(X, weights=None):
    """The node of some rows: centered, not scaled."""
    n, d = X.shape
    total = float(n if weights is None else weights.sum())
    mean = np.average(X, axis=0, weights=weights)
    own = Standardization(mean, X.std(axis=0), np.ones(d), total, np.zeros(d, dtype=bool))
    return replace(node_of(X, weights), measured=own)


def solved(X, direction, *, C=3.0, balance=0.05, epsilon=0.01, max_iter=200, weights=None):
    node = centered(X, weights)
    start = LinearFunctions.one(np.asarray(direction, dtype=float), 0.0)
    query = cutting_planes(
        node,
        start,
        LinearFunctions.zero(X.shape[1]),
        C=C,
        balance=balance,
        epsilon=epsilon,
        max_iter=max_iter,
    )
    with one_blas_thread():
        return node.standardization, run(query)


def svm(Z, sides, C, balance):
    """The soft margin SVM of centered rows with |b| <= balance, by a general solver: the plain problem."""
    n, d = Z.shape

    def value(x):
        return 0.5 * x[:d] @ x[:d] + C / n * x[d + 1 :].sum()

    def gradient(x):
        return np.concatenate([x[:d], [0.0], np.full(n, C / n)])

    rows = np.column_stack([sides[:, None] * Z, sides, np.eye(n)])
    found = minimize(
        value,
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=gradient,
        method="SLSQP",
        bounds=[(None, None)] * d + [(-balance, balance)] + [(0, None)] * n,
        constraints=[{"type": "ineq", "fun": lambda x: rows @ x - 1.0, "jac": lambda x: rows}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_linearized_constraints_are_plain_sums_over_rows(kind):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((50, 4)) + 3.0, rng.integers(0, 4, 50) / 2
    constraints, plane = (
        LinearFunctions(rng.standard_normal((3, 4)), rng.standard_normal(3)),
        rng.standard_normal(4),
    )
    node = measured(kind(X), weights)
    state = run(linearize(node, constraints, LinearFunctions.one(plane, 0.2)))
    Z = node.standardization.apply(X)
    f = Z @ plane + 0.2
    for k, (w, b) in enumerate([*zip(constraints.w, constraints.b, strict=True), (plane, 0.2)]):
        inside = weights * (np.abs(Z @ w + b) < 1)
        assert state.weight[k] == pytest.approx(inside.sum() / weights.sum())
        assert state.sign[k] == pytest.approx(inside @ np.sign(f) / weights.sum())
        np.testing.assert_allclose(state.vector[k], (inside * np.sign(f)) @ Z / weights.sum(), atol=1e-12)
        assert state.violations[k] == pytest.approx(inside @ (1 - np.abs(f)) / weights.sum(), abs=1e-12)
    assert state.right == weights[f > 0].sum() != (f > 0).sum()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_moving_to_another_plane_updates_the_sums_as_if_they_were_made_anew(kind):
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((50, 4)) + 3.0, rng.integers(0, 4, 50) / 2
    node = measured(kind(X), weights)
    constraints = LinearFunctions(rng.standard_normal((3, 4)), rng.standard_normal(3))
    first, second, third = (LinearFunctions.one(rng.standard_normal(4), 0.1 * k) for k in range(3))
    state = run(linearize(node, constraints, first))
    there, stay = run(move(node, state, second))
    assert (state.own, there.own, stay.own) == (3, 4, 3)
    for moved, plane in ((there, second), (stay, first), (run(move(node, stay, third))[0], third)):
        anew = run(linearize(node, moved.constraints, plane))
        for name in ("weight", "sign", "vector", "violations"):
            np.testing.assert_allclose(getattr(moved, name), getattr(anew, name)[:-1], atol=1e-12)
        assert moved.right == anew.right
        assert moved.slack == pytest.approx(anew.slack, abs=1e-12)


@pytest.mark.parametrize("balance", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_qp_of_a_step_against_a_general_solver(balance, repeated):
    rng = np.random.default_rng(3)
    for C in (0.1, 2.0, 50.0):
        weight, sign = rng.uniform(0.2, 1.0, 5), rng.uniform(-0.3, 0.3, 5)
        vector = rng.standard_normal((5, 3)) * 0.3 + 0.4
        if repeated:
            weight, sign, vector = (np.concatenate([x, x[:3]]) for x in (weight, sign, vector))
        plane, active, least = solve(weight, sign, vector, C, balance)
        w, b = plane.w[0], plane.b[0]
        ours = 0.5 * w @ w + C * max(0.0, (weight - vector @ w - sign * b).max())
        found = minimize(
            lambda x, C=C: 0.5 * x[:3] @ x[:3] / C + x[4],  # times C, SLSQP ends outside
            np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
            method="SLSQP",
            bounds=[(None, None)] * 3 + [(-balance, balance), (0, None)],
            constraints=[
                {
                    "type": "ineq",
                    "fun": lambda x, a=weight, s=sign, V=vector: V @ x[:3] + s * x[3] + x[4] - a,
                }
            ],
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert found.success
        assert ours == pytest.approx(C * found.fun, rel=1e-5)
        assert least == pytest.approx(ours, rel=1e-12)
        assert abs(b) <= balance
        again, _, _ = solve(weight[active], sign[active], vector[active], C, balance)
        np.testing.assert_allclose(again.w, plane.w, atol=1e-5)


def test_the_best_offset_against_a_fine_grid():
    rng = np.random.default_rng(0)
    for _ in range(20):
        level, slope = rng.standard_normal(6), rng.standard_normal(6)
        grid = np.linspace(-0.7, 0.7, 20_001)
        least = np.maximum(0.0, (level[:, None] - np.outer(slope, grid)).max(axis=0)).min()
        b = best_offset(level, slope, 0.7)
        assert abs(b) <= 0.7
        assert max(0.0, (level - slope * b).max()) == pytest.approx(least, abs=1e-3)


def test_every_one_of_the_constraints_holds_up_to_epsilon():
    X = np.random.default_rng(1).standard_normal((12, 3))
    standardization, found = solved(X, [1.0, 0, 0], C=5.0, epsilon=0.02)
    f = np.abs((X - standardization.mean) @ found.state.plane.w[0] + found.state.plane.b[0])
    needed = max((np.mean(np.array(c) * (1 - f)) for c in itertools.product((0, 1), repeat=12)), default=0.0)
    assert needed == pytest.approx(found.state.slack, abs=1e-12)  # Theorem 3.3
    assert needed == pytest.approx(np.maximum(0, 1 - f).mean())  # Theorem 3.2
    assert found.violation <= 0.02


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 1e-4])
def test_the_objective_is_within_epsilon_of_the_least_for_the_sides_that_were_found(epsilon):
    X = two_blobs(40, 3, gap=2.0, seed=2)[0]
    standardization, found = solved(X, [1.0, 0.5, 0], C=4.0, epsilon=epsilon)
    Z = X - standardization.mean
    sides = np.where(Z @ found.state.plane.w[0] + found.state.plane.b[0] >= 0, 1.0, -1.0)
    least = svm(Z, sides, 4.0, 0.05)
    assert least - 1e-6 <= found.objective <= least + 4.0 * found.violation + 1e-6
    assert found.violation <= epsilon


@pytest.mark.parametrize("balance", [0.0, 0.05, 0.3])
def test_the_best_run_reaches_the_least_objective_over_all_sides(balance):
    """Problem 2.2 by trying all 2^n ways to give eight rows a side."""
    X = two_blobs(8, 2, gap=5.0, seed=4)[0]
    Z = X - X.mean(axis=0)
    sides = [np.array(s) for s in itertools.product((-1.0, 1.0), repeat=8) if s[0] > 0]
    least = min(svm(Z, s, 4.0, balance) for s in sides)
    angles = np.linspace(0, np.pi, 8, endpoint=False)
    ends = [
        solved(X, [np.cos(a), np.sin(a)], C=4.0, balance=balance, epsilon=1e-5, max_iter=500)[1]
        for a in angles
    ]
    assert min(end.objective for end in ends) == pytest.approx(least, rel=1e-3)


def test_on_separable_rows_it_is_the_hard_margin_hyperplane():
    X, labels = two_blobs(200, 5, gap=9.0)
    _, found = solved(
        X, X[labels == 1].mean(axis=0) - X[labels == 0].mean(axis=0), C=1e4, balance=0.5, epsilon=1e-4
    )
    hard = SVC(kernel="linear", C=1e6).fit(X, labels)
    w = found.state.plane.w[0]
    assert abs(w @ hard.coef_[0]) / np.linalg.norm(w) / np.linalg.norm(hard.coef_) > 0.9999
    assert 1 / np.linalg.norm(w) == pytest.approx(1 / np.linalg.norm(hard.coef_), rel=0.01)


REAL = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "breast cancer": load_breast_cancer().data,
    "digits 3 and 8": load_digits().data[np.isin(load_digits().target, (3, 8))],
}


@pytest.mark.parametrize("name", REAL)
def test_on_real_data_the_objective_never_rises_and_all_constraints_hold(name):
    X = StandardScaler().fit_transform(REAL[name])
    first = np.linalg.svd(X, full_matrices=False)[2][0]
    for C, balance in itertools.product((0.3, 3.0), (0.0, 0.03, 0.2)):
        _, found = solved(X, first, C=C, balance=balance)
        assert all(b < a for a, b in itertools.pairwise(found.history))
        assert found.objective == pytest.approx(found.history[-1], rel=1e-12)  # BLAS rounds by the shape
        f = X @ found.state.plane.w[0] + found.state.plane.b[0]
        assert np.maximum(0, 1 - np.abs(f)).mean() == pytest.approx(found.state.slack)
        assert found.violation <= 0.01
        assert abs(f.mean()) <= balance + 1e-9
        assert len(found.history) <= found.n_steps < 50
        assert len(np.unique(np.column_stack([found.state.weight, found.state.vector]), axis=0)) >= (
            len(found.state.constraints) - 1
        )  # none was added twice


def test_reaching_the_limit_of_rounds_is_reported():
    X = REAL["digits 3 and 8"]
    _, found = solved(X, np.ones(64), C=1.0, epsilon=1e-4, max_iter=2)
    assert found.status == "iteration limit"
    assert found.n_steps == 2
    assert found.violation > 1e-4


def test_weights_are_copies_in_a_run():
    X = two_blobs(60, 3, gap=3.0)[0]
    counts = np.random.default_rng(0).integers(0, 3, 60)
    _, one = solved(X, [1.0, 0.5, 0.2], weights=counts.astype(float))
    _, two = solved(np.repeat(X, counts, axis=0), [1.0, 0.5, 0.2])
    np.testing.assert_allclose(one.state.plane.w, two.state.plane.w, rtol=1e-6)
    assert one.objective == pytest.approx(two.objective)


@pytest.mark.parametrize("memory_cells", [0, 1 << 20])
def test_two_means_is_a_fixed_point_of_lloyds_rounds(memory_cells, monkeypatch):
    """Of the rows of a small node, and of a sample, here of all rows."""
    monkeypatch.setattr("ravine.optimize.pursuit.LOCAL_CELLS", memory_cells)
    monkeypatch.setattr("ravine.optimize.alternation.START_SWITCHED", 0.0)
    X = load_wine().data[:, :5] / load_wine().data[:, :5].std(axis=0)
    node = centered(X)
    first = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    normal, threshold = run(two_means(node, first[None, :]))
    Z = X - X.mean(axis=0)
    right = Z @ normal > threshold
    start = np.array([X[Z @ first <= 0].mean(axis=0), X[Z @ first > 0].mean(axis=0)])
    expected = KMeans(2, init=start, n_init=1, max_iter=100, tol=0).fit(X)
    np.testing.assert_array_equal(right, expected.labels_ == 1)


def test_two_means_of_equal_rows_ends():
    X = np.ones((5, 2))
    normal, threshold = run(two_means(centered(X), np.array([[1.0, 0.0]])))
    np.testing.assert_array_equal(normal, [1.0, 0.0])
    assert threshold == 0.0
