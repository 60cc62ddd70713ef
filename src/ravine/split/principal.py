"""Principal direction divisive partitioning: divide across the first principal component.

Boley: Principal Direction Divisive Partitioning. Data Mining and Knowledge Discovery 2(4), 1998 (PDDP);
Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
43(10), 2010 (dePDDP).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine.data.node import Node
from ravine.data.principal import Principal, power_samples, principal
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimize.pursuit import project
from ravine.split.far import GROUP_SHARE
from ravine.split.search import BaseMethod, Outcome


@dataclass(frozen=True)
class PrincipalMethod(BaseMethod):
    """Divide at the mean of the first principal component (PDDP) or at its lowest density valley (dePDDP).

    The value gives the order in which the papers split leaves, lowest first: minus the root of the scatter
    for PDDP, the density at the threshold for dePDDP.

    The lowest valley is often the gap before a single row. So a side needs as much weight as a group far from
    all others needs to be seen by searches, unless `single_rows` may be sides, as in the paper.
    """

    threshold: str = "mean"
    bandwidth_factor: float = 1.0
    single_rows: bool = False

    @property
    def name(self) -> str:
        return f"principal direction, threshold at the {self.threshold}"

    def ahead(self, node: Node) -> Sequence[Sample]:
        return power_samples(node)

    def fallbacks(self) -> Sequence[PrincipalMethod]:
        """Return the method that looks for a valley: the mean may lie within a cluster."""
        return [replace(self, threshold="density")] if self.threshold == "mean" else []

    def starts(self, node: Node) -> Query[tuple[Node, list[Principal]]]:
        found = yield from principal(node, 1)
        return replace(node, deviation=float(found.deviations[0])), [found]

    def solve(self, node: Node, start: Principal) -> Query[Principal]:
        yield from ()
        return start

    def finish(self, node: Node, end: Principal) -> Query[Outcome | None]:
        """Find the threshold along the direction; one pass."""
        own = node.standardization
        index = MinimumDensityIndex(bandwidth(node.deviation, own.total, self.bandwidth_factor), alpha=np.inf)
        projected = yield from project(node, index.resolution, end.directions[0])
        profile = projected.profile
        if self.threshold == "mean":
            threshold: float | None = 0.0
            value = -own.unit * math.sqrt(end.scatter)
        else:
            least = 0.0 if self.single_rows else GROUP_SHARE * node.total
            threshold = index.lowest_valley(profile, max(node.min_weight, least))
            value = 0.0 if threshold is None else math.exp(index.log_density(profile, threshold)) / own.unit
        if threshold is None:
            return None
        return Outcome(
            direction=end.directions[0],
            threshold=threshold,
            value=value,
            status="the direction is the first principal component",
            n_iter=0,
            profile=profile,
            bandwidth=index.bandwidth,
        )
