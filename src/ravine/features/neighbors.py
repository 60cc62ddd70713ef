"""The graph of nearest neighbors among rows, exact, in which points at equal distances are treated alike.

It uses all columns and no model: splits and clusterings of any origin are judged by it, since a cluster is
good if the neighbors of its rows belong to it. Diffusion maps are walks on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.principal import EQUAL
from ravine.data.query import Answer, Divider, Query, RowSet, run
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Standardization
from ravine.features.neighbor_loops import Rows, find_near

NEIGHBORS = 10  # neighbors per row, of every graph that does not say otherwise; a choice
SAME = 1e-7  # share of the largest coordinate: points that differ by less are copies of each other
PART_CELLS = 1 << 20  # most inner products that are computed at a time: 8 MiB; timed
JUDGED_ROWS = 5000  # most rows of the graph that judges clusterings, a random sample of more
GRAPH_CELLS = 1 << 23  # most values (rows x columns) of dense rows of a graph: 64 MiB
FEWEST_ROWS = 500  # least rows of a graph, however wide they are
SEED = 0x6A756467  # seed of the sample: the same rows judge all clusterings


def near_points(points: Any, n: int, masses: FloatArray | None = None, rows: Any = None) -> sparse.csr_array:
    """Return 1 where a column is one of the points near a row, else 0; shape (rows, points).

    A point is near a row if the points that are strictly nearer have a total mass below `n` (masses are at
    least 1). So points at equal distances are all near or none is, and there may be more than n. A row that
    is a point is near itself. Points and rows are dense or CSR; without rows, they are the points.

    Inner products are computed in parts that fit into a processor's cache, and CSR points are never written
    out.
    """
    rows = points if rows is None else rows
    if sparse.issparse(points):  # the compiled search takes two of one kind
        rows = sparse.csr_array(rows)
    elif sparse.issparse(rows):
        rows = rows.toarray()
    n_points = int(points.shape[0])
    least = np.ones(n_points) if masses is None else np.maximum(1.0, masses)
    known, turned, step = _with_squares(points), points.T, max(1, PART_CELLS // n_points)
    counts, found = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for a in range(0, int(rows.shape[0]), step):
        part = rows[a : a + step]
        inner = part @ turned
        inner = inner.toarray() if sparse.issparse(inner) else inner
        near = find_near(np.ascontiguousarray(inner), _with_squares(part), known, least, n, SAME, EQUAL)
        counts.append(near[0])
        found.append(near[1])
    starts, columns = np.cumsum(np.concatenate(counts)), np.concatenate(found)
    return sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(int(rows.shape[0]), n_points))


def _with_squares(rows: Any) -> Rows:
    """Return rows, dense or CSR, with their squared lengths, for the compiled search."""
    if sparse.issparse(rows):
        own = sparse.csr_array(rows).sorted_indices()
        csr = own.data.astype(np.float64), own.indices.astype(np.int32), own.indptr.astype(np.int64)
        return Rows(np.asarray(own.multiply(own).sum(axis=1), dtype=np.float64).ravel(), None, csr)
    dense = np.ascontiguousarray(rows, dtype=np.float64)
    return Rows(np.einsum("ij,ij->i", dense, dense), dense, None)


def neighbors_among(points: Any, masses: FloatArray, n: int) -> sparse.csr_array:
    """Return 1 between neighbors: one of two points is among the n nearest others of the other, else 0."""
    near = near_points(points, n + 1, masses)  # + 1: a point is its own nearest
    near = sparse.csr_array(near.maximum(near.T))
    near.setdiag(0.0)
    near.eliminate_zeros()
    return near


@dataclass(frozen=True)
class RowGraph:
    """Some rows, and which of them are neighbors: one is among the ten nearest of the other.

    Copies of a row are one group: they are neighbors of each other and have the same neighbors (`near` is
    between groups). A row of weight k means k copies. `values` are the original rows, `points` as they are
    compared, and `numbers` those of the rows in the data.
    """

    values: Any
    points: Any
    weights: FloatArray
    numbers: IntArray
    group: IntArray
    near: sparse.csr_array

    def between(self, clusters: IntArray, n_clusters: int | None = None) -> FloatArray:
        """Return the weight of the edges between any two clusters, from the cluster of each of these rows.

        Every edge counts from both of its ends, so that the sums of the rows are the volumes of the clusters.
        """
        n, k = self.near.shape[0], n_clusters or int(clusters.max()) + 1
        mass = np.bincount(self.group * k + clusters, self.weights, n * k).reshape(n, k)
        alone = np.minimum(mass, mass**2).sum(axis=0)  # a row is not its own neighbor, but its copies are
        return np.asarray(mass.T @ (self.near @ mass + mass) - np.diag(alone))

    def cut(self, right: npt.NDArray[np.bool_]) -> float:
        r"""Return the normalized cut between the rows on the right and the others, in [0, 2].

        .. math:: \frac{W(A, B)}{W(A, A \cup B)} + \frac{W(A, B)}{W(B, A \cup B)}

        with W the weight of the edges between two sets: 0 if no neighbors are separated, about 1 for sides
        that are unrelated to the graph, and 2 for a side without edges.
        """
        edges = self.between(right.astype(np.int64), 2)
        volumes = edges.sum(axis=1)
        return 2.0 if volumes.min() <= 0.0 else float((edges[0, 1] / volumes).sum())

    def cut_by(self, boundary: Divider) -> float:
        """Return the normalized cut of the sides of a boundary."""
        return self.cut(MemoryRows(self.values).map(boundary.distances) > 0)

    def project(self, own: Standardization, directions: FloatArray) -> FloatArray:
        """Project the standardized rows on some directions; shape (rows, directions)."""
        return MemoryRows(self.values).map(lambda block: block.project(own.mean, own.normals(directions)).T)

    def part(self, here: IntArray) -> RowGraph:
        """Return the part of the graph with some of its rows, given by their places."""
        groups, group = np.unique(self.group[here], return_inverse=True)
        near = self.near[groups][:, groups]
        values, points = self.values[here], self.points[here]
        return RowGraph(values, points, self.weights[here], self.numbers[here], group, near)


def graph_rows(most: int, n_features: int) -> int:
    """Return how many rows a graph has, at most.

    >>> graph_rows(5000, 20), graph_rows(5000, 10_000)
    (5000, 838)
    """
    return min(most, max(FEWEST_ROWS, GRAPH_CELLS // n_features))


def graph_of_sample(
    answer: Answer, own: Standardization, n_neighbors: int = NEIGHBORS, *, by_angle: bool
) -> RowGraph:
    """Return the graph of sampled rows, compared by distance or, if sparse, by angle."""
    values, weights, numbers = read_sample(answer)
    group = np.arange(len(weights))
    if sparse.issparse(values):  # copies stay, and are near each other; distances need no means
        scaled = values.multiply(own.inverse_scale[None, :])
        points: Any = unit_rows(sparse.csr_array(values)) if by_angle else sparse.csr_array(scaled)
        first = group
    else:
        points = own.apply(values)
        first, group = copies(points)
    mass = np.bincount(group, weights).astype(np.float64)
    near = neighbors_among(points[first], mass, n_neighbors)
    return RowGraph(values, points, weights, numbers, group, near)


def row_graph(
    rows: RowSet,
    *,
    n_neighbors: int = NEIGHBORS,
    max_rows: int | None = None,
    standardize: bool = True,
) -> RowGraph:
    """Return the graph of a random sample of the rows that have a weight, the same one for every caller.

    Dense rows are standardized, and compared by their distance; sparse ones are compared by their angle.
    """
    node, most = Node(rows, standardize=standardize), max_rows or graph_rows(JUDGED_ROWS, rows.shape[1])

    def query() -> Query[RowGraph]:
        (answer,) = yield node.ask(Sample(most, SEED))
        own = (yield from measure(node)).standardization  # raises on NaN and infinity
        return graph_of_sample(answer, own, n_neighbors, by_angle=True)

    return run(query())


def unit_rows(rows: Any) -> Any:
    """Return rows, dense or CSR, divided by their lengths; rows of zeros stay as they are.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if not sparse.issparse(rows):
        largest = np.abs(rows).max(axis=1, initial=0.0)
        scaled = rows / np.where(largest > 0, largest, 1.0)[:, None]  # so that no square leaves the range
        length = np.linalg.norm(scaled, axis=1)
        return scaled / np.where(length > 0, length, 1.0)[:, None]
    largest = np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64).ravel()
    scaled = sparse.csr_array(sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ rows)
    length = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ scaled)


def copies(points: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the number of the first point of every group of copies, and the group of every point.

    The order of the groups does not depend on that of the points.
    """
    unit = SAME * np.abs(points).max(initial=0.0) or 1.0
    _, first, group = np.unique(np.round(points / unit), axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def distinct(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return one point per group of copies, the total weights of the groups, and the places of these points.

    The order of the groups does not depend on that of the points.
    """
    first, group = copies(points)
    return points[first], np.bincount(group, weights).astype(np.float64), first


def nth_nearest(distances: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Return the distance to the n-th nearest point, for every row of a matrix of distances.

    The row is one of the weighted points (at distance 0) and does not count; a weight of k means k copies.
    """
    order = np.argsort(distances, axis=1, kind="stable")
    mass = np.cumsum(weights[order], axis=1)
    place = np.minimum((mass < n + 1 - 1e-9).sum(axis=1), len(weights) - 1)
    every = np.arange(len(distances))
    return np.asarray(distances[every, order[every, place]])


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the smallest value such that at least half of the weight does not exceed it."""
    order = np.argsort(values)
    return float(values[order[np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)]])
