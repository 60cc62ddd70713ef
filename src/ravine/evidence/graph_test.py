"""The significance test of splits of mapped rows: do few neighbors lie on different sides of a boundary?

In a feature space the density has valleys that are no gaps between groups: an arc of rows becomes a curve
whose ends are dense, and a search finds a direction in which any piece of it is apart. So the valley is
looked for in the neighbor graph of the rows before the kernel map. The edges that cross the boundary are
compared with those that cross parallel boundaries on either side, a number of edges away: fewer in a valley,
equally many where a shape without a gap is cut across, however long it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from ravine._validate import FloatArray
from ravine.data.node import Node
from ravine.data.query import Query
from ravine.data.sample import Sample, read_sample
from ravine.evidence.significance import DEEPEST
from ravine.features.neighbors import SEED, RowGraph
from ravine.split.search import BaseMethod
from ravine.split.split import Evidence, Split

BoolArray = npt.NDArray[np.bool_]

STEPS = 3  # steps of a walk over which sides are averaged, so that single rows do not count
HALF = 0.5 + 1e-9  # share of a row's neighborhood on the right from which on it counts as right; not a tie
BAND_MEAN = 1.5  # mean of L over uniform bands, eight times as long as wide, cut where it is largest
BAND_DEVIATION = 6.0  # standard deviation of L over bands of n rows, times sqrt(n)
LEAST_DEVIATION = 0.2  # least standard deviation: otherwise any difference is significant with many rows
BAND_DRAWS = 120  # bands from which these numbers come


@dataclass(frozen=True)
class GraphTest:
    """The method whose splits are tested, the level, and the neighbor graph of (a sample of) all rows."""

    method: BaseMethod
    level: float
    graph: RowGraph
    own_tails: bool = False

    def run(self, node: Node, split: Split) -> Query[Split]:
        """Return the split with the result of the test; costs one sample.

        The sample has the rows of the graph that are in the node, because both take the rows of the lowest
        hashes.
        """
        (answer,) = yield node.ask(Sample(len(self.graph.numbers), SEED))
        values, _, numbers = read_sample(answer)
        _, of_graph, of_node = np.intersect1d(self.graph.numbers, numbers, return_indices=True)
        right = split.boundary.signed_distance_of(values[of_node]) > 0
        return replace(split, evidence=evidence(self.depth(of_graph, right), len(of_graph)))

    def depth(self, rows: npt.NDArray[Any], right: BoolArray) -> float:
        """Return L of a division of some rows of the graph."""
        groups, first, place = np.unique(self.graph.group[rows], return_index=True, return_inverse=True)
        mass = np.bincount(place, self.graph.weights[rows]).astype(np.float64)
        near = self.graph.near[groups][:, groups]
        return graph_depth(near, mass, right[first])


def evidence(log_depth: float, n: int) -> Evidence:
    """Compare the L of n rows with that of uniform bands, which is close to normal.

    >>> evidence(1.5, 100).p_value, evidence(36.0, 100).p_value
    (0.5, 0.0)
    """
    deviation = max(BAND_DEVIATION / math.sqrt(max(n, 1)), LEAST_DEVIATION)
    z = (log_depth - BAND_MEAN) / deviation
    return Evidence(math.erfc(z / math.sqrt(2)) / 2, log_depth, BAND_MEAN, deviation, BAND_DRAWS)


def graph_depth(near: Any, mass: FloatArray, right: BoolArray) -> float:
    r"""Return L = log(M / I) of a boundary in a neighbor graph, at least 0 and at most 36.

    I is the weight of the edges between the sides. On each side, the rows with such an edge are layer 0,
    their other neighbors layer 1, and so on; M is the largest weight of the edges between two consecutive
    layers, on the side where it is smaller. `mass` are the weights of the rows.

    >>> path = sparse.diags_array([np.ones(9), np.ones(9)], offsets=[1, -1], shape=(10, 10))
    >>> graph_depth(sparse.csr_array(path), np.ones(10), np.arange(10) > 4)
    0.0
    """
    scale = sparse.diags_array(mass)
    edges = sparse.csr_array(scale @ (near + sparse.eye_array(len(mass))) @ scale)
    right = _settled(edges, right)
    pairs = edges.tocoo()
    across = right[pairs.row] != right[pairs.col]
    crossing = float(pairs.data[across].sum()) / 2.0
    if not right.any() or right.all():
        return 0.0
    if crossing == 0.0:
        return DEEPEST
    edge_of_side = np.zeros(len(mass), dtype=bool)
    edge_of_side[pairs.row[across]] = True
    widest = min(_widest(edges, side, edge_of_side) for side in (right, ~right))
    return min(math.log(max(widest / crossing, 1.0)), DEEPEST)


def _settled(edges: Any, right: BoolArray) -> BoolArray:
    """Return the sides to which most of the neighborhood of every row belongs."""
    share, degree = right.astype(np.float64), edges.sum(axis=0)
    for _ in range(STEPS):
        share = edges @ share / degree
    return np.asarray(share > HALF)


def _widest(edges: Any, side: BoolArray, first: BoolArray) -> float:
    """Return the largest weight of the edges between consecutive layers of a side."""
    inside = np.flatnonzero(side)
    part = edges[inside][:, inside]
    start = np.flatnonzero(first[inside])
    hops = dijkstra(_narrow(part), directed=False, indices=start, unweighted=True, min_only=True)
    pairs = part.tocoo()
    outward = np.isfinite(hops[pairs.row]) & (hops[pairs.col] == hops[pairs.row] + 1.0)
    layers = np.bincount(hops[pairs.row[outward]].astype(np.int64), pairs.data[outward])
    return float(layers.max(initial=0.0))


def _narrow(edges: Any) -> Any:
    """Return edges with indices of 32 bits, which older versions of scipy's graph routines need."""
    indices, starts = edges.indices.astype(np.int32), edges.indptr.astype(np.int32)
    return sparse.csr_array((edges.data, indices, starts), shape=edges.shape)
