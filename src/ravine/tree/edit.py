"""Other trees from a tree: cut, prune, merge, resplit, move. The tree never changes.

The public functions are methods of `ClusterTree`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, check_int, check_real, has_label, label_array
from ravine.data.query import RowSet
from ravine.data.rows import rows_among
from ravine.exceptions import InvalidInputError
from ravine.split.boundary import Hyperplane
from ravine.split.split import Split
from ravine.tree.arrays import Tree, TreeArrays
from ravine.tree.score import measure_valley


def _keep_splits(tree: Tree, kept: npt.NDArray[np.bool_]) -> Tree:
    """Return the tree with only these splits; a node that loses its split keeps it as refused.

    Labels are numbered again from left to right, and leaves that shared one still do. Splits keep their
    order, without gaps.
    """
    alive = np.zeros(tree.n_nodes, dtype=bool)
    alive[0] = True
    for node in range(1, tree.n_nodes):
        alive[node] = alive[tree.parent[node]] and kept[tree.parent[node]]
    nodes = np.flatnonzero(alive)
    inner = alive & kept
    new = np.full(tree.n_nodes + 1, -1, dtype=np.int64)
    new[nodes] = np.arange(len(nodes))
    label = np.where(tree.label >= 0, tree.label, tree.n_nodes + np.arange(tree.n_nodes))
    order = np.full(tree.n_nodes, -1, dtype=np.int64)
    order[tree.inner[inner[tree.inner]]] = np.arange(inner.sum())
    smaller = replace(
        tree,
        parent=new[tree.parent[nodes]],
        left=np.where(inner[nodes], new[tree.left[nodes]], -1),
        right=np.where(inner[nodes], new[tree.right[nodes]], -1),
        weight=tree.weight[nodes],
        splits=tuple(tree.splits[i] if inner[i] else None for i in nodes),
        order=order[nodes],
        refused=tuple(tree.refused[i] if inner[i] else tree.splits[i] or tree.refused[i] for i in nodes),
        label=np.where(inner[nodes], -1, label[nodes]),
    )
    return number_labels(smaller)


def number_labels(tree: Tree) -> Tree:
    """Number the labels by their first leaf from the left."""
    numbers: dict[int, int] = {}
    for leaf in tree.leaves:
        numbers.setdefault(int(tree.label[leaf]), len(numbers))
    label = np.array([numbers.get(int(old), -1) for old in tree.label], dtype=np.int64)
    return replace(tree, label=label)


def cut(tree: Tree, n_clusters: int) -> Tree:
    """Return the tree after as many of its first splits as leave n_clusters clusters.

    Leaves that share a label are one cluster; without such leaves it is the tree grown to n_clusters leaves.

    Parameters
    ----------
    n_clusters : int
        The number of clusters, at most that of the tree.
    """
    n_clusters = check_int("the number of clusters", n_clusters, 1)
    if n_clusters > tree.n_clusters:
        raise InvalidInputError(
            f"the tree has {tree.n_clusters} clusters and cannot be cut into {n_clusters}; fit more clusters"
        )
    # A split changes the number of clusters by at most one, so that every number up to the last one occurs.
    counts, seen = [1], set()  # clusters after each split, and labels of the leaves so far
    for node in tree.inner:
        counts.append(counts[-1] - 1)
        for child in (tree.left[node], tree.right[node]):
            own = int(tree.label[child])
            counts[-1] += own < 0 or own not in seen  # a node that is split later is a cluster of its own
            seen.add(own)
    n_splits = max(n for n, found in enumerate(counts) if found == n_clusters)
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[tree.inner[:n_splits]] = True
    return _keep_splits(tree, kept)


def prune(tree: Tree, node: int) -> Tree:
    """Return the tree with a node turned into a leaf: everything below it is removed.

    Parameters
    ----------
    node : int
        The number of the node.
    """
    _check_node(tree, node)
    kept = tree.left >= 0
    kept[node] = False
    return _keep_splits(tree, kept)


def _check_node(tree: Tree, node: int) -> None:
    if check_int("node", node, 0) >= tree.n_nodes:
        raise InvalidInputError(f"the tree has nodes 0 to {tree.n_nodes - 1}, got {node}")


def merge(tree: Tree, a: int, b: int) -> Tree:
    """Return the tree with clusters a and b merged.

    Sibling leaves become their parent; any two others keep their leaves and share a label.

    Parameters
    ----------
    a, b : int
        The labels of two clusters.
    """
    known = np.unique(tree.label[tree.leaves])
    for label in (a, b):
        if label not in known:
            raise InvalidInputError(f"the tree has clusters 0 to {known[-1]}, got {label}")
    if a == b:
        raise InvalidInputError(f"cannot merge cluster {a} with itself")
    leaves = np.flatnonzero((tree.label == a) | (tree.label == b))
    parents = np.unique(tree.parent[leaves])
    if len(leaves) == 2 and len(parents) == 1:
        return prune(tree, int(parents[0]))
    return number_labels(replace(tree, label=np.where(tree.label == b, a, tree.label)))


def resplit(tree: Tree, node: int, estimator: Any, X: Any, sample_weight: Any = None, y: Any = None) -> Tree:
    """Return the tree with everything below a node grown again by a clusterer of ravine from the rows of X.

    The estimator is cloned and fitted to the rows of X that reach the node; those of a file or a dask
    collection stay there, and 8 bytes per row are held.

    Parameters
    ----------
    node : int
        The number of the node, which may be a leaf.
    estimator : clusterer of ravine
        It has to be without a kernel, to split on the columns of the tree.
    X : rows with the columns of the tree, as in `predict`
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.
    y : array of shape (n_rows,), optional
        Partial labels of all rows of X, as in `fit`, which guide the splits.
    """
    from sklearn.base import clone

    _check_node(tree, node)
    rows = tree.rows(X, sample_weight)
    base = prune(tree, node) if tree.left[node] >= 0 else tree
    at = node_at_same_place(tree, base, node)
    members = np.flatnonzero(base.leaf_of(rows) == at)
    if len(members) < 2:
        raise InvalidInputError(
            f"{len(members)} rows of X reach node {node}; at least 2 are needed to split it"
        )
    weights = None if rows.weights is None else rows.weights[members]
    labels = None if y is None else _labels_of(y, rows.shape[0], members)
    fitted = clone(estimator).fit(rows_among(rows, members), labels, sample_weight=weights)
    if not hasattr(fitted, "tree_"):
        raise InvalidInputError(f"resplit needs a clusterer of ravine, got {type(estimator).__name__}")
    if fitted.tree_.mapped:
        raise InvalidInputError(
            "resplit needs an estimator without a kernel, to split on the columns of the tree"
        )
    return _graft(base, at, fitted.tree_)


def _labels_of(y: Any, n_rows: int, members: IntArray) -> npt.NDArray[Any]:
    """Return the labels of some rows."""
    labels = label_array(y)
    if labels.shape != (n_rows,):
        raise InvalidInputError(f"y needs one label for each of the {n_rows} rows, got shape {labels.shape}")
    labels = labels[members]
    if has_label(labels).all():
        # `fit` takes y for partial labels only if some are unknown: one of the most frequent class is enough.
        _, place, counts = np.unique(labels.astype(str), return_index=True, return_counts=True)
        labels = labels.astype(object)
        labels[place[np.argmax(counts)]] = None
    return labels


def move(tree: Tree, node: int, distance: float, X: Any, sample_weight: Any = None) -> Tree:
    """Return the tree with the threshold of a split moved by a signed distance, to the right if positive.

    The splits below stay as they are. Weights of nodes and the quality of the split are those of the rows of
    X, and both sides need some of them. Costs two passes over the rows.

    Parameters
    ----------
    node : int
        The number of a node with a split by a hyperplane.
    distance : float
        In the unit of `transform`: the user's units, or standard deviations where columns are standardized.
    X : rows with the columns of the tree, as in `predict`
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.

    Examples
    --------
    >>> import numpy as np
    >>> from ravine import PrincipalDirection
    >>> X = np.array([[0.0], [1.0], [2.0], [7.0], [8.0]])
    >>> tree = PrincipalDirection(2, standardize=False).fit(X).tree_
    >>> tree.predict(X).tolist(), tree.move(0, -2.0, X).predict(X).tolist()
    ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    """
    _check_node(tree, node)
    split = tree.splits[node]
    if split is None or not isinstance(split.boundary, Hyperplane):
        raise InvalidInputError(f"node {node} has no threshold to move: it needs a split by a hyperplane")
    distance = check_real("distance", distance, -np.inf, np.inf)
    rows = tree.rows(X, sample_weight)
    part = rows.select(np.flatnonzero(np.isin(tree.leaf_of(rows), tree.leaves_below(node))))
    weight, places = part.map(lambda block: block.weights), split.boundary.signed_distance(part) - distance
    if not (weight[places > 0].any() and weight[places <= 0].any()):
        raise InvalidInputError(f"with its threshold moved by {distance:g}, node {node} has an empty side")
    quality, log_odds = measure_valley(places, weight)
    moved = replace(
        split,
        boundary=replace(split.boundary, threshold=split.boundary.threshold + distance),
        quality=quality,
        log_odds=log_odds,
        status="the threshold was moved by hand",
        value=np.nan,
        evidence=None,
    )
    found = replace(tree, splits=(*tree.splits[:node], moved, *tree.splits[node + 1 :]))
    return replace(found, weight=node_weights(found, rows))


def node_weights(tree: TreeArrays, rows: RowSet) -> FloatArray:
    """Return the weight of the rows in every node."""
    row_weight = rows.map(lambda block: block.weights)
    weight = np.bincount(tree.leaf_of(rows), row_weight, tree.n_nodes).astype(np.float64)
    for node in range(tree.n_nodes - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
    return weight


def node_at_same_place(tree: TreeArrays, other: TreeArrays, node: int) -> int:
    """Return the node of another tree that is reached by the same sides as a node of this one."""
    at = 0
    for parent, child in pairwise(tree.path(node)):
        at = int(other.right[at] if tree.right[parent] == child else other.left[at])
    return at


def _graft(base: Tree, at: int, part: TreeArrays) -> Tree:
    """Replace a leaf by a whole tree, whose splits come last in the order."""
    if part.n_nodes == 1:
        return base
    new = np.arange(part.n_nodes) + base.n_nodes - 1
    new[0] = at
    later = int(base.order.max()) + 1
    # Labels that no leaf of the base has; `number_labels` closes the gaps.
    label = np.where(part.label >= 0, base.n_nodes + part.n_nodes + part.label, -1)
    moved, refused = _with_pivot_of(base, part.splits), _with_pivot_of(base, part.refused)

    def join(old: IntArray, grafted: IntArray) -> IntArray:
        joined = np.concatenate([old, grafted[1:]])
        joined[at] = grafted[0]
        return joined

    def link(children: IntArray) -> IntArray:
        return np.where(children >= 0, new[children], -1)

    joined = replace(
        base,
        parent=np.concatenate([base.parent, new[part.parent[1:]]]),
        left=join(base.left, link(part.left)),
        right=join(base.right, link(part.right)),
        weight=np.concatenate([base.weight, part.weight[1:]]),
        splits=(*base.splits[:at], moved[0], *base.splits[at + 1 :], *moved[1:]),
        order=join(base.order, np.where(part.order >= 0, part.order + later, -1)),
        refused=(*base.refused[:at], None, *base.refused[at + 1 :], *refused[1:]),
        label=join(base.label, label),
    )
    return number_labels(joined)


def _with_pivot_of(base: TreeArrays, splits: tuple[Split | None, ...]) -> list[Split | None]:
    """Return the same splits, with boundaries about the pivot of another tree."""
    pivot = next((split.boundary.pivot for split in base.splits if split is not None), None)
    return [
        split if split is None or pivot is None else replace(split, boundary=split.boundary.about(pivot))
        for split in splits
    ]
