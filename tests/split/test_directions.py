"""The pursuit in several directions: its gradient, its penalty, and the sequence of its indices."""

import numpy as np
import pytest

from ravine.data.microclusters import MicroClusters
from ravine.data.node import Node
from ravine.data.query import run
from ravine.index.connectivity import ConnectivitySchedule
from ravine.index.graph import GraphConnectivity
from ravine.papers.published_connectivity import PublishedObjective
from ravine.split.directions import Coordinates, Objective, OrthogonalDirections
from ravine.split.projection import ProjectionMethod
from tests.nodes import node_of


def clusters(seed=0, d=5):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((30, d))
    centers[:12, 1] += 4.0
    weights = rng.integers(1, 5, 30).astype(float)
    return MicroClusters(centers - weights @ centers / weights.sum(), weights)


def assert_is_gradient(objective, free, gradient):
    for way in np.random.default_rng(5).standard_normal((3, free.size)):
        ahead, back = (objective.of_free(free.ravel() + s * 1e-6 * way, free.shape)[0] for s in (1, -1))
        assert gradient @ way == pytest.approx((ahead - back) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("n_directions", [1, 2, 3])
def test_value_and_gradient_by_free_vectors(n_directions):
    objective = Objective(clusters(), GraphConnectivity(0.8, 1.5))
    free = np.random.default_rng(1).standard_normal((n_directions, 5))
    value, gradient = objective.of_free(free.ravel(), free.shape)
    placed = objective.place(free)
    assert np.abs(placed @ placed.T - np.eye(n_directions)).max() < 1e-12
    graph = objective.index.evaluate(objective.clusters.centers @ placed.T, objective.clusters.weights)
    assert value == pytest.approx(graph.value, rel=1e-12)
    assert_is_gradient(objective, free, gradient)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("omega", [0.5, -0.5])
def test_the_published_objective_is_equation_26(omega, normalized):
    objective = PublishedObjective(clusters(), GraphConnectivity(0.8, 1.5, normalized), omega)
    free = np.random.default_rng(1).standard_normal((2, 5))
    value, gradient = objective.of_free(free.ravel(), free.shape)
    placed, mass = objective.place(free), objective.clusters.weights
    second = objective.index.evaluate(objective.clusters.centers @ placed.T, mass).eigenvalue
    squared = float(placed[0] @ placed[1]) ** 2
    assert value == pytest.approx(
        second / (1.0 if normalized else mass.sum()) + 2 * omega * squared, rel=1e-12
    )
    assert_is_gradient(objective, free, gradient)


def test_the_sign_of_the_published_penalty_decides_between_orthogonal_and_parallel():
    start = np.random.default_rng(3).standard_normal((2, 5))
    apart, one = (
        PublishedObjective(clusters(), GraphConnectivity(0.8, 1.5), omega)
        .minimize(start, tol=1e-6, max_iter=100)
        .directions
        for omega in (3.0, -3.0)
    )
    assert abs(apart[0] @ apart[1]) < 0.05
    assert abs(one[0] @ one[1]) > 0.99


def test_a_descent_ends_at_orthonormal_directions_of_lower_value():
    start = np.random.default_rng(3).standard_normal((2, 5))
    objective = Objective(clusters(), GraphConnectivity(0.8, 1.5))
    end = objective.minimize(start, tol=1e-3, max_iter=100)
    assert np.abs(end.directions @ end.directions.T - np.eye(2)).max() < 1e-12
    assert end.value < objective.of_free(start.ravel(), start.shape)[0] - 0.1


def method_for(rows, betas, least_share):
    schedule = ConnectivitySchedule(betas=betas, least_share=least_share)
    given = Coordinates(rows, np.eye(rows.centers.shape[1]), 1.0, None)
    univariate = ProjectionMethod(schedule, tol=1e-3, max_iter=50)
    return OrthogonalDirections(univariate, 2, 100, given=given)


def any_node() -> Node:
    return node_of(np.zeros((3, 3)))


def test_beta_is_lowered_until_the_sides_are_balanced():
    rng = np.random.default_rng(0)
    centers = np.concatenate([rng.normal(0, 0.3, (40, 3)), rng.normal(0, 0.3, (40, 3)) + [2.0, 0, 0]])
    centers[0, 1] = 15.0
    rows = MicroClusters(centers - centers.mean(axis=0), np.ones(80))
    start = np.eye(3)[:2]
    loose = run(method_for(rows, (8.0, 1.0), 0.0).solve(any_node(), start))
    assert loose.index.beta == 8.0
    assert loose.right.sum() in (1, 79)
    balanced = run(method_for(rows, (8.0, 1.0), 0.25).solve(any_node(), start))
    assert balanced.index.beta == 1.0
    assert 30 <= balanced.right.sum() <= 50


def test_each_index_begins_where_the_one_before_it_ended(monkeypatch):
    begun, ended = [], []
    minimize = Objective.minimize

    def record(objective, start, **limits):
        begun.append(start)
        ended.append(minimize(objective, start, **limits))
        return ended[-1]

    monkeypatch.setattr(Objective, "minimize", record)
    start = np.eye(5)[:2]
    run(method_for(clusters(), (3.0, 1.5, 1.0), np.inf).solve(any_node(), start))
    assert begun[0] is start
    assert [a is b.directions for a, b in zip(begun[1:], ended, strict=False)] == [True, True]
