"""What holds for every registered index: one that is added joins by itself."""

from dataclasses import replace

import numpy as np
import pytest

from ravine.index.base import Profile, registered
from tests.oracles import central_difference

INDICES = registered()


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


def test_the_mirror_image_has_the_mirrored_cut(make_index):
    profile = make_profile(2)
    mirror = replace(profile, points=-profile.points[::-1], mass=profile.mass[::-1])
    index = make_index(profile)
    one, two = index.evaluate(profile), index.evaluate(mirror)
    assert two.value == pytest.approx(one.value, rel=1e-9)
    assert two.threshold == pytest.approx(-one.threshold, abs=1e-6 * profile.std)
    assert index.quality(mirror, two.threshold) == pytest.approx(
        index.quality(profile, one.threshold), abs=1e-9
    )


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(make_index, scale):
    profile = make_profile(3)
    scaled = replace(profile, points=profile.points * scale, std=profile.std * scale)
    one, two = make_index(profile).evaluate(profile), make_index(scaled).evaluate(scaled)
    assert two.threshold == pytest.approx(one.threshold * scale, rel=1e-6)
    np.testing.assert_allclose(two.slope * scale, one.slope, atol=1e-7 * np.abs(one.slope).max())
    quality = make_index(profile).quality(profile, one.threshold)
    assert make_index(scaled).quality(scaled, two.threshold) == pytest.approx(quality, rel=1e-6)


def test_quality_lies_between_nothing_and_one(make_index):
    apart, one_heap = make_profile(0, 200, 4.0), make_profile(0, 200, 0.0)
    for profile in (apart, one_heap):
        index = make_index(profile)
        assert 0.0 <= index.quality(profile, index.evaluate(profile).threshold) <= 1.0
    index = make_index(apart)
    assert index.quality(apart, index.evaluate(apart).threshold) > 0.5
