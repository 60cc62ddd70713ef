"""The map, its lines, the figures of clusters, and the colors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from ravine import MinimumDensity
from ravine.data.memory import MemoryRows
from ravine.view import palette, pictures
from ravine.view.explain import explain
from ravine.view.row_map import AGREEMENT, cluster_quality, fair_sample, map_rows
from ravine.view.words import percent

X = load_wine().data
MODEL = MinimumDensity(3).fit(X)
Z = (X - X.mean(axis=0)) / X.std(axis=0)


def row_map(tree=MODEL.tree_, rows=X):
    return map_rows(tree, MemoryRows(rows), tree.predict(rows), standardize=True)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=400), st.integers(1, 100))
def test_every_cluster_has_its_share_of_a_sample(labels, n):
    labels = np.array(labels)
    picked = fair_sample(labels, n)
    assert (np.diff(picked) > 0).all()
    whole, part = np.bincount(labels), np.bincount(labels[picked], minlength=6)[: labels.max() + 1]
    if len(labels) <= n:
        np.testing.assert_array_equal(part, whole)
    else:
        np.testing.assert_array_equal(part, np.ceil(n * whole / len(labels)))


def test_the_map_is_the_principal_components():
    expected = PCA(2).fit_transform(Z)
    found = row_map()
    for j in range(2):
        sign = np.sign(expected[:, j] @ found.points[:, j])
        np.testing.assert_allclose(found.points[:, j], sign * expected[:, j], atol=1e-8)
    assert "36 % of the variance" in found.axes[0]
    np.testing.assert_array_equal(MODEL.tree_.label[found.leaf], MODEL.labels_)


def test_a_line_has_the_rows_of_its_split_on_their_side():
    found = row_map()
    distance = MODEL.transform(X)
    for column, node in enumerate(MODEL.tree_.inner):
        here = np.isin(found.leaf, MODEL.tree_.leaves_below(node))
        slope = found.directions @ (MODEL.tree_.boundary(node).normal * found.scale)
        along = (found.points[here] - found.points[here].mean(axis=0)) @ slope + distance[here, column].mean()
        agreement = ((along > 0) == (distance[here, column] > 0)).mean()
        assert (node in found.lines) == (agreement >= AGREEMENT)
        if node in found.lines:
            np.testing.assert_allclose(found.lines[node].signed_distance_of(found.points[here]), along)
    assert 0 in found.lines


def test_in_two_columns_the_line_is_the_hyperplane_itself():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 2)) * [3, 1] + np.repeat([[0, 0], [9, 40]], 150, axis=0)
    model = MinimumDensity(2).fit(rows)
    found = row_map(model.tree_, rows)
    along = found.lines[0].signed_distance_of(found.points)
    np.testing.assert_allclose(along, model.transform(rows)[:, 0], rtol=1e-6, atol=1e-8)


def test_the_figures_of_clusters():
    found = cluster_quality(MODEL.tree_, row_map())
    member = MODEL.predict_proba(X)
    for label, one in found.items():
        assert one.membership == pytest.approx(member[MODEL.labels_ == label, label].mean())
    above = [MODEL.tree_.splits[node].quality for node in MODEL.tree_.inner]
    assert max(one.depth for one in found.values()) <= max(above)
    assert min(one.depth for one in found.values()) == pytest.approx(min(above))
    assert cluster_quality(MODEL.tree_.cut(1), row_map(MODEL.tree_.cut(1))) == {}


def test_the_ranking_weighs_splits_by_their_rows():
    explained = explain(MODEL, X)
    ranking = dict(explained.ranking())
    assert sum(ranking.values()) == pytest.approx(1)
    expected = dict.fromkeys(ranking, 0.0)
    for split in explained.splits.values():
        for driver in split.drivers:
            expected[driver.feature] += (split.left_weight + split.right_weight) * max(driver.contribution, 0)
    total = sum(expected.values())
    assert ranking == pytest.approx({name: value / total for name, value in expected.items()})
    assert list(ranking.values()) == sorted(ranking.values(), reverse=True)


def test_columns_are_in_blocks_by_the_cluster_in_which_they_are_highest():
    values = np.array([[0.0, 2.0, 0.1, -1.0], [3.0, 0.0, 0.0, 1.0]])
    assert pictures.order_of_columns(values, 3).tolist() == [1, 0, 3]


# --- colors ---


def oklab(colors):
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lms = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
    lab = [
        [0.21045426, 0.7936178, -0.00407205],
        [1.97799850, -2.428592205, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return linear, np.cbrt(linear @ np.transpose(lms)) @ np.transpose(lab)


def test_thirty_clusters_have_colors_that_differ():
    assert len(set(palette.CLUSTERS)) == 30
    _, places = oklab(palette.CLUSTERS)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(30)
    assert apart.min() > 0.05  # about 0.02 can just be told apart
    assert apart[:12, :12].min() > 0.1
    _, grays = oklab([palette.LEFT, palette.RIGHT])
    assert np.linalg.norm(places[:, None] - grays[None], axis=2).min() > 0.05


def test_text_on_a_cluster_s_color_is_legible():
    for color in palette.CLUSTERS:
        light, dark = sorted(
            [palette.luminance(color), palette.luminance(palette.text_on(color))], reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_share_that_rounds_to_zero_has_no_sign():
    assert percent(-0.004) == percent(0.004) == percent(0.0) == "0\u00a0%"
    assert percent(-0.02) == "\u22122\u00a0%"
