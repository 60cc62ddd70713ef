"""Model files: JSON and arrays, never code. Everything read is checked; see docs/format.md."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ravine.estimators.catalog import ESTIMATORS
from ravine.estimators.stored_map import map_from
from ravine.exceptions import InvalidInputError, InvalidModelError, RavineError
from ravine.io.archive import Stored, read_archive, require, shown, write_archive
from ravine.io.atomic import write_atomically
from ravine.tree.json_text import FORMAT, VERSION, check_version, refusing, version_of

ZIP = b"PK\x03\x04"  # the first bytes of a zip archive
NOT_A_MODEL = "is not a whole ravine model"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, completely or not at all.

    The file holds JSON and arrays, no code. It has no training rows, except the landmarks of a kernel map
    (all rows, if there are few). A model that `ravine.load` would refuse is not written.
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
        "parameters": _jsonable(model.get_params(deep=False)),
        "n_features": int(model.n_features_in_),
        "n_passes": float(model.n_passes_),
        "n_iter": int(model.n_iter_),
        "columns": None if columns is None else list(map(str, columns)),
        "map": _jsonable(map_facts),
        **facts,
    }
    filled = {} if fill is None else {"fill": np.asarray(fill, dtype=np.float64)}
    try:
        content = write_archive(meta, {**arrays, **map_arrays, **filled})
        stored = read_archive(content)
        version_of(stored)
        _rebuild(stored)
    except (RavineError, ValueError) as error:
        raise InvalidInputError(f"the model could not be loaded again: {error}; it is not saved") from error
    write_atomically(Path(path), content)


def _jsonable(value: Any) -> Any:
    """Return a parameter as a JSON value; functions and random generators become null."""
    if isinstance(value, Mapping):
        return {str(name): _jsonable(x) for name, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_jsonable(x) for x in value]
    return value if isinstance(value, bool | int | float | str) else None


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `ravine.save` wrote; nothing in the file is executed.

    Everything is checked: a file that is not a whole model raises an `InvalidModelError`. Reading takes about
    twice the size of the file in memory, whatever the file declares.
    """
    name = os.fspath(path)
    content = _content(name)
    with refusing(f"{name} {NOT_A_MODEL}"):
        stored = read_archive(content)
        version = version_of(stored)
    check_version(name, version)
    with refusing(f"{name} {NOT_A_MODEL}"):
        return _rebuild(stored)


def _content(name: str) -> bytes:
    """Return the content of a file if it begins like a model, so that no other large file is read."""
    with open(name, "rb") as file:
        first = file.read(len(ZIP)) if os.path.isfile(name) else b""
        if first != ZIP:
            raise InvalidModelError(f"{name} {NOT_A_MODEL}: give a file that ravine.save wrote")
        return first + file.read()


def _rebuild(stored: Stored) -> Any:
    """Return the estimator of a file, after checking everything in it."""
    make = ESTIMATORS[stored.text("class", sorted(ESTIMATORS))]
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
    """Read the parameters of an estimator; a missing one has its default."""
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
