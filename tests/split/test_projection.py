"""One split: what it finds, what it costs, and the paper's Theorem 5."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.svm import SVC

from ravine import MinimumDensity, metrics
from ravine.data import node
from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.data.threads import Threads
from ravine.index.density import MinimumDensitySchedule
from ravine.optimize.pursuit import evaluate
from ravine.split import projection, search
from ravine.split.projection import ProjectionMethod
from tests import oracles
from tests.changed_method import with_method


def split_of(X, weights=None, min_weight=1.0, n_jobs=1, **options):
    root = node.Node(MemoryRows(X, weights, Threads(n_jobs)), (0,), min_weight)
    opened, split = run(search.search(root, ProjectionMethod(MinimumDensitySchedule(), **options)))
    return opened.node, split


def test_two_blobs_are_separated():
    X, labels = oracles.two_blobs(1000, 10, gap=7.0)
    found, split = split_of(X)
    side = split.boundary.signed_distance(found.rows) > 0
    assert metrics.success_ratio(labels, side) > 0.99
    assert split.direction[np.argmax(np.abs(split.direction))] > 0


def test_the_reported_figures_are_those_of_the_exact_sums():
    X, _ = oracles.two_blobs(800, 6, gap=4.0, seed=2)
    found, split = split_of(X)
    Z = found.standardization.apply(X)
    widest = np.sqrt(np.linalg.eigvalsh(np.cov(Z.T, bias=True))[-1])
    h = 0.9 * widest * 800**-0.2
    points = Z @ split.direction

    def log_phi(v):
        return np.log(oracles.phi(Z @ v / np.linalg.norm(v), np.ones(800), h, 0.9, 0.05 * h)[0])

    value, threshold = oracles.phi(points, np.ones(800), h, 0.9, 0.05 * h)
    assert split.value == pytest.approx(value, rel=1e-4)
    assert split.boundary.threshold == pytest.approx(threshold, abs=1e-3 * h)
    assert split.relative_depth == pytest.approx(oracles.relative_depth(points, h, threshold), rel=1e-3)
    gradient = oracles.central_difference(log_phi, split.direction, 1e-5)
    assert split.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=0.05, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_as_the_bandwidth_falls_the_margin_becomes_the_widest(seed):
    """Theorem 5: the minimum density hyperplane tends to the maximum margin hyperplane."""
    X, _ = oracles.two_blobs(80, 3, gap=8.0, seed=seed)
    init = None
    for factor in 0.5 ** np.arange(0, 7):
        usual = MinimumDensity(2, standardize=False, bandwidth_factor=factor, max_iter=300)
        model = with_method(usual, init=init, tol=1e-4).fit(X)
        init = model.tree_.splits[0].boundary.normal[None, :]
    plane = model.tree_.splits[0].boundary
    svm = SVC(kernel="linear", C=1e8).fit(X, model.labels_)
    widest = 1 / np.linalg.norm(svm.coef_)
    found = oracles.margin(X, plane)
    assert found == pytest.approx(widest, rel=0.02)
    first = MinimumDensity(2, standardize=False).fit(X).tree_.splits[0].boundary
    assert found > oracles.margin(X, first)


@pytest.fixture
def small_samples(monkeypatch):
    """Samples so small that a few thousand rows go through all stages."""
    monkeypatch.setattr(node, "LARGE_SAMPLE", 200)


def test_many_rows_go_through_samples_in_at_most_twelve_passes(small_samples, monkeypatch):
    sizes = []

    def open_node(opened, wanted, ahead):
        sizes.append(wanted)
        return (yield from node.open_node(opened, wanted, ahead))

    monkeypatch.setattr("ravine.tree.leaf_search.open_node", open_node)
    X, labels = oracles.two_blobs(20_000, 8, gap=6.0)
    model = MinimumDensity(2, random_state=0).fit(X)
    assert metrics.success_ratio(labels, model.labels_) > 0.99
    assert sizes == [[20_000 // 64, 20_000 // 16]]
    assert 3 <= model.n_passes_ <= 12


def test_the_minimum_weight_of_a_side_is_scaled_to_the_samples(small_samples):
    X, _ = oracles.two_blobs(20_000, 3, gap=8.0, share=0.4)
    found, split = split_of(X, min_weight=7500)
    sides = np.bincount(split.boundary.signed_distance(found.rows) > 0)
    assert sides.min() == pytest.approx(8000, abs=50)
    assert split_of(X, min_weight=8500)[1] is None


def test_samples_and_all_rows_find_the_same_valley(small_samples, monkeypatch):
    X, _ = oracles.two_blobs(20_000, 8, gap=5.0, seed=4)
    sampled = MinimumDensity(2, random_state=0).fit(X)
    monkeypatch.setattr(node, "LARGE_SAMPLE", 10**9)
    full = MinimumDensity(2, random_state=0).fit(X)
    assert (sampled.labels_ == full.labels_).mean() > 0.995
    assert sampled.tree_.splits[0].value < 1.05 * full.tree_.splits[0].value


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_same_bits_for_any_number_of_threads(small_samples, n_jobs):
    X, _ = oracles.two_blobs(30_000, 5, gap=4.0, seed=1)
    one, many = split_of(X)[1], split_of(X, n_jobs=n_jobs)[1]
    np.testing.assert_array_equal(one.boundary.normal, many.boundary.normal)
    assert (one.boundary.threshold, one.value, one.quality) == (
        many.boundary.threshold,
        many.value,
        many.quality,
    )


def test_one_mode_is_no_split():
    X = norm.ppf((np.arange(1000) + 0.5) / 1000)[:, None]
    assert split_of(X)[1] is None


def test_a_side_that_would_be_too_small_is_no_split():
    X, _ = oracles.two_blobs(500, 4, gap=9.0, share=0.8)
    assert split_of(X, min_weight=90)[1] is not None
    assert split_of(X, min_weight=200)[1] is None


def test_the_exact_end_has_to_leave_enough_on_both_sides_too(monkeypatch):
    def near_the_edge(*args, **options):
        point = yield from evaluate(*args, **options)
        return replace(point, index_value=replace(point.index_value, threshold=point.profile.points[9]))

    X, _ = oracles.two_blobs(500, 4, gap=9.0)
    monkeypatch.setattr(projection, "evaluate", near_the_edge)
    assert split_of(X, min_weight=2)[1] is not None
    assert split_of(X, min_weight=100)[1] is None


def test_weights_are_repeats_bandwidth_included():
    X, _ = oracles.two_blobs(300, 4, gap=4.0, seed=6)
    counts = np.random.default_rng(1).integers(0, 4, 300)
    one = split_of(X, counts.astype(float))[1]
    two = split_of(np.repeat(X, counts, axis=0))[1]
    np.testing.assert_allclose(one.boundary.normal, two.boundary.normal, atol=1e-6)
    assert one.boundary.threshold == pytest.approx(two.boundary.threshold, abs=1e-6)
    assert one.value == pytest.approx(two.value, rel=1e-6)


def test_units_and_shifts_do_not_change_the_split():
    X, _ = oracles.two_blobs(400, 5, gap=4.0, seed=8)
    scales, shift = np.array([1e-3, 1.0, 1e3, 1e6, 10.0]), np.array([1e3, -5.0, 0.0, 1e9, 2.0])
    one, two = split_of(X)[1], split_of(X * scales + shift)[1]
    np.testing.assert_allclose(np.abs(one.direction), np.abs(two.direction), atol=1e-5)
    assert two.value == pytest.approx(one.value, rel=1e-5)


def test_the_order_of_rows_does_not_matter():
    X, _ = oracles.two_blobs(400, 5, gap=4.0, seed=9)
    shuffled = np.random.default_rng(0).permutation(400)
    one, two = split_of(X)[1], split_of(X[shuffled])[1]
    np.testing.assert_allclose(one.direction, two.direction, atol=1e-6)


def test_starts_may_be_given_in_the_units_of_the_data():
    X, labels = oracles.two_blobs(400, 3, gap=8.0, seed=3)
    normal = X[labels == 1].mean(axis=0) - X[labels == 0].mean(axis=0)
    split = split_of(X * 100, init=normal[None, :] / 100, max_iter=0)[1]
    assert split.n_iter == 0
    found = split.boundary.normal * 100
    assert abs(found @ normal) / np.linalg.norm(found) / np.linalg.norm(normal) == pytest.approx(1.0)


def test_the_value_beyond_the_interval_is_the_density_at_the_threshold():
    """One column: the foot of the valley lies beyond alpha_max standard deviations, within one bandwidth."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(0, 1, 900), rng.normal(5.0, 0.5, 100)])[:, None]
    wide = MinimumDensity(2, alpha_max=3.0).fit(X).tree_.splits[0]
    h, foot = wide.facts["bandwidth"], abs(wide.boundary.about(X.mean(axis=0)).threshold)
    split = MinimumDensity(2, alpha_max=foot - 0.5 * h).fit(X).tree_.splits[0]
    threshold = split.boundary.about(X.mean(axis=0)).threshold
    assert abs(threshold) > foot - 0.5 * h
    points = ((X - X.mean(axis=0)) / X.std(axis=0))[:, 0] * np.sign(split.direction[0])
    density = oracles.density(np.sort(points), np.ones(1000), h, threshold)
    assert split.value == pytest.approx(density, rel=1e-3)
