import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from ravine import PrincipalDirection
from ravine.data.node import Node, open_node
from ravine.data.principal import power_samples, principal
from ravine.data.query import run
from ravine.index.density import MinimumDensityIndex
from ravine.split.split import NO_VALLEY
from tests import oracles
from tests.engines import engine_of
from tests.index.test_every_index import seen

WINE = load_wine().data


def test_pddp_divides_the_first_principal_component_at_the_mean():
    scores = PCA(1).fit_transform(StandardScaler().fit_transform(WINE))[:, 0]
    labels = PrincipalDirection(2).fit(WINE).labels_
    side = scores > 0
    assert (labels == side).all() or (labels != side).all()


def test_pddp_splits_the_leaf_with_the_largest_scatter():
    model = PrincipalDirection(3, standardize=False).fit(WINE)
    first = PrincipalDirection(2, standardize=False).fit(WINE).labels_
    scatter = [((WINE[first == k] - WINE[first == k].mean(axis=0)) ** 2).sum() for k in (0, 1)]
    second = model.tree_.inner[1]
    assert second == (model.tree_.left[0] if scatter[0] > scatter[1] else model.tree_.right[0])


def test_depddp_divides_at_the_lowest_valley():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(-6, 1, 300), rng.normal(0, 1, 300), rng.normal(9, 1, 100)])
    profile = seen(points, np.ones(700))
    h = 0.5
    index = MinimumDensityIndex(h, alpha=np.inf)
    grid = np.linspace(profile.points[0], profile.points[-1], 6001)
    curve = np.array([oracles.density(profile.points, profile.mass, h, b) for b in grid])
    inner = np.flatnonzero((curve[1:-1] < curve[:-2]) & (curve[1:-1] < curve[2:])) + 1
    lowest = grid[inner[np.argmin(curve[inner])]]
    assert index.lowest_valley(profile, 1.0) == pytest.approx(lowest, abs=0.01)
    balanced = index.lowest_valley(profile, 200.0)
    assert balanced < lowest - 3
    assert index.lowest_valley(profile, 400.0) is None


def test_depddp_does_not_split_one_mode():
    X = norm.ppf((np.arange(400) + 0.5) / 400)[:, None] * [1.0, 0.1]
    with pytest.warns(UserWarning, match=r"1 of 1 splits have no valley"):
        model = PrincipalDirection(2, threshold="density", standardize=False).fit(X)
    assert NO_VALLEY in model.tree_.splits[0].facts


@pytest.mark.parametrize("n", [3000, 9000])
def test_power_iterations_on_many_rows_start_from_those_on_a_sample(n, monkeypatch):
    """Above 256 columns; few rows have no sample, and all iterations read them."""
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 260))
    X[:, 0] += 4.0 * rng.standard_normal(n)
    X[:, 1] += 2.0 * rng.standard_normal(n)
    engine = engine_of(X)
    root = Node(engine.rows(), standardize=False)
    node = run(open_node(root, [], power_samples(root))).node
    before = engine.passes
    found = run(principal(node, 2))
    assert engine.passes - before == (13 if n < 8192 else 2)
    assert abs(found.directions[0, 0]) > 0.99
    np.testing.assert_allclose(found.deviations, [17**0.5, 5**0.5], rtol=0.05)
