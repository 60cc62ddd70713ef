import numpy as np
import pytest
from scipy import sparse

from ravine import InvalidInputError, PrincipalDirection
from ravine.data import standardization as frames
from ravine.data.memory import MemoryRows
from ravine.data.node import measure
from ravine.data.principal import fix_sign, principal
from ravine.data.query import run
from ravine.data.standardization import standardization_of

RNG = np.random.default_rng(0)


def standardization(X, weights=None, standardize=True):
    rows = MemoryRows(X, weights)
    return run(rows, standardization_of(rows, None, standardize))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_mean_and_deviation(store):
    X = RNG.normal(3.0, 2.0, (500, 4))
    found = standardization(store(X))
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(1 / found.inverse_scale, X.std(axis=0), rtol=1e-12)


def test_weights_are_repeats():
    X, counts = RNG.standard_normal((200, 3)), RNG.integers(0, 4, 200)
    one, two = standardization(X, counts.astype(float)), standardization(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-12)
    np.testing.assert_allclose(one.inverse_scale, two.inverse_scale, rtol=1e-12)
    assert one.total == two.total


@pytest.mark.parametrize(("center", "spread"), [(1e9, 1.0), (1e300, 1e298), (1e-300, 1e-301), (0.0, 1e-300)])
def test_far_means_and_extreme_values_keep_their_digits(center, spread):
    Z = RNG.standard_normal((4000, 1))
    X = center + spread * Z
    exact = (X - center) / spread  # what is left of Z after rounding to the grid of the center
    found = standardization(X)
    assert (found.mean[0] - center) / spread == pytest.approx(exact.mean(), abs=1e-6)
    assert 1 / (found.inverse_scale[0] * spread) == pytest.approx(exact.std(), rel=1e-6)


def test_a_peek_that_misled_is_put_right_by_a_second_pass():
    X = np.zeros((5000, 2))
    X[:, 1] = RNG.standard_normal(5000)
    X[[17, 4001], 0] = 1e300  # no row that the peek sees
    rows = MemoryRows(X)
    found = run(rows, measure(rows))
    share = 2 / 5000
    assert 1 / found.inverse_scale[0] == pytest.approx(1e300 * np.sqrt(share * (1 - share)), rel=1e-9)
    assert rows.reads.rows == 2 * 5000 + frames.PEEK_ROWS


def test_constant_columns_are_found_exactly():
    X = np.column_stack([np.full(300, 0.1), np.full(300, 0.1) + 1e-12 * RNG.standard_normal(300)])
    assert standardization(X).constant.tolist() == [True, False]
    assert standardization(X).inverse_scale[0] == 0.0


def test_a_sparse_column_whose_stored_values_are_equal_varies_by_its_zeros():
    X = np.zeros((60, 4))
    X[::4, 0] = 1.0  # an indicator
    X[1::3, 1] = -2.0
    X[:, 2] = 5.0  # stored in every row: this one is constant
    stored, dense = standardization(sparse.csr_array(X)), standardization(X)
    assert stored.constant.tolist() == dense.constant.tolist() == [False, False, True, True]
    np.testing.assert_allclose(stored.mean, X.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(stored.deviation, X.std(axis=0), atol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_nan_and_infinity_are_named_by_column(store, bad):
    X = RNG.standard_normal((3000, 4))
    X[1234, 2] = bad
    with pytest.raises(InvalidInputError, match="NaN or infinity in column 2"):
        standardization(store(X))


def test_nan_in_a_row_of_weight_zero_is_still_an_error():
    X = RNG.standard_normal((50, 2))
    X[3, 1] = np.nan
    with pytest.raises(InvalidInputError, match="column 1"):
        standardization(X, np.where(np.arange(50) == 3, 0.0, 1.0))


def test_without_standardizing_all_columns_keep_their_proportions():
    X = RNG.standard_normal((500, 3)) * [1.0, 10.0, 0.1]
    found = standardization(X, standardize=False)
    assert len(set(found.inverse_scale)) == 1
    assert found.unit == pytest.approx(np.sqrt(X.var(axis=0).mean()))
    assert found.inverse_scale[0] * found.unit == pytest.approx(1.0)


@pytest.mark.parametrize("d", [10, 300])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_principal_directions_are_those_of_the_covariance(store, d):
    scales = np.concatenate([[20.0, 10.0, 5.0], np.ones(d - 3)])
    rotation = np.linalg.qr(RNG.standard_normal((d, d)))[0]
    X = RNG.standard_normal((900, d)) * scales @ rotation
    rows = MemoryRows(store(X))
    found = run(rows, principal(rows, standardization(X, standardize=False), 3, np.random.default_rng(0)))
    scale = standardization(X, standardize=False).inverse_scale[0]
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True) * scale**2)
    np.testing.assert_allclose(found.deviations, np.sqrt(values[::-1][:3]), rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(np.sum(found.directions * vectors[:, ::-1].T[:3], axis=1)), 1.0, rtol=1e-6
    )
    assert all(v[np.argmax(np.abs(v))] > 0 for v in found.directions)
    assert found.scatter == pytest.approx(((X - X.mean(axis=0)) ** 2).sum() * scale**2)


def test_fix_sign_makes_the_largest_component_positive():
    assert fix_sign(np.array([1.0, -3.0])).tolist() == [-1.0, 3.0]
    assert fix_sign(np.array([1.0, 3.0])).tolist() == [1.0, 3.0]


def test_a_peek_looks_at_rows_that_count():
    X = 1e9 + RNG.standard_normal((1000, 2))
    weights = np.ones(1000)
    weights[np.linspace(0, 999, 256).astype(int)] = 0.0
    one, two = standardization(X, weights), standardization(X[weights > 0])
    np.testing.assert_allclose(one.inverse_scale, two.inverse_scale, rtol=1e-9)


def test_rows_beside_a_row_very_far_away_are_constant_in_its_scale():
    X = np.concatenate([RNG.standard_normal((50, 3)), np.full((1, 3), 1e200)])
    root = standardization(X)
    rows = MemoryRows(X[:50])
    below = run(rows, standardization_of(rows, root, True))
    assert (below.inverse_scale == 0).all()
    with pytest.warns(UserWarning, match="found 2 of 3"):
        assert PrincipalDirection(3).fit(X).n_clusters_ == 2
