"""Pictures: they show the numbers of the model."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.datasets import load_wine

from ravine import InvalidInputError, MinimumDensity, RavineError, SpectralConnectivity
from ravine.exceptions import OutlierWarning
from ravine.view import plot
from ravine.view.plot import node_rows

mpl.use("Agg")
from matplotlib import pyplot

WINE = load_wine()
MODEL = MinimumDensity(3).fit(WINE.data)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def line(ax, label):
    (found,) = (item for item in ax.get_lines() if item.get_label() == label)
    return found


def test_each_takes_and_returns_an_axes():
    draw = {
        "density": lambda ax: plot.density(MODEL, WINE.data, ax=ax),
        "split": lambda ax: plot.split(MODEL, WINE.data, ax=ax),
        "map": lambda ax: plot.map(MODEL, WINE.data, ax=ax),
        "tree": lambda ax: plot.tree(MODEL, ax=ax),
    }
    for name, function in draw.items():
        ax = pyplot.figure().subplots()
        assert function(ax) is ax, name
    assert plot.density(MODEL, WINE.data).figure in map(pyplot.figure, pyplot.get_fignums())


def test_density_shows_the_threshold_in_its_valley():
    for number in MODEL.tree_.inner:
        ax = plot.density(MODEL, WINE.data, number)
        x, y = line(ax, "density").get_data()
        assert trapezoid(y, x) == pytest.approx(1, abs=1e-3)
        at_threshold = np.interp(0.0, x, y)
        beside = min(y[x < 0].max(), y[x > 0].max())
        assert 1 - at_threshold / beside == pytest.approx(MODEL.tree_.splits[number].quality, abs=0.01)
        penalized = line(ax, "penalized density").get_ydata()
        inside = np.isfinite(penalized)
        assert (penalized[inside] >= y[inside] - 1e-12).all()
        assert line(ax, "threshold").get_xdata()[0] == 0.0


def test_the_interval_is_alpha_deviations_around_the_mean():
    ax = plot.density(MODEL, WINE.data)
    distance = MODEL.transform(WINE.data)[:, 0]
    (span,) = (patch for patch in ax.patches if patch.get_label() == "feasible interval")
    corners = span.get_path().transformed(span.get_patch_transform()).vertices[:, 0]
    low, width = corners.min(), np.ptp(corners)
    assert low + width / 2 == pytest.approx(distance.mean())
    assert width / 2 == pytest.approx(0.9 * distance.std())


def test_rows_are_drawn_where_they_are_with_one_marker_per_class():
    ax = plot.split(MODEL, WINE.data, labels=WINE.target)
    drawn = [item for item in ax.collections if item.get_label().startswith("class")]
    assert len(drawn) == 3
    assert len({tuple(map(tuple, item.get_paths()[0].vertices)) for item in drawn}) == 3
    distance = MODEL.transform(WINE.data)[:, 0]
    for k, item in enumerate(drawn):
        np.testing.assert_allclose(item.get_offsets()[:, 0], distance[WINE.target == k])


def test_across_is_the_most_variance_that_is_orthogonal_to_the_normal():
    node = node_rows(MODEL, WINE.data)
    Z = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
    v = MODEL.tree_.splits[0].direction
    rest = Z - np.outer(Z @ v, v)
    largest = np.linalg.svd(rest - rest.mean(axis=0))[1][0] ** 2 / len(Z)
    found = node.across()
    assert found.var() == pytest.approx(largest)
    inner = next(number for number in MODEL.tree_.inner if number)
    assert len(node_rows(MODEL, WINE.data, inner).members) == MODEL.tree_.weight[inner]


@pytest.mark.parametrize("draw", [plot.density, plot.split, plot.map])
def test_models_of_a_tiny_bandwidth_are_drawn(draw):
    model = MinimumDensity(3, bandwidth_factor=1e-9).fit(WINE.data)
    draw(model, WINE.data)


def test_a_method_without_an_interval_has_no_penalized_density():
    ax = plot.density(SpectralConnectivity(2).fit(WINE.data), WINE.data)
    shown = {item.get_label() for item in ax.get_lines()}
    assert {"density", "threshold"} <= shown
    assert "penalized density" not in shown


def test_the_tree_shows_every_node():
    ax = plot.tree(MODEL, feature_names=WINE.feature_names)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, MODEL.tree_.weight[[0, 1]] / 178)
    heights = [bar.get_height() for bar in ax.patches]
    qualities = [MODEL.tree_.splits[node].quality for node in (0, 1)]
    np.testing.assert_allclose(np.abs(heights), np.array(qualities) / sum(qualities))
    texts = [text.get_text() for text in ax.texts]
    assert sum("\n" in text for text in texts) == MODEL.tree_.n_nodes
    for k in range(3):
        assert f"{k}\n{(MODEL.labels_ == k).sum()}" in texts
    assert "+proline\n0.30" in texts


def test_the_line_of_the_map_is_the_first_split():
    X = WINE.data[:, [6, 9]]  # in two columns the map shows every split as it is
    model = MinimumDensity(2).fit(X)
    ax = plot.map(model, X)
    on_line = np.array(line(ax, "first split").get_xy1())
    groups = {item.get_label(): np.asarray(item.get_offsets()) for item in ax.collections}
    (dx, dy) = np.array(line(ax, "first split").get_xy2()) - on_line
    sides = [np.sign((groups[f"cluster {k}"] - on_line) @ [-dy, dx]) for k in (0, 1)]
    assert {*sides[0]} == {-sides[1][0]}
    assert len({*sides[1]}) == 1


def test_sparse_rows_and_weights():
    weights = np.arange(len(WINE.data)) % 2
    half = plot.density(MODEL, WINE.data[weights == 1])
    weighted = plot.density(MODEL, sparse.csr_array(WINE.data), sample_weight=weights)
    for label in ("density", "threshold"):
        np.testing.assert_allclose(
            line(half, label).get_ydata(), line(weighted, label).get_ydata(), atol=0.02 * 0.3
        )


def test_the_bandwidth_of_a_picture_is_that_of_the_model():
    model = MinimumDensity(2, bandwidth_factor=0.5).fit(WINE.data)
    h, found = model.tree_.splits[0].facts["bandwidth"], node_rows(model, WINE.data)
    x, y = line(plot.density(model, WINE.data), "density").get_data()
    exact = norm.pdf(x[:, None], found.distance, h).mean(axis=1)
    np.testing.assert_allclose(y, exact, rtol=1e-6, atol=1e-9)


def test_leaves_have_no_split_to_show():
    with pytest.raises(InvalidInputError, match=r"node 2 has no split.*: 0, 1"):
        plot.density(MODEL, WINE.data, node=2)
    with pytest.raises(InvalidInputError, match="node 99 has no split"):
        plot.split(MODEL, WINE.data, node=99)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(RavineError, match=r'pip install "ravine\[plot\]"'):
        plot.tree(MODEL)


def test_rows_far_from_all_others_are_not_drawn():
    far = np.vstack([WINE.data, np.full((1, 13), 1e6)])
    with pytest.warns(OutlierWarning):
        model = MinimumDensity(2).fit(far)
    for drawn in (plot.density(model, far), plot.split(model, far), plot.map(model, far)):
        assert max(map(abs, drawn.get_xlim())) < 100
