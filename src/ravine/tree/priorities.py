"""The order in which leaves are split: values of `split_order`; the leaf of highest priority comes first."""

from __future__ import annotations

from collections.abc import Callable

from ravine.data.node import Node
from ravine.data.query import Query
from ravine.split.neighbor_cut import neighbor_graph
from ravine.split.split import Split

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
