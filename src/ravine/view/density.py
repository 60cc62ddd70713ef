"""The density of the rows along the normal of every split, in two passes over all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.data.query import Asked, RowSet, answer
from ravine.index.density import bandwidth
from ravine.split.split import Split
from ravine.tree.arrays import TreeArrays
from ravine.tree.score import DistanceBins, DistanceMoments, mean_and_deviation

N_BINS = 160  # of a curve: about three pixels each in the report
REACH = 4.0  # standard deviations that are shown around the mean; rows beyond count in the outer bins


def bandwidth_of(split: Split, deviation: float, total: float) -> float:
    """Return the bandwidth that the fit used for a split.

    A method without one gets 0.9 sd n^(-1/5), with the standard deviation of the distances to the split.
    """
    return float(split.facts.get("bandwidth", bandwidth(deviation, total)))


@dataclass(frozen=True)
class NodeDensity:
    """The density of the rows of a node at some signed distances from its split, which is at 0."""

    points: FloatArray
    density: FloatArray
    bandwidth: float
    weight: float


def densities(tree: TreeArrays, rows: RowSet) -> dict[int, NodeDensity]:
    """Return the density along the normal of every split that rows reach; two passes."""
    ((moments, low, high),) = answer([Asked(rows, DistanceMoments(tree))])
    start, width, bandwidths = np.zeros(tree.n_nodes), np.ones(tree.n_nodes), {}
    for node, split in enumerate(tree.splits):
        if split is None or moments[0, node] == 0.0:
            continue
        place = _bins(split, moments[:, node], float(low[node]), float(high[node]))
        start[node], width[node], bandwidths[node] = place
    ((mass,),) = answer([Asked(rows, DistanceBins(tree, start, width, N_BINS))])
    return {
        node: _smooth(mass[node], float(start[node]), float(width[node]), h) for node, h in bandwidths.items()
    }


def density_of(split: Split, distance: FloatArray, weight: FloatArray) -> NodeDensity:
    """Return the density of some rows along the normal of a split, from their signed distances."""
    moments = np.array([weight.sum(), weight @ distance, weight @ distance**2])
    shown = distance[weight > 0]
    start, width, h = _bins(split, moments, float(shown.min()), float(shown.max()))
    bins = np.clip((distance - start) / width, 0, N_BINS - 1).astype(np.int64)
    return _smooth(np.bincount(bins, weight, N_BINS).astype(np.float64), start, width, h)


def _bins(split: Split, moments: FloatArray, low: float, high: float) -> tuple[float, float, float]:
    """Return where the bins of a density begin, how wide they are, and the bandwidth."""
    mean, deviation = mean_and_deviation(moments)
    h = bandwidth_of(split, deviation, float(moments[0]))
    # The split itself, at 0, is always shown.
    first = min(max(mean - REACH * deviation, low), 0.0)
    last = max(min(mean + REACH * deviation, high), 0.0)
    # Three bandwidths, as `_smooth` widens them, let the curve fall to 0 at the ends; the last term keeps
    # the width above 0 where all rows are equal.
    margin = 3 * max(h, (last - first) / N_BINS / 2) + 1e-12 * (1.0 + abs(mean))
    return first - margin, (last - first + 2 * margin) / N_BINS, h


def _smooth(mass: FloatArray, start: float, width: float, bandwidth: float) -> NodeDensity:
    points: FloatArray = start + width * (np.arange(N_BINS, dtype=np.float64) + 0.5)
    h = max(bandwidth, width / 2)  # bins cannot show less
    steps = width * np.arange(1 - N_BINS, N_BINS)
    kernel = np.exp(-0.5 * (steps / h) ** 2) / (h * np.sqrt(2 * np.pi))
    density = np.convolve(mass, kernel)[N_BINS - 1 : 2 * N_BINS - 1]
    return NodeDensity(points, density / mass.sum(), h, float(mass.sum()))
