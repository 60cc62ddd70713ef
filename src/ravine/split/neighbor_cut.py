"""The normalized cut of a split in a neighbor graph of the rows, which uses all columns.

An index sees rows only along the direction for which it was optimized, and among many directions some have a
gap by chance. Such a gap separates rows that are neighbors in the space of all columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.neighbors import Nearest, distinct
from ravine.data.node import Node
from ravine.data.query import Query
from ravine.data.sample import Sample, sampled
from ravine.data.standardization import Standardization
from ravine.split.boundary import Boundary

GRAPH_ROWS = 2000  # most rows of the graph
GRAPH_CELLS = 1 << 23  # most values (rows x columns) of these rows: 64 MiB
FEWEST_ROWS = 100  # least rows of the graph, however wide they are
NEIGHBORS = 10  # neighbors per row


@dataclass(frozen=True)
class NeighborGraph:
    """Some rows, their standardization, and the weights of the edges between neighbors.

    Two rows are neighbors if one is among the ten nearest rows of the other. A row of weight k means k
    copies, which are neighbors of each other.
    """

    rows: MemoryRows
    standardization: Standardization
    edges: sparse.csr_array

    def project(self, directions: FloatArray) -> FloatArray:
        """Project the standardized rows on some directions; shape (rows, directions)."""
        normals = self.standardization.normals(directions)
        return self.rows.map(lambda block: block.project(self.standardization.mean, normals).T)

    def cut_by(self, boundary: Boundary) -> float:
        """Return the normalized cut of the sides of a boundary."""
        return self.cut(boundary.signed_distance(self.rows) > 0)

    def cut(self, right: npt.NDArray[np.bool_]) -> float:
        r"""Return the normalized cut between the rows on the right and the others, in [0, 2].

        .. math:: \frac{W(A, B)}{W(A, A \cup B)} + \frac{W(A, B)}{W(B, A \cup B)}

        with W the weight of the edges between two sets: 0 if no neighbors are separated, about 1 for sides
        that are unrelated to the graph, and 2 for a side without edges.
        """
        side = right.astype(np.float64)
        degree = self.edges.sum(axis=1)
        volumes = float(degree @ side), float(degree @ (1.0 - side))
        if min(volumes) <= 0.0:
            return 2.0
        between = float((self.edges @ side) @ (1.0 - side))
        return between / volumes[0] + between / volumes[1]


def neighbor_graph(node: Node) -> Query[NeighborGraph]:
    """Return the graph of at most 2000 rows of a node, the same ones for every caller; it is made once."""
    if "neighbor graph" not in node.memo:
        node.memo["neighbor graph"] = yield from _graph(node)
    graph: NeighborGraph = node.memo["neighbor graph"]
    return graph


def _graph(node: Node) -> Query[NeighborGraph]:
    most = min(GRAPH_ROWS, max(FEWEST_ROWS, GRAPH_CELLS // node.n_features))
    (answer,) = yield node.ask(Sample(most))
    values, weights, _ = sampled(answer)
    own = node.standardization
    if sparse.issparse(values):
        points = distances_between(sparse.csr_array(values), own)
        nearest = Nearest(points, NEIGHBORS + 1, weights, metric="precomputed")
    else:
        points, weights, chosen = distinct(own.apply(values), weights)
        values = values[chosen]
        nearest = Nearest(points, NEIGHBORS + 1, weights)  # + 1: a row is its own nearest
    m = len(points)
    near = nearest.graph(points).tocoo()
    here, there = (index[near.row != near.col] for index in (near.row, near.col))
    one_way = sparse.csr_array((weights[here] * weights[there], (here, there)), shape=(m, m))
    copies = sparse.diags_array(weights * np.maximum(weights - 1.0, 0.0))
    edges = sparse.csr_array(one_way.maximum(one_way.T) + copies)
    return NeighborGraph(MemoryRows(values), own, edges)


def distances_between(rows: sparse.csr_array, standardization: Standardization) -> FloatArray:
    """Return the distances between all standardized sparse rows, from their inner products (never dense)."""
    scaled = sparse.csr_array(rows.multiply(standardization.inverse_scale[None, :]))
    center = standardization.mean * standardization.inverse_scale
    products = np.asarray((scaled @ scaled.T).toarray())
    along = np.asarray(scaled @ center)
    products += float(center @ center) - along[:, None] - along[None, :]
    squares = np.diag(products)
    found = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2.0 * products, 0.0))
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)
