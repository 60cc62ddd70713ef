"""The significance test of a split: is its valley deeper than those of reference rows without clusters?

There are two kinds of reference rows, and a split has to be deeper than the deeper kind. One is the uniform
distribution on an ellipsoid with the covariance of the rows: among unimodal elliptical shapes the one in
which a search finds the deepest valleys by chance (a Gaussian and heavier tails show less). The other has the
margins of the columns, made unimodal or discrete as they are (`margins.py`): a table without clusters.
Depths are compared as L = log(mode / valley), which is close to normal over draws; connectivity compares
-log(lambda_2), the same with 1 - lambda_2 instead of the depth. References have as many rows as there are
different ones, with the same weights (`evidence/copies.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, draw_sample, sample_rows
from ravine.data.principal import FULL_COVARIANCE
from ravine.data.query import Query
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Standardization
from ravine.evidence.copies import Copies, copies_of, effective_number
from ravine.evidence.ellipsoid import REFERENCE_ROWS, ellipsoid, ellipsoid_sample
from ravine.evidence.margins import Margins, margins
from ravine.evidence.orientation import Orientation
from ravine.split.search import BaseMethod, search
from ravine.split.split import Evidence, Split

MAX_DRAWS = 8  # most references; each costs one search of as many rows as the node has
MIN_DRAWS = 3  # least references before the test may end early
MARGINS = "margins"  # the purpose of the random numbers of that sample
STOP_ABOVE = 0.2  # p-value above which the test ends early
STOP_BELOW = 0.01  # share of the level below which a p-value ends the test early
DEEPEST = 36.0  # largest L: 1 - valley / mode has no more digits
# Least standard deviation of L, times n^(2/5): 0.6 of that of a log density estimate, 0.885 n^(-2/5).
FLOOR = 0.6 * 0.885


def log_depth(quality: float) -> float:
    """Return L = -log(1 - quality): log(mode / valley) of a depth, and DEEPEST across an empty gap.

    >>> log_depth(0.0), round(log_depth(0.75), 4), log_depth(1.0)
    (0.0, 1.3863, 36.0)
    """
    return DEEPEST if quality >= 1.0 else min(-math.log1p(-quality), DEEPEST)


@dataclass(frozen=True)
class SignificanceTest:
    """The method whose splits are tested, and the level.

    With `own_tails` the reference has the distances of the rows from their mean instead of those of the
    uniform distribution, because a search far from the mean would find groups in heavy tails. `min_weight` is
    then halved for the reference: a tail of the rows may be just heavy enough to be a side, and in a few
    draws of the reference it may be just too light.
    """

    method: BaseMethod
    level: float
    own_tails: bool = False

    def run(self, node: Node, split: Split) -> Query[Split]:
        """Return the split with the result of the test.

        Costs eight searches of references of at most 8192 rows, or fewer if the result is clear by then.
        """
        observed = log_depth(self.method.test_quality(split, node.total))
        kinds = yield from self.references(node)
        if observed == DEEPEST and not any(kind.may_have_gaps for kind in kinds):
            return replace(split, evidence=Evidence(0.0, observed, 0.0, 0.0, 0))
        depths: list[list[float]] = [[] for _ in kinds]
        for draw in range(MAX_DRAWS):
            kind = draw % len(kinds)
            reference = kinds[kind].node(node, draw, 0.5 if self.own_tails else 1.0)
            found = yield from search(reference, kinds[kind].method)
            depths[kind].append(self._of_reference(found[1], reference.total))
            if draw + 1 < max(MIN_DRAWS, 2 * len(kinds)):
                continue
            evidence = t_test(observed, depths, kinds[kind].effective)
            if evidence.p_value > STOP_ABOVE or evidence.p_value < STOP_BELOW * self.level:
                break
        return replace(split, evidence=evidence)

    def references(self, node: Node) -> Query[list[Reference]]:
        """Return the kinds of reference rows: an ellipsoid, and for few columns their own margins."""
        copies = yield from _copies(node)
        shape = yield from ellipsoid(node, copies.n_effective(node.n_rows))
        n = int(min(max(round(copies.n_different(node)), 2), REFERENCE_ROWS, shape.max_rows))
        radii = (yield from shape.radii(node)) if self.own_tails else None
        method = self.method if shape.columns is not None else _without_given_starts(self.method)
        weights = copies.of_rows(n)
        kinds = [Reference(lambda n, rng: shape.draw(n, radii, rng), n, method, weights)]
        columns = shape.columns
        if columns is not None:
            table = yield from margins_of(node, columns, copies.n_effective())
            draw = lambda n, rng: columns.undo(table.draw(n, rng))  # noqa: E731
            widest = float(shape.deviations.max())
            kinds.append(Reference(draw, n, method, weights, widest, table.has_gaps))
        return kinds

    def _of_reference(self, split: Split | None, total: float) -> float:
        """Return the L of a reference; 0 where it has no split."""
        return 0.0 if split is None else log_depth(self.method.test_quality(split, total))


def t_test(observed: float, depths: Sequence[Sequence[float]], n: float) -> Evidence:
    """Compare the observed L with those of the kinds of references, by a t test for one new value.

    It is compared with the kind of the deepest valleys, with the deviation of all kinds about their own
    means. The deviation is at least 0.6 times that of a log density estimate from n points,
    0.885 n^(-2/5): otherwise references that are alike by chance would make any split significant.
    """

    means = [float(np.mean(some)) for some in depths]
    mean, k = max(zip(means, map(len, depths), strict=True))
    free = sum(map(len, depths)) - len(depths)
    squares = sum(float(((np.array(some) - m) ** 2).sum()) for some, m in zip(depths, means, strict=True))
    deviation = max(math.sqrt(squares / free), FLOOR * n**-0.4)
    statistic = (observed - mean) / (deviation * math.sqrt(1 + 1 / k))
    return Evidence(float(stats.t.sf(statistic, free)), observed, mean, deviation, free + len(depths))


@dataclass(frozen=True)
class Reference:
    """One kind of reference rows without clusters: how n of them are drawn, and how they are searched.

    With `has_gaps` they have gaps between the values of discrete columns, which have to be seen at the
    bandwidth of the rows. That is proportional to deviation * total^(-1/5), where `deviation` is the one
    along the first principal direction, so the reference gets the weight that leads to the same bandwidth.
    `weights` is None if all are 1.
    """

    draw: Callable[[int, np.random.Generator], FloatArray]
    n: int
    method: BaseMethod
    weights: FloatArray | None = None
    deviation: float = np.nan
    has_gaps: bool = False

    @property
    def may_have_gaps(self) -> bool:
        """Whether an empty gap may be found in these rows: between values, or between heavy rows."""
        return self.has_gaps or (self.weights is not None and self.weights.mean() > 1.0)

    @property
    def effective(self) -> float:
        """The number of rows of equal weight that say as much."""
        return self.n if self.weights is None else effective_number(self.weights)

    def node(self, node: Node, number: int, share: float) -> Node:
        """Return a draw as a node, whose sides need this share of the minimum weight of those of the rows."""
        drawn = self.draw(self.n, node.rng(f"reference {number}"))
        weights = self.weights
        if self.has_gaps:
            relative = np.ones(self.n) if weights is None else weights / weights.mean()
            ratio = math.sqrt(np.linalg.eigvalsh((drawn.T * relative) @ drawn / self.n)[-1]) / self.deviation
            weights = relative * (node.total / self.n * ratio**5)
        rows = MemoryRows(drawn, weights)
        return Node(
            rows,
            (*node.stream, number),
            node.min_weight * rows.total / node.total * share,
            root_standardization=Standardization.identity(drawn.shape[1], rows.total),
        )


def reference_samples(node: Node) -> list[Sample]:
    """Return the samples from which references are made, except those of fallbacks."""
    few = ellipsoid_sample(node)
    return (
        [few, node.sample_request(REFERENCE_ROWS, MARGINS)] if node.n_features <= FULL_COVARIANCE else [few]
    )


def margins_of(node: Node, columns: Orientation, n: float | None = None) -> Query[Margins]:
    """Return the margins of the standardized columns in their orientation, from a sample; one pass.

    `n` is how many different rows the sample has; by default their weight.
    """
    values, weights = yield from sample_rows(node, REFERENCE_ROWS, MARGINS)
    return margins(columns.apply(node.standardization.apply(values)), weights, n)


def _copies(node: Node) -> Query[Copies]:
    """Return the rows that count several times; from a sample that references need anyway."""
    if node.n_features > FULL_COVARIANCE:
        values, weights, _ = read_sample((yield from draw_sample(node, ellipsoid_sample(node))))
    else:
        values, weights = yield from sample_rows(node, REFERENCE_ROWS, MARGINS)
    return copies_of(values, weights, node.standardization)


def _without_given_starts(method: Any) -> BaseMethod:
    """Return the method without `init`: the reference does not have the columns of these normals."""
    found: BaseMethod = method if getattr(method, "init", None) is None else replace(method, init=None)
    return found
