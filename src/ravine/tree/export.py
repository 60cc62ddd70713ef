"""A tree in other forms: text, HTML, data frame, SciPy linkage, Graphviz, SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ravine._validate import FloatArray, check_choice
from ravine.exceptions import InvalidInputError, RavineError
from ravine.split.hyperplane import Hyperplane, Split

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree


def names_of(tree: ClusterTree, names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the columns' names: those given, those seen in `fit`, or x0, x1, ..."""
    found = names if names is not None else tree.feature_names
    if found is None:
        return [f"x{j}" for j in range(n_features)]
    if len(found) != n_features:
        raise InvalidInputError(f"{n_features} feature names are needed, got {len(found)}")
    return [str(name) for name in found]


def _names(tree: ClusterTree, names: Sequence[str] | None) -> list[str]:
    """Return the names for as many features as the splits have; none for a tree without splits."""
    split = next((split for split in tree.splits if split is not None), None)
    return [] if split is None else names_of(tree, names, len(split.direction))


def strongest(split: Split, names: Sequence[str], n_features: int) -> str:
    """Name the features with the largest standardized weights, and their signs."""
    direction = split.direction
    top = np.argsort(-np.abs(direction), kind="stable")[:n_features]
    return ", ".join(f"{'+' if direction[j] > 0 else '-'}{names[j]}" for j in top if direction[j] != 0)


def text(tree: ClusterTree, feature_names: Sequence[str] | None, n_features: int) -> str:
    """Return the tree as indented text."""
    names = _names(tree, feature_names)
    lines: list[str] = []
    stack = [(0, "", "")]
    while stack:
        node, lead, branch = stack.pop()
        split = tree.splits[node]
        size = f"{tree.weight[node]:g} rows ({tree.weight[node] / tree.weight[0]:.0%})"
        if split is None:
            lines.append(f"{lead}{branch}cluster {tree.label[node]}: {size}{_why_not(tree.refused[node])}")
            continue
        drivers = strongest(split, names, n_features)
        lines.append(f"{lead}{branch}{size}, split at depth {split.quality:.2f}{_why(split)} by {drivers}")
        below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        stack += [(int(tree.right[node]), below, "└─ "), (int(tree.left[node]), below, "├─ ")]
    return "\n".join(lines)


