"""One self-contained page about a fitted tree: the splits, what drives them, the clusters, how to repeat it.

The page needs no network and no library: HTML, inline SVG and a few lines of script. Text from the data is
escaped, and a content security policy lets no other script run.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from importlib.metadata import version
from typing import Any

import numpy as np

from ravine.split.split import Split
from ravine.tree.tree import ClusterTree
from ravine.view import draw
from ravine.view.density import NodeDensity
from ravine.view.explain import ClusterExplanation, SplitExplanation
from ravine.view.facts import Facts, RowIds, gather

# What fits a page without scrolling in its tables.
N_DRIVERS = 8  # features per split
N_TRAITS = 8  # features per cluster
N_VALUES = 5  # features per typical row
N_CLASSES = 4  # classes per cluster
MAX_CLASSES = 60  # rows of the table of classes
SILENT = ("callback", "verbose")  # parameters without an effect on the clusters
N_COLORS = 7  # colors of clusters in report.css


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
    return _page(facts, title, source, command)


# --- numbers, names and tables ---


def _count(weight: float) -> str:
    return f"{weight:,.0f}" if weight == round(weight) else f"{weight:,.4g}"


def _many(n: float, what: str) -> str:
    return f"{_count(n)} {what}{'' if n == 1 else 's'}"


def _number(value: float) -> str:
    if np.isnan(value):
        return "none"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "\u2212")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\u2212")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%".replace("-", "\u2212")


def _share(part: float, whole: float) -> str:
    return "under 1\u00a0%" if 0 < part < 0.01 * whole else _percent(part / whole if whole > 0 else 0.0)


def _name(feature: str) -> str:
    """Return the name of a column, with places where a line may break."""
    return re.sub(r"([_/.=\-])", r"\1<wbr>", escape(feature))


def _chip(label: int) -> str:
    return f'<span class="chip c{label % N_COLORS}">{label}</span>'


def _table(name: str, caption: str, head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a heading that starts with # is for numbers, an empty one for drawings."""
    head = list(head)
    kinds = [' class="n"' if title.startswith("#") else "" for title in head]
    titles = "".join(
        f'<th scope="col"{kind}>{title.removeprefix("#")}</th>' if title else "<td></td>"
        for title, kind in zip(head, kinds, strict=True)
    )
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="{name}"><caption>{caption}</caption>'
        f"<thead><tr>{titles}</tr></thead>"
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def _listing(items: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in items) + "</dl>"


# --- the page ---


