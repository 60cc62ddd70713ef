"""Model files: JSON and arrays, never code. Everything read is checked; see docs/format.md."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ravine import papers
from ravine._validate import FloatArray
from ravine.estimators.auto_cluster import AutoCluster, Candidate
from ravine.estimators.classifier import MinimumDensityClassifier
from ravine.estimators.methods import CLUSTERERS
from ravine.exceptions import InvalidInputError, RavineError
from ravine.io.atomic import write_atomically
from ravine.split.far import FarRows
from ravine.store.archive import (
    Stored,
    jsonable,
    read_archive,
    refuse_errors,
    require,
    shorten_value,
    write_archive,
)
from ravine.store.parts import check_format, format_facts
from ravine.store.stored_map import map_from

ESTIMATORS: dict[str, Any] = {  # the classes that a file may name
    **CLUSTERERS,
    "MinimumDensityClassifier": MinimumDensityClassifier,
    **{name: getattr(papers, name) for name in papers.__all__},
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, completely or not at all.

    The file holds JSON and arrays, no code. It has no training rows, except the landmarks of a kernel map
    (all rows, if there are few). A model that `ravine.load` would refuse is not written.

    Parameters
    ----------
    model : estimator of ravine
        A fitted clusterer, `AutoCluster` or classifier.
    path : str or path
        The file; one that exists is replaced.
    """
    check_is_fitted(model)
    auto = model.stored_choice() if isinstance(model, AutoCluster) else None
    model = model.best_estimator_ if isinstance(model, AutoCluster) else model
    if not hasattr(model, "_to_parts"):
        raise InvalidInputError(f"ravine.save takes estimators of ravine, got {type(model).__name__}")
    facts, arrays = model._to_parts()
    map_facts, map_arrays = (None, {}) if model.feature_map_ is None else model.feature_map_.parts()
    columns, fill = getattr(model, "feature_names_in_", None), getattr(model, "fill_", None)
    meta = {
        **format_facts("model"),
        "class": type(model).__name__,
        "parameters": stored_parameters(model),
        "n_features": int(model.n_features_in_),
        "n_passes": float(model.n_passes_),
        "n_iter": int(model.n_iter_),
        "columns": None if columns is None else list(map(str, columns)),
        "map": jsonable(map_facts),
        **facts,
        **({} if auto is None else {"auto": jsonable(auto)}),
    }
    filled = {} if fill is None else {"fill": np.asarray(fill, dtype=np.float64)}
    filled |= _rule_arrays(model.outlier_rule_)
    # Read before it is written: parameters may have been set to anything, and the tree replaced, since `fit`.
    try:
        content = write_archive(meta, {**arrays, **map_arrays, **filled})
        _rebuild(read_archive(io.BytesIO(content)))
    except (RavineError, ValueError) as error:
        raise InvalidInputError(f"the model could not be loaded again: {error}; it is not saved") from error
    write_atomically(Path(path), content)


def stored_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model as JSON values, without its checkpoint, which belongs to one fit."""
    parameters: dict[str, Any] = jsonable(model.get_params(deep=False))
    parameters.pop("checkpoint", None)
    return parameters


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `ravine.save` wrote; nothing in the file is executed.

    Everything is checked: a file that is not a valid model raises an `InvalidModelError`. Reading takes about
    twice the size of the file in memory; a file that was made to harm cannot take more than thirty times.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted estimator, of the class that was saved.
    """
    what, advice = f"{os.fspath(path)} is not a valid ravine model", "fit and save the model again"
    with open(path, "rb") as file, refuse_errors(what, advice):
        return _rebuild(read_archive(file))


def _rebuild(stored: Stored) -> Any:
    """Return the estimator of a file, after checking everything in it."""
    check_format(stored, "model")
    make = ESTIMATORS[stored.text("class", sorted(ESTIMATORS))]
    model = make(**_parameters_from(stored, make().get_params(deep=False)))
    n_features = model.n_features_in_ = stored.integer("n_features", low=1)
    model.n_iter_, model.n_passes_ = stored.integer("n_iter", low=0), stored.number("n_passes", low=0)
    columns = stored.texts_or_none("columns", n_features)
    if columns is not None:
        model.feature_names_in_ = np.array(columns, dtype=object)
    if "fill" in stored.arrays:
        model.fill_ = stored.floats("fill", n_features)
    model.outlier_rule_ = _rule_from(stored, n_features)
    model.feature_map_ = map_from(stored, n_features, model.kernel)
    n_columns = n_features if model.feature_map_ is None else model.feature_map_.n_components
    model._check_parameters(n_columns)
    model._from_parts(stored, n_columns)
    return _chosen(model, stored.inner("auto")) if "auto" in stored.facts else model


def _chosen(winner: Any, stored: Stored) -> AutoCluster:
    """Return the `AutoCluster` whose winner is in the file."""
    model = AutoCluster(**_parameters_from(stored, AutoCluster().get_params(deep=False)))
    model._check_parameters(winner.n_features_in_)
    model._from_winner(winner, [one.fields_of(Candidate) for one in stored.objects("candidates")])
    return model


def _rule_arrays(rule: FarRows | None) -> dict[str, FloatArray]:
    """Return the arrays that a file stores of the rule for rows far from everything."""
    if rule is None:
        return {}
    return {
        "outlier_center": rule.center,
        "outlier_inverse_scale": rule.inverse_scale,
        "outlier_limit": np.array([rule.limit]),
    }


def _rule_from(stored: Stored, n_features: int) -> FarRows | None:
    """Return the rule for rows far from everything, or None."""
    if "outlier_center" not in stored.arrays:
        return None
    return FarRows(
        stored.floats("outlier_center", n_features),
        stored.floats("outlier_inverse_scale", n_features, low=0),
        float(stored.floats("outlier_limit", 1, low=0)[0]),
    )


def _parameters_from(stored: Stored, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of an estimator; a missing one has its default.

    A checkpoint is left out: the next `fit` would write to a path that the file names.
    """
    given = {name: value for name, value in stored.inner("parameters").facts.items() if name != "checkpoint"}
    unknown = sorted(set(given) - set(defaults))
    require(not unknown, "parameters", f"of {', '.join(defaults)}", unknown)
    for name, value in given.items():
        flat = name == "kernel_params" or not isinstance(value, dict)
        require(flat, f"parameters.{name}", "a value or a list", shorten_value(value))
    return {
        name: tuple(value) if isinstance(defaults[name], tuple) and isinstance(value, list) else value
        for name, value in given.items()
    }
