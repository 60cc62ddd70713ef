import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_wine
from sklearn.metrics import v_measure_score

from ravine import InvalidInputError, metrics
from tests import judges

TRUE = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
PRED = np.array([0, 0, 1, 1, 1, 1, 1, 1, 0, 0])


def test_success_ratio_by_hand():
    # class 0 lies on side 0 (2 of 3), class 1 on side 1, class 2 is even and goes to the smaller side, 0
    # merged: C0 = {0, 2}, C1 = {1}; side 0 holds 4 of C0 and 0 of C1, side 1 holds 3 of C0 and 3 of C1
    error, success = 3, min(4, 3)
    assert metrics.success_ratio(TRUE, PRED) == pytest.approx(success / (success + error))


def test_binary_v_measure_is_that_of_the_merged_classes():
    merged = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0])
    assert metrics.binary_v_measure(TRUE, PRED) == pytest.approx(v_measure_score(merged, PRED))


def test_no_class_separated_is_zero():
    assert metrics.success_ratio([0, 0, 1], [0, 0, 0]) == 0.0
    assert metrics.success_ratio([0] * 5 + [1] * 5, [0] * 9 + [1]) == 0.0  # one row cut off
    assert metrics.binary_v_measure([0, 0, 1], [0, 0, 0]) == 0.0
    assert metrics.success_ratio(["a", "a", "a", "b"], [0, 0, 1, 1]) < 1.0
    assert metrics.binary_v_measure([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30))
def test_weights_are_repeats(rows):
    true, pred, counts = (np.array(column) for column in zip(*rows, strict=True))
    if counts.sum() == 0:
        counts[0] = 1
    for measure in (
        metrics.success_ratio,
        metrics.binary_v_measure,
        metrics.purity,
        metrics.clustering_error,
        metrics.v_measure,
    ):
        repeated = measure(np.repeat(true, counts), np.repeat(pred, counts))
        assert measure(true, pred, sample_weight=counts) == pytest.approx(repeated, abs=1e-9)


def test_purity_and_error():
    assert metrics.purity(TRUE, PRED) == pytest.approx((2 + 3) / 10)
    assert metrics.clustering_error(TRUE, PRED) == pytest.approx(0.5)


def test_bad_input_is_one_clear_error():
    with pytest.raises(InvalidInputError, match="same length"):
        metrics.purity([0, 1], [0])
    with pytest.raises(InvalidInputError, match="two clusters at most, got 3"):
        metrics.success_ratio([0, 1, 2], [0, 1, 2])


# --- separation probability ------------------------------------------------------------------------------

WINE, CLASSES = load_wine(return_X_y=True)


def msp_by_hand(X, right, ridge=0.0):
    """Definition 1 by a general optimizer from several starts."""
    (m1, S1), (m2, S2) = [(X[s].mean(axis=0), np.cov(X[s].T, bias=True)) for s in (~right, right)]
    extra = ridge * np.diag(X.var(axis=0))

    def minus_kappa(w):
        return -w @ (m2 - m1) / sum(np.sqrt(w @ (S + extra) @ w) for S in (S1, S2))

    starts = [np.linalg.solve(S1 + S2 + extra, m2 - m1), (m2 - m1) / X.var(axis=0)]
    kappa = max(-minimize(minus_kappa, w, tol=1e-12).fun for w in starts)
    return kappa**2 / (1 + kappa**2)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_separation_probability_is_definition_1(ridge):
    X = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)
    right = CLASSES == 2
    found = metrics.separation_probability(X, right, regularization=ridge)
    assert found == pytest.approx(msp_by_hand(X, right, ridge), rel=1e-6)
    assert found == pytest.approx(metrics.separation_probability(WINE, right, regularization=ridge), rel=1e-6)


def test_separation_probability_of_three_clusters_is_the_minimum_of_the_pairs():
    pairs = [k != CLASSES for k in range(3)]
    alone = [metrics.separation_probability(WINE[pair], CLASSES[pair]) for pair in pairs]
    assert metrics.separation_probability(WINE, CLASSES) == pytest.approx(min(alone), rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000))
