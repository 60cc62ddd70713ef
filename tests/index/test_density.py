import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ravine.index.base import PlacedLabels
from ravine.index.density import MinimumDensityIndex, bounded_depth
from ravine.index.density_valleys import ProfileLine
from ravine.index.line import newton_step
from tests import oracles
from tests.index.test_every_index import make_profile, seen


def line_of(profile, h, half=np.inf):
    return MinimumDensityIndex(h, half / profile.std).line(profile)


@settings(deadline=None, max_examples=60)
@example(1978, 0.1, 0.1, 0.1)
@example(90698, 1.265625, 0.1015625, 0.0625)
@given(st.integers(0, 10**6), st.floats(0.01, 1.5), st.floats(0.1, 1.0), st.floats(0.0, 3.0))
def test_value_is_phi_of_the_paper(seed, alpha, factor, offset):
    profile = make_profile(seed, n=40, offset=offset)
    h = factor * profile.std * 0.4
    index = MinimumDensityIndex(h, alpha)
    value, _ = oracles.phi(profile.points, profile.mass, h, alpha, index.eta * h)
    assert np.exp(index.evaluate(profile).value) == pytest.approx(value, rel=1e-6)


def test_log_density_and_its_derivatives_are_those_of_the_plain_sum():
    profile = make_profile(4)
    h = 0.5
    for b in (-3.0, 0.0, 0.7):
        at = [oracles.density(profile.points, profile.mass, h, x) for x in (b - 1e-4, b, b + 1e-4)]
        value, first, second = line_of(profile, h).log_density(b)
        assert value == pytest.approx(np.log(at[1]), rel=1e-12)
        assert first == pytest.approx((at[2] - at[0]) / 2e-4 / at[1], rel=1e-5, abs=1e-7)
        assert second == pytest.approx((at[2] - 2 * at[1] + at[0]) / 1e-8 / at[1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("h", "n_thresholds"), [(0.3, 50), (0.3, 130), (0.03, 1100)])
def test_densities_on_a_grid_are_the_plain_sums(h, n_thresholds):
    """In one stretch of thresholds, in three, and in many, where most points are too far to count."""
    profile = make_profile(5)
    out = np.empty(n_thresholds)
    line_of(profile, h).density_sums(-4.0, h / 4, out)
    thresholds = -4.0 + h / 4 * np.arange(n_thresholds)
    expected = np.array([oracles.density(profile.points, profile.mass, h, b) for b in thresholds])
    found = out / (profile.total * h * np.sqrt(2 * np.pi))
    summed = found * h > 1e-90  # smaller sums are taken in logarithms
    assert summed.sum() > n_thresholds / 2
    np.testing.assert_allclose(found[summed], expected[summed], rtol=1e-10)
    assert (expected[~summed] * h < 1e-80).all()


def test_a_gap_of_a_thousand_bandwidths_has_its_threshold_in_the_middle():
    profile = seen(np.array([-3.0, -2.5, 1.0, 1.2]), np.ones(4))
    index = MinimumDensityIndex(0.001, alpha=0.9)
    middle = (profile.points[1] + profile.points[2]) / 2
    result = index.evaluate(profile)
    assert result.valid
    assert result.threshold == pytest.approx(middle, abs=1e-3)
    assert bounded_depth(profile, result.threshold, index.bandwidth) == 1.0


def test_relative_depth_is_that_of_equation_30():
    profile = make_profile(6, n=300)
    h = 0.35
    index = MinimumDensityIndex(h, alpha=0.9)
    result = index.evaluate(profile)
    grid = np.linspace(-6, 6, 4001)
    curve = np.array([oracles.density(profile.points, profile.mass, h, b) for b in grid])
    here = oracles.density(profile.points, profile.mass, h, result.threshold)

    def adjacent_mode(side):
        walk = curve[grid < result.threshold][::-1] if side < 0 else curve[grid > result.threshold]
        falls = np.flatnonzero(np.diff(walk) < 0)
        return walk[falls[0]]

    depth = min(adjacent_mode(-1), adjacent_mode(1)) / here - 1
    assert result.valid
    bounded = bounded_depth(profile, result.threshold, h)
    assert bounded / (1 - bounded) == pytest.approx(depth, rel=1e-3)


def test_one_group_has_no_valid_threshold():
    rng = np.random.default_rng(0)
    profile = seen(rng.standard_normal(500), np.ones(500))
    assert not MinimumDensityIndex(0.4, alpha=0.9).evaluate(profile).valid


def test_a_foot_within_one_bandwidth_of_the_edge_is_reached():
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(0, 1, 900), rng.normal(5.0, 0.5, 100)])
    profile = seen(points, np.ones(1000))
    h = 0.35
    foot = min(np.linspace(1.5, 3.5, 2001), key=lambda b: oracles.density(profile.points, profile.mass, h, b))
    for short, reached in ((0.5 * h, True), (3.0 * h, False)):
        result = MinimumDensityIndex(h, alpha=(foot - short) / profile.std).evaluate(profile)
        assert result.valid is reached
        if reached:
            assert result.threshold == pytest.approx(foot, abs=2e-3)
        strict = MinimumDensityIndex(h, alpha=(foot - short) / profile.std, overshoot=0.0)
        assert not strict.evaluate(profile).valid
    beyond = MinimumDensityIndex(h, alpha=(foot - 3.0 * h) / profile.std, overshoot=4.0)
    assert beyond.evaluate(profile).threshold == pytest.approx(foot, abs=2e-3)
    inside = MinimumDensityIndex(h, alpha=(foot + h) / profile.std, overshoot=0.0).evaluate(profile)
    assert inside.valid
    assert inside.threshold == pytest.approx(foot, abs=2e-3)


