"""The graph of nearest neighbors among some rows, by which clusterings of any origin are judged.

It uses all columns and no model: a cluster is good if the neighbors of its rows belong to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node, measure
from ravine.data.query import Query, RowSet, run
from ravine.data.sample import Sample, sampled
from ravine.features.neighbors import Nearest, copies, unit_rows

JUDGED_ROWS = 5000  # most rows of the graph, a random sample of more
JUDGED_CELLS = 1 << 23  # most values (rows x columns) of dense rows of the graph: 64 MiB
FEWEST_ROWS = 500  # least rows of the graph, however wide they are
JUDGE_NEIGHBORS = 10  # neighbors per row
SEED = 0x6A756467  # seed of the sample: the same rows judge all clusterings


@dataclass(frozen=True)
class RowGraph:
    """Some rows, and which of them are neighbors: one is among the ten nearest of the other.

    Copies of a row are one group: they are neighbors of each other and have the same neighbors. A row of
    weight k means k copies. `values` are the original rows, `points` as they are compared.
    """

    values: Any
    points: Any
    weights: FloatArray
    numbers: IntArray
    group: IntArray
    near: sparse.csr_array

    def between(self, clusters: IntArray) -> FloatArray:
        """Return the weight of the edges between any two clusters, from the cluster of each of these rows.

        Every edge counts from both of its ends, so that the sums of the rows are the volumes of the clusters.
        """
        shape = (self.near.shape[0], int(clusters.max()) + 1)
        mass = sparse.csr_array((self.weights, (self.group, clusters)), shape=shape)
        edges = mass.T @ (self.near @ mass) + mass.T @ mass
        alone = np.minimum(mass.data, mass.data**2)  # a row is not its own neighbor
        own = np.bincount(mass.indices, alone, shape[1])
        return np.asarray(edges.toarray() - np.diag(own))


def judged_rows(n_features: int) -> int:
    """Return how many dense rows the graph has, at most.

    >>> judged_rows(20), judged_rows(10_000)
    (5000, 838)
    """
    return min(JUDGED_ROWS, max(FEWEST_ROWS, JUDGED_CELLS // n_features))


def row_graph(
    rows: RowSet,
    *,
    n_neighbors: int = JUDGE_NEIGHBORS,
    max_rows: int | None = None,
    standardize: bool = True,
) -> RowGraph:
    """Return the graph of a random sample of the rows that have a weight, the same one for every caller.

    Dense rows are standardized, and compared by their distance; sparse ones are compared by their angle.
    """
    most = judged_rows(rows.shape[1]) if max_rows is None else max_rows
    return run(_graph(Node(rows, standardize=standardize), n_neighbors, most))


def _graph(node: Node, n_neighbors: int, most: int) -> Query[RowGraph]:
    (answer,) = yield node.ask(Sample(most, SEED))
    values, weights, numbers = sampled(answer)
    standardization = (yield from measure(node)).standardization  # raises on NaN and infinity
    if sparse.issparse(values):
        points: Any = unit_rows(sparse.csr_array(values))
        first, group = np.arange(len(weights)), np.arange(len(weights))
    else:
        points = standardization.apply(values)
        first, group = copies(points)
    mass = np.bincount(group, weights).astype(np.float64)
    near = Nearest(points[first], n_neighbors + 1, mass).graph(points[first])  # + 1: a row is its own nearest
    near = sparse.csr_array(near.maximum(near.T))
    near.setdiag(0.0)
    near.eliminate_zeros()
    return RowGraph(values, points, weights, numbers, group, near)
