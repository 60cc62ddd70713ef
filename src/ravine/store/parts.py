"""Splits and trees as JSON values and arrays, and back, with checks that they are consistent.

docs/format.md describes them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.split.boundary import Boundary, Hyperplane, NearestCenter
from ravine.split.split import Evidence, Split
from ravine.store.archive import Stored, require, shown
from ravine.tree.arrays import Tree, TreeArrays

BoolArray = npt.NDArray[np.bool_]
Parts = tuple[dict[str, Any], dict[str, Any]]

NODE_ARRAYS = ("parent", "left", "right", "weight", "order", "label")
SPLIT_NUMBERS = ("value", "quality", "gradient_norm")
EVIDENCE_NUMBERS = ("p_value", "log_depth", "null_mean", "null_deviation", "n_draws")
NOT_FINITE = ("nan", "inf", "-inf")  # numbers that JSON cannot express, as strings
MAX_COUNT = 2**62  # most iterations or draws that a file may state: fits an int64 with room to add


# --- to parts ---


def tree_to_parts(tree: TreeArrays) -> Parts:
    """Return a tree as JSON values and arrays; splits made and refused are stacked."""
    found = [(node, split, 1) for node, split in enumerate(tree.splits) if split is not None]
    found += [(node, split, 0) for node, split in enumerate(tree.refused) if split is not None]
    facts, arrays = splits_to_parts([split for _, split, _ in found])
    arrays |= {name: getattr(tree, name) for name in NODE_ARRAYS}
    arrays["split_node"] = np.array([node for node, _, _ in found], dtype=np.int64)
    arrays["split_made"] = np.array([made for _, _, made in found], dtype=np.int64)
    facts["feature_names"] = None if tree.feature_names is None else list(tree.feature_names)
    facts["mapped"] = tree.mapped
    facts["spread"] = tree.spread
    return facts, arrays


def splits_to_parts(splits: Sequence[Split]) -> Parts:
    """Return splits with a common pivot as JSON values and arrays."""
    pivot = splits[0].boundary.pivot if splits else np.zeros(0)
    shape = len(splits), len(pivot)
    methods, method = _numbered([split.method for split in splits])
    statuses, status = _numbered([split.status for split in splits])
    arrays = {
        "pivot": pivot,
        "split_normal": np.array([split.boundary.normal for split in splits]).reshape(shape),
        "split_direction": np.array([split.direction for split in splits]).reshape(shape),
        "split_threshold": np.array([split.boundary.threshold for split in splits], dtype=np.float64),
        "split_iterations": np.array([split.n_iter for split in splits], dtype=np.int64),
        "split_method": method,
        "split_status": status,
    }
    for name in SPLIT_NUMBERS:
        arrays[f"split_{name}"] = np.array([getattr(split, name) for split in splits], dtype=np.float64)
    for name in EVIDENCE_NUMBERS:
        numbers = [np.nan if split.evidence is None else getattr(split.evidence, name) for split in splits]
        arrays[f"evidence_{name}"] = np.array(numbers, dtype=np.float64)
    arrays |= _centers_to_arrays([split.boundary for split in splits], len(pivot))
    further = [dict(zip(split.facts, jsonable(list(split.facts.values())), strict=True)) for split in splits]
    return {"methods": methods, "statuses": statuses, "facts": further}, arrays


def _numbered(texts: list[str]) -> tuple[list[str], IntArray]:
    """Return the different texts, and the number of each: many splits share one text."""
    numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), np.array([numbers[text] for text in texts], dtype=np.int64)


def jsonable(array: Any) -> list[Any]:
    """Return numbers as a flat list for JSON; those that are not finite become strings."""
    return [x if isinstance(x, int) or np.isfinite(x) else str(x) for x in np.asarray(array).ravel().tolist()]


def _centers_to_arrays(boundaries: Sequence[Boundary], d: int) -> dict[str, Any]:
    """Return the boundaries that are not hyperplanes: directions, centers and sides, with their split.

    The centers' coordinates follow each other, because boundaries may differ in their number of directions.
    """
    several = [(i, b) for i, b in enumerate(boundaries) if isinstance(b, NearestCenter)]
    if not several:
        return {}
    return {
        "several_split": np.repeat([i for i, _ in several], [len(b.directions) for _, b in several]),
        "several_directions": np.concatenate([b.directions for _, b in several]).reshape(-1, d),
        "center_split": np.repeat([i for i, _ in several], [len(b.centers) for _, b in several]),
        "center_right": np.concatenate([b.right for _, b in several]).astype(np.int64),
        "center_points": np.concatenate([b.centers.ravel() for _, b in several]),
    }


# --- from parts ---


def tree_from(make: type[Tree], stored: Stored, n_columns: int | None = None) -> Tree:
    """Read a tree of a class from its stored parts; `n_columns` is checked where it is given."""
    n = len(stored.arrays.get("parent", ()))
    require(n > 0, "parent", "an array of one node at least", f"{n}")
    nodes: dict[str, Any] = {
        name: stored.integers(name, n, low=-1, high=n - 1) for name in NODE_ARRAYS if name != "weight"
    }
    nodes["weight"] = stored.floats("weight", n, low=0)
    require(nodes["weight"][0] > 0, "weight", "above 0 for the root", nodes["weight"])
    _check_links(nodes["parent"], nodes["left"], nodes["right"])
    _check_numbers(nodes["parent"], nodes["left"] < 0, nodes["order"], nodes["label"])
    splits = splits_from(stored, n_columns)
    made, refused = _place_splits(stored, splits, nodes["left"] < 0)
    names = stored.texts_or_none("feature_names", len(splits[0].direction) if splits else n_columns)
    return make(
        splits=made,
        refused=refused,
        feature_names=None if names is None else tuple(names),
        mapped=stored.boolean("mapped"),
        spread=stored.number("spread", low=sys.float_info.min),
        **nodes,
    )


def _check_links(parent: IntArray, left: IntArray, right: IntArray) -> None:
    """Check that every node except the root is the child of an earlier node, once."""
    n = len(parent)
    inner = np.flatnonzero(left >= 0)
    one = np.flatnonzero((left < 0) != (right < 0))
    require(not len(one), "left", "-1 where right is, and nowhere else", f"one child at nodes {one[:3]}")
    children = np.concatenate([left[inner], right[inner]])
    twice = np.flatnonzero(np.bincount(children, minlength=n) != (np.arange(n) > 0))
    require(not len(twice), "left", "with right every node except 0 once", f"nodes {twice[:3]} otherwise")
    known = np.full(n, -1)
    known[children] = np.concatenate([inner, inner])
    other = np.flatnonzero(parent != known)
    require(not len(other), "parent", "the node whose left or right it is", f"another at nodes {other[:3]}")
    late = np.flatnonzero(parent >= np.arange(n))
    require(not len(late), "parent", "a node before its children", f"a later one at nodes {late[:3]}")


def _check_numbers(parent: IntArray, leaf: BoolArray, order: IntArray, label: IntArray) -> None:
    """Check that splits are numbered as they were made, and clusters without a gap."""
    inner = np.flatnonzero(~leaf)
    gap = (order[leaf] >= 0).any() or sorted(order[inner].tolist()) != list(range(len(inner)))
    require(not gap, "order", "-1 for leaves, and the number of each split once", order)
    early = [node for node in inner.tolist() if node and order[node] < order[parent[node]]]
    require(not early, "order", "higher below a split", f"a lower one at nodes {early[:3]}")
    clusters = np.unique(label[leaf])
    gap = (label[~leaf] >= 0).any() or not np.array_equal(clusters, np.arange(len(clusters)))
    require(not gap, "label", "-1 for split nodes, and 0, 1, 2, ... for leaves", label)


def _place_splits(
    stored: Stored, splits: list[Split], leaf: BoolArray
) -> tuple[tuple[Split | None, ...], tuple[Split | None, ...]]:
    """Return the split that was made, and the one that was refused, of each node."""
    n, m = len(leaf), len(splits)
    node = stored.integers("split_node", m, low=0, high=n - 1)
    made = stored.integers("split_made", m, low=0, high=1) == 1
    places: list[list[Split | None]] = [[None] * n, [None] * n]
    for split, at, is_made in zip(splits, node.tolist(), made.tolist(), strict=True):
        places[is_made][at] = split
    refused, done = places
    whole = all((split is None) == is_leaf for split, is_leaf in zip(done, leaf.tolist(), strict=True))
    require(whole, "split_node", "a split made for every node with children", node)
    once = len(set(zip(node.tolist(), made.tolist(), strict=True))) == m and leaf[node[~made]].all()
    require(once, "split_node", "each node once, and leaves where a split was refused", node)
    return tuple(done), tuple(refused)


def splits_from(stored: Stored, n_columns: int | None = None) -> list[Split]:
    """Read splits with a common pivot from their stored parts; `n_columns` is checked where it is given."""
    threshold = stored.floats("split_threshold", None)
    pivot = stored.floats("pivot", n_columns if len(threshold) else 0)
    m, d = len(threshold), len(pivot)
    weights = stored.floats("split_normal", m, d)
    direction = stored.floats("split_direction", m, d)
    iterations = stored.integers("split_iterations", m, low=0, high=MAX_COUNT)
    value, gradient_norm = stored.figures("split_value", m), stored.figures("split_gradient_norm", m)
    quality = stored.floats("split_quality", m, low=0, high=1)
    methods = _texts_from(stored, "methods", "split_method", m)
    statuses = _texts_from(stored, "statuses", "split_status", m)
    evidence, further = _evidence_from(stored, m), _facts_from(stored, m)
    several = _centers_from(stored, pivot, m)
    return [
        Split(
            boundary=several.get(i) or Hyperplane(weights[i], pivot, float(threshold[i])),
            direction=direction[i],
            method=methods[i],
            value=float(value[i]),
            quality=float(quality[i]),
            gradient_norm=float(gradient_norm[i]),
            status=statuses[i],
            n_iter=int(iterations[i]),
            evidence=evidence[i],
            facts=further[i],
        )
        for i in range(m)
    ]


def _texts_from(stored: Stored, texts: str, numbers: str, m: int) -> list[str]:
    different = stored.texts(texts)
    return [different[i] for i in stored.integers(numbers, m, low=0, high=len(different) - 1)]


def _evidence_from(stored: Stored, m: int) -> list[Evidence | None]:
    """Read the evidence of every split; a p-value of NaN means that there was no test."""
    p_value, log_depth, mean, deviation, n_draws = (
        stored.figures(f"evidence_{name}", m) for name in EVIDENCE_NUMBERS
    )
    tested = ~np.isnan(p_value)
    shares = p_value[tested]
    require(((shares >= 0) & (shares <= 1)).all(), "evidence_p_value", "NaN or from 0 to 1", shares)
    draws = n_draws[tested]
    whole = ((draws >= 0) & (draws <= MAX_COUNT) & (draws == np.floor(draws))).all()
    require(whole, "evidence_n_draws", "whole numbers", draws)
    return [
        Evidence(float(p_value[i]), float(log_depth[i]), float(mean[i]), float(deviation[i]), int(n_draws[i]))
        if tested[i]
        else None
        for i in range(m)
    ]


def _facts_from(stored: Stored, m: int) -> list[dict[str, float]]:
    """Read the further numbers of every split, by name."""
    further = stored.objects("facts")
    require(len(further) == m, "facts", f"a list of {m} objects of JSON", f"{len(further)}")
    return [{name: number("facts", x) for name, x in one.facts.items()} for one in further]


def number(what: str, value: Any) -> float:
    """Return a number as `jsonable` wrote it."""
    holds = type(value) in (int, float) or value in NOT_FINITE
    require(holds, what, f"a number or one of {', '.join(NOT_FINITE)}", shown(value))
    return float(value)


def _centers_from(stored: Stored, pivot: FloatArray, m: int) -> dict[int, NearestCenter]:
    """Read the boundaries that are not hyperplanes, by their split."""
    if "several_split" not in stored.arrays:
        return {}
    of_direction = stored.integers("several_split", None, low=0, high=m - 1)
    of_center = stored.integers("center_split", None, low=0, high=m - 1)
    directions = stored.floats("several_directions", len(of_direction), len(pivot))
    right = stored.integers("center_right", len(of_center), low=0, high=1) == 1
    rising = (np.diff(of_direction) >= 0).all() and (np.diff(of_center) >= 0).all()
    require(rising, "several_split", "in the order of the splits, as center_split", of_direction)
    n_directions, n_centers = (np.bincount(of, minlength=m) for of in (of_direction, of_center))
    n_right = np.bincount(of_center[right], minlength=m)
    both = (n_right > 0) & (n_right < n_centers)
    require(
        np.array_equal(both, n_directions > 0) and np.array_equal(n_centers > 0, both),
        "center_right",
        "on both sides of every split with several directions, and of no other",
        right,
    )
    points = stored.floats("center_points", int(n_directions @ n_centers))
    parts = zip(
        _per_split(directions, n_directions),
        _per_split(points, n_directions * n_centers),
        _per_split(right, n_centers),
        strict=True,
    )
    return {
        i: NearestCenter(lines, pivot, places.reshape(-1, len(lines)), sides)
        for i, (lines, places, sides) in enumerate(parts)
        if len(lines)
    }


def _per_split(stacked: Any, sizes: IntArray) -> list[Any]:
    """Return the stretch of an array that belongs to each split."""
    return np.split(stacked, np.cumsum(sizes)[:-1])
