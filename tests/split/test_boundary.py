"""Boundaries: the same from any pivot."""

import numpy as np
import pytest

from ravine.data.memory import MemoryRows
from ravine.split.boundary import Hyperplane, NearestCenter

RNG = np.random.default_rng(0)
PIVOT = RNG.standard_normal(4)
BOUNDARIES = {
    "hyperplane": Hyperplane(RNG.standard_normal(4), PIVOT, 0.7),
    "nearest centers": NearestCenter(
        RNG.standard_normal((2, 4)), PIVOT, RNG.standard_normal((6, 2)), np.arange(6) % 2 == 0
    ),
}


@pytest.mark.parametrize("boundary", BOUNDARIES.values(), ids=BOUNDARIES)
def test_a_boundary_is_the_same_from_another_pivot(boundary):
    rows = MemoryRows(RNG.standard_normal((50, 4)))
    distance = boundary.signed_distance(rows)
    assert 0 < (distance > 0).sum() < 50
    far = np.array([30.0, -20.0, 10.0, 5.0])
    moved = boundary.about(far)
    np.testing.assert_array_equal(moved.pivot, far)
    np.testing.assert_allclose(moved.signed_distance(rows), distance, atol=1e-12)
    np.testing.assert_allclose(
        moved.normal @ (rows.array - far).T - moved.threshold,
        boundary.normal @ (rows.array - PIVOT).T - boundary.threshold,
        atol=1e-12,
    )
