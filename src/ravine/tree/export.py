"""A tree in other forms: text, HTML, data frame, SciPy linkage, SQL; methods of `ClusterTree`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from operator import attrgetter
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_choice, on_one_line
from ravine.exceptions import InvalidInputError, RavineError
from ravine.split.boundary import Hyperplane
from ravine.split.split import MADE_BY, Split
from ravine.tree.arrays import TreeArrays


def names_of(tree: TreeArrays, names: Sequence[str] | None, n_features: int | None = None) -> list[str]:
    """Return the names of the columns: those given, those seen in `fit`, or x0, x1, ...

    Without `n_features` they are counted in the first split; a tree without splits needs no names.
    """
    if n_features is None:
        n_features = next((len(split.direction) for split in tree.splits if split is not None), None)
    found = names if names is not None else tree.feature_names
    if found is None or n_features is None:
        return [f"x{j}" for j in range(n_features or 0)]
    if len(found) != n_features:
        raise InvalidInputError(f"{n_features} feature names are needed, got {len(found)}")
    return [str(name) for name in found]


def ranked(split: Split) -> IntArray:
    """Return the features of a split, the one with the largest weight in its direction first.

    Weights are those of the search, of standardized columns unless the method was asked not to standardize.
    """
    order = np.argsort(-np.abs(split.direction), kind="stable")
    return np.asarray(order[split.direction[order] != 0])


def strongest(split: Split, names: Sequence[str], n_features: int) -> str:
    """Name the first features of the ranking with the signs of their weights, as in "+proline, -hue"."""
    return ", ".join(
        f"{'+' if split.direction[j] > 0 else '-'}{names[j]}" for j in ranked(split)[:n_features]
    )


def text(tree: TreeArrays, feature_names: Sequence[str] | None = None, n_features: int = 3) -> str:
    """Return the tree as indented text: size and quality of each split, and its strongest features.

    Parameters
    ----------
    feature_names : sequence of str, optional
        Names of the columns, by default those seen in `fit`.
    n_features : int, default 3
        Number of features that are named per split.
    """
    names = [on_one_line(name) for name in names_of(tree, feature_names)]
    lines: list[str] = []
    is_tested = _is_tested(tree)
    stack = [(0, "", "")]
    while stack:
        node, lead, branch = stack.pop()
        split = tree.splits[node]
        if split is None:
            lines.append(f"{lead}{branch}cluster {tree.label[node]}: {_leaf_text(tree, node, is_tested)}")
            continue
        lines.append(f"{lead}{branch}{_split_text(tree, node, split)}{strongest(split, names, n_features)}")
        below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        stack += [(int(tree.right[node]), below, "└─ "), (int(tree.left[node]), below, "├─ ")]
    return "\n".join(lines)


def html(tree: TreeArrays) -> str:
    """Return the text of the tree as HTML, for notebooks; names of columns are escaped."""
    return f'<pre class="ravine-tree">{escape(text(tree))}</pre>'


def _size(tree: TreeArrays, node: int) -> str:
    return f"{tree.weight[node]:g} rows ({tree.weight[node] / tree.weight[0]:.0%})"


def _split_text(tree: TreeArrays, node: int, split: Split) -> str:
    p_value = "" if split.evidence is None else f" (p = {split.evidence.p_value:.2g})"
    return f"{_size(tree, node)}, split with quality {split.quality:.2f}{p_value} by "


def _is_tested(tree: TreeArrays) -> bool:
    return all(split.evidence is not None for split in tree.splits if split is not None)


def _leaf_text(tree: TreeArrays, node: int, is_tested: bool) -> str:
    size, refused = _size(tree, node), tree.refused[node]
    if refused is None:
        return size
    if refused.evidence is not None:
        figures = f"quality {refused.quality:.2f}, p = {refused.evidence.p_value:.2g}"
        return f"{size}, not split: no significant valley ({figures})"
    # with a given number of clusters, whose splits are not tested, such a split would be made in its turn
    is_reason = is_tested and MADE_BY in refused.facts
    return f"{size}, not split: its gap is between values of a discrete column" if is_reason else size


def frame(tree: TreeArrays) -> Any:
    """Return a pandas data frame with one row per node.

    Returns
    -------
    pandas.DataFrame
        Parent, children, cluster and weight of every node, and the figures of its split; of a leaf those of
        the split that was found but not made.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise RavineError("to_frame needs pandas: pip install pandas") from error

    found = [split or refused for split, refused in zip(tree.splits, tree.refused, strict=True)]

    def of_splits(value: Callable[[Split], Any], empty: Any = np.nan) -> list[Any]:
        return [empty if split is None else value(split) for split in found]

    frame = pd.DataFrame({"node": np.arange(tree.n_nodes), "parent": tree.parent})
    for name in ("left", "right", "depth", "label", "weight", "order"):
        frame[{"label": "cluster", "order": "split"}.get(name, name)] = getattr(tree, name)
    frame["method"] = of_splits(lambda split: split.method, None)
    for name in ("quality", "relative_depth", "value", "gradient_norm"):
        frame[name] = of_splits(attrgetter(name))
    frame["p_value"] = of_splits(lambda split: split.evidence.p_value if split.evidence else np.nan)
    frame["status"] = of_splits(lambda split: split.status, None)
    for name in dict.fromkeys(name for split in found if split is not None for name in split.facts):
        frame[name] = of_splits(lambda split, name=name: split.facts.get(name, np.nan))  # type: ignore[misc]
    return frame


