"""Micro-clusters: a few hundred weighted centers that stand for many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Additive, Answer, Query, RowBlocks, Rows
from ravine.data.standardization import Standardization

SAMPLE_ROWS = 20  # rows a micro-cluster that its seed is sought among
PIECE = 1024  # rows whose distances to all centers are held at a time
TIE = 1e-9  # of the largest square: centers that are nearer by less are as near
ROUNDS = 10  # of k-means on the sample: finer seeds make no better stand-ins


@dataclass(frozen=True)
class MicroClusters:
    """Centers in standardized coordinates about the mean, and the weight of the rows of each."""

    centers: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class NearestSum(Additive):
    """For every seed, the weight of the rows nearest to it, and their sum.

    Seeds (m, l) lie in the projection on `directions` (l, d) of the frame.
    """

    standardization: Standardization
    directions: FloatArray
    seeds: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return the sums of no rows."""
        return np.zeros(len(self.seeds)), np.zeros((len(self.seeds), n_features))

    @staticmethod
    def add(rows: Rows, requests: Sequence[NearestSum], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (mass, sums) in zip(requests, answers, strict=True):
            standardization, seeds = request.standardization, request.seeds
            inner = rows.project(standardization.mean, standardization.weights(seeds @ request.directions))
            nearest = _first_nearest(inner, seeds)
            mass += np.bincount(nearest, rows.weights, len(seeds))
            rows.group_sums(standardization.mean, rows.weights, nearest, sums)


def microclusters(
    rows: RowBlocks,
    standardization: Standardization,
    n: int,
    rng: np.random.Generator,
    directions: FloatArray | None = None,
) -> Query[MicroClusters]:
    """Return at most n micro-clusters: seeds by k-means on a sample, then one pass that gathers all rows.

    With `directions`, rows are near each other in that projection. Where there are no more rows than n, each
    is its own micro-cluster.
    """
    counted = rows.counted()
    n_rows = rows.shape[0] if counted is None else len(counted)
    sample = rows.sample(n if n_rows <= n else min(n_rows, SAMPLE_ROWS * n), rng)
    points = sample.map(lambda block: (block.dense() - standardization.mean) * standardization.inverse_scale)
    weights = sample.map(lambda block: block.weights)
    if n_rows <= n:
        return MicroClusters(points, weights)
    if directions is None:
        directions = np.eye(rows.shape[1])
    seeds = _k_means(points @ directions.T, weights, n, rng)
    ((mass, sums),) = yield [NearestSum(standardization, directions, seeds)]
    full = mass > 0
    return MicroClusters(sums[full] * standardization.inverse_scale / mass[full, None], mass[full])


def nearest(points: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the nearest center of every point, and the distance to it."""
    found, distance = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for a in range(0, len(points), PIECE):
        squares = ((points[a : a + PIECE, None, :] - centers) ** 2).sum(axis=2)
        found[a : a + PIECE] = squares.argmin(axis=1)
        distance[a : a + PIECE] = np.sqrt(squares.min(axis=1))
    return found, distance


def of_points(
    points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator
) -> tuple[MicroClusters, FloatArray]:
    """Return at most n micro-clusters of points of positive weight in memory, and the radius of each."""
    if len(points) <= n:
        return MicroClusters(points, weights), np.zeros(len(points))
    some = rng.permutation(len(points))[: SAMPLE_ROWS * n]
    group, _ = nearest(points, _k_means(points[some], weights[some], n, rng))
    mass = np.asarray(np.bincount(group, weights, n), dtype=np.float64)
    sums = np.stack([np.bincount(group, weights * column, n) for column in points.T], axis=1)
    centers = sums / np.maximum(mass, np.finfo(float).tiny)[:, None]
    radii = np.zeros(n)
    np.maximum.at(radii, group, np.sqrt(((points - centers[group]) ** 2).sum(axis=1)))
    full = mass > 0
    return MicroClusters(centers[full], mass[full]), radii[full]


def _k_means(points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n centers of some points: k-means++ and a few of Lloyd's rounds."""
    from sklearn.cluster import kmeans_plusplus

    seed = int(rng.integers(2**31 - 1))
    centers = np.asarray(kmeans_plusplus(points, n, sample_weight=weights, random_state=seed)[0], dtype=float)
    for _ in range(ROUNDS):
        group = _first_nearest(centers @ points.T, centers)
        mass = np.bincount(group, weights, n)
        sums = np.stack([np.bincount(group, weights * column, n) for column in points.T], axis=1)
        full = mass > 0
        centers[full] = sums[full] / mass[full, None]
    return centers


def _first_nearest(inner: FloatArray, centers: FloatArray) -> IntArray:
    """Return the nearest center of every point, given their products; the first of those that are as near.

    Rows of whole numbers are often as near to several centers, and rounding would choose between them.
    """
    half = 0.5 * (centers**2).sum(axis=1)
    closeness = inner - half[:, None]
    tie = TIE * (np.abs(closeness).max(initial=0.0) + half.max(initial=0.0))
    return np.asarray(np.argmax(closeness >= closeness.max(axis=0) - tie, axis=0))


@dataclass(frozen=True)
class _StretchSum(Additive):
    """The weight and the sum of the rows between each two edges along a direction."""

    standardization: Standardization
    direction: FloatArray
    edges: FloatArray

    def start(self, n_features: int) -> Answer:
        return np.zeros(len(self.edges) + 1), np.zeros((len(self.edges) + 1, n_features))

    @staticmethod
    def add(rows: Rows, requests: Sequence[_StretchSum], answers: Sequence[Answer]) -> None:
        for request, (mass, sums) in zip(requests, answers, strict=True):
            points = rows.project(
                request.standardization.mean, request.standardization.weights(request.direction)[None, :]
            )[0]
            stretch = np.searchsorted(request.edges, points)
            mass += np.bincount(stretch, rows.weights, len(mass))
            rows.group_sums(request.standardization.mean, rows.weights, stretch, sums)


@dataclass(frozen=True)
class AroundCut:
    """Rows near a cut one by one, the others in stretches along its normal; standardized, about the mean.

    `smaller` is the weight of the lighter side, `gap` the distance between the rows next to the cut, `middle`
    the place halfway between them, and `spacing` the mean distance between neighbors among the rows near the
    cut, without the gap.
    """

    rows: MicroClusters
    smaller: float
    gap: float
    middle: float
    spacing: float


def around_threshold(
    rows: RowBlocks, standardization: Standardization, direction: FloatArray, threshold: float, n: int
) -> AroundCut:
    """Gather about n micro-clusters around a cut: half of them are its nearest rows; three passes."""
    weights = rows.map(lambda block: block.weights)
    raw = standardization.weights(direction)[None, :]
    points = rows.map(lambda block: block.project(standardization.mean, raw)[0])
    counted = weights > 0
    below, above = (np.sort(points[counted & side]) for side in (points <= threshold, points > threshold))
    quarter = max(1, n // 4)
    low = below[-quarter:][0] if len(below) else threshold
    high = above[:quarter][-1] if len(above) else threshold
    near = rows.select(np.flatnonzero(counted & (points >= low) & (points <= high)))
    # outward from the cut on both sides, and a row on an edge belongs to the stretch nearer to the cut
    left, right = (
        part[:: max(1, -(-len(part) // quarter))] for part in (below[:-quarter][::-1], above[quarter:])
    )
    edges = np.unique(np.concatenate([np.nextafter(np.append(left, low), -np.inf), right, [high]]))
    ((mass, sums),) = rows.pass_over([_StretchSum(standardization, direction, edges)])
    mass[np.searchsorted(edges, high)] = 0.0  # these rows count one by one
    full = mass > 0
    centers = np.concatenate(
        [
            near.map(lambda block: (block.dense() - standardization.mean) * standardization.inverse_scale),
            sums[full] * standardization.inverse_scale / mass[full, None],
        ]
    )
    gap = float(above[0] - below[-1]) if len(below) and len(above) else 0.0
    middle = float(below[-1] / 2 + above[0] / 2) if gap else threshold
    smaller = min(float(weights[side].sum()) for side in (points <= threshold, points > threshold))
    each = np.concatenate([near.map(lambda block: block.weights), mass[full]])
    spacing = (high - low - gap) / max(1, near.shape[0] - 2)
    return AroundCut(MicroClusters(centers, each), smaller, gap, middle, spacing)
