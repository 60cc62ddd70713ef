"""Rows far from everything: few rows that would set the scales of all others.

One row at a thousand standard deviations, or one 99999 for a missing value, widens the standardization, the
interval of thresholds and the bandwidth until no valley is seen. Such rows are found by scales that few rows
cannot move, and set aside if they matter: searches leave them out, and the finished tree assigns them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.node import FEW_ROWS, Node, Opened, open_node
from ravine.data.query import Additive, Answer, Query, Request, RowSet, run
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import CONSTANT, SMALLEST, STILL

FEWEST_ROWS = 20  # least weight of a node in which rows are called far
WIDEST = 0.9  # the quantile of the distances from the median that is the scale of a column
FAR = 6.0  # scales from the median, in some column, beyond which a row may be far: 10 standard deviations
GROUP_RADIUS = 1.2  # scales times the square root of the columns: rows of one cluster are nearer than this
GROUP_SHARE = 0.02  # least share of the weight that is a cluster far away, and not a few far rows
# Far rows are set aside if they widen the columns by so much (the mean log of the ratio of variances), and by
# so many times their share of the weight, which the end of a tail does not. Chosen such that lognormal tails
# are left alone, and one row at 100 among three blobs of a thousand rows is not (tests/split/test_far.py).
GROWTH = 0.1
LEVERAGE = 20.0


@dataclass(frozen=True)
class FarRows:
    """The rows farther than `limit` scales from the center in some column.

    A boundary for engines and `predict`: far rows have a positive distance.

    >>> rule = FarRows(center=np.zeros(2), inverse_scale=np.ones(2))
    >>> rule.of_rows(np.array([[1.0, 2.0], [0.0, 30.0]])).tolist()
    [False, True]
    """

    center: FloatArray
    inverse_scale: FloatArray
    limit: float = FAR

    def distances(self, block: Block) -> FloatArray:
        """Return how far beyond the limit every row is; not positive for rows of the bulk."""
        return _largest(self.scale(block.dense())) - self.limit

    def of_rows(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which raw rows are far."""
        return _largest(self.scale(rows)) > self.limit

    def scale(self, rows: FloatArray) -> FloatArray:
        """Return raw rows as distances from the center, in scales."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - self.center) * self.inverse_scale
        return np.asarray(np.clip(scaled, -1.0 / STILL, 1.0 / STILL))  # so that squares are finite


def _largest(scaled: FloatArray) -> FloatArray:
    """Return the largest distance of every row over the columns."""
    return np.asarray(np.abs(scaled).max(axis=1))


@dataclass(frozen=True)
class FarSample(Request):
    """Request for a sample of the far rows only."""

    rule: FarRows
    sample: Sample

    def start(self, n_features: int) -> Answer:
        return self.sample.start(n_features)

    def add(self, block: Block, answer: Answer) -> None:
        far = np.flatnonzero(self.rule.distances(block) > 0)
        if len(far):
            self.sample.add(block.take(far), answer)

    def merge(self, left: Answer, right: Answer) -> Answer:
        return self.sample.merge(left, right)

    def merge_all(self, parts: Sequence[Answer | None]) -> Answer:
        return self.sample.merge_all(parts)


@dataclass(frozen=True)
class FarWeight(Additive):
    """Request for the weight of the far rows."""

    rule: FarRows

    def start(self, n_features: int) -> Answer:
        return (np.zeros(1),)

    def add(self, block: Block, answer: Answer) -> None:
        answer[0][0] += block.weights[self.rule.distances(block) > 0].sum()


def find_far(opened: Opened) -> Query[FarRows | None]:
    """Return which rows of an opened node are far from everything and move its scales, or None.

    A row is far if, in some column, its distance from the median exceeds six times the scale of the column.
    The scale is the 90 % quantile of the distances from the median, of the values that differ from it, so
    that less than a tenth of the rows cannot move it and columns that are mostly zero have one. No row is far
    if some of them are a cluster: a group of at least GROUP_SHARE of the weight is left to the search.

    Costs no pass where the range of every column is within the limit, and otherwise one. Sparse rows are not
    examined.
    """
    node, (few, weights) = opened.node, opened.few
    if sparse.issparse(few) or node.total < FEWEST_ROWS:
        return None
    center, scale = robust_scales(few, weights)
    rule = FarRows(center, 1.0 / np.where(scale > 0, scale, np.inf))
    # The range of the columns was measured when the node was opened: most nodes end here, without a pass.
    if _largest(rule.scale(np.array([opened.low, opened.high]))).max() <= rule.limit:
        return None
    request = FarSample(rule, node.sample_request(FEW_ROWS, "far rows"))
    answer, (weight,) = yield node.ask(request, FarWeight(rule))
    rows, own, _ = read_sample(answer)
    if not len(rows):
        return None
    far, share = rule.scale(rows), own / own.sum() * (weight[0] / node.total)
    if _have_cluster(far, share, max(GROUP_SHARE, node.min_weight / node.total)):
        return None
    near = ~rule.of_rows(few)
    unit = np.ones(len(scale)) if node.standardize else scale / scale.max()
    bulk = rule.scale(few[near]), weights[near] / weights[near].sum()
    return rule if _matter(far, share, *bulk, unit) else None


def bulk_and_far(node: Node) -> tuple[RowSet, RowSet | None]:
    """Return the rows of a node that are not far from everything, and those that are, if any."""
    rule = run(find_far(run(open_node(node, []))))
    if rule is None:
        return node.rows, None
    ((bulk, far),) = node.rows.engine.divide([(node.rows, rule)])
    return bulk, far


def robust_scales(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the median and the scale of every column; the scale of a constant column is 0.

    So is that of a column in which too few rows differ from the median to give a quantile. Values that
    differ by rounding only are equal to it.

    >>> rows, weights = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1e9, 1.0]]), np.array([9, 9, 9, 1.0])
    >>> [some.tolist() for some in robust_scales(rows, weights)]
    [[1.0, 0.0], [1.0, 0.0]]
    """
    low, high = _medians(rows, weights)
    center = low / 2 + high / 2  # the middle of the two, so that a mirror image has the mirrored one
    with np.errstate(over="ignore"):
        distance = np.abs(rows - center)
    differs = distance > CONSTANT * np.abs(center)
    scale = _quantiles(distance, weights, WIDEST, differs)
    known = weights @ differs >= min(FEWEST_ROWS, weights.sum() / 2)
    return center, np.where(known & np.isfinite(scale) & (scale >= SMALLEST), scale, 0.0)


