"""Is a valley significant? The reference, the test, and the number of clusters that follows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import t as student
from sklearn.metrics import adjusted_rand_score

from ravine import MaximinSeparation, MinimumDensity, PrincipalDirection
from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.evidence import significance
from ravine.evidence.ellipsoid import (
    REFERENCE_CELLS,
    SPECTRUM_ROWS,
    Columns,
    Ellipsoid,
    WideAxes,
    _isotropic,
    ellipsoid,
)
from ravine.evidence.margins import shrink
from ravine.evidence.orientation import Orientation
from ravine.evidence.significance import SignificanceTest, log_depth, t_test
from ravine.index.connectivity import ConnectivitySchedule
from ravine.index.density import MinimumDensitySchedule
from ravine.split.projection import ProjectionMethod
from ravine.split.search import BaseMethod, search
from ravine.tree.leaf_search import choose_tests
from tests.changed_method import with_method
from tests.nodes import measured, node_of


def blobs(k, d, seed, n=150, apart=9.0):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((k, d))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    centers *= apart / distances[np.triu_indices(k, 1)].min()
    labels = np.repeat(np.arange(k), n)
    return centers[labels] + rng.standard_normal((k * n, d)), labels


DENSITY = ProjectionMethod(MinimumDensitySchedule())
AXES = np.array([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize("in_columns", [True, False])
def test_the_reference_has_the_covariance_asked_for_and_is_uniform(in_columns):
    oriented = Orientation(np.array([2, 0, 1]), np.array([1.0, -1.0, 1.0]), 3)
    combined = WideAxes(AXES, np.full(2, 0.5), np.eye(2))
    shape = Ellipsoid(np.array([2.0, 0.5]), Columns(AXES, oriented) if in_columns else combined)
    drawn = shape.draw(200_000, None, np.random.default_rng(1))
    axes = AXES if in_columns else np.eye(2)
    np.testing.assert_allclose(np.cov(drawn.T), axes.T @ np.diag([4.0, 0.25]) @ axes, atol=0.03)
    radius = np.linalg.norm(drawn @ axes.T / shape.deviations, axis=1) / 2.0
    assert radius.max() <= 1.0 + 1e-9
    assert (radius < 0.5).mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("d", [5, 300])
def test_the_ellipsoid_is_that_of_the_rows(d):
    X = np.random.default_rng(0).standard_normal((2000, d)) * np.geomspace(1, 20, d)
    node = measured(X, standardize=False)
    shape = run(ellipsoid(node))
    total = np.trace(np.cov(X.T, bias=True)) * node.standardization.inverse_scale[0] ** 2
    assert (shape.deviations**2).sum() + shape.n_others * shape.other**2 == pytest.approx(total, rel=0.1)
    assert (shape.columns is not None) == (d <= 256)


def test_the_reference_lies_in_the_columns_as_the_rows_do():
    """Some methods scale columns: rows along the axes of the ellipsoid would be another problem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4)) @ rng.standard_normal((4, 4))
    node = measured(np.column_stack([X, np.ones(2000)]))
    drawn = run(ellipsoid(node)).draw(100_000, None, rng)
    np.testing.assert_allclose(np.cov(drawn[:, :4].T), np.corrcoef(X.T), atol=0.03)
    assert not drawn[:, 4].any()  # a constant column


@pytest.mark.parametrize("d", [4, 300])
def test_given_starts_do_not_break_the_test(d):
    X = np.column_stack([blobs(2, 3, 0)[0], np.ones(300), np.zeros((300, d - 4))])
    X[:, 4:] = 0.1 * np.random.default_rng(0).standard_normal((300, d - 4))
    model = with_method(MinimumDensity("auto", standardize=False), init=np.eye(d)[:2])
    with pytest.warns(UserWarning, match="constant"):
        assert model.fit(X).n_clusters_ == 2


