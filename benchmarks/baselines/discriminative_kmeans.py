"""Discriminative k-means (Dis-KM)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

Array = np.ndarray[Any, Any]


def discriminative_kmeans(X: Array, n_clusters: int, regularization: float) -> Array:
    r"""Return the labels of kernel k-means with :math:`I - (I + X X^T / \lambda)^{-1}`, X centered.

    That kernel is :math:`X (X^T X + \lambda I)^{-1} X^T`, so the rows are mapped by
    :math:`(X^T X + \lambda I)^{-1/2}` and clustered by k-means.

    Ye, Zhao, Wu: Discriminative k-means for clustering. NIPS, 2007.
    """
    centered = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    mapped = centered @ (vectors / np.sqrt(np.maximum(values, 0) + regularization))
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(mapped))
