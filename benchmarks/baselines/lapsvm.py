"""The Laplacian support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import kneighbors_graph

from benchmarks.baselines.squared_hinge import squared_hinge, with_intercept

Array = np.ndarray[Any, Any]


@dataclass
class LapSVM:
    r"""The Laplacian support vector machine with a linear kernel.

    .. math:: \tfrac{1}{l} \sum_{i \le l} \max(0, 1 - y_i f(x_i))^2 + \gamma_A |w|^2
              + \tfrac{\gamma_I}{n} f^T L f

    with the normalized Laplacian L of the graph of nearest neighbors. Belkin, Niyogi, Sindhwani: Manifold
    regularization. JMLR 7, 2006; in the primal, as in Melacci, Belkin: Laplacian support vector machines
    trained in the primal. JMLR 12, 2011. `y` is -1 for a row without a label.
    """

    ridge: float = 0.01
    smooth: float = 1.0
    n_neighbors: int = 10
    max_iter: int = 50

    def fit_predict(self, X: Any, y: Array) -> Array:
        """Return the class of every row."""
        graph = kneighbors_graph(X, self.n_neighbors)
        rows, penalty = with_intercept(X, self.ridge)
        smooth = X.T @ (laplacian(graph.maximum(graph.T), normed=True) @ X) / len(X)
        penalty[:-1, :-1] += self.smooth * smooth
        known = np.flatnonzero(y != -1)
        classes = np.unique(y[known])
        sides = np.where(y[known] == classes[1], 1.0, -1.0)
        costs = np.full(len(known), 1 / len(known))
        normal = squared_hinge(rows[known], sides, costs, penalty, max_iter=self.max_iter)
        return np.asarray(classes[(rows @ normal > 0).astype(int)])
