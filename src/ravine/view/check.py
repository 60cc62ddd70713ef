"""A check of a table before it is clustered: columns that make clusters for the wrong reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, check_rows, is_block_source, listed
from ravine.data.blocks import cache_rows
from ravine.data.rows import is_dask
from ravine.data.sample import hashes
from ravine.exceptions import InvalidInputError

ID_SHARE = 0.95  # share of different values from which whole numbers look like ids; it is known to 1.6 %
KEPT_HASHES = 4096  # smallest hashes of a column: up to so many different values are counted exactly


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table before clustering it.

    Attributes
    ----------
    kind : str
        "id", "constant", "two-valued", "missing", "infinite" or "not a number".
    columns : tuple of str
        Names of the columns.
    fact : str
        What was found.
    advice : str
        What to do about it.
    """

    kind: str
    columns: tuple[str, ...]
    fact: str
    advice: str

    @property
    def sentence(self) -> str:
        """The fact and the advice."""
        return f"{self.fact}; {self.advice}"


@dataclass(frozen=True, repr=False)
class DataCheck:
    """The findings about a table; iterate over it, print it, or show it in a notebook.

    Attributes
    ----------
    n_rows, n_columns : int
        Shape of the table.
    findings : tuple of Finding
        The findings.
    """

    n_rows: int
    n_columns: int
    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = [f"{finding.kind}: {finding.sentence}" for finding in self.findings]
        return "\n".join([f"{self.n_rows} rows, {self.n_columns} columns", *(lines or ["nothing to note"])])


def check(X: Any, feature_names: Sequence[str] | None = None) -> DataCheck:
    """Find columns that create clusters for the wrong reason.

    Reports columns that look like ids, are constant or two-valued, or have missing values. Each finding says
    what to do; the data are not changed. For a sparse matrix, only constant columns and values that are not
    finite are reported.

    Cost: one pass over the rows and O(n d) time. Of a file or a Dask collection, one block or partition is in
    memory at a time.

    Parameters
    ----------
    X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
        The rows, a file as `ravine.open(path)`, or a dask array or data frame. Columns of a data frame that
        hold no numbers are reported.
    feature_names : sequence of str, optional
        The names of the columns; by default those of X, or x0, x1, ...

    Returns
    -------
    DataCheck
        An iterable of findings, each with `kind`, `columns` and `sentence`.

    Examples
    --------
    >>> import numpy as np, ravine
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.arange(100), rng.integers(2, size=100), rng.normal(size=100)])
    >>> for finding in ravine.check(X, ["customer", "member", "age"]):
    ...     print(finding.kind, finding.columns)
    id ('customer',)
    two-valued ('member',)
    """
    X, names, others = _numeric_columns(X)
    of_others = tuple(
        _about("not a number", others, "{have} no numbers", "encode, for instance one-hot, or leave out")
    )
    if names == []:
        return DataCheck(len(X), len(others), of_others)
    width, parts = _parts(X)
    if feature_names is None:
        feature_names = names or getattr(X, "names", None) or [f"x{j}" for j in range(width)]
    labels = tuple(map(str, feature_names))
    if len(labels) != width:
        raise InvalidInputError(f"feature_names has {len(labels)} names for {width} columns")
    facts = ColumnFacts(width)
    for block in _blocks(parts):
        facts.add(block)
    return DataCheck(facts.n_rows, width + len(others), (*_findings(facts, labels), *of_others))


def _numeric_columns(X: Any) -> tuple[Any, list[str] | None, tuple[str, ...]]:
    """Return a data frame's columns of numbers, their names, and the names of its other columns."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return X, None, ()
    is_numeric = dict(zip(X.columns, map(_is_numeric, X.dtypes), strict=True))
    kept = [name for name in X.columns if is_numeric[name]]
    others = tuple(str(name) for name in X.columns if not is_numeric[name])
    return X[kept], [str(name) for name in kept], others


def _is_numeric(dtype: Any) -> bool:
    """Whether a type of pandas or polars holds numbers or booleans."""
    if hasattr(dtype, "is_numeric") and callable(dtype.is_numeric):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def _parts(X: Any) -> tuple[int, Iterable[Any]]:
    """Return the number of columns, and the rows in the parts that are in memory at the same time."""
    if is_dask(X):
        from ravine.data.dask_engine import read_partitions

        return read_partitions(X)
    rows: Any = check_rows(X)
    parts = map(rows.read, range(len(rows.lengths))) if is_block_source(rows) else [rows]
    return rows.shape[1], parts


def _blocks(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows in blocks that fit a processor's cache."""
    for rows in parts:
        n, d = rows.shape
        step = cache_rows(max(d, 1), sparse.issparse(rows))
        for start in range(0, n, step):
            yield rows[start : start + step]


