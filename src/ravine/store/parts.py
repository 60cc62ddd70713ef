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
    refuse_errors,
    require,
    shorten_value,
)
from ravine.tree.arrays import Tree, TreeArrays

Parts = tuple[dict[str, Any], dict[str, Any]]

VERSION = 4  # of the format of model files, checkpoints, and trees as JSON


def format_facts(kind: str) -> dict[str, Any]:
    """Return what a model, a tree or a checkpoint says of its format."""
    return {"format": f"ravine {kind}", "version": VERSION}


def check_format(stored: Stored, kind: str) -> None:
    """Refuse anything except the present version of the format."""
    stored.text("format", [f"ravine {kind}"])
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
    """Return a tree as JSON values and arrays: the splits in the order of growth, then those refused.

    Split k made the nodes 2 k + 1 and 2 k + 2. So the node of each split is all that has to be stored of how
    nodes are linked, and what is stored once cannot contradict itself.
    """
    assert (tree.left[tree.inner] == 2 * np.arange(len(tree.inner)) + 1).all()
    found = [(node, tree.splits[node]) for node in tree.inner.tolist()]
    found += [(node, split) for node, split in enumerate(tree.refused) if split is not None]
    facts, arrays = splits_to_parts([split for _, split in found if split is not None])
    for record, (node, _) in zip(facts["splits"], found, strict=True):
        record["node"] = node
    arrays |= {"weight": tree.weight, "label": tree.label[tree.left < 0]}
    names = None if tree.feature_names is None else list(tree.feature_names)
    return facts | {"feature_names": names, "mapped": tree.mapped, "spread": tree.spread}, arrays


def tree_from(make: type[Tree], stored: Stored, n_columns: int | None = None) -> Tree:
    """Read a tree of a class; `n_columns` is checked where it is given."""
    n = len(stored.array("weight"))
    weight = stored.floats("weight", n, low=0)
    require(n % 2 == 1 and weight[0] > 0, "weight", "of a root above 0 and of pairs of nodes", weight)
    n_splits = n // 2
    splits = splits_from(stored, n_columns)
    require(len(splits) >= n_splits, "splits", f"at least {n_splits}, for {n} nodes", f"{len(splits)}")
    nodes = [record.integer("node", high=n - 1) for record in stored.objects("splits")]
    parent, left, right, order, label = (np.full(n, -1, dtype=np.int64) for _ in range(5))
    made: list[Split | None] = [None] * n
    refused: list[Split | None] = [None] * n
    for k, (node, split) in enumerate(zip(nodes, splits, strict=True)):
        is_made = k < n_splits
        fits = made[node] is refused[node] is None and (not is_made or node <= 2 * k)
        require(fits, "splits.node", "each node once, which an earlier split has made", f"{node}")
        (made if is_made else refused)[node] = split
        if is_made:
            left[node], right[node], order[node] = 2 * k + 1, 2 * k + 2, k
            parent[2 * k + 1 : 2 * k + 3] = node
    label[left < 0] = _labels_from(stored, n_splits + 1)
    names = stored.texts_or_none("feature_names", len(splits[0].direction) if splits else n_columns)
    return make(
        parent=parent,
        left=left,
        right=right,
        weight=weight,
        splits=tuple(made),
        order=order,
        refused=tuple(refused),
        label=label,
        feature_names=None if names is None else tuple(names),
        mapped=stored.boolean("mapped"),
        spread=stored.number("spread", low=sys.float_info.min),
    )


def _labels_from(stored: Stored, n_leaves: int) -> IntArray:
    """Return the labels of the leaves, which are 0, 1, 2, ... in any order; several may share one."""
    label = stored.integers("label", n_leaves, low=0, high=n_leaves - 1)
    clusters = np.unique(label)
    require(clusters[-1] == len(clusters) - 1, "label", "0, 1, 2, ... without a gap", clusters)
    return label


# --- trees as text ---


def to_json(tree: TreeArrays) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = tree_to_parts(tree)
    return json.dumps({**format_facts("tree"), **facts, "arrays": jsonable(arrays)})


def from_json(make: type[Tree], text: str) -> Tree:
    """Read a tree of a class from JSON."""
    with refuse_errors("the text is not a valid ravine tree", "write it again with to_json"):
        facts = json.loads(text)
        require(isinstance(facts, dict), "a tree", "an object of JSON", shorten_value(facts))
        stored = Stored(facts, {})
        check_format(stored, "tree")
        lists = stored.inner("arrays").facts
        stored.arrays = {name: array_of_lists(name, values) for name, values in lists.items()}
        return tree_from(make, stored)
