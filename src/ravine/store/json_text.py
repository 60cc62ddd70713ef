"""A tree as JSON, and back. docs/format.md describes it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ravine.exceptions import InvalidModelError
from ravine.store.archive import Stored, require, shown
from ravine.store.parts import jsonable, number, tree_from, tree_to_parts
from ravine.tree.arrays import Tree, TreeArrays

FORMAT = "ravine model"
VERSION = 3
MAX_REASON = 300  # characters of an error message that may repeat what is in the file
# The arrays of a tree that hold integers; all others hold float64.
INTEGERS = (
    *("parent", "left", "right", "order", "label", "split_node", "split_made", "split_iterations"),
    *("split_method", "split_status", "several_split", "center_split", "center_right"),
)


def to_json(tree: TreeArrays) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = tree_to_parts(tree)
    lists = {name: jsonable(array) for name, array in arrays.items()}
    shape = list(np.shape(arrays["split_normal"]))
    return json.dumps({"format": FORMAT, "version": VERSION, **facts, "shape": shape, "arrays": lists})


def from_json(make: type[Tree], text: str) -> Tree:
    """Read a tree of a class from JSON."""
    what, advice = "the text is not a valid ravine tree", "write it again with to_json"
    with refusing(what, advice):
        facts = json.loads(text)
        require(isinstance(facts, dict), "a tree", "an object of JSON", shown(facts))
        stored = Stored(facts, {})
        version = version_of(stored)
    check_version("the text", version)
    with refusing(what, advice):
        stored.arrays = _arrays_from(stored)
        tree = tree_from(make, stored)
        stored.finish()
    return tree


def _arrays_from(stored: Stored) -> dict[str, Any]:
    """Read the arrays from JSON, where they are flat lists."""
    shape = stored.fact("shape")
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(x) is int and x >= 0 for x in shape)
    require(whole, "shape", "the numbers of splits and features", shown(shape))
    lists = stored.inner("arrays").facts
    arrays = {name: _array(name, values) for name, values in lists.items()}
    two_dimensional = {"split_normal": shape, "split_direction": shape, "several_directions": (-1, shape[1])}
    return {name: array.reshape(two_dimensional.get(name, -1)) for name, array in arrays.items()}


def _array(name: str, values: Any) -> Any:
    require(isinstance(values, list), name, "a list of numbers", shown(values))
    if name not in INTEGERS:
        return np.array([number(name, x) for x in values], dtype=np.float64)
    require(all(type(x) is int for x in values), name, "a list of whole numbers", shown(values))
    return np.array(values, dtype=np.int64)


@contextmanager
def refusing(what: str, advice: str = "save the model again") -> Iterator[None]:
    """Turn any error while a file or a text is read into an `InvalidModelError` of one sentence."""
    try:
        yield
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, MAX_REASON)
        raise InvalidModelError(f"{what}: {reason}; {advice}") from error


def version_of(stored: Stored) -> int:
    """Return the version of the format, after checking that it is this format."""
    stored.text("format", [FORMAT])
    return stored.integer("version", low=1)


def check_version(what: str, version: int) -> None:
    """Refuse any version of the format except the present one, and say what to do."""
    if version != VERSION:
        advice = "upgrade ravine" if version > VERSION else "fit and save the model again"
        raise InvalidModelError(
            f"{what} has version {version} of the format, and this ravine reads version {VERSION}: {advice}"
        )
