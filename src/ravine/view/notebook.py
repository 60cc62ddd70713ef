"""A fitted clusterer in a notebook: the picture of its tree, and the tree as a list."""

from __future__ import annotations

from typing import Any

from ravine.tree.arrays import TreeArrays
from ravine.tree.export import html
from ravine.view import palette, pictures
from ravine.view.pages import render
from ravine.view.words import many


def show(model: Any) -> str:
    """Return the tree of a fitted clusterer as HTML: nothing is known here but the tree, so no densities."""
    tree: TreeArrays = model.tree_
    names = [
        f"cluster {tree.label[node]}: {many(tree.weight[node], 'row')}"
        if split is None
        else f"split of {many(tree.weight[node], 'row')}, quality {split.quality:.2f}"
        for node, split in enumerate(tree.splits)
    ]
    return render(
        "notebook.html.j2",
        colors=palette.CLUSTERS,
        boxes=pictures.place_nodes(tree, tree.weight),
        names=names,
        listed=html(tree),  # which escapes the names of columns
    )
