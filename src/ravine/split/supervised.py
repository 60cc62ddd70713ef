"""The boundary of the labeled rows alone, measured in the density of all, and when a valley is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import Labels, Node
from ravine.data.principal import principal
from ravine.data.query import Query
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimize.pursuit import project
from ravine.split.labeled import sides_of
from ravine.split.penalty import are_enough, best_penalty, penalty_losses
from ravine.split.search import BaseMethod, Outcome
from ravine.split.split import Split
from ravine.split.support import mean_square, supervised_plane

FEW_LABELS = 20.0  # most weight of the labeled rows of a boundary with which a valley may be better
VALLEY_DEPTH = 0.2  # least depth of a valley that is better than the supervised boundary
SPARSER = 0.5  # least difference of the log densities on the supervised boundary and in the valley
ROUNDING = 1e-9  # share of the weight of the labels: a difference below is rounding
FITTED = "fitted to the labels"


@dataclass(frozen=True)
class SupervisedMethod(BaseMethod):
    """The plane of a logistic regression on the labeled rows.

    `penalty` is C times the mean squared length of the rows; None is chosen by the labels, if there are
    enough of them.
    """

    bandwidth_factor: float
    right: tuple[int, ...]
    penalty: float | None = None

    takes_labels = True
    name = "supervised"

    def starts(self, node: Node) -> Query[tuple[Node, Sequence[tuple[FloatArray, float]]]]:
        """Return the plane of the labels, if there is one."""
        found = yield from principal(node, 1)
        assert node.labels is not None
        C = (self.penalty or self._own_penalty(node)) / mean_square(node)
        right = sides_of(node.labels, self.right) > 0
        plane = supervised_plane(node.standardized_labels, right, node.labels.weights, C)
        return replace(node, deviation=float(found.deviations[0])), [] if plane is None else [plane]

    def _own_penalty(self, node: Node) -> float:
        """Return the penalty that the labels of the node choose, or the default if they are few."""
        assert node.labels is not None
        return best_penalty([penalty_losses(node, self.right)] if are_enough(node.labels) else [])

    def solve(self, node: Node, start: tuple[FloatArray, float]) -> Query[tuple[FloatArray, float]]:
        yield from ()
        return start

    def finish(self, node: Node, end: tuple[FloatArray, float]) -> Query[Outcome | None]:
        """Measure the density on the plane; one pass."""
        direction, threshold = end
        own = node.standardization
        index = MinimumDensityIndex(bandwidth(node.deviation, own.total, self.bandwidth_factor), np.inf)
        projected = yield from project(node, index.resolution, direction)
        density = math.exp(index.log_density(projected.profile, threshold)) / own.unit
        return Outcome(
            direction=direction,
            threshold=threshold,
            value=density,
            status=FITTED,
            n_iter=0,
            profile=projected.profile,
            bandwidth=index.bandwidth,
            named_sides=True,
        )


def are_few(labels: Labels) -> bool:
    """Return whether labels are so few that a valley may be better than their own boundary."""
    return float(labels.weights.sum()) <= FEW_LABELS


def is_better(valley: Split, supervised: Split, labels: Labels, right: tuple[int, ...]) -> bool:
    r"""Return whether there is enough evidence for a valley to prefer it to the supervised boundary.

    With D the depth (`quality`), I the density (`value`) and m the weight of the labeled rows on the wrong
    side: the valley v is preferred to the supervised boundary s if

    .. math:: D_v \ge 0.2, \quad \log I_s - \log I_v \ge 0.5, \quad m_v \le m_s.

    A supervised boundary in a region nearly as sparse has nothing to gain, and a valley that does not
    separate the labels separates something else.
    """
    if valley.quality < VALLEY_DEPTH or valley.value > supervised.value * math.exp(-SPARSER):
        return False
    mistakes = [_mistakes(labels, right, split) for split in (valley, supervised)]
    return mistakes[0] <= mistakes[1] + ROUNDING * float(labels.weights.sum())


def _mistakes(labels: Labels, right: tuple[int, ...], split: Split) -> float:
    """Return the weight of the labeled rows on the wrong side."""
    on_right = split.boundary.signed_distance_of(labels.rows) > 0
    return float(labels.weights @ (on_right != (sides_of(labels, right) > 0)))
