"""Maximum margin: cutting planes from several starts on a sample, then from the best ends on more rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine.data.node import Node
from ravine.data.principal import principal
from ravine.data.query import Query
from ravine.optimize.cutting_plane import Found, Planes, cutting_planes, two_means
from ravine.split.projection import USEFUL
from ravine.split.search import Outcome, Verbs
from ravine.split.starts import between_directions
from ravine.split.support import support_planes

AUTO_C = 10.0  # default C, in units of one over the first principal variance (benchmarks/RESULTS.md)
AUTO_BALANCE = 0.03  # default bound on the mean of f; rows on the margin have |f| = 1 (benchmarks/RESULTS.md)


@dataclass(frozen=True)
class MarginMethod(Verbs):
    """Solve the maximum margin problem from 2-means and principal directions, in the same passes.

    Among the ends with enough weight on both sides, the lowest objective is the best; it is resumed on more
    rows with its active constraints. Labels add starts, the planes of a support vector machine on the labeled
    rows, and are the first criterion: the best end has the fewest pairs of different classes on one side.
    """

    C: float | None = None
    balance: float | None = None
    epsilon: float = 0.01
    n_init: int = 4
    max_iter: int = 50
    name: str = "maximum margin"

    samples = True
    takes_labels = True

    def starts(self, node: Node) -> Query[tuple[Node, list[Planes]]]:
        """Return 2-means, principal directions, directions between them, and the planes of the labels."""
        found = yield from principal(node, max(1, self.n_init - 1))
        node = replace(node, deviation=float(found.deviations[0]))
        useful = found.directions[found.deviations > USEFUL * node.deviation]
        more = between_directions(useful, self.n_init - 1 - len(useful), node.rng("starts"))
        directions = [*useful, *more] if self.n_init > 1 else []
        clusters = yield from two_means(node, found.directions[0])
        labeled = [Planes.one(w, b) for w, b in support_planes(node)]
        return node, [clusters, *(Planes.one(v, 0.0) for v in directions), *labeled]

    def solve(self, node: Node, start: Planes) -> Query[Found]:
        """Run the cutting planes from one start."""
        unit = node.standardization.unit
        C = AUTO_C / node.deviation**2 if self.C is None else self.C * unit * unit
        return (yield from self._run(node, start, Planes.zero(node.n_features), C))

    def choose(self, node: Node, ends: Sequence[Found]) -> Query[list[Found]]:
        """Return the ends, those with the fewest labeled pairs together first, then by objective."""
        yield from ()
        allowed = [end for end in ends if self._splits(end, node)]
        return sorted(allowed, key=lambda end: self._rank(end, node))

    def resume(self, node: Node, end: Found, last: bool) -> Query[Found]:
        """Continue with the active constraints: they are stored as planes, so they apply to any rows."""
        return (yield from self._run(node, end.state.plane, end.state.constraints[end.active], end.C))

    def finish(self, node: Node, end: Found) -> Query[Outcome | None]:
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
                "support": float(end.state.weight[-1]),
                "slack": end.state.slack,
                "violation": end.violation,
                "C": end.C / unit / unit,
                "rounds": float(len(end.history)),
            },
        )

    def _run(self, node: Node, start: Planes, constraints: Planes, C: float) -> Query[Found]:
        bounds = {"C": C, "balance": self._balance, "epsilon": self.epsilon}
        return (yield from cutting_planes(node, start, constraints, max_iter=self.max_iter, **bounds))

    def _rank(self, end: Found, node: Node) -> tuple[float, float]:
        plane = end.state.plane
        if node.labels is None:
            return 0.0, end.objective
        right = node.standardized_labels @ plane.w[0] + plane.b[0] > 0
        return node.labels.pairs_together(right), end.objective

    @property
    def _balance(self) -> float:
        return AUTO_BALANCE if self.balance is None else self.balance

    def _splits(self, end: Found, node: Node) -> bool:
        """Return whether an end has enough weight on both sides, and is better than w = 0, not a split."""
        trivial = end.C * (1.0 - self._balance)
        right = end.state.right
        return end.objective < trivial and min(right, node.total - right) >= node.min_weight
