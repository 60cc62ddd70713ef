"""Methods that the papers compare with, in the plainest form that runs on their data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

Array = np.ndarray[Any, Any]


def lda_km(X: Array, n_clusters: int, regularization: float, *, rounds: int = 30) -> Array:
    """LDA-km: discriminant analysis for the clusters, k-means in its subspace, until nothing changes.

    Ding, Li: Adaptive dimension reduction using discriminant analysis and k-means clustering. ICML, 2007.
    """
    from scipy.linalg import eigh

    centred = X - X.mean(axis=0)
    total = centred.T @ centred / len(X)
    labels = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(X)
    for _ in range(rounds):
        means = np.array([centred[labels == k].mean(axis=0) for k in range(n_clusters)])
        shares = np.bincount(labels, minlength=n_clusters) / len(X)
        between = (means.T * shares) @ means
        within = total - between + regularization * np.eye(X.shape[1])
        top = [X.shape[1] - n_clusters + 1, X.shape[1] - 1]
        directions = eigh(between, within, subset_by_index=top)[1]
        points = centred @ directions
        start = np.array([points[labels == k].mean(axis=0) for k in range(n_clusters)])
        now = KMeans(n_clusters, init=start, n_init=1).fit_predict(points)
        if (now == labels).all() or len(np.unique(now)) < n_clusters:
            break
        labels = now
    return np.asarray(labels)


def discriminative_kmeans(X: Array, n_clusters: int, regularization: float) -> Array:
    """Discriminative k-means: kernel k-means with I - (I + X X' / lambda)^-1, here by the map behind it.

    That kernel is X (X'X + lambda I)^-1 X', so the rows are mapped by (X'X + lambda I)^(-1/2).

    Ye, Zhao, Wu: Discriminative k-means for clustering. NIPS, 2007.
    """
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    mapped = centred @ (vectors / np.sqrt(np.maximum(values, 0) + regularization))
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(mapped))
