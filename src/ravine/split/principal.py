"""Principal direction divisive partitioning: cut across the first principal component.

Boley: Principal Direction Divisive Partitioning. Data Mining and Knowledge Discovery 2(4), 1998 (PDDP);
Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
43(10), 2010 (dePDDP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ravine.data.blocks import Query, RowBlocks
from ravine.data.standardization import Standardization, principal, standardization_of
from ravine.index.density import MinimumDensityIndex, bandwidth, relative_depth
from ravine.optimize.pursuit import View, project
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.labels import Labels


@dataclass(frozen=True)
class PrincipalSplitter:
    """Cuts at the mean of the first principal component (PDDP) or at its lowest density valley (dePDDP)."""

    threshold: str = "mean"
    bandwidth_factor: float = 1.0
    standardize: bool = True

    def wider(self) -> tuple[()]:
        """Return nothing: the whole principal component is searched as it is."""
        return ()

    def steered(self, labels: Labels) -> None:
        """Return nothing: the direction is that of the rows, and labels cannot turn it."""

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the split in three passes: moments, direction (12 passes above 256 features), cut.

        Its value is what the paper's order goes by, least first: minus the root of the scatter for PDDP, the
        density at the cut for dePDDP.
        """
        standardization = yield from standardization_of(rows, root, self.standardize)
        if not (standardization.inverse_scale > 0).any():
            return standardization, None
        found = yield from principal(rows, standardization, 1, rng)
        direction = found.directions[0]
        h = bandwidth(float(found.deviations[0]), standardization.total, self.bandwidth_factor)
        index = MinimumDensityIndex(h, alpha=np.inf)
        view = View(standardization, float(found.deviations[0]))
        projected = yield from project(view, index.resolution, direction)
        profile = projected.profile
        if self.threshold == "mean":
            left = float(profile.mass[profile.points <= 0].sum())
            threshold = 0.0 if min(left, profile.total - left) >= min_weight else None
            value = -standardization.unit * math.sqrt(found.scatter)
        else:
            threshold = index.lowest_valley(profile, min_weight)
            value = (
                0.0
                if threshold is None
                else math.exp(index.log_density(profile, threshold)) / standardization.unit
            )
        if threshold is None:
            return standardization, None
        return standardization, Split(
            boundary=Hyperplane.of(standardization, direction, threshold, (root or standardization).mean),
            direction=direction,
            method=f"principal direction, cut at the {self.threshold}",
            value=value,
            quality=relative_depth(profile, threshold, index.bandwidth),
            gradient_norm=np.nan,
            status="the direction is the first principal component",
            n_iter=0,
        )
