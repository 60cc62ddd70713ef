"""Micro-clusters: a few hundred weighted centers that represent many rows.

Pursuits in several directions, whose graphs compare all pairs, search them instead of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block, DenseBlock
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, draw_sample
from ravine.data.query import Additive, Answer, Query
from ravine.data.standardization import Standardization

SAMPLE_ROWS = 20  # rows per micro-cluster in the sample in which k-means finds the seeds
PIECE = 1024  # rows whose distances to all centers are in memory at a time
TIE = 1e-9  # share of the largest squared distance, or of the sum of squares: smaller differences are a tie
ROUNDS = 10  # iterations of k-means on the sample: more do not make the micro-clusters better


@dataclass(frozen=True)
class MicroClusters:
    """Centers in standardized coordinates about the mean, and the weight of the rows of each."""

    centers: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Compared:
    """How rows are compared: standardized, along `axes` (r, d), then along `directions`, unless None."""

    standardization: Standardization
    axes: FloatArray | None = None
    directions: FloatArray | None = None

    def points(self, block: Block) -> FloatArray:
        """Return the rows of a block along the axes."""
        own = self.standardization
        if self.axes is None:
            return own.apply(block.dense())
        return np.ascontiguousarray(block.project(own.mean, own.normals(self.axes)).T)

    def project(self, points: FloatArray) -> FloatArray:
        """Return points along the directions."""
        return points if self.directions is None else points @ self.directions.T


@dataclass(frozen=True)
class NearestSum(Additive):
    """Request for the weight and the sum of the rows nearest to each seed."""

    how: Compared
    seeds: FloatArray

    def start(self, n_features: int) -> Answer:
        axes, m = self.how.axes, len(self.seeds)
        return np.zeros(m), np.zeros((m, n_features if axes is None else len(axes)))

    def add(self, block: Block, answer: Answer) -> None:
        points = self.how.points(block)
        group, _ = nearest(self.how.project(points), self.seeds)
        add_to_groups(points, block.weights, group, *answer)


def add_to_groups(
    points: FloatArray, weights: FloatArray, group: IntArray, mass: FloatArray, sums: FloatArray
) -> None:
    """Add the weights of points, and weighted points, to those of their groups."""
    mass += np.bincount(group, weights, len(mass))
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

    Rows are compared as `Compared` says. If there are at most n rows, each is its own micro-cluster.
    """
    how = Compared(node.standardization, axes, directions)
    answer = yield from draw_sample(node, node.sample_request(sample_size(node, n), purpose))
    drawn: MemoryRows = node.copy_rows(answer)
    points, weights = drawn.map(how.points), drawn.map(lambda block: block.weights)
    if node.n_rows <= n:
        return MicroClusters(points, weights)
    seeds = k_means(how.project(points), weights, n, node.rng(purpose))
    ((mass, sums),) = yield node.ask(NearestSum(how, seeds))
    full = mass > 0
    return MicroClusters(sums[full] / mass[full, None], mass[full])


def sample_size(node: Node, n: int) -> int:
    """Return how many rows are sampled to find n micro-clusters: all, if there are no more than n."""
    return n if node.n_rows <= n else SAMPLE_ROWS * n


def nearest(points: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the nearest center of every point, in a tie the first one, and the distance to it.

    Ties are common with integer rows, and rounding would decide them.
    """
    half, found = 0.5 * (centers**2).sum(axis=1), np.empty(len(points), dtype=np.int64)
    for a in range(0, len(points), PIECE):
        closeness = points[a : a + PIECE] @ centers.T - half
        closest = closeness.max(axis=1, keepdims=True)
        tie = TIE * (np.abs(closeness).max() + half.max())
        found[a : a + PIECE] = np.argmax(closeness >= closest - tie, axis=1)
    return found, np.asarray(np.linalg.norm(points - centers[found], axis=1))


def k_means(points: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n centers of some points: k-means++ and a few of Lloyd's rounds.

    The points are taken in the order of their norms, so that the order of the rows does not matter, nor that
    of the columns or their signs. scikit-learn's k-means would let rounding decide ties.
    """
    order = np.argsort(np.round((points**2).sum(axis=1) / TIE), kind="stable")
    points, weights = points[order], weights[order]
    centers = points[plus_plus(points, weights, n, rng)]
    for _ in range(ROUNDS):
        mass, sums = np.zeros(n), np.zeros(centers.shape)
        add_to_groups(points, weights, nearest(points, centers)[0], mass, sums)
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
