r"""The penalty of the supervised boundary, chosen by how well it predicts labeled rows that are left out.

A penalty is c in C = c / (mean squared length of the rows). For every c the logistic regression is solved
once; that without row i has nearly the value

.. math:: z_i + \frac{C h_i \ell'_i}{1 - C h_i \ell''_i}, \qquad h_i = x_i^T H^{-1} x_i,

at row i, with :math:`z_i` the value of the one with it, :math:`\ell` the logistic loss and H the Hessian of
the objective (one step of Newton's method; Rad, Maleki: A Scalable Estimate of the Out-of-Sample Prediction
Error via Approximate Leave-One-Out Cross-Validation. JRSS B 82(4), 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ravine._validate import FloatArray
from ravine.data.node import Labels, Node
from ravine.split.labeled import sides_of
from ravine.split.support import logistic, mean_square

LABEL_PENALTY = 20.0  # the penalty c if labels are few
PENALTIES = (20.0, 10.0, 50.0, 5.0, 150.0)  # the penalties c to choose from; of equal ones the first is taken
PRIOR = 1.0  # loss that a penalty has to gain for every squared unit of log(c / 20)
ENOUGH_LABELS = 10.0  # weight of the labels per class from which they choose the penalty
MOST_ROWS = 1000  # labeled rows of a boundary, at most, that choose it: with more it hardly matters
SAME_LOSS = 1e-6  # difference of two losses that is rounding


def are_enough(labels: Labels) -> bool:
    """Return whether there are enough labels per class to choose the penalty."""
    return float(labels.weights.sum()) >= ENOUGH_LABELS * labels.n_classes


def penalty_losses(node: Node, right: tuple[int, ...]) -> FloatArray:
    """Return the loss of every penalty on the labeled rows of a measured node, each of them left out.

    More than 1000 rows prefer none: all losses are 0.
    """
    assert node.labels is not None
    rows, on_right = node.standardized_labels, sides_of(node.labels, right) > 0
    if len(rows) > MOST_ROWS:
        return np.zeros(len(PENALTIES))
    if rows.shape[1] > rows.shape[0]:  # as many columns as rows, with the same inner products
        rows = np.linalg.qr(rows.T)[1].T
    square = mean_square(node)
    return np.array([left_out_loss(rows, on_right, node.labels.weights, c / square) for c in PENALTIES])


def left_out_loss(rows: FloatArray, right: npt.NDArray[np.bool_], weights: FloatArray, C: float) -> float:
    """Return the sum of the logistic losses of all rows, each by a regression without one copy of it."""
    normal, offset = logistic(rows, right, weights, C)
    values = rows @ normal + offset
    chance = expit(values)
    slope, curvature = chance - right, chance * (1.0 - chance)
    with_one = np.column_stack([rows, np.ones(len(rows))])
    hessian = C * (with_one.T * (weights * curvature)) @ with_one
    hessian[np.diag_indices(len(hessian) - 1)] += 1.0
    hessian[-1, -1] += np.finfo(float).eps  # the offset has no penalty, and may have no curvature
    leverage = (
        C * np.minimum(1.0, weights) * np.sum(with_one * np.linalg.solve(hessian, with_one.T).T, axis=1)
    )
    left_out = values + leverage * slope / np.maximum(1.0 - leverage * curvature, np.finfo(float).eps)
    return float(weights @ np.logaddexp(0.0, np.where(right, -left_out, left_out)))


def best_penalty(losses: Sequence[FloatArray]) -> float:
    """Return the penalty with the least sum of losses; one far from 20 has to gain more.

    >>> best_penalty([np.array([9.0, 8.9, 9.0, 9.0, 9.0])]), best_penalty([np.array([9.0, 8.0, 9, 9, 9])])
    (20.0, 10.0)
    """
    sums = np.sum(losses, axis=0) if len(losses) else np.zeros(len(PENALTIES))
    sums = sums + [PRIOR * math.log(c / LABEL_PENALTY) ** 2 for c in PENALTIES]
    return PENALTIES[int(np.argmax(sums <= sums.min() + SAME_LOSS))]
