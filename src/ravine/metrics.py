"""The papers' measures of a partition, against classes and without them; all take weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import v_measure_score

from ravine._validate import FloatArray, InvalidInputError, check_real, check_weights
from ravine.index.base import Profile
from ravine.index.density import MinimumDensityIndex


def contingency(labels_true: Any, labels_pred: Any, sample_weight: Any = None) -> FloatArray:
    """Return the weight of the rows of each class (rows) in each cluster (columns)."""
    true, pred = np.asarray(labels_true), np.asarray(labels_pred)
    if true.ndim != 1 or true.shape != pred.shape or len(true) == 0:
        raise InvalidInputError(
            "labels_true and labels_pred have to be lists of the same length, at least 1; "
            f"got shapes {true.shape} and {pred.shape}"
        )
    classes, row = np.unique(true, return_inverse=True)
    clusters, column = np.unique(pred, return_inverse=True)
    table = np.zeros((len(classes), len(clusters)))
    weights = check_weights(sample_weight, len(true))
    np.add.at(table, (row, column), 1.0 if weights is None else weights)
    return table


def _merged(labels_true: Any, labels_pred: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray]:
    """Return the contingency of a bipartition, and that of the classes merged by where most of each lies.

    A class that is split evenly goes to the smaller side.
    """
    table = contingency(labels_true, labels_pred, sample_weight)
    if table.shape[1] > 2:
        raise InvalidInputError(
            f"a binary partition has two clusters at most, got {table.shape[1]}; "
            "use purity or sklearn.metrics.v_measure_score for more"
        )
    if table.shape[1] == 1:
        table = np.column_stack([table, np.zeros(len(table))])
    smaller = int(np.argmin(table.sum(axis=0)))
    side = np.where(table[:, 0] == table[:, 1], smaller, np.argmax(table, axis=1))
    merged = np.stack([table[side == k].sum(axis=0) for k in (0, 1)])
    return table, merged


def success_ratio(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return how well a bipartition tells at least one class from the rest (MDH, Equations 27 to 29).

    Each class is assigned to the side that holds most of it. With E the rows on the wrong side and S the
    smaller of the two sides' rightly placed rows, the ratio is :math:`S / (S + E)`. It is 0 if no class has
    its majority apart from the others.

    >>> success_ratio([0, 0, 1, 1], [0, 0, 1, 1])
    1.0
    >>> success_ratio([0, 0, 1, 1], [0, 0, 0, 0])
    0.0
    """
    _, merged = _merged(labels_true, labels_pred, sample_weight)
    error = min(merged[0, 0] + merged[1, 1], merged[0, 1] + merged[1, 0])
    success = min(merged[:, 0].max(), merged[:, 1].max())
    return float(success / (success + error)) if success > 0 else 0.0


def binary_v_measure(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the V-measure of a bipartition against the classes merged by majority (MDH, Section 5.1).

    >>> round(binary_v_measure([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1]), 6)
    1.0
    """
    return _v_measure(_merged(labels_true, labels_pred, sample_weight)[1])


def _v_measure(table: FloatArray) -> float:
    """Return the V-measure of a contingency table."""

    def entropy(mass: FloatArray) -> float:
        share = mass[mass > 0] / mass.sum()
        return float(-(share * np.log(share)).sum())

    classes, clusters = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    shared = classes + clusters - entropy(table.ravel())
    return 2 * shared / (classes + clusters) if classes + clusters > 0 else 1.0


def v_measure(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the V-measure, the harmonic mean of homogeneity and completeness, with weights.

    >>> v_measure([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    if sample_weight is None:
        return float(v_measure_score(labels_true, labels_pred))
    return _v_measure(contingency(labels_true, labels_pred, sample_weight))


def purity(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows whose class is the majority class of their cluster.

    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels_pred, sample_weight)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_error(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows that are not of their cluster's majority class: 1 - purity.

    >>> clustering_error([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    return 1.0 - purity(labels_true, labels_pred, sample_weight=sample_weight)


def _projected(X: Any, weights: Any) -> FloatArray:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim == 1:
        return points
    if weights is None:
        raise InvalidInputError(f"rows of shape {points.shape} need the weights to project them on")
    return np.asarray(points @ np.asarray(weights, dtype=np.float64))


def relative_depth(
    X: npt.ArrayLike,
    cut: float,
    bandwidth: float,
    *,
    weights: npt.ArrayLike | None = None,
    sample_weight: Any = None,
) -> float:
    """Return how deep the projected density is at a cut, relative to its adjacent modes (MDH, Equation 30).

    `X` holds projected points, or rows to be projected on `weights`. With I the density at the cut and M at
    the lower of the two adjacent modes this is (M - I) / I: 0 where the cut separates no modes, infinite
    across an empty gap.

    >>> depth = relative_depth([-1.0, -0.9, 0.9, 1.0], 0.0, 0.3)
    >>> depth > 10
    True
    """
    points = _projected(X, weights)
    bandwidth = check_real("bandwidth", bandwidth, 0)
    mass = check_weights(sample_weight, len(points))
    mass = np.ones(len(points)) if mass is None else mass
    points, mass = points[mass > 0], mass[mass > 0]
    order = np.argsort(points, kind="stable")
    profile = Profile(points[order], mass[order], float(mass.sum()), 1.0)
    quality = MinimumDensityIndex(bandwidth, alpha=np.inf).quality(profile, cut)
    return quality / (1.0 - quality) if quality < 1.0 else np.inf


def margin(
    X: npt.ArrayLike, cut: float, *, weights: npt.ArrayLike | None = None, sample_weight: Any = None
) -> float:
    """Return the distance from a cut (or a hyperplane weights . x = cut) to the nearest row.

    >>> margin([[0.0, 0.0], [3.0, 4.0]], 1.0, weights=[0.6, 0.8])
    1.0
    """
    points = _projected(X, weights)
    mass = check_weights(sample_weight, len(points))
    if mass is not None:
        points = points[mass > 0]
    length = 1.0 if weights is None else float(np.linalg.norm(weights))
    return float(np.abs(points - cut).min() / length)
