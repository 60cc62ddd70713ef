"""Rows that count several times: how many different rows there are, and what they weigh.

A row of weight k and k copies of it are the same. Copies say nothing new about the distribution of the rows,
but they make the bandwidth smaller, so that the places between the different rows become gaps. Reference rows
have to show the same gaps: they are as many as there are different rows, with the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import Node
from ravine.data.standardization import Standardization
from ravine.evidence.ellipsoid import scaled
from ravine.evidence.margins import FEW_VALUES, SETTLED_DIGITS, settled

FILLED_SHARE = 0.5  # least share of the places of a grid that have rows: otherwise the values are no grid
ON_GRID = 1e-3  # of a step: values of a grid are that near to its places
KEYS = 2  # random projections that tell rows apart: with one, two of 8192 rows may be alike by chance


def effective_number(weights: FloatArray) -> float:
    """Return the number of rows of equal weight that say as much (Kish): (sum of w)^2 / (sum of w^2).

    >>> effective_number(np.array([2.0, 2.0, 2.0])), effective_number(np.array([1e300, 1.0]))
    (3.0, 1.0)
    """
    relative = weights / weights.max()
    return float(relative.sum() ** 2 / (relative @ relative))


@dataclass(frozen=True)
class Copies:
    """The weights of the different rows of a sample, the largest first, and the share of different rows.

    The weights are None if every row counts once.
    """

    weights: FloatArray | None = None
    share: float = 1.0

    def n_different(self, node: Node) -> float:
        """Return how many different rows a node has."""
        return node.total if self.weights is None else self.share * node.n_rows

    def n_effective(self, n_rows: float | None = None) -> float | None:
        """Return the effective number of different rows of the sample, or of so many rows; None if single."""
        if self.weights is None:
            return None
        factor = 1.0 if n_rows is None else max(self.share * n_rows / len(self.weights), 1.0)
        return factor * effective_number(self.weights)

    def of_rows(self, n: int) -> FloatArray | None:
        """Return the weights of n rows of the same distribution of weights.

        >>> Copies(np.array([3.0, 1.0])).of_rows(4).tolist()
        [3.0, 3.0, 1.0, 1.0]
        """
        if self.weights is None:
            return None
        place = (np.arange(n) + 0.5) / n * len(self.weights)
        return np.asarray(self.weights[place.astype(np.int64)])


def copies_of(rows: Any, weights: FloatArray, own: Standardization) -> Copies:
    """Return the copies among sampled rows, dense or CSR, none of which has a weight of 0.

    In a table of discrete columns only, equal rows are no copies: other rows may have the same values.
    """
    mass = np.sort(np.bincount(_groups(scaled(rows, own)), weights).astype(np.float64))[::-1]
    if len(mass) == len(weights) and (weights == 1.0).all():
        return Copies()
    if isinstance(rows, np.ndarray) and _all_discrete(rows[:, own.varies], len(mass)):
        return Copies()
    return Copies(mass, len(mass) / len(weights))


def _groups(rows: Any) -> Any:
    """Return the number of the different row that every row is; rounding makes no difference."""
    keys = np.asarray(rows @ np.random.default_rng(0).standard_normal((rows.shape[1], KEYS)))
    order = np.lexsort(keys.T)
    steps = np.abs(np.diff(keys[order], axis=0)) > 10.0**-SETTLED_DIGITS * np.abs(keys).max(axis=0)
    found = np.zeros(len(keys), dtype=np.int64)
    found[order[1:]] = np.cumsum(steps.any(axis=1))
    return found


def _all_discrete(rows: FloatArray, n_different: int) -> bool:
    """Return whether all columns have few values, values that different rows share, or those of a grid."""
    return all(_is_discrete(np.unique(column), n_different) for column in settled(rows).T)


def _is_discrete(values: FloatArray, n_different: int) -> bool:
    if len(values) <= max(FEW_VALUES, n_different / 2):
        return True
    places = (values - values[0]) / np.diff(values).min()
    on_grid = np.abs(places - np.round(places)).max() < ON_GRID
    return bool(on_grid and len(values) >= FILLED_SHARE * (places[-1] + 1))
