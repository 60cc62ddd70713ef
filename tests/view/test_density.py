import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.datasets import load_wine

from ravine import MinimumDensity, PrincipalDirection
from ravine.view.density import N_BINS, densities
from ravine.view.fitted import rows_for_tree

WINE = load_wine(as_frame=True).data
MODEL = MinimumDensity(4).fit(WINE)


def density_of(model, X, sample_weight=None):
    tree = getattr(model, "tree_", model)
    return densities(tree, rows_for_tree(model, X, sample_weight))


def test_a_density_is_the_kernel_estimate_of_the_rows_that_reach_the_split():
    path = MODEL.tree_.decision_path(WINE).toarray().astype(bool)
    found = density_of(MODEL, WINE)
    assert sorted(found) == sorted(MODEL.tree_.inner)
    for node, projected in found.items():
        rows = MODEL.tree_.rows(WINE).select(np.flatnonzero(path[:, node]))
        distance = MODEL.tree_.splits[node].boundary.signed_distance(rows)
        h = MODEL.tree_.splits[node].facts["bandwidth"]
        assert projected.bandwidth == h
        exact = np.exp(-0.5 * ((projected.points[:, None] - distance) / h) ** 2).mean(axis=1) / (
            h * np.sqrt(2 * np.pi)
        )
        assert projected.weight == len(distance)
        assert len(projected.points) == N_BINS
        np.testing.assert_allclose(projected.density, exact, atol=0.03 * exact.max())
        assert trapezoid(projected.density, projected.points) == pytest.approx(1, abs=0.02)
        assert projected.points[0] < 0 < projected.points[-1]


def test_weights_are_repeats():
    weights = np.arange(len(WINE)) % 3
    weighted = density_of(MODEL, WINE, sample_weight=weights)
    repeated = density_of(MODEL, WINE.loc[WINE.index.repeat(weights)])
    for node, projected in weighted.items():
        assert projected.weight == repeated[node].weight
        np.testing.assert_allclose(projected.points, repeated[node].points)
        np.testing.assert_allclose(projected.density, repeated[node].density, rtol=1e-9)


def test_one_far_row_does_not_flatten_the_picture():
    far = WINE.to_numpy(copy=True)
    far[0] *= 1e4
    tree = MODEL.tree_.cut(2)
    projected = density_of(tree, far)[0]
    assert np.isfinite(projected.density).all()
    distance = tree.splits[0].boundary.signed_distance(tree.rows(far))
    h = max(tree.splits[0].facts["bandwidth"], distance.std() / 20)  # at least half a bin
    low, high = distance.mean() - 4 * distance.std() - 3 * h, distance.mean() + 4 * distance.std() + 3 * h
    assert low <= projected.points[0] < 0 < projected.points[-1] <= high
    assert np.ptp(distance) > 1.2 * (projected.points[-1] - projected.points[0])


def test_a_method_without_a_bandwidth_is_drawn_with_that_of_the_distances():
    model = PrincipalDirection(2).fit(WINE)
    distance = model.transform(WINE)[:, 0]
    expected = 0.9 * distance.std() * len(WINE) ** -0.2
    assert density_of(model, WINE)[0].bandwidth == pytest.approx(expected)


def test_rows_that_do_not_reach_a_split_leave_it_out():
    inner = [node for node in MODEL.tree_.inner if node]
    side = MODEL.tree_.decision_path(WINE).toarray()[:, inner[0]] == 1
    assert inner[0] not in density_of(MODEL, WINE[~side])
