"""Spectral connectivity as its scale goes to zero: the hyperplane of large margin, from a univariate split.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ravine.data.node import Opened
from ravine.data.query import Query
from ravine.index.connectivity import ConnectivityIndex
from ravine.index.connectivity_loops import WIDEST_GAP
from ravine.optimize.large_margin import around_threshold, minimize_at_scale
from ravine.optimize.pursuit import PASS_LIMIT
from ravine.split.boundary import Hyperplane
from ravine.split.projection import ProjectionMethod
from ravine.split.search import Outcome, measure_boundary
from ravine.split.split import Split

CLEAR = 10.0  # least ratio of a clear gap to the spacing of the rows near it; a choice
HALVINGS = 40  # most halvings of sigma
SAME_NORMAL = 1e-3  # radians: halving ends when the normal turns by less


@dataclass(frozen=True)
class LargeMarginMethod(ProjectionMethod):
    """Decrease sigma to zero from a univariate split: the hyperplane of large margin (LMSC, Section 5).

    At every step the rows nearest to the threshold count one by one, the others as means over intervals along
    the normal; each step costs two passes. The steps of a large node are those of its largest sample, and
    only the last threshold is placed among all rows. A step that leaves less than `least_share` of the weight
    on one side is not taken, and the search ends: rows without clusters have their largest gaps at the edges.
    If the gap is not clearly wider than the spacing of the rows when sigma has come down to that width, or at
    the end, the split at the fixed scale is returned: between gaps that exist by chance, rounding would
    decide.
    """

    least_share: float = 0.25
    n_rows: int = 400

    def refine(self, opened: Opened, split: Split) -> Query[Split]:
        """Halve sigma until the normal no longer turns."""
        node = opened.node
        few = replace(opened.finest_sample, deviation=node.deviation)
        own = few.standardization
        assert isinstance(split.boundary, Hyperplane)
        sigma, beta = split.facts["sigma"] / own.unit, split.facts["beta"]
        direction, threshold = split.direction, split.boundary.about(own.mean).threshold / own.unit
        n_iter, status, norm = split.n_iter, split.status, split.gradient_norm
        near = yield from around_threshold(few, direction, threshold, self.n_rows)
        balance = min(near.smaller, self.least_share * own.total)
        for _ in range(HALVINGS):
            is_clear = near.gap > CLEAR * near.spacing
            if near.gap > WIDEST_GAP * sigma / 2.0 or (sigma < CLEAR * near.spacing and not is_clear):
                break  # the gap is exact; or only gaps that exist by chance are left to be found
            finer = ConnectivityIndex(sigma / 2.0, beta, normalized=False)
            end, descent = minimize_at_scale(near.rows, direction, finer)
            attempt = yield from around_threshold(few, end.direction, end.index_value.threshold, self.n_rows)
            if attempt.smaller < balance:
                break
            angle = math.acos(min(1.0, abs(float(end.direction @ direction))))
            near, sigma, direction = attempt, sigma / 2.0, end.direction
            n_iter, status = n_iter + descent.n_iter, descent.status
            norm = float(np.linalg.norm(descent.end_gradient))
            if angle < SAME_NORMAL:
                break
        if not node.is_local:
            middle = Hyperplane.of(own, direction, near.middle, own.mean).about(node.standardization.mean)
            own, status = node.standardization, PASS_LIMIT
            near = yield from around_threshold(node, direction, middle.threshold / own.unit, self.n_rows)
        if near.smaller < node.min_weight or not near.gap > CLEAR * near.spacing:
            return split
        margin = own.unit * near.gap / 2.0
        outcome = Outcome(
            direction=direction,
            threshold=near.middle,
            value=split.value,
            status=status,
            n_iter=n_iter,
            gradient_norm=norm,
            facts={"sigma": own.unit * sigma, "beta": beta, "margin": margin},
        )
        return (yield from measure_boundary(node, self, outcome)) or split