def test_separation_probability_is_invariant_under_invertible_maps(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    labels = rng.integers(0, 2, 40)
    labels[:2] = 0, 1
    P = rng.standard_normal((3, 3)) + 2 * np.eye(3)
    if np.linalg.cond(P) > 1e3:
        P = np.diag([1e-3, 1.0, 1e3])
    one = metrics.separation_probability(X, labels)
    assert metrics.separation_probability(X @ P + 7, labels) == pytest.approx(one, rel=1e-5, abs=1e-9)
    scaled = X * rng.uniform(0.01, 100, 3)
    ridged = metrics.separation_probability(X, labels, regularization=0.5)
    assert metrics.separation_probability(scaled, labels, regularization=0.5) == pytest.approx(
        ridged, rel=1e-6
    )


def test_separation_probability_takes_weights_and_sparse_rows():
    counts = np.random.default_rng(0).integers(0, 3, len(WINE))
    weighted = metrics.separation_probability(WINE, CLASSES, sample_weight=counts)
    repeated = metrics.separation_probability(np.repeat(WINE, counts, axis=0), np.repeat(CLASSES, counts))
    assert weighted == pytest.approx(repeated, rel=1e-9)
    few = WINE * (WINE.mean(axis=0) < WINE)
    dense, csr = (metrics.separation_probability(X, CLASSES) for X in (few, sparse.csr_array(few)))
    assert csr == pytest.approx(dense, rel=1e-9)


def test_separation_probability_of_rows_that_share_no_direction_is_one():
    X = np.eye(6)  # more columns than rows of a cluster
    assert metrics.separation_probability(X, [0, 0, 0, 1, 1, 1]) == 1.0
    assert metrics.separation_probability(X, [0, 0, 0, 1, 1, 1], regularization=0.1) < 1.0


def test_bad_input_of_separation_probabilities_is_one_clear_error():
    with pytest.raises(InvalidInputError, match="two clusters are needed, got one"):
        metrics.separation_probability(WINE, np.zeros(178))
    with pytest.raises(InvalidInputError, match="each of 178 rows"):
        metrics.separation_probability(WINE, [0, 1])
    with pytest.raises(InvalidInputError, match="NaN"):
        metrics.separation_probability(np.where(WINE > 1000, np.nan, WINE), CLASSES)
    with pytest.raises(InvalidInputError, match="limited to 4096 features, got 5000"):
        metrics.separation_probability(np.ones((4, 5000)), [0, 0, 1, 1])


# --- judges by the graph of nearest neighbors, and by agreement -------------------------------------------


def edges_by_hand(X, n_neighbors):
    """The edges of the graph as a matrix: neighbors within the distance of the n-th other row, either way."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distance = squareform(pdist(Z))
    nth = np.sort(distance, axis=1)[:, n_neighbors]  # the row itself comes first
    near = distance <= nth[:, None] * (1 + 1e-9)
    np.fill_diagonal(near, False)
    return (near | near.T).astype(float)


def judged_by_hand(edges, labels):
    """Modularity and normalized cut, by the definition over all pairs of rows."""
    labels = np.asarray(labels)
    degree, whole = edges.sum(axis=1), edges.sum()
    same = labels[:, None] == labels[None, :]
    modularity = ((edges / whole - np.outer(degree, degree) / whole**2) * same).sum()
    cut = sum(
        edges[labels == k][:, labels != k].sum() / edges[labels == k].sum()
        for k in np.unique(labels).tolist()
    )
    return modularity, cut


@pytest.mark.parametrize("n_neighbors", [3, 10])
def test_judges_of_the_graph_are_their_definitions(n_neighbors):
    rng = np.random.default_rng(0)
    edges = edges_by_hand(WINE, n_neighbors)
    for labels in (CLASSES, CLASSES == 1, rng.integers(0, 4, len(WINE)), np.array(list("abc"))[CLASSES]):
        expected = judged_by_hand(edges, labels)
        found = [
            judge(WINE, labels, n_neighbors=n_neighbors)
            for judge in (judges.modularity, judges.normalized_cut)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_labels_unrelated_to_the_rows_have_no_modularity_and_true_ones_a_high_one():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (200, 3)), rng.normal(9, 1, (100, 3))])
    true = np.repeat([0, 1], [200, 100])
    assert judges.modularity(X, true) == pytest.approx(1 - (2 / 3) ** 2 - (1 / 3) ** 2, abs=0.02)
    assert judges.normalized_cut(X, true) == 0.0
    random = rng.integers(0, 3, 300)
    assert abs(judges.modularity(X, random)) < 0.05
    assert judges.normalized_cut(X, random) == pytest.approx(2.0, abs=0.1)
    assert judges.modularity(X, np.zeros(300)) == 0.0


def test_units_and_rotations_of_the_rows_do_not_change_the_graph():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    labels = rng.integers(0, 3, 300)
    units = X * [1e-6, 1.0, 1e3, 1e9] + [0, 5, -1e4, 1e12]
    turned = X @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    for judge in (judges.modularity, judges.normalized_cut):
        assert judge(units, labels) == pytest.approx(judge(X, labels), rel=1e-9)
        plain = [judge(rows, labels, standardize=False) for rows in (X, turned)]
        assert plain[0] == pytest.approx(plain[1], rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_in_the_graph_weights_are_repeats(seed, n_neighbors):
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((40, 2)), rng.integers(0, 4, 40)
    labels = rng.integers(0, 3, 40)
    for judge in (judges.modularity, judges.normalized_cut):
        once = judge(X, labels, n_neighbors=n_neighbors, sample_weight=counts)
        repeated = judge(np.repeat(X, counts, axis=0), np.repeat(labels, counts), n_neighbors=n_neighbors)
        assert once == pytest.approx(repeated, rel=1e-9, abs=1e-12)


def test_copies_of_a_row_in_different_clusters_are_neighbors():
    X = np.repeat([[0.0], [1.0], [5.0], [6.0]], 3, axis=0)
    labels = np.array([0, 0, 1] * 2 + [1, 1, 1] * 2)
    edges = (np.abs(X - X.T) < 0.5).astype(float) - np.eye(12)  # two neighbors: the two other copies
    expected = judged_by_hand(edges, labels)
    found = judges.modularity(X, labels, n_neighbors=2), judges.normalized_cut(X, labels, n_neighbors=2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sparse_rows_are_compared_by_their_angle():
    rng = np.random.default_rng(0)
    topic = np.repeat([0, 1], 60)
    X = rng.poisson(np.array([[4.0] * 5 + [0.2] * 5, [0.2] * 5 + [4.0] * 5])[topic]).astype(float)
    lengths = rng.uniform(0.01, 100.0, (120, 1))
    one, other = (judges.modularity(sparse.csr_matrix(rows), topic) for rows in (X, X * lengths))
    assert one == pytest.approx(other, rel=1e-12)
    assert one > 0.45
    assert judges.normalized_cut(sparse.csr_matrix(X * lengths), topic) < 0.1
    assert judges.modularity(X, topic) != pytest.approx(judges.modularity(X * lengths, topic), rel=1e-6)


def test_large_data_are_judged_on_a_sample_that_is_fair():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    true = np.repeat([0, 1, 2], [9000, 2000, 1000])  # sorted: the first rows would not do
    X = centers[true] + rng.standard_normal((12000, 2))
    whole = judges.modularity(X, true, max_rows=12000)
    assert judges.modularity(X, true) == pytest.approx(whole, abs=0.02)
    assert judges.modularity(X, true, max_rows=1000) == pytest.approx(whole, abs=0.05)


def test_agreement_is_the_mean_v_measure_against_the_others():
    rng = np.random.default_rng(0)
    labelings = [rng.integers(0, k, 50) for k in (2, 3, 5)] + [np.zeros(50)]
    weights = rng.integers(0, 3, 50)
    for w in (None, weights):
        repeats = np.ones(50, dtype=int) if w is None else w
        expected = [
            np.mean([v_measure_score(np.repeat(a, repeats), np.repeat(b, repeats)) for b in others])
            for i, a in enumerate(labelings)
            for others in [labelings[:i] + labelings[i + 1 :]]
        ]
        np.testing.assert_allclose(metrics.agreement(labelings, sample_weight=w), expected, atol=1e-12)
    assert metrics.agreement([[0, 1]]).tolist() == [1.0]


def test_agreement_needs_a_labeling():
    with pytest.raises(InvalidInputError, match="at least one labeling"):
        metrics.agreement([])
