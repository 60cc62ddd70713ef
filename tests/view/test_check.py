"""The data check, against slow answers from pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import ravine
from ravine.view import check as module
from ravine.view.check import ColumnFacts

RNG = np.random.default_rng(0)
N = 6000  # more values than a column keeps hashes of
SKEWED = np.exp(3 * RNG.standard_normal(N))
FRAME = pd.DataFrame(
    {
        "id": RNG.permutation(N) + 10.0**6,
        "nearly": np.where(np.arange(N) < 20, 1, np.arange(N)),
        "half": np.arange(N) // 2,
        "count": RNG.poisson(5.0, N),
        "one": 7.0,
        "member": RNG.choice([3.5, -1.0], N),
        "tail": SKEWED,
        "holes": np.where(np.arange(N) % 100 == 0, np.nan, RNG.standard_normal(N)),
        "word": "x",
    }
)
EXPECTED = {
    "missing": ("holes",),
    "constant": ("one",),
    "id": ("id", "nearly"),
    "two-valued": ("member",),
    "not a number": ("word",),
}


def kinds(found):
    return {finding.kind: finding.columns for finding in found}


@pytest.mark.parametrize("kind", ["pandas", "polars", "small blocks", "file", "dask"])
def test_every_kind_of_finding(kind, monkeypatch, tmp_path):
    rows, expected = FRAME, EXPECTED
    if kind == "polars":
        rows = pl.from_pandas(FRAME)
    if kind == "dask":
        rows = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=4)
    if kind == "small blocks":
        monkeypatch.setattr(module, "cache_rows", lambda *_: 700)
    if kind == "file":
        FRAME.to_parquet(tmp_path / "t.parquet", row_group_size=1000)
        with pytest.warns(UserWarning, match="text"):
            rows = ravine.open(tmp_path / "t.parquet")
        expected = {name: columns for name, columns in EXPECTED.items() if name != "not a number"}
    found = ravine.check(rows)
    assert kinds(found) == expected
    assert found.n_rows == N
    by_kind = {finding.kind: finding for finding in found}
    n = int(FRAME["holes"].isna().sum())
    assert by_kind["missing"].sentence.startswith(f"{n} missing values in holes")


def test_clean_rows_have_nothing_to_note():
    found = ravine.check(RNG.standard_normal((200, 3)))
    assert list(found) == []
    assert str(found) == "200 rows, 3 columns\nnothing to note"
    assert repr(found) == str(found)


def test_the_result_prints():
    found = ravine.check(np.ones((40, 1)), ["<b>"])
    first, constant = str(found).splitlines()
    assert first == "40 rows, 1 columns"
    assert constant.startswith("constant: <b> is constant; ")
    assert len(found) == 1
    with pytest.raises(ravine.InvalidInputError, match="2 names for 1 columns"):
        ravine.check(np.ones((40, 1)), ["a", "b"])


def test_a_table_without_numbers_is_no_error():
    found = ravine.check(pd.DataFrame({"word": list("abcd") * 10}))
    assert kinds(found) == {"not a number": ("word",)}
    assert (found.n_rows, found.n_columns) == (40, 1)


def test_infinite_values_many_columns_and_few_rows():
    X = np.ones((40, 8))
    X[3, 2], X[5, 2] = np.inf, -np.inf
    found = {finding.kind: finding.fact for finding in ravine.check(X)}
    assert found["infinite"] == "2 infinite values in x2 (2)"
    assert found["constant"] == "x0, x1, x3, x4, x5, ... are constant"
    assert "id" not in kinds(ravine.check(np.arange(40.0)[:, None] // 2))
    assert "id" in kinds(ravine.check(np.arange(40.0)[:, None]))


def test_sparse_rows():
    X = sparse.random_array((300, 50), density=0.05, format="csr", random_state=0)
    values = X.toarray()
    values[:, 7], values[values[:, 8] > 0, 8] = 0.0, np.nan
    found = ravine.check(sparse.csr_array(values))
    assert kinds(found) == {"missing": ("x8",), "constant": ("x7",)}


def test_the_number_of_different_values_is_exact_for_few_and_close_for_many():
    for n in (1000, 20_000):
        facts = ColumnFacts(1)
        for _ in range(2):
            facts.add(RNG.permutation(n)[:, None].astype(float))
        assert facts.n_different(0) == (n if n == 1000 else pytest.approx(n, rel=0.1))
