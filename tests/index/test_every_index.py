"""What holds for every index and every schedule: a new one is added to the two lists."""

from dataclasses import replace

import numpy as np
import pytest

from ravine.index.base import Profile
from ravine.index.connectivity import ConnectivityIndex, ConnectivitySchedule
from ravine.index.density import MinimumDensityIndex, MinimumDensitySchedule
from tests.oracles import central_difference

INDICES = {
    "minimum density": lambda p: MinimumDensityIndex(0.9 * p.std * p.total**-0.2, alpha=0.5),
    "connectivity": lambda p: ConnectivityIndex(p.std * p.total**-0.2, beta=1.5),
}
SCHEDULES = {
    "minimum density": MinimumDensitySchedule(),
    "connectivity": ConnectivitySchedule(),
}


def make_profile(seed=0, n=60, offset=2.0):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(-offset, 1.0, n // 2), rng.normal(offset, 0.7, n - n // 2)])
    return seen(points, rng.uniform(0.5, 2.0, n))


def seen(points, mass):
    """A profile as the pursuit makes it: centered, sorted, with its own deviation."""
    points = points - mass @ points / mass.sum()
    order = np.argsort(points)
    points, mass = points[order], mass[order]
    return Profile(points, mass, float(mass.sum()), float(np.sqrt(mass @ points**2 / mass.sum())))


@pytest.fixture(params=sorted(INDICES))
def make_index(request):
    return INDICES[request.param]


@pytest.fixture(params=sorted(SCHEDULES))
def schedule(request):
    return SCHEDULES[request.param]


def indices_for(schedule, profile):
    return schedule.indices(profile.std, profile.total, profile.std**2)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [0.0, 1.0, 2.0])
def test_slope_is_the_derivative_by_every_point(make_index, seed, offset):
    profile = make_profile(seed, offset=offset)
    index = make_index(profile)

    def value(points):
        std = float(np.sqrt(profile.mass @ points**2 / profile.total))
        return index.evaluate(replace(profile, points=points, std=std)).value

    result = index.evaluate(profile)
    total = result.slope + result.d_std * profile.mass * profile.points / (profile.total * profile.std)
    np.testing.assert_allclose(
        total, central_difference(value, profile.points, 1e-6), rtol=1e-4, atol=1e-6 * np.abs(total).max()
    )


def test_mass_two_is_two_points(make_index):
    profile = make_profile(1)
    doubled = seen(np.repeat(profile.points, 2), np.repeat(profile.mass, 2) / 2)
    index = make_index(profile)
    one, two = index.evaluate(profile), index.evaluate(doubled)
    assert two.value == pytest.approx(one.value, rel=1e-12)
    assert two.threshold == pytest.approx(one.threshold, abs=1e-9)
    np.testing.assert_allclose(two.slope.reshape(-1, 2).sum(axis=1), one.slope, atol=1e-12)


def test_the_mirror_image_has_the_mirrored_threshold(make_index):
    profile = make_profile(2)
    mirror = replace(profile, points=-profile.points[::-1], mass=profile.mass[::-1])
    index = make_index(profile)
    one, two = index.evaluate(profile), index.evaluate(mirror)
    assert two.value == pytest.approx(one.value, rel=1e-9)
    assert two.threshold == pytest.approx(-one.threshold, abs=1e-6 * profile.std)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(make_index, scale):
    profile = make_profile(3)
    scaled = replace(profile, points=profile.points * scale, std=profile.std * scale)
    one, two = make_index(profile).evaluate(profile), make_index(scaled).evaluate(scaled)
    assert two.threshold == pytest.approx(one.threshold * scale, rel=1e-6)
    np.testing.assert_allclose(two.slope * scale, one.slope, atol=1e-7 * np.abs(one.slope).max())


def test_ranks_lie_in_the_unit_interval_and_a_gap_has_a_high_one(schedule):
    apart, one_group = make_profile(0, 200, 4.0), make_profile(0, 200, 0.0)
    ranks = []
    for profile in (apart, one_group):
        index = indices_for(schedule, profile)[-1]
        ranks.append(schedule.rank(index, profile, index.evaluate(profile)))
        assert 0.0 <= ranks[-1] <= 1.0
    assert ranks[0] > max(0.5, ranks[1])


@pytest.mark.parametrize("scale", [-1.0, 1e-6, 1e6])
def test_ranks_depend_neither_on_the_unit_nor_on_the_sign(schedule, scale):
    profile = make_profile(2)
    scaled = seen(profile.points * scale, profile.mass)
    ranks = []
    for each in (profile, scaled):
        index = indices_for(schedule, each)[-1]
        ranks.append(schedule.rank(index, each, index.evaluate(each)))
    assert ranks[1] == pytest.approx(ranks[0], rel=1e-6)


def test_reported_lengths_are_in_units_of_the_user(schedule):
    profile, unit = make_profile(3), 0.25
    shown = replace(profile, points=profile.points * unit, std=profile.std * unit)
    reports = []
    for each, length in ((profile, unit), (shown, 1.0)):
        index = indices_for(schedule, each)[-1]
        value = schedule.value(index, each, index.evaluate(each), length)
        reports.append([value, *schedule.facts(index, length).values()])
    assert reports[0] == pytest.approx(reports[1], rel=1e-9)


def test_all_indices_of_a_schedule_have_one_resolution_and_fallbacks_end(schedule):
    while schedule is not None:
        assert len({index.resolution for index in indices_for(schedule, make_profile(1))}) == 1
        schedule = next(iter(schedule.fallbacks()), None)


def test_connectivity_accepts_a_balanced_threshold_and_others_follow_all_indices(schedule):
    profile = make_profile(0, 200, 4.0)
    value = indices_for(schedule, profile)[-1].evaluate(profile)
    balanced = isinstance(schedule, ConnectivitySchedule)
    assert schedule.accepts(replace(value, threshold=0.0), profile) is balanced
    assert schedule.accepts(replace(value, threshold=profile.points[2]), profile) is False
