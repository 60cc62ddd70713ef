"""The entrance for rows: what is not a table of numbers is refused in one sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ravine import InvalidInputError, MinimumDensity, check
from ravine._validate import check_rows

DAYS = pd.date_range("2020", periods=4)
NUMBERS = [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"x": NUMBERS, "größe": pd.Categorical(list("abab"))}), r"größe \(category\); encode"),
        (pd.DataFrame({"x": NUMBERS, "day": DAYS}), r"day \(datetime64"),
        (pd.DataFrame({"x": NUMBERS, "time": DAYS - DAYS[0]}), r"time \(timedelta64"),
        (pl.DataFrame({"x": NUMBERS, "day": pl.Series(list(DAYS)).dt.date()}), r"day \(Date\)"),
        ("rows.csv", r"'rows.csv'.*ravine.open\(path\)"),
        (np.ones(3), "Expected 2D array, got 1D"),
        (np.ones((3, 2), dtype=complex), "Complex data not supported$"),
        (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "name a; rename them"),
    ],
)
@pytest.mark.parametrize("door", [check_rows, check, MinimumDensity(2).fit], ids=["rows", "check", "fit"])
def test_what_is_not_a_table_of_numbers_is_refused_in_one_sentence(X, message, door):
    if door is check and isinstance(X, pd.DataFrame | pl.DataFrame) and "a" not in X.columns:
        return  # the check reports other columns instead
    with pytest.raises(InvalidInputError, match=message) as caught:
        door(X)
    assert "\n" not in str(caught.value)


def test_categories_that_are_numbers_are_taken():
    X = pd.DataFrame({"x": NUMBERS, "c": pd.Categorical([1, 2, 1, 2])})
    np.testing.assert_array_equal(check_rows(X), [[0, 1], [1, 2], [2, 1], [3, 2]])


def test_rows_set_aside_do_not_change_the_scale_of_the_others():
    """Rows at 1e300 are set aside: those that count are in their own unit."""
    X = np.concatenate([np.random.default_rng(0).normal(place, 1, (60, 3)) for place in (0, 8)])
    far = np.concatenate([X, [[1e300, 0, 0], [-1e300, 0, 0]]])
    with pytest.warns(UserWarning, match="far from"):
        model = MinimumDensity(2).fit(far)
    assert np.bincount(model.labels_[:120]).tolist() == [60, 60]


@pytest.mark.parametrize("weights", ["a", ["a", "b"], [[1.0], [1.0, 2.0]], [None, object()]])
def test_weights_that_are_not_numbers_are_refused(weights):
    with pytest.raises(InvalidInputError, match="sample_weight has to be"):
        MinimumDensity(2).fit(np.eye(2), sample_weight=weights)