def test_curve_is_the_penalized_density_of_equation_10():
    profile = make_profile(7)
    index = MinimumDensityIndex(0.4, alpha=0.3)
    thresholds = np.array([-2.0, -0.1, 0.0, 0.5, 3.0])
    expected = [
        oracles.penalized(profile.points, profile.mass, 0.4, 0.3, index.eta * 0.4, b) for b in thresholds
    ]
    np.testing.assert_allclose(np.exp(index.curve(profile, thresholds)), expected, rtol=1e-9)


@pytest.mark.parametrize("h", [0.4, 0.01])  # at 0.01 the density is next to nothing between the points
def test_the_coarse_curve_is_the_density_with_both_penalties(h):
    profile = make_profile(3)
    labels = PlacedLabels(np.array([-2.0, 3.0, 4.0]), np.array([1.0, -1.0, 1.0]), np.array([0.1, 0.2, 0.3]))
    grid, values, _ = line_of(profile, h, 0.5).coarse_curve(-0.5, 0.9, labels)
    assert (grid[0], grid[-1]) == (-0.5, pytest.approx(0.9))
    plain = np.exp(MinimumDensityIndex(h, 0.5 / profile.std).curve(profile, grid))
    wrong = np.maximum(labels.sides * (grid[:, None] - labels.points), 0.0)
    expected = np.log(plain + wrong**2 @ labels.strength)
    np.testing.assert_allclose(values, expected, atol=1e-9)


@settings(deadline=None, max_examples=300)
@example(27649, 50.0, 5.0, 1)
@given(st.integers(0, 10**6), st.floats(0.0, 60.0), st.sampled_from([0.0, 5.0]), st.sampled_from([-1, 1]))
def test_the_mode_beside_a_threshold_is_that_of_the_plain_walk(seed, gap, spread, sign):
    rng = np.random.default_rng(seed)
    groups = np.cumsum(rng.uniform(0.0, gap, 6))
    points = np.sort(groups[rng.integers(0, 6, 30)] + rng.normal(0, 0.5, 30))
    mass = 10.0 ** rng.uniform(0, spread, 30)
    threshold = rng.uniform(points[0] - 2 * gap, points[-1] + 2 * gap)
    line = ProfileLine(points, mass, mass.sum(), MinimumDensityIndex(0.7, np.inf).parameters, 1.0)
    found = line.log_mode(threshold, sign)
    assert found == pytest.approx(
        oracles.log_mode(points, mass, 0.7, threshold, sign * 0.175), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("h", [1e-3, 1e-9, 1e-200])
def test_tiny_bandwidths_find_the_widest_gap(h):
    profile = seen(np.array([-3.0, -2.5, -2.1, 1.0, 1.2, 3.0, 7.0]), np.ones(7))
    index = MinimumDensityIndex(max(h, 1e-9), alpha=0.9)
    result = index.evaluate(profile)
    middle = (profile.points[2] + profile.points[3]) / 2
    assert result.valid
    assert result.threshold == pytest.approx(middle, abs=2e-3)
    assert bounded_depth(profile, result.threshold, h) == 1.0
    assert bounded_depth(profile, 1e9, h) == 0.0


@pytest.mark.parametrize("least", [1.0, 3.0])
def test_the_lowest_valley_of_a_tiny_bandwidth_is_the_widest_gap_with_enough_on_both_sides(least):
    profile = seen(np.array([-3.0, -2.5, -2.1, 1.0, 1.2, 3.0, 7.0]), np.ones(7))
    first = {1.0: 5, 3.0: 2}[least]
    gap = profile.points[first] / 2 + profile.points[first + 1] / 2
    for h in (0.01, 1e-4, 1e-9):
        found = MinimumDensityIndex(h, alpha=np.inf).lowest_valley(profile, least)
        assert found == pytest.approx(gap, abs=1e-3)


@pytest.mark.parametrize("seed", range(40))
def test_few_points_and_a_small_bandwidth_need_few_thresholds(seed):
    """Points that are many bandwidths apart are thresholds themselves, and the minimum is the same."""
    profile = make_profile(seed, n=30)
    h = profile.std / 1000
    half = 0.9 * profile.std
    grid, values, _ = line_of(profile, h, half).coarse_curve(-half, half)
    assert len(grid) <= 2 * len(profile.points) + 3
    index = MinimumDensityIndex(h, 0.9)
    np.testing.assert_allclose(values, index.curve(profile, grid), atol=1e-9)
    every = np.linspace(-half, half, 40_001)
    found = index.evaluate(profile)
    assert found.value <= index.curve(profile, every).min() + 1e-9


def test_a_newton_step_at_the_minimizer_stays_there():
    """It went to the middle of the bracket, and rounding decided whether a step ended on the minimizer."""
    assert newton_step(0.0, 0.5, 1.0, 0.0, 2.0)[1] == 0.5
    assert newton_step(0.0, 0.5, 1.0, 1e-20, 2.0)[1] == 0.5  # the step is below rounding
    assert newton_step(0.0, 0.5, 1.0, 2.0, 2.0)[1] == 0.25  # outside: the middle


def test_noise_moves_thresholds_no_more_than_rounding_needs():
    """Before, 1 of 10 differed by about 2e-9: a step that landed on the minimum was followed by halvings."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        points = np.sort(rng.normal(size=60) * 6.0)
        noisy = points * (1 + 1e-12 * rng.standard_normal(60))
        index = MinimumDensityIndex(2.3, rng.uniform(0.1, 0.9))
        found = [index.evaluate(seen(each, np.ones(60))).threshold for each in (points, noisy)]
        assert found[0] == pytest.approx(found[1], rel=0, abs=3e-10)
