"""Is a valley significant? Compare it with what the same search finds in rows that have one mode.

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

MAX_DRAWS = 8  # references at most; each costs one search of as many rows
MIN_DRAWS = 3  # references at least, before the test may end early
REFERENCE_ROWS = 8192  # rows of a reference at most: fewer rows show deeper valleys by chance
SPECTRUM_ROWS = 1024  # rows that the covariance is estimated from above 256 features
HOPELESS = 0.2  # a p-value above this after the first draws ends the test
EARLY = 0.01  # times the level: a p-value below this after the first draws ends the test, too
DEEPEST = 36.0  # largest L that is counted: 1 - valley / mode has no more digits
FLOOR = 0.6 * 0.885  # times n^(-2/5): least deviation of L; 0.885 n^(-2/5) is that of a log density estimate
SMALLEST = 1e-10  # of the largest variance of the reference: smaller ones are rounding


def log_depth(quality: float) -> float:
    """Return L = -log(1 - quality): log(mode / valley) of a depth, and DEEPEST across an empty gap.

    >>> log_depth(0.0), round(log_depth(0.75), 4), log_depth(1.0)
    (0.0, 1.3863, 36.0)
    """
    return DEEPEST if quality >= 1.0 else min(-math.log1p(-quality), DEEPEST)


@dataclass(frozen=True)
class SignificanceTest:
    """The method whose splits are tested, and the level.

    With `own_tails` the reference has the rows' own distances from their mean instead of uniform ones: a
    search far from the middle would take heavy tails for groups. Its sides may then be half as large as
    those of the rows, since a tail is sometimes just large enough, and a few draws would miss that.
    """

    method: Method
    level: float
    own_tails: bool = False

    def judge(self, node: Node, split: Split) -> Query[Split]:
        """Return a split with the evidence for it.

        Costs at most eight searches of references with as many rows (8192 at most), and three where the
        answer is clear at this level.
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
            evidence = compare(observed, np.array(depths), n)
            clear = evidence.p_value > HOPELESS or evidence.p_value < EARLY * self.level
            if clear or len(depths) == MAX_DRAWS:
                return replace(split, evidence=evidence)

    def _of_reference(self, split: Split | None, total: float) -> float:
        """Return the L of a reference; 0 where it has no split."""
        return 0.0 if split is None else log_depth(self.method.test_quality(split, total))


def compare(observed: float, depths: FloatArray, n: int) -> Evidence:
    """Place the observed L among those of the references by a t test for one new value.

    The deviation has a floor: that of a log density estimate from n points, 0.885 n^(-2/5), times 0.6. Below
    that, references that happen to be alike would make anything look significant.
    """
    from scipy.stats import t

    mean, k = float(depths.mean()), len(depths)
    deviation = max(float(depths.std(ddof=1)), FLOOR * n**-0.4)
    statistic = (observed - mean) / (deviation * math.sqrt(1 + 1 / k))
    return Evidence(float(t.sf(statistic, k - 1)), observed, mean, deviation, k)


def _without_given_starts(method: Any) -> Method:
    """Return a method that starts from principal directions: given ones are normals in the columns."""
    found: Method = method if getattr(method, "init", None) is None else replace(method, init=None)
    return found


@dataclass(frozen=True)
class Ellipsoid:
    """Standard deviations along the axes of an ellipsoid, and the axes (r, d) where they are needed.

    `in_columns` says that references are turned to lie in the columns as the rows do: a method may scale
    columns, or have starts that were given. Very wide rows would cost too much memory that way.
    """

    deviations: FloatArray
    axes: FloatArray | None
    in_columns: bool = False

    def radii(self, node: Node) -> Query[FloatArray]:
        """Return how far rows (or a sample) are from the mean, in standard deviations, and their weights."""
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
        """Draw n rows: in uniform directions, with these radii or uniform in the ellipsoid."""
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
    """Return the ellipsoid of the standardized rows' covariance, shrunk; one pass.

    Few rows in many dimensions spread the eigenvalues of a sample's covariance; without shrinking them
    (by the oracle approximating rule of Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower in
    most directions than the rows' own distribution, and show less by chance.
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
    """Return the variances of wide rows along their axes, by the products of the rows, and the axes."""
    n = float(weights.sum())
    scaled: Any = (
        rows.multiply(own.inverse_scale[None, :]).tocsr() if sparse.issparse(rows) else own.apply(rows)
    )
    products = np.asarray((scaled @ scaled.T).toarray() if sparse.issparse(scaled) else scaled @ scaled.T)
    center = np.eye(len(weights)) - np.outer(np.ones(len(weights)), weights / n)
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * (center @ products @ center.T) * root)
    rank = min(len(weights), int(own.varies.sum()))  # the other products are 0: they are no variances of rows
    values, vectors = np.maximum(values[::-1][:rank], 0.0), vectors[:, ::-1][:, :rank]
    if not with_axes:
        return values / n, None, n
    axes = np.asarray((vectors * root[:, None]).T @ center @ scaled)
    lengths = np.linalg.norm(axes, axis=1, keepdims=True)
    return values / n, axes / np.maximum(lengths, np.finfo(float).tiny), n


def shrink(values: FloatArray, n: float) -> FloatArray:
    """Shrink the eigenvalues of a covariance from n rows towards their mean."""
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
