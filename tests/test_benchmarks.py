"""The benchmarks' own parts: loading, and the fall back to OpenML with a stub in its place."""

import csv
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from benchmarks import datasets, papers

RNG = np.random.default_rng(0)


def fake_openml(name, *, version, as_frame, parser):
    labels = RNG.integers(0, 2, 120)
    data = pd.DataFrame({"x": RNG.standard_normal(120) + 6 * labels, "y": RNG.standard_normal(120)})
    data["vote"] = pd.Categorical(np.where(labels == 1, "yes", "no"))
    data.loc[0, "vote"] = np.nan
    data.loc[1, "y"] = np.nan
    return SimpleNamespace(data=data, target=pd.Series(np.where(labels == 1, "b", "a")), name=(name, version))


def test_without_a_directory_the_sets_come_from_openml(monkeypatch, tmp_path):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fake_openml)
    X, y = datasets.load("wine")
    assert X.shape == (120, 3)
    assert np.isfinite(X).all()
    assert set(y) == {0, 1}
    out = tmp_path / "mdh.csv"
    assert papers.main(["--table", "mdh", "--out", str(out)]) == 0
    with open(out) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13 + 2
    assert all(float(row["success_ratio"]) > 0.9 for row in rows)


def test_a_directory_is_read_from_npz(tmp_path):
    np.savez(tmp_path / "wine.npz", X=np.arange(6, dtype=np.uint8).reshape(3, 2), y=np.array([0, 1, 1]))
    X, y = datasets.load("wine", str(tmp_path))
    assert X.dtype == np.float64
    assert y.tolist() == [0, 1, 1]


def test_a_set_that_nobody_has_is_said_by_name():
    with pytest.raises(KeyError, match="s1 is not on OpenML: give its directory with --data"):
        datasets.load("s1")


def test_every_set_of_the_paper_has_a_name_on_openml():
    with open(papers.TABLES / "mdh_table2.csv") as file:
        names = {row["dataset"] for row in csv.DictReader(file)} - {"smartphone"}
    assert names <= set(datasets.OPENML)
