"""Linear classifiers of labeled rows: starts for methods that take labels, and supervised boundaries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node


def support_planes(node: Node) -> list[tuple[FloatArray, float]]:
    """Return w and b of the planes w . z + b = 0 of the machine on the node's labeled rows."""
    if node.labels is None:
        return []
    normals, offsets = support_machine(node.standardized_labels, node.labels.classes, node.labels.weights)
    return [(w, float(b)) for w, b in zip(normals, offsets, strict=True) if w.any()]


def support_machine(
    standardized: FloatArray, classes: FloatArray | IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return normals and intercepts of a linear support vector machine on standardized labeled rows.

    One plane for two classes; for more classes, one for each class against the rest.
    """
    from sklearn.svm import LinearSVC

    machine = LinearSVC(dual=False, C=1.0, tol=1e-10).fit(standardized, classes, sample_weight=weights)
    return np.asarray(machine.coef_, dtype=np.float64), np.asarray(machine.intercept_, dtype=np.float64)


def supervised_plane(
    standardized: FloatArray, right: npt.NDArray[np.bool_], weights: FloatArray, C: float
) -> tuple[FloatArray, float] | None:
    """Return the unit normal v and the threshold b of the plane v . z = b of labeled rows alone.

    None if the two sides have the same rows.
    """
    normal, offset = logistic(standardized, right, weights, C)
    length = float(np.linalg.norm(normal))
    return (normal / length, -offset / length) if length > 0 else None


def logistic(
    rows: FloatArray, right: npt.NDArray[np.bool_], weights: FloatArray, C: float
) -> tuple[FloatArray, float]:
    """Return w and b of a logistic regression: rows with w . z + b > 0 are on the right."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, tol=1e-8, max_iter=1000).fit(rows, right, sample_weight=weights)
    return np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])


def mean_square(node: Node) -> float:
    """Return the mean squared length of the standardized rows of a measured node.

    Penalties are relative to it, so that they depend neither on the unit nor on the number of columns.
    """
    own = node.standardization
    return own.mean_variance * float(own.varies.sum())
