"""Keeping trees and models: JSON, and a file of JSON and arrays that never runs code.

docs/format.md describes both. What is read is checked once, here: a model that loads is whole.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ravine.data.feature_map import map_from
from ravine.estimators.model_parts import jsonable, number, tree_from, tree_to_parts
from ravine.exceptions import InvalidInputError, InvalidModelError, RavineError
from ravine.io.archive import Stored, read_archive, require, shown, write_archive
from ravine.io.atomic import write_atomically

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree

FORMAT = "ravine model"
VERSION = 2
ZIP = b"PK\x03\x04"  # the first bytes of a zip archive
REASON = 300  # letters of a reason at most; an error may repeat what is in the file
NOT_A_MODEL = "is not a whole ravine model"
# the arrays of a tree that hold whole numbers; all others hold float64
INTEGERS = (
    *("parent", "left", "right", "order", "label", "split_node", "split_made", "split_iterations"),
    *("split_method", "split_status", "several_split", "center_split", "center_right"),
)


def to_json(tree: ClusterTree) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = tree_to_parts(tree)
    lists = {name: jsonable(array) for name, array in arrays.items()}
    shape = list(np.shape(arrays["split_weights"]))
    return json.dumps({"format": FORMAT, "version": VERSION, **facts, "shape": shape, "arrays": lists})


def from_json(text: str) -> ClusterTree:
    """Read a tree from JSON."""
    what, advice = "the text is not a whole ravine tree", "write it again with to_json"
    with _refusing(what, advice):
        facts = json.loads(text)
        require(isinstance(facts, dict), "a tree", "an object of JSON", shown(facts))
        stored = Stored(facts, {})
        version = _version(stored)
    _check_version("the text", version)
    with _refusing(what, advice):
        stored.arrays = _arrays_from(stored)
        tree = tree_from(stored)
        stored.finish()
    return tree


def _arrays_from(stored: Stored) -> dict[str, Any]:
    """Take the arrays out of JSON, where they are flat lists."""
    shape = stored.fact("shape")
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(x) is int and x >= 0 for x in shape)
    require(whole, "shape", "the numbers of splits and features", shown(shape))
    lists = stored.inner("arrays").facts
    arrays = {name: _array(name, values) for name, values in lists.items()}
    two_dimensional = {"split_weights": shape, "split_direction": shape, "several_directions": (-1, shape[1])}
    return {name: array.reshape(two_dimensional.get(name, -1)) for name, array in arrays.items()}


def _array(name: str, values: Any) -> Any:
    require(isinstance(values, list), name, "a list of numbers", shown(values))
    if name not in INTEGERS:
        return np.array([number(name, x) for x in values], dtype=np.float64)
    require(all(type(x) is int for x in values), name, "a list of whole numbers", shown(values))
    return np.array(values, dtype=np.int64)


@contextmanager
def _refusing(what: str, advice: str = "save the model again") -> Iterator[None]:
    """Make one sentence of whatever goes wrong with a file or a text."""
    try:
        yield
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, REASON)
        raise InvalidModelError(f"{what}: {reason}; {advice}") from error


def _version(stored: Stored) -> int:
    stored.text("format", [FORMAT])
    return stored.integer("version", low=1)


def _check_version(what: str, version: int) -> None:
    if version != VERSION:
        advice = "upgrade ravine" if version > VERSION else "fit and save the model again"
        raise InvalidModelError(
            f"{what} has version {version} of the format, and this ravine reads version {VERSION}: {advice}"
        )


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, without the training rows, at once or not at all.

    Only the landmarks of a kernel's map are training rows that are kept (all rows, where there are few).

    The file holds JSON and arrays, no code. A model that `ravine.load` would refuse is not written.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model, "_to_parts"):
        raise InvalidInputError(f"ravine.save takes estimators of ravine, got {type(model).__name__}")
    facts, arrays = model._to_parts()
    map_facts, map_arrays = (None, {}) if model.feature_map_ is None else model.feature_map_.parts()
    columns, fill = getattr(model, "feature_names_in_", None), getattr(model, "fill_", None)
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": _parameter(model.get_params(deep=False)),
        "n_features": int(model.n_features_in_),
        "n_passes": float(model.n_passes_),
        "n_iter": int(model.n_iter_),
        "columns": None if columns is None else list(map(str, columns)),
        "map": _parameter(map_facts),
        **facts,
    }
    filled = {} if fill is None else {"fill": np.asarray(fill, dtype=np.float64)}
    try:
        content = write_archive(meta, {**arrays, **map_arrays, **filled})
        stored = read_archive(content)
        _version(stored)
        _rebuild(stored)
    except (RavineError, ValueError) as error:
        raise InvalidInputError(f"the model could not be loaded again: {error}; it is not saved") from error
    write_atomically(Path(path), content)


def _parameter(value: Any) -> Any:
    """Return a parameter as JSON has it; functions and random generators become null."""
    if isinstance(value, Mapping):
        return {str(name): _parameter(x) for name, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_parameter(x) for x in value]
    if not isinstance(value, bool | int | float | str):
        return None
    return value


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `ravine.save` wrote; never runs anything from the file.

    Every part is checked: what is not a whole model is refused with an `InvalidModelError`. Reading takes
    about twice the size of the file in memory, whatever it declares.
    """
    name = os.fspath(path)
    content = _content(name)
    with _refusing(f"{name} {NOT_A_MODEL}"):
        stored = read_archive(content)
        version = _version(stored)
    _check_version(name, version)
    with _refusing(f"{name} {NOT_A_MODEL}"):
        return _rebuild(stored)


def _content(name: str) -> bytes:
    """Return what is in a file, if it may be a model: a large file of another kind is not read."""
    with open(name, "rb") as file:
        first = file.read(len(ZIP)) if os.path.isfile(name) else b""
        if first != ZIP:
            raise InvalidModelError(f"{name} {NOT_A_MODEL}: give a file that ravine.save wrote")
        return first + file.read()


def _rebuild(stored: Stored) -> Any:
    """Return the estimator of a file, after checking everything in it."""
    import ravine

    public = {name: getattr(ravine, name) for name in ravine.__all__}
    known = {name: make for name, make in public.items() if hasattr(make, "get_params")}
    make = known[stored.text("class", sorted(known))]
    model = make(**_parameters_from(stored, make().get_params(deep=False)))
    n_features = model.n_features_in_ = stored.integer("n_features", low=1)
    model.n_iter_ = stored.integer("n_iter", low=0)
    model.n_passes_ = stored.number("n_passes", low=0)
    columns = stored.texts_or_none("columns", n_features)
    if columns is not None:
        model.feature_names_in_ = np.array(columns, dtype=object)
    if "fill" in stored.arrays:
        model.fill_ = stored.floats("fill", n_features)
    model.feature_map_ = map_from(stored, n_features, model.kernel)
    n_columns = n_features if model.feature_map_ is None else model.feature_map_.n_components
    model._check_parameters(n_columns)
    model._from_parts(stored, n_columns)
    stored.finish()
    return model


def _parameters_from(stored: Stored, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Take the parameters of an estimator; one that is not there has its default."""
    given = stored.inner("parameters").facts
    unknown = sorted(set(given) - set(defaults))
    require(not unknown, "parameters", f"of {', '.join(defaults)}", unknown)
    for name, value in given.items():
        flat = name == "kernel_params" or not isinstance(value, dict)
        require(flat, f"parameters.{name}", "a value or a list", shown(value))
    return {
        name: tuple(value) if isinstance(defaults[name], tuple) and isinstance(value, list) else value
        for name, value in given.items()
    }
