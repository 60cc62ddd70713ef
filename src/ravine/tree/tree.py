"""A tree of boundaries in parallel arrays: route rows, cut it elsewhere, print it.

Nodes are numbered in the order in which they were made, so that a parent always comes before its children
and nothing here needs recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ravine._validate import FloatArray, IntArray, InvalidInputError
from ravine.data.blocks import DenseRows, RowBlocks, Rows
from ravine.split.hyperplane import Split

NOT_FINITE = (
    "Input X contains NaN or infinity; remove those rows or fill them in, "
    "with sklearn.impute.SimpleImputer for instance"
)


@dataclass(frozen=True)
class ClusterTree:
    """Nodes with their children, their weight, and the split of each inner one.

    Attributes
    ----------
    parent, left, right : int arrays
        The node's parent and children; -1 for none. Node 0 is the root.
    weight : float array
        The total weight of the training rows in each node (their number, without sample weights).
    splits : tuple of Split or None
        The split of each node; None for a leaf.
    order : int array
        The number of the split, counted as they were made; -1 for a leaf.
    refused : tuple of Split or None
        The best split found of a leaf that was left alone, with its evidence; None where none was found or
        none was looked for.
    """

    parent: IntArray
    left: IntArray
    right: IntArray
    weight: FloatArray
    splits: tuple[Split | None, ...]
    order: IntArray
    refused: tuple[Split | None, ...]

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, inner ones and leaves."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return int((self.left < 0).sum())

    @cached_property
    def depth(self) -> IntArray:
        """How many splits lie above each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        for node in range(1, self.n_nodes):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def leaves(self) -> IntArray:
        """The leaves from left to right: the leaf of label k is leaves[k]."""
        found, stack = [], [0]
        while stack:
            node = stack.pop()
            if self.left[node] < 0:
                found.append(node)
            else:
                stack += [int(self.right[node]), int(self.left[node])]
        return np.array(found, dtype=np.int64)

    @cached_property
    def inner(self) -> IntArray:
        """The nodes that are split, in the order in which they were."""
        nodes = np.flatnonzero(self.left >= 0)
        return nodes[np.argsort(self.order[nodes])]

    @cached_property
    def label_of_node(self) -> IntArray:
        """The label of each leaf; -1 for inner nodes."""
        labels = np.full(self.n_nodes, -1, dtype=np.int64)
        labels[self.leaves] = np.arange(self.n_leaves)
        return labels

    def route(self, rows: RowBlocks) -> IntArray:
        """Return the label of every row; one pass."""
        if self.n_nodes == 1:
            nodes = rows.map(_root_of_finite)
        else:
            nodes = rows.map(self._route_block)
        if (nodes < 0).any():
            raise InvalidInputError(NOT_FINITE)
        return self.label_of_node[nodes.astype(np.int64)]

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (nodes, d), cuts (nodes,) and the common pivot of all hyperplanes."""
        first = self.splits[0]
        assert first is not None
        weights = np.zeros((self.n_nodes, len(first.boundary.weights)))
        cuts = np.zeros(self.n_nodes)
        for node, split in enumerate(self.splits):
            if split is not None:
                weights[node], cuts[node] = split.boundary.weights, split.boundary.cut
        return weights, cuts, first.boundary.pivot

    def _route_block(self, rows: Rows) -> IntArray:
        if isinstance(rows, DenseRows):
            from ravine.data import kernels

            weights, cuts, pivot = self._stacked
            nodes = np.empty(len(rows), dtype=np.int64)
            kernels.route(rows.values, pivot, weights, cuts, self.left, self.right, nodes)
            return nodes
        nodes = np.zeros(len(rows), dtype=np.int64)
        for node, split in enumerate(self.splits):
            here = np.flatnonzero(nodes == node)
            if split is not None and len(here):
                distance = split.boundary.distances(rows.take(here))
                nodes[here] = np.where(distance > 0, self.right[node], self.left[node])
                nodes[here[~np.isfinite(distance)]] = -1
        return nodes

    def distances(self, rows: RowBlocks) -> FloatArray:
        """Return the signed distance of every row to every split, in the order of the splits; one pass."""
        boundaries = [split.boundary for node in self.inner if (split := self.splits[node]) is not None]
        if not boundaries:
            return np.zeros((rows.shape[0], 0))

        def measure(block: Rows) -> FloatArray:
            return np.stack([boundary.distances(block) for boundary in boundaries], axis=1)

        return _finite(rows.map(measure))

    def leaf_scores(self, distances: FloatArray) -> FloatArray:
        """Return, for every row and leaf, the least signed distance on the way to the leaf.

        It is positive for the row's own leaf and no other, so the largest is at its label. `distances` are
        those of `distances(rows)`.
        """
        score = np.full((len(distances), self.n_nodes), np.inf)
        for k, node in enumerate(self.inner):
            score[:, self.left[node]] = np.minimum(score[:, node], -distances[:, k])
            score[:, self.right[node]] = np.minimum(score[:, node], distances[:, k])
        return score[:, self.leaves]

    def export_text(self, feature_names: Sequence[str] | None = None, n_features: int = 3) -> str:
        """Return the tree as indented text: size, depth of the split, and its strongest features."""
        lines, stack = [], [(0, "", "")]
        total = self.weight[0]
        while stack:
            node, lead, branch = stack.pop()
            split = self.splits[node]
            size = f"{self.weight[node]:g} rows ({self.weight[node] / total:.0%})"
            if split is None:
                lines.append(f"{lead}{branch}cluster {self.label_of_node[node]}: {size}")
                continue
            drivers = _strongest(split, feature_names, n_features)
            lines.append(f"{lead}{branch}{size}, split at depth {split.quality:.2f} by {drivers}")
            below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
            stack += [(int(self.right[node]), below, "└─ "), (int(self.left[node]), below, "├─ ")]
        return "\n".join(lines)


def _strongest(split: Split, feature_names: Sequence[str] | None, n_features: int) -> str:
    """Name the features with the largest standardised weights."""
    importance = np.abs(split.direction)
    top = np.argsort(-importance, kind="stable")[:n_features]
    return ", ".join(
        f"{'+' if split.direction[j] > 0 else '-'}"
        f"{feature_names[j] if feature_names is not None else f'x{j}'}"
        for j in top
        if importance[j] > 0
    )


def _root_of_finite(rows: Rows) -> IntArray:
    """Return 0 for every finite row, -1 for the others."""
    return np.where(np.isfinite(rows.dense()).all(axis=1), 0, -1)


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise InvalidInputError(NOT_FINITE)
    return values
