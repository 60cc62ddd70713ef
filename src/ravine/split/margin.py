"""Maximum margin: cutting planes from several starts on a sample, then from the best ends on more rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine.data.node import Node
from ravine.data.principal import principal
from ravine.data.query import Query, gather
from ravine.optimize.alternation import two_means
from ravine.optimize.cutting_plane import CuttingPlaneEnd, LinearFunctions, cutting_planes
from ravine.optimize.pursuit import limit_status, limit_steps
from ravine.split.labeled import support_planes
from ravine.split.projection import USEFUL, between_directions
from ravine.split.search import BaseMethod, Outcome
from ravine.split.starts import random_directions, small_sample

AUTO_C = 10.0  # default C, in units of one over the first principal variance (benchmarks/RESULTS.md)
AUTO_BALANCE = 0.03  # default bound on the mean of f; rows on the margin have |f| = 1 (benchmarks/RESULTS.md)
FINALISTS = 2  # starts that are continued after the comparison on a small sample


@dataclass(frozen=True)
class Start:
    """The plane at whose signs a run starts, the constraints that it starts with, and C."""

    plane: LinearFunctions
    constraints: LinearFunctions
    C: float

    @classmethod
    def after(cls, end: CuttingPlaneEnd) -> Start:
        """Return the start with the active constraints of an end: planes, so that they apply to any rows."""
        return cls(end.state.plane, end.state.constraints[end.active], end.C)


@dataclass(frozen=True)
class MarginMethod(BaseMethod):
    """Solve the maximum margin problem from 2-means and principal directions, or from random planes.

    All starts share the passes. Among the ends with enough weight on both sides, the lowest objective is the
    best; it is resumed on more rows with its active constraints. Labels add starts, the planes of a support
    vector machine on the labeled rows, and are the first criterion: the best end has the fewest pairs of
    different classes on one side.
    """

    C: float | None = None
    balance: float | None = None
    balance_of_sum: bool = False
    epsilon: float = 0.01
    n_init: int = 4
    random_starts: bool = False
    max_iter: int = 50
    samples: bool = True
    name: str = "maximum margin"

    takes_labels = True

    def starts(self, node: Node) -> Query[tuple[Node, list[Start]]]:
        """Return 2-means, principal directions, directions between them, and the planes of the labels.

        If rows are many, only the best ends of runs on a small sample are returned.
        """
        found = yield from principal(node, max(1, self.n_init - 1))
        node = replace(node, deviation=float(found.deviations[0]))
        few = (yield from small_sample(node)) if self.samples else node
        if self.random_starts:
            planes = [LinearFunctions.one(v, 0.0) for v in random_directions(node, self.n_init)]
        else:
            useful = found.directions[found.deviations > USEFUL * node.deviation]
            more = between_directions(useful, self.n_init - 1 - len(useful), node.rng("starts"))
            directions = [*useful, *more] if self.n_init > 1 else []
            normal, threshold = yield from two_means(few, found.directions[:1])
            planes = [
                LinearFunctions.one(normal, -threshold),
                *(LinearFunctions.one(v, 0.0) for v in directions),
            ]
        if node.labels is not None:
            planes += [LinearFunctions.one(w, b) for w, b in support_planes(node)]
        unit, zero = node.standardization.unit, LinearFunctions.zero(node.n_features)
        C = AUTO_C / node.deviation**2 if self.C is None else self.C * unit * unit
        starts = [Start(plane, zero, C) for plane in planes]
        if few is not node and len(starts) > FINALISTS:
            ends = yield from gather([self.solve(few, start) for start in starts])
            best = yield from self.choose(few, ends)
            starts = [Start.after(end) for end in (best or ends)[:FINALISTS]]
        return node, starts

    def solve(self, node: Node, start: Start) -> Query[CuttingPlaneEnd]:
        """Run the cutting planes from one start."""
        found = yield from cutting_planes(
            node,
            start.plane,
            start.constraints,
            C=start.C,
            balance=self._balance(node),
            epsilon=self.epsilon,
            max_iter=limit_steps(node, self.max_iter) if self.samples else self.max_iter,
        )
        return replace(found, status=limit_status(node, found.status)) if self.samples else found

    def choose(self, node: Node, ends: Sequence[CuttingPlaneEnd]) -> Query[list[CuttingPlaneEnd]]:
        """Return the ends, those with the fewest labeled pairs together first, then by objective."""
        yield from ()
        allowed = [end for end in ends if self._splits(end, node)]
        return sorted(allowed, key=lambda end: self._rank(end, node))

    def resume(self, node: Node, end: CuttingPlaneEnd, last: bool) -> Query[CuttingPlaneEnd]:
        """Continue with the active constraints: they are stored as planes, so they apply to any rows."""
        return (yield from self.solve(node, Start.after(end)))

    def finish(self, node: Node, end: CuttingPlaneEnd) -> Query[Outcome | None]:
        """Return the plane with its margin."""
        yield from ()
        if not self._splits(end, node):
            return None
        w, b = end.state.plane.w[0], float(end.state.plane.b[0])
        length, unit = float(np.linalg.norm(w)), node.standardization.unit
        return Outcome(
            direction=w / length,
            threshold=-b / length,
            value=end.objective / end.C,
            status=end.status,
            n_iter=end.n_steps,
            facts={
                "margin": unit / length,
                "support": float(end.state.weight[end.state.own]),
                "slack": end.state.slack,
                "violation": end.violation,
                "C": end.C / unit / unit,
                "rounds": float(len(end.history)),
            },
        )

    def _rank(self, end: CuttingPlaneEnd, node: Node) -> tuple[float, float]:
        plane = end.state.plane
        if node.labels is None:
            return 0.0, end.objective
        right = node.standardized_labels @ plane.w[0] + plane.b[0] > 0
        return node.labels.pairs_together(right), end.objective

    def _balance(self, node: Node) -> float:
        """Return the bound on the mean of f."""
        if self.balance is None:
            return AUTO_BALANCE
        return self.balance / node.total if self.balance_of_sum else self.balance

    def _splits(self, end: CuttingPlaneEnd, node: Node) -> bool:
        """Return whether an end has enough weight on both sides, and is better than w = 0, not a split."""
        trivial = end.C * (1.0 - self._balance(node))
        right = end.state.right
        return end.objective < trivial and min(right, node.total - right) >= node.min_weight
