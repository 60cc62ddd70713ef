"""The split of rows without a valley, for a number of clusters that was asked for.

As the bandwidth goes to zero the minimum density hyperplane becomes the maximum margin hyperplane (Pavlidis,
Hofmeyr, Tasoulis: Minimum Density Hyperplanes, Theorem 5), so that halving it finds a valley in the end,
wherever rows differ.
"""

from __future__ import annotations

from dataclasses import replace

from ravine.data.node import Opened
from ravine.data.query import Query
from ravine.index.density import BINS_PER_BANDWIDTH, MinimumDensitySchedule, bandwidth, bounded_depth
from ravine.optimize.pursuit import project
from ravine.split.principal import PrincipalMethod
from ravine.split.projection import ProjectionMethod
from ravine.split.search import BaseMethod, search_opened
from ravine.split.split import NO_VALLEY, Split

HALVINGS = (
    10  # of the bandwidth, before the lowest valley of the first component is taken, however near an end
)


def split_without_valley(opened: Opened) -> Query[Split | None]:
    """Return the minimum density split of the largest bandwidth that has one, or None if all rows are equal.

    Its quality is that at the nominal bandwidth, so it is about 0.
    """
    factors = [0.5**k for k in range(1, HALVINGS + 1)]
    methods: list[BaseMethod] = [ProjectionMethod(MinimumDensitySchedule(factor)) for factor in factors]
    last = PrincipalMethod("density", factors[-1], single_rows=True)
    for method, factor in zip([*methods, last], [*factors, factors[-1]], strict=True):
        split = yield from search_opened(opened, method)
        if split is not None:
            quality = yield from _nominal_quality(opened, split, factor)
            return replace(split, quality=quality, facts={**split.facts, NO_VALLEY: factor})
    return None


def _nominal_quality(opened: Opened, split: Split, factor: float) -> Query[float]:
    """Return the bounded relative depth at the nominal bandwidth; one pass."""
    node, own = opened.node, opened.node.standardization
    h = split.facts["bandwidth"] / own.unit / factor
    node = replace(node, deviation=h / bandwidth(1.0, own.total))
    projected = yield from project(node, h / BINS_PER_BANDWIDTH, split.direction)
    threshold = split.boundary.about(own.mean).threshold / own.unit
    return bounded_depth(projected.profile, threshold, h)
