"""Rows far from everything: found by scales that few rows cannot move, set aside, reported."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import ravine
from ravine.data.blocks import DenseBlock
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, open_node
from ravine.data.query import run
from ravine.estimators.judging import Judges
from ravine.exceptions import OutlierWarning
from ravine.split.far import FAR, FarRows, find_far, robust_scales

CENTERS = [(-8.0, -6.0), (0.0, 8.0), (9.0, -5.0)]
BLOBS, CLASSES = make_blobs([150, 150, 150], 2, centers=CENTERS, cluster_std=0.8, random_state=3)
RNG = np.random.default_rng(0)


def found_in(rows, weights=None, **given):
    return run(find_far(run(open_node(Node(MemoryRows(rows, weights), **given), []))))


def spread(share, times=100):
    low, high = BLOBS.min(axis=0), BLOBS.max(axis=0)
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, (int(share * len(BLOBS)), 2))
    return (low + high) / 2 + times * (high - low) * noise


CELL = np.array([[99999.0, 0.5]])
ADDED = {
    **{f"1e{k}": np.full((1, 2), 10.0**k) for k in (2, 3, 6, 9)},
    "1 %": spread(0.01),
    "5 %": spread(0.05),
    "cell": CELL,
}
MODELS = {
    "density": ravine.MinimumDensity,
    "connectivity": ravine.SpectralConnectivity,
    "margin": ravine.MaximumMargin,
    "separation": ravine.MaximinSeparation,
    "valleys": lambda k, **given: ravine.PrincipalDirection(k, threshold="density", **given),
    "rbf": lambda k, **given: ravine.MinimumDensity(k, kernel="rbf", **given),
}


def fitted(model, rows, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        return model.fit(rows, *given)


# --- the rule ---


def slow_scales(column):
    """The median, and the 90 % quantile of the distances of values that differ from it.

    0 if only a minority of few rows differ.
    """
    middle = np.median(column)
    distances = np.sort(np.abs(column - middle))
    distances = distances[distances > 0]
    if len(distances) < min(20, len(column) / 2):
        return middle, 0.0
    return middle, distances[int(np.ceil(0.9 * len(distances) - 1e-9)) - 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=60))
def test_scales_are_those_of_plain_quantiles(values):
    column = np.array(values, dtype=float)
    center, scale = robust_scales(column[:, None], np.ones(len(column)))
    assert (center[0], scale[0]) == pytest.approx(slow_scales(column))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=2, max_size=30))
def test_a_weight_counts_as_copies_in_the_scales(pairs):
    values, copies = np.array(pairs).T
    weighted = robust_scales(values[:, None].astype(float), copies.astype(float))
    copied = robust_scales(np.repeat(values, copies)[:, None].astype(float), np.ones(copies.sum()))
    np.testing.assert_allclose(weighted, copied)


def test_less_than_a_tenth_of_the_rows_cannot_move_the_scales():
    rows = RNG.normal(size=(500, 3))
    clean = robust_scales(rows, np.ones(500))[1]
    rows[:40] = 1e9
    assert (robust_scales(rows, np.ones(500))[1] < 2.0 * clean).all()


def test_rounding_is_no_scale():
    """A column of -9 for missing values, and one other: noise in the last digit made that row far."""
    rng = np.random.default_rng(0)
    column = np.where(np.arange(100) == 50, 3.0, -9.0)
    noisy = column * (1 + 1e-12 * rng.standard_normal(100))
    found = [robust_scales(some[:, None], np.ones(100)) for some in (column, noisy)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    constant = np.full(100, -9.0) * (1 + 1e-12 * rng.standard_normal(100))
    assert robust_scales(constant[:, None], np.ones(100))[1] == 0.0


def test_columns_that_are_mostly_zero_have_a_scale_and_are_not_far():
    rows = (RNG.random((400, 3)) < 0.03).astype(float)
    rows[:, 0] *= RNG.gamma(3.0, size=400)
    assert found_in(rows) is None


def test_the_rows_beyond_the_limit_in_some_column_are_far():
    rule = FarRows(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    rows = np.array([[1.0 + FAR, 1e9], [1.1 + FAR, 0.0], [-29.0, 0.0]])
    assert rule.of_rows(rows).tolist() == [False, True, True]
    block = DenseBlock(rows, np.ones(3))
    np.testing.assert_array_equal(rule.distances(block) > 0, rule.of_rows(rows))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_one_far_row_is_found_in_any_unit(scale):
    rows = np.vstack([BLOBS, [[300.0, 300.0]]]) * scale
    assert np.flatnonzero(found_in(rows).of_rows(rows)).tolist() == [len(BLOBS)]


def test_far_rows_that_move_no_scale_are_left_alone():
    rows = np.vstack([BLOBS, BLOBS, [[70.0, 0.0]]])  # 12 scales
    assert found_in(rows) is None
    wide = np.column_stack([RNG.normal(size=(1000, 20)), np.zeros(1000)])
    wide[0, 0] = 15.0
    assert found_in(wide) is None


def test_a_column_whose_variance_is_one_cell_makes_its_row_far_among_many_columns():
    rows = RNG.normal(size=(1000, 20))
    rows[7, 3] = 99999.0
    assert np.flatnonzero(found_in(rows).of_rows(rows)).tolist() == [7]


def test_a_group_of_less_than_two_percent_is_far_and_a_heavier_one_is_left_to_the_search():
    light, heavy = (np.vstack([BLOBS, np.random.default_rng(1).normal(300.0, 0.5, (n, 2))]) for n in (6, 12))
    assert np.flatnonzero(found_in(light).of_rows(light)).tolist() == list(range(450, 456))
    assert found_in(heavy) is None
    weights = np.append(np.ones(len(BLOBS)), 12.0)
    assert found_in(heavy[:451], weights) is None
    assert found_in(heavy, min_weight=20.0) is not None


def test_of_many_far_rows_a_few_stand_for_all(monkeypatch):
    """A far group of 300 rows of 10 000 is left to the search, also if only 20 far rows are compared."""
    monkeypatch.setattr("ravine.split.far.FEW_ROWS", 20)
    rows = np.vstack([RNG.normal(size=(10_000, 2)), RNG.normal(300.0, 0.5, (300, 2))])
    assert found_in(rows) is None


def test_a_column_in_which_few_rows_differ_makes_no_row_far():
    """Which pixels at the border of an image are set is chance: their scale was that of the sample's seed."""
    rows = RNG.normal(size=(2000, 3))
    rows[:, 2] = 0.0
    rows[:25, 2] = np.append(np.ones(24), 100.0)
    assert all(found_in(rows, stream=(seed,)) is None for seed in range(5))


