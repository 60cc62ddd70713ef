"""Further starts of a pursuit: random directions, and directions along which neighbors stay close.

Principal directions show where rows vary, not which rows are connected, and in a feature space of many
components a pursuit ends near its start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import FEW_ROWS, Node, sample, sample_rows
from ravine.data.principal import EQUAL
from ravine.data.query import Query
from ravine.features.neighbors import NEIGHBORS, distinct, neighbors_among, nth_nearest, weighted_median

START_ROWS = 1000  # most rows of the neighbor graph
START_NEIGHBORS = 15  # neighbors per row in the graph; with 10 the arms of spirals come apart
FEW_ROWS_PER_COLUMN = 20  # least rows per column of the sample on which several starts are compared
RIDGE = 1e-3  # ridge of the spectral regression, as a share of the total variance


def small_sample(node: Node) -> Query[Node]:
    """Return a sample on which several starts are compared, or the node itself if it has few more rows."""
    n = max(FEW_ROWS, FEW_ROWS_PER_COLUMN * node.n_features)
    if node.n_rows < 2 * n:
        return node
    few = yield from sample(node, n, "few rows")
    return replace(few, deviation=node.deviation)


def random_directions(node: Node, n: int) -> FloatArray:
    """Return n random directions of the standardized space, each column with its standard deviation.

    The columns of a feature map are uncorrelated, so that these are random combinations of the mapped rows:
    vectors of random dual coefficients.
    """
    own = node.standardization
    return np.asarray(
        node.rng("starts").standard_normal((n, node.n_features)) * own.deviation * own.inverse_scale
    )


def neighbor_starts(node: Node, n: int) -> Query[FloatArray]:
    r"""Return n directions of the standardized space along which connected rows stay close.

    With u the leading eigenvectors (except the constant one) of :math:`D^{-1/2} W D^{-1/2}`, W the
    similarities of `similarities` and D their row sums, v minimizes

    .. math:: \sum_i D_i (v^\top z_i - D_i^{-1/2} u_i)^2 + \rho \|v\|^2

    (Cai, He, Han: Spectral Regression for Efficient Regularized Subspace Learning. ICCV, 2007.) Costs an
    eigendecomposition of a matrix of at most 1000 x 1000.
    """
    rows, row_weights = yield from sample_rows(node, START_ROWS, "neighbor starts")
    points, weights, _ = distinct(node.standardization.apply(rows), row_weights)
    similar = similarities(points, weights)
    degree = similar.sum(axis=1)
    root = np.sqrt(np.maximum(degree, np.finfo(float).tiny))
    constant = root / np.linalg.norm(root)
    walk = similar / root[:, None] / root - np.outer(constant, constant)
    centered = points - degree @ points / degree.sum()
    weighted = root[:, None] * centered
    slow = _leading(walk, weighted, n)
    matrix = weighted.T @ weighted
    matrix[np.diag_indices_from(matrix)] += RIDGE * np.trace(matrix)
    return np.asarray(np.linalg.solve(matrix, weighted.T @ slow).T)


def _leading(walk: FloatArray, weighted: FloatArray, n: int) -> FloatArray:
    """Return n leading eigenvectors, in columns.

    A graph that has come apart, or nearly, has as many eigenvalues near 1 as it has parts, and rounding would
    choose the basis of their space: it is the one in which the weighted rows vary most, then next most.
    """
    from scipy.linalg import eigh

    m, asked = len(walk), n + 1
    while True:
        asked = min(2 * asked, m)
        values, vectors = eigh(walk, subset_by_index=(m - asked, m - 1))
        apart = np.flatnonzero(values[:-1][::-1] < values[1:][::-1] - EQUAL) + 1
        if asked == m or (apart >= n).any():
            break
    vectors = vectors[:, ::-1]
    spaces = np.split(np.arange(asked), apart)
    turned = [
        vectors[:, some] @ np.linalg.svd(weighted.T @ vectors[:, some])[2].T for some in spaces if some[0] < n
    ]
    return np.hstack(turned)[:, :n]


def similarities(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return m_i m_j exp(-(d_ij / s)^2) between neighbors, and 0 between other points.

    Points are neighbors if one is among the 15 nearest of the other. s is the median distance to the tenth
    neighbor. A point of weight k means k copies, which are neighbors of each other.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    distances = euclidean_distances(points)
    np.fill_diagonal(distances, 0.0)
    width = weighted_median(nth_nearest(distances, weights, NEIGHBORS), weights)
    if width == 0.0:  # most rows have ten copies or more
        width = float(np.sqrt(np.mean(distances**2)))
    near = neighbors_among(points, weights, START_NEIGHBORS).toarray()
    similar = near * np.exp(-((distances / width) ** 2)) * np.outer(weights, weights)
    np.fill_diagonal(similar, weights * np.maximum(weights - 1.0, 0.0))
    return np.asarray(similar)
