"""Connectivity in several dimensions against eigenproblems over all rows, the path form and differences."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cluster import KMeans

from ravine.index.graph import GraphConnectivity
from ravine.papers.published_connectivity import sides_of_means


def kernel(x):
    return (x / 0.1 + 1) ** 0.1 * np.exp(-x)


def two_groups(seed=0, n=40):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, 2))
    points[: n // 2, 0] += 3.0
    mass = rng.integers(1, 4, n).astype(float)
    return points - mass @ points / mass.sum(), mass


def eigenvalue_over_rows(points, mass, index):
    """The second eigenvalue with every row written out, without any contraction."""
    rows = np.repeat(points, mass.astype(int), axis=0)
    distance = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    K = kernel(distance / index.sigma)
    degree = K.sum(axis=1)
    if index.normalized:
        return eigh(np.eye(len(rows)) - K / np.sqrt(np.outer(degree, degree)), eigvals_only=True)[1]
    return eigh(np.diag(degree) - K, eigvals_only=True)[1]


@pytest.mark.parametrize("normalized", [True, False])
def test_weighted_points_are_repeated_rows(normalized):
    points, mass = two_groups()
    index = GraphConnectivity(0.8, 1e6, normalized)
    found = index.evaluate(points, mass)
    expected = eigenvalue_over_rows(points, mass, index)
    assert found.eigenvalue == pytest.approx(expected, rel=1e-9)
    theta = expected / (1 - expected) if normalized else expected
    assert found.value == pytest.approx(np.log(theta), rel=1e-9)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("beta", [0.8, 10.0])
def test_the_slopes_are_those_of_finite_differences(normalized, beta):
    points, mass = two_groups(1)
    index = GraphConnectivity(0.7, beta, normalized)
    result = index.evaluate(points, mass)
    way = np.random.default_rng(2).standard_normal(points.shape)
    step = 1e-6
    ahead, back = (index.evaluate(points + s * step * way, mass).value for s in (1, -1))
    assert (result.slopes * way).sum() == pytest.approx((ahead - back) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("normalized", [True, False])
def test_sides_of_means_are_those_of_spectral_clustering(normalized):
    points, mass = two_groups(n=41)
    index = GraphConnectivity(0.7, 1e6, normalized)
    found = sides_of_means(index.evaluate(points, mass), mass)
    rows = np.repeat(points, mass.astype(int), axis=0)
    distance = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    K = kernel(distance / 0.7)
    degree = K.sum(axis=1)
    L = np.diag(degree) - K
    if normalized:
        L = L / np.sqrt(np.outer(degree, degree))
    vectors = eigh(L)[1][:, :2]
    if normalized:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = KMeans(2, n_init=20, random_state=0).fit_predict(vectors)
    assert abs(np.mean(np.repeat(found, mass.astype(int)) == labels) - 0.5) == 0.5


def test_sides_of_means_need_not_be_the_signs():
    points = np.concatenate([np.linspace(0, 1, 40), np.linspace(2, 6, 9)])[:, None]
    mass = np.ones(49)
    value = GraphConnectivity(0.5, 1e6, False).evaluate(points - points.mean(axis=0), mass)
    assert not np.array_equal(sides_of_means(value, mass), value.mode > 0)
