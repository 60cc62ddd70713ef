"""Other trees from a tree: cut, prune, merge, relabel, resplit, move, simplify. The tree never changes.

The public functions are methods of `ClusterTree`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, check_int, check_real
from ravine.data.block_engine import rows_among
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure, sample
from ravine.data.query import run
from ravine.data.standardization import Standardization
from ravine.exceptions import InvalidInputError
from ravine.split.boundary import Hyperplane
from ravine.split.split import Split
from ravine.tree.arrays import Tree, TreeArrays
from ravine.tree.features import ranked
from ravine.tree.score import depth_at_boundary
from ravine.tree.summary import means_of

BoolArray = npt.NDArray[np.bool_]

SIMPLIFY_ROWS = 1 << 17  # rows up to which all decide whether a split can be simplified; else a sample


def _keep_splits(tree: Tree, kept: BoolArray) -> Tree:
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


def cut(tree: Tree, n_leaves: int) -> Tree:
    """Return the tree after its first n_leaves - 1 splits: the same as if grown to n_leaves leaves.

    Parameters
    ----------
    n_leaves : int
        The number of leaves, at most that of the tree.

    Returns
    -------
    ClusterTree
        A new tree.
    """
    n_leaves = check_int("the number of leaves", n_leaves, 1)
    if n_leaves > tree.n_leaves:
        raise InvalidInputError(
            f"the tree has {tree.n_leaves} leaves and cannot be cut into {n_leaves}; fit more clusters"
        )
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[tree.inner[: n_leaves - 1]] = True
    return _keep_splits(tree, kept)


def prune(tree: Tree, node: int) -> Tree:
    """Return the tree with a node turned into a leaf: everything below it is removed.

    Parameters
    ----------
    node : int
        The number of the node.

    Returns
    -------
    ClusterTree
        A new tree.
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

    Returns
    -------
    ClusterTree
        A new tree.
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


