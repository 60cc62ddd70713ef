"""Connectivity in several dimensions against eigenproblems over all rows, the path form and differences."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cluster import KMeans

from ravine.index.base import Profile
from ravine.index.connectivity import ConnectivityIndex
from ravine.index.graph import SIMILARITIES, GraphConnectivity, two_means

KERNELS = {
    "laplace": lambda x: np.exp(-x),
    "near-laplace": lambda x: (x / 0.1 + 1) ** 0.1 * np.exp(-x),
    "gaussian": lambda x: np.exp(-(x**2) / 2),
}


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
    K = KERNELS[index.similarity](distance / index.sigma)
    degree = K.sum(axis=1)
    if index.normalized:
        return eigh(np.eye(len(rows)) - K / np.sqrt(np.outer(degree, degree)), eigvals_only=True)[1]
    return eigh(np.diag(degree) - K, eigvals_only=True)[1]


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_weighted_points_are_repeated_rows(similarity, normalized):
    points, mass = two_groups()
    index = GraphConnectivity(0.8, 1e6, normalized, similarity)
    found = index.evaluate(points, mass)
    expected = eigenvalue_over_rows(points, mass, index)
    assert found.eigenvalue == pytest.approx(expected, rel=1e-9)
    theta = expected / (1 - expected) if normalized else expected
    assert found.value == pytest.approx(np.log(theta), rel=1e-9)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("beta", [0.8, 10.0])
def test_the_slopes_are_those_of_finite_differences(similarity, normalized, beta):
    points, mass = two_groups(1)
    index = GraphConnectivity(0.7, beta, normalized, similarity)
    result = index.evaluate(points, mass)
    assert result.multiplicity == 1
    way = np.random.default_rng(2).standard_normal(points.shape)
    step = 1e-6
    ahead, back = (index.evaluate(points + s * step * way, mass).value for s in (1, -1))
    assert (result.slopes[0, 0] * way).sum() == pytest.approx((ahead - back) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("normalized", [True, False])
def test_on_a_line_it_is_the_path_form(normalized):
    points = np.sort(two_groups(3)[0][:, 0])
    points -= points.mean()
    mass = np.ones(len(points))
    graph = GraphConnectivity(0.6, 1.0, normalized, "laplace").evaluate(points[:, None], mass)
    profile = Profile(points, mass, mass.sum(), float(points.std()))
    line = ConnectivityIndex(0.6, 1.0, normalized).evaluate(profile)
    assert graph.value == pytest.approx(line.value, rel=1e-8)
    assert (np.diff(np.sign(graph.mode)) != 0).sum() == 1
    assert (points[graph.mode > 0].min() > line.threshold) or (points[graph.mode > 0].max() < line.threshold)


def test_an_equilateral_triangle_has_a_repeated_eigenvalue():
    corners = np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(3) / 3])
    for normalized in (True, False):
        result = GraphConnectivity(0.5, 1e6, normalized).evaluate(corners, np.ones(3))
        assert result.multiplicity == 2
        assert result.slopes.shape == (2, 2, 3, 2)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_error_bound_is_the_largest_ratio_of_affinities(similarity, normalized):
    """Corollary 7: points within a radius move distances by twice that, worst at one of the ends."""
    sigma, radius, diameter = 0.8, 0.05, 3.0
    kernel = KERNELS[similarity]
    ends = {"laplace": [0.0], "near-laplace": [diameter], "gaussian": [diameter]}[similarity]
    ratio = max(kernel(x / sigma) / kernel((x + 2 * radius) / sigma) for x in ends)
    factor = ratio**2 if normalized else ratio  # the degrees are off by as much
    index = GraphConnectivity(sigma, 1.0, normalized, similarity)
    assert index.error_bound(radius, diameter) == pytest.approx(factor - 1, rel=1e-12)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_error_of_micro_clusters_is_within_its_bound(similarity, normalized):
    rng = np.random.default_rng(4)
    centers, _ = two_groups(5, 20)
    rows = np.repeat(centers, 3, axis=0)
    shift = rng.standard_normal(rows.shape)
    radius = 0.03
    rows += radius * shift / np.linalg.norm(shift, axis=1, keepdims=True)
    index = GraphConnectivity(0.9, 1e6, normalized, similarity)
    exact = eigenvalue_over_rows(rows, np.ones(len(rows)), index)
    found = index.evaluate(centers, np.full(20, 3.0)).eigenvalue
    diameter = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2)).max()
    assert abs(found - exact) <= index.error_bound(radius, diameter) * exact


def test_two_means_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, mass = rng.standard_normal(30) ** 3, rng.integers(1, 5, 30).astype(float)
        found = two_means(values, values[:, None], mass)
        model = KMeans(2, n_init=30, random_state=0).fit(values[:, None], sample_weight=mass)
        assert abs(np.mean(found == model.labels_) - 0.5) == 0.5


@pytest.mark.parametrize("normalized", [True, False])
def test_sides_of_means_are_those_of_spectral_clustering(normalized):
    points, mass = two_groups(n=41)
    index = GraphConnectivity(0.7, 1e6, normalized)
    found = index.evaluate(points, mass).sides_of_means(mass)
    rows = np.repeat(points, mass.astype(int), axis=0)
    distance = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    K = KERNELS["near-laplace"](distance / 0.7)
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
    assert not np.array_equal(value.sides_of_means(mass), value.mode > 0)
