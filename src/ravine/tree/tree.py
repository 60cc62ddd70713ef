"""A tree of boundaries in parallel arrays: route rows, cut it elsewhere, edit it, export it, keep it.

Nodes are numbered so that a parent always comes before its children: nothing here needs recursion, and a tree
of ten thousand leaves is no deeper a problem than one of ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from ravine._rows import check_rows
from ravine._validate import FloatArray, IntArray, check_int, check_weights, not_finite
from ravine.data.blocks import ArrayBlocks, DenseRows, RowBlocks, Rows
from ravine.exceptions import InvalidInputError
from ravine.split.hyperplane import Hyperplane, Split

MAPPED = (
    "this tree cuts in the feature space of a kernel, where the columns are components of a map: "
    "ask the model itself to predict; explanations, reports, simpler splits and new ones need a model "
    "without a kernel"
)


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """Nodes with their children, their weight, and the split of each inner one.

    A tree is never changed: `cut`, `prune`, `merge`, `relabel`, `resplit` and `simplify` return another.

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
        The best split known of a leaf that was left alone, with its evidence; None where none was found or
        none was looked for.
    label : int array
        The cluster of each leaf; -1 for inner nodes. From left to right, unless leaves were merged or
        relabeled.
    feature_names : tuple of str, optional
        The columns, if they had names.
    spread : float
        The root mean square of the columns' standard deviations, which memberships are measured in: 1 where
        columns are standardized.
    mapped : bool
        Whether the tree cuts in the feature space of a kernel; its columns are then components of the map.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from sklearn.datasets import load_wine
    >>> tree = MinimumDensity(3).fit(load_wine(as_frame=True).data).tree_
    >>> print(tree.cut(2).export_text(n_features=2))
    178 rows (100%), split at depth 0.30 by +proline, +flavanoids
    ├─ cluster 0: 101 rows (57%)
    └─ cluster 1: 77 rows (43%)
    """

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
    def of_leaves(
        cls,
        parent: IntArray,
        left: IntArray,
        right: IntArray,
        weight: FloatArray,
        splits: tuple[Split | None, ...],
        order: IntArray,
        refused: tuple[Split | None, ...],
    ) -> Self:
        """Make a tree whose leaves are labeled from left to right."""
        unlabeled = np.full(len(parent), -1, dtype=np.int64)
        tree = cls(parent, left, right, weight, splits, order, refused, unlabeled)
        labels = unlabeled.copy()
        labels[tree.leaves] = np.arange(tree.n_leaves)
        return replace(tree, label=labels)

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

    @property
    def n_clusters(self) -> int:
        """How many clusters there are: leaves, counting merged ones once."""
        return len(np.unique(self.label[self.leaves]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterTree) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    # --- rows ---

    def rows(self, X: Any, sample_weight: Any = None) -> ArrayBlocks:
        """Return X as blocks of rows, after checking that it has the columns that the tree knows."""
        if isinstance(X, ArrayBlocks):
            return X
        if self.mapped:
            raise InvalidInputError(MAPPED)
        rows = as_rows(X, sample_weight)
        first = next((split for split in (*self.splits, *self.refused) if split is not None), None)
        n_features = None if first is None else len(first.direction)
        if n_features is not None and rows.shape[1] != n_features:
            raise InvalidInputError(f"X has {rows.shape[1]} columns, but the tree was grown on {n_features}")
        names = getattr(X, "columns", None)
        if (
            self.feature_names is not None
            and names is not None
            and tuple(map(str, names)) != self.feature_names
        ):
            raise InvalidInputError(
                "the columns of X have other names, or another order, than those of the tree"
            )
        return rows

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row of an array, a CSR matrix or a data frame; one pass."""
        return self.route(self.rows(X))

    def route(self, rows: RowBlocks) -> IntArray:
        """Return the label of every row; one pass."""
        return self.label[self.leaf_of(rows)]

    def leaf_of(self, rows: RowBlocks) -> IntArray:
        """Return the leaf of every row; one pass."""
        nodes = rows.map(self.find)
        if (nodes < 0).any():
            raise not_finite()
        return nodes

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Weights (nodes, d), cuts (nodes,) and the common pivot, if all boundaries are hyperplanes."""
        first = self.splits[0]
        assert first is not None
        if any(split is not None and not isinstance(split.boundary, Hyperplane) for split in self.splits):
            return None
        weights = np.zeros((self.n_nodes, len(first.boundary.weights)))
        cuts = np.zeros(self.n_nodes)
        for node, split in enumerate(self.splits):
            if split is not None:
                weights[node], cuts[node] = split.boundary.weights, split.boundary.threshold
        return weights, cuts, first.boundary.pivot

    def find(self, rows: Rows) -> IntArray:
        """Return the leaf of every row of a block, -1 for rows that are not finite."""
        if self.n_nodes == 1:
            return np.where(np.isfinite(rows.dense()).all(axis=1), 0, -1)
        if isinstance(rows, DenseRows) and self._stacked is not None:
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

    def scores(self, distances: FloatArray) -> FloatArray:
        """Return, for every row and cluster, how far inside the row lies; (rows, clusters).

        For a leaf that is the least signed distance on the way to it, positive for the row's own leaf and no
        other, so that the largest is at the row's cluster; merged leaves take their largest. `distances` are
        those of `distances(rows)`.
        """
        by_node: dict[int, FloatArray] = {0: np.full(len(distances), np.inf)}
        scores = np.full((len(distances), int(self.label.max()) + 1), -np.inf)
        if self.n_nodes == 1:
            scores[:] = np.inf
        rank = np.argsort(np.argsort(self.order[self.order >= 0]))
        column = np.full(self.n_nodes, -1)
        column[self.order >= 0] = rank
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
        """Return a membership of every row in every cluster, whose largest is at `predict`; two passes.

        The memberships are the softmax of `scores`, in units of the `spread` of the columns: 1/2 each on a
        hyperplane between two clusters, and close to 1 a few standard deviations inside.
        """
        return self.memberships(self.rows(X))

    def memberships(self, rows: RowBlocks) -> FloatArray:
        """Return what `predict_proba` does, for rows in blocks."""
        own = self.route(rows)
        scores = self.scores(self.distances(rows)) / self.spread
        with np.errstate(invalid="ignore"):
            share = np.exp(np.where(np.isinf(scores), 0.0, scores - scores.max(axis=1, keepdims=True)))
        share /= share.sum(axis=1, keepdims=True)
        # on a cut, and where rounding ties, the row's own cluster comes first
        i = np.arange(len(own))
        top = np.argmax(share, axis=1)
        swap = share[i, top].copy()
        share[i, top], share[i, own] = share[i, own], swap
        tied = np.flatnonzero(np.argmax(share, axis=1) != own)
        share[tied, own[tied]] = np.nextafter(share[tied].max(axis=1), 2.0)
        return share

    def decision_path(self, X: Any) -> sparse.csr_array:
        """Return the nodes that every row passes, as a CSR indicator (rows, nodes); one pass."""
        leaf = self.leaf_of(self.rows(X))
        depth = self.depth[leaf] + 1
        starts = np.concatenate([[0], np.cumsum(depth)])
        columns = np.empty(starts[-1], dtype=np.int64)
        at, end = leaf.copy(), starts[1:].copy()
        alive = np.arange(len(leaf))
        while len(alive):
            end[alive] -= 1
            columns[end[alive]] = at[alive]
            at[alive] = self.parent[at[alive]]
            alive = alive[at[alive] >= 0]
        values = np.ones(len(columns), dtype=np.int8)
        return sparse.csr_array((values, columns, starts), shape=(len(leaf), self.n_nodes))

    def exemplars(self, X: Any, n: int = 3, sample_weight: Any = None) -> list[IntArray]:
        """Return, for every cluster, the n rows that are most typical of it; four passes.

        They are nearest to the cluster's mean, columns being scaled to unit variance over all rows.
        """
        from ravine.tree.summary import nearest_to_means

        return nearest_to_means(self, self.rows(X, sample_weight), check_int("n", n, 1))

    # --- other trees ---

    def cut(self, n_leaves: int) -> ClusterTree:
        """Return the tree after its first n_leaves - 1 splits: the same as if grown to so many leaves."""
        from ravine.tree import edit

        return edit.cut(self, n_leaves)

    def prune(self, node: int) -> ClusterTree:
        """Return the tree with a node made a leaf: everything below it goes."""
        from ravine.tree import edit

        return edit.prune(self, node)

    def merge(self, a: int, b: int) -> ClusterTree:
        """Return the tree with clusters a and b made one.

        Sibling leaves become their parent; any two others keep their leaves and share a label.
        """
        from ravine.tree import edit

        return edit.merge(self, a, b)

    def relabel(self, labels: Mapping[int, int]) -> ClusterTree:
        """Return the tree with clusters renumbered; `labels` maps old numbers to new ones, one to one."""
        from ravine.tree import edit

        return edit.relabel(self, labels)

    def resplit(self, node: int, estimator: Any, X: Any, sample_weight: Any = None) -> ClusterTree:
        """Return the tree with what is below a node grown anew by a clusterer of ravine from the rows of X.

        The node may be a leaf. The estimator is cloned and fitted to the rows of X that reach the node.
        """
        from ravine.tree import edit

        return edit.resplit(self, node, estimator, X, sample_weight)

    def simplify(
        self, X: Any, max_features: int = 3, agreement: float = 0.95, sample_weight: Any = None
    ) -> ClusterTree:
        """Return the tree with every split refitted to its strongest features, where that changes little.

        A split is replaced if at least this share of the rows of X that reach it (through the simplified
        splits above) stay on their side; its `status` says what it cost. Weights of nodes are those of X,
        and a new split's quality is its depth in these rows.
        """
        from ravine.tree import edit

        return edit.simplify(self, X, max_features, agreement, sample_weight)

    # --- exports ---

    def export_text(self, feature_names: Sequence[str] | None = None, n_features: int = 3) -> str:
        """Return the tree as indented text: size, depth of the split, and its strongest features."""
        from ravine.tree import export

        return export.text(self, feature_names, n_features)

    def _repr_html_(self) -> str:
        from ravine.tree import export

        return export.html(self)

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row a node."""
        from ravine.tree import export

        return export.frame(self)

    def to_linkage(self) -> FloatArray:
        """Return a SciPy linkage of the leaves from left to right; the last split is the lowest merge."""
        from ravine.tree import export

        return export.linkage(self)

    def to_dot(self, feature_names: Sequence[str] | None = None) -> str:
        """Return the tree in Graphviz's language."""
        from ravine.tree import export

        return export.dot(self, feature_names)

    def export_sql(self, table: str, dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return one SELECT with the table's columns and, last, `cluster`: the database does the predicting.

        `columns` are the features' names in the table (by default those seen in `fit`).
        """
        from ravine.tree import export

        return export.sql(self, table, dialect, columns)

    def to_json(self) -> str:
        """Return the whole tree as JSON."""
        from ravine.tree import serialize

        return serialize.to_json(self)

    @staticmethod
    def from_json(text: str) -> ClusterTree:
        """Read a tree from JSON; a text that is none gives an `InvalidModelError`."""
        from ravine.tree import serialize

        return serialize.from_json(text)


def as_rows(X: Any, sample_weight: Any = None) -> ArrayBlocks:
    """Return an array, a CSR matrix, a data frame or a nested list as blocks of rows."""
    rows = check_rows(X, min_rows=1)
    return ArrayBlocks(rows, check_weights(sample_weight, rows.shape[0]))


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise not_finite()
    return values
