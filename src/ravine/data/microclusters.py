"""Micro-clusters: a few hundred weighted centers that represent many rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block, DenseBlock
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, sample, sample_rows
from ravine.data.query import Additive, Answer, Query, Request
from ravine.data.standardization import Standardization

SAMPLE_ROWS = 20  # rows per micro-cluster in the sample in which k-means finds the seeds
PIECE = 1024  # rows whose distances to all centers are in memory at a time
TIE = 1e-9  # share of the largest squared distance, or of the sum of squares: smaller differences are a tie
FINE_SEEDS = "fine micro-clusters"  # the purpose of the random numbers of micro-clusters in a projection
ROUNDS = 10  # iterations of k-means on the sample: more do not make the micro-clusters better


@dataclass(frozen=True)
class MicroClusters:
    """Centers in standardized coordinates about the mean, and the weight of the rows of each."""

    centers: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class NearestSum(Additive):
    """Request for the weight and the sum of the rows nearest to each seed, standardized and along `axes`.

    Rows are projected on `axes` (r, d) of the standardized space (None: all columns); distances to the seeds
    (m, l) are measured after a further projection on `directions` (l, r).
    """

    standardization: Standardization
    directions: FloatArray
    seeds: FloatArray
    axes: FloatArray | None = None

    def start(self, n_features: int) -> Answer:
        n = n_features if self.axes is None else len(self.axes)
        return np.zeros(len(self.seeds)), np.zeros((len(self.seeds), n))

    def add(self, block: Block, answer: Answer) -> None:
        (mass, sums), own, seeds = answer, self.standardization, self.seeds
        if self.axes is None:
            inner = block.project(own.mean, own.normals(seeds @ self.directions))
            nearest = _first_nearest(inner, seeds)
            block.group_sums(own.mean, block.weights, nearest, sums)
        else:
            points = block.project(own.mean, own.normals(self.axes)).T
            nearest = _first_nearest(seeds @ self.directions @ points.T, seeds)
            add_to_groups(points, block.weights, nearest, sums)
        mass += np.bincount(nearest, block.weights, len(seeds))


def add_to_groups(points: FloatArray, weights: FloatArray, group: IntArray, sums: FloatArray) -> None:
    """Add weighted points to the row of `sums` that is their group."""
    block = DenseBlock(np.ascontiguousarray(points), weights)
    block.group_sums(np.zeros(points.shape[1]), weights, group, sums)


def microclusters(
    node: Node,
    n: int,
    purpose: str,
    directions: FloatArray | None = None,
    axes: FloatArray | None = None,
) -> Query[MicroClusters]:
    """Return at most n micro-clusters: seeds by k-means on a sample, then one pass that sums all rows.

    With `directions`, distances are those in that projection; with `axes`, centers are coordinates along
    these. If there are at most n rows, each is its own micro-cluster.
    """
    own = node.standardization
    points, weights = yield from _sample_along(node, sample_size(node, n), purpose, axes)
    if node.n_rows <= n:
        return MicroClusters(points, weights)
    if directions is None:
        directions = np.eye(points.shape[1])
    seeds = _k_means(points @ directions.T, weights, n, node.rng(purpose))
    ((mass, sums),) = yield node.ask(NearestSum(own, directions, seeds, axes))
    full = mass > 0
    scale = own.inverse_scale if axes is None else 1.0
    return MicroClusters(sums[full] * scale / mass[full, None], mass[full])


def sample_size(node: Node, n: int) -> int:
    """Return how many rows are sampled to find n micro-clusters: all, if there are no more than n."""
    return n if node.n_rows <= n else SAMPLE_ROWS * n


def _sample_along(
    node: Node, n: int, purpose: str, axes: FloatArray | None
) -> Query[tuple[FloatArray, FloatArray]]:
    """Draw n rows: standardized, or their coordinates along some axes, and their weights."""
    own = node.standardization
    if axes is None:
        rows, weights = yield from sample_rows(node, n, purpose)
        return own.apply(rows), weights
    drawn = yield from sample(node, n, purpose)
    assert isinstance(drawn.rows, MemoryRows)
    points = drawn.rows.map(lambda block: block.project(own.mean, own.normals(axes)).T)
    return points, drawn.rows.map(lambda block: block.weights)


@dataclass(frozen=True)
class RadiusSum(Request):
    """Request for the weight, the sum and the largest distance of the points nearest to each seed.

    `place` moves the projected points first (spectral connectivity contracts outliers).
    """

    standardization: Standardization
    directions: FloatArray
    seeds: FloatArray
    place: Callable[[FloatArray], FloatArray]

    def start(self, n_features: int) -> Answer:
        m = len(self.seeds)
        return np.zeros(m), np.zeros((m, self.seeds.shape[1])), np.zeros(m)

    def add(self, block: Block, answer: Answer) -> None:
        (mass, sums, radius), own = answer, self.standardization
        points = self.place(block.project(own.mean, own.normals(self.directions)).T)
        group, distance = nearest(points, self.seeds)
        counted = block.weights > 0
        mass += np.bincount(group, block.weights, len(mass))
        add_to_groups(points, block.weights, group, sums)
        np.maximum.at(radius, group[counted], distance[counted])

    def merge(self, left: Answer, right: Answer) -> Answer:
        return left[0] + right[0], left[1] + right[1], np.maximum(left[2], right[2])


def fine_microclusters(
    node: Node, n: int, directions: FloatArray, place: Callable[[FloatArray], FloatArray]
) -> Query[tuple[MicroClusters, FloatArray]]:
    """Return micro-clusters of the projected points after `place`, and a bound on the radius of each."""
    points, weights = yield from _sample_along(node, sample_size(node, n), FINE_SEEDS, directions)
    points = place(points)
    if node.n_rows <= n:
        return MicroClusters(points, weights), np.zeros(len(points))
    seeds = _k_means(points, weights, n, node.rng(FINE_SEEDS))
    ((mass, sums, radius),) = yield node.ask(RadiusSum(node.standardization, directions, seeds, place))
    full = mass > 0
    centers = sums[full] / mass[full, None]
    shift = np.linalg.norm(centers - seeds[full], axis=1)
    return MicroClusters(centers, mass[full]), radius[full] + shift


def nearest(points: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the nearest center of every point, and the distance to it."""
    found, distance = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for a in range(0, len(points), PIECE):
        squares = ((points[a : a + PIECE, None, :] - centers) ** 2).sum(axis=2)
        found[a : a + PIECE] = squares.argmin(axis=1)
        distance[a : a + PIECE] = np.sqrt(squares.min(axis=1))
    return found, distance


