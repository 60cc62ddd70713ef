"""Views and edits take files and dask collections, and say the same about them as about arrays."""

import re

import numpy as np
import pytest

import ravine
from ravine import MinimumDensity
from ravine.tree import simplify

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.normal(size=(N, 4)) + 7.0 * np.eye(4)[RNG.integers(4, size=N)]
WEIGHTS = RNG.integers(0, 3, N).astype(float)


@pytest.fixture(scope="module")
def model():
    return MinimumDensity(4).fit(X)


@pytest.fixture(params=["npy", "dask"])
def rows(request, tmp_path):
    if request.param == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(8192, 4))
    np.save(tmp_path / "rows.npy", X)
    return ravine.open(tmp_path / "rows.npy")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_explanation_and_exemplars(model, rows, weights):
    one, two = (ravine.explain(model, some, sample_weight=weights) for some in (X, rows))
    assert one == two
    one, two = (model.tree_.exemplars(some, 5, sample_weight=weights) for some in (X, rows))
    np.testing.assert_array_equal(one, two)


def test_report(model, rows):
    pages = [ravine.report(model, some, labels=X[:, 0] > 3.5) for some in (X, rows)]
    assert pages[0] == pages[1]
    assert re.search("V-measure", pages[0])


def test_exemplars_are_those_of_a_plain_search(model):
    labels, scale = model.labels_, X.std(axis=0)
    for k, found in enumerate(model.tree_.exemplars(X, 4)):
        members = np.flatnonzero(labels == k)
        distance = (((X[members] - X[members].mean(axis=0)) / scale) ** 2).sum(axis=1)
        np.testing.assert_array_equal(found, members[np.argsort(distance)[:4]])


def test_simplify(model, rows, monkeypatch):
    assert model.tree_.simplify(rows) == model.tree_.simplify(X)
    monkeypatch.setattr(simplify, "EXACT_ROWS", 4000)
    one, two = model.tree_.simplify(X), model.tree_.simplify(rows)
    assert one == two
    np.testing.assert_array_equal(one.weight[one.leaves], np.bincount(one.predict(X)))
    assert (one.predict(X) != model.labels_).mean() < 0.05


def test_resplit(model, rows):
    node = int(model.tree_.inner[1])
    one, two = (model.tree_.resplit(node, MinimumDensity(3), some) for some in (X, rows))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert one.n_clusters == two.n_clusters > model.n_clusters_ - 1
    one, two = (
        model.tree_.resplit(node, MinimumDensity(3), some, sample_weight=WEIGHTS) for some in (X, rows)
    )
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