def linkage(tree: TreeArrays) -> FloatArray:
    """Return a SciPy linkage of the leaves from left to right; the last split is the lowest merge.

    Returns
    -------
    ndarray of shape (n_leaves - 1, 4)
        The linkage, for example for `scipy.cluster.hierarchy.dendrogram`.
    """
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


# Quotation marks of identifiers in each dialect.
QUOTES = {
    "duckdb": ('"', '"'),
    "sqlite": ('"', '"'),
    "postgres": ('"', '"'),
    "standard": ('"', '"'),
    "mysql": ("`", "`"),
    "bigquery": ("`", "`"),
    "mssql": ("[", "]"),
}


def sql(tree: TreeArrays, table: str, dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
    """Return one SELECT of the columns of a table and `cluster`: the database predicts the clusters itself.

    Every inner node is a CASE on (column - pivot) * weight + ... <= threshold, with all digits of the numbers
    of `predict`; a row with a NULL among the columns gets NULL.

    Parameters
    ----------
    table : str
        The name of the table, which is quoted as one identifier, without a schema.
    dialect : {"duckdb", "sqlite", "postgres", "standard", "mysql", "bigquery", "mssql"}, default "duckdb"
        The quotation marks of names are those of this dialect.
    columns : sequence of str, optional
        The names of the features in the table, by default those seen in `fit`.
    """
    if tree.mapped:
        raise RavineError("SQL is not available with a kernel: the boundaries are not linear in the columns")
    quotes = QUOTES[check_choice("dialect", dialect, tuple(QUOTES))]
    source = _quoted(table, *quotes)
    names = [_quoted(name, *quotes) for name in names_of(tree, columns)]
    case, used = _case(tree, names)
    if used:
        missing = " OR ".join(f"{name} IS NULL" for name in sorted(used))
        case = f"CASE WHEN {missing} THEN NULL ELSE {case} END"
    return f"SELECT {source}.*, {case} AS cluster FROM {source}"


def _quoted(name: str, opening: str, closing: str) -> str:
    if "\0" in name:
        raise InvalidInputError(f"{name!r} cannot be a name in SQL: it contains a zero byte")
    return opening + name.replace(closing, closing * 2) + closing


def _case(tree: TreeArrays, names: Sequence[str]) -> tuple[str, set[str]]:
    """Return the nested CASE of a tree, and the columns in it; a stack of nodes and text avoids recursion."""
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
        if not isinstance(split.boundary, Hyperplane):
            raise RavineError(
                "SQL is not available for splits in several directions, whose boundaries are not linear: "
                "fit with n_directions=1"
            )
        features = [int(j) for j in np.flatnonzero(split.boundary.normal)]
        used.update(names[j] for j in features)
        test = _condition(split.boundary, features, names)
        stack += [" END", int(tree.left[item]), " ELSE ", int(tree.right[item]), f"CASE WHEN {test} THEN "]
    return "".join(pieces), used


def _condition(boundary: Hyperplane, features: Sequence[int], names: Sequence[str]) -> str:
    """Return the condition for the right side of a hyperplane."""
    terms = [f"({names[j]} - ({boundary.pivot[j]:.17e})) * ({boundary.normal[j]:.17e})" for j in features]
    return f"{' + '.join(terms)} > ({boundary.threshold:.17e})"
