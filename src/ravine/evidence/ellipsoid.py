"""Reference rows on an ellipsoid: uniform with the covariance of the rows, or with their tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, draw_sample
from ravine.data.principal import FULL_COVARIANCE, Covariance
from ravine.data.query import Query
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Standardization
from ravine.evidence.margins import shrink
from ravine.evidence.orientation import Orientation, orientation

REFERENCE_ROWS = 8192  # most rows of a reference; conservative, as fewer rows have deeper valleys by chance
REFERENCE_CELLS = 1 << 23  # most values of one: 64 MiB
SPECTRUM_ROWS = 1024  # rows from which the covariance is estimated above 256 columns
SMALLEST = 1e-10  # share of the largest variance of the reference: smaller ones are rounding


@dataclass(frozen=True)
class Columns:
    """The axes (r, d) of an ellipsoid in columns, and the orientation in which rows are drawn."""

    axes: FloatArray
    oriented: Orientation

    def project(self, rows: Any, own: Standardization) -> FloatArray:
        """Return the coordinates of raw rows along the axes."""
        return np.asarray(MemoryRows(rows).map(lambda block: own.apply(block.dense()) @ self.axes.T))

    def normal(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n rows of standard normal coordinates along the axes.

        They are drawn per column: the signs of the axes are arbitrary, and so are axes of equal variances,
        but rows drawn so and put back in columns depend on neither.
        """
        drawn = rng.standard_normal((n, len(self.oriented.order)))
        return np.asarray(self.oriented.undo(drawn) @ self.axes.T)

    def place(self, points: FloatArray) -> FloatArray:
        """Return rows in columns from their coordinates along the axes."""
        return np.asarray(points @ self.axes)


@dataclass(frozen=True)
class WideAxes:
    """The axes of an ellipsoid in many columns, as combinations of sampled rows: they are never written out.

    `rows` (m, d), dense or CSR, are scaled, `weights` sum to 1, and `coefficients` are (m, r). The columns
    have `n_others` further dimensions, in which m rows do not vary but others do.
    """

    rows: Any
    weights: FloatArray
    coefficients: FloatArray
    n_others: int = 0

    def project(self, rows: Any, own: Standardization) -> FloatArray:
        """Return the coordinates of raw rows along the axes, from inner products with the sampled rows."""
        products = inner_products(scaled(rows, own), self.rows)
        if sparse.issparse(rows):  # their means are not subtracted
            products -= np.asarray(self.rows @ (own.mean * own.inverse_scale))
        products -= (products @ self.weights)[:, None]
        return np.asarray(products @ self.coefficients)

    def normal(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n rows of standard normal coordinates along the axes."""
        return rng.standard_normal((n, self.coefficients.shape[1]))

    def place(self, points: FloatArray) -> FloatArray:
        """Return the coordinates: these references have no columns."""
        return points


@dataclass(frozen=True)
class Ellipsoid:
    """Standard deviations along the axes of an ellipsoid, and the axes.

    Up to 256 columns references have the columns of the rows, because a method may scale columns or have
    given starts. Otherwise they are coordinates along the axes: very wide references need too much memory.
    `other` is the standard deviation in all dimensions that have no axis.
    """

    deviations: FloatArray
    axes: Columns | WideAxes
    other: float = 0.0

    @property
    def columns(self) -> Orientation | None:
        """The orientation of the columns, of references that have columns."""
        return self.axes.oriented if isinstance(self.axes, Columns) else None

    @property
    def n_others(self) -> int:
        """The number of dimensions without an axis."""
        return self.axes.n_others if isinstance(self.axes, WideAxes) and self.other > 0.0 else 0

    @property
    def max_rows(self) -> int:
        """The number of rows that a reference may have."""
        n, r = REFERENCE_ROWS, len(self.deviations)
        while n * (r + min(n, self.n_others)) > REFERENCE_CELLS:
            n = n * 7 // 8
        return n

    def radii(self, node: Node) -> Query[FloatArray]:
        """Return the Mahalanobis distances of a sample of rows from the mean, and their weights."""
        answer = yield from draw_sample(node, node.sample_request(REFERENCE_ROWS, "radii"))
        values, weights, _ = read_sample(answer)
        along = self.axes.project(values, node.standardization)
        squares = ((along / self.deviations) ** 2).sum(axis=1)
        if self.n_others:
            rest = squared_lengths(values, node.standardization) - (along**2).sum(axis=1)
            squares += np.maximum(rest, 0.0) / self.other**2
        return np.column_stack([np.sqrt(squares), weights])

    def draw(self, n: int, radii: FloatArray | None, rng: np.random.Generator) -> FloatArray:
        """Draw n rows: uniform directions, with these radii, or uniform in the ellipsoid."""
        r = len(self.deviations) + self.n_others
        points = self.axes.normal(n, rng)
        others = _isotropic(n, self.n_others, rng)
        lengths = np.sqrt((points**2).sum(axis=1) + (others**2).sum(axis=1))
        if radii is None:
            radius = math.sqrt(r + 2) * rng.random(n) ** (1 / r)
        else:
            radius = rng.choice(radii[:, 0], n, p=radii[:, 1] / radii[:, 1].sum())
        points *= (radius / lengths)[:, None]
        points *= self.deviations
        found = self.axes.place(points)
        return (
            np.hstack([found, others * (self.other * radius / lengths)[:, None]]) if self.n_others else found
        )


def _isotropic(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw n standard normal rows in d dimensions, up to a rotation: n coordinates are enough for n rows.

    If d > n, these are the rows of the triangular factor of such rows (Bartlett 1933).
    """
    if d <= n:
        return rng.standard_normal((n, d))
    found = np.tril(rng.standard_normal((n, n)), -1)
    np.fill_diagonal(found, np.sqrt(rng.chisquare(d - np.arange(n))))
    return found


def ellipsoid_sample(node: Node) -> Sample:
    """Return the sample that gives the axes of many columns, or the orientation of few."""
    return node.sample_request(SPECTRUM_ROWS, "ellipsoid")


def ellipsoid(node: Node, n: float | None = None) -> Query[Ellipsoid]:
    """Return the ellipsoid of the shrunk covariance of the standardized rows; one pass.

    The eigenvalues of the covariance of few rows in many dimensions are too far apart. Without shrinkage
    (oracle approximating shrinkage; Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower than the
    distribution of the rows in most directions, and its valleys less deep. `n` is how many different rows
    there are; by default their weight.
    """
    if node.n_features > FULL_COVARIANCE:
        return (yield from _wide_ellipsoid(node, n))
    own = node.standardization
    ((matrix,),) = yield node.ask(Covariance(own))
    answer = yield from draw_sample(node, ellipsoid_sample(node))
    varies = own.varies
    values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] / own.total)
    shrunk = shrink(values, n or own.total)
    kept = shrunk > SMALLEST * shrunk.max()
    axes = np.zeros((int(kept.sum()), len(varies)))
    axes[:, varies] = vectors.T[kept]
    rows = MemoryRows(read_sample(answer)[0]).map(lambda block: own.apply(block.dense()))
    return Ellipsoid(np.sqrt(shrunk[kept]), Columns(axes, orientation(rows, np.flatnonzero(varies))))


