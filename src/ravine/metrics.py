"""Measures of a partition, with and without known classes, and judges of clusterings; all support weights."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from ravine._rows import check_rows
from ravine._validate import FloatArray, IntArray, check_bool, check_int, check_real, check_weights
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.query import run
from ravine.data.rows import rows_of
from ravine.data.threads import one_blas_thread
from ravine.exceptions import InvalidInputError
from ravine.features.neighbors import NEIGHBORS, row_graph
from ravine.index.base import Profile
from ravine.index.density import bounded_depth
from ravine.optimize.minimax import MAX_FEATURES, minimax
from ravine.optimize.sides import Side, SideSums, varying

__all__ = (
    *("agreement", "binary_v_measure", "clustering_error", "contingency", "margin", "modularity"),
    *("generalized_separation_probability", "normalized_cut", "purity", "relative_depth"),
    *("separation_probability", "success_ratio", "v_measure"),
)


def contingency(labels_true: Any, labels_pred: Any, sample_weight: Any = None) -> FloatArray:
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


def _merged(labels_true: Any, labels_pred: Any, sample_weight: Any) -> FloatArray:
    """Return the contingency table of a bipartition, with classes merged by majority side.

    A class with equal weight on both sides goes to the smaller side.
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
    merged = _merged(labels_true, labels_pred, sample_weight)
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
    merged = _merged(labels_true, labels_pred, sample_weight)
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
    return _v_measure(contingency(labels_true, labels_pred, sample_weight))


