"""Micro-clusters stand for all rows: their weight and mean are those of the rows."""

import numpy as np
import pytest
from scipy import sparse

from ravine.data.memory import MemoryRows
from ravine.data.microclusters import (
    Compared,
    MicroClusters,
    NearestSum,
    microclusters,
    nearest,
    plus_plus,
)
from ravine.data.node import Node, measure
from ravine.data.query import run
from tests.engines import in_blocks
from tests.nodes import measured

AXES = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0][:2]


def rows_and_weights(n=3000, d=3, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * [1.0, 5.0, 0.1] + 7.0
    return X, rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)


def node_and_rows(n=3000, weighted=True):
    """A node, its rows standardized, and their weights."""
    X, weights = rows_and_weights(n, weighted=weighted)
    node = measured(X, weights if weighted else None)
    return node, node.standardization.apply(X), weights


def plain_sums(points, compared, weights, seeds):
    """Weight and sum of the points nearest to each seed, point by point."""
    mass, sums = np.zeros(len(seeds)), np.zeros((len(seeds), points.shape[1]))
    for point, other, weight in zip(points, compared, weights, strict=True):
        distances = np.linalg.norm(seeds - other, axis=1)
        k = distances.argmin()
        mass[k] += weight
        sums[k] += weight * point
    return mass, sums


@pytest.mark.parametrize("axes", [None, AXES])
@pytest.mark.parametrize("directions", [None, np.eye(2)[:1]])
def test_they_have_the_weight_and_the_mean_of_the_rows(directions, axes):
    node, _, weights = node_and_rows()
    if directions is not None and axes is None:
        directions = np.eye(3)[:1]
    found = run(microclusters(node, 40, "test", directions, axes))
    assert 30 <= len(found.weights) <= 40
    assert found.centers.shape[1] == (3 if axes is None else 2)
    assert found.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(found.weights @ found.centers, 0.0, atol=1e-8)


def test_in_a_projection_they_are_stretches_of_it():
    node, Z, _ = node_and_rows(weighted=False)
    found = run(microclusters(node, 30, "test", np.eye(3)[:1]))
    near = np.abs(Z[:, :1] - found.centers[:, 0]).argmin(axis=1)
    assert np.abs(Z[:, 0] - found.centers[near, 0]).mean() < 0.05
    assert np.abs(found.centers[:, 1]).max() < 1.5


def test_along_axes_they_are_the_micro_clusters_of_the_projected_rows():
    node, Z, weights = node_and_rows()
    along = run(microclusters(node, 30, "test", axes=AXES))
    projected = MemoryRows(Z @ AXES.T, weights)
    plain = run(measure(Node(projected, node.stream, standardize=False)))
    scale = plain.standardization.unit
    alone = run(microclusters(plain, 30, "test"))
    np.testing.assert_allclose(along.centers, alone.centers * scale, atol=1e-6)
    np.testing.assert_allclose(along.weights, alone.weights)


def test_along_axes_rows_may_be_compared_in_a_further_projection():
    node, Z, _ = node_and_rows(weighted=False)
    found = run(microclusters(node, 30, "test", np.eye(2)[1:], AXES))
    points = Z @ AXES.T
    near = np.abs(points[:, 1:] - found.centers[:, 1]).argmin(axis=1)
    assert np.abs(points[:, 1] - found.centers[near, 1]).mean() < 0.06
    assert np.abs(found.centers[:, 0]).max() < 1.5


@pytest.mark.parametrize("axes", [None, AXES])
@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
def test_few_rows_are_their_own(as_rows, axes):
    X, weights = rows_and_weights(n=25)
    node = run(measure(Node(as_rows(X, weights))))
    found = run(microclusters(node, 40, "test", axes=axes))
    counted = weights > 0
    Z = node.standardization.apply(X)[counted]
    np.testing.assert_allclose(found.centers, Z if axes is None else Z @ AXES.T, atol=1e-12)
    np.testing.assert_array_equal(found.weights, weights[counted])


