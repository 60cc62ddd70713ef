"""Starts from a graph of neighbors, held to copies, to plain loops and to what they are for."""

import numpy as np
import pytest
from scipy.linalg import eigh

from ravine.data.query import run
from ravine.split.projection import between_directions
from ravine.split.starts import neighbor_starts, random_directions, similarities
from tests.nodes import measured


def slow_similarities(points):
    """Row after row, without weights: 15 nearest others (all as near), the tenth for the width."""
    n = len(points)
    distances = np.array([[np.linalg.norm(a - b) for b in points] for a in points])
    width = np.sort(np.sort(distances, axis=1)[:, 10])[(n - 1) // 2]
    near = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            near[i, j] = distances[i, j] <= np.sort(distances[i])[15] + 1e-12
    similar = np.exp(-((distances / width) ** 2)) * np.maximum(near, near.T)
    return similar - np.diag(np.diag(similar))


def starts_of(X, weights=None, n=2):
    found = run(neighbor_starts(measured(X, weights, standardize=False), n))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_random_directions_have_the_deviations_of_the_columns():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3)) * [1.0, 5.0, 0.2]
    raw = random_directions(measured(X, standardize=False), 2000)
    np.testing.assert_allclose(raw.std(axis=0) / raw[:, 0].std(), X.std(axis=0) / X[:, 0].std(), rtol=0.1)
    standardized = random_directions(measured(X), 2000)
    np.testing.assert_allclose(standardized.std(axis=0), 1.0, rtol=0.1)
    again = random_directions(measured(X), 2000)
    np.testing.assert_array_equal(standardized, again)


def test_similarities_are_those_of_plain_loops():
    points = np.random.default_rng(0).standard_normal((40, 3))
    np.testing.assert_allclose(similarities(points, np.ones(40)), slow_similarities(points), atol=1e-12)


def test_a_weight_is_as_many_copies():
    rng = np.random.default_rng(1)
    points = rng.standard_normal((60, 3)) + 4.0 * (np.arange(60) % 2)[:, None]
    counts = rng.integers(0, 4, 60)
    copies = np.repeat(np.arange(60), counts)
    of_copies = slow_similarities(points[copies])
    member = (copies[:, None] == np.flatnonzero(counts)).astype(float)
    joint = similarities(points[counts > 0], counts[counts > 0].astype(float))
    np.testing.assert_allclose(joint, member.T @ of_copies @ member, atol=1e-9)
    weighted = starts_of(points, counts.astype(float))
    copied = starts_of(points[copies])
    np.testing.assert_allclose(np.abs((weighted * copied).sum(axis=1)), 1.0, atol=1e-9)


def test_the_first_start_separates_groups_that_spread_less_than_the_rows():
    rng = np.random.default_rng(0)
    group = rng.random(500) < 0.5
    X = rng.standard_normal((500, 4)) * [20.0, 1.0, 10.0, 0.3]
    X[:, 1] = X[:, 1] * 0.1 + 40.0 * group
    node = measured(X, standardize=False)
    scores = node.standardization.apply(X) @ run(neighbor_starts(node, 1))[0]
    assert min((scores > 0).mean(), (scores < 0).mean()) > 0.4
    assert abs(np.corrcoef(scores, group)[0, 1]) > 0.99


def test_the_directions_are_ridge_fits_of_the_eigenvectors():
    X = np.random.default_rng(0).standard_normal((50, 3)) + 3.0 * (np.arange(50) % 2)[:, None]
    Z = X - X.mean(axis=0)
    W = slow_similarities(X)
    D = W.sum(axis=1)
    _, vectors = eigh(W, np.diag(D))  # the last is the constant one
    for found, g in zip(starts_of(X), vectors[:, [-2, -3]].T, strict=True):
        centered = Z - D @ Z / D.sum()
        normal = (centered.T * D) @ centered
        v = np.linalg.solve(normal + 1e-3 * np.trace(normal) * np.eye(3), (centered.T * D) @ g)
        assert abs(found @ v) / np.linalg.norm(v) == pytest.approx(1.0, abs=1e-9)


def test_copies_of_a_few_rows_and_rows_far_away_do_no_harm():
    few = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 30, axis=0)
    assert np.isfinite(starts_of(few)).all()
    far = np.concatenate([np.random.default_rng(0).standard_normal((80, 2)), [[1e6, 0.0], [0.0, -1e6]]])
    assert np.isfinite(starts_of(far)).all()


def test_starts_between_principal_directions_come_in_pairs_whatever_their_signs():
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0][:3]
    found = between_directions(directions, 8, np.random.default_rng(1))
    assert len(found) >= 8
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    np.testing.assert_allclose(found[0], (directions[0] + directions[1]) / np.sqrt(2))
    np.testing.assert_allclose(found[1], (directions[0] - directions[1]) / np.sqrt(2))
    signs = np.array([1.0, -1.0, 1.0])[:, None]
    mirrored = between_directions(signs * directions, 8, np.random.default_rng(1))
    for start in found:
        assert max(abs(mirrored @ start)) == pytest.approx(1.0)
    assert between_directions(directions[:1], 8, np.random.default_rng(1)).shape == (0, 4)


def test_the_starts_of_a_graph_that_has_come_apart_do_not_depend_on_rounding():
    """Five groups without an edge between them: any basis of a space of four eigenvectors is valid."""
    rng = np.random.default_rng(0)
    centers = 40.0 * rng.standard_normal((5, 6))
    X = np.repeat(centers, 30, axis=0) + rng.standard_normal((150, 6))
    noisy = X * (1 + 1e-12 * rng.standard_normal(X.shape))
    usual, other = (run(neighbor_starts(measured(rows), 3)) for rows in (X, noisy))
    for one, two in zip(usual, other, strict=True):
        assert abs(one @ two) / np.linalg.norm(one) / np.linalg.norm(two) > 1 - 1e-9
    node = measured(X)
    along = node.standardization.apply(X) @ usual.T
    spread = [
        score.reshape(5, 30).mean(axis=1).std() / score.reshape(5, 30).std(axis=1).max() for score in along.T
    ]
    assert min(spread) > 5.0  # every start tells groups apart