def test_sparse_and_few_rows_are_not_examined():
    assert found_in(sparse.csr_array(np.vstack([BLOBS, [[1e6, 1e6]]]))) is None
    assert found_in(np.append(np.zeros(9), 1e6)[:, None] + np.arange(10.0)[:, None]) is None


def test_mirrored_and_permuted_rows_have_the_same_far_rows():
    rows = np.vstack([BLOBS, spread(0.05)])
    base = found_in(rows).of_rows(rows)
    assert base.sum() >= 20
    for changed in (-rows, rows[:, ::-1], rows * [1.0, -3.0]):
        assert (found_in(changed).of_rows(changed) == base).all()


# --- estimators ---


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("model", MODELS)
def test_far_rows_do_not_change_the_clusters(model, added):
    rows = np.vstack([BLOBS, ADDED[added]])
    for k in (3, "auto"):
        if k == "auto" and (model in ("margin", "rbf") or added not in ("1e3", "5 %", "cell")):
            continue  # slow
        labels = fitted(MODELS[model](k), rows).labels_[: len(BLOBS)]
        expected = MODELS[model](k).fit(BLOBS).labels_ if model == "rbf" else CLASSES
        assert adjusted_rand_score(expected, labels) >= 0.99


def test_far_rows_are_set_aside_at_nodes_below_the_root():
    inner = np.vstack([BLOBS / 100, BLOBS + [100.0, 0.0]])
    rows = np.vstack([inner, [[4.0, 4.0]]])  # near, for all rows; far, for the first three blobs
    labels = fitted(ravine.MinimumDensity(6), rows).labels_[:-1]
    assert adjusted_rand_score(np.concatenate([CLASSES, CLASSES + 3]), labels) >= 0.99


def test_outliers_are_reported_and_labeled_if_asked():
    rows = np.vstack([BLOBS[:200], [[500.0, 0.0]], BLOBS[200:], [[0.0, -500.0]]])
    with pytest.warns(OutlierWarning, match=r"2 rows \(200, 451\) are far"):
        assigned = ravine.MinimumDensity(3).fit(rows)
    labeled = fitted(ravine.MinimumDensity(3, outliers="label"), rows)
    assert assigned.outliers_.tolist() == labeled.outliers_.tolist() == [200, 451]
    assert assigned.labels_.min() == 0
    assert np.flatnonzero(labeled.labels_ == -1).tolist() == [200, 451]
    near = np.delete(np.arange(len(rows)), [200, 451])
    assert (assigned.labels_[near] == labeled.labels_[near]).all()
    for model in (assigned, labeled):
        assert (model.predict(rows) == model.labels_).all()
    assert labeled.predict([[0.0, 1e5], [-8.0, -6.0]]).tolist() == [-1, assigned.predict([[-8.0, -6.0]])[0]]
    assert labeled.tree_.weight[0] == len(rows)
    assert labeled.n_clusters_ == 3


