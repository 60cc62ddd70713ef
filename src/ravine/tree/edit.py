"""Other trees from a tree: cut, prune, merge, relabel, resplit, simplify. The old one stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, check_int, check_real
from ravine.data.blocks import RowBlocks, run
from ravine.data.standardization import Standardization, measure
from ravine.exceptions import InvalidInputError
from ravine.split.hyperplane import Hyperplane, Split
from ravine.tree.score import depth_of_cut

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree


def _keep_splits(tree: ClusterTree, kept: npt.NDArray[np.bool_]) -> ClusterTree:
    """Return the tree with only these splits; a node whose split goes remembers it as refused.

    Leaves that stay keep their label as far as it goes: labels are numbered afresh from left to right, and
    leaves that shared one still do. Splits keep their order, without gaps.
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
    threshold = replace(
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
    return number_labels(threshold)


def number_labels(tree: ClusterTree) -> ClusterTree:
    """Number the labels by their first leaf from the left."""
    numbers: dict[int, int] = {}
    for leaf in tree.leaves:
        numbers.setdefault(int(tree.label[leaf]), len(numbers))
    label = np.array([numbers.get(int(old), -1) for old in tree.label], dtype=np.int64)
    return replace(tree, label=label)


def cut(tree: ClusterTree, n_leaves: int) -> ClusterTree:
    """Return the tree after its first n_leaves - 1 splits."""
    n_leaves = check_int("the number of leaves", n_leaves, 1)
    if n_leaves > tree.n_leaves:
        raise InvalidInputError(
            f"the tree has {tree.n_leaves} leaves and cannot be cut into {n_leaves}; fit more clusters"
        )
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[tree.inner[: n_leaves - 1]] = True
    return _keep_splits(tree, kept)


def prune(tree: ClusterTree, node: int) -> ClusterTree:
    """Return the tree with a node made a leaf."""
    _check_node(tree, node)
    kept = tree.left >= 0
    kept[node] = False
    return _keep_splits(tree, kept)


def _check_node(tree: ClusterTree, node: int) -> None:
    if check_int("node", node, 0) >= tree.n_nodes:
        raise InvalidInputError(f"the tree has nodes 0 to {tree.n_nodes - 1}, got {node}")


def merge(tree: ClusterTree, a: int, b: int) -> ClusterTree:
    """Return the tree with two clusters made one."""
    known = np.unique(tree.label[tree.leaves])
    for label in (a, b):
        if label not in known:
            raise InvalidInputError(f"the tree has clusters 0 to {known[-1]}, got {label}")
    if a == b:
        raise InvalidInputError(f"cannot merge cluster {a} with itself")
    leaves = [np.flatnonzero(tree.label == label) for label in (a, b)]
    if all(len(found) == 1 for found in leaves):
        parents = {int(tree.parent[found[0]]) for found in leaves}
        if len(parents) == 1:
            return prune(tree, parents.pop())
    return number_labels(replace(tree, label=np.where(tree.label == b, a, tree.label)))


def relabel(tree: ClusterTree, labels: Mapping[int, int]) -> ClusterTree:
    """Return the tree with clusters renumbered."""
    k = tree.n_clusters
    new = np.array([labels.get(old, old) for old in range(k)])
    if not set(labels) <= set(range(k)) or sorted(new.tolist()) != list(range(k)):
        raise InvalidInputError(
            f"relabel needs a one to one map of the clusters 0 to {k - 1} onto themselves, got {dict(labels)}"
        )
    return replace(tree, label=np.where(tree.label >= 0, new[tree.label], -1))


def resplit(tree: ClusterTree, node: int, estimator: Any, X: Any, sample_weight: Any) -> ClusterTree:
    """Return the tree with what is below a node grown anew from the rows of X."""
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
    fitted = clone(estimator).fit(rows.array[members], sample_weight=weights)
    if not hasattr(fitted, "tree_"):
        raise InvalidInputError(f"resplit needs a clusterer of ravine, got {type(estimator).__name__}")
    if fitted.tree_.mapped:
        raise InvalidInputError(
            "resplit needs an estimator without a kernel, to cut in the columns of the tree"
        )
    return _graft(base, at, fitted.tree_)


def _same_node(tree: ClusterTree, base: ClusterTree, node: int) -> int:
    """Return the number that a node of `tree` has in a pruned copy of it."""
    way = []
    while node:
        way.append(bool(tree.right[tree.parent[node]] == node))
        node = int(tree.parent[node])
    at = 0
    for right in reversed(way):
        at = int(base.right[at] if right else base.left[at])
    return at


def _graft(base: ClusterTree, at: int, part: ClusterTree) -> ClusterTree:
    """Put a tree in the place of a leaf."""
    if part.n_nodes == 1:
        return base
    pivot = next((split.boundary.pivot for split in base.splits if split is not None), None)
    shift = base.n_nodes - 1
    new = np.arange(part.n_nodes) + shift
    new[0] = at
    moved = [_about(split, pivot) for split in part.splits]
    refused = [_about(split, pivot) for split in part.refused]
    later = int(base.order.max()) + 1

    def join(old: IntArray, grafted: IntArray) -> IntArray:
        joined = np.concatenate([old, grafted[1:]])
        joined[at] = grafted[0]
        return joined

    def link(children: IntArray) -> IntArray:
        return np.where(children >= 0, new[children], -1)

    parent = np.concatenate([base.parent, new[part.parent[1:]]])
    labels = np.where(part.label >= 0, base.n_nodes + part.n_nodes + part.label, -1)
    return number_labels(
        replace(
            base,
            parent=parent,
            left=join(base.left, link(part.left)),
            right=join(base.right, link(part.right)),
            weight=np.concatenate([base.weight, part.weight[1:]]),
            splits=(*base.splits[:at], moved[0], *base.splits[at + 1 :], *moved[1:]),
            order=join(base.order, np.where(part.order >= 0, part.order + later, -1)),
            refused=(*base.refused[:at], None, *base.refused[at + 1 :], *refused[1:]),
            label=join(base.label, labels),
        )
    )


def _about(split: Split | None, pivot: FloatArray | None) -> Split | None:
    """Return the same split told from another pivot."""
    if split is None or pivot is None:
        return split
    return replace(split, boundary=split.boundary.about(pivot))


def simplify(
    tree: ClusterTree, X: Any, max_features: int, agreement: float, sample_weight: Any
) -> ClusterTree:
    """Return the tree with every split refitted to its strongest features, where that changes little.

    The weights of the kept features are refitted by least squares to the sides that they have, and the cut is
    put where most rows stay on their side. Costs three passes over the rows that reach a split.
    """
    max_features = check_int("max_features", max_features, 1)
    agreement = check_real("agreement", agreement, 0, 1)
    rows = tree.rows(X, sample_weight)
    standardization = run(rows, measure(rows))
    row_weight = rows.map(lambda block: block.weights)
    node_of = np.zeros(rows.shape[0], dtype=np.int64)
    splits, weight = list(tree.splits), np.zeros(tree.n_nodes)
    for node, split in enumerate(tree.splits):
        members = np.flatnonzero(node_of == node)
        weight[node] = row_weight[members].sum()
        if split is None or len(members) == 0:
            continue
        part = rows.select(members)
        simpler = _simpler(split, part, standardization, max_features, agreement)
        splits[node] = simpler
        right = simpler.boundary.signed_distance(part) > 0
        node_of[members] = np.where(right, tree.right[node], tree.left[node])
    return replace(tree, splits=tuple(splits), weight=weight)


def _simpler(
    split: Split,
    rows: RowBlocks,
    standardization: Standardization,
    max_features: int,
    agreement: float,
) -> Split:
    """Return the split with fewer features, or itself if too many rows would change sides."""
    right = split.boundary.signed_distance(rows) > 0
    top = np.sort(np.argsort(-np.abs(split.direction), kind="stable")[:max_features])
    if (split.direction != 0).sum() <= max_features or right.all() or not right.any():
        return split
    standardization = replace(standardization, inverse_scale=_scale(split))
    kept = rows.map(
        lambda block: (block.dense()[:, top] - standardization.mean[top]) * standardization.inverse_scale[top]
    )
    weight = rows.map(lambda block: block.weights)
    target = np.where(right, 1.0, -1.0)
    root = np.sqrt(weight)
    centered = (kept - weight @ kept / weight.sum()) * root[:, None]
    coefficients = np.linalg.lstsq(centered, (target - weight @ target / weight.sum()) * root, rcond=None)[0]
    length = float(np.linalg.norm(coefficients))
    if length == 0.0:
        return split
    points = kept @ (coefficients / length)
    threshold, share = _best_cut(points, right, weight)
    if share < agreement:
        return split
    direction = np.zeros_like(split.direction)
    direction[top] = coefficients / length
    plane = Hyperplane.of(standardization, direction, threshold, split.boundary.pivot)
    status = f"simplified to {len(top)} of {len(direction)} features: {share:.1%} of the rows keep their side"
    quality = depth_of_cut(points - threshold, weight)
    return replace(
        split,
        boundary=plane,
        direction=direction,
        status=status,
        quality=quality,
        value=np.nan,
        evidence=None,
        facts={},
    )


def _scale(split: Split) -> FloatArray:
    """Return what the columns were multiplied by where a split was found; 0 where that is not known."""
    known = split.direction != 0
    return np.asarray(split.boundary.weights / np.where(known, split.direction, np.inf))


def _best_cut(points: FloatArray, right: npt.NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """Return the cut that leaves the most weight on its side, and its share."""
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
