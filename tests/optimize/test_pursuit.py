"""Value and gradient of a direction against the plain sums over all rows."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

from ravine.data.query import run
from ravine.index.base import IndexValue
from ravine.index.connectivity import ConnectivityIndex
from ravine.index.density import MinimumDensityIndex, bounded_depth
from ravine.optimize import pursuit
from ravine.optimize.descent import CONVERGED, ITERATION_LIMIT
from ravine.optimize.pursuit import (
    FULL_STEPS,
    PASS_LIMIT,
    StoppingRule,
    evaluate,
    limit_status,
    limit_steps,
    pursue,
    pursue_all,
)
from tests import oracles
from tests.nodes import measured, node_of

H, ALPHA = 0.35, 0.6


def standardized(X, weights=None):
    """The measured node of some rows, and the rows as it sees them."""
    node = measured(X, weights)
    return node, node.standardization.apply(X.toarray() if sparse.issparse(X) else X)


def exact(Z, weights, v):
    """log phi of the rows projected on v / |v|."""
    return np.log(oracles.phi(Z @ v / np.linalg.norm(v), weights, H, ALPHA, 0.05 * H)[0])


def unit(seed, d):
    v = np.random.default_rng(seed).standard_normal(d)
    return v / np.linalg.norm(v)


@pytest.mark.parametrize("row_sums", [0, 1 << 17])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_that_of_the_exact_sums(monkeypatch, row_sums, store, weighted):
    monkeypatch.setattr(pursuit, "MAX_ROW_SUMS", row_sums)
    X, _ = oracles.two_blobs(600, 6, gap=5.0, seed=3, share=0.3)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 600) if weighted else None
    node, Z = standardized(store(X), weights)
    counts = np.ones(600) if weights is None else weights
    for seed in range(2):
        v = unit(seed, 6)
        found = run(evaluate(node, MinimumDensityIndex(H, ALPHA), v, fineness=16))
        gradient = oracles.central_difference(lambda u: exact(Z, counts, u), v, 1e-5)
        assert found.value == pytest.approx(exact(Z, counts, v), abs=1e-3)
        np.testing.assert_allclose(found.gradient, gradient, atol=2e-3 * np.linalg.norm(gradient) + 1e-5)


def test_one_pass_and_two_give_the_same_gradient(monkeypatch):
    X, _ = oracles.two_blobs(500, 8, seed=1)
    node, _ = standardized(X)
    one = run(evaluate(node, MinimumDensityIndex(H, ALPHA), unit(0, 8)))
    before = node.rows.reads.rows
    monkeypatch.setattr(pursuit, "MAX_ROW_SUMS", 0)
    two = run(evaluate(node, MinimumDensityIndex(H, ALPHA), unit(0, 8)))
    assert node.rows.reads.rows - before == 2 * 500
    assert one.value == two.value
    np.testing.assert_allclose(one.gradient, two.gradient, atol=1e-10)


def test_the_error_of_bins_falls_with_the_square_of_their_width():
    X, _ = oracles.two_blobs(3000, 4, gap=3.0, seed=5)
    node, Z = standardized(X)
    v = unit(2, 4)
    truth = exact(Z, np.ones(3000), v)
    errors = [
        abs(run(evaluate(node, MinimumDensityIndex(H, ALPHA), v, fineness=f)).value - truth) for f in (1, 4)
    ]
    assert errors[0] < 2e-3
    assert errors[1] < errors[0] / 4


def test_rotation_of_the_rows_rotates_the_gradient():
    X, _ = oracles.two_blobs(400, 5, seed=7)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    found = []
    for data, v in ((X, unit(0, 5)), (X @ rotation, unit(0, 5) @ rotation)):
        node = replace(measured(data, standardize=False), deviation=3.0)
        found.append(run(evaluate(node, MinimumDensityIndex(H, ALPHA), v)))
    assert found[1].value == pytest.approx(found[0].value, abs=1e-9)
    np.testing.assert_allclose(found[1].gradient, found[0].gradient @ rotation, atol=1e-6)


@dataclass(frozen=True)
class Flat:
    """An index that is the same in all directions, so that every descent ends where it began."""

    valid: bool
    resolution: float = 0.1

    def evaluate(self, profile):
        return IndexValue(0.0, np.zeros(len(profile.points)), 0.0, valid=self.valid)


@pytest.mark.parametrize(
    ("valid", "stage"),
    [((True, True, False), 1), ((True, False, False), 0), ((False, True, True), 2), ((False, False), 1)],
)
def test_continuation_keeps_the_last_valid_point_or_the_very_last(valid, stage):
    node, _ = standardized(oracles.two_blobs(100, 3)[0])
    indices = [Flat(each) for each in valid]
    end = run(pursue(node, unit(0, 3), indices, StoppingRule(0.02, 5, 1e-4)))
    assert end.stage == stage
    assert end.index is indices[stage]
    assert end.point.index_value.valid == any(valid)


@pytest.mark.parametrize("held", [0, 1 << 22], ids=["by requests", "compiled"])
def test_a_pursuit_counts_all_steps_and_goes_on_with_the_curvature_that_it_is_given(monkeypatch, held):
    monkeypatch.setattr(pursuit, "LOCAL_CELLS", held)
    node, _ = standardized(oracles.two_blobs(500, 5, gap=5.0, seed=2)[0])
    indices = [MinimumDensityIndex(H, alpha) for alpha in (0.2, 0.9)]
    rule = StoppingRule(tol=1e-3, max_iter=8, progress=0.0)
    whole = run(pursue(node, unit(3, 5), indices, rule))
    first = run(pursue(node, unit(3, 5), indices[:1], rule))
    assert len(first.curvature[0])
    second = run(pursue(node, first.point.direction, indices[1:], rule, first.curvature))
    assert min(first.n_iter, second.n_iter) > 0
    assert whole.n_iter == first.n_iter + second.n_iter
    np.testing.assert_allclose(whole.point.direction, second.point.direction, atol=1e-9)


def test_continuation_from_a_random_start_ends_in_the_valley():
    X, labels = oracles.two_blobs(500, 5, gap=7.0, seed=2)
    node, Z = standardized(X)
    indices = [MinimumDensityIndex(H, alpha) for alpha in (0.01, 0.3, 0.9)]
    end = run(pursue(node, unit(3, 5), indices, StoppingRule(0.02, 40, 1e-4)))
    assert end.point.index_value.valid
    side = Z @ end.point.direction > end.point.index_value.threshold
    assert max((side == labels).mean(), (side != labels).mean()) > 0.99
    assert bounded_depth(end.point.profile, end.point.index_value.threshold, H) > 0.8


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", [MinimumDensityIndex(H, ALPHA), ConnectivityIndex(0.3, 1.5)])
def test_the_compiled_pursuit_takes_the_steps_of_the_one_by_requests(monkeypatch, store, weighted, index):
    X, _ = oracles.two_blobs(503, 6, gap=4.0, seed=3, share=0.3)
    X = np.column_stack([X, np.zeros(503)])  # the last coordinate of all directions is 0
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 503) if weighted else None
    node, start = replace(standardized(store(X), weights)[0], deviation=1.5), np.append(unit(3, 6), 0.0)
    for max_iter in (0, 1, 4, 40):  # the path as well as its end
        rule = StoppingRule(tol=1e-3, max_iter=max_iter, progress=1e-6)
        monkeypatch.setattr(pursuit, "LOCAL_CELLS", 1 << 22)
        compiled = run(pursue(node, start, [index], rule))
        before = node.rows.reads.rows
        monkeypatch.setattr(pursuit, "LOCAL_CELLS", 0)
        asked = run(pursue(node, start, [index], rule))
        assert node.rows.reads.rows > before
        assert compiled.status == asked.status
        assert compiled.n_iter == asked.n_iter
        assert compiled.point.value == pytest.approx(asked.point.value, abs=1e-7)
        assert compiled.point.smaller_side == pytest.approx(asked.point.smaller_side)
        np.testing.assert_allclose(compiled.point.direction, asked.point.direction, atol=1e-6)
        np.testing.assert_allclose(compiled.point.gradient, asked.point.gradient, atol=1e-5)
        assert len(compiled.curvature[0]) == len(asked.curvature[0])


def pursued_from(node, starts, n_alphas=3):
    indices = [MinimumDensityIndex(H, alpha) for alpha in np.linspace(0.01, 0.9, n_alphas)]
    return run(pursue_all(node, starts, indices, StoppingRule(1e-3, 40, 1e-6)))


def test_all_starts_in_one_call_are_pursued_as_each_alone():
    node, _ = standardized(oracles.two_blobs(500, 5, gap=5.0, seed=2)[0])
    starts = [unit(seed, 5) for seed in (3, 4, 5)]
    together = pursued_from(node, starts)
    went_on = [k for k, end in enumerate(together) if end.stage > 0]  # the others met a better one
    assert went_on
    for n_alphas, which in ((1, range(3)), (3, went_on)):
        together = pursued_from(node, starts, n_alphas)
        for k in which:
            (alone,) = pursued_from(node, [starts[k]], n_alphas)
            assert_same_end(together[k], alone)


def assert_same_end(end, alone):
    assert (end.n_iter, end.stage, end.status) == (alone.n_iter, alone.stage, alone.status)
    np.testing.assert_array_equal(end.point.direction, alone.point.direction)
    np.testing.assert_array_equal(end.point.profile.points, alone.point.profile.points)
    assert end.point.value == alone.point.value


def test_of_two_starts_at_one_hyperplane_one_goes_on():
    node, _ = standardized(oracles.two_blobs(500, 3, gap=6.0, seed=2)[0])
    start = unit(3, 3)
    stages = [end.stage for end in pursued_from(node, [start, -start, start])]
    assert sorted(stages) == [0, 0, 2]


@pytest.mark.parametrize("is_local", [True, False])
def test_only_rows_that_are_not_in_memory_have_a_budget(monkeypatch, is_local):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 1000 if is_local else 10)
    node = node_of(np.zeros((50, 3)))
    assert node.is_local == is_local
    assert limit_steps(node, 40) == (40 if is_local else FULL_STEPS)
    assert limit_steps(node, 2) == 2
    assert limit_steps(node, 40, most=5) == (40 if is_local else 5)
    assert limit_status(node, ITERATION_LIMIT) == (ITERATION_LIMIT if is_local else PASS_LIMIT)
    assert limit_status(node, CONVERGED) == CONVERGED


@pytest.mark.parametrize("cells", [0, 1 << 22])
def test_a_line_on_which_all_rows_are_at_one_place_has_no_split(monkeypatch, cells):
    """All rows in one bin: the compiled code divided by zero."""
    monkeypatch.setattr(pursuit, "LOCAL_CELLS", cells)
    X = np.column_stack([np.repeat([0.0, 1.0], 30), np.full(60, 0.1)])
    node = replace(measured(X, standardize=False), deviation=0.5)
    index = ConnectivityIndex(0.1, 1.5)
    end = run(pursue(node, np.array([0.0, 1.0]), [index], StoppingRule(1e-2, 15, 1e-4)))
    assert not end.point.index_value.valid
    assert end.point.value == np.inf
    assert end.n_iter == 0


def test_rows_in_other_scales_are_standardized_anew():
    X = oracles.two_blobs(300, 4, gap=5.0, seed=1)[0] * (1.0, 3.0, 0.5, 1.0)
    node, plain = measured(X), measured(X, standardize=False)
    rule, index = StoppingRule(1e-3, 10, 1e-6), MinimumDensityIndex(H, 0.9)
    run(pursue(node, unit(3, 4), [index], rule))
    other = replace(node, measured=plain.standardization, deviation=plain.deviation)
    shared, alone = (run(pursue(one, unit(3, 4), [index], rule)).point for one in (other, plain))
    assert shared.value == alone.value
    np.testing.assert_array_equal(shared.direction, alone.direction)