def relabel(tree: Tree, labels: Mapping[int, int]) -> Tree:
    """Return the tree with clusters renumbered.

    Parameters
    ----------
    labels : mapping from int to int
        New numbers by old ones, one-to-one; clusters that are not in it keep their number.

    Returns
    -------
    ClusterTree
        A new tree.
    """
    k = tree.n_clusters
    new = np.array([labels.get(old, old) for old in range(k)])
    if not set(labels) <= set(range(k)) or sorted(new.tolist()) != list(range(k)):
        raise InvalidInputError(
            f"relabel needs a one-to-one map of the clusters 0 to {k - 1} onto themselves, got {dict(labels)}"
        )
    return replace(tree, label=np.where(tree.label >= 0, new[tree.label], -1))


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
    X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
        The rows, with the columns of the tree; also a file, as `ravine.open(path)`, or a dask collection.
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.
    y : array of shape (n_rows,), optional
        Partial labels of all rows of X, as in `fit`, which guide the splits.

    Returns
    -------
    ClusterTree
        A new tree.
    """
    from sklearn.base import clone

    _check_node(tree, node)
    rows = tree.rows(X, sample_weight)
    base = prune(tree, node) if tree.left[node] >= 0 else tree
    at = _same_node(tree, base, node)
    members = np.flatnonzero(base.leaf_of(rows) == at)
    if len(members) < 2:
        raise InvalidInputError(
            f"{len(members)} rows of X reach node {node}; at least 2 are needed to split it"
        )
    weights = None if rows.weights is None else rows.weights[members]
    labels = None if y is None else _labels_of(y, rows.shape[0])[members]
    fitted = clone(estimator).fit(rows_among(rows, members), labels, sample_weight=weights)
    if not hasattr(fitted, "tree_"):
        raise InvalidInputError(f"resplit needs a clusterer of ravine, got {type(estimator).__name__}")
    if fitted.tree_.mapped:
        raise InvalidInputError(
            "resplit needs an estimator without a kernel, to split on the columns of the tree"
        )
    return _graft(base, at, fitted.tree_)


def _labels_of(y: Any, n_rows: int) -> npt.NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidInputError(f"y needs one label for each of the {n_rows} rows, got shape {labels.shape}")
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
    X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
        The rows, with the columns of the tree; also a file, as `ravine.open(path)`, or a dask collection.
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.

    Returns
    -------
    ClusterTree
        A new tree.

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
    below = np.array([node in tree.path(i) for i in range(tree.n_nodes)])
    part = rows.select(np.flatnonzero(below[tree.leaf_of(rows)]))
    weight, places = part.map(lambda block: block.weights), split.boundary.signed_distance(part) - distance
    if not (weight[places > 0].any() and weight[places <= 0].any()):
        raise InvalidInputError(f"with its threshold moved by {distance:g}, node {node} has an empty side")
    moved = replace(
        split,
        boundary=replace(split.boundary, threshold=split.boundary.threshold + distance),
        quality=depth_at_boundary(places, weight),
        status="the threshold was moved by hand",
        value=np.nan,
        evidence=None,
    )
    found = replace(tree, splits=(*tree.splits[:node], moved, *tree.splits[node + 1 :]))
    return replace(found, weight=_weights(found, rows))


def _weights(tree: TreeArrays, rows: MemoryRows) -> FloatArray:
    """Return the weight of the rows in every node."""
    row_weight = rows.map(lambda block: block.weights)
    weight = np.bincount(tree.leaf_of(rows), row_weight, tree.n_nodes).astype(np.float64)
    for node in range(tree.n_nodes - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
    return weight


def _same_node(tree: TreeArrays, base: TreeArrays, node: int) -> int:
    """Return the number that a node of `tree` has in a pruned copy of it."""
    at = 0
    for parent, child in pairwise(tree.path(node)):
        at = int(base.right[at] if tree.right[parent] == child else base.left[at])
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


def simplify(
    tree: Tree, X: Any, max_features: int = 3, agreement: float = 0.95, sample_weight: Any = None
) -> Tree:
    """Return the tree with every split refitted to its strongest features, where that changes little.

    A split is replaced if enough of the rows of X that reach it (through the simplified splits above) stay on
    their side; its `status` gives the share. The weights of the features are
    refitted by least squares to the two sides, and the threshold is the one that keeps the most rows on their
    side. Weights of nodes are those of X, and the quality of a new split is its depth in these rows. Costs
    three passes over the rows that reach a split. If there are more than SIMPLIFY_ROWS rows, a sample of that
    size is used.

    Parameters
    ----------
    X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
        The rows, with the columns of the tree; also a file, as `ravine.open(path)`, or a dask collection.
    max_features : int, default 3
        Number of features of a simplified split.
    agreement : float, default 0.95
        Minimum share of the rows that stay on their side.
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.

    Returns
    -------
    ClusterTree
        A new tree.
    """
    max_features = check_int("max_features", max_features, 1)
    agreement = check_real("agreement", agreement, 0, 1)
    rows = tree.rows(X, sample_weight)
    if rows.shape[0] <= SIMPLIFY_ROWS:
        return _simplify(tree, rows, max_features, agreement)
    few = run(sample(run(measure(Node(rows))), SIMPLIFY_ROWS, "simplify")).rows
    simpler = _simplify(tree, few, max_features, agreement)
    return replace(simpler, weight=means_of(simpler, rows).weight)


def _simplify(tree: Tree, rows: Any, max_features: int, agreement: float) -> Tree:
    standardization = run(measure(Node(rows))).standardization
    row_weight = rows.map(lambda block: block.weights)
    splits, weight = list(tree.splits), np.zeros(tree.n_nodes)
    weight[0] = row_weight.sum()

    def distances(node: int, members: IntArray) -> FloatArray:
        split, part = splits[node], rows.select(members)
        assert split is not None
        simpler = splits[node] = _simpler(split, part, standardization, max_features, agreement)
        return simpler.boundary.signed_distance(part)

    for node, members, distance in tree.walk(rows.shape[0], distances):
        weight[tree.left[node]] = row_weight[members[distance <= 0]].sum()
        weight[tree.right[node]] = row_weight[members[distance > 0]].sum()
    return replace(tree, splits=tuple(splits), weight=weight)


def _simpler(
    split: Split, rows: MemoryRows, standardization: Standardization, max_features: int, agreement: float
) -> Split:
    """Return the split with fewer features, or itself if too many rows would change sides."""
    right = split.boundary.signed_distance(rows) > 0
    top = np.sort(ranked(split)[:max_features])
    if (split.direction != 0).sum() <= max_features or right.all() or not right.any():
        return split
    standardization = replace(standardization, inverse_scale=_scale(split))
    mean, scale = standardization.mean[top], standardization.inverse_scale[top]
    kept = rows.map(lambda block: (block.dense()[:, top] - mean) * scale)
    weight = rows.map(lambda block: block.weights)
    coefficients = _least_squares(kept, np.where(right, 1.0, -1.0), weight)
    if not coefficients.any():
        return split
    direction = np.zeros_like(split.direction)
    direction[top] = coefficients / np.linalg.norm(coefficients)
    points = kept @ direction[top]
    threshold, share = _best_threshold(points, right, weight)
    if share < agreement:
        return split
    status = f"simplified to {len(top)} of {len(direction)} features: {share:.1%} of the rows keep their side"
    return replace(
        split,
        boundary=Hyperplane.of(standardization, direction, threshold, split.boundary.pivot),
        direction=direction,
        status=status,
        quality=depth_at_boundary(points - threshold, weight),
        value=np.nan,
        evidence=None,
        facts={},
    )


def _least_squares(X: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the coefficients of a weighted linear regression with an intercept."""
    root = np.sqrt(weight)
    centered = (X - weight @ X / weight.sum()) * root[:, None]
    return np.asarray(
        np.linalg.lstsq(centered, (target - weight @ target / weight.sum()) * root, rcond=None)[0]
    )


def _scale(split: Split) -> FloatArray:
    """Return the factor of each column in the search that found a split; 0 where it is not known."""
    known = split.direction != 0
    return np.asarray(split.boundary.normal / np.where(known, split.direction, np.inf))


def _best_threshold(points: FloatArray, right: BoolArray, weight: FloatArray) -> tuple[float, float]:
    """Return the threshold that keeps the most weight on its side, and the share of that weight."""
    order = np.argsort(points, kind="stable")
    ordered, on_right, mass = points[order], right[order], weight[order]
    left_of = np.concatenate([[0.0], np.cumsum(np.where(on_right, 0.0, mass))])
    right_of = np.concatenate([[0.0], np.cumsum(np.where(on_right, mass, 0.0))])
    stay = left_of + right_of[-1] - right_of
    distinct = np.concatenate([[True], np.diff(ordered) > 0, [True]])
    k = int(np.argmax(np.where(distinct, stay, -1.0)))
    share = float(stay[k] / mass.sum())
    if k in (0, len(points)):
        return float(ordered[0] - 1.0 if k == 0 else ordered[-1] + 1.0), share
    return float(ordered[k - 1] / 2 + ordered[k] / 2), share
