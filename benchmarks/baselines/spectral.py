"""Spectral clustering with the papers' kernels: SC and SCn, on all columns or on components."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

Array = np.ndarray[Any, Any]

SCALES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)  # Hofmeyr, Pavlidis, Eckley, Section 7.1
NEIGHBOR = 7  # of local scaling, as its authors have it


def affinity(X: Array, scale: float | None) -> Array:
    r"""Return :math:`\exp(-|x - y|^2 / (2 \sigma^2))` of all pairs; with None, the scale is local.

    Local scaling is :math:`\exp(-|x - y|^2 / (s_x s_y))`, s the distance to the seventh neighbor.
    Zelnik-Manor, Perona: Self-tuning spectral clustering. NIPS, 2004.
    """
    squared = euclidean_distances(X, squared=True)
    if scale is None:
        place = min(NEIGHBOR, len(X) - 1)
        local = np.sqrt(np.partition(squared, place, axis=1)[:, place])
        local = np.maximum(local, 1e-6 * max(float(local.max()), 1e-300))
        found = np.exp(-squared / np.outer(local, local))
    else:
        found = np.exp(-squared / (2 * scale**2))
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def eigenvectors(similar: Array, number: int, *, normalized: bool) -> Array:
    """Return the eigenvectors of the smallest eigenvalues of L = D - A, or of D^(-1/2) L D^(-1/2)."""
    degrees = similar.sum(axis=1)
    laplacian = np.diag(degrees) - similar
    if normalized:
        root = 1 / np.sqrt(np.maximum(degrees, 1e-300))
        laplacian = laplacian * root[:, None] * root
    return np.asarray(eigh(laplacian, subset_by_index=[0, number - 1])[1])


def embedding(similar: Array, n_clusters: int, *, normalized: bool) -> Array:
    """Return the rows in the first K eigenvectors of a graph Laplacian.

    With the normalized one, rows have unit length: Ng, Jordan, Weiss: On spectral clustering: analysis and an
    algorithm. NIPS, 2002.
    """
    vectors = eigenvectors(similar, n_clusters, normalized=normalized)
    if not normalized:
        return vectors
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300))


def representatives(X: Array, most: int, seed: int = 0) -> tuple[Array, Array]:
    """Return at most so many k-means centers and the center of every row.

    Yan, Huang, Jordan: Fast approximate spectral clustering. KDD, 2009: the centers are clustered, and every
    row follows its center.
    """
    if len(X) <= most:
        return X, np.arange(len(X))
    model = KMeans(most, n_init=1, max_iter=20, random_state=seed).fit(X)
    return model.cluster_centers_, model.labels_


def spectral(
    X: Array, n_clusters: int, scale: float | None = None, *, normalized: bool = True, most: int = 1000
) -> Array:
    """Return the labels of spectral clustering: k-means in the eigenvectors (SC, or SCn if normalized).

    Above `most` rows, that many representatives are clustered.
    """
    centers, follows = representatives(X, most)
    return clusters_of(affinity(centers, scale), n_clusters, normalized=normalized)[follows]


def clusters_of(similar: Array, n_clusters: int, *, normalized: bool = True) -> Array:
    """Return the labels of spectral clustering with a given similarity matrix."""
    points = embedding(similar, n_clusters, normalized=normalized)
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(points))


def self_tuning_spectral(X: Array, n_clusters: int, *, most: int = 2000) -> Array:
    """Normalized spectral clustering of standardized columns with local scaling (SCn of the MDH paper)."""
    from sklearn.preprocessing import StandardScaler

    return spectral(StandardScaler().fit_transform(X), n_clusters, None, most=most)


def components(X: Array, number: int, kind: str) -> Array:
    """Return the first principal ("pca") or independent ("ica") components of the rows."""
    from sklearn.decomposition import PCA, FastICA

    if kind == "pca":
        return np.asarray(PCA(number).fit_transform(X))
    return np.asarray(FastICA(number, whiten="unit-variance", random_state=0).fit_transform(X))
