"""Nearest neighbors: exact ones by sorting, approximate ones by how often they are the same."""

import importlib.util
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from ravine import MinimumDensity
from ravine.features import neighbors as neighbors
from ravine.features.neighbors import Nearest, near_pairs, nth_nearest, weighted_median

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
    graph = Nearest(points, 7).graph(rows)
    assert sets_of(graph) == plainly_near(rows, points, 7)
    assert (np.diff(graph.indptr) >= 7).all()
    assert Nearest(points[:3], 7).graph(rows).nnz == 150


def test_points_at_one_distance_are_all_near_or_none():
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    masses = rng.integers(1, 4, len(grid)).astype(float)
    for given, most in ((None, 13), (masses, 9)):
        exact = sets_of(Nearest(grid, 10, given).graph(grid))
        assert exact == plainly_near(grid, grid, 10, given)
        shaken = grid * (1 + 1e-12 * rng.standard_normal(grid.shape))
        assert sets_of(Nearest(shaken, 10, given).graph(shaken)) == exact
        assert max(map(len, exact)) == most


def test_a_point_is_its_own_neighbor_in_the_graph():
    graph = Nearest(DIGITS, 5).graph(DIGITS)
    assert (graph.diagonal() == 1).all()


@pytest.mark.slow  # pynndescent compiles for a minute
def test_many_points_are_searched_by_pynndescent(monkeypatch):
    pytest.importorskip("pynndescent")
    exact = Nearest(DIGITS, 10)
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 500)
    approximate = Nearest(DIGITS, 10)
    assert not exact.approximate
    assert approximate.approximate
    found = zip(*(sets_of(search.graph(DIGITS)) for search in (exact, approximate)), strict=True)
    assert np.mean([len(a & b) / len(a | b) for a, b in found]) > 0.95
    model = MinimumDensity(4, kernel="diffusion").fit(DIGITS)
    assert model.feature_map_._nearest.approximate
    assert (model.predict(DIGITS) == model.labels_).mean() > 0.99
    X, y = make_blobs(600, 8, centers=4, random_state=0)
    assert adjusted_rand_score(y, MinimumDensity(4, kernel="diffusion").fit(X).labels_) == 1.0


class Descent:
    """Stands for pynndescent.NNDescent: exact, but now and then it finds too few."""

    def __init__(self, points, n_neighbors, random_state):
        self.search = NearestNeighbors().fit(points)
        assert n_neighbors >= 10
        assert random_state is not None

    def prepare(self):
        pass

    def query(self, rows, k):
        distances, near = self.search.kneighbors(rows, k)
        near[::7, -1] = -1
        return near.astype(np.int32), distances


def test_above_a_size_another_search_takes_over(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=Descent))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 500)
    near = sets_of(Nearest(DIGITS, 10).graph(DIGITS))
    assert near[1::7] == plainly_near(DIGITS[1::7], DIGITS, 10)
    assert all(len(some) <= 10 for some in near[::7])  # what was not found is left out
    model = MinimumDensity(4, kernel="diffusion").fit(DIGITS)
    assert model.feature_map_._nearest.approximate
    assert (model.predict(DIGITS) == model.labels_).all()
    assert not Nearest(DIGITS[:500], 10).approximate


def test_without_pynndescent_the_search_is_exact_and_says_so(monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 500)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"exact .*600 rows.*ravine\[neighbors\]"):
        nearest = Nearest(DIGITS, 5)
    assert sets_of(nearest.graph(DIGITS)) == plainly_near(DIGITS, DIGITS, 5)


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
        here, there = _near_pairs(store(points), masses, 10)
        found = [{i, *there[here == i].tolist()} for i in range(len(grid))]
        assert found == slowly


def _near_pairs(points, masses, n):
    inner = (points @ points.T).toarray() if sparse.issparse(points) else None
    return near_pairs(points, inner, masses, n)


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
    here, there = _near_pairs(store(points), np.ones(100), 11)
    assert set(zip(here.tolist(), there.tolist(), strict=True)) == {
        (i, j) for i in range(100) for j in range(100) if i != j and i // 20 == j // 20
    }


def test_distances_of_sparse_rows_are_held_in_pieces(monkeypatch):
    """All pairs of 3000 rows have 69 MiB of distances; one MiB at a time gives the same neighbors."""
    X = sparse.random(3000, 200, 0.05, format="csr", random_state=0)
    expected = Nearest(X, 5).graph(X[:200])
    monkeypatch.setattr(neighbors, "DISTANCES", 1)
    sizes = []
    chunked = pairwise.pairwise_distances

    def measured(*given, **options):
        found = chunked(*given, **options)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(pairwise, "pairwise_distances", measured)
    found = Nearest(X, 5).graph(X[:200])
    assert (found != expected).nnz == 0
    assert len(sizes) > 1
    assert max(sizes) <= 1 << 20
