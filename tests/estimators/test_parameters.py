"""Parameters are few, and each is declared and described once."""

import inspect
import re
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from sklearn.base import clone

from ravine import InvalidInputError
from ravine.estimators.base import RowsEstimator
from ravine.estimators.clusterer import TreeClusterer
from ravine.estimators.methods import CLUSTERERS
from ravine.store.model_file import ESTIMATORS

MOST = 16  # parameters of an estimator


def described(make, section="Parameters"):
    """The names that a section of the docstring describes."""
    body = make.__doc__.split(f"{section}\n    {'-' * len(section)}\n")[1].split("\n\n")[0]
    heads = re.findall(r"^    (\S.*?)(?: :|$)", body, flags=re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


def choices():
    """Every parameter that is one of several texts."""
    for name, make in ESTIMATORS.items():
        for parameter, hint in get_type_hints(make).items():
            if get_origin(hint) is Literal and parameter in make().get_params():
                yield pytest.param(make, parameter, get_args(hint), id=f"{name}-{parameter}")


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_parameters_are_few_and_each_is_described_once(make):
    signature = inspect.signature(make).parameters
    assert sorted(signature) == sorted(make().get_params())
    assert len(signature) <= MOST
    described_by = [
        base for base in make.__mro__ if "Parameters\n    -" in (base.__dict__.get("__doc__") or "")
    ]
    found = [name for base in described_by for name in described(base)]
    assert set(signature) <= set(found)
    if make.__module__.startswith("ravine.estimators"):  # the papers' have some of their parents not, or anew
        assert sorted(signature) == sorted(found)
    for name, parameter in signature.items():
        default = re.search(rf"^    {name} : .*, default (.+)$", make.__doc__, flags=re.MULTILINE)
        assert default is None or eval(default[1]) == parameter.default


@pytest.mark.parametrize("make", CLUSTERERS.values(), ids=CLUSTERERS)
def test_a_clusterer_names_the_parameters_that_are_described_elsewhere(make):
    for name in (*described(RowsEstimator), *described(TreeClusterer)):
        assert f"`{name}`" in make.__doc__
    assert {"feature_map_", "n_iter_", "n_passes_"} <= set(described(RowsEstimator, "Attributes"))
    assert {"labels_", "tree_", "n_clusters_"} <= set(described(TreeClusterer, "Attributes"))


@pytest.mark.parametrize("make", CLUSTERERS.values(), ids=CLUSTERERS)
def test_only_n_clusters_is_positional(make):
    assert make(7).n_clusters == clone(make(7)).n_clusters == 7
    with pytest.raises(TypeError, match="positional"):
        make(7, 5)


@pytest.mark.parametrize(("make", "parameter", "allowed"), list(choices()))
def test_the_annotated_choices_are_those_that_are_accepted(make, parameter, allowed):
    for choice in allowed:
        make(**{parameter: choice})._check_parameters(3)
    with pytest.raises(InvalidInputError, match=f"{parameter} has to be one of") as refusal:
        make(**{parameter: "other"})._check_parameters(3)
    assert all(repr(choice) in str(refusal.value) for choice in allowed)
