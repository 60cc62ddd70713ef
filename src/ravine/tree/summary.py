"""The means of nodes and clusters, and the rows most typical of each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.query import Additive, Answer, run
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


def means_of(tree: TreeArrays, rows: MemoryRows) -> Means:
    """Return weight and mean of every node and every cluster; two passes."""
    standardization = run(measure(Node(rows))).standardization
    ((weight, sums),) = rows.pass_over([LeafSums(tree, standardization.mean)])
    n_labels = int(tree.label.max()) + 1
    cluster_weight, cluster_sums = np.zeros(n_labels), np.zeros((n_labels, sums.shape[1]))
    np.add.at(cluster_weight, tree.label[tree.leaves], weight[tree.leaves])
    np.add.at(cluster_sums, tree.label[tree.leaves], sums[tree.leaves])
    for node in range(tree.n_nodes - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
        sums[tree.parent[node]] += sums[node]

    def mean(sums: FloatArray, weight: FloatArray) -> FloatArray:
        return standardization.mean + sums / np.where(weight > 0, weight, np.nan)[:, None]

    return Means(
        standardization, weight, mean(sums, weight), cluster_weight, mean(cluster_sums, cluster_weight)
    )


def nearest_to_means(
    tree: TreeArrays, rows: MemoryRows, means: Means, n: int
) -> tuple[list[IntArray], IntArray]:
    """Return the n rows nearest to each cluster's mean in standardized columns, and all labels; one pass."""

    def measured(block: Block) -> FloatArray:
        label = tree.label[tree.find(block)]
        centered = (block.dense() - means.cluster_mean[label]) * means.standardization.inverse_scale
        return np.stack([label, (centered**2).sum(axis=1)], axis=1)

    label, distance = rows.map(measured).T
    nearest = []
    for k in range(len(means.cluster_mean)):
        members = np.flatnonzero(label == k)
        nearest.append(members[np.argsort(distance[members], kind="stable")[:n]])
    return nearest, label.astype(np.int64)


def exemplars(tree: TreeArrays, X: Any, n: int = 3, sample_weight: Any = None) -> list[IntArray]:
    """Return, for every cluster, the n rows that are most typical of it; three passes.

    They are nearest to the mean of the cluster, with columns scaled to unit variance over all rows.
    """
    n, rows = check_int("n", n, 1), tree.rows(X, sample_weight)
    return nearest_to_means(tree, rows, means_of(tree, rows), n)[0]
