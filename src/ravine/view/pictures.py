"""The numbers behind the drawings of a page; `pictures.html.j2` draws them. Sizes are shares of a drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.tree.arrays import TreeArrays
from ravine.view import palette
from ravine.view.density import NodeDensity
from ravine.view.row_map import MAP_ASPECT, RowMap

LEAST_HEIGHT = 0.03  # of a split in the tree, in units of its quality: one of quality 0 is seen, too
N_HEAT = 30  # columns of the heat map


# --- the density at a split ---


@dataclass(frozen=True)
class Outline:
    """A density in a box of size 1: the curve on both sides, the threshold, ticks of the axis."""

    left: FloatArray
    right: FloatArray
    threshold: float
    ticks: list[tuple[float, float]]

    @property
    def curve(self) -> FloatArray:
        """The points of both sides."""
        return np.concatenate([self.left, self.right])

    @property
    def coarse(self) -> Outline:
        """The same with a fourth of the points, for a small drawing; the threshold is one of them."""
        return replace(self, left=self.left[::-4][::-1], right=self.right[::4])


def outline(curve: NodeDensity) -> Outline:
    """Return the curve of a density, divided at the threshold."""
    low, high = curve.points[0], curve.points[-1]
    points = np.column_stack([(curve.points - low) / (high - low), curve.density / curve.density.max()])
    threshold = -low / (high - low)
    bottom = [[threshold, np.interp(threshold, *points.T)]]
    is_left = points[:, 0] <= threshold
    ticks = [((tick - low) / (high - low), tick) for tick in _ticks(curve.points)]
    left, right = np.concatenate([points[is_left], bottom]), np.concatenate([bottom, points[~is_left]])
    return Outline(left, right, float(threshold), ticks)


def _ticks(points: FloatArray) -> list[float]:
    """Return about five round numbers within a range, 0 among them."""
    span = float(points[-1] - points[0])
    step = 10 ** np.floor(np.log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (m * step) <= 7)
    margin = 0.03 * span
    found = np.arange(np.ceil((points[0] + margin) / step), np.floor((points[-1] - margin) / step) + 1) * step
    return [float(np.round(t, 12)) for t in found]


# --- the map ---


@dataclass(frozen=True)
class MapPicture:
    """The rows of each leaf, the numbers of the leaves and the lines of splits in a box of size 1."""

    dots: dict[int, FloatArray]
    tags: list[tuple[int, FloatArray]]
    lines: dict[int, FloatArray]


def place_map(shown: RowMap) -> MapPicture:
    """Return a map in a box of size 1; a line goes beyond it on both sides."""
    middle, half = shown.frame

    def place(points: FloatArray) -> FloatArray:
        return np.asarray(0.5 + (points - middle) / (2 * half) * [1, MAP_ASPECT])

    lines = {}
    for node, line in shown.lines.items():
        square = float(line.normal @ line.normal)
        foot = middle - line.normal * float(line.signed_distance_of(middle[None])[0]) / square
        along = 4 * half * np.array([-line.normal[1], line.normal[0]]) / np.sqrt(square)
        lines[node] = place(np.stack([foot - along, foot + along]))
    at = np.clip(place(shown.points), 0.006, 0.994)  # dots are whole also at the edges
    dots = {leaf: at[shown.leaf == leaf] for leaf in np.unique(shown.leaf).tolist()}
    tags = [(leaf, np.clip(place(np.array([x, y])), 0, 1)) for leaf, x, y in shown.tags(shown.leaf)]
    return MapPicture(dots, tags, lines)


# --- the tree ---


@dataclass(frozen=True)
class Box:
    """A node in the picture of a tree: width is its share of the rows, height the depth of its valley."""

    node: int
    x: float
    y: float
    width: float
    height: float
    quality: float | None
    label: int


def place_nodes(tree: TreeArrays, weight: FloatArray) -> list[Box]:
    """Return every node with its place, from all rows on top to the leaves, whose height is 0."""
    quality = np.array([split.quality if split is not None else 0.0 for split in tree.splits])
    x, y = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    for node in np.flatnonzero(tree.left >= 0).tolist():
        a, b = tree.left[node], tree.right[node]
        x[a], x[b] = x[node], x[node] + weight[a]
        y[[a, b]] = y[node] + max(quality[node], LEAST_HEIGHT)
    wide, high = weight[0] or 1.0, float(y.max()) or 1.0
    return [
        Box(
            node,
            x[node] / wide,
            y[node] / high,
            weight[node] / wide,
            0.0 if split is None else max(quality[node], LEAST_HEIGHT) / high,
            None if split is None else split.quality,
            int(tree.label[node]),
        )
        for node, split in enumerate(tree.splits)
    ]


# --- columns ---


@dataclass(frozen=True)
class Heat:
    """Some columns with their mean and color in every cluster; the colors end at `reach` deviations."""

    columns: list[tuple[str, list[tuple[float, str]]]]
    labels: list[int]
    reach: float


def heat_of(values: FloatArray, names: list[str], labels: list[int]) -> Heat:
    """Return the columns whose means, in standard deviations from all rows, differ most between clusters.

    `values` are these means, clusters down and columns across.
    """
    order = order_of_columns(values, N_HEAT)
    largest = float(np.abs(values[:, order]).max(initial=0.0))
    reach = min(2.0, max(0.5, float(np.ceil(2 * largest)) / 2))  # all of the scale is used
    columns = [(names[j], [(float(v), palette.heat(v / reach)) for v in values[:, j]]) for j in order]
    return Heat(columns, labels, reach)


def order_of_columns(values: FloatArray, n: int) -> IntArray:
    """Return at most n columns, those that differ most between clusters, so that blocks show.

    Columns that are highest in the same cluster are together, in the order of the clusters.
    """
    spread = values.max(axis=0) - values.min(axis=0)
    kept = np.argsort(-spread, kind="stable")[:n]
    home = values[:, kept].argmax(axis=0)
    return np.asarray(kept[np.lexsort((-spread[kept], home))])
