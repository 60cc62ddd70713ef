"""Growth: which leaf is split next, which divisions are not made, and what a search depends on."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from ravine import MinimumDensity, SpectralConnectivity
from ravine.data.memory import InMemory, MemoryRows
from ravine.data.node import Labels, labels_of
from ravine.data.principal import principal
from ravine.evidence.significance import SignificanceTest
from ravine.index.density import MinimumDensitySchedule
from ravine.split.boundary import Hyperplane
from ravine.split.projection import ProjectionMethod
from ravine.split.search import BaseMethod, Outcome, search_opened
from ravine.split.split import Evidence
from ravine.tree import grow as growing
from ravine.tree import leaf_search
from ravine.tree.grow import Limits, grow
from ravine.tree.leaf_search import PRIORITIES, divides_labels
from tests.nodes import node_of
from tests.oracles import two_blobs


@dataclass
class Middle(BaseMethod):
    """Divides at the mean of the first column, or elsewhere, with any value; it records what it is given."""

    value: object = lambda node: 0.0
    shift: object = lambda node: 0.0
    nodes: list = field(default_factory=list)
    takes_labels: bool = True
    name: str = "middle"

    def starts(self, node):
        found = yield from principal(node, 1)
        self.nodes.append(node)
        return replace(node, deviation=float(found.deviations[0])), [None]

    def solve(self, node, start):
        return "end"
        yield

    def finish(self, node, end):
        first = np.eye(node.n_features)[0]
        return Outcome(first, self.shift(node), self.value(node), "done", 1, named_sides=True)
        yield


def constant(split, total, graph):
    return 0.0


def grown(X, method, n_leaves, weights=None, *, priority=constant, labels=None, level=None, min_weight=1.0):
    watched = []
    root = node_of(X, weights, min_weight=min_weight)
    found = grow(
        root,
        method,
        Limits(n_leaves, 10**9, min_weight),
        priority=priority,
        level=level or 0.01,
        auto=level is not None,
        watch=watched.append,
        labels=labels,
    )
    return found, watched


def column(*places):
    return np.array(places, dtype=float)[:, None]


# --- divisions that are not made --------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [100.0, -100.0])
def test_a_division_with_an_empty_side_is_not_made(shift):
    method = Middle(shift=lambda node: shift)
    found, watched = grown(column(*range(20)), method, 3)
    assert found.tree.n_leaves == 1
    assert found.tree.refused[0] is not None  # the split is known, and was not made
    assert watched == []
    np.testing.assert_array_equal(found.labels, 0)


def test_a_side_of_rows_without_weight_is_empty():
    X, weights = column(*range(18), 1000), np.append(np.ones(18), 0.0)  # too few for far rows
    method = Middle(shift=lambda node: 100.0)
    assert grown(X, method, 2, weights)[0].tree.n_leaves == 1
    weights[-1] = 1.0
    method = Middle(shift=lambda node: 0.5)
    found, _ = grown(X, method, 2, weights)
    assert found.tree.n_leaves == 2
    np.testing.assert_array_equal(found.labels, [*[0] * 18, 1])


@pytest.mark.parametrize("local", [True, False])
def test_other_leaves_are_split_where_a_division_is_not_made(monkeypatch, local):
    monkeypatch.setattr(InMemory, "local", local)
    X = column(*range(10), *range(100, 140))
    method = Middle(shift=lambda node: 100.0 if node.rows.total == 40 else 0.0)  # the first in line
    found, watched = grown(X, method, 3)
    assert found.tree.n_leaves == 3
    assert [progress.weight for progress in watched] == [50.0, 10.0]
    assert [progress.n_leaves for progress in watched] == [2, 3]
    np.testing.assert_array_equal(found.labels, np.repeat([0, 1, 2], [5, 5, 40]))
    assert [split is not None for split in found.tree.refused] == [node == 2 for node in range(5)]


# --- the order -------------------------------------------------------------------------------------------


def sizes_split(watched):
    return [progress.weight for progress in watched]


def test_of_equal_priorities_the_larger_leaf_is_split_first():
    X = column(*range(30), *range(1000, 1070))
    assert sizes_split(grown(X, Middle(), 4)[1]) == [100.0, 70.0, 35.0]
    assert sizes_split(grown(-X, Middle(), 4)[1]) == [100.0, 70.0, 35.0]


def test_of_equal_priorities_and_sizes_the_lower_value_comes_first():
    X = column(*range(40), *range(1000, 1040))
    for sign in (1.0, -1.0):
        method = Middle(value=lambda node, sign=sign: sign * float(node.standardization.mean[0]))
        found, _ = grown(X, method, 3)
        assert found.tree.inner.tolist() == [0, 1 if sign > 0 else 2]


def test_of_leaves_that_tie_in_everything_the_first_node_is_split():
    found, _ = grown(column(*range(40), *range(1000, 1040)), Middle(), 3)
    assert found.tree.inner.tolist() == [0, 1]


def test_a_higher_priority_comes_before_size_and_a_split_of_labels_before_both():
    X = column(*range(10), *range(1000, 1070))

    def prefers_few(split, total, graph):
        return -total

    assert sizes_split(grown(X, Middle(), 3, priority=prefers_few)[1]) == [80.0, 10.0]
    few = labels_of(MemoryRows(X), np.array([12, 77]), np.array([0, 1]))
    assert sizes_split(grown(X, Middle(), 3, priority=prefers_few, labels=few)[1]) == [80.0, 70.0]


def test_priorities_are_depth_by_weight_weight_and_minus_the_value():
    split = SimpleNamespace(quality=0.25, value=3.0)
    found = [PRIORITIES[name](split, 80.0, None) for name in ("depth", "size", "value")]
    assert found == [20.0, 80.0, -3.0]


def test_a_split_divides_labels_if_it_separates_half_of_the_pairs():
    rows = column(0, 1, 2, 3)

    def divides(classes, at, weights=(1, 1, 1, 1)):
        plane = Hyperplane(np.ones(1), np.zeros(1), at)
        labels = Labels(rows, np.array(classes), np.array(weights, dtype=float))
        return divides_labels(labels, SimpleNamespace(boundary=plane))

    assert divides((0, 0, 1, 1), 1.5)
    assert divides((0, 0, 1, 1), 0.5)  # two of four pairs
    assert not divides((0, 0, 1, 1), 0.5, (1, 2, 1, 1))
    assert not divides((0, 0, 1, 1), 9.0)
    assert not divides((0, 0, 0, 0), 1.5)
    assert not divides_labels(None, SimpleNamespace())


# --- what a search depends on ----------------------------------------------------------------------------


def streams(X, n_leaves, weights=None):
    """The random stream of every search, by the rows that were searched."""
    method = Middle()
    grown(X, method, n_leaves, weights)
    counted = (
        frozenset(np.abs(node.rows.map(lambda block: block.dense()[:, 1])).tolist()) for node in method.nodes
    )
    return dict(zip(counted, (node.stream for node in method.nodes), strict=True))


def test_random_numbers_are_the_same_in_a_mirror_image():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(60), np.arange(60.0)])
    found = streams(X, 6)
    assert len(found) == len(set(found.values())) == 9  # 2 K - 3 searches, each with its own stream
    assert streams(X * [-1.0, 1.0], 6) == found


def test_rows_without_weight_do_not_change_the_random_numbers():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(60), np.arange(60.0)])
    empty = np.column_stack([rng.standard_normal(7), np.arange(60.0, 67.0)])
    more = np.concatenate([empty, X])
    assert streams(more, 6, np.append(np.zeros(7), np.ones(60))) == streams(X, 6)


def test_two_k_minus_three_searches_make_k_leaves():
    for k in (1, 2, 3, 5):
        method = Middle()
        assert grown(column(*np.random.default_rng(1).random(64)), method, k)[0].tree.n_leaves == k
        assert len(method.nodes) == max(1, 2 * k - 3)


@pytest.mark.parametrize("name", ["depth", "neighbors", "size"])
@pytest.mark.parametrize("kind", ["rows", "weights", "labels", "a far group"])
@pytest.mark.parametrize("seed", range(2))
def test_light_leaves_wait_for_heavy_ones_and_the_tree_is_the_same(name, kind, seed, monkeypatch):
    searched = []
    monkeypatch.setattr(
        leaf_search,
        "search_opened",
        lambda opened, method: searched.append(opened) or search_opened(opened, method),
    )
    rng = np.random.default_rng(seed)
    sizes = np.repeat(np.arange(6), [30, 40, 50, 60, 90, 130])
    X = rng.standard_normal((400, 2)) + 4.0 * rng.standard_normal((6, 2))[sizes]
    if kind == "a far group":
        X[:20] = 400.0 + rng.standard_normal((20, 2))
    weights = rng.uniform(0.2, 3.0, 400) if kind == "weights" else None
    few = np.arange(0, 400, 20)
    labels = labels_of(MemoryRows(X), few, few % 3) if kind == "labels" else None
    method = ProjectionMethod(MinimumDensitySchedule())
    found, _ = grown(X, method, 7, weights, priority=PRIORITIES[name], labels=labels)
    n_searches = len(searched)
    searched.clear()
    no_bound = (-np.inf,) * 3  # every leaf is searched before the next split
    monkeypatch.setattr(growing, "bound_rank", lambda priority, total, labels: (labels is None, *no_bound))
    slow, _ = grown(X, method, 7, weights, priority=PRIORITIES[name], labels=labels)
    assert replace(found.tree, refused=slow.tree.refused) == slow.tree
    np.testing.assert_array_equal(found.labels, slow.labels)
    assert n_searches <= len(searched)
    if kind == "rows" and name == "size":
        assert n_searches < len(searched)


@pytest.mark.parametrize(
    "model",
    [MinimumDensity(7), MinimumDensity("auto"), SpectralConnectivity(4), MinimumDensity(7, max_depth=3)],
    ids=str,
)
def test_the_tree_is_the_same_where_likely_leaves_are_searched_in_the_same_passes(monkeypatch, model):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 3)) + 7.0 * rng.standard_normal((6, 3))[np.arange(400) % 6]
    usual = model.fit(X)
    labels, tree = usual.labels_, usual.tree_
    monkeypatch.setattr(InMemory, "local", False)
    again = model.fit(X)
    np.testing.assert_array_equal(again.labels_, labels)
    assert again.tree_ == tree  # with the refused splits


def test_likely_leaves_are_the_children_of_waiting_splits_as_many_as_may_follow(monkeypatch):
    monkeypatch.setattr(InMemory, "local", False)
    together = []
    run_all = growing.run_all
    monkeypatch.setattr(growing, "run_all", lambda queries: together.append(len(queries)) or run_all(queries))
    X = column(*np.random.default_rng(1).random(64))
    method = Middle()
    assert grown(X, method, 6)[0].tree.n_leaves == 6
    assert together[0] == 1  # the root
    assert max(together) > 2
    assert 3 * len(method.nodes) == sum(together) + 1  # each is opened, examined for far rows, searched
    searched = [node.stream for node in method.nodes]
    assert len(set(searched)) == len(searched)  # no leaf is searched twice


# --- attempts --------------------------------------------------------------------------------------------


def attempts(monkeypatch, X, labels=None, p_value=1.0, fallback=True):
    """The searches of the root: with labels or without, and with which test, if none is significant."""
    made = []

    class Other(Middle):
        pass

    method = Middle()
    method.fallbacks = lambda: [Other(nodes=method.nodes)] if fallback else []

    def run_test(test, node, split):
        assert node.labels is None  # references have none
        made.append((method.nodes[-1].labels is not None, isinstance(test.method, Other), test.own_tails))
        return replace(split, evidence=Evidence(p_value, 1.0, 0.0, 1.0, 3))
        yield

    monkeypatch.setattr(SignificanceTest, "run", run_test)
    found, _ = grown(X, method, 2, labels=labels, level=0.05)
    return made, found.tree


def test_labels_come_first_then_a_search_without_then_the_fallbacks(monkeypatch):
    X, _ = two_blobs(200, 2)
    few = labels_of(MemoryRows(X), np.array([0, 199]), np.array([0, 1]))
    made, tree = attempts(monkeypatch, X, few)
    assert made == [(True, False, False), (False, False, False), (False, True, True)]
    assert tree.n_leaves == 1
    assert tree.refused[0] is not None
    made, tree = attempts(monkeypatch, X, few, p_value=0.001)
    assert made == [(True, False, False)]
    assert tree.n_leaves == 2


def test_labels_of_one_class_do_not_change_the_search(monkeypatch):
    X, _ = two_blobs(200, 2)
    few = labels_of(MemoryRows(X), np.array([0, 199]), np.array([1, 1]))
    assert attempts(monkeypatch, X, few)[0] == [(False, False, False), (False, True, True)]


@pytest.mark.parametrize(("n", "tried"), [(79, False), (80, True)])
def test_a_fallback_needs_twenty_rows_per_column(monkeypatch, n, tried):
    made, _ = attempts(monkeypatch, np.random.default_rng(0).standard_normal((n, 4)))
    assert [fallback for _, fallback, _ in made] == [False, True][: 1 + tried]