def test_a_model_file_keeps_the_rule(tmp_path):
    rows = np.vstack([BLOBS, [[1e5, 0.0]]])
    for kernel in (None, "rbf"):
        model = fitted(ravine.MinimumDensity(3, outliers="label", kernel=kernel), rows)
        ravine.save(model, tmp_path / "model.ravine")
        loaded = ravine.load(tmp_path / "model.ravine")
        assert loaded.predict(rows)[-1] == -1
        assert (loaded.predict(rows) == model.labels_).all()


def test_the_classifier_leaves_unlabeled_far_rows_out():
    rows = np.vstack([BLOBS, spread(0.05)])
    y = np.full(len(rows), -1)
    y[:450:15] = CLASSES[::15]
    model = fitted(ravine.MinimumDensityClassifier(), rows, y)
    assert len(model.outliers_) >= 20
    assert (model.transduction_[: len(BLOBS)] == CLASSES).mean() > 0.99


def test_files_find_the_same_far_rows(tmp_path):
    rows = np.vstack([BLOBS, spread(0.05)])
    np.save(tmp_path / "rows.npy", rows)
    memory = fitted(ravine.MinimumDensity(3, outliers="label"), rows)
    file = fitted(ravine.MinimumDensity(3, outliers="label"), ravine.open(tmp_path / "rows.npy"))
    assert (file.labels_ == memory.labels_).all()
    assert file.outliers_.tolist() == memory.outliers_.tolist()


# --- far groups ---


def far_group(name, n=9):
    """Rows of a group far from the three blobs: at a place, or a marker for missing values in one column."""
    rng = np.random.default_rng(7)
    if name == "marker":
        return np.column_stack([np.full(n, 99999.0), rng.choice(BLOBS[:, 1], n)])
    return np.array([name, name / 2]) + rng.normal(0.0, 0.5, (n, 2))


GROUPS = {
    **{f"{name:g}": np.vstack([BLOBS, far_group(name)]) for name in (100.0, 1e3, 1e6)},
    "marker": np.vstack([BLOBS, far_group("marker")]),
}
GROUPED = np.append(CLASSES, np.full(9, 3))


@pytest.mark.parametrize("where", GROUPS)
@pytest.mark.parametrize("model", [name for name in MODELS if name != "rbf"])
def test_a_far_group_is_set_aside_and_hides_no_clusters(model, where):
    for k in (3, "auto") if model in ("density", "connectivity") else (3,):
        with pytest.warns(OutlierWarning, match="9 rows .* or for a small cluster"):
            found = MODELS[model](k).fit(GROUPS[where])
        assert adjusted_rand_score(CLASSES, found.labels_[:450]) >= 0.99
        assert found.outliers_.tolist() == list(range(450, 459))
        assert (found.predict(GROUPS[where]) == found.labels_).all()


@pytest.mark.parametrize("model", [name for name in MODELS if name != "rbf"])
def test_a_heavy_far_group_is_a_cluster(model):
    rows = np.vstack([BLOBS, far_group(60.0, 30)])
    found = MODELS[model](4).fit(rows)
    assert adjusted_rand_score(np.append(CLASSES, np.full(30, 3)), found.labels_) >= 0.99
    assert len(found.outliers_) == 0


def test_a_group_far_in_a_narrow_column_hides_no_clusters_of_columns_that_are_not_standardized():
    """The direction to the group is that of the widest column, in which there is no gap before it."""
    rng = np.random.default_rng(2)
    classes = np.arange(1000) % 2
    rows = np.column_stack([rng.normal(0, 50, 1000), rng.normal(80 * classes, 5), rng.normal(0, 0.01, 1000)])
    rows[rng.choice(1000, 60, replace=False), 2] += 3.0
    model = fitted(ravine.MinimumDensity(2, standardize=False), rows)
    assert adjusted_rand_score(classes, model.labels_) == 1.0


def test_two_far_groups_and_a_far_row_get_the_label_of_outliers():
    rows = np.vstack([GROUPS["1000"], far_group("marker"), [[-1e7, 1e5]]])
    found = fitted(ravine.MinimumDensity(3, outliers="label"), rows)
    assert adjusted_rand_score(CLASSES, found.labels_[:450]) >= 0.99
    assert found.outliers_.tolist() == np.flatnonzero(found.labels_ == -1).tolist() == list(range(450, 469))
    assert (found.predict(rows) == found.labels_).all()


