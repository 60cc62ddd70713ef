"""Warnings and errors travel between processes: a pool of workers pickles them."""

import pickle

import pytest

from ravine.exceptions import DiscreteColumnWarning, OneClusterWarning


@pytest.mark.parametrize(
    "warning",
    [DiscreteColumnWarning("1 of 2 splits", [3, 5], "sex, city"), OneClusterWarning("no valley", "try more")],
    ids=lambda warning: type(warning).__name__,
)
def test_a_warning_is_the_same_after_pickling(warning):
    again = pickle.loads(pickle.dumps(warning))
    assert type(again) is type(warning)
    assert str(again) == str(warning)
    assert vars(again) == vars(warning)
