"""Checks of what users give: rows, weights, labels, seeds and parameters."""

from __future__ import annotations

import numbers
import os
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine.exceptions import InvalidInputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

UNLABELED = -1  # label of a row whose class is unknown, or that is far from all clusters, as in HDBSCAN
MAX_EXPONENT = 200  # weights are at most 2**200, so that the product of five of them is finite
MAX_NAMED = 5  # number of columns that an error names
WITHOUT_EFFECT = ("n_jobs", "verbose", "checkpoint")  # parameters that do not change the result
# how the names of the types of columns begin that are not numbers, in pandas and polars
NOT_NUMBERS = ("category", "categorical", "enum", "date", "time", "duration", "period", "interval")


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


# --- rows ---


def check_rows(X: Any, estimator: Any = None, *, reset: bool = True, min_rows: int = 0) -> Any:
    """Return rows of numbers as an array, a canonical CSR matrix or a block source; copied only if necessary.

    With an estimator, the number and names of the columns are also checked, or stored if `reset`. Values are
    not read: the first pass over the rows finds NaN and infinity.
    """
    from sklearn.utils.validation import check_array, validate_data

    if is_block_source(X):
        if estimator is not None:
            _check_columns(X, estimator, reset)
        return X
    rules: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": "numeric",
        "ensure_all_finite": False,
        "ensure_min_samples": min_rows,
    }
    if isinstance(X, str | os.PathLike):
        raise InvalidInputError(f"X is the path {os.fspath(X)!r}; read its rows with ravine.open(path)")
    _refuse_other_columns(X)
    try:
        X = check_csr(X) if sparse.issparse(X) else X
        if estimator is None:
            return check_array(X, **rules)
        return validate_data(estimator, X, reset=reset, **rules)
    except ValueError as error:
        raise InvalidInputError(_in_one_line(error)) from error


def _refuse_other_columns(X: Any) -> None:
    """Name the columns of a data frame that share a name, or hold categories or times."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")) or hasattr(X, "__dask_graph__"):
        return
    refuse_shared_names(X.columns)
    kinds = zip(X.columns, X.dtypes, strict=True)
    other = [f"{name} ({kind})" for name, kind in kinds if not _may_be_numbers(kind)]
    if other:
        raise InvalidInputError(
            f"columns of X are not numbers: {listed(other)}; encode them, for instance with "
            f"pandas.get_dummies, or leave them out"
        )


def refuse_shared_names(columns: Any) -> None:
    """Name the columns of a data frame that share a name; not every scikit-learn looks at it."""
    shared = [str(name) for name, count in Counter(columns).items() if count > 1]
    if shared:
        raise InvalidInputError(f"several columns of X have the name {listed(shared)}; rename them")


def _may_be_numbers(kind: Any) -> bool:
    """Whether a column of this type may hold numbers, as categories that are numbers do."""
    numeric = getattr(getattr(getattr(kind, "categories", None), "dtype", None), "kind", "") in tuple("biuf")
    return numeric or not str(kind).lower().startswith(NOT_NUMBERS)


def _in_one_line(error: ValueError) -> str:
    """Return the message of an error without the rows that scikit-learn repeats in it."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(("array=", "[")))


def _check_columns(X: Any, estimator: Any, reset: bool) -> None:
    """Check the number and names of the columns of a file, or store them if `reset`."""
    from sklearn.utils.validation import validate_data

    names = getattr(X, "names", None)
    known: Any = getattr(estimator, "feature_names_in_", None)
    if names is None or (known is None and not reset):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif list(known) != list(names):
        raise InvalidInputError(
            f"{X.path} has the columns {', '.join(names)}, but {type(estimator).__name__} was fitted on "
            f"{', '.join(map(str, known))}; name those in ravine.open(path, columns=...)"
        )


def is_block_source(X: Any) -> bool:
    """Whether rows are read block by block; a data frame may have a column of any name."""
    return callable(getattr(X, "read", None)) and hasattr(X, "lengths")


def check_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR with sorted entries and no duplicates; copied only if necessary.

    Its index arrays are checked: the compiled loops trust them, and an index out of range would read memory
    outside of the matrix.
    """
    parts: Any = None
    if X.ndim == 2 and X.format in ("csr", "csc", "bsr"):
        parts = (X.data, X.indices, X.indptr)
    elif X.ndim == 2 and X.format == "coo":
        parts = (X.data, (X.row, X.col))
    try:
        if parts is not None:  # a matrix of our own, because the check may replace its arrays
            X = type(X)(parts, shape=X.shape)
        if X.format in ("csc", "bsr"):
            X.check_format()
        rows = X.tocsr()
        rows.check_format()
    except (ValueError, IndexError) as error:
        raise InvalidInputError(
            f"X is a damaged {X.format.upper()} matrix ({error}); build it again from its data"
        ) from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


# --- weights, labels and seeds ---


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
    # Products of up to five weights occur, and have to be finite; a power of two changes no digit.
    largest = weights.max()
    exponent = int(np.frexp(largest)[1])
    inside = min(max(exponent, -MAX_EXPONENT), MAX_EXPONENT)
    if inside != exponent:
        weights = np.ldexp(weights, inside - exponent)
        largest = weights.max()
    lost = (weights > 0) & (weights < np.finfo(float).eps * largest)  # in every sum with the largest
    if not lost.any():
        return weights
    warnings.warn(
        f"{int(lost.sum())} rows are ignored: their weights are lost to rounding next to {largest:g}",
        UserWarning,
        stacklevel=2,
    )
    return np.where(lost, 0.0, weights)


def label_array(y: Any) -> npt.NDArray[Any]:
    """Return y as an array. Of a list with texts, numpy would turn NaN into the text "nan"."""
    return np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)


def has_label(given: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows have a label: not -1, also as text, and not None, NaN or the NA of pandas."""
    if given.dtype.kind not in "OUS":
        return np.asarray((given != UNLABELED) & (given == given))
    return np.array([not _is_unknown(label) for label in given], dtype=bool)


def _is_unknown(label: Any) -> bool:
    if isinstance(label, str):
        return label == str(UNLABELED)
    return str(label) in ("None", "nan", "<NA>", "NaT") or bool(label == UNLABELED)


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


# --- parameters ---


def check_int(name: str, value: Any, low: int, *, or_else: str = "") -> int:
    """Return `value` as an int of at least `low`."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not low <= int(value) <= sys.maxsize:
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
