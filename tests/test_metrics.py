import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import v_measure_score

from ravine import InvalidInputError, metrics

TRUE = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
PRED = np.array([0, 0, 1, 1, 1, 1, 1, 1, 0, 0])


def test_success_ratio_by_hand():
    # class 0 lies on side 0 (2 of 3), class 1 on side 1, class 2 is even and goes to the smaller side, 0
    # merged: C0 = {0, 2}, C1 = {1}; side 0 holds 4 of C0 and 0 of C1, side 1 holds 3 of C0 and 3 of C1
    error, success = 3, min(4, 3)
    assert metrics.success_ratio(TRUE, PRED) == pytest.approx(success / (success + error))


def test_binary_v_measure_is_that_of_the_merged_classes():
    merged = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0])
    assert metrics.binary_v_measure(TRUE, PRED) == pytest.approx(v_measure_score(merged, PRED))


def test_nothing_told_apart_is_zero():
    assert metrics.success_ratio([0, 0, 1], [0, 0, 0]) == 0.0
    assert metrics.success_ratio(["a", "a", "a", "b"], [0, 0, 1, 1]) < 1.0
    assert metrics.binary_v_measure([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30))
def test_weights_are_repeats(rows):
    true, pred, counts = (np.array(column) for column in zip(*rows, strict=True))
    if counts.sum() == 0:
        counts[0] = 1
    for measure in (
        metrics.success_ratio,
        metrics.binary_v_measure,
        metrics.purity,
        metrics.clustering_error,
        metrics.v_measure,
    ):
        repeated = measure(np.repeat(true, counts), np.repeat(pred, counts))
        assert measure(true, pred, sample_weight=counts) == pytest.approx(repeated, abs=1e-9)


def test_purity_and_error():
    assert metrics.purity(TRUE, PRED) == pytest.approx((2 + 3) / 10)
    assert metrics.clustering_error(TRUE, PRED) == pytest.approx(0.5)


def test_relative_depth_and_margin():
    points = np.array([-1.0, -1.0, 1.0, 1.0])
    h = 0.5
    density = lambda b: np.exp(-((b - points) ** 2) / (2 * h * h)).sum()  # noqa: E731
    top = max(density(b) for b in np.linspace(-2, 0, 10001))
    assert metrics.relative_depth(points, 0.0, h) == pytest.approx(top / density(0) - 1, rel=1e-4)
    assert metrics.relative_depth(points, 3.0, h) == 0.0
    assert metrics.margin(points, 0.25) == 0.75
    rows = np.column_stack([points, np.zeros(4)])
    assert metrics.margin(rows, 0.5, weights=[2.0, 0.0]) == 0.75
    assert metrics.margin(points, 0.25, sample_weight=[1, 1, 0, 0]) == 1.25
    assert metrics.relative_depth(points, 0.0, h, sample_weight=[1, 1, 2, 2]) == pytest.approx(
        metrics.relative_depth(np.repeat(points, [1, 1, 2, 2]), 0.0, h)
    )


def test_bad_input_is_said_clearly():
    with pytest.raises(InvalidInputError, match="same length"):
        metrics.purity([0, 1], [0])
    with pytest.raises(InvalidInputError, match="two clusters at most, got 3"):
        metrics.success_ratio([0, 1, 2], [0, 1, 2])
