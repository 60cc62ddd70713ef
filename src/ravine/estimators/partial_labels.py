"""Partial labels from the user: the classes of some rows; -1 for all others, or a missing value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ravine._validate import UNLABELED, has_label, label_array
from ravine.data.node import Labels, labels_of
from ravine.data.query import RowSet
from ravine.exceptions import InvalidInputError, warn_caller
from ravine.store.archive import Stored, require


def check_labels(y: Any, n_rows: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels as an array, and which rows have one."""
    if y is None:
        raise InvalidInputError(
            "MinimumDensityClassifier requires y to be passed, but the target y is None; "
            "give one label per row, -1 for unknown"
        )
    given = column_or_1d(label_array(y), warn=True)
    if len(given) != n_rows:
        raise InvalidInputError(
            f"y has {len(given)} labels for {n_rows} rows; give one per row, -1 for unknown"
        )
    labeled = has_label(given)
    if given.dtype.kind not in "OUS":
        assert_all_finite(given[labeled], input_name="y")
        return given, labeled
    kinds = {isinstance(label, str) for label in given[labeled]}
    if len(kinds) > 1:
        raise InvalidInputError("y mixes strings and numbers; use one type for all classes, -1 for unknown")
    labels = np.array(given[labeled].tolist())
    assert_all_finite(labels, input_name="y")
    typed = np.full(n_rows, labels[0] if len(labels) else UNLABELED, dtype=labels.dtype)
    typed[labeled] = labels
    return typed, labeled


def check_classes(
    given: npt.NDArray[Any], labeled: npt.NDArray[np.bool_], counted: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Return the classes of the labeled rows with a weight above 0; at least two are required."""
    check_classification_targets(given[labeled])
    classes = np.unique(given[counted])
    if len(classes) < 2:
        present = "no labeled row" if len(classes) == 0 else f"labels of one class only ({classes[0]})"
        raise InvalidInputError(
            f"y has {present}, but a boundary needs labels of at least two classes; label more rows, or "
            "use MinimumDensity, which needs no labels"
        )
    return classes


def classes_from(stored: Stored) -> npt.NDArray[Any]:
    """Read the classes of a classifier from a file: at least two, sorted, as `check_classes` returns them."""
    classes = stored.array("classes")
    require(classes.ndim == 1 and len(classes) > 1, "classes", "two or more", f"shape {classes.shape}")
    names = classes.tolist()
    whole = classes.dtype.kind in "biuU" or (classes.dtype.kind == "f" and np.isfinite(classes).all())
    require(whole and sorted(set(names)) == names, "classes", "finite, different and sorted", names)
    return classes


def partial_labels(y: Any, rows: RowSet) -> Labels | None:
    """Return the partial labels in the y of a clusterer, or None if y has none.

    scikit-learn passes any y on to clusterers, also the classes of all rows or the target of a regression. So
    y is used only if it has one value per row, some are -1 or missing, and the others are of at least two
    classes.
    """
    if not _is_partial(y):
        return None
    given, labeled = check_labels(y, rows.shape[0])
    counted = labeled if rows.weights is None else labeled & (rows.weights > 0)
    classes = np.unique(given[counted])
    if len(classes) < 2:
        if len(classes) == 1:
            warn_caller(f"y has labels of one class only ({classes[0]}), so the labels have no effect")
        return None
    return labels_of(rows, np.flatnonzero(counted), np.searchsorted(classes, given[counted]))


def _is_partial(y: Any) -> bool:
    """Return whether y has one whole number or text per row, and some are unknown."""
    given = label_array(y)
    if given.ndim != 1 or given.dtype.kind not in "ifOUS":
        return False
    labeled = has_label(given)
    labels = np.array(given[labeled].tolist())
    if labels.dtype.kind in "if":
        return bool(not labeled.all() and np.isfinite(labels).all() and (labels == np.round(labels)).all())
    return not labeled.all()
