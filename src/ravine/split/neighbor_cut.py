"""The normalized cut of a split in a neighbor graph of the rows, which uses all columns.

An index sees rows only along the direction for which it was optimized, and among many directions some have a
gap by chance. Such a gap separates rows that are neighbors in the space of all columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import SAMPLE_CELLS, Node, draw_sample
from ravine.data.query import Answer, Query
from ravine.data.sample import Sample, sampled
from ravine.data.standardization import Standardization
from ravine.features.neighbors import distinct, near_pairs
from ravine.split.boundary import Boundary

GRAPH_ROWS = 2000  # most rows of the graph
CUT_NEIGHBORS = 10  # neighbors per row
SHARED_ROWS = (
    200  # least rows of a node in the graph of the root; with fewer, the node has a graph of its own
)


@dataclass(frozen=True)
class NeighborGraph:
    """Some rows, and the edges between neighbors: the places of both ends (2, edges) and their weights.

    Two rows are neighbors if one is among the ten nearest rows of the other. A row of weight k means k
    copies, which are neighbors of each other: `copies` is the weight of the edges between them.
    """

    rows: MemoryRows
    ends: IntArray
    weights: FloatArray
    copies: FloatArray

    def of_rows(self, numbers: IntArray) -> NeighborGraph | None:
        """Return the part of the graph with some rows of the data, or None if it has too few of them."""
        known = self.rows.numbers_in_data
        assert known is not None
        here = np.flatnonzero(np.isin(known, numbers))
        if len(here) < SHARED_ROWS:
            return None
        rows = replace(self.rows, array=self.rows.array[here], numbers_in_data=known[here])
        place = np.full(self.rows.shape[0], -1)
        place[here] = np.arange(len(here))
        ends = place[self.ends]
        inside = (ends >= 0).all(axis=0)
        return NeighborGraph(rows, ends[:, inside], self.weights[inside], self.copies[here])

    def project(self, own: Standardization, directions: FloatArray) -> FloatArray:
        """Project the standardized rows on some directions; shape (rows, directions)."""
        return self.rows.map(lambda block: block.project(own.mean, own.normals(directions)).T)

    def cut_by(self, boundary: Boundary) -> float:
        """Return the normalized cut of the sides of a boundary."""
        return self.cut(boundary.signed_distance(self.rows) > 0)

    def cut(self, right: npt.NDArray[np.bool_]) -> float:
        r"""Return the normalized cut between the rows on the right and the others, in [0, 2].

        .. math:: \frac{W(A, B)}{W(A, A \cup B)} + \frac{W(A, B)}{W(B, A \cup B)}

        with W the weight of the edges between two sets: 0 if no neighbors are separated, about 1 for sides
        that are unrelated to the graph, and 2 for a side without edges.
        """
        one, other = right[self.ends]
        between = float(self.weights[one != other].sum())
        inside = float(self.weights[~(one | other)].sum()), float(self.weights[one & other].sum())
        volumes = [
            between + 2.0 * weight + float(self.copies[side].sum())
            for weight, side in zip(inside, (~right, right), strict=True)
        ]
        if min(volumes) <= 0.0:
            return 2.0
        return float(between / volumes[0] + between / volumes[1])


def graph_sample(node: Node) -> Sample:
    """Return the request for the rows of the graph: of smallest hash in the whole data, not in this node."""
    return Sample(min(GRAPH_ROWS, max(SHARED_ROWS, SAMPLE_CELLS // node.n_features)))


def neighbor_graph(node: Node, of_root: NeighborGraph | None = None) -> Query[NeighborGraph]:
    """Return the graph of at most 2000 rows of a measured node.

    It is part of that of the root if enough rows of the node are in it, and else a new one. A sample depends
    on hashes of the numbers of rows only: the root's rows that belong to the node are in the node's sample.
    """
    answer = yield from draw_sample(node, graph_sample(node))
    shared = None if of_root is None else of_root.of_rows(answer[1])
    return shared or _graph(node, answer)


def _graph(node: Node, answer: Answer) -> NeighborGraph:
    values, weights, numbers = sampled(answer)
    own = node.standardization
    if sparse.issparse(values):
        points = sparse.csr_array(values.multiply(own.inverse_scale[None, :]))
        inner = inner_products(points, own.mean * own.inverse_scale)
    else:
        points, weights, chosen = distinct(own.apply(values), weights)
        values, numbers = values[chosen], numbers[chosen]
        inner = None
    here, there = near_pairs(points, inner, weights, CUT_NEIGHBORS + 1)  # + 1: a row is its own nearest
    m = len(weights)
    edges = np.unique(np.minimum(here, there) * m + np.maximum(here, there))
    ends = np.array([edges // m, edges % m])
    copies = weights * np.maximum(weights - 1.0, 0.0)
    rows = MemoryRows(values, numbers_in_data=numbers)
    return NeighborGraph(rows, ends, weights[ends].prod(axis=0), copies)


def inner_products(rows: sparse.csr_array, center: FloatArray) -> FloatArray:
    """Return the inner products of all sparse rows minus the center, which are never written out."""
    products = np.asarray((rows @ rows.T).toarray())
    along = np.asarray(rows @ center)
    products += float(center @ center) - along[:, None] - along[None, :]
    return products