def _wide_ellipsoid(node: Node, n: float | None) -> Query[Ellipsoid]:
    """Return the ellipsoid of rows with many columns, from the inner products of a sample.

    m rows vary in m - 1 dimensions, and others of the same distribution in all columns. So shrinkage takes
    variance from the axes to all other dimensions. Without these, rows in more columns than rows would be
    compared with references of less freedom, in which a search finds less deep valleys.
    """
    own = node.standardization
    answer = yield from draw_sample(node, ellipsoid_sample(node))
    values, weights, _ = read_sample(answer)
    rows, total = scaled(values, own), float(weights.sum())
    center = np.eye(len(weights)) - weights / total
    root = np.sqrt(weights / total)
    products = center @ inner_products(rows, rows) @ center.T
    variances, vectors = np.linalg.eigh(root[:, None] * products * root)
    kept = variances > SMALLEST * variances[-1]
    variances, vectors = variances[kept][::-1], vectors[:, kept][:, ::-1]
    p = max(int(own.varies.sum()), len(variances))
    *shrunk, other = shrink(np.append(variances, 0.0), min(n or total, total), p)
    others = p - len(variances) if other > SMALLEST * shrunk[0] else 0
    axes = WideAxes(rows, weights / total, vectors * root[:, None] / np.sqrt(variances), others)
    return Ellipsoid(np.sqrt(shrunk), axes, math.sqrt(other))


def scaled(rows: Any, own: Standardization) -> Any:
    """Return standardized rows; of CSR rows the means are not subtracted, so that they stay sparse."""
    return rows.multiply(own.inverse_scale[None, :]).tocsr() if sparse.issparse(rows) else own.apply(rows)


def inner_products(rows: Any, others: Any) -> FloatArray:
    """Return the inner products of rows, dense or CSR."""
    products = rows @ others.T
    return np.asarray(products.toarray() if sparse.issparse(products) else products)


def squared_lengths(rows: Any, own: Standardization) -> FloatArray:
    """Return the squared lengths of raw rows, standardized; dense or CSR."""
    if not sparse.issparse(rows):
        return np.asarray((own.apply(rows) ** 2).sum(axis=1))
    found, mean = scaled(rows, own), own.mean * own.inverse_scale
    squares = np.asarray(found.power(2).sum(axis=1)).ravel()
    return np.asarray(squares - 2.0 * (found @ mean) + float(mean @ mean))
