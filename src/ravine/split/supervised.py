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
from ravine.split.search import Outcome, Verbs
from ravine.split.split import Split
from ravine.split.support import supervised_plane

FEW_LABELS = 20.0  # most weight of the labeled rows of a boundary with which a valley may be better
VALLEY_DEPTH = 0.4  # least depth of a valley that is better than the supervised boundary
DEEPER = 0.2  # by how much its depth has to exceed that of the supervised boundary
SPARSER = 0.5  # by how much the logarithm of its density has to be lower
FITTED = "fitted to the labels"


@dataclass(frozen=True)
class SupervisedMethod(Verbs):
    """Halfway between a linear support vector machine and a logistic regression on the labeled rows."""

    bandwidth_factor: float
    right: tuple[int, ...]

    takes_labels = True
    name = "supervised"

    def starts(self, node: Node) -> Query[tuple[Node, Sequence[tuple[FloatArray, float]]]]:
        """Return the plane of the labels, if there is one."""
        found = yield from principal(node, 1)
        assert node.labels is not None
        right = sides_of(node.labels, self.right) > 0
        plane = supervised_plane(node.standardized_labels, right, node.labels.weights)
        return replace(node, deviation=float(found.deviations[0])), [] if plane is None else [plane]

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


def is_better(valley: Split, supervised: Split) -> bool:
    r"""Return whether there is enough evidence for a valley to prefer it to the supervised boundary.

    With D the depth (`quality`) and I the density (`value`) of either boundary: the valley v is preferred to
    the supervised boundary s if

    .. math:: D_v \ge 0.4, \quad D_v - D_s \ge 0.2, \quad \log I_s - \log I_v \ge 0.5.

    A supervised boundary that already runs through a valley as deep has nothing to gain.
    """
    if valley.quality < max(VALLEY_DEPTH, supervised.quality + DEEPER):
        return False
    return valley.value <= supervised.value * math.exp(-SPARSER)
