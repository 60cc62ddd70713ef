"""The normalized cut of a split in a neighbor graph of the rows, which uses all columns.

An index sees rows only along the direction for which it was optimized, and among many directions some have a
gap by chance. Such a gap separates rows that are neighbors in the space of all columns.
"""

from __future__ import annotations

import numpy as np

from ravine.data.node import Node, draw_sample
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.features.neighbors import RowGraph, graph_of_sample, graph_rows

GRAPH_ROWS = 2000  # most rows of the graph
SHARED_ROWS = 200  # least rows of a node in the graph of the root; with fewer, it has a graph of its own


def graph_sample(node: Node) -> Sample:
    """Return the request for the rows of the graph: of smallest hash in the whole data, not in this node."""
    return Sample(graph_rows(GRAPH_ROWS, node.n_features))


def neighbor_graph(node: Node, of_root: RowGraph | None = None) -> Query[RowGraph]:
    """Return the graph of at most 2000 rows of a measured node.

    It is part of that of the root if enough rows of the node are in it, and else a new one. A sample depends
    on hashes of the numbers of rows only: the root's rows that belong to the node are in the node's sample.
    """
    answer = yield from draw_sample(node, graph_sample(node))
    graph = None if of_root is None else of_root.part(np.isin(of_root.numbers, answer[1]).nonzero()[0])
    if graph is None or len(graph.numbers) < SHARED_ROWS:
        graph = graph_of_sample(answer, node.standardization, by_angle=False)
    return graph
