"""Maximin separation probability: the hyperplane whose sides have the best worst-case separation.

Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import Node, Opened
from ravine.data.principal import power_samples, principal
from ravine.data.query import Query, gather
from ravine.data.sample import Sample
from ravine.data.standardization import Standardization
from ravine.exceptions import InvalidInputError
from ravine.index.density import bandwidth
from ravine.optimize.alternation import (
    AlternationEnd,
    BoundStep,
    MinimaxStep,
    alternate,
    two_means,
)
from ravine.optimize.minimax import MAX_FEATURES
from ravine.optimize.sides import Cut, LineMoments, Side, SideSums, kappa, variance
from ravine.split.boundary import Hyperplane
from ravine.split.labeled import support_planes
from ravine.split.principal import PrincipalMethod
from ravine.split.search import BaseMethod, Outcome
from ravine.split.starts import small_sample

SOLVERS = ("mpm", "gep", "eig")


@dataclass(frozen=True)
class SeparationMethod(BaseMethod):
    """Find the split with the highest separation probability, by the solver `mpm`, `gep` or `eig`.

    `mpm` and `gep` start from 2-means and alternate between the hyperplane for the sides and the sides of the
    hyperplane. They standardize every column of the node to unit variance, so that the regularizer
    lambda diag(covariance) is lambda times the identity.

    Labels add starts, the planes of a support vector machine on the labeled rows. The best of several ends
    (for `eig`, of several eigenvectors) leaves the fewest pairs of different classes on one side.
    """

    solver: str = "mpm"
    regularization: float = 1.0
    min_share: float = 0.05
    n_init: int = 4
    max_iter: int = 50
    samples: bool = True
    budget: bool = True

    takes_labels = True

    @property
    def name(self) -> str:
        return f"maximin separation, {self.solver}"

    def fallbacks(self) -> Sequence[PrincipalMethod]:
        """Return, for `eig`, the valley along a principal direction: the mean may lie within a cluster."""
        return [PrincipalMethod("density")] if self.solver == "eig" else []

    def ahead(self, node: Node) -> Sequence[Sample]:
        """Return the sample of the eigenvectors of `eig`."""
        return power_samples(node) if self.solver == "eig" else []

    def prepare(self, opened: Opened) -> Query[SeparationMethod]:
        """Search all rows at once where samples do not help: for `eig`."""
        yield from ()
        return replace(self, samples=False) if self.solver == "eig" else self

    def starts(self, node: Node) -> Query[tuple[Node, list[Hyperplane | FloatArray]]]:
        """Return the planes of 2-means and of the labels, or eigenvectors for `eig`."""
        if self.solver == "eig":
            unit = replace(node, measured=unit_variances(node))
            found, along = yield from gather([principal(unit, self.n_init), principal(node, 1)])
            node = replace(node, deviation=float(along.deviations[0]))
            own = node.standardization
            return node, list(found.directions * (own.deviation * own.inverse_scale) ** 2)
        if node.n_features > MAX_FEATURES:
            raise InvalidInputError(
                f"solver={self.solver!r} needs matrices of n_features x n_features and takes at most "
                f"{MAX_FEATURES} features, got {node.n_features}: use solver='eig'"
            )
        found = yield from principal(node, self.n_init)
        node = replace(node, deviation=float(found.deviations[0]))
        few = (yield from small_sample(node)) if self.samples else node
        cut = yield from two_means(few, found.directions)
        start = Hyperplane.of(few.standardization, *cut, few.pivot)
        if few is not node:
            end = yield from self.solve(few, start)
            start = start if end is None else _hyperplane(end)
        if node.labels is None:
            return node, [start]
        labeled = [Hyperplane.of(node.standardization, w, -b, node.pivot) for w, b in support_planes(node)]
        return node, [start, *labeled]

    def solve(self, node: Node, start: Hyperplane | FloatArray) -> Query[AlternationEnd | None]:
        """Alternate from a plane; one pass per round for mpm, two for gep.

        For `eig` the start is the solution (Theorem 3): the indicator of the sides is the top eigenvector q
        of X (X'X + lambda Lambda)^-1 X'. With u = X'q this is X'X y = mu Lambda y for
        y = (X'X + lambda Lambda)^-1 u, for any lambda: y is the first principal direction of the rows with
        unit variances, and u is Lambda y. So no (n, n) matrix is needed, and above 256 columns no (d, d)
        matrix either. Rows are divided by the sign of X u, as in the paper.
        """
        own, squares = unit_variances(node), self.solver == "mpm"
        if isinstance(start, np.ndarray):
            return AlternationEnd(own, start, 0.0, 1, "the relaxed problem has a closed solution")
        cut = _cut(own, start)
        first, answer = yield node.ask(SideSums(own, cut, squares=squares), SideSums(own, None))
        whole = Side.of(answer)
        step = (
            MinimaxStep(own, whole, self.regularization)
            if squares
            else BoundStep(node, own, whole, self.regularization, self.min_share)
        )
        return (
            yield from alternate(
                node, own, step, whole, cut, Side.of(first), max_iter=self.max_iter, budget=self.budget
            )
        )

    def choose(self, node: Node, ends: Sequence[AlternationEnd | None]) -> Query[list[AlternationEnd]]:
        """Return the ends with the fewest labeled pairs together first.

        With `eig`, ends with equally many are ordered by their separation probability, the highest first.
        """
        own = unit_variances(node)
        there = [end for end in ends if end is not None]
        if self.solver != "eig":
            return sorted(there, key=lambda end: _pairs_together(node, own, end))
        answers = yield node.ask(*(LineMoments(own, (end.direction, 0.0)) for end in there))
        enough = max(self._min_weight(node), np.finfo(float).tiny)

        def rank(candidate: tuple[AlternationEnd, FloatArray]) -> tuple[float, float]:
            end, sides = candidate
            ridge = self.regularization * float(end.direction @ end.direction)
            return _pairs_together(node, own, end), -kappa(sides, ridge)

        allowed = [(end, sides) for end, (sides,) in zip(there, answers, strict=True)]
        allowed = [(end, sides) for end, sides in allowed if sides[:, 0].min() >= enough]
        return [end for end, _ in sorted(allowed, key=rank)]

    def resume(self, node: Node, end: AlternationEnd, last: bool) -> Query[AlternationEnd | None]:
        """Continue from the sides of the hyperplane that was found on fewer rows."""
        found = yield from self.solve(node, _hyperplane(end))
        return None if found is None else replace(found, n_iter=end.n_iter + found.n_iter)

    def finish(self, node: Node, end: AlternationEnd) -> Query[Outcome | None]:
        """Return the plane with the separation probability of its exact sides."""
        own = node.standardization
        direction = own.directions(unit_variances(node).normals(end.direction))
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            return None
        direction, threshold = direction / length, end.threshold / length
        ((sides,),) = yield node.ask(LineMoments(own, (direction, threshold)))
        if sides[:, 0].min() < max(self._min_weight(node), np.finfo(float).tiny):
            return None
        ridge = self.regularization * float(np.sum((direction * own.deviation * own.inverse_scale) ** 2))
        error_bound = 1.0 / (1.0 + kappa(sides, ridge) ** 2)
        # The separation probability is invariant under invertible linear maps of the rows, so that rows may
        # hardly vary along the normal: the bandwidth is proportional to the deviation along it.
        h = bandwidth(math.sqrt(max(variance(sides.sum(axis=0)), 0.0)), own.total)
        return Outcome(direction, threshold, error_bound, end.status, end.n_iter, bandwidth=h)

    def _min_weight(self, node: Node) -> float:
        return max(node.min_weight, self.min_share * node.total)


def unit_variances(node: Node) -> Standardization:
    """Return the standardization with which every column of the node has unit variance."""
    own = node.standardization
    return replace(own, inverse_scale=1.0 / np.where(own.varies, own.deviation, np.inf))


def _hyperplane(end: AlternationEnd) -> Hyperplane:
    """Return an end as a hyperplane in raw columns, for rows with another standardization."""
    own = end.standardization
    return Hyperplane.of(own, end.direction, end.threshold, own.mean)


def _cut(own: Standardization, plane: Hyperplane) -> Cut:
    """Return a hyperplane as direction and threshold of a standardized space."""
    return own.directions(plane.normal) / own.unit, plane.about(own.mean).threshold / own.unit


def _pairs_together(node: Node, own: Standardization, end: AlternationEnd) -> float:
    """Return the weight of the labeled pairs of different classes on one side of an end."""
    if node.labels is None:
        return 0.0
    return node.labels.pairs_together(own.apply(node.labels.rows) @ end.direction > end.threshold)
