"""The one entrance for rows from the user: arrays, memory maps, sparse matrices, data frames, files."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import listed
from ravine.exceptions import InvalidInputError
from ravine.io.block_file import is_block_source
from ravine.io.on_disk import FileMatrix

# how the names of the types of columns begin that are not numbers, in pandas and polars
NOT_NUMBERS = ("category", "categorical", "enum", "date", "time", "duration", "period", "interval")


def check_rows(X: Any, estimator: Any = None, *, reset: bool = True, min_rows: int = 0) -> Any:
    """Return rows of numbers as an array, a canonical CSR matrix or a `FileMatrix`; copied only if necessary.

    With an estimator, the number and names of the columns are also checked, or stored if `reset`. Values are
    not read: the first pass over the rows finds NaN and infinity.
    """
    from sklearn.utils.validation import check_array, validate_data

    if isinstance(X, FileMatrix) or is_block_source(X):  # rows that stay where they are
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


def check_csr(X: Any) -> Any:
    """Return a sparse matrix as CSR with sorted entries and no duplicates; copied only if necessary.

    Its index arrays are checked: the compiled loops trust them, and an index out of range would read memory
    outside of the matrix.
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
    """Refuse a sparse matrix whose index arrays do not match its shape and data."""
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
            raise _damaged(kind, f"an indptr that is not {n + 1} non-decreasing numbers from 0")
        stored = min(len(X.indices), len(X.data))
        if starts[-1] > stored:
            raise _damaged(kind, f"{stored} stored entries, but indptr ends at {starts[-1]}")
        _check_numbers(kind, which, X.indices[: starts[-1]], m)


def _check_numbers(kind: str, which: str, numbers: npt.NDArray[Any], n: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < n):
        raise _damaged(kind, f"{which} numbers from {numbers.min()} to {numbers.max()}, and {n} {which}s")


def _damaged(kind: str, has: str) -> InvalidInputError:
    return InvalidInputError(
        f"X is a damaged {kind.upper()} matrix, with {has}; build it again from its data"
    )