def test_a_reference_with_the_rows_own_tails_has_their_radii():
    node = measured(np.random.default_rng(0).standard_t(3, (500, 4)))
    shape = run(ellipsoid(node))
    found = run(shape.radii(node))
    radii = found[:, 0]
    drawn = shape.draw(4000, found, np.random.default_rng(1))
    again = np.linalg.norm(drawn @ shape.axes.axes.T / shape.deviations, axis=1)
    assert set(np.round(again, 9)) <= set(np.round(radii, 9))
    assert np.quantile(again, 0.99) == pytest.approx(np.quantile(radii, 0.99), rel=0.3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_axes_of_wide_rows_are_those_of_their_covariance(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 300)) + rng.standard_normal((80, 2)) * [6.0, 3.0] @ rng.standard_normal(
        (2, 300)
    )
    weights = rng.integers(1, 4, 80).astype(float)
    node = measured(kind(X), weights, standardize=False)
    shape = run(ellipsoid(node))
    values, vectors = np.linalg.eigh(np.cov(node.standardization.apply(X).T, bias=True, aweights=weights))
    found = shape.axes.project(kind(X), node.standardization)[:, :2]
    expected = node.standardization.apply(X) @ vectors[:, :-3:-1]
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
    expected = np.sqrt(shrink(values[::-1], weights.sum()))
    np.testing.assert_allclose(shape.deviations[:2], expected[:2], rtol=1e-6)
    assert (shape.other, shape.n_others) == (pytest.approx(expected[-1]), 300 - 79)


def test_shrinking_flattens_noise_and_leaves_structure():
    noise = np.linalg.eigvalsh(np.cov(np.random.default_rng(0).standard_normal((200, 50)).T))
    assert shrink(noise, 200).std() < 0.2 * noise.std()
    long = np.geomspace(1, 100, 50)
    np.testing.assert_allclose(shrink(long, 50_000), long, rtol=0.1)
    assert shrink(long, 200).sum() == pytest.approx(long.sum())


def test_the_p_value_is_that_of_one_new_value():
    depths = np.array([0.30, 0.42, 0.35, 0.38, 0.31])
    found = t_test(0.9, [depths], n=10**6)
    statistic = (0.9 - depths.mean()) / (depths.std(ddof=1) * np.sqrt(1 + 1 / 5))
    assert found.p_value == pytest.approx(student.sf(statistic, 4))
    assert t_test(0.05, [np.zeros(8)], n=200).p_value > 0.05
    assert t_test(0.30, [depths], n=200).p_value > 0.5


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("draw", ["normal", "ball", "student"])
def test_one_mode_is_one_cluster(draw, d):
    right = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, d))
        if draw == "ball":
            X *= rng.random((200, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
        elif draw == "student":
            X /= np.sqrt(rng.chisquare(5, (200, 1)) / 5)
        right += MinimumDensity("auto").fit(X).n_clusters_ == 1
    assert right >= 7


@pytest.mark.parametrize(("k", "d"), [(2, 2), (4, 3), (6, 10), (3, 60)])
def test_blobs_are_counted(k, d):
    found = [MinimumDensity("auto").fit(blobs(k, d, seed)[0]).n_clusters_ for seed in range(4)]
    assert found.count(k) >= 3


def test_the_evidence_is_on_the_tree_made_or_refused():
    tree = MinimumDensity("auto").fit(blobs(3, 5, 0)[0]).tree_
    assert tree.n_leaves == 3
    for split in tree.splits:
        if split is not None:
            assert split.evidence.p_value <= 0.01
    refused = [split for split in tree.refused if split is not None]
    assert refused
    assert all(split.evidence.p_value > 0.01 for split in refused)
    assert all(3 <= split.evidence.n_draws <= significance.MAX_DRAWS for split in refused)
    assert "no significant valley" in tree.export_text()


@pytest.mark.parametrize("user", [0.01, 0.2])
def test_a_node_is_tested_at_its_share_of_the_users_level(monkeypatch, user):
    asked = []

    def run_test(test, node, split):
        asked.append((node.total, test.level, test.own_tails))
        return replace(split, evidence=significance.Evidence(user / 2, 1.0, 0.0, 1.0, 3))
        yield

    monkeypatch.setattr(SignificanceTest, "run", run_test)
    tree = MinimumDensity("auto", level=user).fit(blobs(3, 2, 0)[0]).tree_
    total = tree.weight[0]
    for weight, level, fallback in asked:
        assert level == pytest.approx(user * weight / total * (0.1 if fallback else 1.0))
    assert {weight < total for weight, _, _ in asked} == {True, False}
    assert {fallback for _, _, fallback in asked} == {True, False}
    assert tree.n_leaves == 3  # half the level is significant for two thirds of the rows, and not for one


@pytest.mark.parametrize(("level", "n_clusters"), [(0.1, 1), (0.2, 2)])
def test_a_p_value_is_significant_at_the_users_level_and_not_below(monkeypatch, level, n_clusters):
    found = significance.Evidence(0.15, 1.0, 0.0, 1.0, 3)
    monkeypatch.setattr(significance, "t_test", lambda observed, depths, n: found)
    X, _ = blobs(2, 2, 1, n=60, apart=6.0)
    monkeypatch.setattr(MinimumDensity, "_is_in_doubt", lambda self: False)
    assert MinimumDensity("auto", level=level).fit(X).n_clusters_ == n_clusters


def test_fallbacks_are_tested_at_a_share_of_the_level_with_the_rows_own_tails():
    method = MinimumDensity()._method()
    usual, fallback = choose_tests(method, 0.05)
    assert (usual.method, usual.level, usual.own_tails) == (method, 0.05, False)
    assert (fallback.level, fallback.own_tails) == (pytest.approx(0.005), True)
    assert fallback.method.schedule.alpha_max > method.schedule.alpha_max
    assert len(choose_tests(MaximinSeparation()._method(), 0.05)) == 1


def test_auto_with_bounds_and_other_methods():
    X, _ = blobs(6, 5, 2)
    assert MinimumDensity("auto", max_depth=1).fit(X).n_clusters_ == 2
    assert PrincipalDirection("auto", threshold="density").fit(blobs(2, 4, 0)[0]).n_clusters_ == 2


def test_an_empty_gap_needs_no_reference():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) + 1e6])
    split = MinimumDensity("auto", bandwidth_factor=0.02).fit(X).tree_.splits[0]
    assert (split.evidence.p_value, split.evidence.n_draws) == (0.0, 0)


