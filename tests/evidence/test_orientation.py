"""References of a mirror image are the mirror images of the references."""

import numpy as np
import pytest

from ravine import MinimumDensity
from ravine.data.query import run
from ravine.evidence.margins import grouped
from ravine.evidence.orientation import orientation
from ravine.evidence.significance import SignificanceTest
from tests.nodes import measured


def table(n=400):
    """Skewed and normal columns, a flag, a city, a category that most rows have, and a constant column."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 3))
    city = np.eye(3)[rng.integers(0, 3, n)]
    most = np.eye(3)[rng.choice(3, n, p=[0.7, 0.2, 0.1])]
    return np.column_stack([np.exp(z[:, 0]), z[:, 1:], rng.random(n) < 0.3, city, most, np.ones(n)])


ORDER = np.random.default_rng(1).permutation(11)
SIGNS = np.where(np.arange(11) % 2, -1.0, 1.0)


@pytest.mark.parametrize("own_tails", [False, True])
def test_references_are_permuted_and_negated_as_the_columns_are(own_tails):
    X = table()
    test = SignificanceTest(MinimumDensity(2)._method(), 0.01, own_tails)
    usual, other = (run(test.references(measured(rows))) for rows in (X, X[:, ORDER] * SIGNS))
    assert len(usual) == len(other) == 2
    for kind, mirrored in zip(usual, other, strict=True):
        drawn, again = (one.draw(50, np.random.default_rng(2)) for one in (kind, mirrored))
        np.testing.assert_allclose(again, drawn[:, ORDER] * SIGNS, atol=1e-6)
        assert kind.has_gaps == mirrored.has_gaps


def test_the_orientation_does_not_hang_on_rounding():
    X = table()
    X[:, 1] = np.tile([0.0, 1.0, -1.0, 0.0], 100)  # symmetric: the first row is at the mean, up to rounding
    noise = 1 + 1e-12 * np.random.default_rng(3).standard_normal(X.shape)
    found = []
    for rows in (X, X * noise):
        node = measured(rows[:, :-1])
        found.append(orientation(node.standardization.apply(rows[:, :-1]), np.arange(10)))
    assert found[0].order.tolist() == found[1].order.tolist()
    assert found[0].signs.tolist() == found[1].signs.tolist()


def test_negated_indicators_are_the_same_variables():
    X = table()
    expected = [[3], [4, 5, 6], [7, 8, 9]]
    for rows in (X, -X, X * SIGNS):
        found = [group.tolist() for group in grouped(rows, np.ones(400), np.arange(10))]
        assert sorted(found)[3:] == expected
        assert sorted(found)[:3] == [[0], [1], [2]]


def test_two_columns_of_one_flag_are_one_variable():
    flag = np.arange(10) % 2
    for other in (flag, 1 - flag):
        found = grouped(np.column_stack([flag, other]).astype(float), np.ones(10), np.arange(2))
        assert [group.tolist() for group in found] == [[0, 1]]


def test_the_order_of_the_rows_and_copies_of_them_do_not_change_the_orientation():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((60, 5))
    varies = np.arange(5)
    usual = orientation(rows, varies)
    assert (usual.signs < 0).any()
    assert (usual.signs > 0).any()
    for other in (rng.permutation(rows), np.repeat(rows, rng.integers(1, 4, 60), axis=0)):
        found = orientation(other, varies)
        np.testing.assert_array_equal(found.order, usual.order)
        np.testing.assert_array_equal(found.signs, usual.signs)
    np.testing.assert_array_equal(orientation(-rows, varies).signs, -usual.signs)
