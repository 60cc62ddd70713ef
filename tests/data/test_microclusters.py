"""Micro-clusters stand for all rows: their weight and mean are those of the rows."""

import numpy as np
import pytest
from scipy import sparse

from ravine.data.memory import MemoryRows
from ravine.data.microclusters import around_threshold, microclusters, nearest, of_points
from ravine.data.query import run
from ravine.data.standardization import standardization_of


def blocks(n=3000, d=3, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * [1.0, 5.0, 0.1] + 7.0
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    rows = MemoryRows(X, weights)
    return (
        rows,
        run(rows, standardization_of(rows, None, True)),
        X,
        np.ones(n) if weights is None else weights,
    )


@pytest.mark.parametrize("directions", [None, np.eye(3)[:1]])
def test_they_have_the_weight_and_the_mean_of_the_rows(directions):
    rows, standardization, _, weights = blocks()
    found = run(rows, microclusters(rows, standardization, 40, np.random.default_rng(0), directions))
    assert 30 <= len(found.weights) <= 40
    assert found.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(found.weights @ found.centers, 0.0, atol=1e-8)


def test_in_a_projection_they_are_stretches_of_it():
    rows, standardization, X, _ = blocks(weighted=False)
    found = run(rows, microclusters(rows, standardization, 30, np.random.default_rng(0), np.eye(3)[:1]))
    Z = (X - standardization.mean) * standardization.inverse_scale
    nearest = np.abs(Z[:, :1] - found.centers[:, 0]).argmin(axis=1)
    assert np.abs(Z[:, 0] - found.centers[nearest, 0]).mean() < 0.05
    assert np.abs(found.centers[:, 1]).max() < 1.5


def test_few_rows_are_their_own():
    rows, standardization, X, weights = blocks(n=25)
    found = run(rows, microclusters(rows, standardization, 40, np.random.default_rng(0)))
    counted = weights > 0
    np.testing.assert_allclose(
        found.centers, ((X - standardization.mean) * standardization.inverse_scale)[counted]
    )
    np.testing.assert_array_equal(found.weights, weights[counted])


def test_sparse_rows_give_the_same():
    rows, standardization, X, weights = blocks()
    other = MemoryRows(sparse.csr_array(X), weights)
    dense, thin = (
        run(each, microclusters(each, standardization, 20, np.random.default_rng(0)))
        for each in (rows, other)
    )
    np.testing.assert_allclose(dense.centers, thin.centers, atol=1e-8)


def test_points_in_memory_keep_their_weight_mean_and_lie_within_the_radii():
    rng = np.random.default_rng(0)
    points, weights = rng.standard_normal((2000, 2)), rng.integers(1, 4, 2000).astype(float)
    found, radii = of_points(points, weights, 50, rng)
    assert found.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(found.weights @ found.centers, weights @ points)
    distance = np.sqrt(((points[:, None] - found.centers) ** 2).sum(axis=2))
    group, near = nearest(points, found.centers)
    np.testing.assert_array_equal(group, distance.argmin(axis=1))
    np.testing.assert_allclose(near, distance.min(axis=1))
    assert ((distance <= radii + 1e-12).any(axis=1)).all()
    few, none = of_points(points[:9], weights[:9], 50, rng)
    np.testing.assert_array_equal(few.centers, points[:9])
    assert not none.any()


def test_the_seeds_lie_where_the_weight_is():
    points = np.linspace(0.0, 1.0, 300)[:, None]
    heavy = np.where(points[:, 0] < 0.1, 1e6, 1.0)
    found, _ = of_points(points, heavy, 6, np.random.default_rng(0))
    assert (found.centers < 0.1).sum() >= 5
    even, _ = of_points(points, np.ones(300), 6, np.random.default_rng(0))
    assert (even.centers < 0.1).sum() <= 2


def test_around_a_cut_the_nearest_rows_are_there_one_by_one():
    rows, standardization, X, weights = blocks()
    direction = np.array([0.6, 0.8, 0.0])
    near = around_threshold(rows, standardization, direction, 0.3, 100)
    points = ((X - standardization.mean) * standardization.inverse_scale) @ direction
    counted = weights > 0
    left, right = points[counted & (points <= 0.3)], points[counted & (points > 0.3)]
    assert near.gap == pytest.approx(right.min() - left.max())
    assert near.middle == pytest.approx((right.min() + left.max()) / 2)
    assert near.smaller == pytest.approx(min(weights[points <= 0.3].sum(), weights[points > 0.3].sum()))
    assert near.rows.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(near.rows.weights @ near.rows.centers, 0.0, atol=1e-8)
    found = near.rows.centers @ direction
    for row in [*np.sort(left)[-25:], *np.sort(right)[:25]]:
        assert np.abs(found - row).min() < 1e-9
    assert len(found) <= 110


def test_rows_around_a_cut_are_mirrored_where_the_rows_are():
    X = np.round(np.random.default_rng(5).standard_normal((900, 2)), 1)  # with many rows at one place
    direction = np.array([0.8, 0.6])
    found = []
    for sign in (1.0, -1.0):
        rows = MemoryRows(sign * X)
        standardization = run(rows, standardization_of(rows, None, True))
        near = around_threshold(rows, standardization, direction, sign * 0.313, 60)
        order = np.lexsort((sign * near.rows.centers).round(9).T)
        found.append((sign * near.rows.centers[order], near.rows.weights[order], near.gap, near.spacing))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
