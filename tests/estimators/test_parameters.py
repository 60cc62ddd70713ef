"""Parameters are declared and described once, and every class shows all of them."""

import inspect
import re
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from sklearn.base import clone

from ravine import InvalidInputError
from ravine.estimators.catalog import CLUSTERERS, ESTIMATORS


def described(make, section):
    """The names that a section of the docstring describes."""
    body = make.__doc__.split(f"{section}\n{'-' * len(section)}\n")[1].split("\n\n")[0]
    heads = re.findall(r"^(\S.*?)(?: :|$)", body, flags=re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


def choices():
    """Every parameter that is one of several texts."""
    for name, make in ESTIMATORS.items():
        for parameter, hint in get_type_hints(make).items():
            if get_origin(hint) is Literal:
                yield pytest.param(make, parameter, get_args(hint), id=f"{name}-{parameter}")


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_parameter_is_in_the_signature_and_described_once(make):
    signature = inspect.signature(make).parameters
    assert sorted(described(make, "Parameters")) == sorted(signature) == sorted(make().get_params())
    assert {"feature_map_", "n_iter_", "n_passes_"} <= set(described(make, "Attributes"))
    for name, parameter in signature.items():
        default = re.search(rf"^{name} : .*, default (.+)$", make.__doc__, flags=re.MULTILINE)
        assert default is None or eval(default[1]) == parameter.default
    titles = re.findall(r"^(\w+)\n---+$", make.__doc__, flags=re.MULTILINE)
    assert titles[:2] == ["Parameters", "Attributes"]


@pytest.mark.parametrize("make", CLUSTERERS.values(), ids=CLUSTERERS)
def test_only_n_clusters_is_positional(make):
    assert described(make, "Parameters")[0] == "n_clusters"
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
