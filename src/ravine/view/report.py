"""One self-contained page about a fitted tree: map, clusters, splits and what drives them, how to repeat it.

`report.html` has the texts that are the same on every page. A page needs no network and no library: HTML,
inline SVG and a few lines of script. Text from the data is escaped, and a content security policy blocks all
other scripts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from importlib.metadata import version
from string import Template
from typing import Any

import numpy as np

from ravine._validate import IntArray
from ravine.exceptions import InvalidInputError
from ravine.view import html, palette, pictures
from ravine.view.check import check
from ravine.view.explain import ClusterExplanation, Trait
from ravine.view.facts import Facts, RowIds, facts_of
from ravine.view.fitted import changed_parameters, tree_of
from ravine.view.plane import ClusterQuality
from ravine.view.report_nodes import RowHtml, classes, first_leaves, listed_pairs, nodes, pair_names

ALONE = "The clusters were found without them. "
MAX_CLASSES = 60  # rows of the table of classes
N_HEAT = 30  # columns of the heat map
MAX_LEAVES = 1000  # leaves of a tree that has a page: about 20 MB, in seconds
N_FEWER = 16  # numbers of clusters in the picture of fewer clusters
N_OUTLIERS = 20  # rows set aside that are named
N_RANKED = 200  # columns of the ranking
MAX_LABELS = 200_000  # rows whose clusters the page carries, for the button that saves them
MAX_IDS = 300_000  # characters of ids that it carries with them
HOW = {
    "tree": "Every split divides some of the rows in two$where. The splits form a tree, and its leaves are "
    "the clusters.",
    "classes": "Every split divides some of the rows in two where they are sparse and the labels agree. The "
    "splits form a tree, and its leaves are the classes.",
    "pairs": "Between every two classes a boundary runs where the rows are sparse and the labels agree; a "
    "row belongs to the class that wins most of its pairs.",
    "one": "No split was made: all rows are one cluster.",
}

WHERE = {
    "MinimumDensity": " where they are sparse: at a valley of their density",
    "SpectralConnectivity": " where the rows of the two sides are least similar",
    "MaximumMargin": " with the widest margin between the sides",
    "MaximinSeparation": " so that the sides can be told apart with the highest guaranteed probability",
    "PrincipalDirection": " along the direction of their greatest variance",
}


def report(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    row_ids: RowIds | None = None,
    labels: Any = None,
    coordinates: Any = None,
    row_html: RowHtml | None = None,
    names: Mapping[int, str] | None = None,
    colors: Mapping[int, str] | None = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> str:
    """Return a page about a fitted clusterer (or a tree) and the rows of X, as HTML.

    It takes six passes, and one more to check the data. A tree of more than 1000 leaves is refused.

    Parameters
    ----------
    model : fitted clusterer, ClusterTree, or classifier
        With a kernel, the clusterer and not its tree alone; this costs two more passes. A classifier's page
        is about its classes; with "one-vs-one" it has one boundary per pair instead of a tree.
    X : array, memmap, CSR matrix, data frame, file of `ravine.open` or dask collection
        The rows that densities, profiles and exemplars are taken from: the training rows, or others.
    feature_names : sequence of str, optional
        The names of the columns; by default those seen in `fit`.
    sample_weight : array of shape (n_rows,), optional
    row_ids : sequence, or function from row numbers to a mapping of their ids, optional
        The names of typical rows; by default their numbers, from 0.
    labels : array of shape (n_rows,), optional
        True classes, to compare the clusters with.
    coordinates : array of shape (n_rows, 2), optional
        Places of the rows on the map, such as those of t-SNE or UMAP; by default principal components, in
        which the lines of splits can be drawn.
    row_html : function from a row number to HTML, optional
        Shows typical rows, for example as pictures. What it returns is trusted: it is not escaped.
    names, colors : mappings from the label of a cluster to its name or its color (#rrggbb), optional
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
    if (n := tree_of(model).n_leaves) > MAX_LEAVES:
        raise InvalidInputError(
            f"a report shows at most {MAX_LEAVES} leaves, got {n}; cut the tree (tree.cut, or 'ravine cut')"
        )
    facts = facts_of(model, X, feature_names, sample_weight, row_ids, labels, coordinates)
    facts = replace(facts, given_names=names or {})
    files = resources.files("ravine.view")
    page, style, script = (
        files.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    heading = title or f"{_leaves(facts)} in {html.many(facts.n_rows, 'row')}"
    return Template(page).substitute(
        style=f"{style}{palette.style(colors or {})}\n",
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        heading=escape(heading),
        lead=_lead(facts, source),
        how=_how(facts),
        glance=_glance(facts),
        words=facts.words,
        clusters=_clusters(facts, row_html) + _labels(facts, row_ids),
        columns=_columns(facts),
        splits="boundaries" if facts.in_pairs else "tree",
        tree=nodes(facts, row_html),
        fewer=_fewer(facts),
        found=_set_aside(facts, row_ids) + _findings(facts, X),
        agreement=_agreement(facts),
        method=_method(facts),
        again=_again(facts.model, command),
    )


# --- above the tree ---


def _lead(facts: Facts, source: str | None) -> str:
    words = html.many(facts.n_rows, "row")
    words += f" of <b>{escape(source)}</b>" if source else ""
    words += f" with {html.many(len(facts.names), 'column')}"
    words += f", by <b>{escape(type(facts.model).__name__)}</b>" if facts.model is not None else ""
    n, made = len(facts.tree.inner), "boundary" if facts.in_pairs else "split"
    splits = f"{html.count(n)} boundaries" if facts.in_pairs else html.many(n, made)
    words += f": {_leaves(facts)}" + (f", found with {splits}." if n else ".")
    n_aside = len(facts.aside)
    if n_aside:
        words += (
            f" {html.many(n_aside, 'row')} far from all others {'is' if n_aside == 1 else 'are'} not counted."
        )
    return words


def _how(facts: Facts) -> str:
    if facts.tree.n_leaves == 1:
        return HOW["one"]
    model = getattr(facts.model, "best_estimator_", facts.model)
    words = HOW["pairs" if facts.in_pairs else "classes" if facts.groups else "tree"]
    return words.replace("$where", WHERE.get(type(model).__name__, ""))


def _leaves(facts: Facts) -> str:
    n = facts.tree.n_clusters
    return f"{html.count(n)} {facts.word if n == 1 else facts.words}"


def _glance(facts: Facts) -> str:
    """Return the map and the tree with its depths, or the pairs of classes, side by side."""
    plane, tree = facts.plane, facts.tree
    drawn = len(plane.numbers)
    words = f"Every row in the color of its {facts.word}."
    if drawn < facts.n_rows:
        words = (
            f"{html.count(drawn)} of {html.many(facts.n_rows, 'row')}, drawn at random, in the colors of "
            f"their {facts.words}; every {facts.word} has its share."
        )
    shown = [number for number, line in plane.lines.items() if line.is_shown]
    lines = (
        f' <span id="map-note" data-shown="{" ".join(map(str, shown))}" data-curved="{int(tree.mapped)}" '
        'aria-live="polite"></span>'
        if tree.n_leaves > 1
        else ""
    )
    figures = html.figure(pictures.plane_map(plane, tree.label), f"{words}{lines}", "map")
    figures += _pairs(facts) if facts.in_pairs else _depths(facts)
    return f'<div class="glance">{figures}</div>'


def _depths(facts: Facts) -> str:
    """Return the tree with its depths, if there is a split."""
    if facts.tree.n_leaves == 1:
        return ""
    caption = (
        f"The tree, from all rows at the top to the {facts.words}. Wide: many rows. Tall: a deep valley "
        "of the density at the split; the number is its quality, from 0 to 1. A click opens a node below."
    )
    return html.figure(pictures.depth_tree(facts.tree, facts.weight, _node_names(facts)), caption, "tree")


def _pairs(facts: Facts) -> str:
    """Return the boundaries of all pairs of classes."""
    classes = [escape(html.shortened(name, 20)) for name in facts.groups]
    caption = (
        "The boundary between every two classes: its quality, from 0 (no valley of the density) to 1 (an "
        "empty gap). The grayer a cell, the weaker the boundary. A click opens it below."
    )
    listed = listed_pairs(facts)
    if len(listed) < len(facts.tree.inner):
        caption += f" The {len(listed)} boundaries of the lowest quality are described."
    drawing = pictures.pair_matrix(facts.tree, classes, _node_names(facts), listed)
    return html.figure(drawing, caption, "pairs")


def _node_names(facts: Facts) -> list[str]:
    return [_node_name(facts, number) for number in range(facts.tree.n_nodes)]


def _node_name(facts: Facts, number: int) -> str:
    rows, split = html.many(facts.weight[number], "row"), facts.tree.splits[number]
    if split is None:
        return escape(f"{facts.name(int(facts.tree.label[number]))}: {rows}")
    if facts.in_pairs:
        return escape(f"{' | '.join(pair_names(facts, number))}: quality {split.quality:.2f}")
    return f"Split of {rows}, quality {split.quality:.2f}"


def _clusters(facts: Facts, row_html: RowHtml | None) -> str:
    first = first_leaves(facts.tree)
    quality = {one.label: one for one in facts.quality}
    columns: dict[str, Callable[[ClusterExplanation], str]] = {
        facts.word: lambda c: (
            f'<a href="#node-{first[c.label]}" aria-label="{escape(facts.name(c.label))}">'
            f"{html.chip(c.label)}</a>{escape(' ' + facts.beside_number(c.label)).rstrip()}"
        ),
        "#rows": lambda c: html.count(c.weight),
        "#share": lambda c: html.share(c.weight, facts.total),
    }
    if len(first) > 1:
        columns["set apart from the rest by"] = lambda c: (
            ", ".join(filter(None, map(_trait, c.traits[:3]))) or "no column"
        )
    if row_html is not None:
        columns["typical"] = lambda c: "".join(row_html(row[0]) for row in facts.exemplars[c.label][:1])
    if facts.table is not None:
        columns["mostly class"] = lambda c: classes(facts, c.label, 1)

    def of_quality(write: Callable[[ClusterQuality], str]) -> Callable[[ClusterExplanation], str]:
        return lambda c: write(quality[c.label]) if c.label in quality else ""

    if quality:
        columns["#weakest boundary"] = of_quality(lambda q: f"{q.depth:.2f}")
        columns["#membership"] = of_quality(lambda q: f"{q.membership:.2f}")
        columns["#borderline"] = of_quality(lambda q: html.percent(q.borderline))
        columns["#silhouette"] = of_quality(lambda q: f"{q.silhouette:.2f}".replace("-", "\u2212"))
    shown = [cluster for cluster in facts.explained.clusters if cluster.label in first]
    return html.table("clusters", "", shown, columns, tools=True)


def _trait(trait: Trait) -> str:
    side, word = ("up", "high") if trait.difference > 0 else ("down", "low")
    return f'<span class="{side}">{word} {html.name(trait.feature)}</span>' if trait.difference else ""


def _labels(facts: Facts, row_ids: RowIds | None) -> str:
    """Return a button that saves the cluster of every row as CSV, with what it needs."""
    if facts.n_rows > MAX_LABELS:
        return '<p class="soft">Too many rows to save from here; use <code>ravine predict</code>.</p>'
    ids: list[str] = []
    if row_ids is not None:
        numbers = range(facts.n_rows)
        id_of = row_ids(numbers) if callable(row_ids) else row_ids
        ids = [str(id_of[i]) for i in numbers]
        ids = ids if sum(map(len, ids)) <= MAX_IDS else []
    data = json.dumps({"labels": _packed(facts.labels), "ids": ids}, ensure_ascii=False)
    return (
        f'<p><button type="button" id="save-labels" data-labels="{escape(data)}">Save the {facts.word} of '
        "every row as CSV</button></p>"
    )


def _packed(labels: IntArray) -> str:
    """Return labels as text: those of neighbors that are equal as "label*times"."""
    starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    times = np.diff(np.append(starts, len(labels)))
    return " ".join(f"{k}*{n}" if n > 1 else str(k) for k, n in zip(labels[starts], times, strict=True))


# --- columns ---


def _columns(facts: Facts) -> str:
    labels = list(dict.fromkeys(facts.tree.label[facts.tree.leaves].tolist()))
    if len(labels) < 2:
        return ""
    values = facts.profile[labels]
    order = pictures.order_of_columns(values, N_HEAT)
    drawing = pictures.heat_map(values[:, order], [facts.names[j] for j in order], labels, word=facts.word)
    n, reach = len(facts.names), pictures.heat_reach(values[:, order])
    which = "Each column" if n <= N_HEAT else f"The {N_HEAT} of {n} columns that differ most,"
    caption = (
        f"{which} in each {facts.word}: the mean, in standard deviations from the mean of all rows "
        f'(<span class="key low"></span> {reach:g} below, <span class="key high"></span> {reach:g} above).'
    )
    return (
        "<section><h2>The columns</h2>"
        f'<div class="pair">{html.figure(drawing, caption, "columns")}'
        f'<div class="scroll">{_ranking(facts)}</div></div></section>'
    )


def _ranking(facts: Facts) -> str:
    """Return the table of the columns by their share in all splits."""
    ranking = facts.explained.ranking()
    widest = max([value for _, value in ranking] + [1e-9])
    columns: dict[str, Callable[[tuple[str, float]], str]] = {
        "column": lambda item: html.name(item[0]),
        "#share": lambda item: html.share(item[1], 1.0),
        "": lambda item: f'<span class="bar" style="width:{5 * item[1] / widest:.2f}rem"></span>',
    }
    caption = f"The columns by their share in all {'boundaries' if facts.in_pairs else 'splits'}"
    return html.table("ranking", caption, ranking[:N_RANKED], columns, tools=True)


# --- below the tree ---


def _fewer(facts: Facts) -> str:
    """Return what fewer clusters would be, and which cluster would be divided next."""
    tree = facts.tree
    if tree.n_leaves < 2 or facts.groups:
        return ""
    caption = (
        "From left to right, one split after the other: the number of clusters, their shares of the rows, "
        "and the quality of the split that made the two in full color."
    )
    drawing = pictures.fewer(tree, facts.weight, N_FEWER)
    more = _one_more(facts)
    return (
        f"<section><h2>One cluster fewer{', one more' if more else ''}</h2><p>{_one_fewer(facts)} {more}</p>"
        f"{html.figure(drawing, caption, 'fewer')}</section>"
    )


def _one_fewer(facts: Facts) -> str:
    tree = facts.tree
    last = int(tree.inner[-1])
    split = tree.splits[last]
    assert split is not None
    below = tree.label[tree.leaves_below(last)].tolist()
    return (
        f"With one cluster fewer, {' and '.join(map(html.chip, dict.fromkeys(below)))} would be one: the "
        f"last split has a quality of {split.quality:.2f}."
    )


def _one_more(facts: Facts) -> str:
    """Return which cluster would be divided next: the one whose refused split is best, by its rows.

    With a given number of clusters, light leaves may not have been searched. If one of them could come first,
    the text is empty.
    """
    tree = facts.tree
    held = [
        (facts.weight[leaf] * found.quality, int(leaf), found)
        for leaf in tree.leaves
        if (found := tree.refused[leaf]) is not None
    ]
    if not held:
        return ""
    first, leaf, found = max(held, key=lambda item: (item[0], -item[1]))
    unknown = [facts.weight[other] for other in tree.leaves if tree.refused[other] is None]
    if found.evidence is None and first < max(unknown, default=0.0):
        return ""
    chance = "" if found.evidence is None else f", not significant (p = {found.evidence.p_value:.2g})"
    return (
        f"With one more, {html.chip(int(tree.label[leaf]))} would be divided: its best split has a "
        f"quality of {found.quality:.2f}{chance}."
    )


def _set_aside(facts: Facts, row_ids: RowIds | None) -> str:
    """Return which rows are left out as far from all others."""
    numbers = facts.aside.tolist()
    if not numbers:
        return ""
    shown = numbers[:N_OUTLIERS]
    id_of = row_ids(shown) if callable(row_ids) else row_ids
    names = ", ".join(escape(str(i if id_of is None else id_of[i])) for i in shown)
    more = ", ..." if len(numbers) > N_OUTLIERS else ""
    label = f"Each has the label of the {facts.word} on whose side it lies."
    if facts.labels[numbers[0]] < 0:
        label = "Their label is -1."
    return (
        f"<section><h2>Rows set aside</h2><p>{html.many(len(numbers), 'row')} far from all others had no "
        f"influence on the splits, and no part in the numbers and pictures of this page: {names}{more}. "
        f"{label}</p></section>"
    )


def _agreement(facts: Facts) -> str:
    if facts.table is None:
        return ""
    columns: dict[str, Callable[[tuple[str, IntArray]], str]] = {"class": lambda row: escape(row[0])}
    for k in sorted(first_leaves(facts.tree)):
        columns[f"#{k}"] = lambda row, k=k: html.count(float(row[1][k])) if row[1][k] else ""  # type: ignore[misc]
    rows = zip(facts.classes[:MAX_CLASSES], facts.table, strict=False)
    caption = f"Rows of each given class (down) in each {facts.word} (across)"
    table = html.table("agreement", caption, rows, columns, tools=True)
    scores = html.listing((name, f"{value:.3f}") for name, value in facts.scores.items())
    return (
        f"<section><h2>Against the given classes</h2>\n<p>{'' if facts.groups else ALONE}Each score is 1 "
        f"where {facts.words} and given classes are equal.</p>{scores}{table}</section>"
    )


def _findings(facts: Facts, X: Any) -> str:
    """Return the section on what `ravine.check` finds in the rows, if there is something."""
    if facts.tree.mapped and not facts.curved:  # a precomputed kernel, or a function: no columns
        return ""
    items = "".join(f"<li>{escape(finding.sentence)}</li>" for finding in check(X, facts.names))
    return items and f"<section><h2>About the data</h2><ul>{items}</ul></section>"


def _method(facts: Facts) -> str:
    versions = [f"{name} {version(name)}" for name in ("ravine", "numpy", "scikit-learn")]
    items = [
        ("rows and columns", f"{html.count(facts.n_rows)} \u00d7 {html.count(len(facts.names))}"),
        ("made with", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]
    if facts.model is not None:
        items.append(("method", escape(type(facts.model).__name__)))
        items += [(escape(key), escape(value)) for key, value in changed_parameters(facts.model).items()]
        items.append(("passes over the data", f"{facts.model.n_passes_:.1f}"))
    return html.folded("Method and parameters that are not the defaults", html.listing(items))


def _again(model: Any, command: str | None) -> str:
    """Return the section on how to repeat a fit, on the command line and in Python, where that is known."""
    codes = {"On the command line": command}
    if model is not None:
        name = type(model).__name__
        changed = ", ".join(f"{key}={value}" for key, value in changed_parameters(model).items())
        fit, labels = ("X, y", "transduction_") if hasattr(model, "classes_") else ("X", "labels_")
        codes["In Python"] = (
            f"from ravine import {name}\n\nmodel = {name}({changed}).fit({fit})\nmodel.{labels}"
        )
    again = "".join(f"<h3>{name}</h3><pre>{escape(code)}</pre>" for name, code in codes.items() if code)
    return again and f"<section><h2>Reproduce</h2>{again}</section>"