def test_the_log_depth_of_no_split_is_zero_and_that_of_an_empty_gap_is_bounded():
    split = MinimumDensity(2).fit(blobs(2, 2, 0)[0]).tree_.splits[0]
    assert SignificanceTest(DENSITY, 0.01)._of_reference(None, 10.0) == 0.0
    assert SignificanceTest(DENSITY, 0.01)._of_reference(replace(split, quality=0.75), 10.0) == np.log(4.0)
    assert log_depth(1.0) == significance.DEEPEST
    assert log_depth(np.nextafter(1.0, 0.0)) <= significance.DEEPEST


def test_connectivity_is_tested_by_its_eigenvalue():
    method = ProjectionMethod(ConnectivitySchedule())
    _, split = run(search(node_of(np.random.default_rng(0).normal(size=(300, 2))), method))
    compared = method.test_quality(split, 300.0)
    assert compared == pytest.approx(1.0 - split.value)
    assert compared != split.quality


def test_references_with_empty_gaps_leave_a_valley_to_chance():
    X = np.random.default_rng(5).standard_normal((100, 2))
    method = MinimumDensity(2, bandwidth_factor=0.02)._method()
    opened, split = run(search(node_of(X, min_weight=20.0), method))
    node = opened.node
    judged = run(SignificanceTest(method, 0.01).run(node, replace(split, quality=0.9)))
    assert judged.evidence.null_mean == significance.DEEPEST
    assert judged.evidence.p_value > 0.99


def test_the_same_node_is_judged_the_same_and_another_stream_differs():
    method = MinimumDensity(2)._method()
    opened, split = run(search(node_of(blobs(2, 2, 0)[0]), method))
    node = opened.node
    test, finite = SignificanceTest(method, 0.01), replace(split, quality=0.5)
    one, again = (run(test.run(node, finite)).evidence for _ in range(2))
    other = run(test.run(replace(node, stream=(1, 2)), finite)).evidence
    assert one == again != other


def test_weights_count_in_the_reference():
    X = np.random.default_rng(0).standard_normal((400, 3))
    heavy = np.where(np.linalg.norm(X, axis=1) > 2, 50.0, 1.0)
    copies = np.repeat(X, heavy.astype(int), axis=0)
    means = []
    for node in (measured(X, heavy), measured(copies)):
        shape = run(ellipsoid(node))
        drawn = shape.draw(20_000, run(shape.radii(node)), np.random.default_rng(1))
        means.append((drawn**2).sum(axis=1).mean())
    assert means[0] == pytest.approx(means[1], rel=0.03)


def test_weights_are_copies_in_the_reference_of_wide_rows():
    wide = np.random.default_rng(0).standard_normal((400, 300))
    wide[:150] *= 5
    counts = np.repeat([3, 0, 1], [150, 50, 200])
    copied = measured(np.repeat(wide, counts, axis=0))
    weighted = replace(copied, rows=MemoryRows(wide, counts.astype(float)))
    found, expected = (run(ellipsoid(node)).deviations for node in (weighted, copied))
    assert copied.n_rows <= SPECTRUM_ROWS  # all of them are drawn
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(found) <= 300  # no more than there are columns


