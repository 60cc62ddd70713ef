"""A fitted clusterer in a notebook: its tree as a list, with the colors of the clusters."""

from __future__ import annotations

from typing import Any

from ravine.tree.export import html
from ravine.view import palette

STYLE = (
    ".ravine-tree li{margin:.2em 0} .ravine-tree{list-style:none;padding-left:.5em} "
    ".ravine-tree ul{list-style:none;padding-left:2em}"
)


def show(model: Any) -> str:
    """Return the tree of a fitted clusterer as a nested list of HTML, with the text of `print(tree)`."""

    def style(label: int) -> str:
        color = palette.cluster(label)
        return f"background:{color};color:{palette.text_on(color)};border-radius:1em;padding:0 .5em"

    return f"<style>{STYLE}</style>{html(model.tree_, style=style)}"
