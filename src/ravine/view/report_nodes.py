"""The nodes of the tree in a report: what a click on a split or on a cluster shows."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from ravine.split.split import Split
from ravine.tree.tree import ClusterTree
from ravine.view import draw, html
from ravine.view.density import NodeDensity
from ravine.view.explain import ClusterExplanation, Driver, SplitExplanation, Trait
from ravine.view.facts import Exemplar, Facts

# What fits a page without scrolling in its tables.
N_DRIVERS = 8  # features per split
N_TRAITS = 8  # features per cluster
N_VALUES = 5  # features per typical row
N_CLASSES = 4  # classes per cluster

RowHtml = Callable[[int], str]


def node(facts: Facts, row_html: RowHtml | None, number: int, below: str) -> str:
    """Return a node as an item of the list, with the text of its children."""
    if facts.tree.left[number] < 0:
        return f"<li>{_leaf(facts, row_html, number)}</li>"
    return f"<li>{_split(facts, number)}<ul>{below}</ul></li>\n"


def _details(facts: Facts, number: int, summary: str, body: str) -> str:
    """Return a node that a click opens; the first split is open."""
    leaves = [leaf for leaf in facts.tree.leaves.tolist() if number in facts.tree.path(leaf)]
    return (
        f'<details id="node-{number}" data-leaves="{" ".join(map(str, leaves))}"{"" if number else " open"}>'
        f'<summary>{summary}</summary><div class="body">{body}</div></details>'
    )


# --- a split ---


def _split(facts: Facts, number: int) -> str:
    split, words = facts.tree.splits[number], facts.explained.splits[number]
    assert split is not None
    top = ", ".join(html.name(driver.feature) for driver in words.drivers[:2]) or "a hyperplane"
    curve = facts.densities.get(number)
    summary = "" if curve is None else draw.spark(curve)
    summary += (
        f'<span class="what"><b>{html.many(facts.weight[number], "row")}</b> split by {top} '
        f'<span class="soft">quality {split.quality:.2f}</span></span>'
    )
    figure = "" if curve is None else _density(words, curve)
    body = (
        f'<div class="pair">{figure}<div>{_drivers(words, curved=facts.curved)}</div></div>{how_good(split)}'
    )
    return _details(facts, number, summary, body)


def _density(words: SplitExplanation, curve: NodeDensity) -> str:
    left, right = html.many(words.left_weight, "row"), html.many(words.right_weight, "row")
    title = f"Density of the rows along the normal of the split: {left} to the left, {right} to the right"
    drawing = draw.density(curve, title, f"left: {left}", f"right: {right}")
    caption = "The density of the rows on both sides of the split, which is the dashed line."
    return html.figure(drawing, caption, f"split-{words.node}")


def _drivers(words: SplitExplanation, *, curved: bool) -> str:
    shown, others = words.drivers[:N_DRIVERS], words.drivers[N_DRIVERS:]
    widest = max([d.contribution for d in shown] + [1e-9])
    columns: dict[str, Callable[[Driver], str]] = {
        "column": lambda d: html.name(d.feature),
        "#left": lambda d: html.number(d.left_mean),
        "#right": lambda d: html.number(d.right_mean),
        "#share": lambda d: html.percent(d.contribution),
        "": lambda d: (
            f'<span class="bar" style="width:{max(0.0, d.contribution / widest) * 5:.2f}rem"></span>'
        ),
    }
    caption = "What drives the split: means on both sides, and the share of each column in their distance"
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
        words = (
            f"<b>p = {e.p_value:.2g}</b>: how often the same search finds a valley as deep in rows with a "
            f"single mode (log depth {e.log_depth:.2f} here, {e.null_mean:.2f} \u00b1 {e.null_deviation:.2f} "
            f"in {e.n_draws} such samples)"
        )
        items.append(("evidence", words))
    more = [(escape(str(name)), html.number(float(value))) for name, value in split.facts.items()]
    more.append(("method", escape(split.method)))
    more.append(("search", f"{escape(split.status)}; {html.many(split.n_iter, 'iteration')}"))
    return html.listing(items) + html.folded("Numbers of the search", html.listing(more))


# --- a cluster ---


def first_leaves(tree: ClusterTree) -> dict[int, int]:
    """Return the leaf at which each cluster is described: its first, where leaves were merged."""
    return {int(tree.label[leaf]): int(leaf) for leaf in tree.leaves[::-1]}


def _leaf(facts: Facts, row_html: RowHtml | None, number: int) -> str:
    label = int(facts.tree.label[number])
    first = first_leaves(facts.tree)[label]
    share = html.share(facts.weight[number], facts.weight[0])
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
    why = "" if refused.evidence is None else f", which may be chance (p = {refused.evidence.p_value:.2g})"
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
        "#here": lambda t: html.number(t.mean),
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
    caption = "Typical rows: the nearest to the mean of the cluster"
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
