"""The map: a fair sample of the rows in two dimensions, the lines of its splits, figures of clusters.

Everything here is taken from one sample of at most `MAP_ROWS` rows, in which every cluster has its share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import SAMPLE_CELLS, Node, measure
from ravine.data.principal import principal
from ravine.data.query import RowSet, run
from ravine.exceptions import InvalidInputError
from ravine.split.boundary import Hyperplane
from ravine.tree.arrays import TreeArrays

MAP_ROWS = 3000  # rows drawn on a map, at most: more hide each other, and a page stays small
MAP_ASPECT = 4 / 3  # width over height of a picture of the map
TAG_WIDTH = 0.075  # of the number of a cluster on the map, over half the width of the map
AGREEMENT = 0.9  # least share of a node's rows on their own side of a line, for the line to be drawn


@dataclass(frozen=True)
class RowMap:
    """Some rows in two dimensions: their numbers, places and leaves, the axes, and the lines of the splits.

    `rows` are these rows themselves, in the space of the tree; `directions` (2, d) lead from a row's columns,
    times `scale`, to its place, or are empty where the places were given. `lines` has the boundaries that the
    map shows well, as hyperplanes of its two dimensions.
    """

    numbers: IntArray
    rows: RowSet
    points: FloatArray
    leaf: IntArray
    axes: tuple[str, str]
    directions: FloatArray
    scale: FloatArray
    lines: dict[int, Hyperplane]

    @cached_property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Which of the rows have a weight; those set aside have none."""
        return np.asarray(self.rows.map(lambda block: block.weights) > 0)

    @cached_property
    def frame(self) -> tuple[FloatArray, float]:
        """The middle of a picture of the rows and its half width; few far rows do not shrink the others."""
        shown = self.points[self.counted] if self.counted.any() else self.points
        low, high = np.quantile(shown, [0.002, 0.998], axis=0)
        half = float(((high - low) / 2 * [1.0, MAP_ASPECT]).max()) * 1.06
        return (low + high) / 2, half or 1.0

    def of(self, tree: TreeArrays) -> RowMap:
        """Return the same rows at the same places, with the leaves and lines of another tree."""
        found = replace(self, leaf=tree.leaf_of(self.rows), lines={})
        return replace(found, lines=_lines(tree, found)) if len(self.directions) else found

    def tags(self, group: IntArray) -> list[tuple[int, float, float]]:
        """Return the number of each group of rows with its place: the middle of its rows, or beside it."""
        present = np.unique(group)
        middles = np.array([np.median(self.points[group == k], axis=0) for k in present])
        at = spread(middles, TAG_WIDTH * self.frame[1])
        return [(int(k), float(x), float(y)) for k, (x, y) in zip(present, at, strict=True)]


def spread(places: FloatArray, least: float) -> FloatArray:
    """Return places pushed apart where they are nearer than `least`, so that labels there can be read.

    >>> spread(np.array([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0]]), 1.0).round(2).tolist()
    [[0.0, -0.5], [0.0, 0.5], [5.0, 0.0]]
    """
    at, order = places.copy(), np.arange(len(places))
    for _ in range(60):  # enough where they can be apart at all
        apart = at[:, None] - at[None, :]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        near = (distance < least * (1 - 1e-9)) & (order[:, None] != order)
        if not near.any():
            break
        same = near & (distance == 0.0)  # pushed along the second axis, in their order
        apart[same, 1] = (order[:, None] - order)[same]
        distance[same] = np.abs(apart[same, 1])
        push = np.where(near, np.maximum(least - np.where(same, 0.0, distance), 0.0) / 2, 0.0)
        at += (apart / np.where(near, distance, 1.0)[..., None] * push[..., None]).sum(axis=1)
    return at


