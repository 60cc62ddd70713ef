"""The pursuit in several directions: its gradient, its penalty, and the way off a repeated eigenvalue."""

import numpy as np
import pytest

from ravine.data.microclusters import MicroClusters
from ravine.index.graph import GraphConnectivity
from ravine.optimize import several
from ravine.optimize.several import Objective, descend, leave_coalescence, pursue
from ravine.papers.published_connectivity import PublishedObjective


def clusters(seed=0, d=5):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((30, d))
    centers[:12, 1] += 4.0
    weights = rng.integers(1, 5, 30).astype(float)
    return MicroClusters(centers - weights @ centers / weights.sum(), weights)


@pytest.mark.parametrize("omega", [0.5, None])
@pytest.mark.parametrize("n_directions", [1, 2, 3])
def test_value_and_gradient_by_free_vectors(omega, n_directions):
    rng = np.random.default_rng(1)
    objective = Objective(clusters(), GraphConnectivity(0.8, 1.5), omega)
    free = rng.standard_normal((n_directions, 5))
    value, gradient = objective.of_free(free.ravel(), free.shape)
    placed = objective.place(free)
    graph = objective.index.evaluate(objective.clusters.centers @ placed.T, objective.clusters.weights).value
    cosines = placed @ placed.T - np.eye(n_directions)
    if omega is None:
        assert np.abs(cosines).max() < 1e-12
    assert value == pytest.approx(graph - (omega or 0.0) * (cosines**2).sum(), rel=1e-12)
    for way in rng.standard_normal((3, free.size)):
        ahead, back = (objective.of_free(free.ravel() + s * 1e-6 * way, free.shape)[0] for s in (1, -1))
        assert gradient @ way == pytest.approx((ahead - back) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("omega", [0.5, -0.5])
def test_the_published_objective_is_equation_26(omega, normalized):
    rng = np.random.default_rng(1)
    objective = PublishedObjective(clusters(), GraphConnectivity(0.8, 1.5, normalized), omega)
    free = rng.standard_normal((2, 5))
    value, gradient = objective.of_free(free.ravel(), free.shape)
    placed, mass = objective.place(free), objective.clusters.weights
    second = objective.index.evaluate(objective.clusters.centers @ placed.T, mass).eigenvalue
    squared = float(placed[0] @ placed[1]) ** 2
    assert value == pytest.approx(
        second / (1.0 if normalized else mass.sum()) + 2 * omega * squared, rel=1e-12
    )
    for way in rng.standard_normal((3, free.size)):
        ahead, back = (objective.of_free(free.ravel() + s * 1e-6 * way, free.shape)[0] for s in (1, -1))
        assert gradient @ way == pytest.approx((ahead - back) / 2e-6, rel=1e-5)


def test_the_sign_of_the_published_penalty_decides_between_orthogonal_and_parallel():
    start = np.random.default_rng(3).standard_normal((2, 5))
    apart, one = (
        descend(
            PublishedObjective(clusters(), GraphConnectivity(0.8, 1.5), omega), start, tol=1e-6, max_iter=100
        ).directions
        for omega in (3.0, -3.0)
    )
    assert abs(apart[0] @ apart[1]) < 0.05
    assert abs(one[0] @ one[1]) > 0.99


def test_directions_are_orthonormal_or_end_as_one():
    start = np.random.default_rng(3).standard_normal((2, 5))
    index = GraphConnectivity(0.8, 1.5)
    apart, one = (
        descend(Objective(clusters(), index, omega), start, tol=1e-3, max_iter=100).directions
        for omega in (None, 3.0)
    )
    assert np.abs(apart @ apart.T - np.eye(2)).max() < 1e-12
    assert abs(one[0] @ one[1]) > 0.99


def triangle():
    """Three tight groups on an equilateral triangle, and a third column that tells one of them apart."""
    corners = np.array([[np.cos(a), np.sin(a), 0.0] for a in 2 * np.pi * np.arange(3) / 3])
    corners[:, 2] = [1.0, -0.5, -0.5]
    return MicroClusters(corners, np.ones(3))


@pytest.mark.parametrize("normalized", [True, False])
def test_a_descent_leaves_a_repeated_eigenvalue(normalized):
    plane = np.eye(3)[:2]
    objective = Objective(triangle(), GraphConnectivity(0.5, 1e6, normalized), omega=None)
    result, value, gradients = objective.look(plane)
    assert result.multiplicity == 2
    off = leave_coalescence(objective, plane, value, gradients)
    assert off is not None
    assert objective.look(off)[1] < value
    first = descend(objective, plane, tol=1e9, max_iter=100)  # nothing but the way off
    assert first.n_escapes == 1
    assert first.value < value
    assert first.result.multiplicity == 1
    end = descend(objective, plane, tol=1e-4, max_iter=100)
    assert end.value < first.value


def test_a_repeated_eigenvalue_that_nothing_lowers_is_an_end():
    objective = Objective(triangle(), GraphConnectivity(0.5, 1e6), omega=None)
    plane = np.eye(3)[:2]
    assert leave_coalescence(objective, plane, 0.0, np.zeros((2, 2, 2, 3))) is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_repeated_eigenvalue_is_left_in_the_direction_in_which_it_falls(sign):
    class Slope:
        """Falls along one coordinate and rises against it."""

        def place(self, free):
            return free / np.linalg.norm(free)

        def look(self, directions):
            return None, -sign * float(directions[0, 1]), None

    gradients = np.zeros((2, 2, 1, 2))
    gradients[0, 0, 0, 1], gradients[1, 1, 0, 1] = -1.0 * sign, -0.5 * sign
    off = leave_coalescence(Slope(), np.array([[1.0, 0.0]]), 0.0, gradients)
    assert off is not None
    assert sign * off[0, 1] > 0.1


def test_beta_is_lowered_until_the_sides_are_balanced():
    rng = np.random.default_rng(0)
    centers = np.concatenate([rng.normal(0, 0.3, (40, 3)), rng.normal(0, 0.3, (40, 3)) + [2.0, 0, 0]])
    centers[0, 1] = 15.0
    rows = MicroClusters(centers - centers.mean(axis=0), np.ones(80))
    indices = [GraphConnectivity(0.3, beta) for beta in (8.0, 1.0)]
    start = np.eye(3)[:2]
    loose = pursue(rows, start, indices, omega=None, min_weight=0.0, tol=1e-3, max_iter=50)
    assert loose.index.beta == 8.0
    assert loose.right.sum() in (1, 79)
    balanced = pursue(rows, start, indices, omega=None, min_weight=20.0, tol=1e-3, max_iter=50)
    assert balanced.index.beta == 1.0
    assert 30 <= balanced.right.sum() <= 50


def test_each_index_begins_where_the_one_before_it_ended(monkeypatch):
    begun, ended = [], []

    def noted(objective, start, **limits):
        begun.append(start)
        ended.append(descend(objective, start, **limits))
        return ended[-1]

    monkeypatch.setattr(several, "descend", noted)
    indices = [GraphConnectivity(0.8, beta) for beta in (3.0, 1.5, 1.0)]
    start = np.eye(5)[:2]
    pursue(clusters(), start, indices, omega=None, min_weight=np.inf, tol=1e-3, max_iter=20)
    assert begun[0] is start
    assert [a is b.directions for a, b in zip(begun[1:], ended, strict=False)] == [True, True]
