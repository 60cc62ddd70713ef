"""Partial labels in a projection pursuit: the penalized indices, and which classes belong on the right.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016 (Section 5.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import Labels, Node
from ravine.data.principal import principal
from ravine.data.query import Query, gather
from ravine.index.base import ProjectionIndex
from ravine.index.labels import LabeledIndex
from ravine.optimize.pursuit import Evaluated, project
from ravine.split.support import support_machine

MISTAKES = 4.0  # weight of labeled rows that the SVM misclassifies, above which labels count less


def sides_of(labels: Labels, right: Sequence[int] | None) -> FloatArray:
    """Return 1 for the labeled rows whose class belongs on the right, -1 for the others."""
    return np.where(np.isin(labels.classes, right or ()), 1.0, -1.0)


def labeled_indices(
    plain: Sequence[ProjectionIndex],
    node: Node,
    right: Sequence[int] | None,
    gammas: Sequence[float],
    discount_overlap: bool,
) -> list[LabeledIndex]:
    """Return the indices with the first gamma, then the last index with every further gamma."""
    assert node.labels is not None
    own, sides = node.standardization, sides_of(node.labels, right)
    in_full = right is None or not discount_overlap
    weights = node.labels.weights / (1.0 if in_full else _overlap(node, sides))
    pairs = [(index, gammas[0]) for index in plain] + [(plain[-1], gamma) for gamma in gammas[1:]]
    unit = math.sqrt(own.mean_variance)
    return [LabeledIndex(index, sides, weights, gamma, unit) for index, gamma in pairs]


def _overlap(node: Node, sides: FloatArray) -> float:
    """Return the number by which label weights are divided because classes overlap.

    m / 4 if a support vector machine misclassifies m > 4 (by weight) of its own training rows, else 1: with
    overlapping classes, a hyperplane with a small penalty follows noise, in directions in which rows hardly
    vary. Always 1 if there are at most as many labeled rows as columns, which a hyperplane can separate.
    """
    assert node.labels is not None
    rows, weights = node.standardized_labels[:, node.standardization.varies], node.labels.weights
    if len(rows) <= rows.shape[1]:
        return 1.0
    normals, offsets = support_machine(rows, sides, weights)
    wrong = (rows @ normals[0] + offsets[0] > 0) != (sides > 0)
    return max(1.0, float(weights @ wrong) / MISTAKES)


def weight_of_mistakes(labels: Labels, right: Sequence[int] | None, point: Evaluated) -> float:
    """Return the weight of the labeled rows on the wrong side of a threshold."""
    assert point.profile.labeled is not None
    found = point.profile.labeled > point.index_value.threshold
    return float(labels.weights @ (found != (sides_of(labels, right) > 0)))


def group_classes(node: Node, method: Any, directions: FloatArray) -> Query[tuple[int, ...]]:
    """Divide more than two classes into two groups, with the lowest phi_SSC; return those on the right.

    Along each given direction and each principal one, classes are sorted by the mean of their labeled rows;
    every position between two of them gives two groups. All are evaluated in one pass, with the last gamma.
    """
    labels = node.labels
    assert labels is not None
    classes = np.unique(labels.classes)
    found = yield from principal(node, 2 * len(classes))
    node = replace(node, deviation=float(found.deviations[0]))
    index = method.indices(node)[-1]
    candidates = np.concatenate([directions, found.directions])
    projections = yield from gather([project(node, index.resolution, v) for v in candidates])
    best, lowest = classes[1:], np.inf
    for projected in projections:
        points = projected.profile.labeled
        assert points is not None
        members = [labels.classes == c for c in classes]
        means = [np.average(points[some], weights=labels.weights[some]) for some in members]
        order = classes[np.argsort(means)]
        for k in range(1, len(classes)):
            sides = sides_of(labels, order[k:].tolist())
            value = replace(index, sides=sides).evaluate(projected.profile).value
            if value < lowest:
                best, lowest = order[k:], value
    return tuple(sorted(best.tolist()))
