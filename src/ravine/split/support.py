"""Linear classifiers of labeled rows: starts for methods that take labels, and supervised boundaries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node

HINGE_LABELS = (
    2000  # most labeled rows of an SVM with the hinge loss; of more, with the squared hinge, in linear time
)


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
    standardized: FloatArray, right: npt.NDArray[np.bool_], weights: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return the unit normal v and the threshold b of the plane v . z = b of labeled rows alone.

    It lies halfway between a linear support vector machine and a logistic regression, both with C = 1: the
    sum of their planes w . z + c = 0 with unit normals. None if the two sides have the same rows.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    if len(right) <= HINGE_LABELS:
        machine = SVC(kernel="linear", C=1.0, tol=1e-8).fit(standardized, right, sample_weight=weights)
        planes = [(machine.coef_[0], machine.intercept_[0])]
    else:
        normals, offsets = support_machine(standardized, right.astype(np.int64), weights)
        planes = [(normals[0], offsets[0])]
    logistic = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    logistic.fit(standardized, right, sample_weight=weights)
    planes.append((logistic.coef_[0], logistic.intercept_[0]))
    lengths = [float(np.linalg.norm(w)) for w, _ in planes]
    joint = [(w / length, c / length) for (w, c), length in zip(planes, lengths, strict=True) if length > 0]
    normal = np.asarray(sum(w for w, _ in joint), dtype=np.float64)
    length = float(np.linalg.norm(normal))
    return (normal / length, -float(sum(c for _, c in joint)) / length) if length > 0 else None
