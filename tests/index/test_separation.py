import numpy as np
import pytest

from ravine.index.separation import SeparationIndex
from tests.index.test_every_index import make_profile, seen


def best_by_hand(points, mass, ridge, least):
    """The best threshold by trying all of them."""
    best = (-np.inf, np.nan)
    for k in range(1, len(points)):
        if points[k] == points[k - 1] or min(mass[:k].sum(), mass[k:].sum()) < least * mass.sum():
            continue
        means, deviations = [], []
        for t, w in ((points[:k], mass[:k]), (points[k:], mass[k:])):
            means.append(np.average(t, weights=w))
            deviations.append(np.sqrt(np.average((t - means[-1]) ** 2, weights=w) + ridge))
        kappa = (means[1] - means[0]) / sum(deviations)
        best = max(best, (kappa, (points[k - 1] + points[k]) / 2))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("ridge", "least"), [(0.0, 0.05), (0.5, 0.05), (0.1, 0.4)])
def test_the_best_threshold_is_that_of_all(seed, ridge, least):
    profile = make_profile(seed, offset=seed / 2)
    index = SeparationIndex(ridge, 0.01, least)
    kappa, threshold = best_by_hand(profile.points, profile.mass, ridge, least)
    result = index.evaluate(profile)
    assert result.threshold == pytest.approx(threshold)
    assert result.value == pytest.approx(-np.log1p(kappa**2))
    assert index.separation_probability(profile, threshold) == pytest.approx(kappa**2 / (1 + kappa**2))


def test_one_far_point_does_not_win():
    points = np.append(np.random.default_rng(0).normal([[-3.0], [3.0]], 1.0, (2, 50)).ravel(), 1000.0)
    profile = seen(points, np.ones(101))
    alone = SeparationIndex(0.0, 0.01, least_share=0.0)
    shared = SeparationIndex(0.0, 0.01)
    far, near = alone.evaluate(profile), shared.evaluate(profile)
    assert (profile.points > far.threshold).sum() == 1
    assert (profile.points > near.threshold).sum() >= 0.05 * 101
    assert far.value < near.value


def test_no_threshold_is_not_valid():
    index = SeparationIndex(0.0, 0.01, least_share=0.4)
    profile = seen(np.array([0.0, 0.0, 0.0, 5.0]), np.ones(4))
    assert not index.evaluate(profile).valid
    assert not index.evaluate(seen(np.zeros(3), np.ones(3))).valid
    assert index.separation_probability(profile, 99.0) == 0.0
