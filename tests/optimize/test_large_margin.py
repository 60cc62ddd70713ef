"""Rows around a threshold, held to the sorted projections of all rows, and the margin that they give."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from ravine.data.memory import MemoryRows
from ravine.data.microclusters import MicroClusters
from ravine.data.node import Node
from ravine.data.profile import REACH, Grid
from ravine.data.query import fold, run
from ravine.index.connectivity import ConnectivityIndex
from ravine.optimize.descent import CONVERGED
from ravine.optimize.large_margin import (
    BINS,
    IntervalSum,
    NearestRows,
    _edges,
    around_threshold,
    minimize_at_scale,
)
from tests.engines import block_of, in_blocks
from tests.nodes import measured
from tests.oracles import two_blobs

DIRECTION = np.array([0.6, 0.8, 0.0])


def rows_and_weights(n=3000, seed=0, decimals=9):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 3)) * [1.0, 5.0, 0.1] + 7.0).round(decimals)
    return X, rng.integers(0, 3, n).astype(float)


def nearest_by_sorting(Z, weights, direction, threshold, n):
    """The oracle: all rows sorted by their distance; those as far as the n-th nearest count, too."""
    points = Z @ direction
    sides = []
    for side in (points <= threshold, points > threshold):
        here = np.flatnonzero(side & (weights > 0))
        distances = np.abs(points[here] - threshold)
        last = np.sort(distances)[:n].max(initial=0.0)
        some = here[distances <= last * (1 + 1e-12)]
        sides.append((points[some], weights[some], Z[some]))
    return sides, [weights[points <= threshold].sum(), weights[points > threshold].sum()]


def in_one_order(points, weights, rows):
    order = np.lexsort((weights, *rows.round(9).T))
    return points[order], weights[order], rows[order]


def assert_nearest(answer, Z, weights, request):
    sides, totals = nearest_by_sorting(Z, weights, request.direction, request.threshold, request.n)
    for k, expected in enumerate(sides):
        found = in_one_order(*answer[3 * k : 3 * k + 3])
        for a, b in zip(found, in_one_order(*expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(answer[6], totals)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("decimals", [9, 0])  # without decimals, many rows are at one place
@pytest.mark.parametrize(("threshold", "n"), [(0.3, 25), (0.0, 1), (-2.9, 40), (9.0, 10), (-9.0, 10)])
def test_the_nearest_rows_are_those_of_sorting_all_rows(kind, decimals, threshold, n):
    X, weights = rows_and_weights(800, decimals=decimals)
    own = measured(X, weights).standardization
    direction = DIRECTION if decimals else np.array([0.0, 1.0, 0.0])
    request = NearestRows(own, direction, threshold, n)
    for rows in (MemoryRows(kind(X), weights), in_blocks(kind(X), weights, 70)):
        (answer,) = rows.engine.answer(Node(rows).ask(request))
        assert_nearest(answer, own.apply(X), weights, request)


def test_the_nearest_rows_do_not_depend_on_the_order_of_merges():
    X, weights = rows_and_weights(400, decimals=0)
    own = measured(X, weights).standardization
    request = NearestRows(own, np.array([0.0, 1.0, 0.0]), 0.1, 9)
    engine = in_blocks(X, weights).engine
    for order in (range(8), range(7, -1, -1), [3, 0, 7, 1, 6, 2, 5, 4]):
        parts = []
        for k in order:
            parts.append(request.start(3))
            request.add(block_of(engine, np.arange(k, 400, 8)), parts[-1])
        assert_nearest(fold(request.merge, parts), own.apply(X), weights, request)


def test_stretches_are_the_plain_sums_between_edges():
    X, weights = rows_and_weights(500)
    own = measured(X, weights).standardization
    edges = np.array([-1.0, -0.2, 0.5, 1.5])
    points = own.apply(X) @ DIRECTION
    (answer,) = in_blocks(X, weights, 70).engine.answer(
        Node(in_blocks(X, weights, 70)).ask(IntervalSum(own, DIRECTION, edges))
    )
    for k, (low, high) in enumerate(zip([-np.inf, *edges], [*edges, np.inf], strict=True)):
        inside = (points > low) & (points <= high)
        assert answer[0][k] == pytest.approx(weights[inside].sum())
        np.testing.assert_allclose(answer[1][k], weights[inside] @ (X[inside] - own.mean), atol=1e-9)


@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_around_a_threshold_the_nearest_rows_are_there_one_by_one(as_rows, kind):
    X, weights = rows_and_weights()
    whole = measured(X, weights)
    node = Node(as_rows(kind(X), weights), measured=whole.measured, deviation=whole.deviation)
    near = run(around_threshold(node, DIRECTION, 0.3, 100))
    Z = node.standardization.apply(X)
    points = Z @ DIRECTION
    (left, right), totals = nearest_by_sorting(Z, weights, DIRECTION, 0.3, 25)
    assert near.gap == pytest.approx(right[0].min() - left[0].max())
    assert near.middle == pytest.approx((right[0].min() + left[0].max()) / 2)
    assert near.spacing == pytest.approx((right[0].max() - left[0].min() - near.gap) / 48)
    assert near.smaller == pytest.approx(min(totals))
    assert near.rows.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(near.rows.weights @ near.rows.centers, 0.0, atol=1e-8)
    found, inside = near.rows.centers @ DIRECTION, [*left[0], *right[0]]
    for row, weight, place in zip(
        np.concatenate([left[2], right[2]]), np.concatenate([left[1], right[1]]), inside, strict=True
    ):
        k = np.abs(found - place).argmin()
        np.testing.assert_allclose(near.rows.centers[k], row, atol=1e-8)
        assert near.rows.weights[k] == weight
    assert ((found >= left[0].min() - 1e-9) & (found <= right[0].max() + 1e-9)).sum() == 50
    assert 80 <= len(found) <= 104
    for beyond in (points < left[0].min() - 1e-9, points > right[0].max() + 1e-9):
        ends = points[beyond & (weights > 0)].min(), points[beyond & (weights > 0)].max()
        here = (found >= ends[0] - 1e-9) & (found <= ends[1] + 1e-9)
        stretches = near.rows.weights[here]
        assert stretches.sum() == pytest.approx(weights[beyond].sum())
        assert stretches.max() < 3 * stretches.sum() / 25  # of about equal weight


@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("n", [4, 20, 60, 200])
def test_no_weight_is_lost_where_many_rows_are_at_one_place(decimals, n):
    X, weights = rows_and_weights(900, decimals=decimals)
    node = measured(X, weights)
    for direction in (np.array([0.0, 1.0, 0.0]), DIRECTION):
        for threshold in (-0.7, 0.013, 1.2):
            near = run(around_threshold(node, direction, threshold, n))
            assert near.rows.weights.sum() == pytest.approx(weights.sum())
            np.testing.assert_allclose(near.rows.weights @ near.rows.centers, 0.0, atol=1e-8)
            left, right = nearest_by_sorting(
                node.standardization.apply(X), weights, direction, threshold, max(1, n // 4)
            )[0]
            assert near.gap == pytest.approx(right[0].min() - left[0].max())
            n_near = sum(len(np.unique(side[0].round(9))) for side in (left, right))
            spacing = (right[0].max() - left[0].min() - near.gap) / max(1, n_near - 2)
            assert near.spacing == pytest.approx(spacing, abs=1e-12)


@pytest.mark.parametrize("threshold", [-50.0, 50.0])
def test_a_threshold_beyond_all_rows_has_an_empty_side_and_no_gap(threshold):
    X, weights = rows_and_weights(300)
    near = run(around_threshold(measured(X, weights), DIRECTION, threshold, 40))
    assert near.smaller == 0.0
    assert near.gap == 0.0
    assert near.middle == threshold
    assert near.rows.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(near.rows.weights @ near.rows.centers, 0.0, atol=1e-8)


def test_few_rows_around_a_threshold_are_all_there():
    X, weights = rows_and_weights(30)
    node = measured(X, weights)
    near = run(around_threshold(node, DIRECTION, 0.1, 400))
    assert len(near.rows.weights) == (weights > 0).sum()
    assert sorted(near.rows.centers[:, 1]) == pytest.approx(
        sorted(node.standardization.apply(X)[weights > 0][:, 1])
    )


def test_rows_around_a_threshold_cost_two_passes():
    X, weights = rows_and_weights(500)
    node = measured(X, weights)
    before = node.rows.reads.rows
    run(around_threshold(node, DIRECTION, 0.3, 100))
    assert node.rows.reads.rows - before == 2 * 500


@pytest.mark.parametrize("decimals", [1, 9])
def test_rows_around_a_threshold_are_mirrored_where_the_rows_are(decimals):
    X = np.random.default_rng(5).standard_normal((900, 2)).round(decimals)
    direction = np.array([0.8, 0.6])
    found = []
    for sign in (1.0, -1.0):
        near = run(around_threshold(measured(sign * X), direction, sign * 0.313, 60))
        order = np.lexsort((sign * near.rows.centers).round(9).T)
        found.append((sign * near.rows.centers[order], near.rows.weights[order], near.gap, near.spacing))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_rows_around_a_threshold_do_not_depend_on_the_order_of_rows():
    X, weights = rows_and_weights(900, decimals=1)
    order = np.random.default_rng(0).permutation(900)
    one, two = (
        run(around_threshold(measured(X[some], weights[some]), DIRECTION, 0.313, 60)).rows
        for some in (np.arange(900), order)
    )
    for a, b in zip(
        in_one_order(one.weights, one.weights, one.centers),
        in_one_order(two.weights, two.weights, two.centers),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-8)


# --- edges -----------------------------------------------------------------------------------------------


def binned(points, weights, deviation=1.0):
    grid = Grid(-REACH * deviation, 2 * REACH * deviation / BINS, BINS)
    bins = np.clip(((points - grid.low) / grid.width).astype(int), 0, BINS - 1)
    return grid, np.bincount(bins, weights, BINS)


@pytest.mark.parametrize("seed", range(3))
def test_edges_enclose_the_nearest_rows_and_cut_the_rest_into_equal_shares(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_normal(5000), rng.integers(0, 3, 5000).astype(float)
    low, high, n = -0.21, 0.37, 10
    edges = _edges(*binned(points, weights), low, high, n)
    assert (np.diff(edges) > 0).all()
    assert high in edges
    assert np.nextafter(low, -np.inf) in edges
    assert not ((edges >= low) & (edges < high)).any()
    assert (edges > high).sum() == (edges < np.nextafter(low, -np.inf)).sum() == n - 1
    mass = np.bincount(np.searchsorted(edges, points), weights, len(edges) + 1)
    middle = int(np.searchsorted(edges, high))
    assert mass[middle] == weights[(points >= low) & (points <= high)].sum()
    for part in (mass[:middle], mass[middle + 1 :]):
        assert len(part) == n
        np.testing.assert_allclose(part, part.sum() / n, atol=0.01 * part.sum() + 5)


def test_edges_of_mirrored_rows_are_mirrored():
    rng = np.random.default_rng(1)
    points = rng.standard_normal(3000)
    grid, mass = binned(points, np.ones(3000))
    right = _edges(grid, mass, -0.3, 0.5, 12)
    left = _edges(grid, mass[::-1], -0.5, 0.3, 12)
    np.testing.assert_allclose(right, -left[::-1], atol=1e-12)


def test_edges_where_one_side_has_no_rows_beyond():
    points = np.concatenate([np.full(50, 0.5), np.linspace(1.0, 2.0, 50)])
    grid, mass = binned(points, np.ones(100))
    edges = _edges(grid, mass, 0.5, 0.5, 5)
    assert (edges > 0.5).any()
    mass = np.bincount(np.searchsorted(edges, points), minlength=len(edges) + 1)
    middle = int(np.searchsorted(edges, 0.5))
    assert mass[middle] == 50
    assert mass[:middle].sum() == 0
    assert mass[middle + 1 :].sum() == 50
    nothing = _edges(grid, np.zeros(BINS), -0.1, 0.1, 5)
    assert nothing.tolist() == [np.nextafter(-0.1, -np.inf), 0.1]


def test_rows_far_beyond_the_grid_are_in_the_last_stretches():
    points = np.concatenate([np.linspace(-1, 1, 400), [-80.0, 90.0]])
    edges = _edges(*binned(points, np.ones(402)), -0.1, 0.1, 8)
    assert edges.min() > -REACH
    assert edges.max() < REACH
    found = np.searchsorted(edges, points)
    assert found[-2] == 0
    assert found[-1] == len(edges)


# --- the margin ------------------------------------------------------------------------------------------


def test_as_sigma_falls_the_direction_becomes_that_of_the_hard_margin():
    X, labels = two_blobs(120, 4, gap=7.0, seed=3)
    Z = X - X.mean(axis=0)
    rows = MicroClusters(Z, np.ones(120))
    v = Z[labels == 1].mean(axis=0) - Z[labels == 0].mean(axis=0)
    v /= np.linalg.norm(v)
    for sigma in (1.0, 0.3, 0.1, 0.03, 0.01):
        end, descent = minimize_at_scale(rows, v, ConnectivityIndex(sigma, 100.0, normalized=False))
        v = end.direction
    hard = SVC(kernel="linear", C=1e8).fit(Z, labels)
    normal = hard.coef_[0] / np.linalg.norm(hard.coef_)
    assert abs(v @ normal) > 0.999
    assert descent.status == CONVERGED or np.linalg.norm(descent.end_gradient) < 1e-2
    t = np.sort(Z @ v)
    width = np.diff(t).max()
    assert width == pytest.approx(2 / np.linalg.norm(hard.coef_), rel=0.01)
