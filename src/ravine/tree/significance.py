"""Is a valley real? Compare it with what the same search finds in rows that have one mode.

The reference is the uniform distribution on an ellipsoid with the covariance of the rows: among unimodal
shapes the one in which a search finds the deepest valleys by chance (a Gaussian and heavier tails show less).
Depths are compared as L = log(mode / valley), which is close to normal over draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import ArrayBlocks, RowBlocks, Rows, run
from ravine.data.standardization import FULL_COVARIANCE, Covariance, Standardization
from ravine.split.hyperplane import Evidence, Split, Splitter

DRAWS = 8  # references at most; each costs one search of as many rows
FIRST_DRAWS = 3  # and at least, before the matter may be closed early
NULL_ROWS = 8192  # references have no more rows than this: fewer rows show deeper valleys by chance
SPECTRUM_ROWS = 1024  # rows that give the covariance above 256 features
HOPELESS = 0.2  # a p-value above this after the first draws ends the test
DEEPEST = 36.0  # the most that L is counted for: 1 - valley / mode has no more digits
EARLY = 0.01  # a p-value below this share of the level does, too


def log_depth(split: Split | None) -> float:
    """Return L = log(mode / valley) of a split: 0 without one, and DEEPEST across an empty gap."""
    if split is None:
        return 0.0
    return DEEPEST if split.quality >= 1.0 else min(-math.log1p(-split.quality), DEEPEST)


@dataclass(frozen=True)
class SignificanceTest:
    """A search and the strictness with which its splits are judged.

    With `own_tails` the reference has the rows' own distances from their mean instead of uniform ones: a
    search far from the middle would take heavy tails for groups. Its sides may then be half as large as
    those of the rows, since a tail now and then is just large enough, and a few draws would miss that.
    """

    splitter: Splitter
    level: float
    own_tails: bool = False

    def judge_split(
        self,
        rows: RowBlocks,
        standardization: Standardization,
        split: Split,
        min_weight: float,
        rng: np.random.Generator,
    ) -> Split:
        """Return a split with the evidence for it.

        Costs at most eight searches of references with as many rows (8192 at most), and three where the
        answer is plain at this level.
        """
        observed = log_depth(split)
        if split.quality >= 1.0:
            return replace(split, evidence=Evidence(0.0, observed, 0.0, 0.0, 0))
        n = int(min(max(round(standardization.total), 2), NULL_ROWS))
        shape = spectrum(rows, standardization, rng)
        radii = shape.radii(rows, standardization) if self.own_tails else None
        smallest = min_weight * n / standardization.total * (0.5 if self.own_tails else 1.0)
        depths: list[float] = []
        while True:
            drawn = shape.draw(n, radii, rng)
            depths.append(self._depth_by_chance(drawn, smallest, rng))
            if len(depths) < FIRST_DRAWS:
                continue
            found = compare(observed, np.array(depths), n)
            settled = found.p_value > HOPELESS or found.p_value < EARLY * self.level
            if settled or len(depths) == DRAWS:
                return replace(split, evidence=found)

    def _depth_by_chance(self, drawn: FloatArray, min_weight: float, rng: np.random.Generator) -> float:
        """Search one reference; return the L that it shows."""
        n, d = drawn.shape
        rows = ArrayBlocks(drawn)
        _, split = run(
            rows, self.splitter.search(rows, Standardization.identity(d, float(n)), min_weight, rng)
        )
        return log_depth(split)


def compare(observed: float, depths: FloatArray, n: int) -> Evidence:
    """Place the observed L among the references' by a t test for one new value.

    The deviation has a floor: that of a log density estimate from n points, 0.885 n^(-2/5), times 0.6. Below
    that, references that happen to be alike would make anything look significant.
    """
    from scipy.stats import t

    mean, k = float(depths.mean()), len(depths)
    deviation = max(float(depths.std(ddof=1)), 0.6 * 0.885 * n**-0.4)
    statistic = (observed - mean) / (deviation * math.sqrt(1 + 1 / k))
    return Evidence(float(t.sf(statistic, k - 1)), observed, mean, deviation, k)


@dataclass(frozen=True)
class Shape:
    """An ellipsoid: orthonormal axes (r, d) and the standard deviation along each."""

    axes: FloatArray
    deviations: FloatArray

    def radii(self, rows: RowBlocks, standardization: Standardization) -> FloatArray:
        """Return how far every row is from the mean, in standard deviations, and its weight; one pass."""
        whiten = self.axes.T / self.deviations

        def measure(block: Rows) -> FloatArray:
            standardized = (block.dense() - standardization.mean) * standardization.inverse_scale
            return np.column_stack([np.linalg.norm(standardized @ whiten, axis=1), block.weights])

        return rows.map(measure)

    def draw(self, n: int, radii: FloatArray | None, rng: np.random.Generator) -> FloatArray:
        """Draw n rows, whitened in uniform directions, with radii of these or as uniform in the ball."""
        r = len(self.deviations)
        points = rng.standard_normal((n, r))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        if radii is None:
            points *= math.sqrt(r + 2) * rng.random((n, 1)) ** (1 / r)
        else:
            points *= rng.choice(radii[:, 0], n, p=radii[:, 1] / radii[:, 1].sum())[:, None]
        return np.asarray((points * self.deviations) @ self.axes)


def spectrum(rows: RowBlocks, standardization: Standardization, rng: np.random.Generator) -> Shape:
    """Return the shape of the framed rows' covariance, shrunk; one pass.

    Few rows in many dimensions spread the eigenvalues of a sample's covariance; without shrinking them
    (by the oracle approximating rule of Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower in
    most directions than the rows' own distribution, and show less by chance.
    """
    if rows.shape[1] <= FULL_COVARIANCE:
        ((matrix,),) = rows.pass_over([Covariance(standardization)])
        varies = standardization.inverse_scale > 0
        values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] / standardization.total)
        axes = np.zeros((len(values), len(varies)))
        axes[:, varies] = vectors.T
        n = standardization.total
    else:
        sample = rows.sample(min(rows.shape[0], SPECTRUM_ROWS), rng)
        standardized = sample.map(
            lambda block: (block.dense() - standardization.mean) * standardization.inverse_scale
        )
        weights = sample.map(lambda block: block.weights)
        n = sample.total
        centered = (standardized - weights @ standardized / n) * np.sqrt(weights)[:, None]
        _, lengths, axes = np.linalg.svd(centered, full_matrices=False)
        values = lengths**2 / n
    shrunk = shrink(values, n)
    keep = shrunk > 1e-10 * shrunk.max()
    return Shape(axes[keep], np.sqrt(shrunk[keep]))


def shrink(values: FloatArray, n: float) -> FloatArray:
    """Draw the eigenvalues of a covariance from n rows towards their mean."""
    p = len(values)
    values = np.maximum(values, 0.0)
    squares, square = float((values**2).sum()), float(values.sum() ** 2)
    spread = (n + 1 - 2 / p) * (squares - square / p)
    share = 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squares + square) / spread)
    return np.asarray((1 - share) * values + share * values.mean())
