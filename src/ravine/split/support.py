"""The linear support vector machine of labeled rows: a start for every method that takes labels."""

from __future__ import annotations

import numpy as np

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
