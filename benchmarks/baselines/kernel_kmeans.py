"""Kernel k-means with the kernel of ravine's width rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

Array = np.ndarray[Any, Any]


def kernel_kmeans(X: Array, n_clusters: int) -> Array:
    """Return the labels of kernel k-means with the RBF kernel: k-means on the kernel's components.

    Schoelkopf, Smola, Mueller: Nonlinear component analysis as a kernel eigenvalue problem. Neural
    Computation 10(5), 1998: in all components, distances are those of the feature space, so Lloyd's steps
    are the same. Above a few thousand rows, the components are those of landmarks.
    """
    from ravine.features.kernel_map import fit_kernel_map

    found = fit_kernel_map(X, None, "rbf", {}, standardize=True, rng=np.random.default_rng(0))
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(found(X)))
