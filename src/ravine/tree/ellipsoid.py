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
from ravine.data.sample import Sample, sampled
from ravine.data.standardization import Standardization
from ravine.tree.margins import shrink
from ravine.tree.orientation import Orientation, orientation

REFERENCE_ROWS = 8192  # most rows of a reference; conservative, as fewer rows have deeper valleys by chance
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

    `rows` (m, d), dense or CSR, are scaled, `weights` sum to 1, and `coefficients` are (m, r).
    """

    rows: Any
    weights: FloatArray
    coefficients: FloatArray

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
    """

    deviations: FloatArray
    axes: Columns | WideAxes

    @property
    def columns(self) -> Orientation | None:
        """The orientation of the columns, of references that have columns."""
        return self.axes.oriented if isinstance(self.axes, Columns) else None

    def radii(self, node: Node) -> Query[FloatArray]:
        """Return the Mahalanobis distances of a sample of rows from the mean, and their weights."""
        answer = yield from draw_sample(node, node.sample_request(REFERENCE_ROWS, "radii"))
        values, weights, _ = sampled(answer)
        coordinates = self.axes.project(values, node.standardization) / self.deviations
        return np.column_stack([np.linalg.norm(coordinates, axis=1), weights])

    def draw(self, n: int, radii: FloatArray | None, rng: np.random.Generator) -> FloatArray:
        """Draw n rows: uniform directions, with these radii, or uniform in the ellipsoid."""
        r = len(self.deviations)
        points = self.axes.normal(n, rng)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        if radii is None:
            points *= math.sqrt(r + 2) * rng.random((n, 1)) ** (1 / r)
        else:
            points *= rng.choice(radii[:, 0], n, p=radii[:, 1] / radii[:, 1].sum())[:, None]
        points *= self.deviations
        return self.axes.place(points)


def ellipsoid_sample(node: Node) -> Sample:
    """Return the sample that gives the axes of many columns, or the orientation of few."""
    return node.sample_request(SPECTRUM_ROWS, "ellipsoid")


def ellipsoid(node: Node) -> Query[Ellipsoid]:
    """Return the ellipsoid of the shrunk covariance of the standardized rows; one pass.

    The eigenvalues of the covariance of few rows in many dimensions are too far apart. Without shrinkage
    (oracle approximating shrinkage; Chen, Wiesel, Eldar, Hero 2010) the reference would be narrower than the
    distribution of the rows in most directions, and its valleys less deep.
    """
    if node.n_features > FULL_COVARIANCE:
        return (yield from _wide_ellipsoid(node))
    own = node.standardization
    ((matrix,),) = yield node.ask(Covariance(own))
    answer = yield from draw_sample(node, ellipsoid_sample(node))
    varies = own.varies
    values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] / own.total)
    deviations, kept = _deviations(values, own.total)
    axes = np.zeros((len(deviations), len(varies)))
    axes[:, varies] = vectors.T[kept]
    rows = MemoryRows(sampled(answer)[0]).map(lambda block: own.apply(block.dense()))
    return Ellipsoid(deviations, Columns(axes, orientation(rows, np.flatnonzero(varies))))


def _wide_ellipsoid(node: Node) -> Query[Ellipsoid]:
    """Return the ellipsoid of rows with many columns, from the inner products of a sample."""
    own = node.standardization
    answer = yield from draw_sample(node, ellipsoid_sample(node))
    values, weights, _ = sampled(answer)
    rows, n = scaled(values, own), float(weights.sum())
    center = np.eye(len(weights)) - weights / n
    root = np.sqrt(weights)
    products = center @ inner_products(rows, rows) @ center.T
    squares, vectors = np.linalg.eigh(root[:, None] * products * root)
    rank = min(len(weights), int(own.varies.sum()))  # further eigenvalues are 0 and belong to no column
    squares, vectors = np.maximum(squares[::-1][:rank], 0.0), vectors[:, ::-1][:, :rank]
    deviations, kept = _deviations(squares / n, n)
    lengths = np.sqrt(np.maximum(squares[kept], np.finfo(float).tiny))
    return Ellipsoid(deviations, WideAxes(rows, weights / n, vectors[:, kept] * root[:, None] / lengths))


def _deviations(variances: FloatArray, n: float) -> tuple[FloatArray, Any]:
    """Return the standard deviations of shrunk variances, and which of them are not rounding."""
    shrunk = shrink(variances, n)
    kept = shrunk > SMALLEST * shrunk.max()
    return np.sqrt(shrunk[kept]), kept


def scaled(rows: Any, own: Standardization) -> Any:
    """Return standardized rows; of CSR rows the means are not subtracted, so that they stay sparse."""
    return rows.multiply(own.inverse_scale[None, :]).tocsr() if sparse.issparse(rows) else own.apply(rows)


def inner_products(rows: Any, others: Any) -> FloatArray:
    """Return the inner products of rows, dense or CSR."""
    products = rows @ others.T
    return np.asarray(products.toarray() if sparse.issparse(products) else products)
