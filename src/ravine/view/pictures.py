"""Drawings of a whole clustering as inline SVG: the map, the tree with its depths, heat, fewer clusters."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.tree.arrays import TreeArrays
from ravine.view import palette
from ravine.view.html import color, count, deviations, many
from ravine.view.plane import Line, Plane, spread

# Sizes in units of the view box: pixels, where a page is wide enough.
MAP_WIDTH, MAP_HEIGHT, TAG = 560, 420, 21
TREE_WIDTH, TREE_HEIGHT, LEAF_HEIGHT = 560, 330, 34
CELL, WIDE_CELL, NAME_WIDTH = 22, 40, 190
N_WIDE = 12  # clusters up to which the cells of a heat map are wide enough for their numbers
STEP_WIDTH, WIDE_STEP, STEPS_WIDTH = 54, 110, 560


def svg(
    width: float, height: float, title: str, content: str, kind: str = "", *, has_links: bool = False
) -> str:
    """Return a drawing of a size; its title, which has to be escaped, is what screen readers read.

    They read what is inside a drawing only if it `has_links`.
    """
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="{"group" if has_links else "img"}" aria-label="{title}">{content}</svg>'
    )


def tag(label: int, x: float, y: float, attributes: str = "") -> str:
    """Return the number of a cluster on its color, at a place of a drawing."""
    return (
        f'<g class="tag {color(label)}"{attributes}><circle cx="{x:.0f}" cy="{y:.0f}" r="10"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{label}</text></g>'
    )


def plane_map(plane: Plane, label_of: IntArray) -> str:
    """Draw rows as points in the colors of their clusters, and the line of each split, hidden at first.

    Rows of one leaf are one path, so that the page can dim the rows of other nodes.
    """
    middle, half = plane.frame
    scale = MAP_WIDTH / 2 / half

    def place(points: FloatArray) -> FloatArray:
        at = (points - middle) * [scale, -scale] + [MAP_WIDTH / 2, MAP_HEIGHT / 2]
        return np.asarray(np.clip(at, 3, [MAP_WIDTH - 3, MAP_HEIGHT - 3]))

    at, pieces, names = place(plane.points), [], []
    leaves = np.unique(plane.leaf)
    middles = spread(np.array([np.median(at[plane.leaf == leaf], axis=0) for leaf in leaves]), TAG)
    for leaf, (x, y) in zip(leaves.tolist(), middles, strict=True):
        here = at[plane.leaf == leaf]
        dots = "".join(f"M{x:.0f} {y:.0f}h0" if len(at) > 800 else f"M{x:.1f} {y:.1f}h0" for x, y in here)
        pieces.append(f'<path class="dots {color(label_of[leaf])}" data-leaf="{leaf}" d="{dots}"/>')
        names.append(tag(int(label_of[leaf]), x, y, f' data-leaf="{leaf}"'))
    lines = "".join(
        _segment(node, line, middle, scale) for node, line in plane.lines.items() if line.is_shown
    )
    across, up = map(escape, plane.axes)
    axes = (
        f'<text class="soft" x="{MAP_WIDTH - 4}" y="{MAP_HEIGHT - 5}" text-anchor="end">{across}</text>'
        f'<text class="soft" transform="translate(12 4) rotate(-90)" text-anchor="end">{up}</text>'
    )
    title = f"Map of {count(len(at))} rows in the colors of their clusters"
    return svg(MAP_WIDTH, MAP_HEIGHT, title, axes + "".join(pieces) + lines + "".join(names), "map")


def _segment(node: int, line: Line, middle: FloatArray, scale: float) -> str:
    """Return a line of the plane as far as it is inside the picture; nothing where it is not."""
    slope = line.slope / scale * [1, -1]
    offset = line.offset + float(line.slope @ middle) - float(slope @ [MAP_WIDTH / 2, MAP_HEIGHT / 2])
    ends = []
    for axis, edges in ((0, (0, MAP_WIDTH)), (1, (0, MAP_HEIGHT))):
        other, limit = 1 - axis, (MAP_WIDTH, MAP_HEIGHT)[1 - axis]
        for edge in edges:
            if slope[other] != 0:
                at = -(slope[axis] * edge + offset) / slope[other]
                if 0 <= at <= limit:
                    ends.append((edge, at) if axis == 0 else (at, edge))
    if len(ends) < 2:
        return ""
    (x, y), (u, v) = min(ends), max(ends)
    return f'<path class="line" data-node="{node}" d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"/>'


def depth_tree(tree: TreeArrays, weight: FloatArray, labels: Sequence[str]) -> str:
    """Draw the tree: width is the share of the rows, height the depth of the valley at a split.

    `labels` are the names of the nodes for screen readers and tool tips, escaped.
    """
    quality = np.array([split.quality if split is not None else 0.0 for split in tree.splits])
    left, top = _corners(tree, weight, quality)
    wide = TREE_WIDTH / (weight[0] or 1.0)
    high = (TREE_HEIGHT - LEAF_HEIGHT) / (float(top.max()) or 1.0)
    pieces = []
    for node in range(tree.n_nodes):
        x, w, y = left[node] * wide, max(weight[node] * wide - 1.5, 1.0), top[node] * high
        is_leaf = tree.left[node] < 0
        h = LEAF_HEIGHT if is_leaf else max(quality[node], 0.03) * high - 1.5
        text = str(tree.label[node]) if is_leaf else f"{quality[node]:.2f}"
        size = "small" if w < 9 * len(text) else ""
        words = (
            f'<text class="{size}" x="{x + w / 2:.1f}" y="{y + h / 2 + 4:.1f}" text-anchor="middle">'
            f"{text}</text>"
        )
        words = words if w > 6 * len(text) and h >= 13 else ""
        pieces.append(
            f'<a class="{color(tree.label[node]) if is_leaf else ""}" href="#node-{node}" '
            f'aria-label="{labels[node]}"><title>{labels[node]}</title>'
            f'<rect class="{"leaf" if is_leaf else "inner"}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" '
            f'height="{h:.1f}" rx="2"/>{words}</a>'
        )
    title = "The tree: wider nodes have more rows, taller ones a deeper valley"
    return svg(TREE_WIDTH, TREE_HEIGHT, title, "".join(pieces), "depths", has_links=True)


def _corners(tree: TreeArrays, weight: FloatArray, quality: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how much weight lies left of each node, and how much depth above it."""
    left, top = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    for node in np.flatnonzero(tree.left >= 0).tolist():
        a, b = tree.left[node], tree.right[node]
        left[a], left[b] = left[node], left[node] + weight[a]
        top[[a, b]] = top[node] + max(quality[node], 0.03)
    return left, top


