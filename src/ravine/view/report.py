"""One self-contained page about a fitted tree: the splits, what drives them, the clusters, how to repeat it.

`report.html` has the texts that are the same on every page. A page needs no network and no library: HTML,
inline SVG and a few lines of script. Text from the data is escaped, and a content security policy blocks all
other scripts.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from importlib import resources
from importlib.metadata import version
from string import Template
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.split.split import Split
from ravine.tree.export import bottom_up
from ravine.tree.tree import ClusterTree
from ravine.view import draw
from ravine.view.density import NodeDensity
from ravine.view.explain import ClusterExplanation, Driver, SplitExplanation, Trait
from ravine.view.facts import Facts, RowIds, gather

# What fits a page without scrolling in its tables.
N_DRIVERS = 8  # features per split
N_TRAITS = 8  # features per cluster
N_VALUES = 5  # features per typical row
N_CLASSES = 4  # classes per cluster
MAX_CLASSES = 60  # rows of the table of classes
N_COLORS = 7  # colors of clusters in report.css
HOW = (
    "Every split divides some of the rows in two where they are sparse: at a valley of their density. The "
    "splits form a tree, and its leaves are the clusters. Open a node of the tree to see where it is split, "
    "which columns drive the split, and how strong the evidence is; open a cluster to see what sets it apart."
)

Columns = Mapping[str, Callable[[Any], str]]


def report(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    row_ids: RowIds | None = None,
    labels: Any = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> str:
    """Return a page about a fitted clusterer (or a tree) and the rows of X, as HTML; five passes.

    Parameters
    ----------
    model : fitted clusterer or ClusterTree
    X : array, memmap, CSR matrix, data frame or FileMatrix
        The rows that densities, profiles and exemplars are taken from: the training rows, or others.
    feature_names : sequence of str, optional
        The names of the columns; by default those seen in `fit`.
    sample_weight : array of shape (n_rows,), optional
    row_ids : sequence, or function from row numbers to a mapping of their ids, optional
        The names of typical rows; by default their numbers, from 0.
    labels : array of shape (n_rows,), optional
        True classes, to compare the clusters with.
    title, source, command : str, optional
        The heading, where the rows come from, and the command that made the model.

    Examples
    --------
    >>> from ravine import MinimumDensity, report
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> page = report(MinimumDensity(3).fit(wine), wine, source="wine.csv")
    >>> "proline" in page, "<script src" in page
    (True, False)
    """
    facts = gather(model, X, feature_names, sample_weight, row_ids, labels)
    files = resources.files("ravine.view")
    page, style, script = (
        files.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    heading = title or f"{_many(facts.tree.n_clusters, 'cluster')} in {_many(facts.n_rows, 'row')}"
    return Template(page).substitute(
        style=style,
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        heading=escape(heading),
        lead=_lead(facts, source),
        how=HOW if facts.tree.n_leaves > 1 else "No split was made: all rows are one cluster.",
        bars=bottom_up(facts.tree, partial(_bar, facts)),
        clusters=_clusters(facts),
        tree=bottom_up(facts.tree, partial(_node, facts)),
        agreement=_agreement(facts),
        method=_method(facts),
        again=_again(facts.model, command),
    )


# --- numbers, names and tables ---


def _count(weight: float) -> str:
    return f"{weight:,.0f}" if weight == round(weight) else f"{weight:,.4g}"


def _many(n: float, what: str) -> str:
    return f"{_count(n)} {what}{'' if n == 1 else 's'}"


def _number(value: float) -> str:
    if np.isnan(value):
        return "none"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "\u2212")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%".replace("-", "\u2212")


def _share(part: float, whole: float) -> str:
    return "under 1\u00a0%" if 0 < part < 0.01 * whole else _percent(part / whole if whole > 0 else 0.0)


def _name(feature: str) -> str:
    """Return the name of a column, with places where a line may break."""
    return re.sub(r"([_/.=\-])", r"\1<wbr>", escape(feature))


def _chip(label: int) -> str:
    return f'<span class="chip c{label % N_COLORS}">{label}</span>'


def _table(name: str, caption: str, items: Iterable[Any], columns: Columns) -> str:
    """Return a table with one row per item.

    `columns` are headings and the functions that write the cells. A heading that starts with # is for
    numbers, an empty one for drawings; the first column names the row.
    """
    kinds = [' class="n"' if title.startswith("#") else "" for title in columns]
    titles = "".join(
        f'<th scope="col"{kind}>{title.removeprefix("#")}</th>' if title else "<td></td>"
        for title, kind in zip(columns, kinds, strict=True)
    )
    lines = []
    for item in items:
        first, *others = (cell(item) for cell in columns.values())
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="{name}"><caption>{caption}</caption>'
        f"<thead><tr>{titles}</tr></thead>"
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def _listing(items: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in items) + "</dl>"


# --- above the tree ---


def _lead(facts: Facts, source: str | None) -> str:
    words = _many(facts.n_rows, "row")
    words += f" of <b>{escape(source)}</b>" if source else ""
    words += f" with {_many(len(facts.names), 'column')}"
    words += f", by <b>{escape(type(facts.model).__name__)}</b>" if facts.model is not None else ""
    n_clusters, n_splits = _many(facts.tree.n_clusters, "cluster"), _many(len(facts.tree.inner), "split")
    return f"{words}: {n_clusters}, found with {n_splits}."


def _bar(facts: Facts, node: int, below: str) -> str:
    """Return a node as a bar, as wide as its share of the rows, with its children below."""
    label, kind, words = facts.tree.label[node], "", _count(facts.weight[node])
    if label >= 0:
        kind, words = f' class="leaf c{label % N_COLORS}"', str(label)
    return (
        f'<div class="ice" style="flex-grow:{facts.weight[node]:g}">'
        f'<a href="#node-{node}" tabindex="-1"{kind}>{words}</a>{below and f"<div>{below}</div>"}</div>'
    )


def _first_leaves(tree: ClusterTree) -> dict[int, int]:
    """Return the leaf at which each cluster is described: its first, where leaves were merged."""
    return {int(tree.label[leaf]): int(leaf) for leaf in tree.leaves[::-1]}


def _clusters(facts: Facts) -> str:
    first = _first_leaves(facts.tree)
    columns: dict[str, Callable[[ClusterExplanation], str]] = {
        "cluster": lambda c: (
            f'<a href="#node-{first[c.label]}" aria-label="Cluster {c.label}">{_chip(c.label)}</a>'
        ),
        "#rows": lambda c: _count(c.weight),
        "#share": lambda c: _share(c.weight, facts.weight[0]),
        "set apart from the rest by": lambda c: (
            ", ".join(filter(None, map(_trait, c.traits[:3]))) or "nothing"
        ),
    }
    if facts.table is not None:
        columns["mostly class"] = lambda c: _classes(facts, c.label, 1)
    shown = [cluster for cluster in facts.explained.clusters if cluster.label in first]
    return _table("clusters", "", shown, columns)


def _trait(trait: Trait) -> str:
    side, word = ("up", "high") if trait.difference > 0 else ("down", "low")
    return f'<span class="{side}">{word} {_name(trait.feature)}</span>' if trait.difference else ""


def _node(facts: Facts, node: int, below: str) -> str:
    if facts.tree.left[node] < 0:
        return f"<li>{_leaf(facts, node)}</li>"
    return f"<li>{_split(facts, node)}<ul>{below}</ul></li>\n"


# --- a split ---


def _split(facts: Facts, node: int) -> str:
    split, words = facts.tree.splits[node], facts.explained.splits[node]
    assert split is not None
    top = ", ".join(_name(driver.feature) for driver in words.drivers[:2]) or "a hyperplane"
    curve = facts.densities.get(node)
    summary = "" if curve is None else draw.spark(curve)
    summary += (
        f'<span class="what"><b>{_many(facts.weight[node], "row")}</b> split by {top} '
        f'<span class="soft">quality {split.quality:.2f}</span></span>'
    )
    figure = "" if curve is None else _density(words, curve)
    return (
        f'<details id="node-{node}"><summary>{summary}</summary><div class="body">'
        f'<div class="pair">{figure}<div>{_drivers(words)}</div></div>{_how_good(split)}</div></details>'
    )


def _density(words: SplitExplanation, curve: NodeDensity) -> str:
    left, right = _many(words.left_weight, "row"), _many(words.right_weight, "row")
    title = f"Density of the rows along the normal of the split: {left} to the left, {right} to the right"
    drawing = draw.density(curve, title, f"left: {left}", f"right: {right}")
    return (
        f"<figure>{drawing}<figcaption>The density of the rows on both sides of the split, which is the "
        "dashed line.</figcaption></figure>"
    )


def _drivers(words: SplitExplanation) -> str:
    shown, others = words.drivers[:N_DRIVERS], words.drivers[N_DRIVERS:]
    widest = max([d.contribution for d in shown] + [1e-9])
    columns: dict[str, Callable[[Driver], str]] = {
        "column": lambda d: _name(d.feature),
        "#left": lambda d: _number(d.left_mean),
        "#right": lambda d: _number(d.right_mean),
        "#share": lambda d: _percent(d.contribution),
        "": lambda d: (
            f'<span class="bar" style="width:{max(0.0, d.contribution / widest) * 5:.2f}rem"></span>'
        ),
    }
    caption = "What drives the split: means on both sides, and the share of each column in their distance"
    table = _table("drivers", caption, shown, columns)
    if others:
        rest = _percent(sum(d.contribution for d in others))
        table += f'<p class="soft">{_many(len(others), "other column")}: {rest}.</p>'
    return table


def _how_good(split: Split) -> str:
    """Return quality, evidence, status and the other numbers of a split."""
    items = [("quality", f"<b>{split.quality:.3f}</b>, from 0 (no valley) to 1 (an empty gap)")]
    if split.evidence is not None:
        e = split.evidence
        words = (
            f"<b>p = {e.p_value:.2g}</b>: how often the same search finds a valley as deep in rows with a "
            f"single mode (log depth {e.log_depth:.2f} here, {e.null_mean:.2f} \u00b1 {e.null_deviation:.2f} "
            f"in {e.n_draws} such samples)"
        )
        items.append(("evidence", words))
    items += [(escape(str(name)), _number(float(value))) for name, value in split.facts.items()]
    items.append(("method", escape(split.method)))
    items.append(("search", f"{escape(split.status)}; {_many(split.n_iter, 'iteration')}"))
    return _listing(items)


# --- a cluster ---


def _leaf(facts: Facts, node: int) -> str:
    label = int(facts.tree.label[node])
    first = _first_leaves(facts.tree)[label]
    share = _share(facts.weight[node], facts.weight[0])
    mostly = "" if facts.table is None else f", mostly class {_classes(facts, label, 1)}"
    summary = (
        f'{_chip(label)}<span class="what"><b>Cluster {label}</b>: {_many(facts.weight[node], "row")} '
        f'<span class="soft">({share})</span>{mostly}</span>'
    )
    body = f'<p>Part of cluster {label}, described at <a href="#node-{first}">its first leaf</a>.</p>'
    if first == node:
        body = _profile(facts, facts.explained.clusters[label])
    body += _not_split(facts.tree.refused[node])
    return f'<details id="node-{node}"><summary>{summary}</summary><div class="body">{body}</div></details>'


def _not_split(refused: Split | None) -> str:
    if refused is None:
        return ""
    why = "" if refused.evidence is None else f", which may be chance (p = {refused.evidence.p_value:.2g})"
    return (
        f'<p class="soft">Not split further: its best split has a quality of {refused.quality:.2f}{why}.</p>'
    )


def _profile(facts: Facts, cluster: ClusterExplanation) -> str:
    if not cluster.weight > 0:
        return "<p>None of these rows.</p>"
    traits = cluster.traits[:N_TRAITS]
    widest = max([abs(t.difference) for t in traits] + [1e-9])
    columns: dict[str, Callable[[Trait], str]] = {
        "column": lambda t: _name(t.feature),
        "#here": lambda t: _number(t.mean),
        "#elsewhere": lambda t: _number(t.rest_mean),
        "": lambda t: (
            f'<span class="side"><i class="{"plus" if t.difference > 0 else "minus"}" '
            f'style="width:{50 * abs(t.difference) / widest:.1f}%"></i></span>'
        ),
        "#difference": lambda t: f"{t.difference:+.1f}\u00a0sd".replace("-", "\u2212"),
    }
    caption = "Mean of each column here and in all other rows; their difference in standard deviations"
    rules = "".join(f"<p><b>Rule:</b> {escape(rule)}.</p>" for rule in cluster.rules)
    classes = "" if facts.table is None else _classes(facts, cluster.label, N_CLASSES)
    classes = classes and f"<p><b>Classes:</b> {classes}</p>"
    return f"{rules}{_table('profile', caption, traits, columns)}{_typical(facts, cluster)}{classes}"


def _typical(facts: Facts, cluster: ClusterExplanation) -> str:
    columns: dict[str, Callable[[tuple[str, FloatArray]], str]] = {"row": lambda row: escape(row[0])}
    for trait in cluster.traits[:N_VALUES]:
        j = facts.names.index(trait.feature)
        columns[f"#{_name(trait.feature)}"] = lambda row, j=j: _number(float(row[1][j]))  # type: ignore[misc]
    caption = "Typical rows: the nearest to the mean of the cluster"
    return _table("exemplars", caption, facts.exemplars[cluster.label], columns)


def _classes(facts: Facts, label: int, n: int) -> str:
    """Name the most frequent classes of a cluster."""
    assert facts.table is not None
    counts = facts.table[:, label]
    most_frequent = [int(i) for i in np.argsort(-counts, kind="stable")[:n] if counts[i] > 0]
    total = float(counts.sum())
    return ", ".join(f"{escape(facts.classes[i])} ({_share(float(counts[i]), total)})" for i in most_frequent)


# --- below the tree ---


def _agreement(facts: Facts) -> str:
    if facts.table is None:
        return ""
    columns: dict[str, Callable[[tuple[str, IntArray]], str]] = {"class": lambda row: escape(row[0])}
    for k in sorted(_first_leaves(facts.tree)):
        columns[f"#{k}"] = lambda row, k=k: _count(float(row[1][k])) if row[1][k] else ""  # type: ignore[misc]
    rows = zip(facts.classes[:MAX_CLASSES], facts.table, strict=False)
    table = _table("agreement", "Rows of each class (down) in each cluster (across)", rows, columns)
    scores = _listing((name, f"{value:.3f}") for name, value in facts.scores.items())
    return (
        "<section><h2>Against the given classes</h2>\n<p>The clusters were found without them. Each score is "
        f"1 where clusters and classes are equal.</p>{scores}{table}</section>"
    )


def _method(facts: Facts) -> str:
    versions = [f"{name} {version(name)}" for name in ("ravine", "numpy", "scikit-learn")]
    items = [
        ("rows and columns", f"{_count(facts.n_rows)} \u00d7 {_count(len(facts.names))}"),
        ("made with", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]
    if facts.model is not None:
        items += [(escape(key), escape(value)) for key, value in _parameters(facts.model).items()]
        items.append(("passes over the data", f"{facts.model.n_passes_:.1f}"))
    return _listing(items)


def _parameters(model: Any) -> dict[str, str]:
    """Return the parameters that have an effect on the clusters, as Python code."""
    parameters = model.get_params(deep=False)
    return {key: repr(value) for key, value in parameters.items() if key not in ("callback", "verbose")}


def _again(model: Any, command: str | None) -> str:
    """Return the section on how to repeat a fit, on the command line and in Python, where that is known."""
    codes = {"On the command line": command}
    if model is not None:
        name, defaults = type(model).__name__, _parameters(type(model)())
        changed = [f"{key}={value}" for key, value in _parameters(model).items() if value != defaults[key]]
        fit = f"model = {name}({', '.join(changed)}).fit(X)"
        codes["In Python"] = f"from ravine import {name}\n\n{fit}\nmodel.labels_"
    again = "".join(f"<h3>{name}</h3><pre>{escape(code)}</pre>" for name, code in codes.items() if code)
    return again and f"<section><h2>How to repeat it</h2>{again}</section>"
