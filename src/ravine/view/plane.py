"""The map: a fair sample of the rows in two dimensions, the lines of its splits, figures of clusters.

Everything here is taken from one sample of at most `MAP_ROWS` rows, in which every cluster has its share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import silhouette_samples

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.principal import principal
from ravine.data.query import run
from ravine.exceptions import InvalidInputError
from ravine.split.boundary import Hyperplane
from ravine.tree.arrays import TreeArrays

MAP_CELLS = 1 << 24  # values (rows x columns) of these rows, at most: 128 MiB
MAP_ROWS = 3000  # rows drawn on a map, at most: more hide each other, and a page stays small
SPREAD_STEPS = 60  # in which labels on a map are pushed apart, at most
MAP_ASPECT = 4 / 3  # width over height of a picture of the map
AGREEMENT = 0.9  # least share of a node's rows on their own side of a line, for the line to be drawn
BORDERLINE = 0.2  # a row is on the border where its two largest memberships differ by less
SILHOUETTE_ROWS = 2000  # rows of a silhouette, at most: it compares all pairs


@dataclass(frozen=True)
class Line:
    """A hyperplane in the plane of the map: slope . point + offset = 0, positive on its right side.

    `agreement` is the share of the drawn rows of its node that are on the same side of line and hyperplane.
    """

    slope: FloatArray
    offset: float
    agreement: float

    @property
    def is_shown(self) -> bool:
        """Whether the plane of the map shows the split well enough to draw it."""
        return self.agreement >= AGREEMENT


@dataclass(frozen=True)
class Plane:
    """Some rows in two dimensions: their numbers, places and leaves, the axes, and the lines of the splits.

    `rows` are these rows themselves, in the space of the tree; `directions` (2, d) lead from a row's columns,
    times `scale`, to its place, or are empty where the places were given.
    """

    numbers: IntArray
    rows: MemoryRows
    points: FloatArray
    leaf: IntArray
    n_rows: int
    axes: tuple[str, str]
    directions: FloatArray
    scale: FloatArray
    lines: dict[int, Line]

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

    def of(self, tree: TreeArrays) -> Plane:
        """Return the same rows at the same places, with the leaves and lines of another tree."""
        found = replace(self, leaf=tree.leaf_of(self.rows), lines={})
        return replace(found, lines=_lines(tree, found)) if len(self.directions) else found


def spread(places: FloatArray, least: float) -> FloatArray:
    """Return places pushed apart where they are nearer than `least`, so that labels there can be read.

    >>> spread(np.array([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0]]), 1.0).round(2).tolist()
    [[0.0, -0.5], [0.0, 0.5], [5.0, 0.0]]
    """
    at, order = places.copy(), np.arange(len(places))
    for _ in range(SPREAD_STEPS):
        apart = at[:, None] - at[None, :]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        near = (distance < least - 1e-9) & (order[:, None] != order)
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


def plane_of(
    tree: TreeArrays,
    rows: MemoryRows,
    cluster_of: IntArray,
    coordinates: Any = None,
    *,
    standardize: bool,
    columns: MemoryRows | None = None,
) -> Plane:
    """Return a map of the rows by their first two principal components, or by given coordinates.

    `columns` are the rows as the user knows them, where a kernel has mapped `rows`: the components are
    those of standardized columns, and no split is a line in them.
    """
    numbers = fair_sample(cluster_of, max(2, min(MAP_ROWS, MAP_CELLS // rows.shape[1])))
    few = _copied(rows.select(numbers))
    leaf = tree.leaf_of(few)
    if coordinates is not None:
        points, axes = _given(coordinates, rows.shape[0])[numbers], ("first coordinate", "second coordinate")
    elif columns is not None:
        points, axes, *_ = _principal_plane(_copied(columns.select(numbers)), standardize=True)
    else:
        place = _principal_plane(few, standardize=standardize)
        return Plane(numbers, few, place[0], leaf, rows.shape[0], *place[1:], {}).of(tree)
    return Plane(numbers, few, points, leaf, rows.shape[0], axes, np.zeros((0, 0)), np.zeros(0), {})


def _principal_plane(
    few: MemoryRows, *, standardize: bool
) -> tuple[FloatArray, tuple[str, str], FloatArray, FloatArray]:
    """Return the places of some rows, the axes, their directions, and the scale of the columns."""
    node = run(measure(Node(few, standardize=standardize)))
    own, found = node.standardization, run(principal(node, 2))
    directions = np.zeros((2, few.shape[1]))
    directions[: len(found.directions)] = found.directions
    points = few.map(lambda block: block.project(own.mean, own.normals(directions)).T)
    shares = found.deviations**2 / (found.scatter / own.total or 1.0)
    names = [
        f"principal component {i + 1} ({100 * share:.0f} % of the variance)" for i, share in enumerate(shares)
    ]
    scale = np.divide(1.0, own.inverse_scale, out=np.zeros(few.shape[1]), where=own.inverse_scale > 0)
    return points, (names[0], (names + [""])[1]), directions, scale


def _copied(rows: MemoryRows) -> MemoryRows:
    """Return a few rows in memory, so that they are read once."""
    values = rows.map(lambda block: np.column_stack([block.weights, block.dense()]))
    return MemoryRows(np.ascontiguousarray(values[:, 1:]), values[:, 0].copy())


def _given(coordinates: Any, n_rows: int) -> FloatArray:
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape != (n_rows, 2) or not np.isfinite(points).all():
        raise InvalidInputError(
            f"coordinates have to be finite numbers of shape ({n_rows}, 2), got shape {points.shape}"
        )
    return points


def _lines(tree: TreeArrays, plane: Plane) -> dict[int, Line]:
    """Return the hyperplane of each split as a line: where it crosses the plane through its rows' mean."""
    lines = {}
    for node, members, distance in tree.visit(plane.rows):
        boundary = tree.boundary(node)
        if not isinstance(boundary, Hyperplane):
            continue
        slope = plane.directions @ (boundary.normal * plane.scale)
        counted = plane.counted[members]
        here, distance = plane.points[members][counted], distance[counted]
        if not len(here):
            continue
        offset = float(distance.mean() - slope @ here.mean(axis=0))
        same = ((here @ slope + offset) > 0) == (distance > 0)
        lines[node] = Line(slope, offset, float(same.mean()))
    return lines


