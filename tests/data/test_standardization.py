import numpy as np
import pytest
from scipy import sparse

from ravine import InvalidInputError, PrincipalDirection
from ravine.data import node as nodes
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.principal import fix_sign, principal
from ravine.data.query import run
from ravine.data.sample import hashes
from ravine.exceptions import OutlierWarning
from tests.engines import in_blocks
from tests.nodes import node_of

RNG = np.random.default_rng(0)


def standardization(X, weights=None, **options):
    return run(measure(node_of(X, weights, **options))).standardization


def first_looked_at(n):
    """The rows, of n, that give the first guess of means and scales."""
    return np.argsort(hashes(np.arange(n), 0))[: nodes.FEW_ROWS]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_mean_and_deviation(store):
    X = RNG.normal(3.0, 2.0, (500, 4))
    found = standardization(store(X))
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(1 / found.inverse_scale, X.std(axis=0), rtol=1e-12)


def test_weights_are_copies():
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


def test_a_wrong_first_guess_is_corrected_by_a_second_pass():
    X = np.zeros((5000, 2))
    X[:, 1] = RNG.standard_normal(5000)
    unseen = np.setdiff1d(np.arange(5000), first_looked_at(5000))
    X[unseen[[17, 4001]], 0] = 1e300
    rows = MemoryRows(X)
    found = run(measure(Node(rows))).standardization
    share = 2 / 5000
    assert 1 / found.inverse_scale[0] == pytest.approx(1e300 * np.sqrt(share * (1 - share)), rel=1e-9)
    assert rows.reads.rows == 2 * 5000 + nodes.FEW_ROWS


def test_a_good_first_guess_needs_no_second_pass():
    rows = MemoryRows(1e9 + RNG.standard_normal((5000, 2)))
    run(measure(Node(rows)))
    assert rows.reads.rows == 5000 + nodes.FEW_ROWS
    below = MemoryRows(rows.array[:1000])
    run(measure(Node(below, root_standardization=standardization(rows.array))))
    assert below.reads.rows == 1000


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_rows_in_blocks_have_the_standardization_of_rows_in_memory(store):
    X, weights = RNG.normal(3.0, 2.0, (500, 4)), RNG.integers(0, 3, 500).astype(float)
    one = run(measure(Node(in_blocks(store(X), weights, 70)))).standardization
    two = standardization(store(X), weights)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-12)
    np.testing.assert_allclose(one.inverse_scale, two.inverse_scale, rtol=1e-12)


def test_normals_and_directions_are_each_other_inverted():
    X = np.column_stack([RNG.normal(3.0, [1.0, 5.0, 0.1], (200, 3)), np.ones(200)])
    own = standardization(X)
    v = np.append(RNG.standard_normal(3), 0.0)
    np.testing.assert_allclose(own.directions(own.normals(v)), v, rtol=1e-12)
    np.testing.assert_allclose((X - own.mean) @ own.normals(v), own.apply(X) @ v, atol=1e-12)
    assert own.directions(np.ones(4))[3] == 0.0
    assert own.varies.tolist() == [True, True, True, False]


def test_standardizations_are_identified_by_what_they_do():
    X = RNG.standard_normal((50, 2))
    one, again, other = standardization(X), standardization(X.copy()), standardization(X + 1)
    assert one.key == again.key != other.key


def test_constant_columns_are_found_exactly():
    noise = np.random.default_rng(0).standard_normal(
        300
    )  # the limit is 1e-11 of the largest value, here 1e-12
    X = np.column_stack([np.full(300, 0.1), 0.1 + 1e-13 * noise, 0.1 + 1e-11 * noise])
    assert standardization(X).constant.tolist() == [True, True, False]
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
    node = run(measure(node_of(store(X), standardize=False)))
    found = run(principal(node, 3))
    scale = node.standardization.inverse_scale[0]
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True) * scale**2)
    np.testing.assert_allclose(found.deviations, np.sqrt(values[::-1][:3]), rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(np.sum(found.directions * vectors[:, ::-1].T[:3], axis=1)), 1.0, rtol=1e-6
    )
    assert all(v[np.argmax(np.abs(v))] > 0 for v in found.directions)
    assert found.scatter == pytest.approx(((X - X.mean(axis=0)) ** 2).sum() * scale**2)


@pytest.mark.parametrize("d", [10, 300])
def test_principal_directions_of_weighted_rows_are_those_of_copies(d):
    rng = np.random.default_rng(3)
    X, counts = rng.standard_normal((600, d)), rng.integers(0, 3, 600)
    X[:, :3] *= [20.0, 10.0, 5.0]
    one, two = (
        run(principal(run(measure(node)), 3))
        for node in (
            node_of(X, counts.astype(float), standardize=False),
            node_of(np.repeat(X, counts, axis=0), standardize=False),
        )
    )
    np.testing.assert_allclose(one.directions, two.directions, atol=1e-5)
    np.testing.assert_allclose(one.deviations, two.deviations, rtol=1e-7)
    assert one.scatter == pytest.approx(two.scatter)


@pytest.mark.parametrize("d", [10, 300])
def test_mirrored_rows_have_the_same_principal_directions(d):
    X = np.random.default_rng(4).standard_normal((600, d)) * np.append([20.0, 10.0, 5.0], np.ones(d - 3))
    plus, minus = (run(principal(run(measure(node_of(sign * X))), 3)) for sign in (1.0, -1.0))
    np.testing.assert_array_equal(plus.directions, minus.directions)
    np.testing.assert_array_equal(plus.deviations, minus.deviations)


def test_fix_sign_makes_the_largest_component_positive():
    assert fix_sign(np.array([1.0, -3.0])).tolist() == [-1.0, 3.0]
    assert fix_sign(np.array([1.0, 3.0])).tolist() == [1.0, 3.0]


def test_the_first_guess_comes_from_rows_that_count():
    X = 1e9 + RNG.standard_normal((1000, 2))
    weights = np.ones(1000)
    weights[first_looked_at(1000)] = 0.0
    one, two = standardization(X, weights), standardization(X[weights > 0])
    np.testing.assert_allclose(one.inverse_scale, two.inverse_scale, rtol=1e-9)


def test_rows_beside_a_row_very_far_away_are_constant_in_its_scale():
    X = np.concatenate([RNG.standard_normal((50, 3)), np.full((1, 3), 1e200)])
    root = standardization(X)
    below = standardization(X[:50], root_standardization=root)
    assert (below.inverse_scale == 0).all()
    with pytest.warns(OutlierWarning, match="row 50 is far"):
        assert PrincipalDirection(3).fit(X).n_clusters_ == 3


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_rows_than_directions_wanted_have_the_directions_that_they_span(store, n):
    X = np.random.default_rng(0).standard_normal((n, 300))
    node = run(measure(node_of(store(X), standardize=False)))
    found = run(principal(node, 6))
    Z = node.standardization.apply(X)
    values = np.linalg.svd(Z, compute_uv=False) / np.sqrt(n)
    np.testing.assert_allclose(found.deviations[: n - 1], values[: n - 1], rtol=1e-6)
    assert np.abs(found.deviations[n - 1 :]).max(initial=0.0) < 1e-6
    assert np.isfinite(found.directions).all()
