"""Nearest neighbors, held to sorting and to plain loops."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import euclidean_distances

from ravine.features.neighbors import near_points, nth_nearest, weighted_median

DIGITS = load_digits().data[:600]


def sets_of(graph):
    return [set(graph.indices[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr)]


def plainly_near(rows, points, n, masses=None):
    """The points that have less than n mass nearer to a row, ties within a millionth, one pair at a time."""
    masses = np.ones(len(points)) if masses is None else masses
    found = []
    for distances in euclidean_distances(rows, points):
        nearer = [masses[distances < own / (1 + 1e-6)].sum() for own in distances]
        found.append({j for j, mass in enumerate(nearer) if mass < n})
    return found


def test_the_exact_nearest_are_those_of_sorting():
    rows, points = DIGITS[:50], DIGITS[50:]
    graph = near_points(points, 7, rows=rows)
    assert sets_of(graph) == plainly_near(rows, points, 7)
    assert (np.diff(graph.indptr) >= 7).all()
    assert near_points(points[:3], 7, rows=rows).nnz == 150


def test_points_at_one_distance_are_all_near_or_none():
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    masses = rng.integers(1, 4, len(grid)).astype(float)
    for given, most in ((None, 13), (masses, 9)):
        exact = sets_of(near_points(grid, 10, given))
        assert exact == plainly_near(grid, grid, 10, given)
        shaken = grid * (1 + 1e-12 * rng.standard_normal(grid.shape))
        assert sets_of(near_points(shaken, 10, given)) == exact
        assert max(map(len, exact)) == most


def test_a_point_is_its_own_neighbor_in_the_graph():
    graph = near_points(DIGITS, 5)
    assert (graph.diagonal() == 1).all()


def test_the_nth_nearest_counts_copies():
    line = np.array([0.0, 1.0, 3.0, 7.0])
    distances = np.abs(line[:, None] - line[None, :])
    assert nth_nearest(distances, np.ones(4), 2).tolist() == [3.0, 2.0, 3.0, 6.0]
    assert nth_nearest(distances, np.array([3.0, 1.0, 1.0, 1.0]), 2).tolist() == [0.0, 1.0, 3.0, 6.0]
    assert nth_nearest(distances, np.ones(4), 9).tolist() == [7.0, 6.0, 4.0, 7.0]  # there are no nine
    assert weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 3.0])) == 2.0


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("spacing", [1.0, 1e-3, 1e-5])  # the last two: inner products cancel
def test_pairs_near_each_other_do_not_depend_on_rounding(store, spacing, monkeypatch):
    monkeypatch.setattr("ravine.features.neighbors.PART_CELLS", 1000)  # seven points at a time, of 144
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2) - 5.5
    grid = np.hstack([1.0 + spacing * grid, np.zeros((len(grid), 1))])
    masses = rng.integers(1, 4, len(grid)).astype(float)
    slowly = [set(np.flatnonzero(near).tolist()) for near in _by_differences(grid, masses, 10)]
    signs = np.array([1.0, -1.0, 1.0])
    noisy = grid * (1 + 1e-13 * rng.standard_normal(grid.shape))
    for points in (grid, grid * signs, grid[:, ::-1], noisy):
        assert sets_of(near_points(store(points), 10, masses)) == slowly
        some = store(points[:50])
        assert sets_of(near_points(store(points), 10, masses, rows=some)) == slowly[:50]


def _by_differences(points, masses, n):
    """Whether point j is near i, for all pairs."""
    distances = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    nearer = distances[:, None, :] < distances[:, :, None] / (1 + 1e-6)
    return (nearer * masses).sum(axis=2) < n


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_copies_that_differ_by_rounding_are_all_near_or_none(store):
    rng = np.random.default_rng(1)
    points = np.repeat(rng.standard_normal((5, 4)), 20, axis=0)
    points *= 1 + 1e-12 * rng.standard_normal(points.shape)
    found = sets_of(near_points(store(points), 11))
    assert found == [{j for j in range(100) if i // 20 == j // 20} for i in range(100)]