def test_references_of_wide_rows_vary_in_all_columns():
    """60 rows in 3000 independent columns are nearly orthogonal; so are their references."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3000))
    shape = run(ellipsoid(measured(X)))
    drawn = shape.draw(60, None, rng)
    assert len(shape.deviations) + shape.n_others == 3000
    for rows in (X, drawn):
        values = np.linalg.eigvalsh(rows @ rows.T / 3000)
        assert 0.6 < values[0] < values[-1] < 1.4  # (1 -+ sqrt(60 / 3000))^2


def test_many_dimensions_are_drawn_up_to_a_rotation():
    """The inner products of the triangular factor are distributed as those of the rows."""
    draws = [_isotropic(4, 9, np.random.default_rng(seed)) for seed in range(4000)]
    products = np.array([rows @ rows.T for rows in draws])
    np.testing.assert_allclose(products.mean(axis=0), 9.0 * np.eye(4), atol=0.25)
    variance = 9.0 * (np.ones((4, 4)) + np.eye(4))
    np.testing.assert_allclose(products.var(axis=0), variance, rtol=0.12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_radii_of_wide_rows_count_all_dimensions(kind):
    """Rows of the ellipsoid's own distribution have radii of about the root of the number of columns."""
    X = np.random.default_rng(0).standard_normal((750, 1000)) + 3.0
    node = measured(kind(X))
    shape = run(ellipsoid(node))
    radii = run(shape.radii(node))[:, 0]
    np.testing.assert_allclose(np.sqrt((radii**2).mean()), np.sqrt(1000), rtol=0.05)


def test_a_reference_has_a_bounded_number_of_values():
    shape = Ellipsoid(np.ones(1000), WideAxes(None, np.ones(1), np.eye(1000), 20_000), 1.0)
    n = shape.max_rows
    assert n * (1000 + n) <= REFERENCE_CELLS < 2 * n * (1000 + n)
    assert replace(shape, other=0.0).max_rows == REFERENCE_CELLS // 1024


@pytest.mark.slow
def test_two_groups_of_wide_sparse_rows_are_two_clusters():
    rng = np.random.default_rng(0)
    noise = sparse.random_array((600, 8000), density=0.005, random_state=rng, format="csr")
    group = np.arange(600) % 2
    shifted = sparse.random_array((600, 300), density=0.3, random_state=rng, format="csr").multiply(
        group[:, None]
    )
    X = (noise + sparse.hstack([shifted, sparse.csr_array((600, 7700))])).tocsr()
    model = MinimumDensity("auto").fit(X)
    assert adjusted_rand_score(group, model.labels_) == 1.0


class Recording(BaseMethod):
    """A method that finds nothing and records the nodes that it is given."""

    name = "recording"

    def __init__(self):
        self.nodes = []

    def prepare(self, opened):
        self.nodes.append(opened.node)
        return None
        yield


@pytest.mark.parametrize(("own_tails", "part"), [(False, 1.0), (True, 0.5)])
@pytest.mark.parametrize(("weight", "n"), [(1.0, 300), (100.0, 300), (1.0, 200)])
def test_the_sides_of_a_reference_are_as_large_a_share_as_those_of_the_rows(
    monkeypatch, own_tails, part, weight, n
):
    """Half as large with the rows' own tails; as many rows, however heavy they are, up to a limit."""
    monkeypatch.setattr(significance, "REFERENCE_ROWS", n)
    X = np.random.default_rng(0).standard_normal((300, 2))
    opened, split = run(search(node_of(X, np.full(300, weight)), MinimumDensity(2)._method()))
    node = opened.node
    method = Recording()
    test = SignificanceTest(method, 0.01, own_tails)
    node = replace(node, min_weight=0.1 * node.total)
    run(test.run(node, replace(split, quality=0.5)))
    assert len(method.nodes) >= significance.MIN_DRAWS
    np.testing.assert_allclose([node.min_weight / node.total for node in method.nodes], part * 0.1)
    assert {reference.n_rows for reference in method.nodes} == {n}
    np.testing.assert_allclose([reference.total for reference in method.nodes], n * weight)
    draws = {reference.rows.array.tobytes() for reference in method.nodes}
    assert len(draws) == len(method.nodes)  # each is another draw
