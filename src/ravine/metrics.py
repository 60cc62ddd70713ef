"""Measures of a partition, with and without known classes, and judges of clusterings; all support weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ravine._validate import (
    FloatArray,
    IntArray,
    check_real,
    check_rows,
    check_weights,
)
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.query import RowSet, run
from ravine.data.threads import one_blas_thread
from ravine.exceptions import InvalidInputError
from ravine.optimize.minimax import MAX_FEATURES, minimax
from ravine.optimize.sides import Side, SideSums

__all__ = (
    *("agreement", "binary_v_measure", "clustering_error", "purity"),
    *("separation_probability", "success_ratio", "v_measure"),
)


def _contingency(labels_true: Any, labels_pred: Any, sample_weight: Any = None) -> FloatArray:
    """Return the weight of each class (row of the table) in each cluster (column)."""
    true, pred = np.asarray(labels_true), np.asarray(labels_pred)
    if true.ndim != 1 or true.shape != pred.shape or len(true) == 0:
        raise InvalidInputError(
            "labels_true and labels_pred have to be lists of the same length of at least 1, "
            f"got shapes {true.shape} and {pred.shape}"
        )
    classes, row = np.unique(true, return_inverse=True)
    clusters, column = np.unique(pred, return_inverse=True)
    weights = check_weights(sample_weight, len(true))
    cells = np.bincount(row * len(clusters) + column, weights, len(classes) * len(clusters))
    return cells.astype(np.float64).reshape(len(classes), len(clusters))


def _merge_classes(labels_true: Any, labels_pred: Any, sample_weight: Any) -> FloatArray:
    """Return the contingency table of a bipartition, with classes merged by majority side.

    A class with equal weight on both sides goes to the smaller side.
    """
    table = _contingency(labels_true, labels_pred, sample_weight)
    if table.shape[1] > 2:
        raise InvalidInputError(
            f"a binary partition has two clusters at most, got {table.shape[1]}; "
            "use purity or sklearn.metrics.v_measure_score for more"
        )
    if table.shape[1] == 1:
        table = np.column_stack([table, np.zeros(len(table))])
    smaller = int(np.argmin(table.sum(axis=0)))
    side = np.where(table[:, 0] == table[:, 1], smaller, np.argmax(table, axis=1))
    return np.stack([table[side == k].sum(axis=0) for k in (0, 1)])


def success_ratio(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return how well a bipartition separates at least one class from the rest (MDH, Equations 27 to 29).

    Each class is assigned to the side with the majority of its rows. E is the number of rows on the wrong
    side; each side has a number of rows that belong there, and S is the smaller of the two. The ratio is
    :math:`S / (S + E)`. It is 0 if all classes have their majority on the same side.

    >>> success_ratio([0, 0, 1, 1], [0, 0, 1, 1])
    1.0
    >>> success_ratio([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1])
    0.0
    """
    merged = _merge_classes(labels_true, labels_pred, sample_weight)
    if not merged.any(axis=1).all():  # Equation 28 by the letter gives 1/2 here, the text below it 0
        return 0.0
    error = min(merged[0, 0] + merged[1, 1], merged[0, 1] + merged[1, 0])
    success = min(merged[:, 0].max(), merged[:, 1].max())
    return float(success / (success + error)) if success > 0 else 0.0


