from dataclasses import replace

import numpy as np
import pytest

from ravine.index.base import PlacedLabels
from ravine.index.density import MinimumDensityIndex
from ravine.index.labels import LabeledIndex, penalty_slope
from ravine.index.line import lowest_label_penalty, penalty_of_labels
from tests import oracles
from tests.index.test_every_index import INDICES, make_profile


def labeled_profile(seed, offset=1.5, n_labeled=8):
    """A profile with labeled rows, not all of them on the side they should be on."""
    rng = np.random.default_rng(seed)
    profile = make_profile(seed, offset=offset)
    points = rng.uniform(-3.0, 3.0, n_labeled)
    sides = np.where(points + rng.normal(0.0, 1.0, n_labeled) > 0, 1.0, -1.0)
    points[:2], sides[:2] = (0.8, -0.6), (-1.0, 1.0)  # no threshold has all on their sides
    return replace(profile, labeled=points), sides, rng.uniform(0.5, 2.0, n_labeled)


def penalty_at(points, sides, strength, threshold):
    """The sum of Equation 16 with epsilon = 1, row by row."""
    return sum(
        c * max(0.0, -y * (t - threshold)) ** 2 for t, y, c in zip(points, sides, strength, strict=True)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gamma", [0.1, 10.0])
def test_value_is_phi_ssc_of_the_paper(seed, gamma):
    profile, sides, weights = labeled_profile(seed, offset=seed % 3)
    h, unit = 0.4, 1.7
    index = MinimumDensityIndex(h, alpha=0.6)
    result = LabeledIndex(index, sides, weights, gamma, unit).evaluate(profile)

    def f(b):
        plain = oracles.penalized(profile.points, profile.mass, h, 0.6, index.eta * h, b)
        return plain + penalty_at(profile.labeled, sides, gamma / unit**3 * weights, b)

    thresholds = np.linspace(-4.0, 4.0, 2001)
    lowest = min(f(b) for b in thresholds)
    assert np.exp(result.value) == pytest.approx(f(result.threshold), rel=1e-9)
    assert lowest * (1 - 1e-3) <= np.exp(result.value) <= lowest * (1 + 1e-9)


@pytest.mark.parametrize(("seed", "gamma"), [(0, 0.1), (1, 10.0), (2, 1.0)])
@pytest.mark.parametrize("name", sorted(INDICES))
def test_slopes_are_the_derivatives_by_every_point_and_every_labeled_row(name, seed, gamma):
    profile, sides, weights = labeled_profile(seed)
    index = LabeledIndex(INDICES[name](profile), sides, weights, gamma, unit=1.3)
    result = index.evaluate(profile)

    def by_points(points):
        std = float(np.sqrt(profile.mass @ points**2 / profile.total))
        return index.evaluate(replace(profile, points=points, std=std)).value

    def by_labeled(labeled):
        return index.evaluate(replace(profile, labeled=labeled)).value

    total = result.slope + result.d_std * profile.mass * profile.points / (profile.total * profile.std)
    expected = oracles.central_difference(by_points, profile.points, 1e-6)
    np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-5 * np.abs(total).max())
    expected = oracles.central_difference(by_labeled, profile.labeled, 1e-6)
    np.testing.assert_allclose(result.labeled_slope, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())
    assert (result.labeled_slope != 0).any()


@pytest.mark.parametrize("seed", range(8))
def test_the_least_penalty_is_found(seed):
    profile, sides, weights = labeled_profile(seed)
    labels = PlacedLabels(profile.labeled, sides, weights)
    threshold, value = lowest_label_penalty(labels)
    least = min(penalty_at(profile.labeled, sides, weights, b) for b in np.linspace(-4, 4, 4001))
    assert value == penalty_of_labels(labels, threshold)[0] <= least + 1e-12
    for b in (threshold, 0.3):
        up, here, down = (penalty_of_labels(labels, b + e) for e in (1e-5, 0.0, -1e-5))
        assert here[1] == pytest.approx((up[0] - down[0]) / 2e-5, abs=1e-6)
        assert here[2] == pytest.approx((up[1] - down[1]) / 2e-5, abs=1e-6)
        assert penalty_slope(labels, b).sum() == pytest.approx(-here[1])


def test_sides_that_lie_apart_have_a_threshold_in_the_middle_at_no_cost():
    labels = PlacedLabels(np.array([-2.0, 0.5, 1.5, 3.0]), np.array([-1.0, -1.0, 1.0, 1.0]), np.ones(4))
    assert lowest_label_penalty(labels) == (1.0, 0.0)
    assert penalty_of_labels(labels, 1.0) == (0.0, 0.0, 0.0)


def test_labels_pull_the_threshold_out_of_the_interval_as_gamma_grows():
    profile, _, _ = labeled_profile(0, offset=0.0)
    profile = replace(profile, labeled=np.array([2.0, 2.5]))
    sides = np.array([-1.0, 1.0])
    inner = MinimumDensityIndex(0.4, alpha=0.1)
    thresholds = [
        LabeledIndex(inner, sides, np.ones(2), g, 1.0).evaluate(profile).threshold
        for g in (0.01, 1, 1e4, 1e8)
    ]
    assert (np.diff(thresholds) > 0).all()
    assert thresholds[0] < 0.5
    assert 1.9 < thresholds[-1] < 2.5


@pytest.mark.parametrize("name", sorted(INDICES))
def test_units_do_not_matter_and_the_mirror_image_needs_mirrored_sides(name):
    profile, sides, weights = labeled_profile(3)
    one = LabeledIndex(INDICES[name](profile), sides, weights, 1.0, unit=1.0).evaluate(profile)
    scaled = replace(
        profile, points=profile.points * 1e4, std=profile.std * 1e4, labeled=profile.labeled * 1e4
    )
    two = LabeledIndex(INDICES[name](scaled), sides, weights, 1.0, unit=1e4).evaluate(scaled)
    assert two.threshold == pytest.approx(1e4 * one.threshold, rel=1e-6)
    np.testing.assert_allclose(two.labeled_slope * 1e4, one.labeled_slope, rtol=1e-5, atol=1e-9)
    mirror = replace(profile, points=-profile.points[::-1], mass=profile.mass[::-1], labeled=-profile.labeled)
    three = LabeledIndex(INDICES[name](profile), -sides, weights, 1.0, unit=1.0).evaluate(mirror)
    assert three.threshold == pytest.approx(-one.threshold, abs=1e-6)
    assert three.value == pytest.approx(one.value, rel=1e-9)
    wrong = LabeledIndex(INDICES[name](profile), sides, weights, 1.0, unit=1.0).evaluate(mirror)
    assert wrong.value > one.value
