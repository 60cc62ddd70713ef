"""A fitted clusterer in a notebook: its tree as a list, with a small density at every split."""

from __future__ import annotations

import numpy as np

from ravine.data.memory import MemoryRows
from ravine.split.split import Split
from ravine.tree.arrays import TreeArrays
from ravine.tree.export import html
from ravine.view import palette
from ravine.view.density import NodeDensity, density_of
from ravine.view.draw import spark

SKETCH_ROWS = 2000  # rows of the small densities, at most
SKETCH_LEAVES = 64  # leaves of a tree that is shown with densities, at most

STYLE = (
    f".ravine-tree .l{{fill:{palette.LEFT}}} .ravine-tree .r{{fill:{palette.RIGHT}}} "
    ".ravine-tree .curve{fill:none;stroke:currentColor} "
    ".ravine-tree .threshold{stroke:currentColor;stroke-dasharray:4 3} "
    ".ravine-tree svg{width:84px;height:30px;vertical-align:middle} "
    ".ravine-tree li{margin:.2em 0} .ravine-tree{list-style:none;padding-left:.5em} "
    ".ravine-tree ul{list-style:none;padding-left:2em}"
)


Sketch = tuple[tuple[Split, NodeDensity], ...]


def sketch(tree: TreeArrays, rows: MemoryRows) -> Sketch:
    """Return each split with its density in rows at equal steps; nothing for large trees and for files.

    A tree that was edited later has some of the same splits at other nodes.
    """
    if tree.n_leaves > SKETCH_LEAVES or not isinstance(rows, MemoryRows):
        return ()
    n = rows.shape[0]
    few = rows.select(np.unique(np.linspace(0, n - 1, min(n, SKETCH_ROWS)).astype(np.int64)))
    own = np.ones(few.shape[0]) if few.own_weights is None else few.own_weights
    found = []
    try:
        with np.errstate(over="raise", invalid="raise"):
            for node, here, distance in tree.visit(few):
                split = tree.splits[node]
                if split is not None and own[here].any():
                    found.append((split, density_of(split, distance, own[here])))
    except (FloatingPointError, ValueError):  # distances beyond the range of a picture
        return ()
    return tuple(found)


def show(tree: TreeArrays, sketched: Sketch) -> str:
    """Return the tree as a nested list of HTML, with the text of `print(tree)`."""
    curves = {id(split): curve for split, curve in sketched}

    def drawing(node: int) -> str:
        curve = curves.get(id(tree.splits[node]))
        return "" if curve is None else f"{spark(curve)} "

    def style(label: int) -> str:
        color = palette.cluster(label)
        return f"background:{color};color:{palette.text_on(color)};border-radius:1em;padding:0 .5em"

    return f"<style>{STYLE}</style>{html(tree, drawing, style)}"
