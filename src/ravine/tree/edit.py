"""Other trees from a tree: cut, prune, merge, relabel, resplit, simplify. The old one stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, InvalidInputError, check_int, check_real
from ravine.data.blocks import RowBlocks, drive
from ravine.data.frame import Frame, measure
from ravine.split.hyperplane import Hyperplane, Split

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree


def _keep_splits(tree: ClusterTree, kept: npt.NDArray[np.bool_]) -> ClusterTree:
    """Return the tree with only these splits; a node whose split goes remembers it as refused.

    Leaves that stay keep their label as far as it goes: labels are numbered afresh from left to right, and
    leaves that shared one still do.
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
    cut = replace(
        tree,
        parent=new[tree.parent[nodes]],
        left=np.where(inner[nodes], new[tree.left[nodes]], -1),
        right=np.where(inner[nodes], new[tree.right[nodes]], -1),
        weight=tree.weight[nodes],
        splits=tuple(tree.splits[i] if inner[i] else None for i in nodes),
        order=np.where(inner[nodes], tree.order[nodes], -1),
        refused=tuple(tree.refused[i] if inner[i] else tree.splits[i] or tree.refused[i] for i in nodes),
        label=np.where(inner[nodes], -1, label[nodes]),
    )
    return number_labels(cut)


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


def resplit(tree: ClusterTree, node: int, estimator: Any, X: Any) -> ClusterTree:
    """Return the tree with what is below a node grown anew from the rows of X."""
    from sklearn.base import clone

    from ravine.tree.tree import as_rows

    _check_node(tree, node)
    base = prune(tree, node) if tree.left[node] >= 0 else tree
    path = tree.decision_path(X)
    members = np.flatnonzero(path[:, [node]].toarray()[:, 0])
    if len(members) < 2:
        raise InvalidInputError(
            f"{len(members)} rows of X reach node {node}; at least 2 are needed to split it"
        )
    rows = as_rows(X).array
    part = clone(estimator).fit(rows[members]).tree_
    at = _same_node(tree, base, node)
    return _graft(base, at, part)


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
    old = split.boundary
    cut = old.cut + float(old.weights @ (old.pivot - pivot))
    return replace(split, boundary=Hyperplane(old.weights, pivot, cut))


def simplify(tree: ClusterTree, X: Any, max_features: int, agreement: float) -> ClusterTree:
    """Return the tree with every split refitted to its strongest features, where that changes little.

    The weights of the kept features are refitted by least squares to the sides that they have, and the cut is
    put where most rows stay on their side. Costs two passes over the rows that reach a split.
    """
    from ravine.tree.tree import as_rows

    max_features = check_int("max_features", max_features, 1)
    agreement = check_real("agreement", agreement, 0, 1)
    rows = as_rows(X)
    frame = drive(rows, measure(rows))
    node_of = np.zeros(rows.shape[0], dtype=np.int64)
    splits = list(tree.splits)
    for node, split in enumerate(tree.splits):
        if split is None:
            continue
        members = np.flatnonzero(node_of == node)
        part = rows.select(members)
        right = split.boundary.signed_distance(part) > 0
        splits[node] = _simpler(split, part, right, frame, max_features, agreement)
        node_of[members] = np.where(right, tree.right[node], tree.left[node])
    return replace(tree, splits=tuple(splits))


def _simpler(
    split: Split,
    rows: RowBlocks,
    right: npt.NDArray[np.bool_],
    frame: Frame,
    max_features: int,
    agreement: float,
) -> Split:
    """Return the split with fewer features, or itself if too many rows would change sides."""
    top = np.sort(np.argsort(-np.abs(split.direction), kind="stable")[:max_features])
    if (split.direction != 0).sum() <= max_features or right.all() or not right.any():
        return split
    kept = rows.map(lambda block: (block.dense()[:, top] - frame.mean[top]) * frame.inverse_scale[top])
    target = np.where(right, 1.0, -1.0)
    centred = kept - kept.mean(axis=0)
    weights = np.linalg.lstsq(centred, target - target.mean(), rcond=None)[0]
    length = float(np.linalg.norm(weights))
    if length == 0.0:
        return split
    points = kept @ (weights / length)
    cut, same = _best_cut(points, right)
    share = same / len(points)
    if share < agreement:
        return split
    direction = np.zeros_like(split.direction)
    direction[top] = weights / length
    raw = frame.weights(direction)
    pivot = split.boundary.pivot
    plane = Hyperplane(raw, pivot, cut + float(raw @ (frame.mean - pivot)))
    status = f"simplified to {len(top)} of {len(direction)} features: {share:.1%} of the rows keep their side"
    return replace(split, boundary=plane, direction=direction, status=status)


def _best_cut(points: FloatArray, right: npt.NDArray[np.bool_]) -> tuple[float, int]:
    """Return the cut that leaves most rows on their side, and how many."""
    order = np.argsort(points, kind="stable")
    sorted_points, on_right = points[order], right[order]
    stay = np.concatenate([[0], np.cumsum(~on_right)]) + (
        on_right.sum() - np.concatenate([[0], np.cumsum(on_right)])
    )
    distinct = np.concatenate([[True], np.diff(sorted_points) > 0, [True]])
    k = int(np.argmax(np.where(distinct, stay, -1)))
    if k in (0, len(points)):
        edge = sorted_points[0] - 1.0 if k == 0 else sorted_points[-1] + 1.0
        return float(edge), int(stay[k])
    return float(sorted_points[k - 1] / 2 + sorted_points[k] / 2), int(stay[k])
