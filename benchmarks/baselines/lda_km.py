"""LDA-km: k-means in the subspace of a discriminant analysis of its own clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans

Array = np.ndarray[Any, Any]


def lda_km(X: Array, n_clusters: int, regularization: float = 1e-6, *, rounds: int = 30) -> Array:
    r"""Return the labels of LDA-km.

    With the clusters' scatter :math:`S_b` between and :math:`S_w` within, the subspace maximizes
    :math:`\operatorname{tr} (W^T (S_w + \lambda I) W)^{-1} W^T S_b W`; k-means in it gives new clusters,
    until nothing changes. The start is k-means++ on all columns.

    Ding, Li: Adaptive dimension reduction using discriminant analysis and k-means clustering. ICML, 2007.
    """
    centered = X - X.mean(axis=0)
    total = centered.T @ centered / len(X)
    labels = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(X)
    for _ in range(rounds):
        means = np.array([centered[labels == k].mean(axis=0) for k in range(n_clusters)])
        shares = np.bincount(labels, minlength=n_clusters) / len(X)
        between = (means.T * shares) @ means
        within = total - between + regularization * np.eye(X.shape[1])
        top = [X.shape[1] - min(n_clusters - 1, X.shape[1]), X.shape[1] - 1]
        directions = eigh(between, within, subset_by_index=top)[1]
        points = centered @ directions
        start = np.array([points[labels == k].mean(axis=0) for k in range(n_clusters)])
        now = KMeans(n_clusters, init=start, n_init=1).fit_predict(points)
        if (now == labels).all() or len(np.unique(now)) < n_clusters:
            break
        labels = now
    return np.asarray(labels)
