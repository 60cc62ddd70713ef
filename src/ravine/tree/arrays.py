"""The nodes of a tree in parallel arrays, and how rows find their leaf.

A parent always has a lower number than its children, so that loops over the nodes replace recursion, and a
tree of ten thousand levels hits no recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import expit

from ravine._validate import FloatArray, IntArray, check_rows, check_weights, not_finite
from ravine.data.block_engine import BlockRows
from ravine.data.blocks import Block, DenseBlock
from ravine.data.loops import route
from ravine.data.memory import MemoryRows
from ravine.data.query import RowSet
from ravine.data.rows import is_dask, rows_of, with_weights
from ravine.exceptions import InvalidInputError
from ravine.split.boundary import Boundary, Hyperplane, NearestCenter
from ravine.split.split import Split

Tree = TypeVar("Tree", bound="TreeArrays")
# a node, the numbers of the rows that reach it, and their signed distances from its boundary
Visit = tuple[int, IntArray, FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class TreeArrays:
    """The nodes of a `ClusterTree`, which describes the fields and adds editing and export."""

    parent: IntArray
    left: IntArray
    right: IntArray
    weight: FloatArray
    splits: tuple[Split | None, ...]
    order: IntArray
    refused: tuple[Split | None, ...]
    label: IntArray
    feature_names: tuple[str, ...] | None = None
    mapped: bool = False
    spread: float = 1.0

    @classmethod
    def of_leaves(cls, *nodes: Any, **named: Any) -> Self:
        """Make a tree of the fields before `label`, and label its leaves from left to right."""
        tree = cls(*nodes, **{**named, "label": np.zeros(0, dtype=np.int64)})
        label = np.full(tree.n_nodes, -1, dtype=np.int64)
        label[tree.leaves] = np.arange(tree.n_leaves)
        return replace(tree, label=label)

    @property
    def n_nodes(self) -> int:
        """The number of nodes, inner nodes and leaves."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int((self.left < 0).sum())

    @property
    def n_clusters(self) -> int:
        """The number of clusters: leaves that share a label count once."""
        return len(np.unique(self.label[self.leaves]))

    @cached_property
    def depth(self) -> IntArray:
        """The number of splits above each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        for node in range(1, self.n_nodes):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def leaves(self) -> IntArray:
        """The leaves from left to right."""
        return self.leaves_below(0)

    def leaves_below(self, node: int) -> IntArray:
        """Return the leaves below a node from left to right; below a leaf, the leaf itself."""
        found, stack = [], [int(node)]
        while stack:
            node = stack.pop()
            if self.left[node] < 0:
                found.append(node)
            else:
                stack += [int(self.right[node]), int(self.left[node])]
        return np.array(found, dtype=np.int64)

    @cached_property
    def inner(self) -> IntArray:
        """The nodes with a split, in the order in which they were split."""
        nodes = np.flatnonzero(self.left >= 0)
        return nodes[np.argsort(self.order[nodes])]

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root to a node, which is the last."""
        path = [int(node)]
        while path[-1]:
            path.append(int(self.parent[path[-1]]))
        return path[::-1]

    def boundary(self, node: int) -> Boundary:
        """Return the boundary of an inner node."""
        split = self.splits[node]
        assert split is not None
        return split.boundary

    # --- checking rows ---

    def rows(self, X: Any, sample_weight: Any = None) -> RowSet:
        """Return X as blocks of rows, after checking that its columns are those of the tree."""
        if isinstance(X, MemoryRows | BlockRows):
            if sample_weight is None:
                return X
            return with_weights(X, check_weights(sample_weight, X.shape[0]))
        if self.mapped:
            raise InvalidInputError(
                "this tree splits the feature space of a kernel, where the columns are components of a map: "
                "give the model itself to predict, explain and report; resplit needs a model without a kernel"
            )
        rows = as_rows(X, sample_weight)
        first = next((split for split in (*self.splits, *self.refused) if split is not None), None)
        if first is not None and rows.shape[1] != len(first.direction):
            raise InvalidInputError(
                f"X has {rows.shape[1]} columns, but the tree was grown on {len(first.direction)}"
            )
        names = getattr(X, "columns", None)
        if names is not None and self.feature_names not in (None, tuple(map(str, names))):
            raise InvalidInputError(
                "the names of the columns of X, or their order, differ from those of the tree"
            )
        return rows

    # --- the way of rows down the tree ---

    def walk(self, n_rows: int, distances: Callable[[int, IntArray], FloatArray]) -> Iterator[Visit]:
        """Walk rows down the tree; yield every split that rows reach, with those rows and their distances.

        `distances(node, members)` returns the signed distances of some rows to the boundary of a node: rows
        with a positive one go to the right.
        """
        members_of = {0: np.arange(n_rows)}
        for node in np.flatnonzero(self.left >= 0).tolist():
            members = members_of.pop(node)
            distance = _finite(distances(node, members)) if len(members) else np.zeros(0)
            if len(members):
                yield node, members, distance
            members_of[int(self.left[node])] = members[~(distance > 0)]
            members_of[int(self.right[node])] = members[distance > 0]

    def visit(self, rows: RowSet) -> Iterator[Visit]:
        """Walk all rows down the tree, see `walk`; one pass per level of the tree."""

        def distances(node: int, members: IntArray) -> FloatArray:
            return self.boundary(node).signed_distance(rows.select(members))

        return self.walk(rows.shape[0], distances)

    def visit_block(self, block: Block) -> Iterator[Visit]:
        """Walk the rows of one block down the tree, see `walk`."""
        return self.walk(len(block), lambda node, members: self.boundary(node).distances(block.take(members)))

    def find(self, block: Block) -> IntArray:
        """Return the leaf of every row of a block."""
        leaf = np.zeros(len(block), dtype=np.int64)
        if self.n_nodes == 1:
            _finite(block.dense())
        elif isinstance(block, DenseBlock) and self._stacked is not None:
            # The compiled loop takes the same sides as `walk`: its sums have the same bits.
            route(block.values, *self._stacked, self.left, self.right, leaf)
            if (leaf < 0).any():
                raise not_finite()
        else:
            for node, members, distance in self.visit_block(block):
                leaf[members] = np.where(distance > 0, self.right[node], self.left[node])
        return leaf

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """The common pivot, normals (nodes, d) and thresholds (nodes,), if all boundaries are hyperplanes."""
        boundaries = [split and split.boundary for split in self.splits]
        if any(isinstance(boundary, NearestCenter) for boundary in boundaries):
            return None
        pivot = self.boundary(0).pivot
        none = Hyperplane(np.zeros(len(pivot)), pivot, 0.0)  # of a leaf
        normals = np.array([(boundary or none).normal for boundary in boundaries])
        return pivot, normals, np.array([(boundary or none).threshold for boundary in boundaries])

    def leaf_of(self, rows: RowSet) -> IntArray:
        """Return the leaf of every row; one pass."""
        return rows.map(self.find)

    def route(self, rows: RowSet) -> IntArray:
        """Return the label of every row; one pass."""
        return self.label[self.leaf_of(rows)]

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row; one pass.

        Parameters
        ----------
        X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
            The rows, with the columns of the tree; also a file, as `ravine.open(path)`, or a dask collection.

        Returns
        -------
        int array of shape (n_rows,)
        """
        return self.route(self.rows(X))

    def decision_path(self, X: Any) -> sparse.csr_array:
        """Return the nodes that every row passes; one pass.

        Parameters
        ----------
        X : rows with the columns of the tree, as in `predict`

        Returns
        -------
        CSR array of shape (n_rows, n_nodes)
            1 where a row passes a node, as in the decision trees of scikit-learn.
        """
        reached, row = np.unique(self.leaf_of(self.rows(X)), return_inverse=True)
        paths = [self.path(leaf) for leaf in reached]
        starts, nodes = np.cumsum([0, *map(len, paths)]), np.concatenate(paths)
        values = np.ones(len(nodes), dtype=np.int8)
        return sparse.csr_array((values, nodes, starts), shape=(len(paths), self.n_nodes))[row]

    # --- distances to all splits ---

    def distances(self, rows: RowSet) -> FloatArray:
        """Return the signed distance of every row to every split, in the order of the splits; one pass."""
        if self.n_nodes == 1:
            return np.zeros((rows.shape[0], 0))
        boundaries = [self.boundary(node) for node in self.inner]
        return _finite(rows.map(lambda block: np.stack([b.distances(block) for b in boundaries], axis=1)))

    def scores(self, distances: FloatArray) -> FloatArray:
        """Return, for every row and cluster, how far inside the row lies; (rows, clusters).

        For a leaf that is the smallest signed distance on the path to it, positive for the row's own leaf
        and for no other, so that the largest score is at the row's cluster. A cluster of several leaves has
        the largest of their scores. `distances` are those of `distances(rows)`.
        """
        by_node: dict[int, FloatArray] = {0: np.full(len(distances), np.inf)}
        scores = np.full((len(distances), int(self.label.max()) + 1), -np.inf)
        column = np.full(self.n_nodes, -1)
        column[self.inner] = np.arange(len(self.inner))
        for node in range(self.n_nodes):
            here = by_node.pop(node)
            if self.left[node] < 0:
                k = self.label[node]
                scores[:, k] = np.maximum(scores[:, k], here)
            else:
                distance = distances[:, column[node]]
                by_node[int(self.left[node])] = np.minimum(here, -distance)
                by_node[int(self.right[node])] = np.minimum(here, distance)
        return scores

    def predict_proba(self, X: Any) -> FloatArray:
        r"""Return the membership of every row in every cluster, the largest at `predict`; two passes.

        .. math:: m_k = \sum_{\text{leaves of } k} \prod_{\text{splits above}} \frac{1}{1 + \exp(\mp a s)}

        with s the signed distance of the row from a boundary and a the slope of the log odds there
        (`Split.log_odds`), which follows from the densities of the two sides next to it. A membership is 1/2
        on a boundary between two clusters, and near 1 inside a cluster, however many there are.

        Parameters
        ----------
        X : rows with the columns of the tree, as in `predict`

        Returns
        -------
        float array of shape (n_rows, n_clusters)
            Each row adds up to 1.
        """
        return self.memberships(self.rows(X))

    def memberships(self, rows: RowSet) -> FloatArray:
        """Return the memberships of `predict_proba` for rows in blocks."""
        distances = self.distances(rows)
        by_node: dict[int, FloatArray] = {0: np.ones(len(distances))}
        share = np.zeros((len(distances), int(self.label.max()) + 1))
        column = np.full(self.n_nodes, -1)
        column[self.inner] = np.arange(len(self.inner))
        for node in range(self.n_nodes):
            here, split = by_node.pop(node), self.splits[node]
            if split is None:
                share[:, self.label[node]] += here
                continue
            odds = split.log_odds * distances[:, column[node]]
            by_node[int(self.left[node])] = here * expit(-odds)
            by_node[int(self.right[node])] = here * expit(odds)
        share /= share.sum(axis=1, keepdims=True)
        # Where a row is near to several boundaries, the largest share may be at another cluster than its own
        # (0.55 * 0.55 < 0.45), and on a boundary two are equal: swap the two.
        label = self.route(rows)
        i, top = np.arange(len(label)), np.argmax(share, axis=1)
        share[i, top], share[i, label] = share[i, label], share[i, top].copy()
        tied = np.flatnonzero(np.argmax(share, axis=1) != label)
        share[tied, label[tied]] = np.nextafter(share[tied].max(axis=1), 2.0)
        return share


def as_rows(X: Any, sample_weight: Any = None) -> RowSet:
    """Return an array, a CSR matrix, a data frame, a nested list, a file or a dask collection as rows."""
    if is_dask(X):
        from ravine.data.dask_engine import DaskSource

        X = DaskSource(X)
    array = check_rows(X, min_rows=1)
    return rows_of(array, check_weights(sample_weight, array.shape[0]))


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise not_finite()
    return values
