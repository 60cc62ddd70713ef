"""The order in which leaves are split, by its name in a clusterer: the highest priority comes first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ravine.data.node import Labels, Node
from ravine.data.query import Query
from ravine.split.neighbor_cut import neighbor_graph
from ravine.split.split import Split
from ravine.tree.cells import Cell, Rank

ROUNDED_UP = 1.0 + 1e-9  # factor of a weight that is a bound: sums of weights differ by rounding

Priority = Callable[[Split, Node], Query[float]]


def by_depth(split: Split, node: Node) -> Query[float]:
    """Return the quality of the split times the weight of the leaf."""
    yield from ()
    return split.quality * node.total


def by_size(split: Split, node: Node) -> Query[float]:
    """Return the weight of the leaf."""
    yield from ()
    return node.total


def by_value(split: Split, node: Node) -> Query[float]:
    """Return the negative value of the method's objective: the lowest comes first."""
    yield from ()
    return -split.value


def by_neighbors(split: Split, node: Node) -> Query[float]:
    """Return 1 minus the normalized cut in the neighbor graph, times the weight of the leaf.

    The first factor is 1 if no neighbors are separated, and 0 for sides unrelated to the graph.
    """
    graph = yield from neighbor_graph(node)
    return max(0.0, 1.0 - graph.cut_by(split.boundary)) * node.total


PRIORITIES: dict[str, Priority] = {
    "depth": by_depth,
    "size": by_size,
    "value": by_value,
    "neighbors": by_neighbors,
}

AT_MOST_WEIGHT = (by_depth, by_size, by_neighbors)  # priorities that are at most the weight of the leaf


def rank(cell: Cell, split: Split, priority: float) -> Rank:
    """Return the place of a split in the queue: the lowest comes first.

    Splits that separate classes of partial labels come first. Among splits of equal priority (such as 0
    without a valley) the heavier leaf comes first, then the lower value, and only then, in the queue, the
    number of the node, which depends on signs of directions.
    """
    return not divides_labels(cell.labels, split), -priority, -cell.rows.total, split.value


def best_rank(cell: Cell, priority: Priority) -> Rank:
    """Return the lowest rank that the split of a cell can have; far rows have been set aside."""
    first = cell.labels is not None
    weight = cell.rows.total * ROUNDED_UP
    highest = np.inf if first or priority not in AT_MOST_WEIGHT else weight
    return not first, -highest, -cell.rows.total, -np.inf


def divides_labels(labels: Labels | None, split: Split) -> bool:
    """Return whether a split separates at least half of the weight of labeled pairs of different classes."""
    if labels is None:
        return False
    before = labels.pairs_together(np.zeros(len(labels.rows), dtype=bool))
    after = labels.pairs_together(split.boundary.signed_distance_of(labels.rows) > 0)
    return before > 0.0 and after <= before / 2.0
