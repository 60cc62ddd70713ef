"""What is checked at the door: exceptions, parameters, weights and seeds."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine.exceptions import InvalidInputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LARGEST_INT = 2**63 - 1  # what an array of whole numbers can hold
NEGLIGIBLE = 2.0**-52  # the share of the largest weight below which sums do not show a weight
MAX_EXPONENT = 200  # of two, in weights: the product of five of them is still finite


def check_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Return `sample_weight` as float64, or None where every row counts once.

    A weight of k stands for k copies of the row; a row of weight 0 counts for nothing and still
    gets a label. So does a row whose weight is below the rounding of the largest: it is lost in every sum.
    Weights of which the largest is beyond 1e60, or all below 1e-60, are scaled to there by a power of two,
    so that products of them stay finite.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(n_rows, float(sample_weight))
    else:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight needs one weight for each of the {n_rows} rows, got shape {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise InvalidInputError("sample_weight contains NaN or infinity; every weight has to be finite")
    if (weights < 0).any():
        raise InvalidInputError(
            f"sample_weight has {int((weights < 0).sum())} negative values; weights have to be 0 or more"
        )
    if not (weights > 0).any():
        raise InvalidInputError("sample_weight is zero for every row; at least one weight has to be positive")
    largest = weights.max()
    exponent = int(np.frexp(largest)[1])
    inside = min(max(exponent, -MAX_EXPONENT), MAX_EXPONENT)
    if inside != exponent:
        weights = np.ldexp(weights, inside - exponent)
        largest = weights.max()
    lost = (weights > 0) & (weights < NEGLIGIBLE * largest)
    if not lost.any():
        return weights
    warnings.warn(
        f"{int(lost.sum())} rows count for nothing, as their weight is lost beside the largest, {largest:g}",
        UserWarning,
        stacklevel=2,
    )
    return np.where(lost, 0.0, weights)


def checked_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR, with its entries in order and once; it is copied only where it is not.

    Its parts are checked, in one reading of the column numbers: compiled loops trust them, and a number out
    of range would be a place in memory that belongs to something else.
    """
    _check_stored(X)
    rows = X.tocsr()
    if rows is not X:
        _check_stored(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _check_stored(X: Any) -> None:
    """Refuse a sparse matrix whose parts do not fit together."""
    kind = X.format
    if kind == "coo" and X.ndim == 2:
        _check_numbers(kind, "row", X.row, X.shape[0])
        _check_numbers(kind, "column", X.col, X.shape[1])
        if not len(X.row) == len(X.col) == len(X.data):
            raise _damaged(kind, f"{len(X.row)} rows, {len(X.col)} columns and {len(X.data)} values")
    elif kind in ("csr", "csc", "bsr") and X.ndim == 2:
        tall, wide = np.array(X.shape) // (X.blocksize if kind == "bsr" else (1, 1))
        n, m, which = (wide, tall, "row") if kind == "csc" else (tall, wide, "column")
        starts = X.indptr
        if len(starts) != n + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise _damaged(kind, f"an indptr that is not {n + 1} rising numbers from 0")
        stored = min(len(X.indices), len(X.data))
        if starts[-1] > stored:
            raise _damaged(kind, f"{stored} stored entries where indptr ends at {starts[-1]}")
        _check_numbers(kind, which, X.indices[: starts[-1]], m)


def _check_numbers(kind: str, which: str, numbers: npt.NDArray[Any], n: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < n):
        raise _damaged(kind, f"{which} numbers from {numbers.min()} to {numbers.max()}, and {n} {which}s")


def _damaged(kind: str, has: str) -> InvalidInputError:
    return InvalidInputError(f"X is a damaged {kind.upper()} matrix, with {has}; make it anew from its data")


def make_rng(random_state: Any) -> np.random.Generator:
    """Turn None, a seed, a Generator or a legacy RandomState into a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or (isinstance(random_state, numbers.Integral) and int(random_state) >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise InvalidInputError(
        "random_state has to be None, a whole number of at least 0 or a numpy Generator, "
        f"got {random_state!r}"
    )


def check_int(name: str, value: Any, low: int, *, or_else: str = "") -> int:
    """Return `value` as an int of at least `low`, or say what came instead."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not low <= int(value) <= LARGEST_INT:
        bounds = f"of at least {low}" if not whole or int(value) < low else "below 2**63"
        other = f" or {or_else}" if or_else else ""
        raise InvalidInputError(f"{name} has to be a whole number {bounds}{other}, got {value!r}")
    return int(value)


def check_real(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = True, or_else: str = ""
) -> float:
    """Return `value` as a float in (low, high], or in [low, high] with `open_low=False`."""
    ok = isinstance(value, numbers.Real) and value is not True and value is not False
    try:
        number = float(value) if ok else np.nan
    except OverflowError:  # a whole number beyond all floats
        number = np.inf
    if not low <= number <= high or not np.isfinite(number) or (open_low and number == low):
        bounds = f" {'above' if open_low else 'at least'} {low:g}" if np.isfinite(low) else ""
        if np.isfinite(high):
            bounds += f" and at most {high:g}"
        other = f" or {or_else}" if or_else else ""
        raise InvalidInputError(f"{name} has to be a number{bounds}{other}, got {value!r}")
    return number


def check_bool(name: str, value: Any) -> bool:
    """Return `value` as a bool; a word such as "no", which Python takes for true, is refused."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name} has to be True or False, got {value!r}")
    return bool(value)


def check_jobs(value: Any) -> int | None:
    """Return a number of threads as joblib takes it: None, or a whole number that is not 0."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, numbers.Integral) or value == 0
    ):
        raise InvalidInputError(
            f"n_jobs has to be None or a whole number that is not 0 (-1 is all cores), got {value!r}"
        )
    return None if value is None else int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or list them."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{name} has to be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_directions(name: str, value: Any, n_features: int) -> FloatArray:
    """Return `value` as an array of directions, one a row, none of them zero."""
    try:
        directions = np.atleast_2d(np.asarray(value, dtype=np.float64))
    except (ValueError, TypeError, OverflowError):
        raise InvalidInputError(
            f"{name} has to be an array of numbers of shape (n_starts, {n_features}), got {value!r}"
        ) from None
    if directions.ndim != 2 or directions.shape[1] != n_features or len(directions) == 0:
        raise InvalidInputError(
            f"{name} has to be an array of shape (n_starts, {n_features}), got shape {np.shape(value)}"
        )
    if not np.isfinite(directions).all() or not (directions != 0).any(axis=1).all():
        raise InvalidInputError(f"{name} has a direction that is zero or not finite; every start needs one")
    return directions
