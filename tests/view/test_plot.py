"""Pictures: they show the numbers of the model."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import trapezoid
from sklearn.datasets import load_wine

from ravine import InvalidInputError, MinimumDensity, PrincipalDirection, RavineError, SpectralConnectivity
from ravine.exceptions import OutlierWarning
from ravine.view import plot
from ravine.view.node import node_rows, pursuit_path
from tests.changed_method import with_method

mpl.use("Agg")
from matplotlib import pyplot

WINE = load_wine()
MODEL = MinimumDensity(3).fit(WINE.data)
RNG = np.random.default_rng(0)
PLANE = np.array([[0, 0], [4, 1], [1, 5]])[RNG.integers(0, 3, 400)] + 0.7 * RNG.standard_normal((400, 2))


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
        "path": lambda ax: plot.path(MODEL, WINE.data, ax=ax),
        "step": lambda ax: plot.step(MODEL, WINE.data, ax=ax),
        "tree": lambda ax: plot.tree(MODEL, WINE.data, ax=ax),
        "landscape": lambda ax: plot.landscape(PLANE, ax=ax),
        "convergence": lambda ax: plot.convergence(PLANE, (1.0, 0.5), ax=ax),
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


@pytest.mark.parametrize("draw", [plot.density, plot.path, plot.step, plot.split, plot.tree])
def test_models_of_a_tiny_bandwidth_are_drawn(draw):
    model = MinimumDensity(3, bandwidth_factor=1e-9).fit(WINE.data)
    draw(model, WINE.data)


def test_the_path_ends_at_the_split_that_was_found():
    ends = [pursuit_path(MODEL, WINE.data, start=start) for start in range(4)]
    found = MODEL.tree_.splits[0]
    agreement = [abs(steps[-1].direction @ found.direction) for steps in ends]
    assert max(agreement) > 0.999
    steps = ends[int(np.argmax(agreement))]
    assert len(steps) == 11
    assert [step.alpha for step in steps[1:]] == pytest.approx(np.linspace(0.01, 0.9, 10))
    assert steps[-1].value == pytest.approx(found.value, rel=0.01)
    ax = plot.path(MODEL, WINE.data)
    assert next(label.get_text() for label in ax.get_yticklabels()) == "start"
    with pytest.raises(InvalidInputError, match="0 to 3"):
        plot.path(MODEL, WINE.data, start=4)
    with pytest.raises(InvalidInputError, match="pursue a direction"):
        plot.path(PrincipalDirection(2).fit(WINE.data), WINE.data)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_every_step_shows_density_objective_threshold_and_rows(kernel):
    model = MODEL if kernel is None else MinimumDensity(2, kernel=kernel).fit(WINE.data)
    steps = pursuit_path(model, WINE.data)
    for number in (0, 5, len(steps) - 1):
        ax = plot.step(model, WINE.data, number, labels=WINE.target)
        penalized, density = (line(ax, f"{name}density").get_xydata() for name in ("penalized ", ""))
        threshold = line(ax, "threshold").get_xdata()[0]
        inside = np.abs(density[:, 0]) <= steps[number].half_width
        np.testing.assert_allclose(penalized[inside, 1], density[inside, 1], rtol=1e-6)
        lowest = density[np.nanargmin(penalized[:, 1])]
        assert abs(threshold - lowest[0]) <= model.tree_.splits[0].facts["bandwidth"] * 1.15
        assert np.interp(threshold, *density.T) <= lowest[1] * 1.001
        rows = np.concatenate(
            [item.get_offsets()[:, 0] for item in ax.collections if len(item.get_offsets()) > 1]
        )
        assert len(rows) == len(WINE.data)
        assert rows.mean() == pytest.approx(0.0, abs=1e-9)
        assert rows.std() == pytest.approx(
            np.sqrt(np.average(density[:, 0] ** 2, weights=density[:, 1])), rel=0.1
        )
        pyplot.close(ax.figure)
    with pytest.raises(InvalidInputError, match="0 to 10"):
        plot.step(model, WINE.data, 11)


def test_a_step_of_connectivity_has_no_penalized_density():
    ax = plot.step(SpectralConnectivity(2).fit(WINE.data), WINE.data)
    assert {item.get_label() for item in ax.get_lines()} >= {"density", "threshold"}
    assert "penalized density" not in {item.get_label() for item in ax.get_lines()}


def test_the_tree_shows_every_node():
    ax = plot.tree(MODEL, WINE.data, feature_names=WINE.feature_names)
    texts = [text.get_text() for text in ax.texts]
    assert sum("\n" in text for text in texts) == MODEL.tree_.n_nodes
    for k in range(3):
        assert f"{k}\n{(MODEL.labels_ == k).sum()}" in texts
    assert "+proline\n0.30" in texts


def test_the_landscape_is_lowest_where_the_fit_ended():
    model = with_method(MinimumDensity(2, max_iter=50), tol=1e-4).fit(PLANE)
    ax = plot.landscape(PLANE, model)
    angles, values = line(ax, "projection index").get_data()
    found = line(ax, "split of the model").get_xdata()[0]
    assert np.interp(found, angles, values) == pytest.approx(values.min(), rel=0.01)
    assert values[0] == pytest.approx(values[-1])  # a direction and its negative are one
    with pytest.raises(InvalidInputError, match="two columns, got 13"):
        plot.landscape(WINE.data)


def test_hyperplanes_converge_to_the_maximum_margin():
    rows = np.concatenate([RNG.standard_normal((40, 2)), RNG.standard_normal((40, 2)) + [1.0, 6.0]])
    rows = rows @ [[1.0, 0.8], [0.0, 0.6]]
    ax = plot.convergence(rows)
    slopes = []
    for item in ax.get_lines():
        x, y = item.get_data()
        slopes.append(np.arctan2(y[1] - y[0], x[1] - x[0]) % np.pi)
    margin = slopes.pop()
    gaps = [abs(slope - margin) for slope in slopes]
    assert gaps[-1] < np.radians(1.0)
    assert gaps[0] > 2 * gaps[-1]


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
    assert node_rows(model, WINE.data).step.bandwidth == pytest.approx(
        model.tree_.splits[0].facts["bandwidth"], rel=1e-9
    )


def test_a_path_with_weights_is_that_of_copies():
    counts = np.random.default_rng(0).integers(1, 4, len(WINE.data))
    weighted = pursuit_path(MODEL, WINE.data, sample_weight=counts)
    copied = pursuit_path(MODEL, np.repeat(WINE.data, counts, axis=0))
    for a, b in zip(weighted, copied, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-5)
        np.testing.assert_allclose(a.direction, b.direction, atol=1e-4)
    plain = pursuit_path(MODEL, WINE.data)
    assert abs(weighted[0].value / plain[0].value - 1) > 0.01


def test_leaves_have_no_split_to_show():
    with pytest.raises(InvalidInputError, match=r"node 2 has no split.*: 0, 1"):
        plot.density(MODEL, WINE.data, node=2)
    with pytest.raises(InvalidInputError, match="node 99 has no split"):
        plot.split(MODEL, WINE.data, node=99)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(RavineError, match=r'pip install "ravine\[plot\]"'):
        plot.tree(MODEL, WINE.data)


def test_rows_far_from_all_others_are_not_drawn():
    far = np.vstack([WINE.data, np.full((1, 13), 1e6)])
    with pytest.warns(OutlierWarning):
        model = MinimumDensity(2).fit(far)
    for drawn in (plot.density(model, far), plot.split(model, far), plot.map(model, far)):
        assert max(map(abs, drawn.get_xlim())) < 100


def test_a_step_with_weights_shows_the_rows_where_copies_are():
    counts = np.random.default_rng(0).integers(1, 4, len(WINE.data))

    def places(X, **given):
        dots = [found.get_offsets()[:, 0] for found in plot.step(MODEL, X, **given).collections]
        return np.concatenate([found for found in dots if len(found) > 1])

    weighted, copied = places(WINE.data, sample_weight=counts), places(np.repeat(WINE.data, counts, axis=0))
    apart, from_plain = (
        np.abs(copied[:, None] - some).min(axis=1).max() for some in (weighted, places(WINE.data))
    )
    assert apart < 1e-4 < 1e-2 < from_plain