def pair_matrix(tree: TreeArrays, names: Sequence[str], labels: Sequence[str], listed: Sequence[int]) -> str:
    """Draw the quality of the boundary of each pair of classes, the first class down and the second across.

    `names` are those of the classes and `labels` those of the nodes for screen readers, both escaped;
    `listed` are the boundaries that the page describes.
    """
    n, described = tree.n_leaves, set(listed)
    step = max(CELL, min(64, (MAP_WIDTH - NAME_WIDTH) / n))
    pieces = []
    for k, leaf in enumerate(tree.leaves.tolist()):
        x, y = NAME_WIDTH + step * k + step / 2, 30 + step * k + step / 2
        pieces += [tag(k, x, 14), tag(k, NAME_WIDTH - 16, y)]
        pieces.append(
            f'<a href="#node-{leaf}"><text x="{NAME_WIDTH - 32}" y="{y + 4:.1f}" text-anchor="end">'
            f"{names[k]}</text></a>"
        )
    for node in tree.inner.tolist():
        split, row, column = tree.splits[node], tree.label[tree.left[node]], tree.label[tree.right[node]]
        assert split is not None
        x, y = NAME_WIDTH + step * column, 30 + step * row
        words = (
            f'<text x="{x + step / 2:.1f}" y="{y + step / 2 + 4:.1f}" text-anchor="middle">'
            f"{split.quality:.2f}</text>"
        )
        cell = (
            f'<title>{labels[node]}</title><rect class="inner" fill-opacity="{1.2 - split.quality:.2f}" '
            f'x="{x:.1f}" y="{y:.1f}" width="{step - 2:.1f}" height="{step - 2:.1f}"/>'
            f"{words if step >= WIDE_CELL * 3 / 4 else ''}"
        )
        link = f'<a href="#node-{node}" aria-label="{labels[node]}">{cell}</a>'
        pieces.append(link if node in described else f"<g>{cell}</g>")
    title, width = (
        "Pairs of classes with the quality of their boundaries",
        max(MAP_WIDTH, NAME_WIDTH + step * n),
    )
    return svg(width, 34 + step * n, title, "".join(pieces), "depths", has_links=True)


def heat_reach(values: FloatArray) -> float:
    """Return the standard deviations at which the scale of heat ends: all of them are used.

    >>> heat_reach(np.array([0.2, -1.3]))
    1.5
    """
    largest = float(np.abs(values).max(initial=0.0))
    return min(palette.HEAT_REACH, max(0.5, float(np.ceil(2 * largest)) / 2))


