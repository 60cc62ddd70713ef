"""The cut in a graph of neighbors, held to plain loops, to copies, and to what it is for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from ravine import SpectralConnectivity
from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.data.microclusters import microclusters, nearest
from ravine.data.standardization import standardization_of
from ravine.index.connectivity import ConnectivitySchedule
from ravine.optimize.pursuit import View
from ravine.split import neighbor_cut as neighbor_cut
from ravine.split.boundary import Hyperplane
from ravine.data.node import Labels
from ravine.split.neighbor_cut import NeighborGraph
from ravine.split.projection import ProjectionMethod
from ravine.tree.grow import kept_together


def graph_of(rows):
    return NeighborGraph.of(rows, run(rows, standardization_of(rows, None, True)))


def slow_cut(points, right):
    """The normalized cut, edge after edge: neighbors have fewer than ten others nearer to either."""
    n = len(points)
    distances = np.array([[np.linalg.norm(a - b) for b in points] for a in points])
    near = np.array(
        [[(row < row[j] - 1e-9).sum() - (row[j] > 1e-9) < 10 for j in range(n)] for row in distances]
    )
    cut = volume_right = volume_left = 0.0
    for i in range(n):
        for j in range(n):
            if i != j and (near[i, j] or near[j, i]):
                cut += right[i] and not right[j]
                volume_right += right[i]
                volume_left += not right[i]
    return cut / volume_right + cut / volume_left


def test_the_cut_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 3)) * [1.0, 5.0, 0.2]
    rows = MemoryRows(X)
    standardization = run(rows, standardization_of(rows, None, True))
    graph = NeighborGraph.of(rows, standardization)
    for direction in rng.standard_normal((5, 3)):
        standardized = (X - standardization.mean) * standardization.inverse_scale
        expected = slow_cut(standardized, standardized @ direction > 0.3)
        assert graph.cut(graph.project(direction[None, :])[:, 0] > 0.3) == pytest.approx(expected, rel=1e-12)
        plane = Hyperplane(standardization.weights(direction), standardization.mean, 0.3)
        assert graph.cut_by(plane) == pytest.approx(expected, rel=1e-12)


def test_a_weight_is_as_many_copies():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    counts = rng.integers(0, 5, 60)
    counts[:4] = 14  # more than there are neighbors
    copies = rng.permutation(np.repeat(X, counts, axis=0))
    rows = MemoryRows(copies)
    standardization = run(rows, standardization_of(rows, None, True))
    graphs = [NeighborGraph.of(some, standardization) for some in (MemoryRows(X, counts.astype(float)), rows)]
    for direction in rng.standard_normal((3, 2)):
        expected = slow_cut(
            (copies - standardization.mean) * standardization.inverse_scale, copies @ direction > 0.2
        )
        for graph in graphs:
            assert graph.cut(graph.rows.array @ direction > 0.2) == pytest.approx(expected, rel=1e-9)


def test_the_cut_is_nought_between_groups_one_for_random_sides_and_two_for_an_empty_side():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 3))
    X[:200, 0] += 20.0
    graph = graph_of(MemoryRows(X))
    assert graph.cut(graph.rows.array[:, 0] > 10.0) == 0.0
    assert graph.cut(rng.random(400) < 0.5) == pytest.approx(1.0, abs=0.1)
    assert graph.cut(np.zeros(400, dtype=bool)) == 2.0


def test_many_or_wide_rows_are_sampled(monkeypatch):
    X = np.random.default_rng(3).standard_normal((6000, 4))
    assert graph_of(MemoryRows(X)).rows.shape[0] == 2000
    monkeypatch.setattr(neighbor_cut, "GRAPH_CELLS", 1000)
    assert graph_of(MemoryRows(X)).rows.shape[0] == 250
    monkeypatch.setattr(neighbor_cut, "GRAPH_CELLS", 10)
    assert graph_of(MemoryRows(X)).rows.shape[0] == 100


@pytest.fixture(scope="module")
def digits():
    rows = MemoryRows(load_digits().data)
    return rows, run(rows, standardization_of(rows, None, True))


def searched(digits, starts, share):
    """The best split of the digits from some starts, where sides need a share to be accepted."""
    rows, standardization = digits
    family = ConnectivitySchedule(betas=(1.5,), least_share=share)
    splitter = ProjectionMethod(family, init=standardization.weights(starts), neighbor_cut=True)
    return run(rows, splitter.search(rows, None, 1.0, np.random.default_rng(0)))[1]


def smaller_share(rows, boundary):
    right = np.mean(boundary.signed_distance(rows) > 0)
    return min(right, 1.0 - right)


def test_the_end_is_kept_that_parts_the_fewest_neighbors(digits):
    rows, standardization = digits
    graph = NeighborGraph.of(rows, standardization)
    starts = np.random.default_rng(6).standard_normal((6, 64)) * (standardization.inverse_scale > 0)
    ends = [searched(digits, start[None, :], 0.0) for start in starts]
    cuts = [graph.cut_by(end.boundary) for end in ends]
    assert np.argmin(cuts) != np.argmin([end.value for end in ends])  # lambda_2 would choose another
    chosen = searched(digits, starts, 0.0)
    assert graph.cut_by(chosen.boundary) == min(cuts)


def test_an_end_with_two_large_sides_comes_before_one_that_parts_fewer(digits):
    rows, standardization = digits
    graph = NeighborGraph.of(rows, standardization)
    starts = np.random.default_rng(6).standard_normal((6, 64)) * (standardization.inverse_scale > 0)
    ends = [searched(digits, start[None, :], 0.0) for start in starts]
    cuts = np.array([graph.cut_by(end.boundary) for end in ends])
    shares = np.array([smaller_share(rows, end.boundary) for end in ends])
    enough = shares[cuts.argmin()] + 1e-3
    assert (shares > enough).any()
    chosen = searched(digits, starts, enough)
    assert graph.cut_by(chosen.boundary) == cuts[shares >= enough].min() > cuts.min()
    assert graph.cut_by(searched(digits, starts, 0.5).boundary) == cuts.min()  # none is accepted


def test_of_several_directions_too(digits):
    rows, standardization = digits
    graph = NeighborGraph.of(rows, standardization)
    splitter = SpectralConnectivity(2, projection="orthogonal", beta=1.5)._splitter(64)
    rng = np.random.default_rng(7)
    clusters = run(rows, microclusters(rows, standardization, 100, rng))
    ends = [splitter._pursue(clusters, rng.standard_normal((2, 64)), 3.0) for _ in range(5)]

    def cut(end):
        near = nearest(graph.project(end.directions), clusters.centers @ end.directions.T)[0]
        return graph.cut(end.right[near])

    def share(end):
        right = clusters.weights[end.right].sum() / clusters.weights.sum()
        return min(right, 1.0 - right)

    order = sorted(ends, key=cut)
    assert replace(splitter, least_share=0.0)._best(rows, standardization, ends, clusters) is order[0]
    enough = share(order[0]) + 1e-6
    best = replace(splitter, least_share=enough)._best(rows, standardization, ends, clusters)
    assert best is next(end for end in order if share(end) >= enough)


def test_split_order_neighbors_splits_where_the_fewest_are_parted(digits):
    rows, standardization = digits
    tree = SpectralConnectivity(6, split_order="neighbors").fit(rows.array).tree_
    leaf = np.zeros(rows.shape[0], dtype=int)
    for node in tree.inner:
        promise = {}
        for other in np.unique(leaf):
            if tree.splits[other] is not None:
                part = rows.select(np.flatnonzero(leaf == other))
                promise[int(other)] = kept_together(tree.splits[other], part, standardization) * part.total
        assert max(promise, key=promise.get) == node
        here = np.flatnonzero(leaf == node)
        right = tree.splits[node].boundary.signed_distance(rows.select(here)) > 0
        leaf[here[~right]], leaf[here[right]] = tree.left[node], tree.right[node]


def test_split_order_neighbors_prefers_two_groups_to_a_larger_one():
    rng = np.random.default_rng(8)
    sizes = {"neighbors": [140, 140, 300], "size": [280]}
    X = rng.standard_normal((580, 3))
    X[300:, 0] += 15.0
    X[440:, 1] += 6.0
    for order, expected in sizes.items():
        found = np.bincount(SpectralConnectivity(3, split_order=order, standardize=False).fit(X).labels_)
        assert set(expected) <= set(found.tolist())


def test_a_kernel_tells_what_is_near_itself():
    for kernel, spares in ((None, True), ("rbf", False), ("diffusion", False)):
        for projection in ("univariate", "orthogonal"):
            splitter = SpectralConnectivity(2, kernel=kernel, projection=projection)._splitter(4)
            assert getattr(splitter, "univariate", splitter).neighbor_cut is spares


def test_with_labels_fewer_mistakes_come_first(digits):
    rows, standardization = digits
    y = load_digits().target
    known = np.flatnonzero(np.isin(y, (3, 8)))[:20]
    labels = Labels(rows.array[known], (y[known] == 8).astype(int), np.ones(20))
    graph = NeighborGraph.of(rows, standardization)
    starts = np.random.default_rng(9).standard_normal((12, 64)) * (standardization.inverse_scale > 0)

    plain = ProjectionMethod(ConnectivitySchedule(betas=(1.5,)), neighbor_cut=True)
    splitter, view = plain.steered(labels), View(standardization, 3.0, labels.rows)

    def judged(some):
        point = run(rows, splitter._best(rows, view, some, 1.0)).point
        right = view.standardized @ point.direction > point.index_value.threshold
        wrong = sum(bool(side) != bool(c) for side, c in zip(right, labels.classes, strict=True))
        return wrong, graph.cut(graph.project(point.direction[None, :])[:, 0] > point.index_value.threshold)

    alone = [judged(start[None, :] / np.linalg.norm(start)) for start in starts]
    assert min(alone)[1] > min(cut for _, cut in alone)  # another parts fewer, with more mistakes
    assert sorted(alone)[0][0] == sorted(alone)[1][0]  # as few mistakes, but parts more
    assert judged(starts / np.linalg.norm(starts, axis=1, keepdims=True)) == min(alone)


def test_the_graph_of_sparse_rows_is_that_of_dense_ones():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.4)
    X[:150, 0] += 5.0
    standardization = run(MemoryRows(X), standardization_of(MemoryRows(X), None, True))
    dense, thin = (NeighborGraph.of(MemoryRows(rows), standardization) for rows in (X, sparse.csr_array(X)))
    for direction in rng.standard_normal((4, 6)):
        cuts = [graph.cut(graph.project(direction[None, :])[:, 0] > 0.1) for graph in (dense, thin)]
        assert cuts[0] == pytest.approx(cuts[1], rel=1e-9)
