"""Is a valley real? Compare it with what the same search finds in rows that have one mode.

The reference is the uniform distribution on an ellipsoid with the covariance of the rows: among unimodal
shapes the one in which a search finds the deepest valleys by chance (a Gaussian and heavier tails show less).
Depths are compared as L = log(mode / valley), which is close to normal over draws.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import ArrayBlocks, RowBlocks, drive
from ravine.data.frame import FULL_COVARIANCE, Covariance, Frame
from ravine.split.hyperplane import Evidence, Split, Splitter

DRAWS = 8  # references at most; each costs one search of as many rows
FIRST_DRAWS = 3  # and at least, before the matter may be closed early
NULL_ROWS = 8192  # references have no more rows than this: fewer rows show deeper valleys by chance
SPECTRUM_ROWS = 1024  # rows that give the covariance above 256 features
HOPELESS = 0.2  # a p-value above this after the first draws ends the test
EARLY = 0.01  # a p-value below this share of the level does, too


def log_depth(split: Split | None) -> float:
    """Return L = log(mode / valley) of a split: 0 without one, infinite across an empty gap."""
    if split is None:
        return 0.0
    return math.inf if split.quality >= 1.0 else -math.log1p(-split.quality)


def weigh(
    rows: RowBlocks,
    frame: Frame,
    split: Split,
    splitter: Splitter,
    least: float,
    level: float,
    rng: np.random.Generator,
) -> Split:
    """Return a split with the evidence for it.

    Costs at most eight searches of references with as many rows (8192 at most), and three where the answer is
    plain at this level.
    """
    observed = log_depth(split)
    if math.isinf(observed):
        return replace(split, evidence=Evidence(0.0, observed, 0.0, 0.0, 0))
    n = int(min(max(round(frame.total), 2), NULL_ROWS))
    shape = spectrum(rows, frame, rng)
    depths: list[float] = []
    while True:
        depths.append(_reference(splitter, shape, n, least * n / frame.total, rng))
        if len(depths) < FIRST_DRAWS:
            continue
        found = compare(observed, np.array(depths), n)
        settled = found.p_value > HOPELESS or found.p_value < EARLY * level
        if settled or len(depths) == DRAWS:
            return replace(split, evidence=found)


def _reference(
    splitter: Splitter, shape: FloatArray, n: int, least: float, rng: np.random.Generator
) -> float:
    """Search one reference; return the L that it shows by chance."""
    drawn = uniform_ellipsoid(shape, n, rng)
    d = drawn.shape[1]
    unit = Frame(np.zeros(d), np.ones(d), np.ones(d), float(n), np.zeros(d, dtype=bool))
    rows = ArrayBlocks(drawn)
    _, split = drive(rows, splitter.search(rows, unit, least, rng))
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


def spectrum(rows: RowBlocks, frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Return a matrix A (r, d) with A'A the covariance of the framed rows, shrunk; one pass.

    Few rows in many dimensions spread the eigenvalues of a sample's covariance; without shrinking them
    (by the oracle approximating rule of Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower in
    most directions than the rows' own distribution, and show less by chance.
    """
    if rows.shape[1] <= FULL_COVARIANCE:
        ((matrix,),) = rows.pass_over([Covariance(frame)])
        varies = frame.inverse_scale > 0
        values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] / frame.total)
        shape = np.zeros((len(values), len(varies)))
        shape[:, varies] = np.sqrt(shrink(values, frame.total))[:, None] * vectors.T
        return shape
    sample = rows.sample(min(rows.shape[0], SPECTRUM_ROWS), rng)
    framed = sample.map(lambda block: (block.dense() - frame.mean) * frame.inverse_scale)
    _, values, vectors = np.linalg.svd(framed - framed.mean(axis=0), full_matrices=False)
    keep = values > 1e-7 * values[0]
    return np.asarray(np.sqrt(shrink(values[keep] ** 2 / len(framed), len(framed)))[:, None] * vectors[keep])


def shrink(values: FloatArray, n: float) -> FloatArray:
    """Draw the eigenvalues of a covariance from n rows towards their mean."""
    p = len(values)
    values = np.maximum(values, 0.0)
    squares, square = float((values**2).sum()), float(values.sum() ** 2)
    spread = (n + 1 - 2 / p) * (squares - square / p)
    share = 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squares + square) / spread)
    return np.asarray((1 - share) * values + share * values.mean())


def uniform_ellipsoid(shape: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw n rows, uniform on the ellipsoid with covariance shape' shape."""
    r = len(shape)
    points = rng.standard_normal((n, r))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points *= math.sqrt(r + 2) * rng.random((n, 1)) ** (1 / r)
    return np.asarray(points @ shape)
