"""What views are drawn of: a fitted clusterer or its tree, and rows in the space that the tree splits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ravine._validate import WITHOUT_EFFECT
from ravine.data.memory import MemoryRows
from ravine.exceptions import InvalidInputError
from ravine.tree.arrays import TreeArrays, as_rows
from ravine.tree.export import names_of
from ravine.view.classes import ClassPairs, tree_of_classes


def tree_of(model: Any) -> TreeArrays:
    """Return the tree of a fitted clusterer or classifier, or the tree itself; or the pairs of classes."""
    if hasattr(model, "boundaries_"):
        return tree_of_classes(model)
    if isinstance(model, TreeArrays):
        return model
    check_is_fitted(model)
    tree: TreeArrays | None = getattr(model, "tree_", None)
    if tree is None:
        kind = type(getattr(model, "best_estimator_", model)).__name__  # of several methods, the best one
        raise InvalidInputError(f"{kind} has no tree to show; fit with methods of ravine, which have one")
    return tree


def walked_tree(model: Any) -> TreeArrays:
    """Return the tree of a model; refuse the pairs of classes, along which no row walks."""
    tree = tree_of(model)
    if isinstance(tree, ClassPairs):
        raise InvalidInputError("the boundaries of more than two classes are not a tree; see ravine.report")
    return tree


def rows_for_tree(model: Any, X: Any, sample_weight: Any = None) -> MemoryRows:
    """Return the rows of X in the space of the tree: mapped, where the model has a kernel."""
    tree = tree_of(model)
    if tree.mapped and tree is not model:
        with warnings.catch_warnings():  # an array has no names, and views give names of their own
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            mapped: MemoryRows = model._rows(X, sample_weight)
        return mapped
    return tree.rows(X, sample_weight)


def columns_of(model: Any, X: Any, rows: MemoryRows, sample_weight: Any = None) -> MemoryRows:
    """Return the rows in the user's columns: `rows` themselves, unless a kernel has mapped them.

    Rows of a precomputed kernel, or of a function as kernel, have no columns of their own; their components
    stand for them.
    """
    if not tree_of(model).mapped or callable(model.kernel) or model.kernel == "precomputed":
        return rows
    return X if isinstance(X, MemoryRows) else as_rows(X, sample_weight)


def far_rows(model: Any, columns: MemoryRows) -> npt.NDArray[np.bool_]:
    """Return which rows are far from all others by the rule of a fit; one pass, if there is one.

    `columns` are the rows in the user's columns.
    """
    rule = getattr(getattr(model, "best_estimator_", model), "outlier_rule_", None)
    if rule is None:
        return np.zeros(columns.shape[0], dtype=bool)
    return np.asarray(columns.map(lambda block: rule.distances(block) > 0))


def counted_rows(
    model: Any, X: Any, sample_weight: Any = None
) -> tuple[MemoryRows, MemoryRows, npt.NDArray[np.bool_]]:
    """Return the rows in the space of the tree, the same in the user's columns, and which are set aside.

    Rows that are far from all others weigh nothing: they had no influence on the fit, and would hide all
    others in means and pictures.
    """
    rows = rows_for_tree(model, X, sample_weight)
    columns = columns_of(model, X, rows, sample_weight)
    far = far_rows(model, columns)
    if far.any():
        weight = np.where(far, 0.0, columns.map(lambda block: block.weights))
        rows = rows_for_tree(model, X, weight)
        columns = columns_of(model, X, rows, weight)
    return rows, columns, far


def column_names(model: Any, given: Sequence[str] | None, columns: MemoryRows, rows: MemoryRows) -> list[str]:
    """Return the names of the user's columns: those given, those seen in `fit`, or x0, x1, ..."""
    tree = tree_of(model)
    if columns is rows:
        return names_of(tree, given, rows.shape[1])
    seen = getattr(model, "feature_names_in_", None)
    default = [f"x{j}" for j in range(columns.shape[1])] if seen is None else seen
    return names_of(tree, default if given is None else given, columns.shape[1])


def changed_parameters(model: Any) -> dict[str, str]:
    """Return the parameters that change the result and differ from the defaults, as Python code."""
    defaults = type(model)().get_params(deep=False)
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    return {
        name: text
        for name, text in given.items()
        if name not in WITHOUT_EFFECT and text != repr(defaults[name])
    }


def scales(model: Any) -> bool:
    """Return whether the columns of the tree are compared in standard deviations, as in the fit."""
    tree, chosen = tree_of(model), getattr(model, "standardize", "auto")
    # with "auto", the unit of memberships tells
    return not tree.mapped and (tree.spread == 1.0 if chosen == "auto" else bool(chosen))