def _k_means(points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n centers of some points: k-means++ and a few of Lloyd's rounds.

    The points are taken in the order of their norms, so that the order of the rows does not matter, nor that
    of the columns or their signs.
    """
    order = np.argsort(np.round((points**2).sum(axis=1) / TIE), kind="stable")
    points, weights = points[order], weights[order]
    centers = points[plus_plus(points, weights, n, rng)]
    for _ in range(ROUNDS):
        group = _first_nearest(centers @ points.T, centers)
        mass = np.bincount(group, weights, n)
        sums = np.stack([np.bincount(group, weights * column, n) for column in points.T], axis=1)
        full = mass > 0
        centers[full] = sums[full] / mass[full, None]
    return centers


def plus_plus(points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return the places of n points by greedy k-means++: of some random candidates, the best one each time.

    Two points far from all others reduce the sum of squares by the same amount, d1 + d2 - d12, whichever of
    them is chosen. Rounding would decide such a tie; the candidate drawn first is chosen.

    >>> plus_plus(np.array([[0.0], [0.1], [9.0]]), np.ones(3), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    squares, trials = (points**2).sum(axis=1), 2 + int(np.log(n))
    chosen = [int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))]
    nearest = np.full(len(points), np.inf)
    while True:
        last = chosen[-1]
        nearest = np.minimum(nearest, np.maximum(squares + squares[last] - 2.0 * points @ points[last], 0.0))
        nearest[last] = 0.0
        if len(chosen) == n:
            return np.array(chosen)
        reach = np.cumsum(weights * nearest)
        drawn = np.searchsorted(reach, rng.random(trials) * reach[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        distances = squares[drawn, None] + squares
        distances -= 2.0 * points[drawn] @ points.T  # in place, as memory takes longer than the arithmetic
        np.clip(distances, 0.0, nearest, out=distances)
        left = distances @ weights
        chosen.append(int(drawn[np.argmax(left <= left.min() + TIE * reach[-1])]))


def _first_nearest(inner: FloatArray, centers: FloatArray) -> IntArray:
    """Return the nearest center of every point, given their inner products; in a tie, the first one.

    Ties are common with integer rows, and rounding would decide them. The inner products are
    overwritten: there are far more of them than points.
    """
    half = 0.5 * (centers**2).sum(axis=1)
    closeness = np.subtract(inner, half[:, None], out=inner)
    closest = closeness.max(axis=0)
    largest = max(closest.max(initial=0.0), -closeness.min(initial=0.0))
    tie = TIE * (largest + half.max(initial=0.0))
    return np.asarray(np.argmax(closeness >= closest - tie, axis=0))
