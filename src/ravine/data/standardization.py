"""The frame in which rows are seen: centered at their mean, scaled to unit variance, never copied."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.query import Answer
from ravine.exceptions import InvalidInputError

CONSTANT = 1e-11  # of the largest value: a column that varies by less shows rounding, and is constant
STILL = 1e-100  # of the root's scale: a column that varies by less has no square, and is constant
LARGEST = 2.0**1000  # about 1e301: sums over many larger values overflow
SMALLEST = 2.0**-1000  # about 1e-301: the inverse of a smaller deviation, times a few values, overflows


@dataclass(frozen=True)
class Moments:
    """Request for the first two moments of scale (x - pivot) and for the range of every column."""

    pivot: FloatArray
    scale: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return the moments of no rows."""
        return np.zeros((2, n_features)), np.full(n_features, np.inf), np.full(n_features, -np.inf)

    @staticmethod
    def add(block: Block, requests: Sequence[Moments], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (totals, low, high) in zip(requests, answers, strict=True):
            block.moments(request.pivot, request.scale, totals, low, high)

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Add the moments and join the ranges."""
        return left[0] + right[0], np.minimum(left[1], right[1]), np.maximum(left[2], right[2])


@dataclass(frozen=True)
class Standardization:
    """Rows as the algorithms see them: z = (x - mean) * inverse_scale; `deviation` is that of the rows.

    `inverse_scale` is 0 for a column that is constant in these rows (or was at the root): it says
    nothing and takes no part. A direction v of this space acts on raw rows as the weights
    `v * inverse_scale`.

    Where columns are not standardized, all are divided by one number, the root mean square of their standard
    deviations, so that no square overflows and nothing inside depends on the units of the rows. `unit` is
    that number: whatever leaves a search (a threshold, a margin, a bandwidth) is multiplied by it. It is 1
    where columns are standardized: lengths are standard deviations then.
    """

    mean: FloatArray
    deviation: FloatArray
    inverse_scale: FloatArray
    total: float
    constant: npt.NDArray[np.bool_]
    unit: float = 1.0

    @classmethod
    def identity(cls, n_features: int, total: float) -> Standardization:
        """Return the frame that leaves rows as they are."""
        ones = np.ones(n_features)
        return cls(np.zeros(n_features), ones, ones, total, np.zeros(n_features, dtype=bool))

    def scaled(self, root: Standardization | None, standardize: bool) -> Standardization:
        """Return the standardization of a node: its own means, the scale of the root.

        A column that is constant in the node is left out even where it varies at the root. At the root,
        columns that are not standardized are all divided by the root mean square of their deviations.
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
        """Return raw rows, standardized."""
        return np.asarray((rows - self.mean) * self.inverse_scale)

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Which columns vary, and take part."""
        return self.inverse_scale > 0

    @cached_property
    def key(self) -> bytes:
        """What tells this standardization from others, also on another machine."""
        return hashlib.blake2b(self.mean.tobytes() + self.inverse_scale.tobytes(), digest_size=8).digest()

    @property
    def mean_variance(self) -> float:
        """The mean variance of the columns that vary, standardized."""
        return float(np.mean((self.deviation * self.inverse_scale)[self.varies] ** 2))

    @property
    def spread(self) -> float:
        """The root mean square of the columns' standard deviations, in user's units: 1 if standardized."""
        return self.unit * math.sqrt(self.mean_variance) if self.varies.any() else 1.0

    def normals(self, directions: FloatArray) -> FloatArray:
        """Return directions of the standardized space as normals in the raw columns."""
        return directions * self.inverse_scale

    def directions(self, normals: FloatArray) -> FloatArray:
        """Return normals in the raw columns as directions of the standardized space; 0 where constant."""
        return np.asarray(normals / np.where(self.varies, self.inverse_scale, np.inf))


def power_of_two(width: FloatArray) -> FloatArray:
    """Return the power of two that brings each width near 1 (1 where the width is 0)."""
    exponent = np.frexp(np.where(width > 0, width, 1.0))[1]
    return np.asarray(np.ldexp(1.0, -np.clip(exponent, -1000, 1000)))


def safe_scale(*values: FloatArray) -> float:
    """Return the power of two that brings values near 1 where squares would overflow or vanish, else 1."""
    largest = max(float(np.abs(some).max(initial=0.0)) for some in values)
    if largest == 0.0 or not np.isfinite(largest) or np.sqrt(SMALLEST) < largest < np.sqrt(LARGEST):
        return 1.0
    return float(power_of_two(np.array(largest)))


def first_guess(rows: FloatArray | sparse.csr_array) -> tuple[FloatArray, FloatArray]:
    """Return the middle of every column over a few rows, and a power of two that brings its width near 1."""
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

    Sums are taken about a pivot and in units of a power of two, so that means of 1e9 and values of 1e300 lose
    nothing. Where the pivot was too far off, also returns a better one and its unit, for another pass. NaN,
    infinity and values that are too large are refused; a column that varies by less than 1e-301 is constant.
    """
    _check_finite(answer[2])
    _check_size(np.maximum(-answer[1], answer[2]))
    totals, low, high = answer
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = _centered(totals, total)
        sure = (variance > 1e-12) & (variance > 1e-8 * mean**2) & np.isfinite(variance)
        near = pivot + mean / scale  # far from the middle where one row has almost all of the weight
    doubtful = (low < high) & ~sure
    again = None
    if doubtful.any() and not last:
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
        names = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise InvalidInputError(
            f"Input X contains NaN or infinity in column{'s' * (len(bad) > 1)} {names}; "
            "remove those rows or fill them in, with sklearn.impute.SimpleImputer for instance"
        )


def _check_size(size: FloatArray) -> None:
    bad = np.flatnonzero(size > LARGEST)
    if len(bad):
        raise InvalidInputError(
            f"Input X has values of up to {size[bad[0]]:.3g} in column {bad[0]}, and sums of values beyond "
            f"{LARGEST:.0e} overflow: scale the column, or remove those rows if they stand for missing ones"
        )


def in_user_units(standardization: Standardization) -> Standardization:
    """Return a frame of the rows as they are, or standardized, for pictures in the user's units."""
    return replace(
        standardization, inverse_scale=standardization.unit * standardization.inverse_scale, unit=1.0
    )