def fair_sample(cluster_of: IntArray, n: int) -> IntArray:
    """Return the numbers of at most about n rows, drawn at random, in which every cluster has its share.

    >>> picked = fair_sample(np.repeat([0, 1], [90_000, 10_000]), 1000)
    >>> len(picked), int((picked >= 90_000).sum())
    (1000, 100)
    """
    if len(cluster_of) <= n:
        return np.arange(len(cluster_of))
    shuffled = np.random.default_rng(0).permutation(len(cluster_of))
    parts = []
    for label in np.unique(cluster_of):
        members = shuffled[cluster_of[shuffled] == label]
        parts.append(members[: -(-n * len(members) // len(cluster_of))])
    return np.sort(np.concatenate(parts))


def map_rows(
    tree: TreeArrays,
    rows: RowSet,
    cluster_of: IntArray,
    coordinates: Any = None,
    *,
    standardize: bool,
    columns: RowSet | None = None,
) -> RowMap:
    """Return a map of the rows by their first two principal components, or by given coordinates.

    `columns` are the rows as the user knows them, where a kernel has mapped `rows`: the components are
    those of standardized columns, and no split is a line in them.
    """
    numbers = fair_sample(cluster_of, max(2, min(MAP_ROWS, SAMPLE_CELLS // rows.shape[1])))
    few = _copy_rows(rows.select(numbers))
    leaf = tree.leaf_of(few)
    if coordinates is not None:
        points, axes = (
            _check_coordinates(coordinates, rows.shape[0])[numbers],
            ("first coordinate", "second coordinate"),
        )
    elif columns is not None:
        points, axes, *_ = _principal_plane(_copy_rows(columns.select(numbers)), standardize=True)
    else:
        place = _principal_plane(few, standardize=standardize)
        return RowMap(numbers, few, place[0], leaf, *place[1:], {}).of(tree)
    return RowMap(numbers, few, points, leaf, axes, np.zeros((0, 0)), np.zeros(0), {})


def _principal_plane(
    few: RowSet, *, standardize: bool
) -> tuple[FloatArray, tuple[str, str], FloatArray, FloatArray]:
    """Return the places of some rows, the axes, their directions, and the scale of the columns."""
    node = run(measure(Node(few, standardize=standardize)))
    own, found = node.standardization, run(principal(node, 2))
    directions = np.zeros((2, few.shape[1]))
    directions[: len(found.directions)] = found.directions
    points = few.map(lambda block: np.ascontiguousarray(block.project(own.mean, own.normals(directions)).T))
    shares = found.deviations**2 / (found.scatter / own.total or 1.0)
    names = [
        f"principal component {i + 1} ({100 * share:.0f} % of the variance)" for i, share in enumerate(shares)
    ]
    scale = np.divide(1.0, own.inverse_scale, out=np.zeros(few.shape[1]), where=own.inverse_scale > 0)
    return points, (names[0], (names + [""])[1]), directions, scale


def _copy_rows(rows: RowSet) -> RowSet:
    """Return a few rows in memory, so that they are read once."""
    values = rows.map(lambda block: np.column_stack([block.weights, block.dense()]))
    return MemoryRows(np.ascontiguousarray(values[:, 1:]), values[:, 0].copy())


def _check_coordinates(coordinates: Any, n_rows: int) -> FloatArray:
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape != (n_rows, 2) or not np.isfinite(points).all():
        raise InvalidInputError(
            f"coordinates have to be finite numbers of shape ({n_rows}, 2), got shape {points.shape}"
        )
    return points


def _lines(tree: TreeArrays, shown: RowMap) -> dict[int, Hyperplane]:
    """Return where each hyperplane crosses the plane of the map, through the mean of its rows.

    A line is left out where it leaves too many rows of its node on the wrong side: the split then divides
    them in directions that the map does not show.
    """
    lines = {}
    for node, members, distance in tree.visit(shown.rows):
        boundary = tree.boundary(node)
        counted = shown.counted[members]
        if not isinstance(boundary, Hyperplane) or not counted.any():
            continue
        # The gradient of the distance within the map: how the distance grows along its two axes.
        slope = shown.directions @ (boundary.normal * shown.scale)
        here, distance = shown.points[members][counted], distance[counted]
        line = Hyperplane(slope, here.mean(axis=0), -float(distance.mean()))
        same = (line.signed_distance_of(here) > 0) == (distance > 0)
        if slope.any() and same.mean() >= AGREEMENT:
            lines[node] = line
    return lines


@dataclass(frozen=True)
class ClusterQuality:
    """How well a cluster is set apart.

    `depth` is the lowest quality of the splits above its leaves, `membership` the mean membership of its own
    rows on the map.
    """

    depth: float
    membership: float


def cluster_quality(tree: TreeArrays, shown: RowMap) -> dict[int, ClusterQuality]:
    """Return the figures of every cluster with rows on the map; none where there is only one cluster."""
    if tree.n_clusters < 2:
        return {}
    label = tree.label[shown.leaf]
    own = tree.memberships(shown.rows)[np.arange(len(label)), label]
    return {
        k: ClusterQuality(_weakest(tree, k), float(own[shown.counted & (label == k)].mean()))
        for k in np.unique(label[shown.counted]).tolist()
    }


def _weakest(tree: TreeArrays, label: int) -> float:
    """Return the lowest quality of the splits above the leaves of a cluster."""
    above = {node for leaf in np.flatnonzero(tree.label == label) for node in tree.path(int(leaf))[:-1]}
    return min(split.quality for node in above if (split := tree.splits[node]) is not None)
