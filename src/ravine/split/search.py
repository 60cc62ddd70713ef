"""The search of every method: from the rows of a node to one boundary, or to None.

    measure the node and draw samples  ->  starts  ->  solve from each  ->  choose  ->  resume on more rows
    ->  measure the boundary

A method defines how to start, solve, choose and resume; the order of these steps is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.loops import bin_points
from ravine.data.node import Node, Opened, open_node, side_by_side
from ravine.data.principal import fix_sign
from ravine.data.profile import REACH, Grid
from ravine.data.query import Additive, Answer, Query, gather
from ravine.data.sample import Sample
from ravine.index.base import Profile
from ravine.index.density import BINS_PER_BANDWIDTH, bandwidth, bounded_depth, log_odds_slope
from ravine.optimize.pursuit import project
from ravine.optimize.sides import LineMoments
from ravine.split.boundary import Boundary, Hyperplane, NearestCenter
from ravine.split.split import Split

# Most rows that all ends resumed at one stage read together. Several ends are resumed if rows are few: the
# best end on a sample may not be the best on more rows.
FINALIST_ROWS = 1 << 16


@dataclass(frozen=True)
class Outcome:
    """What a method found on all rows: a direction and a threshold in the standardized space, or centers.

    `profile` is that of the rows along the direction, if the method has it: `measure_boundary` then needs no
    pass. `bandwidth` is that of the method's own density, if it has one. With `named_sides` the method
    defines which side is the right one, and small sides are allowed, as a classifier needs it.
    """

    direction: FloatArray
    threshold: float
    value: float
    status: str
    n_iter: int
    gradient_norm: float = np.nan
    facts: Mapping[str, float] = field(default_factory=dict)
    profile: Profile | None = None
    bandwidth: float | None = None
    centers: NearestCenter | None = None
    named_sides: bool = False


class BaseMethod:
    """The steps of one method, with defaults. The types of its starts and ends are its own.

    `samples` is whether all starts are solved on samples first, and only the best ends on all rows;
    `takes_labels` whether partial labels of the node have an effect; `uses_graph` whether ends are compared
    by their cut in the neighbor graph of the node. `yield from ()` makes a function a query that asks for
    nothing.
    """

    samples = False
    takes_labels = False
    uses_graph = False

    @property
    def name(self) -> str:
        """The name of the method, for results."""
        raise NotImplementedError

    def ahead(self, node: Node) -> Sequence[Sample]:
        """Return the other samples that the search needs, besides those that it searches."""
        return ()

    def with_graph(self, graph: Any) -> BaseMethod:
        """Return the method with the neighbor graph of the node that it is going to search."""
        return self

    def prepare(self, opened: Opened) -> Query[BaseMethod | None]:
        """Return the method for this node, possibly after a search of its own; None ends the search."""
        yield from ()
        return self

    def starts(self, node: Node) -> Query[tuple[Node, Sequence[Any]]]:
        """Return the node with its first principal deviation, and the starts."""
        raise NotImplementedError

    def solve(self, node: Node, start: Any) -> Query[Any]:
        """Return the end of a run from one start."""
        raise NotImplementedError

    def solve_all(self, node: Node, starts: Sequence[Any]) -> Query[Sequence[Any]]:
        """Return the ends of the runs from all starts, side by side."""
        return (yield from gather([self.solve(node, start) for start in starts]))

    def choose(self, node: Node, ends: Sequence[Any]) -> Query[list[Any]]:
        """Return the ends that leave enough weight on both sides, the best first: here by their starts."""
        yield from ()
        return [end for end in ends if end is not None]

    def resume(self, node: Node, end: Any, last: bool) -> Query[Any]:
        """Continue from an end on fewer rows; `last` if the node has all rows."""
        yield from ()
        return end

    def finish(self, node: Node, end: Any) -> Query[Outcome | None]:
        """Return the outcome on all rows, or None if it is not a split."""
        raise NotImplementedError

    def test_quality(self, split: Split, total: float) -> float:
        """Return what the significance test compares of a split of rows of this weight, in [0, 1]."""
        return split.quality

    def fallbacks(self) -> Sequence[BaseMethod]:
        """Return methods to try if this one finds no significant split."""
        return ()


def search(node: Node, method: BaseMethod) -> Query[tuple[Opened, Split | None]]:
    """Find the best split of a node, with at least its `min_weight` on each side.

    Returns the opened node, and the split or None.
    """
    opened = yield from open_node(node, sizes_for(node, method), method.ahead(node))
    return opened, (yield from search_opened(opened, method))


def search_opened(opened: Opened, method: BaseMethod) -> Query[Split | None]:
    """Find the best split of an opened node, or None."""
    if not opened.node.standardization.varies.any():
        return None
    prepared = yield from method.prepare(opened)
    if prepared is None:
        return None
    node, best = yield from _best_ends(opened, prepared)
    if not best:
        return None
    outcome = yield from prepared.finish(node, best[0])
    return None if outcome is None else (yield from measure_boundary(node, prepared, outcome))


def _best_ends(opened: Opened, method: BaseMethod) -> Query[tuple[Node, list[Any]]]:
    """Return the node with its first principal deviation, and the ends on all its rows, the best first."""
    # A sample in which no column varies, such as one of a column that is mostly zero, cannot be searched.
    stages = [few for few in opened.samples if method.samples and few.standardization.varies.any()]
    deviation, best = yield from _search_stages(stages or [opened.node], method)
    node = replace(opened.node, deviation=deviation)
    return node, (yield from _resume(node, best, method, last=True)) if stages else best


def _search_stages(stages: Sequence[Node], method: BaseMethod) -> Query[tuple[float, list[Any]]]:
    """Search nodes, each part of the next; return the first principal deviation and the ends, best first."""
    first, starts = yield from method.starts(stages[0])
    ends = yield from method.solve_all(first, starts)
    best = yield from method.choose(first, ends)
    for larger in stages[1:]:
        larger = replace(larger, deviation=first.deviation)
        best = yield from _resume(larger, best, method, last=False)
    return first.deviation, best


def _resume(node: Node, best: Sequence[Any], method: BaseMethod, last: bool) -> Query[list[Any]]:
    """Continue from the best ends on fewer rows; return the ends, the best first."""
    few = best[: max(1, FINALIST_ROWS // node.n_rows)]  # the more rows, the fewer ends
    resumed = yield from side_by_side(node, [method.resume(node, end, last) for end in few])
    ends = [end for end in resumed if end is not None]
    return (yield from method.choose(node, ends)) if len(ends) > 1 else ends


def sizes_for(node: Node, method: BaseMethod) -> list[int]:
    """Return the sizes of the samples that are searched before all rows, the smallest first."""
    return node.sample_sizes if method.samples else []


def measure_boundary(node: Node, method: BaseMethod, outcome: Outcome) -> Query[Split | None]:
    """Return the split of an outcome, or None if a side has less than the node's minimum weight.

    Its quality is the bounded relative depth of the density of the signed distances to the boundary, with
    bandwidth 0.9 sd n^(-1/5), sd along the first principal direction, or the method's own.
    """
    own = node.standardization
    h = outcome.bandwidth or bandwidth(node.deviation, own.total)
    profile, threshold, smaller = yield from _across(node, outcome, h)
    if not outcome.named_sides and smaller < max(node.min_weight, np.finfo(float).tiny):
        return None
    direction = outcome.direction if outcome.named_sides else fix_sign(outcome.direction)
    return Split(
        boundary=_boundary(node, outcome, direction, threshold),
        direction=direction,
        method=method.name,
        value=outcome.value,
        quality=bounded_depth(profile, threshold, h),
        log_odds=log_odds_slope(profile, threshold, h) / own.unit,
        gradient_norm=outcome.gradient_norm,
        status=outcome.status,
        n_iter=outcome.n_iter,
        facts={**outcome.facts, "bandwidth": own.unit * h},
    )


def _across(node: Node, outcome: Outcome, h: float) -> Query[tuple[Profile, float, float]]:
    """Return the profile across the boundary, the threshold in it, and the weight of the lighter side.

    The weight is counted exactly, not by bins, unless the method has its own profile: if rows hardly vary
    along the direction, a bin may have rows of both sides.
    """
    own = node.standardization
    profile, threshold = outcome.profile, outcome.threshold
    if outcome.centers is not None:
        grid = Grid.around_mean(REACH * node.deviation, h / BINS_PER_BANDWIDTH)
        unit = own.unit
        ((mass, moment, sides),) = yield node.ask(DistanceSum(outcome.centers, grid, unit))
        full = np.flatnonzero(mass)
        points = moment[full] / mass[full]
        profile, threshold = Profile(points, mass[full], own.total, node.deviation), 0.0
        smaller = float(sides.min())
    elif profile is None:
        projected, smaller = yield from gather(
            [
                project(node, h / BINS_PER_BANDWIDTH, outcome.direction),
                _lighter_side(node, outcome.direction, threshold),
            ]
        )
        profile = projected.profile
    else:
        smaller = profile.smaller_side(threshold)
    return profile, threshold, smaller


def _boundary(node: Node, outcome: Outcome, direction: FloatArray, threshold: float) -> Boundary:
    """Return the boundary of an outcome, mirrored if its direction is."""
    same = direction is outcome.direction
    if outcome.centers is None:
        sign = 1.0 if same else -1.0
        return Hyperplane.of(node.standardization, direction, sign * threshold, node.pivot)
    centers = outcome.centers if same else replace(outcome.centers, right=~outcome.centers.right)
    return centers.about(node.pivot)


def _lighter_side(node: Node, direction: FloatArray, threshold: float) -> Query[Any]:
    """Return the exact weight of the lighter side of a hyperplane; one pass."""
    ((sides,),) = yield node.ask(LineMoments(node.standardization, (direction, threshold)))
    return float(sides[:, 0].min())


@dataclass(frozen=True)
class DistanceSum(Additive):
    """Request for the mass and the first moment of the signed distances to a boundary in bins of a grid.

    The last array of the answer has the weights of the left and of the right side.
    """

    boundary: Boundary
    grid: Grid
    unit: float

    def start(self, n_features: int) -> Answer:
        return np.zeros(self.grid.n_bins), np.zeros(self.grid.n_bins), np.zeros(2)

    def add(self, block: Block, answer: Answer) -> None:
        mass, moment, sides = answer
        bins = np.empty(len(block), dtype=np.int64)
        distances = self.boundary.distances(block) / self.unit
        right = distances > 0
        sides += block.weights[~right].sum(), block.weights[right].sum()
        bin_points(distances, block.weights, self.grid.low, self.grid.width, bins, mass, moment)