def _page(facts: Facts, title: str | None, source: str | None, command: str | None) -> str:
    files = resources.files("ravine.view")
    style, script = (files.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    heading = escape(title or f"{_many(facts.tree.n_clusters, 'cluster')} in {_many(facts.n_rows, 'row')}")
    parts = [
        _lead(facts, heading, source),
        _overview(facts),
        _clusters(facts),
        _tree(facts),
        _agreement(facts),
        _method(facts, command),
        _glossary(facts),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#tree">Skip to the tree</a>\n<main>\n'
        + "\n".join(part for part in parts if part)
        + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _lead(facts: Facts, heading: str, source: str | None) -> str:
    n_splits = facts.tree.n_leaves - 1
    words = _many(facts.n_rows, "row")
    words += f" of <b>{escape(source)}</b>" if source else ""
    words += f" with {_many(len(facts.names), 'column')}"
    words += f", by <b>{escape(type(facts.model).__name__)}</b>" if facts.model is not None else ""
    words += f": {_many(facts.tree.n_clusters, 'cluster')}, found with {_many(n_splits, 'split')}."
    how = (
        "Every split divides some of the rows in two where they are sparse: at a valley of their density. "
        "The splits form a tree, and its leaves are the clusters. Open a node of the tree to see where it "
        "is split, which columns drive the split, and how strong the evidence is; open a cluster to see "
        "what sets it apart."
        if n_splits
        else "No split was made: all rows are one cluster."
    )
    return f'<header><h1>{heading}</h1>\n<p class="lead">{words}</p>\n<p>{how}</p></header>'


def _overview(facts: Facts) -> str:
    """Return the tree as bars: the width of a node is its share of the rows."""
    tree = facts.tree
    html = [""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        leaf = tree.left[node] < 0
        kind = f' class="leaf c{tree.label[node] % N_COLORS}"' if leaf else ""
        words = str(tree.label[node]) if leaf else _count(facts.weight[node])
        below = "" if leaf else f"<div>{html[tree.left[node]]}{html[tree.right[node]]}</div>"
        html[node] = (
            f'<div class="ice" style="flex-grow:{facts.weight[node]:g}">'
            f'<a href="#node-{node}" tabindex="-1"{kind}>{words}</a>{below}</div>'
        )
    return (
        f'<section aria-hidden="true"><h2>At a glance</h2>\n<div class="ices">{html[0]}</div>\n'
        '<p class="soft">The width of a bar is its share of the rows; the colored bars are the clusters, '
        "with their numbers. A click opens the node below.</p></section>"
    )


def _first_leaves(tree: ClusterTree) -> dict[int, int]:
    """Return the leaf at which each cluster is described: its first, where leaves were merged."""
    found: dict[int, int] = {}
    for leaf in tree.leaves:
        found.setdefault(int(tree.label[leaf]), int(leaf))
    return found


def _clusters(facts: Facts) -> str:
    first = _first_leaves(facts.tree)
    rows = []
    for cluster in facts.explained.clusters:
        if cluster.label not in first:
            continue
        name = f'aria-label="Cluster {cluster.label}"'
        traits = ", ".join(
            f'<span class="{"up" if t.difference > 0 else "down"}">'
            f"{'high' if t.difference > 0 else 'low'} {_name(t.feature)}</span>"
            for t in cluster.traits[:3]
            if t.difference
        )
        row = [
            f'<a href="#node-{first[cluster.label]}" {name}>{_chip(cluster.label)}</a>',
            _count(cluster.weight),
            _share(cluster.weight, facts.weight[0]),
            traits or "nothing",
        ]
        rows.append(row if facts.table is None else [*row, _classes(facts, cluster.label, 1)])
    head = ["cluster", "#rows", "#share", "set apart from the rest by"]
    head += [] if facts.table is None else ["mostly class"]
    return f"<section><h2>The clusters</h2>\n{_table('clusters', '', head, rows)}</section>"


def _tree(facts: Facts) -> str:
    tree = facts.tree
    html = [""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.left[node] < 0:
            html[node] = f"<li>{_leaf(facts, node)}</li>"
        else:
            below = html[tree.left[node]] + html[tree.right[node]]
            html[node] = f"<li>{_split(facts, node)}<ul>{below}</ul></li>\n"
    return (
        '<section id="tree"><h2>The tree</h2>\n<p class="tools">'
        '<button type="button" id="open-all">Open all</button> '
        '<button type="button" id="close-all">Close all</button></p>\n'
        f'<ul class="tree">{html[0]}</ul></section>'
    )


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
    rows = [
        (
            _name(d.feature),
            _number(d.left_mean),
            _number(d.right_mean),
            _percent(d.contribution),
            f'<span class="bar" style="width:{max(0.0, d.contribution / widest) * 5:.2f}rem"></span>',
        )
        for d in shown
    ]
    caption = "What drives the split: means on both sides, and the share of each column in their distance"
    table = _table("drivers", caption, ["column", "#left", "#right", "#share", ""], rows)
    if others:
        rest = _percent(sum(d.contribution for d in others))
        table += f'<p class="soft">{_many(len(others), "other column")}: {rest}.</p>'
    return table


def _how_good(split: Split) -> str:
    """Return quality, evidence, status and the other numbers of a split."""
    items = [("quality", f"<b>{split.quality:.3f}</b>, from 0 (no valley) to 1 (an empty gap)")]
    if split.evidence is not None:
        e = split.evidence
        items.append(
            (
                "evidence",
                f"<b>p = {e.p_value:.2g}</b>: how often the same search finds a valley as deep in rows with "
                f"a single mode (log depth {e.log_depth:.2f} here, {e.null_mean:.2f} \u00b1 "
                f"{e.null_deviation:.2f} in {e.n_draws} such samples)",
            )
        )
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
    rows = [
        (
            _name(t.feature),
            _number(t.mean),
            _number(t.rest_mean),
            f'<span class="side"><i class="{"plus" if t.difference > 0 else "minus"}" '
            f'style="width:{50 * abs(t.difference) / widest:.1f}%"></i></span>',
            f"{_signed(t.difference)}\u00a0sd",
        )
        for t in traits
    ]
    caption = "Mean of each column here and in all other rows; their difference in standard deviations"
    rules = "".join(f"<p><b>Rule:</b> {escape(rule)}.</p>" for rule in cluster.rules)
    classes = "" if facts.table is None else _classes(facts, cluster.label, N_CLASSES)
    return (
        rules
        + _table("profile", caption, ["column", "#here", "#elsewhere", "", "#difference"], rows)
        + _typical(facts, cluster)
        + (f"<p><b>Classes:</b> {classes}</p>" if classes else "")
    )


def _typical(facts: Facts, cluster: ClusterExplanation) -> str:
    shown = [t.feature for t in cluster.traits[:N_VALUES]]
    place = [facts.names.index(name) for name in shown]
    rows = [
        (escape(name), *(_number(float(values[j])) for j in place))
        for name, values in facts.exemplars[cluster.label]
    ]
    caption = "Typical rows: the nearest to the mean of the cluster"
    return _table("exemplars", caption, ["row", *(f"#{_name(name)}" for name in shown)], rows)


def _classes(facts: Facts, label: int, n: int) -> str:
    """Name the most frequent classes of a cluster."""
    assert facts.table is not None
    counts = facts.table[:, label]
    most_frequent = [int(i) for i in np.argsort(-counts, kind="stable")[:n] if counts[i] > 0]
    total = float(counts.sum())
    return ", ".join(f"{escape(facts.classes[i])} ({_share(float(counts[i]), total)})" for i in most_frequent)


# --- what comes after the tree ---


def _agreement(facts: Facts) -> str:
    if facts.table is None:
        return ""
    clusters = sorted(_first_leaves(facts.tree))
    rows = [
        (escape(name), *(_count(float(counts[k])) if counts[k] else "" for k in clusters))
        for name, counts in zip(facts.classes[:MAX_CLASSES], facts.table, strict=False)
    ]
    caption = "Rows of each class (down) in each cluster (across)"
    scores = [(name, f"{value:.3f}") for name, value in facts.scores.items()]
    table = _table("agreement", caption, ["class", *(f"#{k}" for k in clusters)], rows)
    return (
        "<section><h2>Against the given classes</h2>\n<p>The clusters were found without them. Each score is "
        f"1 where clusters and classes are equal.</p>{_listing(scores)}{table}</section>"
    )


def _method(facts: Facts, command: str | None) -> str:
    size = f"{_count(facts.n_rows)} \u00d7 {_count(len(facts.names))}"
    versions = [f"{name} {version(name)}" for name in ("ravine", "numpy", "scikit-learn")]
    made_with = ", ".join([*versions, f"Python {platform.python_version()}"])
    items, code = [("rows and columns", size), ("made with", made_with)], ""
    if facts.model is not None:
        parameters = facts.model.get_params(deep=False)
        items += [
            (escape(key), escape(repr(value))) for key, value in parameters.items() if key not in SILENT
        ]
        items.append(("passes over the data", f"{facts.model.n_passes_:.1f}"))
        code = _python(facts.model, parameters)
    again = "".join(
        f"<h3>{name}</h3><pre>{escape(text)}</pre>"
        for name, text in (("On the command line", command), ("In Python", code))
        if text
    )
    return f"<section><h2>Method and parameters</h2>\n{_listing(items)}</section>" + (
        f"\n<section><h2>How to repeat it</h2>{again}</section>" if again else ""
    )


def _python(model: Any, parameters: dict[str, Any]) -> str:
    """Return the Python code that fits a model of the same parameters."""
    name, defaults = type(model).__name__, type(model)().get_params(deep=False)
    changed = ", ".join(
        f"{key}={value!r}"
        for key, value in parameters.items()
        if key not in SILENT and repr(value) != repr(defaults[key])
    )
    return f"from ravine import {name}\n\nmodel = {name}({changed}).fit(X)\nmodel.labels_"


GLOSSARY = [
    (
        "signed distance",
        "the distance of a row from the split, negative on the left and positive on the right; with columns "
        "scaled to a standard deviation of 1, unless the method was set not to standardize",
    ),
    (
        "quality",
        "how good a split is. For a valley of the density it is its relative depth: 0.3 means that the "
        "density at the split is 30\u00a0% lower than at the lower of the two modes beside it",
    ),
    (
        "share",
        "how much of the distance between the means of the two sides comes from a column; all columns "
        "together make 100\u00a0%. Columns are ordered by their weight in the direction of the split",
    ),
    ("sd", "standard deviations of the column over all rows"),
]
P_VALUE = ("p", "the probability that rows of one group show a valley as deep; small is strong evidence")


def _glossary(facts: Facts) -> str:
    splits = (*facts.tree.splits, *facts.tree.refused)
    tested = any(split is not None and split.evidence is not None for split in splits)
    return f"<section><h2>Glossary</h2>{_listing([*GLOSSARY, P_VALUE] if tested else GLOSSARY)}</section>"
