"""The diffusion map of the nearest-neighbor graph: rows are close if many short paths connect them.

Coifman, Lafon: Diffusion maps. Applied and Computational Harmonic Analysis 21(1), 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ravine._validate import FloatArray, IntArray
from ravine.data.rows import length, take, weights_of
from ravine.data.standardization import Standardization
from ravine.exceptions import InvalidInputError
from ravine.features.feature_map import (
    FeatureMap,
    choose_rows,
    column_signs,
    eigh_descending,
    measure_columns,
)
from ravine.features.neighbors import NEIGHBORS, copies, near_points, unit_rows

GRAPH_ROWS = 20_000  # most rows (landmarks) of the graph; of more rows, a random sample
DENSE_ROWS = 400  # most rows for a dense eigensolver; above, Lanczos iterations
UNKNOWN_CLUSTERS = 10  # number of clusters that the default n_components assumes for n_clusters="auto"


@dataclass(frozen=True, repr=False)
class DiffusionMap(FeatureMap):
    """phi(x) = the mean of the diffusion coordinates of x's nearest landmarks (Nystroem's extension).

    Training rows are mapped by the same mean, so that predicting a training row gives the point of the fit.
    A landmark is one of its own neighbors. With metric="cosine", rows are not centered but divided by their
    lengths, the columns of counts are weighted by `rarity`, and landmarks may be CSR.
    """

    standardization: Standardization
    landmarks: Any
    masses: FloatArray
    coefficients: FloatArray
    n_neighbors: int
    metric: str = "euclidean"

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        return self.standardization.constant

    def __call__(self, rows: Any) -> FloatArray:
        points = points_of(rows, self.standardization, self.metric)
        near = near_points(self.landmarks, self.n_neighbors, rows=points)
        weighted = self.masses[:, None] * self.coefficients
        return np.asarray(near @ weighted / (near @ self.masses)[:, None], dtype=np.float64)

    def facts(self) -> dict[str, Any]:
        return {"kind": "diffusion", "n_neighbors": self.n_neighbors, "metric": self.metric}

    def arrays(self) -> dict[str, Any]:
        own = self.landmarks
        landmarks = {"map_landmarks": own}
        if sparse.issparse(own):
            landmarks = {
                "map_landmarks_data": own.data.astype(np.float64),
                "map_landmarks_indices": own.indices.astype(np.int64),
                "map_landmarks_indptr": own.indptr.astype(np.int64),
            }
        return {
            **landmarks,
            "map_masses": self.masses,
            "map_coefficients": self.coefficients,
            "map_mean": self.standardization.mean,
            "map_inverse_scale": self.standardization.inverse_scale,
        }


def fit_diffusion_map(
    X: Any,
    weights: FloatArray | None,
    given: Mapping[str, Any],
    *,
    standardize: bool,
    weight_counts: bool,
    n_clusters: int | str,
    rng: np.random.Generator,
) -> DiffusionMap:
    """Fit the diffusion map of the weighted rows; equal rows are one landmark with their joint weight.

    With `weight_counts`, columns of counts are weighted by their rarity where rows are compared by angle.
    """
    wanted = given.get("n_components")
    if isinstance(wanted, float):
        raise InvalidInputError(
            f'n_components of kernel="diffusion" has to be a whole number or None, got {wanted}'
        )
    metric = given.get("metric", "cosine" if sparse.issparse(X) else "euclidean")
    own = measure_columns(X, weights, standardize and metric == "euclidean")
    landmarks = given.get("landmarks", "auto")
    chosen = choose_rows(length(X), weights, GRAPH_ROWS if isinstance(landmarks, str) else landmarks, rng)
    rows, row_weight = take(X, chosen), weights_of(weights, chosen)
    if metric == "cosine" and weight_counts:
        own = replace(own, inverse_scale=own.inverse_scale * rarity(rows, row_weight))
    points = points_of(rows, own, metric)
    # Two random projections tell sparse rows apart.
    keys = (
        points @ np.random.default_rng(0).standard_normal((points.shape[1], 2))
        if sparse.issparse(points)
        else points
    )
    first, group = copies(keys)
    points, masses = points[first], np.bincount(group, row_weight).astype(np.float64)
    # In a graph of few rows in which all are neighbors, all have the same place.
    n_neighbors = min(given.get("n_neighbors", NEIGHBORS), max(2, points.shape[0] // 2))
    k = n_clusters if isinstance(n_clusters, int) else UNKNOWN_CLUSTERS
    near = near_points(points, n_neighbors)
    coordinates = diffusion_coordinates(near, masses, wanted or 2 * k, given.get("diffusion_time", 8))
    return DiffusionMap(own, points, masses, coordinates, n_neighbors, metric)


def points_of(rows: Any, own: Standardization, metric: str) -> Any:
    """Return rows as they are compared: scaled, or of length 1 where only their angles count."""
    if metric == "cosine":
        return unit_rows(own.apply_checked(rows))
    return own.apply_checked(rows.toarray() if sparse.issparse(rows) else rows)


def rarity(rows: Any, row_weight: FloatArray) -> FloatArray:
    """Return the weights of the columns for angles: ln(rows / rows with an entry) for counts, otherwise 1.

    Counts are whole numbers of at least 0; frequent words would hide the others. (Inverse document frequency:
    Sparck Jones: A statistical interpretation of term specificity. Journal of Documentation 28(1), 1972.)

    >>> rarity(np.array([[1.0, 2.0], [1.0, 0.0]]), np.ones(2)).round(3).tolist()
    [0.0, 0.693]
    """
    values = rows.data if sparse.issparse(rows) else np.asarray(rows)
    if values.size == 0 or (values < 0).any() or (values != np.round(values)).any():
        return np.ones(rows.shape[1])
    total = float(row_weight.sum())
    seen = np.asarray(row_weight @ (rows != 0), dtype=np.float64).ravel()
    return np.log(total / np.where(seen > 0, seen, 1.0))


def diffusion_coordinates(near: Any, masses: FloatArray, n_components: int, time: float) -> FloatArray:
    """Return lambda^time psi of the walk on the symmetrized graph, without the constant psi.

    The walk steps from i to j with probability A_ij m_j / d_i, A = (near + near') / 2, d = A m; psi has
    variance 1 in its stationary distribution m d.

    A graph with c connected components has the eigenvalue 1 c times; its eigenvectors are constant on the
    components, and `contrasts` chooses a basis of them. The other eigenvectors are nonzero in one component
    each, and are computed there.
    """
    graph = (near + near.T) / 2
    degree = graph @ masses
    scale = sparse.diags_array(np.sqrt(masses / degree))
    walk = sparse.csr_array(scale @ graph @ scale)
    share = masses * degree / (masses @ degree)
    r = min(n_components, len(masses) - 1)
    if r < 1:
        return np.zeros((len(masses), 1))
    n_parts, part = connected_components(walk, directed=False)
    values, psi = [np.ones(n_parts - 1)], [contrasts(share, part)]
    for k in range(n_parts):
        inside = np.flatnonzero(part == k)
        wanted = min(r - n_parts + 1, len(inside) - 1)
        if wanted > 0:
            root = np.sqrt(share[inside])
            own, vectors = leading(walk[inside][:, inside], root / np.linalg.norm(root), wanted)
            spread = np.zeros((len(masses), wanted))
            spread[inside] = vectors / root[:, None]
            values.append(own)
            psi.append(spread)
    every, columns = np.concatenate(values), np.concatenate(psi, axis=1)
    first = np.argsort(-every, kind="stable")[:r]
    columns = columns[:, first]
    return np.asarray(columns * column_signs(columns) * np.clip(every[first], 0.0, 1.0) ** time)


def contrasts(share: FloatArray, part: IntArray) -> FloatArray:
    """Return uncorrelated functions of the parts of a graph with mean 0 and variance 1, one per column.

    The first separates the largest part from the second, the next both from the third, and so on.

    >>> contrasts(np.array([0.5, 0.25, 0.25]), np.array([0, 0, 1]))[:, 0].round(3).tolist()
    [0.577, 0.577, -1.732]
    """
    mass = np.bincount(part, share)
    order = np.argsort(-mass, kind="stable")
    rank = np.empty(len(mass), dtype=np.int64)
    rank[order] = np.arange(len(mass))
    place, mass = rank[part], mass[order]
    before = np.cumsum(mass)
    columns = [
        np.where(place < k, mass[k] / before[k - 1], np.where(place == k, -1.0, 0.0))
        / np.sqrt(mass[k] * before[k] / before[k - 1])
        for k in range(1, len(mass))
    ]
    return np.array(columns).T.reshape(len(part), len(mass) - 1)


def leading(walk: Any, constant: FloatArray, r: int) -> tuple[FloatArray, FloatArray]:
    """Return the r largest eigenvalues and their eigenvectors, without the constant one (eigenvalue 1)."""
    n = len(constant)
    if n <= DENSE_ROWS or r >= n - 1:
        values, vectors = eigh_descending(walk.toarray() - np.outer(constant, constant))
        return values[:r], vectors[:, :r]
    from scipy.sparse.linalg import LinearOperator, eigsh

    def step(x: FloatArray) -> FloatArray:
        x = x.ravel()
        return np.asarray(walk @ x - constant * (constant @ x))

    start = np.random.default_rng(0).standard_normal(n)
    operator = LinearOperator((n, n), matvec=step, dtype=np.float64)
    # to the last digit: descents in these coordinates amplify what an early end would leave
    values, vectors = eigsh(operator, r, which="LA", v0=start, ncv=min(n, max(3 * r, 40)))
    order = np.argsort(-values)
    return values[order], vectors[:, order]
