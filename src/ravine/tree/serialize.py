"""Splits and trees as JSON values and arrays, and back. Everything read is checked; see docs/format.md."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidModelError
from ravine.io.archive import Stored, require, shown
from ravine.split.hyperplane import Boundary, Evidence, Hyperplane, NearestCenter, Split
from ravine.tree.tree import ClusterTree

BoolArray = npt.NDArray[np.bool_]
Parts = tuple[dict[str, Any], dict[str, Any]]  # JSON values, and arrays

FORMAT, VERSION = "ravine model", 2
NODE_INTEGERS = ("parent", "left", "right", "order", "label")
SPLIT_NUMBERS = ("value", "quality", "gradient_norm")
EVIDENCE_NUMBERS = tuple(field.name for field in fields(Evidence))
INTEGERS = (  # arrays of a tree that are int64; all others are float64
    *(*NODE_INTEGERS, "split_node", "split_made", "split_iterations", "split_method", "split_status"),
    *("several_split", "center_split", "center_right"),
)
NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no such numbers, so they are stored as strings
MAX_COUNT = 2**62  # counts up to this fit int64, and so do sums of two
MAX_REASON = 300  # characters of a reason in an error, as it may quote the file


# --- JSON text ---


def to_json(tree: ClusterTree) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = tree_to_parts(tree)
    lists = {name: _jsonable(array) for name, array in arrays.items()}
    shape = list(np.shape(arrays["split_weights"]))
    return json.dumps({"format": FORMAT, "version": VERSION, **facts, "shape": shape, "arrays": lists})


def from_json(text: str) -> ClusterTree:
    """Read a tree from JSON."""
    what, advice = "the text is not a whole ravine tree", "write it again with to_json"
    with refusing(what, advice):
        facts = json.loads(text)
        require(isinstance(facts, dict), "a tree", "an object of JSON", shown(facts))
        stored = Stored(facts, {})
        version = format_version(stored)
    check_version("the text", version)
    with refusing(what, advice):
        stored.arrays = _arrays_from(stored)
        tree = tree_from(stored)
        stored.finish()
    return tree


def _arrays_from(stored: Stored) -> dict[str, Any]:
    """Read the arrays, which are flat lists in JSON."""
    shape = stored.fact("shape")
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(x) is int and x >= 0 for x in shape)
    require(whole, "shape", "the numbers of splits and features", shown(shape))
    arrays = {name: _array_from(name, values) for name, values in stored.inner("arrays").facts.items()}
    two_dimensional = {"split_weights": shape, "split_direction": shape, "several_directions": (-1, shape[1])}
    return {name: array.reshape(two_dimensional.get(name, -1)) for name, array in arrays.items()}


def _array_from(name: str, values: Any) -> npt.NDArray[Any]:
    require(isinstance(values, list), name, "a list of numbers", shown(values))
    if name not in INTEGERS:
        return np.array([_number(name, x) for x in values], dtype=np.float64)
    require(all(type(x) is int for x in values), name, "a list of whole numbers", shown(values))
    return np.array(values, dtype=np.int64)


def _jsonable(array: Any) -> list[Any]:
    """Return numbers as a flat list for JSON; those that are not finite become strings."""
    return [x if isinstance(x, int) or np.isfinite(x) else str(x) for x in np.asarray(array).ravel().tolist()]


def _number(what: str, value: Any) -> float:
    """Return a number that `_jsonable` wrote."""
    holds = type(value) in (int, float) or value in NOT_FINITE
    require(holds, what, f"a number or one of {', '.join(NOT_FINITE)}", shown(value))
    return float(value)


# --- format and version ---


@contextmanager
def refusing(what: str, advice: str = "save the model again") -> Iterator[None]:
    """Turn any error of a damaged file or text into an `InvalidModelError` of one sentence."""
    try:
        yield
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, MAX_REASON)
        raise InvalidModelError(f"{what}: {reason}; {advice}") from error


def format_version(stored: Stored) -> int:
    """Check the name of the format and return its version."""
    stored.text("format", [FORMAT])
    return stored.integer("version", low=1)


def check_version(what: str, version: int) -> None:
    """Refuse a version of the format that this code does not read."""
    if version != VERSION:
        advice = "upgrade ravine" if version > VERSION else "fit and save the model again"
        raise InvalidModelError(
            f"{what} has version {version} of the format, and this ravine reads version {VERSION}: {advice}"
        )


# --- to parts ---


def tree_to_parts(tree: ClusterTree) -> Parts:
    """Return a tree as JSON values and arrays; refused splits follow those that were made."""
    found = [(node, split, 1) for node, split in enumerate(tree.splits) if split is not None]
    found += [(node, split, 0) for node, split in enumerate(tree.refused) if split is not None]
    facts, arrays = splits_to_parts([split for _, split, _ in found])
    arrays |= {name: getattr(tree, name) for name in (*NODE_INTEGERS, "weight")}
    arrays["split_node"] = np.array([node for node, _, _ in found], dtype=np.int64)
    arrays["split_made"] = np.array([made for _, _, made in found], dtype=np.int64)
    names = None if tree.feature_names is None else list(tree.feature_names)
    return {**facts, "feature_names": names, "mapped": tree.mapped, "spread": tree.spread}, arrays


def splits_to_parts(splits: Sequence[Split]) -> Parts:
    """Return splits with a common pivot as JSON values and arrays."""
    boundaries = [split.boundary for split in splits]
    pivot = boundaries[0].pivot if splits else np.zeros(0)
    methods = list(dict.fromkeys(split.method for split in splits))
    statuses = list(dict.fromkeys(split.status for split in splits))
    floats = {
        "pivot": pivot,
        "split_weights": np.array([b.weights for b in boundaries]).reshape(len(splits), len(pivot)),
        "split_direction": np.array([split.direction for split in splits]).reshape(len(splits), len(pivot)),
        "split_cut": [b.threshold for b in boundaries],
        **{f"split_{name}": [getattr(s, name) for s in splits] for name in SPLIT_NUMBERS},
        **{
            f"evidence_{name}": [getattr(s.evidence, name, np.nan) for s in splits]
            for name in EVIDENCE_NUMBERS
        },
    }
    integers = {
        "split_iterations": [split.n_iter for split in splits],
        "split_method": [methods.index(split.method) for split in splits],
        "split_status": [statuses.index(split.status) for split in splits],
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in floats.items()}
    arrays |= {name: np.array(values, dtype=np.int64) for name, values in integers.items()}
    arrays |= _centers_to_arrays(boundaries, len(pivot))
    further = [dict(zip(split.facts, _jsonable(list(split.facts.values())), strict=True)) for split in splits]
    return {"methods": methods, "statuses": statuses, "facts": further}, arrays


def _centers_to_arrays(boundaries: Sequence[Boundary], d: int) -> dict[str, Any]:
    """Return the boundaries that are not hyperplanes: directions, centers and sides, with their split.

    The coordinates of the centers are one flat array, as boundaries differ in their number of directions.
    """
    several = {i: b for i, b in enumerate(boundaries) if isinstance(b, NearestCenter)}
    if not several:
        return {}
    numbers, found = list(several), several.values()
    return {
        "several_split": np.repeat(numbers, [len(b.directions) for b in found]),
        "several_directions": np.concatenate([b.directions for b in found]).reshape(-1, d),
        "center_split": np.repeat(numbers, [len(b.centers) for b in found]),
        "center_right": np.concatenate([b.right for b in found]).astype(np.int64),
        "center_points": np.concatenate([b.centers.ravel() for b in found]),
    }


# --- from parts ---


def tree_from(stored: Stored, n_columns: int | None = None) -> ClusterTree:
    """Read a tree, for rows with `n_columns` if that is known."""
    n = len(stored.arrays.get("parent", ()))
    require(n > 0, "parent", "an array of one node at least", f"{n}")
    nodes: dict[str, Any] = {name: stored.integers(name, n, low=-1, high=n - 1) for name in NODE_INTEGERS}
    nodes["weight"] = stored.floats("weight", n, low=0)
    require(nodes["weight"][0] > 0, "weight", "above 0 for the root", nodes["weight"])
    leaf = nodes["left"] < 0
    _check_links(nodes["parent"], nodes["left"], nodes["right"])
    _check_numbers(nodes["parent"], leaf, nodes["order"], nodes["label"])
    splits = splits_from(stored, n_columns)
    made, refused = _place_splits(stored, splits, leaf)
    names = stored.texts_or_none("feature_names", len(splits[0].direction) if splits else n_columns)
    return ClusterTree(
        splits=made,
        refused=refused,
        feature_names=None if names is None else tuple(names),
        mapped=stored.boolean("mapped"),
        spread=stored.number("spread", low=sys.float_info.min),
        **nodes,
    )


def _check_links(parent: IntArray, left: IntArray, right: IntArray) -> None:
    """Check that every node except the root is the child of exactly one earlier node."""
    n = len(parent)
    inner = np.flatnonzero(left >= 0)
    one = np.flatnonzero((left < 0) != (right < 0))
    require(not len(one), "left", "-1 where right is, and nowhere else", f"one child at nodes {one[:3]}")
    children = np.concatenate([left[inner], right[inner]])
    twice = np.flatnonzero(np.bincount(children, minlength=n) != (np.arange(n) > 0))
    require(not len(twice), "left", "with right every node except 0 once", f"nodes {twice[:3]} otherwise")
    expected = np.full(n, -1)
    expected[children] = np.concatenate([inner, inner])
    other = np.flatnonzero(parent != expected)
    require(not len(other), "parent", "the node whose left or right it is", f"another at nodes {other[:3]}")
    late = np.flatnonzero(parent >= np.arange(n))
    require(not len(late), "parent", "a node before its children", f"a later one at nodes {late[:3]}")


def _check_numbers(parent: IntArray, leaf: BoolArray, order: IntArray, label: IntArray) -> None:
    """Check that splits are numbered in the order of growth, and clusters without gaps."""
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
    """Return the split that was made, and the one that was refused, at each node."""
    n, m = len(leaf), len(splits)
    node = stored.integers("split_node", m, low=0, high=n - 1)
    made = stored.integers("split_made", m, low=0, high=1) == 1
    done = dict(
        zip(node[made].tolist(), (s for s, is_made in zip(splits, made, strict=True) if is_made), strict=True)
    )
    refused = dict(
        zip(
            node[~made].tolist(),
            (s for s, is_made in zip(splits, made, strict=True) if not is_made),
            strict=True,
        )
    )
    whole = sorted(done) == np.flatnonzero(~leaf).tolist()
    require(whole, "split_node", "a split made for every node with children", node)
    once = len(done) + len(refused) == m and leaf[node[~made]].all()
    require(once, "split_node", "each node once, and leaves where a split was refused", node)
    return tuple(map(done.get, range(n))), tuple(map(refused.get, range(n)))


def splits_from(stored: Stored, n_columns: int | None = None) -> list[Split]:
    """Read splits with a common pivot, for rows with `n_columns` if that is known."""
    threshold = stored.floats("split_cut", None)
    pivot = stored.floats("pivot", n_columns if len(threshold) else 0)
    m, d = len(threshold), len(pivot)
    weights = stored.floats("split_weights", m, d)
    direction = stored.floats("split_direction", m, d)
    several = _centers_from(stored, pivot, m)
    columns = {
        "method": _texts_from(stored, "methods", "split_method", m),
        "value": stored.figures("split_value", m).tolist(),
        "quality": stored.floats("split_quality", m, low=0, high=1).tolist(),
        "gradient_norm": stored.figures("split_gradient_norm", m).tolist(),
        "status": _texts_from(stored, "statuses", "split_status", m),
        "n_iter": stored.integers("split_iterations", m, low=0, high=MAX_COUNT).tolist(),
        "evidence": _evidence_from(stored, m),
        "facts": _facts_from(stored, m),
    }
    return [
        Split(
            boundary=several.get(i) or Hyperplane(weights[i], pivot, float(threshold[i])),
            direction=direction[i],
            **{name: column[i] for name, column in columns.items()},
        )
        for i in range(m)
    ]


def _texts_from(stored: Stored, texts: str, numbers: str, m: int) -> list[str]:
    different = stored.texts(texts)
    return [different[i] for i in stored.integers(numbers, m, low=0, high=len(different) - 1)]


def _evidence_from(stored: Stored, m: int) -> list[Evidence | None]:
    """Read the evidence of every split; a p-value of NaN means that there was no test."""
    columns = {name: stored.figures(f"evidence_{name}", m) for name in EVIDENCE_NUMBERS}
    tested = ~np.isnan(columns["p_value"])
    shares, draws = columns["p_value"][tested], columns["n_draws"][tested]
    require(((shares >= 0) & (shares <= 1)).all(), "evidence_p_value", "NaN or from 0 to 1", shares)
    whole = ((draws >= 0) & (draws <= MAX_COUNT) & (draws == np.floor(draws))).all()
    require(whole, "evidence_n_draws", "whole numbers", draws)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [None if math.isnan(p) else Evidence(p, depth, mean, sd, int(n)) for p, depth, mean, sd, n in rows]


def _facts_from(stored: Stored, m: int) -> list[dict[str, float]]:
    """Read the further numbers of every split, by name."""
    further = stored.fact("facts")
    holds = isinstance(further, list) and all(isinstance(numbers, dict) for numbers in further)
    require(holds and len(further) == m, "facts", f"a list of {m} objects of JSON", shown(further))
    return [{name: _number("facts", x) for name, x in numbers.items()} for numbers in further]


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
    holds = np.array_equal(both, n_directions > 0) and np.array_equal(n_centers > 0, both)
    require(
        holds, "center_right", "on both sides of every split with several directions, and of no other", right
    )
    points = stored.floats("center_points", int(n_directions @ n_centers))
    parts = (
        np.split(stacked, np.cumsum(sizes)[:-1])
        for stacked, sizes in (
            (directions, n_directions),
            (points, n_directions * n_centers),
            (right, n_centers),
        )
    )
    return {
        i: NearestCenter(lines, pivot, places.reshape(-1, len(lines)), sides)
        for i, (lines, places, sides) in enumerate(zip(*parts, strict=True))
        if len(lines)
    }