def test_a_far_group_in_weights_copies_files_and_a_checkpoint(tmp_path):
    rows, copies = GROUPS["marker"], np.random.default_rng(2).integers(1, 4, len(GROUPED))
    one = fitted(ravine.MinimumDensity(3), rows, None, copies)
    repeated = fitted(ravine.MinimumDensity(3), np.repeat(rows, copies, axis=0))
    np.testing.assert_array_equal(np.repeat(one.labels_, copies), repeated.labels_)
    np.save(tmp_path / "rows.npy", rows)
    memory = fitted(ravine.MinimumDensity(3), rows)
    for _ in range(2):  # the second time from the checkpoint
        model = ravine.MinimumDensity(3, checkpoint=tmp_path / "checkpoint")
        file = fitted(model, ravine.open(tmp_path / "rows.npy"))
        np.testing.assert_array_equal(file.labels_, memory.labels_)


def test_few_rows_of_weight_have_the_far_rows_of_their_copies():
    rows = np.append(np.arange(14.0), 1e6)[:, None]
    weights = np.append(np.full(14, 30.0), 1.0)
    copies = np.repeat(rows, weights.astype(int), axis=0)
    far = [found_in(rows, weights), found_in(copies)]
    assert [one.of_rows(rows).tolist() for one in far] == [[False] * 14 + [True]] * 2


def test_a_single_row_is_no_side_of_the_lowest_valley():
    """It is too near to be far, but the gap before it is the lowest valley along the principal component."""
    rows = np.vstack([BLOBS, [[50.0, 43.0]]])
    assert found_in(rows) is None
    model = ravine.PrincipalDirection(3, threshold="density").fit(rows)
    assert adjusted_rand_score(CLASSES, model.labels_[:-1]) >= 0.99
    published = ravine.PrincipalDirection(3, threshold="density", outliers="include").fit(rows)
    assert (published.labels_ == published.labels_[-1]).sum() == 1


@pytest.mark.parametrize("solver", ["mpm", "gep", "eig"])
def test_one_far_row_that_makes_a_fifth_of_the_scatter_is_set_aside(solver):
    """It left the scales as they are, but `eig` took another eigenvector."""
    centers = np.array([[-8.0, -6.0], [0.0, 8.0], [9.0, -5.0]])
    truth = np.repeat(np.arange(3), 300)
    rows = centers[truth] + np.random.default_rng(1).normal(size=(900, 2))
    rows = np.vstack([rows, [[100.0, 100.0]]])
    model = fitted(ravine.MaximinSeparation(3, solver=solver), rows)
    assert model.outliers_.tolist() == [900]
    assert adjusted_rand_score(truth, model.labels_[:-1]) >= 0.99


def test_judges_leave_far_rows_out():
    """One far row made the separation probability of every clustering 0."""
    rows = np.vstack([BLOBS, [[1e5, -1e5]]])
    labels = np.append(CLASSES, 0)
    clean, judges = Judges(MemoryRows(BLOBS), None)(CLASSES), Judges(MemoryRows(rows), None)
    for some in (labels, np.append(CLASSES, -1)):
        found = judges(some)
        assert found.separation_probability == pytest.approx(clean.separation_probability)
        assert (found.n_clusters, found.smallest_share) == (3, pytest.approx(1 / 3))
    weighted = Judges(MemoryRows(rows, np.full(451, 2.0)), np.full(451, 2.0))(labels)
    assert weighted.separation_probability == pytest.approx(clean.separation_probability)


def test_judges_leave_a_far_group_out():
    rows = np.vstack([BLOBS, far_group("marker", 6)])
    clean, judges = Judges(MemoryRows(BLOBS), None)(CLASSES), Judges(MemoryRows(rows), None)
    found = judges(np.append(CLASSES, np.zeros(6, int)))
    assert found.separation_probability == pytest.approx(clean.separation_probability)
    assert (found.n_clusters, found.smallest_share) == (3, pytest.approx(1 / 3))
    model = fitted(ravine.AutoCluster(3), rows)
    assert adjusted_rand_score(CLASSES, model.labels_[:450]) >= 0.99


def test_auto_cluster_labels_outliers_if_asked():
    rows = np.vstack([BLOBS, [[1e5, -1e5]]])
    model = fitted(ravine.AutoCluster(3, outliers="label"), rows)
    assert model.outliers_.tolist() == np.flatnonzero(model.labels_ == -1).tolist() == [450]
    assert (model.predict(rows) == model.labels_).all()
    assert model.n_clusters_ == 3
    assert fitted(ravine.AutoCluster(3), rows).labels_.min() == 0


def test_the_end_of_a_tail_in_some_of_many_columns_is_not_far():
    """Rows beyond the limit widen the columns, but not by much more than their number does."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = np.hstack([rng.lognormal(0.0, 1.3, (2000, 2)), rng.normal(size=(2000, 8))])
        assert np.abs((rows - np.median(rows, axis=0)) / robust_scales(rows, np.ones(2000))[1]).max() > FAR
        assert found_in(rows) is None
