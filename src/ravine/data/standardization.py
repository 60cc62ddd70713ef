"""Standardization: means and scales of the columns. Rows are standardized block by block, never copied."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, not_finite
from ravine.data.blocks import Block
from ravine.data.query import Answer, Request
from ravine.exceptions import InvalidInputError

CONSTANT = 1e-11  # share of the largest value: a column with a smaller deviation varies by rounding only
STILL = 1e-100  # share of the root's scale: the square of a smaller deviation underflows
LARGEST = 2.0**1000  # largest accepted value, about 1e301: sums over many larger values overflow
SMALLEST = 2.0**-1000  # least deviation, about 1e-301: the inverse of a smaller one times a value overflows


@dataclass(frozen=True)
class Moments(Request):
    """Request for the first two moments of scale (x - pivot) and for the range of every column."""

    pivot: FloatArray
    scale: FloatArray

    def start(self, n_features: int) -> Answer:
        return np.zeros((2, n_features)), np.full(n_features, np.inf), np.full(n_features, -np.inf)

    def add(self, block: Block, answer: Answer) -> None:
        block.moments(self.pivot, self.scale, *answer)

    def merge(self, left: Answer, right: Answer) -> Answer:
        return left[0] + right[0], np.minimum(left[1], right[1]), np.maximum(left[2], right[2])


@dataclass(frozen=True)
class Standardization:
    """The rows of the algorithms, z = (x - mean) * inverse_scale; `deviation` is that of the raw rows.

    `inverse_scale` is 0 for a column that is constant in these rows (or in those of the root), so that it has
    no effect. A direction v of this space has the normal `v * inverse_scale` in the raw columns.

    Without standardizing, all columns are divided by one number, the root mean square of their standard
    deviations, so that no square overflows and no search depends on the units of the rows. `unit` is that
    number: every length that a search returns (threshold, margin, bandwidth) is multiplied by it. For
    standardized columns it is 1: lengths are in standard deviations.
    """

    mean: FloatArray
    deviation: FloatArray
    inverse_scale: FloatArray
    total: float
    constant: npt.NDArray[np.bool_]
    unit: float = 1.0

    @classmethod
    def of_scales(cls, mean: FloatArray, inverse_scale: FloatArray, total: float = 1.0) -> Standardization:
        """Return the standardization of known means and scales, such as those in a model file."""
        constant = inverse_scale == 0
        return cls(mean, 1.0 / np.where(constant, np.inf, inverse_scale), inverse_scale, total, constant)

    @classmethod
    def identity(cls, n_features: int, total: float) -> Standardization:
        """Return the standardization that leaves rows unchanged."""
        return cls.of_scales(np.zeros(n_features), np.ones(n_features), total)

    def scaled(self, root: Standardization | None, standardize: bool) -> Standardization:
        """Return the standardization of a node: its own means, the scales of the root.

        A column that is constant in the node is left out even if it varies at the root.
        """
        if root is not None:
            still = self.constant | (self.deviation * root.inverse_scale <= STILL)
            return replace(self, inverse_scale=np.where(still, 0.0, root.inverse_scale), unit=root.unit)
        if standardize:
            return self
        varies = ~self.constant
        widest = float(self.deviation.max(initial=0.0)) or 1.0
        unit = (
            widest * float(np.sqrt(np.mean((self.deviation[varies] / widest) ** 2))) if varies.any() else 1.0
        )
        return replace(self, inverse_scale=np.where(varies, 1.0 / unit, 0.0), unit=unit)

    def apply(self, rows: FloatArray) -> FloatArray:
        """Standardize raw rows."""
        return np.asarray((rows - self.mean) * self.inverse_scale)

    def apply_checked(self, rows: Any) -> Any:
        """Standardize rows that no pass has seen; refuse NaN, infinity, and what would overflow.

        CSR rows stay CSR if the means are 0, and are written out otherwise.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(rows) and not self.mean.any():
                found: Any = sparse.csr_array(rows @ sparse.diags_array(self.inverse_scale), dtype=np.float64)
                bad = np.unique(found.indices[~(np.abs(found.data) <= LARGEST)])
            else:
                dense = rows.toarray() if sparse.issparse(rows) else rows
                found = self.apply(np.asarray(dense, dtype=np.float64))
                bad = np.flatnonzero(~(np.abs(found) <= LARGEST).all(axis=0))
        if len(bad):
            raise not_finite(bad, limit=LARGEST)
        return found

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Which columns vary."""
        return self.inverse_scale > 0

    @cached_property
    def key(self) -> bytes:
        """A hash of this standardization, the same on every machine."""
        return hashlib.blake2b(self.mean.tobytes() + self.inverse_scale.tobytes(), digest_size=8).digest()

    @cached_property
    def mean_variance(self) -> float:
        """The mean variance, after standardizing, of the columns that vary."""
        return float(np.mean((self.deviation * self.inverse_scale)[self.varies] ** 2))

    @property
    def spread(self) -> float:
        """The root mean square of the columns' deviations in the user's units; 1 if standardized."""
        return self.unit * math.sqrt(self.mean_variance) if self.varies.any() else 1.0

    def normals(self, directions: FloatArray) -> FloatArray:
        """Return directions of the standardized space as normals in the raw columns."""
        return directions * self.inverse_scale

    def directions(self, normals: FloatArray) -> FloatArray:
        """Return normals in the raw columns as directions of the standardized space; 0 where constant."""
        return np.asarray(normals / np.where(self.varies, self.inverse_scale, np.inf))


def power_of_two(width: FloatArray) -> FloatArray:
    """Return the power of two that scales each width to about 1 (1 for a width of 0)."""
    exponent = np.frexp(np.where(width > 0, width, 1.0))[1]
    return np.asarray(np.ldexp(1.0, -np.clip(exponent, -1000, 1000)))


def safe_scale(*values: FloatArray) -> float:
    """Return 1, or the power of two that scales values to about 1 if squares would overflow or underflow."""
    largest = max(float(np.abs(some).max(initial=0.0)) for some in values)
    if largest == 0.0 or not np.isfinite(largest) or np.sqrt(SMALLEST) < largest < np.sqrt(LARGEST):
        return 1.0
    return float(power_of_two(np.array(largest)))


def first_guess(rows: FloatArray | sparse.csr_array) -> tuple[FloatArray, FloatArray]:
    """Return the middle of every column over a few rows, and a power of two that scales its width to 1."""
    if sparse.issparse(rows):
        low, high = (np.asarray(bound.toarray(), dtype=np.float64).ravel() for bound in _ranges(rows))
    else:
        low, high = rows.min(axis=0), rows.max(axis=0)
    finite = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(finite, low, 0.0), np.where(finite, high, 0.0)
    return low / 2 + high / 2, power_of_two(high / 2 - low / 2)


def _ranges(rows: sparse.csr_array) -> tuple[Any, Any]:
    return rows.min(axis=0), rows.max(axis=0)


def of_moments(
    answer: Answer, pivot: FloatArray, scale: FloatArray, total: float, last: bool = False
) -> tuple[Standardization, tuple[FloatArray, FloatArray] | None]:
    """Return mean and standard deviation of every column from its moments about a pivot.

    The sums are about a pivot and in units of a power of two, so that means of 1e9 and values of 1e300 lose
    no digits. If the pivot was too far from the mean, also returns a better pivot and scale for another pass.
    Raises on NaN, infinity and values beyond LARGEST; a deviation below SMALLEST counts as constant.
    """
    _check_finite(answer[2])
    _check_size(np.maximum(-answer[1], answer[2]))
    totals, low, high = answer
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = _centered(totals, total)
        # The variance is a difference of squares about the pivot. It has about 8 correct digits or more if
        # it is not much smaller than the squared distance of the mean from the pivot (both in units of
        # 1/scale), and if the scale was not too coarse for the column.
        sure = (variance > 1e-12) & (variance > 1e-8 * mean**2) & np.isfinite(variance)
        near = pivot + mean / scale
    doubtful = (low < high) & ~sure
    again = None
    if doubtful.any() and not last:
        # The mean itself is the best pivot (the middle of the range may be far from it if one row has almost
        # all of the weight), but one computed with such a loss of digits may lie outside of the range.
        inside = (low <= near) & (near <= high)
        better = np.where(inside, near, low / 2 + high / 2)
        again = (
            np.where(doubtful, better, pivot),
            np.where(doubtful, power_of_two(high / 2 - low / 2), scale),
        )
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.sqrt(np.where(low < high, np.maximum(variance, 0.0), 0.0)) / scale
    rounding = CONSTANT * np.maximum(np.abs(low), np.abs(high))
    constant = ~(deviation >= SMALLEST) | (deviation <= rounding)
    deviation = np.where(constant, 0.0, deviation)
    inverse = 1.0 / np.where(constant, np.inf, deviation)
    return Standardization(np.where(low < high, near, low), deviation, inverse, total, constant), again


def _centered(totals: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    mean = totals[0] / total
    return mean, totals[1] / total - mean**2


def _check_finite(high: FloatArray) -> None:
    bad = np.flatnonzero(np.isnan(high))
    if len(bad):
        raise not_finite(bad)


def _check_size(size: FloatArray) -> None:
    bad = np.flatnonzero(size > LARGEST)
    if len(bad):
        raise InvalidInputError(
            f"Input X has values of up to {size[bad[0]]:.3g} in column {bad[0]}, and sums of values beyond "
            f"{LARGEST:.0e} overflow: scale the column, or remove those rows if the values mark missing data"
        )


def in_user_units(standardization: Standardization) -> Standardization:
    """Return the standardization whose lengths are those that users see: `unit` is part of the scale."""
    return replace(
        standardization, inverse_scale=standardization.unit * standardization.inverse_scale, unit=1.0
    )
