"""Maximin separation: alternate between two sides and the hyperplane that separates them best.

Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.node import LOCAL_CELLS, Node, sample
from ravine.data.profile import MAX_BINS, REACH, Grid, ProfileSum
from ravine.data.query import Query
from ravine.data.standardization import Standardization
from ravine.optimize.descent import ITERATION_LIMIT
from ravine.optimize.minimax import SINGULAR, minimax
from ravine.optimize.pursuit import (
    FULL_STEPS,
    PASS_LIMIT,
    limit_steps,
    standardize,
    with_standardized_rows,
)
from ravine.optimize.sides import Cut, Side, SideSums

LLOYD_ROUNDS = 50  # most rounds of the 2-means start
SWITCHED = 1e-3  # share of the weight: rounds end when rows of less weight change side
START_SWITCHED = 0.01  # the same for 2-means: with 0.001 the mean quality on labeled sets is 0.004 lower


@dataclass(frozen=True)
class AlternationEnd:
    """A hyperplane w . z = threshold in the standardized space, the number of rounds, and why they ended."""

    standardization: Standardization
    direction: FloatArray
    threshold: float
    n_iter: int
    status: str


def two_means(node: Node, starts: FloatArray) -> Query[Cut]:
    """Run 2-means from hyperplanes through the mean, across some directions; return the best boundary.

    It has the least scatter within its two sides. Many rows are sampled, as the boundary is only a start.
    """
    rows = with_standardized_rows(node).standardized
    if rows is None:
        few = yield from sample(node, max(2, LOCAL_CELLS // node.n_features), "2-means")
        assert isinstance(few.rows, MemoryRows)
        rows = standardize(few.rows, node.standardization)
    ends = [rows.lloyd(start, LLOYD_ROUNDS, START_SWITCHED) for start in starts]
    normal, threshold, _ = max(ends, key=lambda end: end[2])
    return normal, threshold


class MinimaxStep:
    """Half of a round, from two sides to the hyperplane that separates them best: the minimax machine.

    It needs the second moments of the sides (`squares`), and no pass.
    """

    passes, squares = 0, True

    def __init__(self, own: Standardization, whole: Side, regularization: float) -> None:
        self.whole, self.balance, self.slope = whole, 0.5, -1.0
        self.varies, self.regularization = np.flatnonzero(own.varies), regularization

    def take(self, right: Side) -> Query[Cut | None]:
        """Return direction and threshold, given the moments of the right side."""
        yield from ()
        left = self.whole - right
        spread = [side.covariance(self.varies) for side in (left, right)]
        for matrix in spread:
            matrix[np.diag_indices(len(self.varies))] += self.regularization
        apart = (right.mean - left.mean)[self.varies]
        machine = minimax(spread[0], spread[1], apart, self.balance, self.slope)
        self.balance, self.slope = machine.balance, machine.slope
        w = np.zeros(len(right.total))
        w[self.varies] = machine.direction
        return w, float(w @ right.mean) - machine.reach


class BoundStep:
    """The same by a lower bound of MSP (Equations 4, 5): Fisher's direction, the best threshold along it."""

    passes, squares = 1, False

    def __init__(
        self, node: Node, own: Standardization, whole: Side, regularization: float, min_share: float
    ) -> None:
        self.node, self.own, self.whole = node, own, whole
        self.regularization, self.min_share = regularization, min_share
        self.varies = np.flatnonzero(own.varies)
        self.covariance = whole.covariance(self.varies)
        ridge = max(regularization, SINGULAR) * np.eye(len(self.varies))
        self.factor = cho_factor(self.covariance + ridge)

    def take(self, right: Side) -> Query[Cut | None]:
        """Return direction and threshold, or None if no threshold leaves enough on both sides."""
        left_mean = (self.whole.total - right.total) / (self.whole.weight - right.weight)
        short = cho_solve(self.factor, (right.mean - left_mean)[self.varies])
        short /= np.linalg.norm(short)
        w = np.zeros(len(right.total))
        w[self.varies] = short
        variance = float(short @ self.covariance @ short)
        reach = REACH * math.sqrt(variance)
        grid = Grid(-reach, 2 * reach / MAX_BINS, MAX_BINS)  # the threshold lies between two bins
        ((mass, moment, _),) = yield self.node.ask(ProfileSum(self.own, w, grid, with_rows=False))
        min_weight = self.min_share * self.own.total
        threshold = best_threshold(grid, mass, moment, variance + self.regularization, min_weight)
        return None if threshold is None else (w, threshold)


def alternate(
    node: Node,
    own: Standardization,
    step: MinimaxStep | BoundStep,
    whole: Side,
    cut: Cut,
    right: Side,
    *,
    max_iter: int,
    budget: bool = True,
) -> Query[AlternationEnd | None]:
    """Alternate between the hyperplane for two sides and the sides of the hyperplane.

    A pass sums only the rows that change side, and `right` is updated by them. On all
    rows of a large node, rounds end with the hyperplane that the budget of passes still allows, if there is
    one.
    """
    most = (FULL_STEPS + 1) // (step.passes + 1)  # passes are for planes and for the sides of planes
    last = limit_steps(node, max_iter + 1, most) if budget else max_iter + 1
    for n_iter in range(1, max_iter + 1):
        if min(whole.weight - right.weight, right.weight) <= 0.0:
            return None
        taken = yield from step.take(right)
        if taken is None:
            return None
        before, cut = cut, taken
        if n_iter == last:
            return AlternationEnd(own, *cut, n_iter, PASS_LIMIT)
        (answer,) = yield node.ask(SideSums(own, cut, before, step.squares))
        if answer[0][1] <= SWITCHED * own.total:
            return AlternationEnd(own, *cut, n_iter, "converged: no row changes side")
        right = right + Side.of(answer)
    return AlternationEnd(own, *cut, max_iter, ITERATION_LIMIT)


def best_threshold(
    grid: Grid, mass: FloatArray, moment: FloatArray, variance: float, min_weight: float
) -> float | None:
    """Return the threshold of binned centered points with the highest bound on MSP (Equation 4), or None.

    `variance` is that of all points plus the regularizer; each side needs a mass of at least `min_weight`.
    """
    full = np.flatnonzero(mass)
    weight, first = np.cumsum(mass[full])[:-1], np.cumsum(moment[full])[:-1]
    total = float(mass.sum())
    share = weight / total
    apart = (moment.sum() - first) / (total - weight) - first / weight
    smaller = np.minimum(share, 1 - share)
    bound = apart**2 / (2 / smaller * variance - 2 * (1 - smaller) * apart**2)
    allowed = smaller * total >= max(min_weight, np.finfo(float).tiny)
    if not allowed.any():
        return None
    k = int(np.argmax(np.where(allowed, bound, -np.inf)))
    centers = moment[full] / mass[full]
    # The middle between the two bins' centers of mass, but outside of both bins, so that the sides are exact.
    low, high = grid.low + grid.width * (full[k] + 1), grid.low + grid.width * full[k + 1]
    return float(min(max((centers[k] + centers[k + 1]) / 2, low), high))
