"""The means of clusters and nodes, in one pass, and the rows most typical of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Additive, Answer, RowBlocks, Rows, run
from ravine.data.standardization import Standardization, measure

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree


@dataclass(frozen=True)
class LeafSums(Additive):
    """Request for the weight and the sum of the (centered) rows in every node; leaves get theirs."""

    tree: ClusterTree
    pivot: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return zeros."""
        return np.zeros(self.tree.n_nodes), np.zeros((self.tree.n_nodes, n_features))

    @staticmethod
    def add(rows: Rows, requests: Sequence[LeafSums], answers: Sequence[Answer]) -> None:
        """Route one block and add it to its leaves."""
        for request, (weight, sums) in zip(requests, answers, strict=True):
            leaf = request.tree.find(rows)
            np.add.at(weight, leaf, rows.weights)
            rows.group_sums(request.pivot, rows.weights, leaf, sums)


@dataclass(frozen=True)
class NodeMeans:
    """Weight and mean of the rows in every node, and the frame of all rows."""

    standardization: Standardization
    weight: FloatArray
    mean: FloatArray


def node_means(tree: ClusterTree, rows: RowBlocks) -> NodeMeans:
    """Return weight and mean of every node; two passes."""
    standardization = run(rows, measure(rows))
    ((weight, sums),) = rows.pass_over([LeafSums(tree, standardization.mean)])
    for node in range(tree.n_nodes - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
        sums[tree.parent[node]] += sums[node]
    mean = standardization.mean + sums / np.where(weight > 0, weight, np.inf)[:, None]
    mean[weight == 0] = np.nan
    return NodeMeans(standardization, weight, mean)


def label_means(tree: ClusterTree, means: NodeMeans) -> tuple[FloatArray, FloatArray]:
    """Return weight and mean of every cluster, merged leaves taken together."""
    k = int(tree.label.max()) + 1
    weight, total = np.zeros(k), np.zeros((k, means.mean.shape[1]))
    for leaf in tree.leaves:
        if means.weight[leaf] > 0:
            weight[tree.label[leaf]] += means.weight[leaf]
            total[tree.label[leaf]] += means.weight[leaf] * (means.mean[leaf] - means.standardization.mean)
    mean = means.standardization.mean + total / np.where(weight > 0, weight, np.inf)[:, None]
    mean[weight == 0] = np.nan
    return weight, mean


def nearest_to_means(tree: ClusterTree, rows: RowBlocks, n: int) -> list[IntArray]:
    """Return, for every cluster, the n rows nearest to its mean in standardized columns; four passes."""
    means = node_means(tree, rows)
    center = label_means(tree, means)[1]
    scale = means.standardization.inverse_scale

    def squared(block: Rows) -> FloatArray:
        label = tree.label[tree.find(block)]
        return np.asarray((((block.dense() - center[label]) * scale) ** 2).sum(axis=1))

    distance, label = rows.map(squared), tree.route(rows)
    found = []
    for k in range(len(center)):
        members = np.flatnonzero(label == k)
        found.append(members[np.argsort(distance[members], kind="stable")[:n]])
    return found
