"""Is a valley real? The reference, the test, and the number of clusters by itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from ravine import ClusterTree, MinimumDensity, PrincipalDirection
from ravine.data.blocks import ArrayBlocks, drive
from ravine.data.frame import frame_of
from ravine.split.hyperplane import Hyperplane
from ravine.tree import evidence
from ravine.tree.evidence import Shape, compare, shrink, spectrum
from ravine.tree.reunite import reunite


def blobs(k, d, seed, n=150, apart=9.0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((k, d))
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    centres *= apart / distances[np.triu_indices(k, 1)].min()
    labels = np.repeat(np.arange(k), n)
    return centres[labels] + rng.standard_normal((k * n, d)), labels


def test_the_reference_has_the_covariance_asked_for_and_is_uniform():
    axes = np.array([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0]])
    shape = Shape(axes, np.array([2.0, 0.5]))
    drawn = shape.draw(200_000, None, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(drawn.T), axes.T @ np.diag([4.0, 0.25]) @ axes, atol=0.03)
    radius = np.linalg.norm(drawn @ axes.T / shape.deviations, axis=1) / 2.0
    assert radius.max() <= 1.0 + 1e-9
    assert (radius < 0.5).mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("d", [5, 300])
def test_the_spectrum_is_that_of_the_rows(d):
    X = np.random.default_rng(0).standard_normal((2000, d)) * np.geomspace(1, 20, d)
    rows = ArrayBlocks(X)
    frame = drive(rows, frame_of(rows, None, False))
    shape = spectrum(rows, frame, np.random.default_rng(0))
    total = np.trace(np.cov(X.T, bias=True)) * frame.inverse_scale[0] ** 2
    assert (shape.deviations**2).sum() == pytest.approx(total, rel=0.1)


def test_a_reference_with_the_rows_own_tails_has_their_radii():
    X = np.random.default_rng(0).standard_t(3, (500, 4))
    rows = ArrayBlocks(X)
    frame = drive(rows, frame_of(rows, None, True))
    shape = spectrum(rows, frame, np.random.default_rng(0))
    found = shape.radii(rows, frame)
    radii = found[:, 0]
    drawn = shape.draw(4000, found, np.random.default_rng(1))
    again = np.linalg.norm(drawn @ shape.axes.T / shape.deviations, axis=1)
    assert set(np.round(again, 9)) <= set(np.round(radii, 9))
    assert np.quantile(again, 0.99) == pytest.approx(np.quantile(radii, 0.99), rel=0.3)


def test_shrinking_flattens_noise_and_leaves_structure():
    noise = np.linalg.eigvalsh(np.cov(np.random.default_rng(0).standard_normal((200, 50)).T))
    assert shrink(noise, 200).std() < 0.2 * noise.std()
    long = np.geomspace(1, 100, 50)
    np.testing.assert_allclose(shrink(long, 50_000), long, rtol=0.1)
    assert shrink(long, 200).sum() == pytest.approx(long.sum())


def test_the_p_value_is_that_of_one_new_value():
    depths = np.array([0.30, 0.42, 0.35, 0.38, 0.31])
    found = compare(0.9, depths, n=10**6)
    statistic = (0.9 - depths.mean()) / (depths.std(ddof=1) * np.sqrt(1 + 1 / 5))
    assert found.p_value == pytest.approx(student.sf(statistic, 4))
    assert compare(0.05, np.zeros(8), n=200).p_value > 0.05
    assert compare(0.30, depths, n=200).p_value > 0.5


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
    assert all(3 <= split.evidence.n_draws <= evidence.DRAWS for split in refused)
    assert "may be chance" in tree.export_text()


def test_a_node_is_tested_at_its_share_of_the_level(monkeypatch):
    asked = []

    def weigh(trial, rows, frame, split, least, rng):
        asked.append((rows.total, trial.level, trial.own_tails))
        return replace(split, evidence=evidence.Evidence(0.005, 1.0, 0.0, 1.0, 3))

    monkeypatch.setattr(evidence.Trial, "weigh", weigh)
    tree = MinimumDensity("auto", level=0.01).fit(blobs(3, 2, 0)[0]).tree_
    total = tree.weight[0]
    for weight, level, second_try in asked:
        assert level == pytest.approx(0.01 * weight / total * (0.1 if second_try else 1.0))
    assert tree.n_leaves == 3  # p = 0.005 convinces for two thirds of the rows, and not for one


def test_the_level_is_in_the_users_hands():
    heap = np.random.default_rng(3).standard_normal((300, 10))
    strict = MinimumDensity("auto", level=1e-9).fit(blobs(2, 3, 1)[0])
    assert strict.tree_.n_leaves <= 2
    lenient = MinimumDensity("auto", level=0.5, min_cluster_size=5).fit(heap)
    assert lenient.n_clusters_ >= MinimumDensity("auto", min_cluster_size=5).fit(heap).n_clusters_


def test_auto_with_bounds_and_other_methods():
    X, _ = blobs(6, 5, 2)
    assert MinimumDensity("auto", max_leaves=3).fit(X).n_clusters_ == 3
    assert MinimumDensity("auto", max_depth=1).fit(X).n_clusters_ == 2
    assert PrincipalDirection("auto", cut="density").fit(blobs(2, 4, 0)[0]).n_clusters_ == 2


def test_an_empty_gap_needs_no_reference():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) + 1e6])
    split = MinimumDensity("auto", bandwidth_factor=0.02).fit(X).tree_.splits[0]
    assert (split.evidence.p_value, split.evidence.n_draws) == (0.0, 0)


def test_references_with_empty_gaps_leave_a_valley_to_chance():
    X = np.random.default_rng(5).standard_normal((100, 2))
    rows = ArrayBlocks(X)
    splitter = MinimumDensity(2, bandwidth_factor=0.02)._splitter(2)
    frame, split = drive(rows, splitter.search(rows, None, 20.0, np.random.default_rng(0)))
    finite = replace(split, quality=0.9)
    weighed = evidence.Trial(splitter, 0.01).weigh(rows, frame, finite, 20.0, np.random.default_rng(0))
    assert weighed.evidence.null_mean == evidence.DEEPEST
    assert weighed.evidence.p_value > 0.99


def test_weights_count_in_the_reference():
    X = np.random.default_rng(0).standard_normal((400, 3))
    heavy = np.where(np.linalg.norm(X, axis=1) > 2, 50.0, 1.0)
    copies = np.repeat(X, heavy.astype(int), axis=0)
    means = []
    for rows in (ArrayBlocks(X, heavy), ArrayBlocks(copies)):
        frame = drive(rows, frame_of(rows, None, True))
        shape = spectrum(rows, frame, np.random.default_rng(0))
        drawn = shape.draw(20_000, shape.radii(rows, frame), np.random.default_rng(1))
        means.append((drawn**2).sum(axis=1).mean())
    assert means[0] == pytest.approx(means[1], rel=0.03)
    wide = np.random.default_rng(0).standard_normal((600, 300))
    wide[:300] *= 5
    some = ArrayBlocks(wide, np.repeat([0.0, 1.0], 300))
    frame = drive(some, frame_of(some, None, False))
    alone = ArrayBlocks(wide[300:])
    expected = spectrum(alone, frame, np.random.default_rng(0)).deviations
    found = spectrum(some, frame, np.random.default_rng(0)).deviations
    assert (found**2).sum() == pytest.approx((expected**2).sum(), rel=1e-6)


def test_parts_of_one_cluster_are_put_together_again():
    """Two leaves that a hyperplane high up cut out of one heap share a label; a third one does not."""
    rng = np.random.default_rng(0)
    heap, other = rng.standard_normal((600, 2)), rng.standard_normal((300, 2)) + [0.0, 30.0]
    X = np.vstack([heap, other])
    leaf_of = np.where(np.arange(900) >= 600, 4, np.where(X[:, 0] > 0, 3, 1)).astype(np.int32)
    halves = PrincipalDirection(2).fit(X).tree_
    plane = halves.splits[0]
    tree = ClusterTree.of_leaves(
        np.array([-1, 0, 0, 2, 2]),
        np.array([1, -1, 3, -1, -1]),
        np.array([2, -1, 4, -1, -1]),
        np.array([900.0, 300, 600, 300, 300]),
        (cut(plane, [1.0, 0.0], 0.0), None, cut(plane, [0.0, 1.0], 15.0), None, None),
        np.array([0, -1, 1, -1, -1]),
        (None,) * 5,
    )
    X[600:, 0] = np.abs(X[600:, 0]) + 0.1
    rows = ArrayBlocks(X)
    frame = drive(rows, frame_of(rows, None, True))
    asked = []

    def comes_apart(leaves):
        members = np.isin(leaf_of, leaves)
        asked.append(int(members.sum()))
        return X[members, 1].std() > 5

    merged = reunite(tree, rows, frame, comes_apart)
    assert merged.n_clusters == 2
    assert merged.label[1] == merged.label[3] != merged.label[4]
    assert asked == [600]


def cut(split, weights, at):
    plane = Hyperplane(np.array(weights), np.zeros(2), at)
    return replace(split, boundary=plane, direction=np.array(weights))