def purity(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows that are of the majority class of their cluster.

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


def _projected(X: Any, normal: Any) -> FloatArray:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim == 1:
        return points
    if normal is None:
        raise InvalidInputError(f"rows of shape {points.shape} need a `normal` to project them onto")
    return np.asarray(points @ np.asarray(normal, dtype=np.float64))


def relative_depth(
    X: npt.ArrayLike,
    threshold: float,
    bandwidth: float,
    *,
    normal: npt.ArrayLike | None = None,
    sample_weight: Any = None,
) -> float:
    """Return how deep the density is at a threshold, relative to the adjacent modes (MDH, Equation 30).

    `X` holds projected points, or rows to be projected onto `normal`. With I the density at the threshold
    and M that at the lower of the two adjacent modes, this is (M - I) / I: 0 if the threshold does not
    separate modes, infinite across an empty gap. (`quality` of a split is depth / (1 + depth).)

    >>> depth = relative_depth([-1.0, -0.9, 0.9, 1.0], 0.0, 0.3)
    >>> depth > 10
    True
    """
    points = _projected(X, normal)
    bandwidth = check_real("bandwidth", bandwidth, 0)
    mass = check_weights(sample_weight, len(points))
    mass = np.ones(len(points)) if mass is None else mass
    points, mass = points[mass > 0], mass[mass > 0]
    order = np.argsort(points, kind="stable")
    profile = Profile(points[order], mass[order], float(mass.sum()), 1.0)
    quality = bounded_depth(profile, threshold, bandwidth)
    return quality / (1.0 - quality) if quality < 1.0 else np.inf


def margin(
    X: npt.ArrayLike, threshold: float, *, normal: npt.ArrayLike | None = None, sample_weight: Any = None
) -> float:
    """Return the distance from a threshold, or a hyperplane normal . x = threshold, to the nearest row.

    >>> margin([[0.0, 0.0], [3.0, 4.0]], 1.0, normal=[0.6, 0.8])
    1.0
    """
    points = _projected(X, normal)
    mass = check_weights(sample_weight, len(points))
    if mass is not None:
        points = points[mass > 0]
    length = 1.0 if normal is None else float(np.linalg.norm(normal))
    return float(np.abs(points - threshold).min() / length)


def separation_probability(
    X: Any, labels: Any, *, regularization: float = 0.0, pairwise: bool = False, sample_weight: Any = None
) -> Any:
    r"""Return the minimum separation probability (MSP) of a labeling (MSPC, Definition 1).

    For every distribution with the means and covariances of the two clusters, the best hyperplane puts a row
    on the correct side with at least this probability,

    .. math:: \frac{\kappa^2}{1 + \kappa^2}, \qquad \kappa = \max_w \frac{|w'(\mu_1 - \mu_2)|}
              {\sqrt{w'(\Sigma_1 + \lambda\Lambda) w} + \sqrt{w'(\Sigma_2 + \lambda\Lambda) w}}.

    It needs no classes and applies to any clustering. It is invariant under invertible linear maps of the
    rows (under scalings of the columns if lambda is not 0: Lambda is the diagonal of the rows' covariance). A
    single outlier against the rest has a high MSP, so look at the sizes of the clusters too, as
    `ravine.select` does.

    For more than two clusters it is the minimum over all pairs or, with `pairwise`, the symmetric matrix of
    all pairs (1 on its diagonal) in the order of the sorted labels. X may be an array, a memmap or a CSR
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
        varies = varying(own)
        sides = [Side.of(rows.select(some).pass_over([SideSums(own, None)])[0]) for some in members]
        spread = [side.covariance(varies) + ridge * np.eye(len(varies)) for side in sides]
        found = np.ones((len(sides), len(sides)))
        for a, b in itertools.combinations(range(len(sides)), 2):
            apart = (sides[b].mean - sides[a].mean)[varies]
            found[a, b] = found[b, a] = minimax(spread[a], spread[b], apart).probability
    return found if pairwise else float(found.min())


def generalized_separation_probability(
    distances: Any, labels: Any, *, pairwise: bool = False, sample_weight: Any = None
) -> Any:
    r"""Return the generalized MSP of a labeling, from distances alone (MSPC, supplement, Equation 1).

    .. math:: \tilde\kappa = \frac{\frac{1}{N_1 N_2} \sum_{i \in 1} \sum_{j \in 2} s_{ij}}
              {\sum_k \frac{1}{N_k} \sqrt{\sum_{i, j \in k} s_{ij}^2}}

    and kappa^2 / (1 + kappa^2) of it. Any distance can be used, also between objects that are not vectors. It
    has Kleinberg's properties: scale invariance, consistency (smaller distances within and larger ones
    between clusters never lower it) and richness. It differs from the MSP even in one dimension. More than
    two clusters are treated as in `separation_probability`.

    >>> s = [[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 1], [5, 5, 1, 0]]
    >>> round(generalized_separation_probability(s, [0, 0, 1, 1]), 6)  # kappa is 5 / (2 sqrt(2) / 2)
    0.925926
    """
    table = check_array(distances, dtype=np.float64)
    if table.shape[0] != table.shape[1]:
        raise InvalidInputError(f"distances have to be a square matrix, got shape {table.shape}")
    rows = MemoryRows(table, check_weights(sample_weight, len(table)))
    members = _members(labels, rows)
    weights = np.ones(len(table)) if rows.weights is None else rows.weights
    within = []
    for some in members:
        w = weights[some]
        within.append(math.sqrt(w @ table[np.ix_(some, some)] ** 2 @ w) / w.sum())
    found = np.ones((len(members), len(members)))
    for a, b in itertools.combinations(range(len(members)), 2):
        w, v = weights[members[a]], weights[members[b]]
        apart = float(w @ table[np.ix_(members[a], members[b])] @ v) / (w.sum() * v.sum())
        squared = apart**2 + (within[a] + within[b]) ** 2
        found[a, b] = found[b, a] = apart**2 / squared if squared > 0 else 0.0
    return found if pairwise else float(found.min())


def modularity(
    X: Any,
    labels: Any,
    *,
    n_neighbors: int = NEIGHBORS,
    max_rows: int | None = None,
    standardize: bool = True,
    sample_weight: Any = None,
) -> float:
    r"""Return the modularity of a labeling in the graph of nearest neighbors, in [-1, 1].

    Two rows are neighbors if one is among the `n_neighbors` nearest rows of the other. With W the number of
    edges between two sets of rows, each counted from both ends,

    .. math:: Q = \sum_k \left[ \frac{W(C_k, C_k)}{W(X, X)} - \left(\frac{W(C_k, X)}{W(X, X)}\right)^2 \right]

    is the share of edges inside clusters, minus what labels unrelated to the graph would have: 0 for these
    and for a single cluster. It needs no classes, and applies to clusterings of any origin; -1 is a label
    like any other. (Newman, Girvan: Finding and evaluating community structure in networks. Physical Review E
    69, 2004.)

    Dense rows are standardized unless `standardize` is False; sparse rows are compared by their angle. Copies
    of a row, and the k rows that a weight of k means, are neighbors of each other. Of more than `max_rows`
    rows (5000, fewer if they are wide), a random sample is judged, the same one for all labels. The cost is
    that of the neighbors of these rows, O(n^2 d) at most.

    >>> X = [[0.0], [0.1], [0.3], [9.0], [9.1], [9.3]]
    >>> modularity(X, [0, 0, 0, 1, 1, 1], n_neighbors=2), modularity(X, [0] * 6, n_neighbors=2)
    (0.5, 0.0)
    """
    return modularity_of(_edges(X, labels, n_neighbors, max_rows, standardize, sample_weight))


def normalized_cut(
    X: Any,
    labels: Any,
    *,
    n_neighbors: int = NEIGHBORS,
    max_rows: int | None = None,
    standardize: bool = True,
    sample_weight: Any = None,
) -> float:
    r"""Return the normalized cut of a labeling in the graph of nearest neighbors, in [0, K] for K clusters.

    .. math:: \sum_k \frac{W(C_k, X \setminus C_k)}{W(C_k, X)},

    the share of its edges that leave a cluster, summed over the clusters: 0 if no neighbors are separated,
    about K - 1 for labels that are unrelated to the graph. A cluster without edges counts 1. Everything else
    is as for `modularity`. (Shi, Malik: Normalized cuts and image segmentation. IEEE PAMI 22(8), 2000.)

    >>> X = [[0.0], [0.1], [0.3], [9.0], [9.1], [9.3]]
    >>> [normalized_cut(X, labels, n_neighbors=2) for labels in ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1])]
    [0.0, 0.75]
    """
    return normalized_cut_of(_edges(X, labels, n_neighbors, max_rows, standardize, sample_weight))


def _edges(
    X: Any, labels: Any, n_neighbors: Any, max_rows: Any, standardize: Any, sample_weight: Any
) -> FloatArray:
    """Return the weight of the edges between any two clusters in the graph of nearest neighbors."""
    n_neighbors = check_int("n_neighbors", n_neighbors, 1)
    max_rows = None if max_rows is None else check_int("max_rows", max_rows, 2, or_else="None")
    X = check_rows(X, min_rows=1)
    rows = rows_of(X, check_weights(sample_weight, X.shape[0]))
    clusters = np.unique(_checked_labels(labels, X.shape[0]), return_inverse=True)[1]
    with one_blas_thread():
        graph = row_graph(
            rows,
            n_neighbors=n_neighbors,
            max_rows=max_rows,
            standardize=check_bool("standardize", standardize),
        )
    return graph.between(clusters[graph.numbers])


def modularity_of(edges: FloatArray) -> float:
    """Return the modularity, from the weights of the edges between the clusters; 0 without edges."""
    volumes, whole = edges.sum(axis=1), float(edges.sum())
    return float((np.diag(edges) / whole - (volumes / whole) ** 2).sum()) if whole > 0 else 0.0


def normalized_cut_of(edges: FloatArray) -> float:
    """Return the normalized cut, from the weights of the edges between the clusters that have rows."""
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
        found[a, b] = found[b, a] = _v_measure(contingency(given[a], given[b], sample_weight))
    return np.asarray((found.sum(axis=1) - 1.0) / (len(given) - 1)) if len(given) > 1 else np.ones(1)


def _checked_labels(labels: Any, n_rows: int) -> Any:
    """Return labels as an array with one entry per row."""
    given = np.asarray(labels)
    if given.shape != (n_rows,):
        raise InvalidInputError(f"labels need one entry for each of {n_rows} rows, got {given.shape}")
    return given


def _members(labels: Any, rows: MemoryRows) -> list[IntArray]:
    """Return the rows of each cluster with a weight above 0; at least two clusters are required."""
    given = _checked_labels(labels, rows.shape[0])
    members = [np.flatnonzero(given == value) for value in np.unique(given)]
    members = [some for some in members if rows.select(some).total > 0]
    if len(members) < 2:
        raise InvalidInputError("at least two clusters are needed, got one")
    return members
