"""The transductive support vector machine, linear, with many switches at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.baselines.squared_hinge import squared_hinge, with_intercept

Array = np.ndarray[Any, Any]


@dataclass
class TSVM:
    r"""The transductive support vector machine with the squared hinge.

    .. math:: \tfrac{\lambda}{2} |w|^2 + \tfrac{1}{2 l} \sum_{i \le l} h(y_i f(x_i))
              + \tfrac{\lambda'}{2 u} \sum_{j > l} h(y_j f(x_j)), \quad h(t) = \max(0, 1 - t)^2

    over w and the labels of the u unlabeled rows, whose share of positive ones is that of the labeled rows.
    Labels of two unlabeled rows are switched where this lowers the loss, while lambda' is raised step by
    step.

    Joachims: Transductive inference for text classification using support vector machines. ICML, 1999; with
    many switches at a time, Sindhwani, Keerthi: Large scale semi-supervised linear SVMs. SIGIR, 2006.
    """

    ridge: float = 0.01
    unlabeled: float = 1.0
    max_switches: int = 10_000

    def fit_predict(self, X: Any, y: Array) -> Array:
        """Return the class of every row; `y` is -1 for a row without a label."""
        rows, penalty = with_intercept(X, self.ridge)
        known = y != -1
        classes = np.unique(y[known])
        sides = np.where(y == classes[1], 1.0, -1.0)
        free = np.flatnonzero(~known)
        normal = squared_hinge(rows[known], sides[known], np.full(known.sum(), 1 / known.sum()), penalty)
        positive = round(float((sides[known] > 0).mean()) * len(free))
        sides[free] = -1.0
        sides[free[np.argsort(-(rows[free] @ normal), kind="stable")[:positive]]] = 1.0
        costs = np.where(known, 1 / known.sum(), 0.0)
        for strength in self.unlabeled * 10.0 ** np.arange(-4, 0.5):
            costs[free] = strength / max(len(free), 1)
            for _ in range(20):
                normal = squared_hinge(rows, sides, costs, penalty)
                if not switch(sides, rows @ normal, free, self.max_switches):
                    break
        return np.asarray(classes[(rows @ normal > 0).astype(int)])


def switch(sides: Array, score: Array, free: Array, most: int) -> bool:
    """Switch pairs of unlabeled rows, one of either side, that lower the loss; return whether any did.

    A pair gains as h(-f_i) + h(f_j) < h(f_i) + h(-f_j); the greatest gains of both sides go together.
    """

    def gain(rows: Array) -> Array:
        own = np.maximum(0, 1 - sides[rows] * score[rows]) ** 2
        return np.asarray(own - np.maximum(0, 1 + sides[rows] * score[rows]) ** 2)

    up, down = free[sides[free] > 0], free[sides[free] < 0]
    up, down = up[np.argsort(-gain(up), kind="stable")], down[np.argsort(-gain(down), kind="stable")]
    number = min(len(up), len(down), most)
    lowers = gain(up[:number]) + gain(down[:number]) > 1e-12
    sides[up[:number][lowers]] = -1.0
    sides[down[:number][lowers]] = 1.0
    return bool(lowers.any())
