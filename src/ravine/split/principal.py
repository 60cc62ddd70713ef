"""Principal direction divisive partitioning: cut across the first principal component.

Boley: Principal Direction Divisive Partitioning. Data Mining and Knowledge Discovery 2(4), 1998 (PDDP);
Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
43(10), 2010 (dePDDP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ravine.data.blocks import Asker, RowBlocks
from ravine.data.frame import Frame, frame_of, principal
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimise.pursuit import View, project
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.labels import Labels


@dataclass(frozen=True)
class PrincipalSplitter:
    """Cuts at the mean of the first principal component (PDDP) or at its lowest density valley (dePDDP)."""

    cut: str = "mean"
    bandwidth_factor: float = 1.0
    standardize: bool = True

    def wider(self) -> tuple[()]:
        """Return nothing: the whole principal component is searched as it is."""
        return ()

    def steered(self, labels: Labels) -> None:
        """Return nothing: the direction is that of the rows, and labels cannot turn it."""

    def search(
        self, rows: RowBlocks, root: Frame | None, least: float, rng: np.random.Generator
    ) -> Asker[tuple[Frame, Split | None]]:
        """Find the split in three passes: moments, direction (12 passes above 256 features), cut.

        Its value is what the paper's order goes by, least first: minus the root of the scatter for PDDP, the
        density at the cut for dePDDP.
        """
        frame = yield from frame_of(rows, root, self.standardize)
        if not (frame.inverse_scale > 0).any():
            return frame, None
        found = yield from principal(rows, frame, 1, rng)
        direction = found.directions[0]
        h = bandwidth(float(found.deviations[0]), frame.total, self.bandwidth_factor)
        index = MinimumDensityIndex(h, alpha=np.inf)
        view = View(frame, float(found.deviations[0]))
        seen = yield from project(view, index.resolution, direction)
        profile = seen.profile
        if self.cut == "mean":
            left = float(profile.mass[profile.points <= 0].sum())
            cut = 0.0 if min(left, profile.total - left) >= least else None
            value = -frame.unit * math.sqrt(found.scatter)
        else:
            cut = index.lowest_valley(profile, least)
            value = 0.0 if cut is None else math.exp(index.log_density(profile, cut)) / frame.unit
        if cut is None:
            return frame, None
        return frame, Split(
            boundary=Hyperplane.of(frame, direction, cut, (root or frame).mean),
            direction=direction,
            method=f"principal direction, cut at the {self.cut}",
            value=value,
            quality=index.quality(profile, cut),
            gradient_norm=np.nan,
            status="the direction is the first principal component",
            n_iter=0,
        )