@pytest.mark.parametrize("axes", [None, AXES])
@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
def test_sparse_rows_give_the_same(as_rows, axes):
    X, weights = rows_and_weights()
    dense, stored = (
        run(microclusters(run(measure(Node(as_rows(kind(X), weights)))), 20, "test", axes=axes))
        for kind in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(dense.centers, stored.centers, atol=1e-8)


def test_blocks_of_any_size_give_those_of_rows_in_memory():
    X, weights = rows_and_weights()
    node = measured(X, weights)
    for axes in (None, AXES):
        for size in (100, 777):
            other = Node(in_blocks(X, weights, size), measured=node.measured)
            one, two = (run(microclusters(each, 20, "test", None, axes)) for each in (node, other))
            np.testing.assert_allclose(one.centers, two.centers, atol=1e-9)
            np.testing.assert_allclose(one.weights, two.weights)


def test_the_purpose_chooses_the_seeds():
    node, _, _ = node_and_rows()
    one, again, other = (run(microclusters(node, 20, name)).centers for name in ("one", "one", "other"))
    np.testing.assert_array_equal(one, again)
    assert one.shape != other.shape or np.abs(one - other).max() > 1e-3


SEEDS = np.random.default_rng(2).standard_normal((12, 2))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("along", [False, True])
def test_sums_over_the_rows_nearest_to_each_seed_are_the_plain_sums(kind, along):
    X, weights = rows_and_weights(600)
    own = measured(X, weights).standardization
    Z, turn = own.apply(X), np.array([[0.6, 0.8], [-0.8, 0.6]])
    if along:
        how, points, compared = Compared(own, AXES, turn), Z @ AXES.T, Z @ AXES.T @ turn.T
    else:
        how, points, compared = Compared(own, directions=AXES), Z, Z @ AXES.T
    expected = plain_sums(points, compared, weights, SEEDS)
    for rows in (MemoryRows(kind(X), weights), in_blocks(kind(X), weights, 70)):
        (answer,) = rows.engine.answer(Node(rows).ask(NearestSum(how, SEEDS)))
        np.testing.assert_allclose(answer[0], expected[0])
        np.testing.assert_allclose(answer[1], expected[1], atol=1e-8)


def test_weights_are_copies_in_the_sums():
    X, weights = rows_and_weights(600)
    own = measured(X, weights).standardization
    request = NearestSum(Compared(own, AXES), SEEDS)
    (one,) = MemoryRows(X, weights).pass_over([request])
    (two,) = MemoryRows(np.repeat(X, weights.astype(int), axis=0)).pass_over([request])
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_mirrored_rows_and_seeds_give_mirrored_sums():
    X, weights = rows_and_weights(600)
    found = []
    for sign in (1.0, -1.0):
        own = measured(sign * X, weights).standardization
        requests = [
            NearestSum(Compared(own, directions=AXES), sign * SEEDS),
            NearestSum(Compared(own, AXES), sign * SEEDS),
        ]
        answers = MemoryRows(sign * X, weights).pass_over(requests)
        found.append([(mass, sign * sums) for mass, sums in answers])
    for one, other in zip(*found, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_of_seeds_as_near_the_first_is_chosen_whatever_the_rounding():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 4, (500, 2)).astype(float)
    centers = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    squares = ((points[:, None] - centers) ** 2).sum(axis=2)
    plain = squares.argmin(axis=1)
    for shake in (0.0, 1e-12):
        moved = points + shake * rng.standard_normal(points.shape)
        np.testing.assert_array_equal(nearest(moved, centers)[0], plain)


def test_the_seeds_lie_where_the_weight_is():
    points = np.linspace(0.0, 1.0, 300)[:, None]

    def centers(weights):
        node = measured(points, weights)
        own = node.standardization
        found = run(microclusters(node, 6, "test", axes=np.eye(1)))
        plain = run(microclusters(node, 6, "test"))
        assert isinstance(plain, MicroClusters)
        return [own.mean + each.centers / own.inverse_scale for each in (found, plain)]

    heavy = np.where(points[:, 0] < 0.1, 1e6, 1.0)
    assert all((found < 0.1).sum() >= 5 for found in centers(heavy))
    assert all((found < 0.1).sum() <= 2 for found in centers(np.ones(300)))


def test_no_seed_depends_on_rounding():
    """Pairs of far points tie exactly: each reduces the sum of squares by d1 + d2 - d12."""
    rng = np.random.default_rng(0)
    far = rng.standard_normal((10, 4)) * 50
    X = np.concatenate([rng.standard_normal((100, 4)), far, far + rng.standard_normal((10, 4)) * 5])
    noisy = X * (1 + 1e-12 * rng.standard_normal(X.shape))
    for seed in range(100):
        here, there = (plus_plus(Y, np.ones(120), 20, np.random.default_rng(seed)) for Y in (X, noisy))
        np.testing.assert_array_equal(here, there)


def test_seeds_are_different_points_of_positive_weight_spread_like_k_means():
    rng = np.random.default_rng(0)
    X = np.concatenate([center + rng.standard_normal((40, 2)) for center in np.eye(2, 2) * 100])
    weights = np.where(np.arange(80) % 4 == 0, 0.0, 3.0)
    for seed in range(50):
        chosen = plus_plus(X, weights, 12, np.random.default_rng(seed))
        assert len(set(chosen.tolist())) == 12
        assert (weights[chosen] > 0).all()
        assert set((chosen[:2] >= 40).tolist()) == {False, True}  # the second group is found at once