def binary_v_measure(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the V-measure of a bipartition against the classes merged by majority (MDH, Section 5.1).

    It is 0 if all classes have their majority on the same side, also where nothing was split.

    >>> round(binary_v_measure([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1]), 6)
    1.0
    """
    merged = _merge_classes(labels_true, labels_pred, sample_weight)
    return _v_measure(merged) if merged.any(axis=1).all() else 0.0


def _v_measure(table: FloatArray) -> float:
    """Return the V-measure of a contingency table."""

    def entropy(mass: FloatArray) -> float:
        share = mass[mass > 0] / mass.sum()
        return float(-(share * np.log(share)).sum())

    classes, clusters = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    shared = classes + clusters - entropy(table.ravel())
    return 2 * shared / (classes + clusters) if classes + clusters > 0 else 1.0


def v_measure(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the V-measure, the harmonic mean of homogeneity and completeness.

    >>> v_measure([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return _v_measure(_contingency(labels_true, labels_pred, sample_weight))


def adjusted_rand_index(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of pairs of rows that both labelings treat alike, corrected for chance: 1 if all are.

    >>> adjusted_rand_index([0, 0, 1, 1], [5, 5, 7, 7])
    1.0
    """
    table = _contingency(labels_true, labels_pred, sample_weight)
    both, one, other, all_pairs = (
        float((counts * (counts - 1.0)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    by_chance = one * other / all_pairs
    highest = (one + other) / 2.0
    return 1.0 if highest == by_chance else (both - by_chance) / (highest - by_chance)


def purity(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows that are of the majority class of their cluster.

    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred, sample_weight)
    return float(table.max(axis=0).sum() / table.sum())


def clustering_error(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows that are not of their cluster's majority class: 1 - purity.

    >>> clustering_error([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    return 1.0 - purity(labels_true, labels_pred, sample_weight=sample_weight)


def separation_probability(
    X: Any, labels: Any, *, regularization: float = 0.0, sample_weight: Any = None
) -> float:
    r"""Return the minimum separation probability (MSP) of a labeling (MSPC, Definition 1).

    For every distribution with the means and covariances of the two clusters, the best hyperplane puts a row
    on the correct side with at least this probability,

    .. math:: \frac{\kappa^2}{1 + \kappa^2}, \qquad \kappa = \max_w \frac{|w'(\mu_1 - \mu_2)|}
              {\sqrt{w'(\Sigma_1 + \lambda\Lambda) w} + \sqrt{w'(\Sigma_2 + \lambda\Lambda) w}}.

    It needs no classes and applies to any clustering. It is invariant under invertible linear maps of the
    rows (under scalings of the columns if lambda is not 0: Lambda is the diagonal of the rows' covariance). A
    single outlier against the rest has a high MSP, so look at the sizes of the clusters too, as
    `ravine.select` does.

    For more than two clusters it is the minimum over all pairs. X may be an array, a memmap or a CSR
    matrix. The cost is one pass with O(n d^2).

    >>> X = [[-2.0], [-1.0], [1.0], [2.0]]
    >>> round(separation_probability(X, [0, 0, 1, 1]), 6)  # kappa is 3 / (0.5 + 0.5)
    0.9
    """
    ridge = check_real("regularization", regularization, 0, open_low=False)
    X = check_rows(X, min_rows=1)
    if X.shape[1] > MAX_FEATURES:
        raise InvalidInputError(
            f"covariance matrices are limited to {MAX_FEATURES} features, got {X.shape[1]}; reduce them "
            "first, for instance with sklearn.decomposition.TruncatedSVD"
        )
    rows = MemoryRows(X, check_weights(sample_weight, X.shape[0]))
    members = _members(labels, rows)
    with one_blas_thread():
        own = run(measure(Node(rows))).standardization
        varies = np.flatnonzero(own.varies)
        sides = [Side.of(rows.select(some).pass_over([SideSums(own, None)])[0]) for some in members]
        spread = [side.covariance(varies) + ridge * np.eye(len(varies)) for side in sides]
        return min(
            float(minimax(spread[a], spread[b], (sides[b].mean - sides[a].mean)[varies]).probability)
            for a, b in itertools.combinations(range(len(sides)), 2)
        )


def modularity_of(edges: FloatArray) -> float:
    r"""Return the modularity of clusters, from the weights W of the edges between them; 0 without edges.

    .. math:: Q = \sum_k \left[ \frac{W(C_k, C_k)}{W(X, X)} - \left(\frac{W(C_k, X)}{W(X, X)}\right)^2 \right]

    is the share of edges inside clusters, minus what labels unrelated to the graph would have. (Newman,
    Girvan: Finding and evaluating community structure in networks. Physical Review E 69, 2004.)

    >>> modularity_of(np.array([[4.0, 0.0], [0.0, 4.0]])), modularity_of(np.array([[8.0]]))
    (0.5, 0.0)
    """
    volumes, whole = edges.sum(axis=1), float(edges.sum())
    return float((np.diag(edges) / whole - (volumes / whole) ** 2).sum()) if whole > 0 else 0.0


def normalized_cut_of(edges: FloatArray) -> float:
    r"""Return the normalized cut of clusters that have rows, from the weights W of the edges between them.

    .. math:: \sum_k \frac{W(C_k, X \setminus C_k)}{W(C_k, X)},

    the share of its edges that leave a cluster, summed over the clusters; a cluster without edges counts 1.
    (Shi, Malik: Normalized cuts and image segmentation. IEEE PAMI 22(8), 2000.)

    >>> normalized_cut_of(np.array([[2.0, 2.0], [2.0, 6.0]]))
    0.75
    """
    volumes = edges.sum(axis=1)
    return float(np.where(volumes > 0, 1.0 - np.diag(edges) / np.where(volumes > 0, volumes, 1.0), 1.0).sum())


def agreement(labelings: Any, *, sample_weight: Any = None) -> FloatArray:
    r"""Return the mean V-measure of each of several labelings of the same rows against all others.

    .. math:: a_i = \frac{1}{m - 1} \sum_{j \ne i} V(y_i, y_j)

    Methods that look for different things err in different ways; what most of them find is likely to be in
    the data. A single labeling has agreement 1.

    >>> agreement([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]]).tolist()
    [0.5, 0.5, 0.0]
    """
    given = [np.unique(np.asarray(labels), return_inverse=True)[1] for labels in labelings]
    if not given:
        raise InvalidInputError("agreement needs at least one labeling, got none")
    found = np.ones((len(given), len(given)))
    for a, b in itertools.combinations(range(len(given)), 2):
        found[a, b] = found[b, a] = _v_measure(_contingency(given[a], given[b], sample_weight))
    return np.asarray((found.sum(axis=1) - 1.0) / (len(given) - 1)) if len(given) > 1 else np.ones(1)


def _members(labels: Any, rows: RowSet) -> list[IntArray]:
    """Return the rows of each cluster with a weight above 0; at least two clusters are required."""
    given, n_rows = np.asarray(labels), rows.shape[0]
    if given.shape != (n_rows,):
        raise InvalidInputError(f"labels need one entry for each of {n_rows} rows, got {given.shape}")
    members = [np.flatnonzero(given == value) for value in np.unique(given)]
    members = [some for some in members if rows.select(some).total > 0]
    if len(members) < 2:
        raise InvalidInputError("at least two clusters are needed, got one")
    return members
