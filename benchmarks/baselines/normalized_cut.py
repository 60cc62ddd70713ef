"""Normalized cut of a similarity graph into two."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

Array = np.ndarray[Any, Any]


def normalized_cut(similar: Array, *, thresholds: int = 100) -> Array:
    r"""Return the sides of the normalized cut of a graph, given as its matrix W of similarities.

    The second eigenvector y of :math:`(D - W) y = \lambda D y` is cut where

    .. math:: Ncut = cut(A, B) / assoc(A, V) + cut(A, B) / assoc(B, V)

    is least among evenly spaced quantiles. Shi, Malik: Normalized cuts and image segmentation. IEEE
    Transactions on Pattern Analysis and Machine Intelligence 22(8), 2000.
    """
    degrees = np.asarray(similar.sum(axis=1)).ravel()
    root = 1 / np.sqrt(np.maximum(degrees, 1e-300))
    second = len(degrees) - 2  # of the similarities' largest eigenvalues, the Laplacian's smallest
    y = root * eigh(similar * root[:, None] * root, subset_by_index=[second, second])[1][:, 0]
    order = np.argsort(y, kind="stable")
    costs = cut_values(similar[np.ix_(order, order)])
    places = np.unique(np.linspace(0, len(costs) - 1, thresholds).astype(int))
    last = places[np.argmin(costs[places])]
    sides = np.zeros(len(y), dtype=np.int64)
    sides[order[last + 1 :]] = 1
    return sides


def cut_values(similar: Array) -> Array:
    """Return Ncut of every cut between row i and row i + 1 of a matrix in order, i = 0 .. n - 2."""
    degrees = similar.sum(axis=1)
    left = np.cumsum(degrees)[:-1]
    within = np.cumsum(2 * np.tril(similar, -1).sum(axis=1) + np.diag(similar))[:-1]
    cut = left - within
    return np.asarray(cut / left + cut / (degrees.sum() - left))
