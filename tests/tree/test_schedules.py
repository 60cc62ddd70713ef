"""The tree does not depend on how an engine reads the rows, and few passes are enough."""

import numpy as np
import pytest

from ravine.data import node as nodes
from ravine.data.memory import MemoryRows
from ravine.data.node import Labels, Node
from ravine.data.threads import Threads
from ravine.index.connectivity import ConnectivitySchedule
from ravine.index.density import MinimumDensitySchedule
from ravine.split.directions import OrthogonalDirections
from ravine.split.margin import MarginMethod
from ravine.split.principal import PrincipalMethod
from ravine.split.projection import ProjectionMethod
from ravine.split.separation import SeparationMethod
from ravine.tree.grow import Growth, Limits, grow
from ravine.tree.leaf_search import PRIORITIES
from tests.engines import engine_of


def blobs(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    centers = 6.0 * rng.standard_normal((k, d))
    return (centers[rng.integers(k, size=n)] + rng.standard_normal((n, d))).copy()


def tree_of(rows, method, n_clusters, *, level=None, priority="depth", labels=None, min_weight=1.0):
    limits = Limits(n_clusters, 100, min_weight)
    return grow(
        Node(rows, (7,), min_weight),
        method,
        limits,
        priority=PRIORITIES[priority],
        level=level or 0.01,
        auto=level is not None,
        watch=lambda progress: None,
        labels=labels,
    )


def small_nodes_local(monkeypatch, cells):
    monkeypatch.setattr(nodes, "LOCAL_CELLS", cells)


CONNECTIVITY = ProjectionMethod(ConnectivitySchedule(), neighbor_cut=True)

METHODS = {
    "minimum density": ProjectionMethod(MinimumDensitySchedule()),
    "connectivity": CONNECTIVITY,
    "orthogonal": OrthogonalDirections(CONNECTIVITY, 2, 60),
    "principal": PrincipalMethod("density"),
    "margin": MarginMethod(),
    "separation": SeparationMethod(),
    "relaxed separation": SeparationMethod("eig"),
}


def waves(monkeypatch):
    """Return a list that gets the number of passes of every wave: dividing leaves and searching them."""
    passes = []

    def count(original):
        def counted(growth, *leaves):
            original(growth, *leaves)
            passes.append(getattr(growth.root.rows.engine, "passes", 0) - sum(passes))

        return counted

    for name in ("begin", "search_leaves"):
        monkeypatch.setattr(Growth, name, count(getattr(Growth, name)))
    return passes


# in several directions: with weights only, and all but the first by `make test-all`
SLOW = ("orthogonal", "correlated")


@pytest.mark.parametrize(
    ("name", "weighted"),
    [
        *((name, weighted) for name in METHODS for weighted in (False, True) if name not in SLOW),
        *(pytest.param(name, True, marks=pytest.mark.slow if name != SLOW[0] else ()) for name in SLOW),
    ],
)
def test_all_schedules_give_the_same_bits_and_a_wave_takes_at_most_eight_passes(name, weighted, monkeypatch):
    small_nodes_local(monkeypatch, 8192 * 5)
    X = blobs(20_000, 5, 4)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(X)) * rng.uniform(0.5, 1.5, len(X)) if weighted else None
    one = tree_of(MemoryRows(X, weights), METHODS[name], 3)
    passes = waves(monkeypatch)
    two = tree_of(engine_of(X, weights).rows(), METHODS[name], 3)
    assert len(passes) == 2
    assert max(passes) <= 8
    assert one.tree == two.tree
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.tree.n_leaves == 3


@pytest.fixture
def shared(monkeypatch):
    """Threads share everything, however small."""
    monkeypatch.setattr("ravine.data.memory.THREADED_VALUES", 1)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in SLOW])
def test_threads_that_share_passes_and_starts_give_the_same_bits(name, shared, monkeypatch):
    small_nodes_local(monkeypatch, 8192 * 5)
    X = blobs(20_000, 5, 5)
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    one = tree_of(MemoryRows(X, weights), METHODS[name], 5)
    many = tree_of(MemoryRows(X, weights, Threads(3)), METHODS[name], 5)
    assert one.tree == many.tree
    np.testing.assert_array_equal(one.labels, many.labels)
    assert one.tree.n_leaves == 5


def test_auto_and_labels_do_not_depend_on_the_schedule(monkeypatch):
    small_nodes_local(monkeypatch, 8192 * 3)
    X = blobs(30_000, 3, 4, seed=3)
    chosen = np.arange(0, 30_000, 1500)
    labels = Labels(X[chosen], np.arange(len(chosen)) % 3, np.ones(len(chosen)))
    for options in ({"level": 0.01, "min_weight": 100.0}, {"labels": labels}):
        one = tree_of(MemoryRows(X), METHODS["minimum density"], 5, **options)
        for rows in (engine_of(X).rows(), MemoryRows(X, None, Threads(2))):
            two = tree_of(rows, METHODS["minimum density"], 5, **options)
            assert one.tree == two.tree
            np.testing.assert_array_equal(one.labels, two.labels)


def test_ten_clusters_of_many_rows_need_at_most_sixty_reads(monkeypatch):
    small_nodes_local(monkeypatch, 8192 * 20)
    X = blobs(100_000, 20, 10, seed=5)
    engine = engine_of(X)
    grown = tree_of(engine.rows(), METHODS["minimum density"], 10)
    assert grown.tree.n_leaves == 10
    assert engine.passes <= 50


@pytest.mark.parametrize(
    "method",
    [
        MarginMethod(epsilon=1e-12),
        SeparationMethod("mpm"),
        SeparationMethod("gep"),
        ProjectionMethod(ConnectivitySchedule(), tol=0.0),
    ],
    ids=["margin", "mpm", "gep", "pursuit"],
)
def test_a_search_that_does_not_converge_ends_with_its_budget_of_passes_and_says_so(method, monkeypatch):
    """One unit of rows without clusters, and tolerances that nothing reaches."""
    small_nodes_local(monkeypatch, 8192 * 4)
    for name in ("optimize.alternation.SWITCHED", "split.projection.PROGRESS"):
        monkeypatch.setattr(f"ravine.{name}", -1.0)
    passes = waves(monkeypatch)
    X = np.random.default_rng(0).standard_normal((20_000, 4)) * [3.0, 2.0, 1.0, 1.0]
    grown = tree_of(engine_of(X).rows(), method, 2)
    assert grown.tree.splits[0].status == "pass limit"
    assert max(passes) <= 8
