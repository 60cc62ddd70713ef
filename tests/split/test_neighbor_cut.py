"""The cut in a graph of neighbors, held to plain loops, to copies, and to what it is for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from ravine import SpectralConnectivity
from ravine.data.memory import MemoryRows
from ravine.data.microclusters import nearest
from ravine.data.node import Labels, open_node
from ravine.data.query import run
from ravine.features import neighbors
from ravine.index.connectivity import ConnectivitySchedule
from ravine.split import neighbor_cut
from ravine.split.boundary import Hyperplane
from ravine.split.neighbor_cut import neighbor_graph
from ravine.split.projection import ProjectionMethod
from ravine.split.search import search
from ravine.tree.leaf_search import PRIORITIES
from tests.changed_method import with_order
from tests.nodes import measured, node_of


def graph_of(X, weights=None):
    return run(neighbor_graph(measured(X, weights)))


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
    node = measured(X)
    graph, standardization = run(neighbor_graph(node)), node.standardization
    for direction in rng.standard_normal((5, 3)):
        standardized = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = slow_cut(standardized, standardized @ direction > 0.3)
        assert graph.cut(graph.project(standardization, direction[None, :])[:, 0] > 0.3) == pytest.approx(
            expected, rel=1e-12
        )
        plane = Hyperplane(standardization.normals(direction), standardization.mean, 0.3)
        assert graph.cut_by(plane) == pytest.approx(expected, rel=1e-12)


def test_a_weight_is_as_many_copies():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    counts = rng.integers(0, 5, 60)
    counts[:4] = 14  # more than there are neighbors
    copies = rng.permutation(np.repeat(X, counts, axis=0))
    graphs = graph_of(X, counts.astype(float)), graph_of(copies)
    for direction in rng.standard_normal((3, 2)):
        expected = slow_cut((copies - copies.mean(axis=0)) / copies.std(axis=0), copies @ direction > 0.2)
        for graph in graphs:
            assert graph.cut(graph.values @ direction > 0.2) == pytest.approx(expected, rel=1e-9)


def test_the_cut_is_zero_between_groups_one_for_random_sides_and_two_for_an_empty_side():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 3))
    X[:200, 0] += 20.0
    graph = graph_of(X)
    assert graph.cut(graph.values[:, 0] > 10.0) == 0.0
    assert graph.cut(rng.random(400) < 0.5) == pytest.approx(1.0, abs=0.1)
    assert graph.cut(np.zeros(400, dtype=bool)) == 2.0


def test_many_or_wide_rows_are_sampled(monkeypatch):
    X = np.random.default_rng(3).standard_normal((6000, 4))
    assert len(graph_of(X).numbers) == 2000
    monkeypatch.setattr(neighbors, "GRAPH_CELLS", 4000)
    assert len(graph_of(X).numbers) == 1000
    monkeypatch.setattr(neighbors, "GRAPH_CELLS", 10)
    assert len(graph_of(X).numbers) == 500


def test_all_callers_see_the_same_rows():
    node = measured(np.random.default_rng(3).standard_normal((6000, 4)))
    first, again = (run(neighbor_graph(replace(node, stream=stream))) for stream in ((0,), (7, 1, 2)))
    np.testing.assert_array_equal(first.values, again.values)


@pytest.fixture(scope="module")
def digits():
    return measured(load_digits().data)


@pytest.fixture(scope="module")
def graph(digits):
    return run(neighbor_graph(digits))


def random_starts(digits, n, seed):
    """Directions of the standardized space."""
    return np.random.default_rng(seed).standard_normal((n, 64)) * digits.standardization.varies


def searched(digits, starts, share):
    """The best split of the digits from some starts, where sides need a share to be accepted."""
    init = digits.standardization.normals(starts)
    method = ProjectionMethod(
        ConnectivitySchedule(betas=(1.5,), least_share=share), init=init, neighbor_cut=True
    )
    return run(search(node_of(digits.rows.array), method))[1]


def smaller_share(rows, boundary):
    right = np.mean(boundary.signed_distance(rows) > 0)
    return min(right, 1.0 - right)


def test_the_end_with_the_smallest_cut_is_chosen(digits, graph):
    starts = random_starts(digits, 10, seed=2)
    ends = [searched(digits, start[None, :], 0.0) for start in starts]
    cuts = [graph.cut_by(end.boundary) for end in ends]
    assert np.argmin(cuts) != np.argmin([end.value for end in ends])  # lambda_2 would choose another
    chosen = searched(digits, starts, 0.0)
    assert graph.cut_by(chosen.boundary) == min(cuts)


def test_an_end_with_two_large_sides_comes_before_one_with_a_smaller_cut(digits, graph):
    starts = random_starts(digits, 6, seed=6)
    ends = [searched(digits, start[None, :], 0.0) for start in starts]
    cuts = np.array([graph.cut_by(end.boundary) for end in ends])
    shares = np.array([smaller_share(digits.rows, end.boundary) for end in ends])
    enough = shares[cuts.argmin()] + 1e-3
    assert (shares > enough).any()
    chosen = searched(digits, starts, enough)
    assert graph.cut_by(chosen.boundary) == cuts[shares >= enough].min() > cuts.min()
    assert graph.cut_by(searched(digits, starts, 0.5).boundary) == cuts.min()  # none is accepted


def of_schedule(method, **fields):
    """A method in several directions with other fields of its schedule."""
    schedule = replace(method.schedule, **fields)
    return replace(method, univariate=replace(method.univariate, schedule=schedule))


def test_of_several_directions_too(digits, graph):
    method = SpectralConnectivity(2, n_directions=2)._method()
    method = of_schedule(replace(method, n_microclusters=100), betas=(1.5,))
    method = run(method.prepare(run(open_node(digits, []))))
    clusters = method.given.clusters
    rng = np.random.default_rng(7)
    ends = [run(method.solve(digits, rng.standard_normal((2, 64)))) for _ in range(5)]

    def cut(end):
        near = nearest(
            graph.project(digits.standardization, end.directions), clusters.centers @ end.directions.T
        )[0]
        return graph.cut(end.right[near])

    def share(end):
        right = clusters.weights[end.right].sum() / clusters.weights.sum()
        return min(right, 1.0 - right)

    order = sorted(ends, key=cut)
    assert run(of_schedule(method, least_share=0.0).choose(digits, ends))[0] is order[0]
    enough = share(order[0]) + 1e-6
    assert any(share(end) >= enough for end in ends)
    best = run(of_schedule(method, least_share=enough).choose(digits, ends))[0]
    assert best is next(end for end in order if share(end) >= enough)


def test_split_order_neighbors_splits_where_the_cut_is_smallest(digits):
    rows = digits.rows
    tree = SpectralConnectivity(6).fit(rows.array).tree_
    leaf = np.zeros(rows.shape[0], dtype=int)
    for node in tree.inner:
        promise = {}
        for other in np.unique(leaf):
            if tree.splits[other] is not None:
                part = measured(rows.array[leaf == other], root_standardization=digits.standardization)
                graph = run(neighbor_graph(part))
                promise[int(other)] = max(0.0, 1.0 - graph.cut_by(tree.splits[other].boundary)) * part.total
                found = PRIORITIES["neighbors"](tree.splits[other], part.total, graph)
                assert found == pytest.approx(promise[int(other)])
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
        found = np.bincount(with_order(SpectralConnectivity(3, standardize=False), order).fit(X).labels_)
        assert set(expected) <= set(found.tolist())


def test_with_a_kernel_the_neighbors_in_the_raw_columns_do_not_count():
    for kernel, counts in ((None, True), ("rbf", False), ("diffusion", False)):
        for n_directions in (1, 2):
            method = SpectralConnectivity(2, kernel=kernel, n_directions=n_directions)._method()
            assert getattr(method, "univariate", method).neighbor_cut is counts


def test_with_labels_fewer_mistakes_come_first(digits, graph):
    y = load_digits().target
    known = np.flatnonzero(np.isin(y, (3, 8)))[:20]
    labels = Labels(digits.rows.array[known], (y[known] == 8).astype(int), np.ones(20))
    node = replace(digits, labels=labels, deviation=3.0)
    starts = random_starts(digits, 12, seed=9)
    method = ProjectionMethod(ConnectivitySchedule(betas=(1.5,)), neighbor_cut=True)
    method = run(method.prepare(run(open_node(node, []))))
    ends = run(method.solve_all(node, [start / np.linalg.norm(start) for start in starts]))

    def judged(end):
        point = end.point
        right = node.standardized_labels @ point.direction > point.index_value.threshold
        wrong = sum(bool(side) != bool(c) for side, c in zip(right, labels.classes, strict=True))
        points = graph.project(node.standardization, point.direction[None, :])[:, 0]
        return wrong, graph.cut(points > point.index_value.threshold)

    alone = [judged(run(method.choose(node, [end]))[0]) for end in ends]
    assert min(alone)[1] > min(cut for _, cut in alone)  # another has a smaller cut and more mistakes
    assert sorted(alone)[0][0] == sorted(alone)[1][0]  # as few mistakes, and a larger cut
    assert judged(run(method.choose(node, ends))[0]) == min(alone)


def test_the_graph_of_sparse_rows_is_that_of_dense_ones():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.4)
    X[:150, 0] += 5.0
    node = measured(X)
    dense, csr = (
        run(neighbor_graph(replace(node, rows=MemoryRows(rows)))) for rows in (X, sparse.csr_array(X))
    )
    for direction in rng.standard_normal((4, 6)):
        cuts = [
            graph.cut(graph.project(node.standardization, direction[None, :])[:, 0] > 0.1)
            for graph in (dense, csr)
        ]
        assert cuts[0] == pytest.approx(cuts[1], rel=1e-9)


def test_a_leaf_with_enough_rows_has_its_part_of_the_graph_of_the_root():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1000, 4))
    root = measured(X)
    whole = run(neighbor_graph(root))
    right = X[:, 0] > 0.2
    for size, shared in ((neighbor_cut.SHARED_ROWS, True), (neighbor_cut.SHARED_ROWS - 1, False)):
        here = np.flatnonzero(right)[:size]
        leaf = replace(root, rows=root.rows.select(here), root_standardization=root.standardization)
        graph = run(neighbor_graph(leaf, whole))
        assert sorted(graph.numbers.tolist()) == here.tolist()
        edges, of_root = (
            {
                tuple(sorted(pair))
                for pair in own.numbers[np.argsort(own.group)][np.argwhere(own.near.toarray())].tolist()
            }
            for own in (graph, whole)
        )
        inside = {pair for pair in of_root if set(pair) <= set(here.tolist())}
        assert (edges == inside) is shared
        assert edges >= inside or shared


def test_leaves_of_a_fit_take_their_part_of_the_graph_of_the_root(monkeypatch):
    """Splits of leaves are compared in the graph of the root: neighbors there may be in another leaf."""
    given = []

    def noted(node, of_root=None):
        given.append(of_root)
        return neighbor_graph(node, of_root)

    monkeypatch.setattr("ravine.tree.leaf_search.neighbor_graph", noted)
    X = np.random.default_rng(0).standard_normal((900, 3)) + np.repeat(np.eye(3), 300, axis=0) * 12
    assert SpectralConnectivity(3).fit(X).n_clusters_ == 3
    assert given[0] is None
    assert len(given) > 1
    assert all(one is not None and len(one.numbers) == 900 for one in given[1:])
