"""Value and gradient of a direction against the plain sums over all rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.data.standardization import standardization_of
from ravine.index.base import IndexValue
from ravine.index.density import MinimumDensityIndex, relative_depth
from ravine.optimize import pursuit
from ravine.optimize.pursuit import View, evaluate, pursue
from ravine.optimize.sphere import Curvature
from tests import oracles

H, ALPHA = 0.35, 0.6


def look(X, weights=None):
    rows = MemoryRows(X, weights)
    standardization = run(rows, standardization_of(rows, None, True))
    dense = X.toarray() if sparse.issparse(X) else X
    Z = (dense - standardization.mean) * standardization.inverse_scale
    return rows, View(standardization, float(np.sqrt(np.linalg.eigvalsh(np.cov(Z.T, bias=True))[-1]))), Z


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
    rows, view, Z = look(store(X), weights)
    counts = np.ones(600) if weights is None else weights
    for seed in range(4):
        v = unit(seed, 6)
        found = run(rows, evaluate(view, MinimumDensityIndex(H, ALPHA), v, fineness=16))
        gradient = oracles.central_difference(lambda u: exact(Z, counts, u), v, 1e-5)
        assert found.value == pytest.approx(exact(Z, counts, v), abs=1e-3)
        np.testing.assert_allclose(found.gradient, gradient, atol=2e-3 * np.linalg.norm(gradient) + 1e-5)


def test_one_pass_and_two_give_the_same_gradient(monkeypatch):
    X, _ = oracles.two_blobs(500, 8, seed=1)
    rows, view, _ = look(X)
    one = run(rows, evaluate(view, MinimumDensityIndex(H, ALPHA), unit(0, 8)))
    before = rows.reads.rows
    monkeypatch.setattr(pursuit, "MAX_ROW_SUMS", 0)
    two = run(rows, evaluate(view, MinimumDensityIndex(H, ALPHA), unit(0, 8)))
    assert rows.reads.rows - before == 2 * 500
    assert one.value == two.value
    np.testing.assert_allclose(one.gradient, two.gradient, atol=1e-10)


def test_the_error_of_bins_falls_with_the_square_of_their_width():
    X, _ = oracles.two_blobs(3000, 4, gap=3.0, seed=5)
    rows, view, Z = look(X)
    v = unit(2, 4)
    truth = exact(Z, np.ones(3000), v)
    errors = [
        abs(run(rows, evaluate(view, MinimumDensityIndex(H, ALPHA), v, fineness=f)).value - truth)
        for f in (1, 4)
    ]
    assert errors[0] < 2e-3
    assert errors[1] < errors[0] / 4


def test_rotation_of_the_rows_rotates_the_gradient():
    X, _ = oracles.two_blobs(400, 5, seed=7)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    found = []
    for data, v in ((X, unit(0, 5)), (X @ rotation, unit(0, 5) @ rotation)):
        rows = MemoryRows(data)
        view = View(run(rows, standardization_of(rows, None, False)), 3.0)
        found.append(run(rows, evaluate(view, MinimumDensityIndex(H, ALPHA), v)))
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
    ("valid", "rank"),
    [((True, True, False), 1), ((True, False, False), 0), ((False, True, True), 2), ((False, False), 1)],
)
def test_continuation_keeps_the_last_valid_point_or_the_very_last(valid, rank):
    rows, view, _ = look(oracles.two_blobs(100, 3)[0])
    indices = [Flat(each) for each in valid]
    end = run(rows, pursue(view, unit(0, 3), indices, tol=0.02, max_iter=5))
    assert end.rank == rank
    assert end.index is indices[rank]
    assert end.point.index_value.valid == any(valid)


def test_a_pursuit_counts_all_steps_and_goes_on_with_the_curvature_that_it_is_given():
    rows, view, _ = look(oracles.two_blobs(500, 5, gap=5.0, seed=2)[0])
    indices = [MinimumDensityIndex(H, alpha) for alpha in (0.2, 0.9)]
    options = {"tol": 1e-3, "max_iter": 40, "progress": 0.0}
    whole = run(rows, pursue(view, unit(3, 5), indices, **options))
    curvature = Curvature()
    first = run(rows, pursue(view, unit(3, 5), indices[:1], curvature=curvature, **options))
    assert first.curvature is curvature
    assert curvature.steps
    second = run(rows, pursue(view, first.point.direction, indices[1:], curvature=curvature, **options))
    assert min(first.n_iter, second.n_iter) > 0
    assert whole.n_iter == first.n_iter + second.n_iter
    np.testing.assert_allclose(whole.point.direction, second.point.direction, atol=1e-9)


def test_continuation_from_a_random_start_ends_in_the_valley():
    X, labels = oracles.two_blobs(500, 5, gap=7.0, seed=2)
    rows, view, Z = look(X)
    indices = [MinimumDensityIndex(H, alpha) for alpha in (0.01, 0.3, 0.9)]
    end = run(rows, pursue(view, unit(3, 5), indices, tol=0.02, max_iter=40))
    assert end.point.index_value.valid
    side = Z @ end.point.direction > end.point.index_value.threshold
    assert max((side == labels).mean(), (side != labels).mean()) > 0.99
    assert relative_depth(end.point.profile, end.point.index_value.threshold, H) > 0.8
