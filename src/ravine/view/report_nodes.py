"""The nodes of the tree in a report: what a click on a split or on a cluster shows."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from ravine.split.split import Evidence, Split
from ravine.tree.arrays import TreeArrays
from ravine.tree.export import nested
from ravine.view import draw, html
from ravine.view.density import NodeDensity
from ravine.view.explain import ClusterExplanation, Driver, SplitExplanation, Trait
from ravine.view.facts import Exemplar, Facts

# What fits a page without scrolling in its tables.
N_DRIVERS = 8  # features per split
N_TRAITS = 8  # features per cluster
N_VALUES = 5  # features per typical row
N_CLASSES = 4  # classes per cluster

MAX_PAIRS = 60  # boundaries between classes that are described: a page stays below 1 MB
MAX_SIDE = 20  # characters of the name of a side in a picture

RowHtml = Callable[[int], str]


def nodes(facts: Facts, row_html: RowHtml | None) -> str:
    """Return all nodes as items of a list: nested as in the tree, or the boundaries and then the classes."""

    def leaf(number: int) -> str:
        return f"<li>{_leaf(facts, row_html, number)}</li>"

    def item(number: int) -> tuple[str, str]:
        if facts.tree.left[number] < 0:
            return leaf(number), ""
        return f"<li>{_split(facts, number)}<ul>", "</ul></li>\n"

    if facts.in_pairs:
        pairs = [f"<li>{_split(facts, number)}</li>\n" for number in listed_pairs(facts)]
        return "".join([*pairs, *map(leaf, facts.tree.leaves.tolist())])
    return nested(facts.tree, item, facts.tree.n_nodes)


def listed_pairs(facts: Facts) -> list[int]:
    """Return the boundaries that a page describes: where there are too many, those of the lowest quality."""
    found = [(split.quality, node) for node, split in enumerate(facts.tree.splits) if split is not None]
    return sorted(node for _, node in sorted(found)[:MAX_PAIRS])


def pair_names(facts: Facts, number: int) -> tuple[str, str]:
    """Return the names of the two classes of a boundary."""
    left, right = (int(facts.tree.label[side[number]]) for side in (facts.tree.left, facts.tree.right))
    return facts.name(left), facts.name(right)


def _details(facts: Facts, number: int, summary: str, body: str) -> str:
    """Return a node that a click opens; the first split is open."""
    leaves = facts.tree.leaves_below(number).tolist()
    is_open = " open" if number == (listed_pairs(facts)[0] if facts.in_pairs else 0) else ""
    return (
        f'<details id="node-{number}" data-leaves="{" ".join(map(str, leaves))}"{is_open}>'
        f'<summary>{summary}</summary><div class="body">{body}</div></details>'
    )


# --- a split ---


def _split(facts: Facts, number: int) -> str:
    split, words = facts.tree.splits[number], facts.explained.splits[number]
    assert split is not None
    top = ", ".join(html.name(driver.feature) for driver in words.drivers[:2]) or "a hyperplane"
    what = f"<b>{html.many(facts.weight[number], 'row')}</b> split by {top}"
    sides = "left", "right"
    if facts.in_pairs:
        left, right = pair_names(facts, number)
        what = f"<b>{escape(left)} | {escape(right)}</b>, by {top}"
        sides = html.shortened(left, MAX_SIDE), html.shortened(right, MAX_SIDE)
    curve = facts.densities.get(number)
    summary = "" if curve is None else draw.spark(curve)
    summary += f'<span class="what">{what} <span class="soft">quality {split.quality:.2f}</span></span>'
    figure = "" if curve is None else _density(words, curve, sides)
    table = _drivers(words, sides, curved=facts.curved)
    body = f'<div class="pair">{figure}<div>{table}</div></div>{how_good(split)}'
    return _details(facts, number, summary, body)


def _density(words: SplitExplanation, curve: NodeDensity, sides: tuple[str, str]) -> str:
    weights = words.left_weight, words.right_weight
    left, right = (
        escape(f"{side}: {html.many(weight, 'row')}") for side, weight in zip(sides, weights, strict=True)
    )
    title = f"Density of the rows along the normal of the split; {left}, {right}"
    drawing = draw.density(curve, title, left, right)
    caption = "The density of the rows on both sides of the split, which is the dashed line."
    return html.figure(drawing, caption, f"split-{words.node}")


def _drivers(words: SplitExplanation, sides: tuple[str, str], *, curved: bool) -> str:
    shown, others = words.drivers[:N_DRIVERS], words.drivers[N_DRIVERS:]
    widest = max([d.contribution for d in shown] + [1e-9])
    columns: dict[str, Callable[[Driver], str]] = {
        "column": lambda d: html.name(d.feature),
        f"#{escape(sides[0])}": lambda d: html.number(d.left_mean),
        f"#{escape(sides[1])}": lambda d: html.number(d.right_mean),
        "#share": lambda d: html.percent(d.contribution),
        "": lambda d: (
            f'<span class="bar" style="width:{max(0.0, d.contribution / widest) * 5:.2f}rem"></span>'
        ),
    }
    caption = (
        "What drives the split, the largest weight of a column first: means on both sides, and the share of "
        "each column in their distance"
    )
    if curved:
        caption = (
            "Where the two sides differ: means, and the share of each column in their squared distance. The "
            "boundary is curved (a kernel), so this describes the sides, not the boundary"
        )
    table = html.table("drivers", caption, shown, columns)
    if others:
        rest = sum(d.contribution for d in others)
        text = html.percent(rest) if abs(rest) >= 0.01 else "under 1\u00a0%"
        table += f'<p class="soft">{html.many(len(others), "other column")}: {text}.</p>'
    return table


def how_good(split: Split) -> str:
    """Return quality and evidence of a split; the other numbers of its search are folded."""
    items = [("quality", f"<b>{split.quality:.3f}</b>, from 0 (no valley) to 1 (an empty gap)")]
    if split.evidence is not None:
        e = split.evidence
        words = f"<b>p = {e.p_value:.2g}</b>: how often rows with a single mode show a valley as deep"
        items.append(("evidence", words))
    more = [] if split.evidence is None else [("log depth", _log_depths(split.evidence))]
    more += [(escape(str(name)), html.number(float(value))) for name, value in split.facts.items()]
    more.append(("method", escape(split.method)))
    more.append(("search", f"{escape(split.status)}; {html.many(split.n_iter, 'iteration')}"))
    return html.listing(items) + html.folded("Numbers of the search", html.listing(more))


def _log_depths(evidence: Evidence) -> str:
    mean, deviation = html.number(evidence.null_mean), html.number(evidence.null_deviation)
    return (
        f"{html.number(evidence.log_depth)} here, {mean} \u00b1 {deviation} in "
        f"{html.many(evidence.n_draws, 'sample')} with a single mode"
    )


# --- a cluster ---


def first_leaves(tree: TreeArrays) -> dict[int, int]:
    """Return the leaf at which each cluster is described: its first, where leaves were merged."""
    return {int(tree.label[leaf]): int(leaf) for leaf in tree.leaves[::-1]}


def _leaf(facts: Facts, row_html: RowHtml | None, number: int) -> str:
    label = int(facts.tree.label[number])
    first = first_leaves(facts.tree)[label]
    share = html.share(facts.weight[number], facts.total)
    mostly = "" if facts.table is None else f", mostly class {classes(facts, label, 1)}"
    rows = html.many(facts.weight[number], "row")
    summary = (
        f'{html.chip(label)}<span class="what"><b>{escape(facts.name(label))}</b>: {rows}'
        f' <span class="soft">({share})</span>{mostly}</span>'
    )
    body = f'<p>Part of {facts.word} {label}, described at <a href="#node-{first}">its first leaf</a>.</p>'
    if first == number:
        body = _profile(facts, row_html, facts.explained.clusters[label])
    return _details(facts, number, summary, body + _not_split(facts.tree.refused[number]))


def _not_split(refused: Split | None) -> str:
    if refused is None:
        return ""
    why = "" if refused.evidence is None else f", not significant (p = {refused.evidence.p_value:.2g})"
    return (
        f'<p class="soft">Not split further: its best split has a quality of {refused.quality:.2f}{why}.</p>'
    )


def _profile(facts: Facts, row_html: RowHtml | None, cluster: ClusterExplanation) -> str:
    if not cluster.weight > 0:
        return "<p>None of these rows.</p>"
    traits = cluster.traits[:N_TRAITS]
    widest = max([abs(t.difference) for t in traits] + [1e-9])
    columns: dict[str, Callable[[Trait], str]] = {
        "column": lambda t: html.name(t.feature),
        "#mean": lambda t: html.number(t.mean),
    }
    if facts.tree.n_clusters == 1:
        return html.table("profile", "", traits, columns) + _typical(facts, row_html, cluster)
    columns = {
        "column": columns["column"],
        "#here": columns["#mean"],
        "#elsewhere": lambda t: html.number(t.rest_mean),
        "": lambda t: (
            f'<span class="side"><i class="{"plus" if t.difference > 0 else "minus"}" '
            f'style="width:{50 * abs(t.difference) / widest:.1f}%"></i></span>'
        ),
        "#difference": lambda t: html.deviations(t.difference),
    }
    caption = "Mean of each column here and in all other rows; their difference in standard deviations"
    rules = "".join(f"<p><b>Rule:</b> {escape(rule)}.</p>" for rule in cluster.rules)
    found = "" if facts.table is None else classes(facts, cluster.label, N_CLASSES)
    found = found and f"<p><b>Classes:</b> {found}</p>"
    table = html.table("profile", caption, traits, columns)
    return f"{rules}{table}{_typical(facts, row_html, cluster)}{found}"


def _typical(facts: Facts, row_html: RowHtml | None, cluster: ClusterExplanation) -> str:
    columns: dict[str, Callable[[Exemplar], str]] = {"row": lambda row: escape(row[1])}
    if row_html is not None:
        columns["shown"] = lambda row: row_html(row[0])
    for trait in cluster.traits[:N_VALUES]:
        j = facts.names.index(trait.feature)
        columns[f"#{html.name(trait.feature)}"] = lambda row, j=j: html.number(float(row[2][j]))  # type: ignore[misc]
    caption = f"Typical rows: the nearest to the mean of the {facts.word}"
    return html.table("exemplars", caption, facts.exemplars[cluster.label], columns)


def classes(facts: Facts, label: int, n: int) -> str:
    """Name the most frequent classes of a cluster."""
    assert facts.table is not None
    counts: Any = facts.table[:, label]
    most_frequent = [int(i) for i in np.argsort(-counts, kind="stable")[:n] if counts[i] > 0]
    total = float(counts.sum())
    return ", ".join(
        f"{escape(facts.classes[i])} ({html.share(float(counts[i]), total)})" for i in most_frequent
    )
