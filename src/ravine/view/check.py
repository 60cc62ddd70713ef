"""A check of a table before it is clustered: columns and rows that make clusters for the wrong reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import check_rows, is_block_source, listed
from ravine.data.blocks import cache_rows
from ravine.data.rows import is_dask
from ravine.exceptions import InvalidInputError
from ravine.view.column_facts import ColumnFacts

Mask = npt.NDArray[np.bool_]

ID_SHARE = 0.95  # share of different values from which whole numbers look like ids; it is known to 1.6 %
MIN_ID_ROWS = 30  # rows below which whole numbers are often all different by chance

# What a kind of finding says about columns, with the verb for one of them or for several, and what to do.
SENTENCES = {
    "id": (
        "{have} a different whole number in nearly every row, like an id",
        "leave out columns that measure nothing",
    ),
    "constant": ("{are} constant", "constant columns have no influence"),
    "two-valued": (
        "{have} only two values, so that the gap between them looks like a valley",
        "leave out what should not define clusters",
    ),
    "not a number": ("{have} no numbers", "encode, for instance one-hot, or leave out"),
}


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table before clustering it.

    Attributes
    ----------
    kind : str
        "id", "constant", "two-valued", "duplicate column", "duplicate rows", "missing", "infinite" or
        "not a number".
    columns : tuple of str
        Names of the columns; empty for duplicate rows.
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
    """Find columns and rows that create clusters for the wrong reason.

    Reports columns that look like ids, are constant, two-valued, or the same as another one,
    and the number of duplicate rows and of missing values. Each finding says what to do; the data are
    not changed. For a sparse matrix, only constant and repeated columns, duplicate rows and values that are
    not finite are reported.

    Cost: one pass over the rows, O(n d) time, and 17 bytes of memory per row. Of a file or a Dask collection,
    one block or partition is in memory at a time.

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
    of_others = tuple(_about("not a number", others, np.full(len(others), True)))
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
    yield from _about("constant", names, constant)
    different = np.array([facts.n_different(j) for j in range(facts.n_columns)])
    ids = facts.whole & (different >= ID_SHARE * facts.n_rows) & (facts.n_rows >= MIN_ID_ROWS)
    yield from _about("id", names, ids)
    yield from _about("two-valued", names, different == 2)
    yield from _find_repeated(facts, names, ~constant)
    if n := facts.n_duplicate_rows():
        what = f"{n} of {facts.n_rows} rows repeat{'s' * (n == 1)} an earlier one"
        yield Finding("duplicate rows", (), what, "remove them, unless repeated rows are expected")


def _find_repeated(facts: ColumnFacts, names: Sequence[str], candidates: Mask) -> Iterator[Finding]:
    """Yield the columns that are the same as an earlier one."""
    first: dict[int, int] = {}
    pairs = []
    for j in np.flatnonzero(candidates).tolist():
        earlier = first.setdefault(int(facts.column_hash[j]), j)
        if earlier != j:
            pairs.append((j, earlier))
    if pairs:
        fact = listed([f"{names[j]} is the same as {names[i]}" for j, i in pairs])
        columns = tuple(names[j] for j, _ in pairs)
        yield Finding("duplicate column", columns, fact, "leave one of them out")


def _about(kind: str, names: Sequence[str], where: Mask) -> Iterator[Finding]:
    """Yield a finding about some columns, if there are any."""
    columns = tuple(name for name, found in zip(names, where, strict=True) if found)
    if columns:
        verbs = {"are": "is", "have": "has"} if len(columns) == 1 else {"are": "are", "have": "have"}
        fact, advice = SENTENCES[kind]
        yield Finding(kind, columns, f"{listed(columns)} {fact.format(**verbs)}", advice)