@dataclass(frozen=True)
class ClusterQuality:
    """How well a cluster is set apart: its weakest boundary, and means over its rows of a sample.

    `depth` is the lowest quality of the splits above its leaves, `membership` the mean membership of its own
    rows, `borderline` the share of its rows between two clusters, `silhouette` the mean silhouette in
    standardized columns; NaN where there is only one cluster.
    """

    label: int
    depth: float
    membership: float
    borderline: float
    silhouette: float


def cluster_quality(tree: TreeArrays, plane: Plane, *, standardize: bool) -> list[ClusterQuality]:
    """Return the figures of every cluster from the rows of the map."""
    if tree.n_clusters < 2:
        return []
    shares, label = tree.memberships(plane.rows), tree.label[plane.leaf]
    top = np.sort(shares, axis=1)
    own, close = shares[np.arange(len(label)), label], top[:, -1] - top[:, -2] < BORDERLINE
    silhouette = np.full(len(label), np.nan)
    silhouette[plane.counted] = _silhouettes(
        plane.rows.select(np.flatnonzero(plane.counted)), label[plane.counted], standardize
    )
    found = []
    for k in np.unique(tree.label[tree.leaves]).tolist():
        here = plane.counted & (label == k)
        if not here.any():
            continue
        found.append(
            ClusterQuality(
                k,
                _weakest(tree, k),
                float(own[here].mean()),
                float(close[here].mean()),
                float(np.nanmean(silhouette[here])),
            )
        )
    return found


def _weakest(tree: TreeArrays, label: int) -> float:
    """Return the lowest quality of the splits above the leaves of a cluster."""
    above = {node for leaf in np.flatnonzero(tree.label == label) for node in tree.path(int(leaf))[:-1]}
    return min(split.quality for node in above if (split := tree.splits[node]) is not None)


def _silhouettes(rows: MemoryRows, label: IntArray, standardize: bool) -> FloatArray:

    values = np.full(len(label), np.nan)
    picked = fair_sample(label, SILHOUETTE_ROWS)
    if not 2 <= len(np.unique(label[picked])) < len(picked):
        return np.zeros(len(label))
    few = rows.select(picked)
    own = run(measure(Node(few, standardize=standardize))).standardization
    values[picked] = silhouette_samples(few.map(lambda block: own.apply(block.dense())), label[picked])
    return values