def heat_map(
    values: FloatArray, names: Sequence[str], labels: Sequence[int], *, word: str = "cluster"
) -> str:
    """Draw the mean of each column (down) in each cluster (across), in standard deviations from all rows."""
    cell = WIDE_CELL if len(labels) <= N_WIDE else CELL
    width, top, reach = NAME_WIDTH + cell * len(labels), 26, heat_reach(values)
    cells = []
    for i, label in enumerate(labels):
        cells.append(tag(label, NAME_WIDTH + cell * i + (cell - 2) // 2, 12))
    for j, name in enumerate(names):
        y, shown = top + CELL * j, name if len(name) <= 26 else name[:25] + "\u2026"
        cells.append(f'<text x="{NAME_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(shown)}</text>')
        for i, label in enumerate(labels):
            value, x = values[i, j], NAME_WIDTH + cell * i
            fill = palette.heat(value, reach)
            cells.append(
                f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{CELL - 1}" fill="{fill}">'
                f"<title>{escape(name)}, {word} {label}: {deviations(value)}</title></rect>"
            )
            if cell == WIDE_CELL:
                cells.append(
                    f'<text class="number" style="fill:{palette.text_on(fill)}" x="{x + cell // 2}" '
                    f'y="{y + 15}" text-anchor="middle">{deviations(value, unit="")}</text>'
                )
    title = f"Means of {many(len(names), 'column')} in {len(labels)} groups of rows"
    return svg(max(width, 300), top + CELL * len(names) + 4, title, "".join(cells), "heat")


def order_of_columns(values: FloatArray, n: int) -> IntArray:
    """Return at most n columns, those that differ most between clusters, so that blocks show.

    Columns that are highest in the same cluster are together, in the order of the clusters.
    """
    spread = values.max(axis=0) - values.min(axis=0)
    kept = np.argsort(-spread, kind="stable")[:n]
    home = values[:, kept].argmax(axis=0)
    return np.asarray(kept[np.lexsort((-spread[kept], home))])


def fewer(tree: TreeArrays, weight: FloatArray, n: int) -> str:
    """Draw the clusters after each of the last n splits: one column per number of clusters."""
    height, base = 220, 24
    scale = height / (weight[0] or 1.0)
    numbers = range(max(1, tree.n_leaves - n + 1), tree.n_leaves + 1)
    step = min(WIDE_STEP, max(STEP_WIDTH, STEPS_WIDTH // len(numbers)))
    wide, pieces = step * 3 // 5, []
    for i, k in enumerate(numbers):
        x, last = 8 + step * i, int(tree.inner[k - 2]) if k > 1 else -1
        newest = {int(tree.left[last]), int(tree.right[last])} if last >= 0 else set()
        y = float(base)
        for node in _leaves_after(tree, k - 1):
            h = weight[node] * scale
            kind = "new" if node in newest else ""
            fill = color(tree.label[tree.leaves_below(node)[0]])
            high = f'y="{y:.1f}" height="{max(h - 1.5, 0.5):.1f}"'
            if k < tree.n_leaves:  # what becomes of these rows in the next column
                pieces.append(f'<rect class="flow {fill}" x="{x + wide}" {high} width="{step - wide}"/>')
            pieces.append(
                f'<rect class="band {fill} {kind}" x="{x}" {high} width="{wide}">'
                f"<title>{many(weight[node], 'row')}</title></rect>"
            )
            y += h
        split = tree.splits[last] if last >= 0 else None
        words = "" if split is None else f"{split.quality:.2f}"
        at = f'x="{x + wide / 2:g}" text-anchor="middle"'
        pieces.append(f'<text {at} y="16"><tspan font-weight="600">{k}</tspan></text>')
        pieces.append(f'<text class="soft" {at} y="{base + height + 16}">{words}</text>')
    title = f"The clusters for {numbers[0]} to {numbers[-1]} leaves of the tree"
    return svg(16 + step * len(numbers), base + height + 24, title, "".join(pieces), "fewer")


def _leaves_after(tree: TreeArrays, n_splits: int) -> list[int]:
    """Return the leaves of the tree of the first splits, from left to right."""
    made, stack, found = set(tree.inner[:n_splits].tolist()), [0], []
    while stack:
        node = stack.pop()
        if node in made:
            stack += [int(tree.right[node]), int(tree.left[node])]
        else:
            found.append(node)
    return found