def html(tree: ClusterTree) -> str:
    """Return the tree as a nested list of HTML, for notebooks; names of columns are escaped."""
    names = _names(tree, None)
    items = [""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        split = tree.splits[node]
        size = f"{tree.weight[node]:g} rows ({tree.weight[node] / tree.weight[0]:.0%})"
        if split is None:
            refused = escape(_why_not(tree.refused[node]))
            items[node] = f"<li><b>cluster {tree.label[node]}</b>: {size}{refused}</li>"
            continue
        words = f"{size}, split at depth {split.quality:.2f}{_why(split)} by "
        drivers = escape(strongest(split, names, 3))
        below = items[tree.left[node]] + items[tree.right[node]]
        items[node] = f"<li>{words}{drivers}<ul>{below}</ul></li>"
    return f'<ul class="ravine-tree">{items[0]}</ul>'


def _why(split: Split) -> str:
    return "" if split.evidence is None else f" (p = {split.evidence.p_value:.1g})"


def _why_not(refused: Split | None) -> str:
    if refused is None or refused.evidence is None:
        return ""
    return (
        f", not split: its depth of {refused.quality:.2f} may be chance (p = {refused.evidence.p_value:.1g})"
    )


def frame(tree: ClusterTree) -> Any:
    """Return a pandas data frame with one row a node."""
    try:
        import pandas as pd
    except ImportError as error:
        raise RavineError("to_frame needs pandas: pip install pandas") from error

    known = [
        split if split is not None else refused
        for split, refused in zip(tree.splits, tree.refused, strict=True)
    ]
    facts = dict.fromkeys(name for split in known if split is not None for name in split.facts)

    def of_split(value: Callable[[Split], Any], empty: Any) -> list[Any]:
        return [empty if split is None else value(split) for split in known]

    return pd.DataFrame(
        {
            "node": np.arange(tree.n_nodes),
            "parent": tree.parent,
            "left": tree.left,
            "right": tree.right,
            "depth": tree.depth,
            "cluster": tree.label,
            "weight": tree.weight,
            "split": tree.order,
            "method": of_split(lambda s: s.method, None),
            "quality": of_split(lambda s: s.quality, np.nan),
            "relative_depth": of_split(lambda s: s.relative_depth, np.nan),
            "value": of_split(lambda s: s.value, np.nan),
            "gradient_norm": of_split(lambda s: s.gradient_norm, np.nan),
            "p_value": of_split(lambda s: np.nan if s.evidence is None else s.evidence.p_value, np.nan),
            "status": of_split(lambda s: s.status, None),
            **{name: of_split(lambda s, name=name: s.facts.get(name, np.nan), np.nan) for name in facts},  # type: ignore[misc]
        }
    )


def linkage(tree: ClusterTree) -> FloatArray:
    """Return a SciPy linkage of the leaves from left to right; heights fall with the order of splits."""
    if tree.n_leaves < 2:
        raise InvalidInputError("a linkage needs at least two leaves; this tree has one")
    number = np.full(tree.n_nodes, -1, dtype=np.int64)
    number[tree.leaves] = np.arange(tree.n_leaves)
    count = (tree.left < 0).astype(np.int64)
    merges = np.empty((tree.n_leaves - 1, 4))
    for height, node in enumerate(tree.inner[::-1], start=1):
        left, right = tree.left[node], tree.right[node]
        number[node] = tree.n_leaves + height - 1
        count[node] = count[left] + count[right]
        merges[height - 1] = number[left], number[right], height, count[node]
    return merges


def dot(tree: ClusterTree, feature_names: Sequence[str] | None) -> str:
    """Return the tree in Graphviz's language."""
    names = _names(tree, feature_names)
    lines = ["digraph tree {", "  node [shape=box, style=rounded];"]
    for node, split in enumerate(tree.splits):
        title = f"{tree.weight[node]:g} rows"
        if split is None:
            title = f"cluster {tree.label[node]}\n{title}"
        else:
            title += f"\ndepth {split.quality:.2f}\n{strongest(split, names, 3)}"
        escaped = title.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  {node} [label="{escaped}"];')
        if node:
            lines.append(f"  {tree.parent[node]} -> {node};")
    return "\n".join([*lines, "}"])


QUOTES = {
    "duckdb": ('"', '"'),
    "sqlite": ('"', '"'),
    "postgres": ('"', '"'),
    "standard": ('"', '"'),
    "mysql": ("`", "`"),
    "bigquery": ("`", "`"),
    "mssql": ("[", "]"),
}


def sql(tree: ClusterTree, table: str, dialect: str, columns: Sequence[str] | None) -> str:
    """Return one SELECT that assigns the cluster of every row of a table.

    The table's name is quoted as one identifier, without a schema. Every inner node is a CASE on
    (column - pivot) * weight + ... > cut, with the numbers of `predict` in full; a row with a NULL among the
    columns gets NULL.
    """
    if tree.mapped:
        raise RavineError("a model with a kernel has no SQL: it compares rows with the landmarks of its map")
    opening, closing = QUOTES[check_choice("dialect", dialect, tuple(QUOTES))]

    def quote(name: str) -> str:
        if "\0" in name:
            raise InvalidInputError(f"{name!r} cannot be a name in SQL: it contains a zero byte")
        return opening + name.replace(closing, closing * 2) + closing

    pieces: list[str] = []
    used: set[str] = set()
    stack: list[int | str] = [0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        split = tree.splits[item]
        if split is None:
            pieces.append(str(int(tree.label[item])))
            continue
        quoted = [quote(name) for name in names_of(tree, columns, len(split.direction))]
        if not isinstance(split.boundary, Hyperplane):
            raise RavineError(
                "a split in several directions has no SQL, because its sides are told by the nearest center: "
                'fit with projection="univariate" or "correlated", or make hyperplanes with tree.simplify'
            )
        test, terms = _test(split.boundary, quoted)
        used.update(terms)
        stack += [" END", int(tree.left[item]), " ELSE ", int(tree.right[item]), f"CASE WHEN {test} THEN "]
    cluster = "".join(pieces)
    if used:
        missing = " OR ".join(f"{name} IS NULL" for name in sorted(used))
        cluster = f"CASE WHEN {missing} THEN NULL ELSE {cluster} END"
    source = quote(table)
    return f"SELECT {source}.*, {cluster} AS cluster FROM {source}"


def _test(boundary: Hyperplane, quoted: Sequence[str]) -> tuple[str, set[str]]:
    """Return the condition for the right side, and the columns in it."""
    terms = [
        f"({quoted[int(j)]} - ({boundary.pivot[j]:.17e})) * ({boundary.weights[j]:.17e})"
        for j in np.flatnonzero(boundary.weights)
    ]
    return f"{' + '.join(terms)} > ({boundary.threshold:.17e})", {
        quoted[int(j)] for j in np.flatnonzero(boundary.weights)
    }
