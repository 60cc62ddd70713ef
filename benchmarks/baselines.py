"""Methods that the papers compare with, in the plainest form that runs on their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

Array = np.ndarray[Any, Any]


def lda_km(X: Array, n_clusters: int, regularization: float, *, rounds: int = 30) -> Array:
    """LDA-km: discriminant analysis for the clusters, k-means in its subspace, until nothing changes.

    Ding, Li: Adaptive dimension reduction using discriminant analysis and k-means clustering. ICML, 2007.
    """
    from scipy.linalg import eigh

    centered = X - X.mean(axis=0)
    total = centered.T @ centered / len(X)
    labels = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(X)
    for _ in range(rounds):
        means = np.array([centered[labels == k].mean(axis=0) for k in range(n_clusters)])
        shares = np.bincount(labels, minlength=n_clusters) / len(X)
        between = (means.T * shares) @ means
        within = total - between + regularization * np.eye(X.shape[1])
        top = [X.shape[1] - n_clusters + 1, X.shape[1] - 1]
        directions = eigh(between, within, subset_by_index=top)[1]
        points = centered @ directions
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
    centered = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    mapped = centered @ (vectors / np.sqrt(np.maximum(values, 0) + regularization))
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(mapped))


FEW = 3000  # rows up to which a kernel matrix is made of all of them


def kernel_kmeans(X: Array, n_clusters: int) -> Array:
    """Kernel k-means with the RBF kernel of ravine's width: k-means on the kernel's components.

    Schoelkopf, Smola, Mueller: Nonlinear component analysis as a kernel eigenvalue problem. Neural
    Computation 10(5), 1998: in all components, distances are those of the feature space, so Lloyd's steps
    are the same. Above a few thousand rows, the components are those of landmarks.
    """
    from ravine.data.kernel_map import fit_kernel_map

    found = fit_kernel_map(X, None, "rbf", {}, standardize=True, rng=np.random.default_rng(0))
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(found(X)))


def self_tuning_spectral(X: Array, n_clusters: int, *, neighbor: int = 7) -> Array:
    """Spectral clustering with exp(-|x - y|^2 / (s_x s_y)), s the distance to the seventh neighbor.

    Zelnik-Manor, Perona: Self-tuning spectral clustering. NIPS, 2004, with the number of clusters given and
    k-means in the end, on scikit-learn's SpectralClustering. Above a few thousand rows a random part is
    clustered, and the others follow their nearest neighbor in it.
    """
    from sklearn.cluster import SpectralClustering
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(X)
    part = scaled
    if len(scaled) > FEW:
        part = scaled[np.random.default_rng(0).choice(len(scaled), FEW, replace=False)]
    squared = euclidean_distances(part, squared=True)
    local = np.sqrt(np.partition(squared, neighbor, axis=1)[:, neighbor])
    local = np.maximum(local, 1e-6 * max(float(local.max()), 1e-300))
    affinity = np.exp(-squared / np.outer(local, local))
    np.fill_diagonal(affinity, 0.0)
    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=0)
    labels = model.fit_predict(affinity)
    if part is scaled:
        return np.asarray(labels)
    return np.asarray(KNeighborsClassifier(1).fit(part, labels).predict(scaled))


@dataclass
class IterSVR:
    """Iterative support vector regression, on scikit-learn's SVR.

    Zhang, Tsang, Kwok: Maximum margin clustering made practical. ICML, 2007. Starting from k-means, fit the
    sides (+1 and -1) by an SVR with the Laplacian loss (epsilon = 0), move the bias to where the loss of the
    sides that it makes is least among those that leave `1/2 - balance` of the rows on either side, and take
    those sides, until they stay. One scale for all columns makes their mean variance 1.
    """

    kernel: str = "linear"
    C: float = 1.0
    gamma: float = 1.0  # in units of 1 / columns, for kernel="rbf"
    balance: float = 0.3
    max_iter: int = 15

    def fit_predict(self, X: Any) -> Array:
        """Return the side of every row."""
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        X = X / np.sqrt(StandardScaler(with_mean=False).fit(X).var_.mean())
        sides = 2.0 * KMeans(2, n_init=10, random_state=0).fit_predict(X) - 1.0
        for _ in range(self.max_iter):
            model = SVR(kernel=self.kernel, C=self.C, epsilon=0.0, gamma=self.gamma / X.shape[1])
            score = model.fit(X, sides).predict(X)
            now = np.where(score > self._threshold(score), 1.0, -1.0)
            if (now == sides).all():
                break
            sides = now
        return np.asarray(sides > 0, dtype=np.int64)

    def _threshold(self, score: Array) -> float:
        """Return the middle between two scores at which the mean of | |score - t| - 1 | is least."""
        ordered = np.sort(score)
        n = len(ordered)
        fewest = max(1, round((0.5 - self.balance) * n))
        middles = (ordered[:-1] + ordered[1:])[fewest - 1 : n - fewest] / 2
        losses = [np.abs(np.abs(score - t) - 1.0).mean() for t in middles]
        return float(middles[int(np.argmin(losses))])


@dataclass
class LapSVM:
    """The Laplacian support vector machine with a linear kernel, by Newton's method: a few linear solves.

    Belkin, Niyogi, Sindhwani: Manifold regularization. JMLR 7, 2006; in the primal, with the squared hinge,
    as in Melacci, Belkin: Laplacian support vector machines trained in the primal. JMLR 12, 2011. `y` is -1
    for a row without a label; the graph is that of the nearest neighbors, with the normalized Laplacian.
    """

    ridge: float = 0.01
    smooth: float = 1.0
    n_neighbors: int = 10
    max_iter: int = 50

    def fit_predict(self, X: Any, y: Array) -> Array:
        """Return the class of every row."""
        from scipy.sparse.csgraph import laplacian
        from sklearn.neighbors import kneighbors_graph

        n, d = X.shape
        graph = kneighbors_graph(X, self.n_neighbors)
        smooth = X.T @ (laplacian(graph.maximum(graph.T), normed=True) @ X) / n
        penalty = np.zeros((d + 1, d + 1))
        penalty[:d, :d] = self.ridge * np.eye(d) + self.smooth * smooth
        known = np.flatnonzero(y != -1)
        classes = np.unique(y[known])
        sides = np.where(y[known] == classes[1], 1.0, -1.0)
        rows = np.column_stack([X[known], np.ones(len(known))])
        inside = np.ones(len(known), dtype=bool)
        for _ in range(self.max_iter):
            few = rows[inside]
            system = penalty + few.T @ few / len(known)
            weights = np.linalg.lstsq(system, few.T @ sides[inside] / len(known), rcond=None)[0]
            now = sides * (rows @ weights) < 1
            if (now == inside).all():
                break
            inside = now
        return np.asarray(classes[(X @ weights[:d] + weights[d] > 0).astype(int)])
