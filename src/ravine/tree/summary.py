"""The means of nodes and clusters, and the rows most typical of each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.blocks import Block
from ravine.data.node import Node, measure
from ravine.data.query import Additive, Answer, Asked, Request, RowSet, answer, run
from ravine.data.standardization import Standardization
from ravine.tree.arrays import TreeArrays


@dataclass(frozen=True)
class LeafSums(Additive):
    """Request for the weight of the rows in every leaf, and their sum about a pivot; 0 for inner nodes."""

    tree: TreeArrays
    pivot: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return zeros."""
        return np.zeros(self.tree.n_nodes), np.zeros((self.tree.n_nodes, n_features))

    def add(self, block: Block, answer: Answer) -> None:
        """Add the rows of one block to their leaves."""
        (weight, sums), leaf = answer, self.tree.find(block)
        np.add.at(weight, leaf, block.weights)
        block.group_sums(self.pivot, block.weights, leaf, sums)


@dataclass(frozen=True)
class Means:
    """Weight and mean of the rows in every node and in every cluster; the mean of no rows is NaN."""

    standardization: Standardization
    weight: FloatArray
    mean: FloatArray
    cluster_weight: FloatArray
    cluster_mean: FloatArray

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.cluster_weight.sum())


def means_of(tree: TreeArrays, rows: RowSet) -> Means:
    """Return weight and mean of every node and every cluster; two passes."""
    standardization = run(measure(Node(rows))).standardization
    ((weight, sums),) = answer([Asked(rows, LeafSums(tree, standardization.mean))])
    return _of_sums(tree, standardization, weight, sums)


def means_by_leaf(tree: TreeArrays, rows: Any, leaf: IntArray) -> Means:
    """Return the means in other columns than those of the tree, from the leaf of every row; two passes."""
    standardization = run(measure(Node(rows))).standardization
    weight, sums = np.zeros(tree.n_nodes), np.zeros((tree.n_nodes, rows.shape[1]))
    for node in np.unique(leaf):
        own = run(measure(Node(rows.select(np.flatnonzero(leaf == node))))).standardization
        weight[node], sums[node] = own.total, own.total * (own.mean - standardization.mean)
    return _of_sums(tree, standardization, weight, sums)


def _of_sums(
    tree: TreeArrays, standardization: Standardization, weight: FloatArray, sums: FloatArray
) -> Means:
    """Return the means from the weights and sums of the leaves, which are added up from below."""
    n_labels = int(tree.label.max()) + 1
    cluster_weight, cluster_sums = np.zeros(n_labels), np.zeros((n_labels, sums.shape[1]))
    np.add.at(cluster_weight, tree.label[tree.leaves], weight[tree.leaves])
    np.add.at(cluster_sums, tree.label[tree.leaves], sums[tree.leaves])
    for node in np.flatnonzero(tree.left >= 0)[::-1]:
        weight[node] = weight[tree.left[node]] + weight[tree.right[node]]
        sums[node] = sums[tree.left[node]] + sums[tree.right[node]]

    def mean(sums: FloatArray, weight: FloatArray) -> FloatArray:
        return standardization.mean + sums / np.where(weight > 0, weight, np.nan)[:, None]

    return Means(
        standardization, weight, mean(sums, weight), cluster_weight, mean(cluster_sums, cluster_weight)
    )


@dataclass(frozen=True)
class NearestRows(Request):
    """Request for the n rows nearest to the mean of their cluster, in standardized columns.

    Answer: squared distances and row numbers, both (clusters, n) and nearest first; a cluster of fewer rows
    has infinite distances at the end.
    """

    tree: TreeArrays
    means: Means
    n: int

    def start(self, n_features: int) -> Answer:
        """Return no rows."""
        shape = len(self.means.cluster_mean), self.n
        return np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block."""
        label = self.tree.label[self.tree.find(block)]
        centered = block.dense() - self.means.cluster_mean[label]
        squared = ((centered * self.means.standardization.inverse_scale) ** 2).sum(axis=1)
        distance, number = answer
        for k in np.unique(label).tolist():
            here = np.flatnonzero(label == k)
            far = np.concatenate([distance[k], squared[here]])
            own = np.concatenate([number[k], block.numbers[here]])
            distance[k], number[k] = _nearest(far, own, self.n)

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Return the nearest rows of both."""
        distance, number = (np.hstack(pair) for pair in zip(left, right, strict=True))
        found = [_nearest(*own, self.n) for own in zip(distance, number, strict=True)]
        return np.stack([far for far, _ in found]), np.stack([own for _, own in found])


def _nearest(distance: FloatArray, number: IntArray, n: int) -> tuple[FloatArray, IntArray]:
    """Return the n least distances and their rows; of equal distances, the lower row first."""
    few = np.lexsort((number, distance))[:n]
    return distance[few], number[few]


def nearest_to_means(tree: TreeArrays, rows: RowSet, means: Means, n: int) -> list[IntArray]:
    """Return the n rows nearest to each cluster's mean in standardized columns; one pass."""
    ((_, number),) = answer([Asked(rows, NearestRows(tree, means, n))])
    return [own[own >= 0] for own in number]


def exemplars(tree: TreeArrays, X: Any, n: int = 3, sample_weight: Any = None) -> list[IntArray]:
    """Return, for every cluster, the n rows that are most typical of it; three passes.

    They are nearest to the mean of the cluster, with columns scaled to unit variance over all rows.

    Parameters
    ----------
    X : rows with the columns of the tree, as in `predict`
    n : int, default 3
        The number of rows per cluster.
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.

    Returns
    -------
    list of int arrays
        The numbers of the rows in X for every cluster, the nearest first.
    """
    n, rows = check_int("n", n, 1), tree.rows(X, sample_weight)
    return nearest_to_means(tree, rows, means_of(tree, rows), n)


def why_one_cluster(tree: TreeArrays, level: float) -> str:
    """Say why a tree grown with "auto" has a single leaf: its deepest valley, and the p-value of it."""
    if tree.mapped:
        return "found one cluster: halves of the rows do not find the same clusters again"
    refused = tree.refused[0]
    if refused is None:
        return "found one cluster: no hyperplane has enough rows on both sides"
    if refused.evidence is None:
        return "found one cluster: the deepest gap is that between the values of one discrete column"
    found = f"the deepest valley has quality {refused.quality:.2f} (p = {refused.evidence.p_value:.2g})"
    return f"found one cluster: {found}, which is not significant at the level {level:g}"