class ColumnFacts:
    """Counts and ranges of the columns of a table; ranges leave out what is not finite."""

    def __init__(self, n_columns: int) -> None:
        self.n_rows, self.n_columns = 0, n_columns
        self.n_missing, self.n_infinite = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
        self.low, self.high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
        self.whole = np.ones(n_columns, dtype=bool)  # whether all values are whole numbers
        self.different = [np.empty(0, dtype=np.uint64)] * n_columns  # the smallest hashes of the values

    def add(self, rows: Any) -> None:
        """Add a block of rows, an array or a CSR matrix."""
        if sparse.issparse(rows):
            self._add_stored(rows)
        else:
            self._add_values(np.asarray(rows, dtype=np.float64))
        self.n_rows += rows.shape[0]

    def _add_stored(self, rows: Any) -> None:
        """Add the stored values of a CSR matrix: only counts and range."""
        values, where, d = rows.data.astype(np.float64), rows.indices, self.n_columns
        self.n_missing += np.bincount(where[np.isnan(values)], minlength=d)
        self.n_infinite += np.bincount(where[np.isinf(values)], minlength=d)
        finite = np.where(np.isfinite(values), values, 0.0)
        bounded = sparse.csr_array((finite, where, rows.indptr), shape=rows.shape)
        self.low = np.minimum(self.low, bounded.min(axis=0).toarray().ravel())
        self.high = np.maximum(self.high, bounded.max(axis=0).toarray().ravel())

    def _add_values(self, values: FloatArray) -> None:
        finite = np.isfinite(values)
        self.n_missing += np.isnan(values).sum(axis=0)
        self.n_infinite += np.isinf(values).sum(axis=0)
        self.low = np.minimum(self.low, np.where(finite, values, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(finite, values, -np.inf).max(axis=0))
        self.whole &= (finite & (np.floor(values) == values)).all(axis=0)
        for j, kept in enumerate(self.different):
            # nobody asks how many different values other columns have
            if self.whole[j] or len(kept) <= 2:
                bits = (values[finite[:, j], j] + 0.0).view(np.int64)  # of -0 as of 0
                self.different[j] = np.union1d(kept, hashes(bits, 0))[:KEPT_HASHES]

    def n_different(self, column: int) -> float:
        """Return how many different values a column has, estimated beyond KEPT_HASHES.

        It is at least 3 for columns of more than two values that are not all whole numbers, and 0 for those
        of a sparse matrix.
        """
        kept = self.different[column]
        if len(kept) < KEPT_HASHES:
            return float(len(kept))
        # Hashes are spread evenly over the numbers of 64 bits: how far up the smallest ones reach tells how
        # many there are.
        return (KEPT_HASHES - 1) / (float(kept[-1]) / 2.0**64)


def _findings(facts: ColumnFacts, names: Sequence[str]) -> Iterator[Finding]:
    """Yield what there is to say about a table; of the values of a sparse matrix, only what is constant."""
    impute = "impute them, for instance with sklearn.impute.SimpleImputer, or leave those rows out"
    for kind, counts, advice in (
        ("missing", facts.n_missing, impute),
        ("infinite", facts.n_infinite, "correct them"),
    ):
        columns = np.flatnonzero(counts).tolist()
        if columns:
            few = listed([f"{names[j]} ({counts[j]})" for j in columns])
            total = int(counts.sum())
            fact = f"{total} {kind} value{'s' * (total > 1)} in {few}"
            yield Finding(kind, tuple(names[j] for j in columns), fact, advice)
    constant = (facts.low >= facts.high) & (facts.n_missing + facts.n_infinite == 0)
    different = np.array([facts.n_different(j) for j in range(facts.n_columns)])
    ids = facts.whole & (different >= ID_SHARE * facts.n_rows)

    def names_where(found: npt.NDArray[np.bool_]) -> list[str]:
        return [names[j] for j in np.flatnonzero(found).tolist()]

    yield from _about(
        "constant", names_where(constant), "{are} constant", "constant columns have no influence"
    )
    yield from _about(
        "id",
        names_where(ids),
        "{have} a different whole number in nearly every row, like an id",
        "leave out columns that measure nothing",
    )
    yield from _about(
        "two-valued",
        names_where(different == 2),
        "{have} only two values, so that the gap between them looks like a valley",
        "leave out what should not define clusters",
    )


def _about(kind: str, columns: Sequence[str], fact: str, advice: str) -> Iterator[Finding]:
    """Yield a finding about some columns, if there are any, with the verb for one of them or for several."""
    if columns:
        verbs = {"are": "is", "have": "has"} if len(columns) == 1 else {"are": "are", "have": "have"}
        yield Finding(kind, tuple(columns), f"{listed(columns)} {fact.format(**verbs)}", advice)
