"""Labels of some rows, as they come from the user: -1 for a row that has none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ravine.data.blocks import ArrayBlocks
from ravine.exceptions import InvalidInputError
from ravine.io.archive import Stored, require
from ravine.split.labels import Known

UNLABELED = -1  # the label, and the rank, of a class that is not known


def check_labels(y: Any, n_rows: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels as an array, and which rows have one."""
    if y is None:
        raise InvalidInputError(
            "MinimumDensityClassifier requires y to be passed, but the target y is None: "
            "give a class for each row, -1 where it is not known"
        )
    given = column_or_1d(y, warn=True)
    if len(given) != n_rows:
        raise InvalidInputError(
            f"y has {len(given)} labels for {n_rows} rows; give one a row, -1 for unknown"
        )
    if given.dtype.kind not in "OUS":
        assert_all_finite(given, input_name="y")
        return given, given != UNLABELED
    known = np.array([str(label) != str(UNLABELED) for label in given], dtype=bool)
    kinds = {isinstance(label, str) for label in given[known]}
    if len(kinds) > 1:
        raise InvalidInputError("y mixes strings and numbers; name all classes in one way, -1 for unknown")
    labels = np.array(given[known].tolist())
    assert_all_finite(labels, input_name="y")
    typed = np.full(n_rows, labels[0] if len(labels) else UNLABELED, dtype=labels.dtype)
    typed[known] = labels
    return typed, known


def check_classes(
    given: npt.NDArray[Any], known: npt.NDArray[np.bool_], counted: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Return the classes of the labeled rows that count, if there are two at least."""
    check_classification_targets(given[known])
    classes = np.unique(given[counted])
    if len(classes) < 2:
        there = "no labeled row" if len(classes) == 0 else f"labeled rows of one class only ({classes[0]})"
        raise InvalidInputError(
            f"y has {there}: a boundary needs rows of two classes at least; label some, or find clusters "
            "without labels with MinimumDensity"
        )
    return classes


def classes_from(stored: Stored) -> npt.NDArray[Any]:
    """Take the classes of a classifier out of a file: two at least, in order, as `check_classes` has them."""
    classes = stored.array("classes")
    require(classes.ndim == 1 and len(classes) > 1, "classes", "two or more", f"shape {classes.shape}")
    names = classes.tolist()
    whole = classes.dtype.kind != "f" or bool(np.isfinite(classes).all())
    require(whole and sorted(set(names)) == names, "classes", "finite, different and sorted", names)
    return classes


def steering_labels(y: Any, rows: ArrayBlocks) -> Known | None:
    """Return the labels in y that steer a clusterer, or None where y is not meant for that.

    scikit-learn hands y on to clusterers, which ignore it, be it the classes of all rows or the target of a
    regression. So labels steer only where y has one value a row, some are -1, and the others name two
    classes at least.
    """
    if not _partial(y):
        return None
    given, known = check_labels(y, rows.shape[0])
    counted = known if rows.weights is None else known & (rows.weights > 0)
    classes = np.unique(given[counted])
    if len(classes) < 2:
        if len(classes) == 1:
            warnings.warn(
                f"y labels rows of one class only ({classes[0]}), so that there are no classes to keep "
                "apart: the clusters are those without labels",
                UserWarning,
                stacklevel=5,
            )
        return None
    return Known.of(rows, np.flatnonzero(counted), np.searchsorted(classes, given[counted]))


def _partial(y: Any) -> bool:
    """Say whether y has a class or -1 for every row, and both occur."""
    if y is None:
        return False
    given = np.asarray(y)
    if given.ndim != 1:
        return False
    if given.dtype.kind in "OUS":
        return any(str(label) == str(UNLABELED) for label in given)
    if given.dtype.kind not in "if" or not np.isfinite(given).all():
        return False
    return bool((given == UNLABELED).any() and (given == np.round(given)).all())
