"""Checks of parameters, weights and seeds, and the error for rows that are not finite."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine.exceptions import InvalidInputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LARGEST_INT = 2**63 - 1  # largest value of an int64
NEGLIGIBLE = 2.0**-52  # share of the largest weight below which a weight is lost to rounding in every sum
MAX_EXPONENT = 200  # weights are at most 2**200, so that the product of five of them is finite
MAX_NAMED = 5  # number of columns that an error names
WITHOUT_EFFECT = ("n_jobs", "verbose", "checkpoint")  # parameters that do not change the result


def on_one_line(text: str) -> str:
    """Return a text with spaces instead of line breaks, which a name of a column may have."""
    return " ".join(text.splitlines())


def listed(names: Sequence[Any] | IntArray, most: int = MAX_NAMED) -> str:
    """Return the first names of a list as text, for messages.

    >>> listed(["a", "b"]), listed(range(9))
    ('a, b', '0, 1, 2, 3, 4, ...')
    """
    return ", ".join([*map(str, names[:most]), *(["..."] if len(names) > most else [])])


def not_finite(
    columns: Sequence[Any] | IntArray = (), *, what: str = "Input X", limit: float | None = None
) -> InvalidInputError:
    """Return the error for NaN and infinity in the rows, naming the columns that have them, if given.

    `limit` is the largest absolute value that is allowed, if there is one.

    >>> str(not_finite([2])).split(";")[0]
    'Input X contains NaN or infinity in column 2'
    """
    where = f" in column{'s' * (len(columns) > 1)} {listed(columns)}" if len(columns) else ""
    beyond, scale = ("", "") if limit is None else (f" (or values beyond {limit:.0e})", "scale X, or ")
    return InvalidInputError(
        f"{what} contains NaN or infinity{beyond}{where}; {scale}remove those rows or impute "
        "the values, for instance with sklearn.impute.SimpleImputer"
    )


def check_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Return `sample_weight` as float64, or None if every row counts once.

    A weight of k stands for k copies of the row; a row of weight 0 has no influence but gets a label. Weights
    below the rounding error of the largest are set to 0, with a warning. If the largest is above 1e60 or
    below 1e-60, all are scaled by a power of two to that limit, so that their products are finite.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(n_rows, float(sample_weight))
    else:
        try:
            weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"sample_weight has to be one number per row: {error}") from error
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
        f"{int(lost.sum())} rows are ignored: their weights are lost to rounding next to {largest:g}",
        UserWarning,
        stacklevel=2,
    )
    return np.where(lost, 0.0, weights)


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
    """Return `value` as an int of at least `low`."""
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
    except OverflowError:  # an int beyond the largest float
        number = np.inf
    if not low <= number <= high or not np.isfinite(number) or (open_low and number == low):
        bounds = f" {'above' if open_low else 'at least'} {low:g}" if np.isfinite(low) else ""
        if np.isfinite(high):
            bounds += f" and at most {high:g}"
        other = f" or {or_else}" if or_else else ""
        raise InvalidInputError(f"{name} has to be a number{bounds}{other}, got {value!r}")
    return number


def check_bool(name: str, value: Any) -> bool:
    """Return `value` as a bool; a text such as "no", which Python treats as true, is refused."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name} has to be True or False, got {value!r}")
    return bool(value)


def check_standardize(value: Any) -> bool | str:
    """Return `standardize`: True, False or "auto"."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f'standardize has to be True, False or "auto", got {value!r}')
    return bool(value)


def check_jobs(value: Any) -> int | None:
    """Return a number of threads as joblib expects it: None, or a whole number except 0."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, numbers.Integral) or value == 0
    ):
        raise InvalidInputError(
            f"n_jobs has to be None or a whole number except 0 (-1 is all cores), got {value!r}"
        )
    return None if value is None else int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{name} has to be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_verbose(value: Any) -> None:
    """Check that progress is printed, not printed, or given to a function (None in a model file)."""
    if value is not None and not isinstance(value, int) and not callable(value):
        raise InvalidInputError(f"verbose has to be True, False or a function, got {value!r}")
