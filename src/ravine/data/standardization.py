"""The frame in which rows are seen: centered at their mean, scaled to unit variance, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, not_finite
from ravine.data.blocks import Additive, Answer, Query, RowBlocks, Rows
from ravine.exceptions import InvalidInputError

PEEK_ROWS = 256  # enough rows to guess where the columns lie and how wide they are
FULL_COVARIANCE = 256  # above this many features, principal directions come from power iterations
POWER_ROUNDS = 12
CONSTANT = 1e-11  # of the largest value: a column that varies by less shows rounding, and is constant
EQUAL = 1e-6  # principal variances (or components of a direction) that differ by a smaller share are a tie
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
    def add(rows: Rows, requests: Sequence[Moments], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (totals, low, high) in zip(requests, answers, strict=True):
            rows.moments(request.pivot, request.scale, totals, low, high)

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

    @property
    def spread(self) -> float:
        """The root mean square of the columns' standard deviations, in user's units: 1 if standardized."""
        varies = self.inverse_scale > 0
        if not varies.any():
            return 1.0
        return self.unit * float(np.sqrt(np.mean((self.deviation * self.inverse_scale)[varies] ** 2)))

    def weights(self, directions: FloatArray) -> FloatArray:
        """Return directions of the frame as weights of the raw columns."""
        return directions * self.inverse_scale


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


def measure(rows: RowBlocks) -> Query[Standardization]:
    """Find mean and standard deviation of every column in one pass (two if a peek misled).

    Sums are taken about a pivot from the first rows and in units of a power of two, so that means of 1e9
    and values of 1e300 lose nothing. NaN, infinity and values that are too large are found on the way; a
    column that varies by less than 1e-301 is constant.
    """
    pivot, width = _peek(rows)
    scale = power_of_two(width)
    (answer,) = yield [Moments(pivot, scale)]
    _check_finite(answer[2])
    _check_size(np.maximum(-answer[1], answer[2]))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = answer[2] / 2 - answer[1] / 2
        mean, variance = _centered(answer[0], rows.total)
        sure = (variance > 1e-12) & (variance > 1e-8 * mean**2) & np.isfinite(variance)
        doubtful = (answer[1] < answer[2]) & ~sure
    if doubtful.any():
        middle = answer[1] / 2 + answer[2] / 2
        with np.errstate(over="ignore", invalid="ignore"):
            near = pivot + mean / scale  # far from the middle where one row has almost all of the weight
        pivot = np.where(doubtful, np.where((answer[1] <= near) & (near <= answer[2]), near, middle), pivot)
        scale = np.where(doubtful, power_of_two(spread), scale)
        (answer,) = yield [Moments(pivot, scale)]
        mean, variance = _centered(answer[0], rows.total)
    deviation = np.sqrt(np.where(answer[1] < answer[2], variance, 0.0)) / scale
    rounding = CONSTANT * np.maximum(np.abs(answer[1]), np.abs(answer[2]))
    constant = ~(deviation >= SMALLEST) | (deviation <= rounding)
    deviation = np.where(constant, 0.0, deviation)
    mean = np.where(answer[1] < answer[2], pivot + mean / scale, answer[1])
    inverse = 1.0 / np.where(constant, np.inf, deviation)
    return Standardization(mean, deviation, inverse, rows.total, constant)


def _peek(rows: RowBlocks) -> tuple[FloatArray, FloatArray]:
    """Return the middle and half the width of every column over a few rows of positive weight."""
    d = rows.shape[1]
    counted = rows.counted()
    n = rows.shape[0] if counted is None else len(counted)
    spread = np.linspace(0, n - 1, min(PEEK_ROWS, n)).astype(np.int64)
    few = rows.select(spread if counted is None else counted[spread])
    (answer,) = few.pass_over([Moments(np.zeros(d), np.ones(d))])
    low = np.where(np.isfinite(answer[1]), answer[1], 0.0)
    high = np.where(np.isfinite(answer[2]), answer[2], low)
    return low / 2 + high / 2, high / 2 - low / 2


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
            f"{LARGEST:.0e} overflow: scale the column, or remove those rows if they stand for missing ones"
        )


def standardization_of(
    rows: RowBlocks, root: Standardization | None, standardize: bool
) -> Query[Standardization]:
    """Return the frame of these rows: their own mean, the root's scale.

    A column that is constant in these rows is left out even where it varies at the root.
    """
    standardization: Standardization = yield from measure(rows)
    if root is not None:
        still = standardization.constant | (standardization.deviation * root.inverse_scale <= STILL)
        inverse_scale = np.where(still, 0.0, root.inverse_scale)
        return replace(standardization, inverse_scale=inverse_scale, unit=root.unit)
    if standardize:
        return standardization
    varies = ~standardization.constant
    widest = float(standardization.deviation.max(initial=0.0)) or 1.0
    unit = (
        widest * float(np.sqrt(np.mean((standardization.deviation[varies] / widest) ** 2)))
        if varies.any()
        else 1.0
    )
    return replace(standardization, inverse_scale=np.where(varies, 1.0 / unit, 0.0), unit=unit)


def in_user_units(standardization: Standardization) -> Standardization:
    """Return a frame of the rows as they are, or standardized, for pictures in the user's units."""
    return replace(
        standardization, inverse_scale=standardization.unit * standardization.inverse_scale, unit=1.0
    )


