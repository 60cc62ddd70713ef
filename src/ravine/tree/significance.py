"""The significance test of a split: is its valley deeper than those of unimodal reference rows?

The reference is the uniform distribution on an ellipsoid with the covariance of the rows: among unimodal
shapes the one in which a search finds the deepest valleys by chance (a Gaussian and heavier tails show less).
Depths are compared as L = log(mode / valley), which is close to normal over draws; connectivity compares
-log(lambda_2), the same with 1 - lambda_2 instead of the depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node
from ravine.data.principal import FULL_COVARIANCE, Covariance
from ravine.data.query import Query
from ravine.data.sample import sampled
from ravine.data.standardization import Standardization
from ravine.split.search import Method, search
from ravine.split.split import Evidence, Split

MAX_DRAWS = 8  # most references; each costs one search of as many rows as the node has
MIN_DRAWS = 3  # least references before the test may end early
REFERENCE_ROWS = 8192  # most rows of a reference; conservative, as fewer rows have deeper valleys by chance
SPECTRUM_ROWS = 1024  # rows from which the covariance is estimated above 256 columns
STOP_ABOVE = 0.2  # p-value above which the test ends early
STOP_BELOW = 0.01  # share of the level below which a p-value ends the test early
DEEPEST = 36.0  # largest L: 1 - valley / mode has no more digits
FLOOR = 0.6 * 0.885  # times n^(-2/5): least deviation of L; 0.885 n^(-2/5) is that of a log density estimate
SMALLEST = 1e-10  # share of the largest variance of the reference: smaller ones are rounding


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

    method: Method
    level: float
    own_tails: bool = False

    def run(self, node: Node, split: Split) -> Query[Split]:
        """Return the split with the result of the test.

        Costs eight searches of references of at most 8192 rows, or three if the result is clear by then.
        """
        observed = log_depth(self.method.test_quality(split, node.total))
        if observed == DEEPEST:
            return replace(split, evidence=Evidence(0.0, observed, 0.0, 0.0, 0))
        n = int(min(max(round(node.total), 2), REFERENCE_ROWS))
        shape = yield from ellipsoid(node, with_axes=self.own_tails)
        radii = (yield from shape.radii(node)) if self.own_tails else None
        min_weight = node.min_weight * n / node.total * (0.5 if self.own_tails else 1.0)
        method = self.method if shape.in_columns else _without_given_starts(self.method)
        depths: list[float] = []
        while True:
            drawn = shape.draw(n, radii, node.rng(f"reference {len(depths)}"))
            reference = Node(
                MemoryRows(drawn),
                (*node.stream, len(depths)),
                min_weight,
                root=Standardization.identity(drawn.shape[1], float(n)),
            )
            found = yield from search(reference, method)
            depths.append(self._of_reference(found[1], float(n)))
            if len(depths) < MIN_DRAWS:
                continue
            evidence = t_test(observed, np.array(depths), n)
            clear = evidence.p_value > STOP_ABOVE or evidence.p_value < STOP_BELOW * self.level
            if clear or len(depths) == MAX_DRAWS:
                return replace(split, evidence=evidence)

    def _of_reference(self, split: Split | None, total: float) -> float:
        """Return the L of a reference; 0 where it has no split."""
        return 0.0 if split is None else log_depth(self.method.test_quality(split, total))


def t_test(observed: float, depths: FloatArray, n: int) -> Evidence:
    """Compare the observed L with those of the references, by a t test for one new value.

    The deviation is at least 0.6 times that of a log density estimate from n points, 0.885 n^(-2/5):
    otherwise references that are alike by chance would make any split significant.
    """
    from scipy.stats import t

    mean, k = float(depths.mean()), len(depths)
    deviation = max(float(depths.std(ddof=1)), FLOOR * n**-0.4)
    statistic = (observed - mean) / (deviation * math.sqrt(1 + 1 / k))
    return Evidence(float(t.sf(statistic, k - 1)), observed, mean, deviation, k)


def _without_given_starts(method: Any) -> Method:
    """Return the method without `init`: the reference does not have the columns of these normals."""
    found: Method = method if getattr(method, "init", None) is None else replace(method, init=None)
    return found


@dataclass(frozen=True)
class Ellipsoid:
    """Standard deviations along the axes of an ellipsoid, and the axes (r, d) if they are needed.

    With `in_columns`, references have the columns of the rows, because a method may scale columns or have
    given starts. Otherwise they are coordinates along the axes: very wide references need too much memory.
    """

    deviations: FloatArray
    axes: FloatArray | None
    in_columns: bool = False

    def radii(self, node: Node) -> Query[FloatArray]:
        """Return the Mahalanobis distances of a sample of rows from the mean, and their weights."""
        assert self.axes is not None
        (answer,) = yield node.ask(node.sample_request(REFERENCE_ROWS, "radii"))
        values, weights, _ = sampled(answer)
        whiten = self.axes.T / self.deviations
        own = node.standardization
        project = MemoryRows(values).map(
            lambda block: np.linalg.norm(own.apply(block.dense()) @ whiten, axis=1)
        )
        return np.column_stack([project, weights])

    def draw(self, n: int, radii: FloatArray | None, rng: np.random.Generator) -> FloatArray:
        """Draw n rows: uniform directions, with these radii, or uniform in the ellipsoid."""
        r = len(self.deviations)
        points = rng.standard_normal((n, r))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        if radii is None:
            points *= math.sqrt(r + 2) * rng.random((n, 1)) ** (1 / r)
        else:
            points *= rng.choice(radii[:, 0], n, p=radii[:, 1] / radii[:, 1].sum())[:, None]
        points *= self.deviations
        if not self.in_columns:
            return np.asarray(points)
        assert self.axes is not None
        return np.asarray(points @ self.axes)


def ellipsoid(node: Node, with_axes: bool = False) -> Query[Ellipsoid]:
    """Return the ellipsoid of the shrunk covariance of the standardized rows; one pass.

    The eigenvalues of the covariance of few rows in many dimensions are too far apart. Without shrinkage
    (oracle approximating shrinkage; Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower than the
    distribution of the rows in most directions, and its valleys less deep.
    """
    own = node.standardization
    axes: FloatArray | None
    in_columns = node.n_features <= FULL_COVARIANCE
    if in_columns:
        ((matrix,),) = yield node.ask(Covariance(own))
        varies = own.varies
        values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] / own.total)
        axes = np.zeros((len(values), len(varies)))
        axes[:, varies] = vectors.T
        n = own.total
    else:
        (answer,) = yield node.ask(node.sample_request(SPECTRUM_ROWS, "ellipsoid"))
        values, axes, n = _of_sample(*sampled(answer)[:2], own, with_axes)
    shrunk = shrink(values, n)
    kept = shrunk > SMALLEST * shrunk.max()
    return Ellipsoid(np.sqrt(shrunk[kept]), axes[kept] if axes is not None else None, in_columns)


def _of_sample(
    rows: Any, weights: FloatArray, own: Standardization, with_axes: bool
) -> tuple[FloatArray, FloatArray | None, float]:
    """Return the variances of wide rows along their principal axes, from inner products, and the axes."""
    n = float(weights.sum())
    scaled: Any = (
        rows.multiply(own.inverse_scale[None, :]).tocsr() if sparse.issparse(rows) else own.apply(rows)
    )
    products = np.asarray((scaled @ scaled.T).toarray() if sparse.issparse(scaled) else scaled @ scaled.T)
    center = np.eye(len(weights)) - np.outer(np.ones(len(weights)), weights / n)
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * (center @ products @ center.T) * root)
    rank = min(len(weights), int(own.varies.sum()))  # further eigenvalues are 0 and belong to no column
    values, vectors = np.maximum(values[::-1][:rank], 0.0), vectors[:, ::-1][:, :rank]
    if not with_axes:
        return values / n, None, n
    axes = np.asarray((vectors * root[:, None]).T @ center @ scaled)
    lengths = np.linalg.norm(axes, axis=1, keepdims=True)
    return values / n, axes / np.maximum(lengths, np.finfo(float).tiny), n


def shrink(values: FloatArray, n: float) -> FloatArray:
    """Shrink the eigenvalues of the covariance of n rows toward their mean."""
    p = len(values)
    values = np.maximum(values, 0.0)
    squares, square = float((values**2).sum()), float(values.sum() ** 2)
    spread = (n + 1 - 2 / p) * (squares - square / p)
    share = 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squares + square) / spread)
    return np.asarray((1 - share) * values + share * values.mean())


def significance_tests(method: Method, level: float, fallback_share: float) -> Sequence[SignificanceTest]:
    """Return the test of a method, and those of its fallbacks at a share of the level."""
    further = [SignificanceTest(m, fallback_share * level, own_tails=True) for m in method.fallbacks()]
    return [SignificanceTest(method, level), *further]
