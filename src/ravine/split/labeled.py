"""Labeled rows in a search: what they count, which classes belong on which side, and what they say alone.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016 (Section 5.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Labels, Node
from ravine.data.principal import principal
from ravine.data.query import Query, gather
from ravine.index.base import ProjectionIndex
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.index.labels import LabeledIndex
from ravine.optimize.pursuit import Evaluated, project
from ravine.split.search import BaseMethod, Outcome
from ravine.split.split import Split

# The numbers below were chosen by leave-sets-out, see docs/defaults.md.
LABEL_PENALTY = 20.0  # C of the supervised boundary times the mean squared length of the rows
FEW_LABELS = 20.0  # most weight of the labeled rows of a boundary with which a valley may be better
SPARSER = 0.5  # least difference of the log densities on the supervised boundary and in the valley


def sides_of(labels: Labels, right: Sequence[int] | None) -> FloatArray:
    """Return 1 for the labeled rows whose class belongs on the right, -1 for the others."""
    return np.where(np.isin(labels.classes, right or ()), 1.0, -1.0)


def labeled_indices(
    plain: Sequence[ProjectionIndex],
    node: Node,
    right: Sequence[int] | None,
    gammas: Sequence[float],
) -> list[LabeledIndex]:
    """Return the indices with the first gamma, then the last index with every further gamma."""
    assert node.labels is not None
    own, sides = node.standardization, sides_of(node.labels, right)
    pairs = [(index, gammas[0]) for index in plain] + [(plain[-1], gamma) for gamma in gammas[1:]]
    unit = math.sqrt(own.mean_variance)
    return [LabeledIndex(index, sides, node.labels.weights, gamma, unit) for index, gamma in pairs]


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


# --- linear classifiers of the labeled rows alone ---


def support_planes(node: Node) -> list[tuple[FloatArray, float]]:
    """Return w and b of the planes w . z + b = 0 of the machine on the node's labeled rows."""
    assert node.labels is not None
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
    standardized: FloatArray, sides: FloatArray, weights: FloatArray, C: float
) -> tuple[FloatArray, float] | None:
    """Return the unit normal v and the threshold b of the plane v . z = b of a logistic regression.

    None if the two sides have the same rows.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, tol=1e-8, max_iter=1000)
    model.fit(standardized, sides > 0, sample_weight=weights)
    normal, offset = np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])
    length = float(np.linalg.norm(normal))
    return (normal / length, -offset / length) if length > 0 else None


@dataclass(frozen=True)
class SupervisedMethod(BaseMethod):
    """The plane of a logistic regression on the labeled rows, measured in the density of all rows."""

    bandwidth_factor: float
    right: tuple[int, ...]

    takes_labels = True
    name = "supervised"

    def starts(self, node: Node) -> Query[tuple[Node, Sequence[tuple[FloatArray, float]]]]:
        """Return the plane of the labels, if there is one."""
        found = yield from principal(node, 1)
        assert node.labels is not None
        # Relative to the squared length of the rows, the penalty depends neither on their unit nor on the
        # number of columns.
        own = node.standardization
        C = LABEL_PENALTY / (own.mean_variance * float(own.varies.sum()))
        sides = sides_of(node.labels, self.right)
        plane = supervised_plane(node.standardized_labels, sides, node.labels.weights, C)
        return replace(node, deviation=float(found.deviations[0])), [] if plane is None else [plane]

    def solve(self, node: Node, start: tuple[FloatArray, float]) -> Query[tuple[FloatArray, float]]:
        yield from ()
        return start

    def finish(self, node: Node, end: tuple[FloatArray, float]) -> Query[Outcome | None]:
        """Measure the density on the plane; one pass."""
        direction, threshold = end
        own = node.standardization
        index = MinimumDensityIndex(bandwidth(node.deviation, own.total, self.bandwidth_factor), np.inf)
        projected = yield from project(node, index.resolution, direction)
        density = math.exp(index.log_density(projected.profile, threshold)) / own.unit
        return Outcome(
            direction=direction,
            threshold=threshold,
            value=density,
            status="fitted to the labels",
            n_iter=0,
            profile=projected.profile,
            bandwidth=index.bandwidth,
            named_sides=True,
        )


def is_better(valley: Split, supervised: Split, labels: Labels, right: tuple[int, ...]) -> bool:
    r"""Return whether there is enough evidence for a valley to prefer it to the supervised boundary.

    With I the density (`value`) and m the weight of the labeled rows on the wrong side: the valley v is
    preferred to the supervised boundary s if

    .. math:: \log I_s - \log I_v \ge 0.5, \quad m_v \le m_s.

    A supervised boundary in a region nearly as sparse has nothing to gain, and a valley that does not
    separate the labels separates something else.
    """
    if valley.value > supervised.value * math.exp(-SPARSER):
        return False
    of_valley, of_labels = (_mistakes(labels, right, split) for split in (valley, supervised))
    return of_valley <= of_labels or math.isclose(of_valley, of_labels)


def _mistakes(labels: Labels, right: tuple[int, ...], split: Split) -> float:
    """Return the weight of the labeled rows on the wrong side."""
    on_right = split.boundary.signed_distance_of(labels.rows) > 0
    return float(labels.weights @ (on_right != (sides_of(labels, right) > 0)))