@dataclass(frozen=True)
class Covariance(Additive):
    """Request for the weighted second moments of the framed rows, a (d, d) matrix."""

    standardization: Standardization

    def start(self, n_features: int) -> Answer:
        """Return the zero matrix."""
        return (np.zeros((n_features, n_features)),)

    @staticmethod
    def add(rows: Rows, requests: Sequence[Covariance], answers: Sequence[Answer]) -> None:
        """Add one block."""
        for request, (matrix,) in zip(requests, answers, strict=True):
            standardized = (
                rows.dense() - request.standardization.mean
            ) * request.standardization.inverse_scale
            matrix += standardized.T @ (standardized * rows.weights[:, None])


@dataclass(frozen=True)
class CovarianceTimes(Additive):
    """Request for the weighted second moments of the framed rows times k directions: (k, d)."""

    standardization: Standardization
    directions: FloatArray

    def start(self, n_features: int) -> Answer:
        """Return zeros."""
        return (np.zeros((len(self.directions), n_features)),)

    @staticmethod
    def add(rows: Rows, requests: Sequence[CovarianceTimes], answers: Sequence[Answer]) -> None:
        """Add one block: project the rows, then sum them weighted by their projections."""
        for request, (total,) in zip(requests, answers, strict=True):
            standardization = request.standardization
            points = rows.product(standardization.mean, standardization.weights(request.directions))
            total += rows.weighted_sums(standardization.mean, points * rows.weights)


@dataclass(frozen=True)
class Principal:
    """Principal directions of framed rows, strongest first, with the standard deviation along each.

    `scatter` is the total weighted squared distance of the rows from their mean.
    """

    directions: FloatArray
    deviations: FloatArray
    scatter: float


def draw_rows(
    rows: RowBlocks, standardization: Standardization, n: int, rng: np.random.Generator
) -> FloatArray:
    """Return n framed rows, drawn by their weight: a weight of k is k copies here, too.

    What is drawn is a row, not a number per column: mirrored or permuted columns change nothing but the rows.
    """
    return (rows.at_shares(np.sort(rng.random(n))) - standardization.mean) * standardization.inverse_scale


def principal(
    rows: RowBlocks, standardization: Standardization, n_directions: int, rng: np.random.Generator
) -> Query[Principal]:
    """Find the strongest principal directions: exactly up to 256 features, above by power iterations.

    Costs one pass with a (d, d) matrix, or twelve passes with `n_directions + 4` vectors. The sign of each
    direction is fixed: its largest component is positive. Power iterations begin with rows that are drawn.
    """
    d = len(standardization.mean)
    if d <= FULL_COVARIANCE:
        ((matrix,),) = yield [Covariance(standardization)]
        scatter = float(np.trace(matrix))
        values, vectors = np.linalg.eigh(matrix / standardization.total)
        values, vectors = values[::-1], turned_to_axes(values[::-1], vectors[:, ::-1].T)
    else:
        basis = draw_rows(rows, standardization, n_directions + 4, rng)
        scatter = standardization.total * float(
            np.sum((standardization.inverse_scale * standardization.deviation) ** 2)
        )
        for _ in range(POWER_ROUNDS):
            basis = np.linalg.qr(basis.T)[0].T
            ((product,),) = yield [CovarianceTimes(standardization, basis)]
            product *= standardization.inverse_scale / standardization.total
            values, mix = np.linalg.eigh(basis @ product.T)
            basis = mix[:, ::-1].T @ product
        values = values[::-1]
        vectors = basis / np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), np.finfo(float).tiny)
    k = min(n_directions, len(values))
    return Principal(
        np.array([fix_sign(v) for v in vectors[:k]]),
        np.sqrt(np.maximum(values[:k], 0.0)),
        scatter,
    )


def turned_to_axes(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return eigenvectors (rows, values falling) with a stated choice where values are equal up to rounding.

    Any basis of the space of equal values would do, and rounding would choose one. Here the first direction
    is that of the column that lies most in the space, the next that of the column that lies most in the rest.
    """
    turned = vectors.copy()
    apart = values[:-1] - values[1:] > EQUAL * max(float(values[0]), 0.0)
    for group in np.split(np.arange(len(values)), np.flatnonzero(apart) + 1):
        if len(group) == 1 or values[group[0]] <= EQUAL * values[0]:
            continue
        space = vectors[group]
        for k in group:
            inside = (space**2).sum(axis=0)
            axis = first_largest(inside)
            turned[k] = space[:, axis] @ space / np.sqrt(inside[axis])
            space = space - np.outer(space @ turned[k], turned[k])
    return turned


def first_largest(values: FloatArray) -> int:
    """Return the place of the largest value, the first of those that are equal up to rounding."""
    return int(np.argmax(values >= (1.0 - EQUAL) * values.max()))


def fix_sign(direction: FloatArray) -> FloatArray:
    """Return the direction or its negative: the one whose largest component is positive."""
    return direction if direction[first_largest(np.abs(direction))] >= 0 else -direction
