"""Maximum margin clustering by iterative support vector regression (iSVR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

Array = np.ndarray[Any, Any]


@dataclass
class IterSVR:
    """Iterative support vector regression, on scikit-learn's SVR.

    Zhang, Tsang, Kwok: Maximum margin clustering made practical. ICML, 2007. Starting from k-means, fit the
    sides (+1 and -1) by an SVR with the Laplacian loss (epsilon = 0), move the bias to where the loss of the
    sides that it makes is least among those that leave `1/2 - balance` of the rows on either side, and take
    those sides, until they stay. One scale for all columns makes their mean variance 1. Of more than
    `max_rows` rows, the regression sees a random part.
    """

    kernel: str = "linear"
    C: float = 1.0
    gamma: float = 1.0  # in units of 1 / columns, for kernel="rbf"
    balance: float = 0.3
    max_iter: int = 15
    max_rows: int = 20_000

    def fit_predict(self, X: Any) -> Array:
        """Return the side of every row."""
        X = X / np.sqrt(StandardScaler(with_mean=False).fit(X).var_.mean())
        sides = 2.0 * KMeans(2, n_init=10, random_state=0).fit_predict(X) - 1.0
        n = X.shape[0]
        part = np.random.default_rng(0).permutation(n)[: self.max_rows] if n > self.max_rows else np.arange(n)
        for _ in range(self.max_iter):
            if len(np.unique(sides[part])) < 2:
                break
            model = SVR(kernel=self.kernel, C=self.C, epsilon=0.0, gamma=self.gamma / X.shape[1])
            score = model.fit(X[part], sides[part]).predict(X)
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
        middles = middles[:: -(-len(middles) // 2000)]  # at most 2000 of them
        losses = [np.abs(np.abs(score - t) - 1.0).mean() for t in middles]
        return float(middles[int(np.argmin(losses))])
