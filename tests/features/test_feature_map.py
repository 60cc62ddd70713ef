"""Maps of kernels, held to the slow obvious version: dense, uncentered first, one row after the other."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

import ravine
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure, sample
from ravine.data.query import run
from ravine.data.standardization import Standardization
from ravine.features import feature_map as maps
from ravine.features import kernel_map
from ravine.features.diffusion import DiffusionMap, diffusion_coordinates, fit_diffusion_map
from ravine.features.feature_map import make_mapped_rows
from ravine.features.kernel_map import fit_kernel_map, rbf_width

WINE = load_wine().data
IRIS = load_iris().data
Z = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)


def fit(X, kernel="rbf", weights=None, **given):
    return fit_kernel_map(X, weights, kernel, given, standardize=True, rng=np.random.default_rng(0))


def centered(matrix):
    n = len(matrix)
    centering = np.eye(n) - np.full((n, n), 1 / n)
    return centering @ matrix @ centering


def test_exact_components_have_the_centered_kernel_as_their_inner_products():
    found = fit(WINE, gamma=0.1)
    points = found(WINE)
    np.testing.assert_allclose(points @ points.T, centered(rbf_kernel(Z, gamma=0.1)), atol=1e-8)
    variances = points.var(axis=0)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(points.T, bias=True), np.diag(variances), atol=1e-9)
    assert (np.diff(variances) <= 1e-12).all()


def test_new_rows_are_centered_as_scikit_learn_centers_them():
    train, new = WINE[::2], WINE[1::2]
    found = fit(train, gamma=0.1, n_components=5)
    scaled = [(part - train.mean(axis=0)) / train.std(axis=0) for part in (train, new)]
    theirs = KernelPCA(5, kernel="rbf", gamma=0.1).fit(scaled[0]).transform(scaled[1])
    np.testing.assert_allclose(np.abs(found(new)), np.abs(theirs), atol=1e-8)


def test_a_share_keeps_the_fewest_components_that_hold_it():
    values = fit(WINE, gamma=0.1)(WINE).var(axis=0)
    share = np.cumsum(values) / values.sum()
    r = fit(WINE, gamma=0.1, n_components=0.9).n_components
    assert share[r - 2] < 0.9 <= share[r - 1]


def test_a_weight_is_as_many_copies_and_zero_is_nothing():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, len(IRIS)).astype(float)
    weighted, copied = fit(IRIS, weights=counts), fit(np.repeat(IRIS, counts.astype(int), axis=0))
    assert weighted.kernel.parameters["gamma"] == pytest.approx(copied.kernel.parameters["gamma"], rel=1e-12)
    a, b = weighted(IRIS)[:, :5], copied(IRIS)[:, :5]
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-7)
    assert len(weighted.landmarks) == (counts > 0).sum()


def test_nystroem_with_many_landmarks_is_close_and_with_all_is_exact():
    exact = fit(WINE, gamma=0.02, n_components=3)(WINE)
    few = fit(WINE, gamma=0.02, n_components=3, landmarks=100)
    assert len(few.landmarks) == 100
    alike = [abs(np.corrcoef(few(WINE)[:, j], exact[:, j])[0, 1]) for j in range(3)]
    assert min(alike) > 0.98
    matrix = rbf_kernel(Z, gamma=0.02)
    coefficients, shift = kernel_map.nystroem_components(matrix, matrix, np.ones(len(Z)), 3)
    np.testing.assert_allclose(np.abs(matrix @ coefficients - shift), np.abs(exact), atol=1e-7)


def test_nystroem_components_of_weighted_rows_are_those_of_copies():
    counts = np.random.default_rng(0).integers(1, 6, len(Z[1::2]))
    matrix, across = rbf_kernel(Z[::4], gamma=0.05), rbf_kernel(Z[1::2], Z[::4], gamma=0.05)
    copied = np.repeat(across, counts, axis=0)
    weighted, plain = (
        across @ coefficients - shift
        for coefficients, shift in (
            kernel_map.nystroem_components(matrix, across, counts.astype(float), 3),
            kernel_map.nystroem_components(matrix, copied, np.ones(len(copied)), 3),
        )
    )
    np.testing.assert_allclose(weighted @ weighted.T, plain @ plain.T, atol=1e-7)


def test_the_width_is_twice_the_median_distance_to_the_tenth_neighbor():
    slow = 2 * np.median(np.sort(euclidean_distances(Z[:177]), axis=1)[:, 10])
    assert rbf_width(Z[:177], np.ones(177)) == pytest.approx(slow)
    assert rbf_width(np.repeat(Z[:3], 20, axis=0), np.ones(60)) == pytest.approx(np.sqrt(13))


def test_large_maps_are_made_anew_in_every_pass(monkeypatch):
    found = fit(WINE, gamma=0.1)
    held = make_mapped_rows(WINE, None, found)
    monkeypatch.setattr(maps, "HELD_BYTES", 1000)
    lazy = make_mapped_rows(WINE, None, found)
    assert isinstance(held.array, np.ndarray)
    assert not isinstance(lazy.array, np.ndarray)

    def total(blocks):
        return blocks.map(lambda rows: rows.dense().sum(axis=1))

    np.testing.assert_allclose(total(lazy), total(held), atol=1e-9)
    some = np.array([3, 50, 177])
    np.testing.assert_allclose(total(lazy.select(some)), total(held)[some], atol=1e-9)
    assert isinstance(lazy, MemoryRows)


def test_a_sample_of_mapped_rows_is_held_with_its_weights(monkeypatch):
    monkeypatch.setattr(maps, "HELD_BYTES", 1000)
    found, weights = fit(WINE, gamma=0.1), 1.0 + np.arange(len(WINE))
    lazy = make_mapped_rows(WINE, weights, found)
    assert not isinstance(lazy.array, np.ndarray)
    held = run(sample(run(measure(Node(lazy))), 89, "starts")).rows
    assert isinstance(held.array, np.ndarray)
    drawn = held.map(lambda block: block.weights)
    assert len(set(drawn)) == 89
    assert held.total == drawn.sum()
    np.testing.assert_allclose(held.array, found(WINE[drawn.astype(int) - 1]), atol=1e-9)


def test_sparse_rows_are_mapped_like_dense_ones():
    X = np.where(np.median(WINE, axis=0) < WINE, WINE, 0.0)
    stored = sparse.csr_array(X)
    np.testing.assert_allclose(fit(stored)(stored), fit(X)(X), atol=1e-7)


# --- diffusion -------------------------------------------------------------------------------------------


def walk_slowly(X, k):
    """Symmetrized k-nearest-neighbor graph with every row its own first neighbor, row-normalized."""
    near = np.zeros((len(X), len(X)))
    for i, distances in enumerate(euclidean_distances(X)):
        near[i, np.argsort(distances)[:k]] = 1
    graph = (near + near.T) / 2
    return graph / graph.sum(axis=1, keepdims=True), near / k


@pytest.mark.parametrize("n", [150, 500])  # by a dense eigensolver, and by Lanczos iterations
def test_diffusion_coordinates_are_eigenvectors_of_the_walk(n):
    X = np.random.default_rng(0).standard_normal((n, 3))
    walk, near = walk_slowly(X, 8)
    psi = diffusion_coordinates(sparse.csr_array(near * 8), np.ones(n), 4, 0.0)
    theirs = np.sort(np.linalg.eigvals(walk).real)[::-1][1:5]
    for j in range(4):
        np.testing.assert_allclose(walk @ psi[:, j], theirs[j] * psi[:, j], atol=1e-6)


def test_diffusion_coordinates_do_not_depend_on_the_order_of_the_landmarks():
    """Above 400 landmarks Lanczos iterations find them; an early end would show in the eighth digit."""
    X = np.random.default_rng(0).standard_normal((600, 3))
    near, order = walk_slowly(X, 8)[1] * 8, np.random.default_rng(1).permutation(600)
    psi = diffusion_coordinates(sparse.csr_array(near), np.ones(600), 4, 1.0)
    other = diffusion_coordinates(sparse.csr_array(near[order][:, order]), np.ones(600), 4, 1.0)
    np.testing.assert_allclose(np.abs(other), np.abs(psi[order]), atol=1e-10)


def test_diffusion_time_raises_the_eigenvalues():
    X = np.random.default_rng(0).standard_normal((150, 3))
    walk, near = walk_slowly(X, 8)
    still, later = (
        diffusion_coordinates(sparse.csr_array(near * 8), np.ones(150), 3, time) for time in (0.0, 3.0)
    )
    np.testing.assert_allclose(np.linalg.matrix_power(walk, 3) @ still, later, atol=1e-6)


def fit_diffusion(X, weights=None, n_clusters=3, **given):
    return fit_diffusion_map(
        X,
        weights,
        given,
        standardize=True,
        weight_counts=True,
        n_clusters=n_clusters,
        rng=np.random.default_rng(0),
    )


def test_diffusion_weights_are_copies():
    counts = np.random.default_rng(1).integers(0, 4, len(WINE)).astype(float)
    weighted = fit_diffusion(WINE, counts)(WINE)
    copied = fit_diffusion(np.repeat(WINE, counts.astype(int), axis=0))(WINE)
    np.testing.assert_allclose(weighted @ weighted.T, copied @ copied.T, rtol=1e-5, atol=1e-9)


def test_a_graph_in_pieces_has_coordinates_that_tell_the_pieces_apart():
    X, y = make_blobs(300, centers=4, cluster_std=0.1, random_state=0)
    points = fit_diffusion(X, n_clusters=4, n_components=3)(X)
    for a in range(4):
        assert np.ptp(points[y == a], axis=0).max() < 1e-5
        for b in range(a):
            assert np.abs(points[y == a][0] - points[y == b][0]).max() > 0.1


def test_masses_count_in_the_walk_and_in_the_mean_as_copies_of_a_landmark():
    rng = np.random.default_rng(0)
    X, counts = rng.standard_normal((80, 3)), rng.integers(1, 5, 80)
    near = walk_slowly(X, 8)[1] * 8
    copy_of = np.repeat(np.arange(80), counts)
    copied = near[np.ix_(copy_of, copy_of)]
    walk = (copied + copied.T) / (copied + copied.T).sum(axis=1, keepdims=True)
    psi = diffusion_coordinates(sparse.csr_array(near), counts.astype(float), 3, 0.0)
    for column in psi[copy_of].T:
        stepped = walk @ column
        value = float(stepped @ column / (column @ column))
        np.testing.assert_allclose(stepped, value * column, atol=1e-8)
    unchanged = Standardization.identity(3, 80.0)
    found = DiffusionMap(unchanged, X, counts.astype(float), psi, 8)(X)
    mean = copied @ psi[copy_of] / copied.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[copy_of], mean, atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "cosine", "linear", "sigmoid", "laplacian"])
def test_sparse_rows_have_the_components_of_dense_ones(kernel):
    X = sparse.random(90, 30, 0.2, format="csr", random_state=0)
    maps = [
        fit_kernel_map(rows, None, kernel, {"landmarks": 40}, standardize=False, rng=np.random.default_rng(1))
        for rows in (X, X.toarray())
    ]
    assert isinstance(maps[0].landmarks, np.ndarray)
    np.testing.assert_allclose(maps[0](X), maps[1](X.toarray()), atol=1e-6)


def test_sparse_rows_are_not_written_out_to_be_mapped(monkeypatch):
    X = sparse.random(90, 30, 0.2, format="csr", random_state=0)

    def write_out(standardization, rows):
        raise AssertionError("written out")

    monkeypatch.setattr(Standardization, "apply", write_out)
    found = fit_kernel_map(X, None, "rbf", {"landmarks": 40}, standardize=False, rng=np.random.default_rng(1))
    assert found(X).shape[0] == 90


@pytest.mark.parametrize("held_bytes", [1000, 1 << 30])
def test_mapped_rows_have_the_threads_of_the_fit(held_bytes, monkeypatch):
    monkeypatch.setattr(maps, "HELD_BYTES", held_bytes)
    assert make_mapped_rows(WINE, None, fit(WINE, gamma=0.1), 3).threads.n == 3


def test_landmarks_come_from_random_state():
    def landmarks(**given):
        made = ravine.MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 20}, **given)
        return made.fit(WINE).feature_map_.landmarks

    np.testing.assert_array_equal(landmarks(), landmarks(random_state=0))
    assert (landmarks() != landmarks(random_state=1)).any()
