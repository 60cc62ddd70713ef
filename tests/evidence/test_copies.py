"""Weights and copies in the significance test."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from ravine import MinimumDensity
from ravine.data.query import run
from ravine.evidence.copies import Copies, copies_of
from ravine.evidence.significance import SignificanceTest
from tests.evidence.test_significance import blobs
from tests.nodes import measured

COUNTS = np.array([1, 5, 2, 1, 1])


def found(rows, weights=None):
    node = measured(rows, weights)
    return copies_of(rows, np.ones(rows.shape[0]) if weights is None else weights, node.standardization)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_copies_are_rows_of_their_weight(kind):
    X = np.random.default_rng(0).standard_normal((40, 3))
    counts = np.tile(COUNTS, 8)
    copied = np.repeat(X, counts, axis=0)[np.random.default_rng(1).permutation(80)]
    weighted, repeated = found(kind(X), counts.astype(float)), found(kind(copied), np.ones(80))
    for one in (weighted, repeated):
        np.testing.assert_array_equal(one.weights, np.sort(counts)[::-1])
    assert (weighted.share, repeated.share) == (1.0, 0.5)
    noisy = found(kind(copied * (1 + 1e-12 * np.random.default_rng(2).standard_normal(copied.shape))))
    np.testing.assert_array_equal(noisy.weights, repeated.weights)


def test_single_rows_have_no_weights():
    X = np.random.default_rng(0).standard_normal((200, 3))
    assert found(X) == Copies()
    assert found(X).of_rows(5) is None
    assert found(X).n_effective() is None


@pytest.mark.parametrize("weights", [np.ones(300), np.full(300, 1e6)], ids=["1", "1e6"])
def test_equal_rows_of_discrete_columns_are_no_copies(weights):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (300, 3)).astype(float)
    assert found(table, weights) == Copies()
    grid = rng.integers(0, 60, (300, 1)) / 10.0
    assert found(np.hstack([table, grid]), weights) == Copies()
    assert found(np.hstack([table, rng.standard_normal((300, 1))]), 2.0 * weights).weights is not None


def test_the_effective_number_of_rows_is_that_of_equal_weights():
    assert Copies(np.full(7, 3.0)).n_effective() == pytest.approx(7.0)
    assert Copies(np.array([1e300, 1e300, 1.0])).n_effective() == pytest.approx(2.0)
    assert Copies(np.full(100, 3.0), 0.5).n_effective(2000) == pytest.approx(1000.0)


def test_weights_are_copies_for_the_references():
    X = np.random.default_rng(0).standard_normal((60, 3))
    counts = np.tile(COUNTS, 12)
    nodes = measured(X, counts.astype(float)), measured(np.repeat(X, counts, axis=0))
    test = SignificanceTest(MinimumDensity()._method(), 0.01)
    for one, two in zip(*(run(test.references(node)) for node in nodes), strict=True):
        first, second = (kind.node(node, 0, 1.0) for kind, node in zip((one, two), nodes, strict=True))
        assert first.n_rows == second.n_rows == 60
        np.testing.assert_array_equal(first.rows.weights, second.rows.weights)
        np.testing.assert_allclose(first.rows.array, second.rows.array, rtol=1e-6, atol=1e-9)
        assert one.effective == two.effective < 60


@pytest.mark.parametrize("weight", [3.0, 1000.0])
def test_the_number_of_clusters_is_that_of_the_rows_without_weights(weight):
    """1000 copies of 120 rows have gaps everywhere, which are no valleys (37 clusters were found)."""
    X, labels = blobs(3, 4, 0, n=40)
    assert (
        adjusted_rand_score(labels, MinimumDensity("auto").fit(X, sample_weight=np.full(120, weight)).labels_)
        == 1.0
    )


@pytest.mark.parametrize("weights", [np.full(120, 1e12), np.where(np.arange(120) % 2, 1e12, 1.0)])
def test_huge_weights_make_no_clusters(weights):
    """17 clusters were found, in half a minute."""
    X = blobs(3, 4, 0, n=40)[0]
    began = time.process_time()
    model = MinimumDensity("auto").fit(X, sample_weight=weights)
    assert model.n_clusters_ <= 3
    assert time.process_time() - began < 20.0
