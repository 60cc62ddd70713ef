"""Splits and trees as JSON values and arrays, in files and as text, and back, with checks.

docs/format.md describes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.split.boundary import Boundary, Hyperplane, NearestCenter
from ravine.split.split import Evidence, Split
from ravine.store.archive import (
    Stored,
    array_of_lists,
    fields_to_json,
    jsonable,
    refusing,
    require,
    shown,
)
from ravine.tree.arrays import Tree, TreeArrays

Parts = tuple[dict[str, Any], dict[str, Any]]

FORMAT, VERSION = "ravine model", 4  # of model files and of trees as JSON


def check_format(stored: Stored) -> None:
    """Refuse anything except the present version of the format."""
    stored.text("format", [FORMAT])
    version = stored.integer("version", low=1)
    require(version == VERSION, "the version of the format", f"{VERSION}, which this ravine reads", version)


# --- splits ---


def splits_to_parts(splits: Sequence[Split]) -> Parts:
    """Return splits with a common pivot as JSON values and arrays; no split has no arrays."""
    facts = {"splits": [_split_to_json(split) for split in splits]}
    if not splits:
        return facts, {}
    boundaries = [split.boundary for split in splits]
    normals = [b.directions if isinstance(b, NearestCenter) else b.normal[None] for b in boundaries]
    return facts, {
        "pivot": boundaries[0].pivot,
        "split_normals": np.concatenate(normals),
        "split_directions": np.array([split.direction for split in splits]),
    }


def _split_to_json(split: Split) -> dict[str, Any]:
    boundary, evidence = split.boundary, split.evidence
    found = fields_to_json(split) | {"facts": jsonable(split.facts)}
    found["evidence"] = None if evidence is None else fields_to_json(evidence)
    if isinstance(boundary, NearestCenter):
        return found | {"centers": boundary.centers.tolist(), "right": boundary.right.astype(int).tolist()}
    return found | {"threshold": float(boundary.threshold)}


def splits_from(stored: Stored, n_columns: int | None = None) -> list[Split]:
    """Read splits with a common pivot; `n_columns` is checked where it is given."""
    records = stored.objects("splits")
    if not records:
        return []
    pivot = stored.floats("pivot", n_columns)
    normals = stored.floats("split_normals", None, len(pivot))
    directions = stored.floats("split_directions", len(records), len(pivot))
    splits = []  # each takes its normals from the front: one for a hyperplane, several for nearest centers
    for record, direction in zip(records, directions, strict=True):
        boundary, normals = _boundary_from(record, pivot, normals)
        evidence = None if record.fact("evidence") is None else _evidence_from(record.inner("evidence"))
        facts = record.inner("facts")
        split = Split(
            boundary=boundary,
            direction=direction,
            evidence=evidence,
            facts={name: facts.figure(name) for name in facts.facts},
            **record.fields_of(Split),
        )
        require(0 <= split.quality <= 1, "splits.quality", "from 0 to 1", split.quality)
        splits.append(split)
    require(len(normals) == 0, "split_normals", "as many as the splits have", f"{len(normals)} more")
    return splits


def _boundary_from(record: Stored, pivot: FloatArray, normals: FloatArray) -> tuple[Boundary, FloatArray]:
    """Return the boundary of a split, and the normals that are left for further ones."""
    if "threshold" in record.facts:
        require(len(normals), "split_normals", "at least one for every split", "fewer")
        return Hyperplane(normals[0], pivot, record.number("threshold")), normals[1:]
    lists = record.lists("centers", "right")
    centers = lists.floats("centers", None, None)
    right = lists.integers("right", len(centers), low=0, high=1) == 1
    require(right.any() and not right.all(), "splits.right", "1 and 0 for centers on both sides", right)
    n = centers.shape[1]
    require(0 < n <= len(normals), "split_normals", f"{n} for a split with so many directions", len(normals))
    return NearestCenter(normals[:n], pivot, centers, right), normals[n:]


def _evidence_from(stored: Stored) -> Evidence:
    evidence = Evidence(**stored.fields_of(Evidence))
    require(0 <= evidence.p_value <= 1, "evidence.p_value", "from 0 to 1", evidence.p_value)
    return evidence


# --- trees ---


def tree_to_parts(tree: TreeArrays) -> Parts:
    """Return a tree as JSON values and arrays; splits made and refused are stacked."""
    found = [(node, split, True) for node, split in enumerate(tree.splits) if split is not None]
    found += [(node, split, False) for node, split in enumerate(tree.refused) if split is not None]
    facts, arrays = splits_to_parts([split for _, split, _ in found])
    for record, (node, _, made) in zip(facts["splits"], found, strict=True):
        record |= {"node": node, "made": made}
    # Without `parent`, which follows from the children: what is stored once cannot contradict itself.
    nodes = {name: getattr(tree, name) for name in ("left", "right", "weight", "order", "label")}
    names = None if tree.feature_names is None else list(tree.feature_names)
    return facts | {"feature_names": names, "mapped": tree.mapped, "spread": tree.spread}, arrays | nodes


def tree_from(make: type[Tree], stored: Stored, n_columns: int | None = None) -> Tree:
    """Read a tree of a class; `n_columns` is checked where it is given."""
    n = len(stored.array("left"))
    require(n > 0, "left", "an array of one node at least", f"{n}")
    left, right, order, label = (
        stored.integers(name, n, low=-1, high=n - 1) for name in ("left", "right", "order", "label")
    )
    weight = stored.floats("weight", n, low=0)
    require(weight[0] > 0, "weight", "above 0 for the root", weight)
    parent = _parents(left, right)
    _check_numbers(parent, left, order, label)
    splits = splits_from(stored, n_columns)
    made, refused = _place_splits(stored.objects("splits"), splits, left)
    names = stored.texts_or_none("feature_names", len(splits[0].direction) if splits else n_columns)
    return make(
        parent=parent,
        left=left,
        right=right,
        weight=weight,
        splits=made,
        order=order,
        refused=refused,
        label=label,
        feature_names=None if names is None else tuple(names),
        mapped=stored.boolean("mapped"),
        spread=stored.number("spread", low=sys.float_info.min),
    )


def _parents(left: IntArray, right: IntArray) -> IntArray:
    """Return the parent of every node, after checking that each has one, which comes before it."""
    n, inner = len(left), np.flatnonzero(left >= 0)
    one = np.flatnonzero((left < 0) != (right < 0))
    require(not len(one), "left", "-1 where right is, and nowhere else", f"one child at nodes {one[:3]}")
    children = np.concatenate([left[inner], right[inner]])
    twice = np.flatnonzero(np.bincount(children, minlength=n) != (np.arange(n) > 0))
    require(not len(twice), "left", "with right every node except 0 once", f"nodes {twice[:3]} otherwise")
    parent = np.full(n, -1, dtype=np.int64)
    parent[children] = np.concatenate([inner, inner])
    late = np.flatnonzero(parent >= np.arange(n))
    require(not len(late), "left", "with right after their parent", f"a later one at nodes {late[:3]}")
    return parent


def _check_numbers(parent: IntArray, left: IntArray, order: IntArray, label: IntArray) -> None:
    """Check that splits are numbered as they were made, and clusters without a gap."""
    leaf, inner = left < 0, np.flatnonzero(left >= 0)
    gap = (order[leaf] >= 0).any() or sorted(order[inner].tolist()) != list(range(len(inner)))
    require(not gap, "order", "-1 for leaves, and the number of each split once", order)
    early = [node for node in inner.tolist() if node and order[node] < order[parent[node]]]
    require(not early, "order", "higher below a split", f"a lower one at nodes {early[:3]}")
    clusters = np.unique(label[leaf])
    gap = (label[inner] >= 0).any() or not np.array_equal(clusters, np.arange(len(clusters)))
    require(not gap, "label", "-1 for split nodes, and 0, 1, 2, ... for leaves", label)


def _place_splits(
    records: Sequence[Stored], splits: Sequence[Split], left: IntArray
) -> tuple[tuple[Split | None, ...], tuple[Split | None, ...]]:
    """Return the split that was made, and the one that was refused, of each node."""
    made: list[Split | None] = [None] * len(left)
    refused: list[Split | None] = [None] * len(left)
    for record, split in zip(records, splits, strict=True):
        node, is_made = record.integer("node", high=len(left) - 1), record.boolean("made")
        fits = is_made == bool(left[node] >= 0) and made[node] is refused[node] is None
        require(fits, "splits.node", "each node once: made if it has children, else refused", f"{node}")
        (made if is_made else refused)[node] = split
    lacking = [node for node in np.flatnonzero(left >= 0).tolist() if made[node] is None]
    require(not lacking, "splits.node", "one made for every node with children", f"none for {lacking[:3]}")
    return tuple(made), tuple(refused)


# --- trees as text ---


def to_json(tree: TreeArrays) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = tree_to_parts(tree)
    return json.dumps({"format": FORMAT, "version": VERSION, **facts, "arrays": jsonable(arrays)})


def from_json(make: type[Tree], text: str) -> Tree:
    """Read a tree of a class from JSON."""
    with refusing("the text is not a valid ravine tree", "write it again with to_json"):
        facts = json.loads(text)
        require(isinstance(facts, dict), "a tree", "an object of JSON", shown(facts))
        stored = Stored(facts, {})
        check_format(stored)
        lists = stored.inner("arrays").facts
        stored.arrays = {name: array_of_lists(name, values) for name, values in lists.items()}
        return tree_from(make, stored)