def _medians(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper weighted median of every column."""
    if (weights == weights[0]).all():  # sorted once for both
        ordered, n = np.sort(values.T, axis=1), len(values)
        return ordered[:, (n - 1) // 2], ordered[:, n // 2]
    return _quantiles(values, weights, 0.5), -_quantiles(-values, weights, 0.5)


def _quantiles(
    values: FloatArray, weights: FloatArray, q: float, counted: npt.NDArray[np.bool_] | None = None
) -> FloatArray:
    """Return the weighted quantile of every column: the least value with a share q of the weight up to it.

    Only `counted` values count, the largest ones of their column; by default all. Rows of equal weight are
    only sorted, because every node asks for this.
    """
    if (weights == weights[0]).all():
        n = np.array(len(values)) if counted is None else counted.sum(axis=0)
        place = len(values) - n + np.maximum(np.ceil(q * n * (1.0 - 1e-12)).astype(np.int64) - 1, 0)
        place = np.minimum(np.broadcast_to(place, values.shape[1:]), len(values) - 1)
        return np.asarray(np.sort(values.T, axis=1)[np.arange(values.shape[1]), place])
    every = np.broadcast_to(weights[:, None], values.shape)
    every = every if counted is None else np.where(counted, every, 0.0)
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(np.take_along_axis(every, order, axis=0), axis=0)
    place = np.argmax(below >= q * below[-1] * (1.0 - 1e-12), axis=0)
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place[None], axis=0), axis=0)[0])


def _have_cluster(far: FloatArray, share: FloatArray, least: float) -> bool:
    """Return whether some of the far rows lie together and have the least share of a cluster."""
    radius = GROUP_RADIUS * math.sqrt(max(1, int(far.any(axis=0).sum())))
    return bool(((cdist(far, far) <= radius) @ share).max() >= least)


def _matter(
    far: FloatArray, far_share: FloatArray, near: FloatArray, near_share: FloatArray, unit: FloatArray
) -> bool:
    """Return whether far rows move the scales: by how much they widen the second moments about the center.

    That is the mean over the columns of the log of the ratio with and without them: one row that widens one
    of twenty columns thousandfold matters, and so does one that widens all of them by a tenth.
    """
    moved, usual = far_share @ far**2, near_share @ near**2
    varies = usual > 0
    if (unit == 1.0).all():
        growth = float(np.log1p(moved[varies] / usual[varies]).mean())
    else:  # without standardizing, wide columns count more
        growth = float(np.log1p(unit**2 @ moved / (unit**2 @ usual)))
    return growth >= max(GROWTH, LEVERAGE * float(far_share.sum()))
