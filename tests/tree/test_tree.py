"""Routing, memberships, cuts and edits, on small trees and on very large ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine

from ravine import ClusterTree, InvalidInputError, MinimumDensity, PrincipalDirection
from ravine.data.memory import MemoryRows
from ravine.split.boundary import Hyperplane
from ravine.split.split import Split
from ravine.tree.arrays import as_rows
from ravine.tree.edit import _keep_splits
from ravine.tree.export import DEEPEST
from ravine.tree.simplify import _best_threshold
from tests.changed_method import with_method
from tests.engines import in_blocks

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
WINE = load_wine().data
DIGITS = load_digits().data
MODEL = PrincipalDirection(8).fit(DIGITS)
TREE = MODEL.tree_


def staircase(n_leaves, d=2):
    """A tree that peels one leaf off at a time: as deep as it has leaves."""
    n_splits = n_leaves - 1
    n = 2 * n_splits + 1
    parent, left, right = (np.full(n, -1) for _ in range(3))
    order = np.full(n, -1)
    splits = [None] * n
    node = 0
    for k in range(n_splits):
        left[node], right[node] = 2 * k + 1, 2 * k + 2
        parent[2 * k + 1] = parent[2 * k + 2] = node
        plane = Hyperplane(np.eye(d)[0], np.zeros(d), k + 0.5)
        splits[node] = Split(plane, np.eye(d)[0], "made up", 1.0, 0.5, 100.0, 0.0, "made up", 1)
        order[node] = k
        node = 2 * k + 2
    return ClusterTree.of_leaves(parent, left, right, np.ones(n), tuple(splits), order, (None,) * n)


def partition(labels):
    """The partition behind labels, whatever their numbers."""
    return {frozenset(np.flatnonzero(labels == k)) for k in np.unique(labels)}


# --- rows ---


def test_a_tree_predicts_what_its_model_does_for_any_kind_of_rows():
    np.testing.assert_array_equal(TREE.predict(DIGITS), MODEL.labels_)
    np.testing.assert_array_equal(TREE.predict(sparse.csr_matrix(DIGITS)), MODEL.labels_)
    np.testing.assert_array_equal(TREE.predict(DIGITS.tolist()), MODEL.labels_)
    with pytest.raises(InvalidInputError, match="Expected 2D array"):
        TREE.predict(["a", "b"])


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_the_largest_membership_is_at_predict(k):
    tree = TREE.cut(k)
    share = tree.predict_proba(DIGITS)
    assert share.shape == (len(DIGITS), k)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.argmax(share, axis=1), tree.predict(DIGITS))
    if k > 1:
        assert share.min() >= 0
        assert ((share > 0.4) & (share < 0.6)).any()


def test_rows_exactly_on_a_hyperplane_have_even_memberships_and_the_label_of_predict():
    tree = staircase(4)
    on_planes = np.array([[0.5, 0.0], [1.5, 0.0], [2.5, 3.0]])
    share = tree.predict_proba(on_planes)
    np.testing.assert_array_equal(np.argmax(share, axis=1), tree.predict(on_planes))
    np.testing.assert_allclose(np.sort(share, axis=1)[:, -2:].sum(axis=1), 2 * share.max(axis=1), rtol=1e-12)


def test_memberships_of_merged_clusters_take_the_largest_leaf():
    merged = TREE.merge(0, 7)
    share = merged.predict_proba(DIGITS)
    assert share.shape[1] == 7
    np.testing.assert_array_equal(np.argmax(share, axis=1), merged.predict(DIGITS))


def test_scores_are_positive_for_the_own_leaf_only():
    scores = TREE.scores(TREE.distances(as_rows(DIGITS)))
    own = TREE.predict(DIGITS)
    assert (scores[np.arange(len(own)), own] >= 0).all()
    others = scores.copy()
    others[np.arange(len(own)), own] = -1
    assert (others <= 0).all()


def test_the_decision_path_leads_from_the_root_to_the_leaf():
    path = TREE.decision_path(DIGITS[:50])
    leaf = TREE.leaf_of(as_rows(DIGITS[:50]))
    for i in range(50):
        nodes = path.indices[path.indptr[i] : path.indptr[i + 1]]
        assert nodes[0] == 0
        assert nodes[-1] == leaf[i]
        np.testing.assert_array_equal(TREE.parent[nodes[1:]], nodes[:-1])


def test_exemplars_are_the_rows_nearest_to_their_clusters_mean():
    found = TREE.exemplars(DIGITS, 4)
    labels = MODEL.labels_
    std = DIGITS.std(axis=0)
    Z = (DIGITS - DIGITS.mean(axis=0)) / np.where(std > 0, std, 1)
    for k, rows in enumerate(found):
        members = np.flatnonzero(labels == k)
        distance = ((Z[members] - Z[members].mean(axis=0)) ** 2).sum(axis=1)
        assert set(rows) == set(members[np.argsort(distance)[:4]])


# --- cuts ---


@pytest.mark.parametrize("make", [MinimumDensity, PrincipalDirection])
def test_a_cut_is_the_tree_grown_to_so_many_leaves(make):
    large = make(8).fit(DIGITS).tree_
    for k in range(1, 9):
        np.testing.assert_array_equal(large.cut(k).predict(DIGITS), make(k).fit(DIGITS).labels_)


def test_cuts_are_nested():
    for k in range(2, 9):
        fine, coarse = TREE.cut(k).predict(DIGITS), TREE.cut(k - 1).predict(DIGITS)
        assert all(len(set(coarse[fine == label])) == 1 for label in range(k))


def test_a_tree_with_shared_labels_is_cut_into_any_smaller_number_of_clusters():
    rng = np.random.default_rng(0)
    for _ in range(20):
        tree = TREE
        for _ in range(rng.integers(0, 6)):
            tree = tree.merge(*rng.choice(tree.n_clusters, 2, replace=False).tolist())
        kept = [np.isin(np.arange(tree.n_nodes), tree.inner[:n]) for n in range(tree.n_leaves)]
        cuts = [_keep_splits(tree, some) for some in kept]
        for k in range(1, tree.n_clusters + 1):
            assert tree.cut(k) == [cut for cut in cuts if cut.n_clusters == k][-1]
        with pytest.raises(InvalidInputError, match=f"{k} clusters .*into {k + 1}"):
            tree.cut(k + 1)


def test_a_cut_leaf_remembers_the_split_that_was_there():
    smaller = TREE.cut(2)
    assert smaller.refused[1] == TREE.splits[1] or smaller.refused[2] == TREE.splits[2]
    assert TREE.n_leaves == 8


def test_too_many_clusters_are_an_error():
    with pytest.raises(InvalidInputError, match="8 clusters and cannot be cut into 9"):
        TREE.cut(9)


# --- edits ---


def test_prune_makes_a_node_a_leaf():
    node = int(TREE.left[0])
    pruned = TREE.prune(node)
    path = TREE.decision_path(DIGITS)
    below = path[:, [node]].toarray()[:, 0] > 0
    labels = pruned.predict(DIGITS)
    assert len(set(labels[below])) == 1
    assert partition(labels[~below]) == partition(MODEL.labels_[~below])
    assert TREE.prune(0).n_leaves == 1
    leaf = int(TREE.leaves[3])
    assert TREE.prune(leaf) == TREE
    with pytest.raises(InvalidInputError, match=f"nodes 0 to {TREE.n_nodes - 1}, got 99"):
        TREE.prune(99)


def test_merging_siblings_prunes_their_parent():
    leaves = TREE.leaves
    k = next(k for k in range(7) if TREE.parent[leaves[k]] == TREE.parent[leaves[k + 1]])
    merged = TREE.merge(k, k + 1)
    assert merged.n_leaves == 7
    expected = np.where(MODEL.labels_ > k, MODEL.labels_ - 1, MODEL.labels_)
    np.testing.assert_array_equal(merged.predict(DIGITS), expected)


def test_merging_any_two_shares_a_label():
    leaves = TREE.leaves
    a, b = next(
        (a, b) for a in range(8) for b in range(a + 2, 8) if TREE.parent[leaves[a]] != TREE.parent[leaves[b]]
    )
    merged = TREE.merge(a, b)
    assert (merged.n_leaves, merged.n_clusters) == (8, 7)
    labels = np.where(MODEL.labels_ == b, a, MODEL.labels_)
    assert partition(merged.predict(DIGITS)) == partition(labels)
    assert set(merged.predict(DIGITS)) == set(range(7))
    for wrong in ((a, a), (a, 99)):
        with pytest.raises(InvalidInputError):
            TREE.merge(*wrong)


@pytest.mark.parametrize("where", ["leaf", "inner", "root"])
def test_resplit_grows_a_node_anew_with_another_method(where):
    tree = PrincipalDirection(4).fit(DIGITS).tree_
    before = tree.to_json()
    node = {"leaf": int(tree.leaves[0]), "inner": int(tree.parent[tree.leaves[0]]), "root": 0}[where]
    below = tree.decision_path(DIGITS)[:, [node]].toarray()[:, 0] > 0
    other = MinimumDensity(3)
    new = tree.resplit(node, other, DIGITS)
    labels = new.predict(DIGITS)
    assert partition(labels[below]) == partition(MinimumDensity(3).fit(DIGITS[below]).labels_)
    assert partition(labels[~below]) == partition(tree.predict(DIGITS)[~below])
    assert set(labels) == set(range(new.n_clusters))
    assert tree.to_json() == before
    assert not hasattr(other, "tree_")
    assert ClusterTree.from_json(new.to_json()) == new
    kept = tree.prune(node) if where != "leaf" else tree
    assert len(set(new.order[new.inner])) == len(new.inner)
    np.testing.assert_array_equal(new.inner[: len(kept.inner)], kept.inner)  # new splits come last
    assert [new.cut(k).n_leaves for k in range(1, new.n_leaves + 1)] == list(range(1, new.n_leaves + 1))


def test_resplit_needs_rows():
    with pytest.raises(InvalidInputError, match="0 rows of X reach node"):
        TREE.resplit(int(TREE.leaves[0]), MinimumDensity(2), DIGITS[MODEL.labels_ == 5])


def test_simplify_uses_few_features_and_reports_the_share_of_rows_that_stay():
    model = MinimumDensity(3).fit(WINE)
    simple = model.tree_.simplify(WINE, max_features=4, agreement=0.9)
    for old, new in zip(model.tree_.splits, simple.splits, strict=True):
        if old is not None and new is not old:
            assert (new.boundary.normal != 0).sum() <= 4
            assert "simplified to 4 of 13 features" in new.status
            share = float(new.status.split(":")[1].split("%")[0]) / 100
            assert share >= 0.9
    assert any(new is not old for old, new in zip(model.tree_.splits, simple.splits, strict=True))
    assert (simple.predict(WINE) == model.labels_).mean() > 0.85
    assert model.tree_.simplify(WINE, max_features=1, agreement=1.0) == model.tree_


def test_the_share_that_simplify_reports_is_true():
    model = MinimumDensity(2).fit(WINE)
    simple = model.tree_.simplify(WINE, max_features=3, agreement=0.5)
    share = float(simple.splits[0].status.split(":")[1].split("%")[0]) / 100
    assert (simple.predict(WINE) == model.labels_).mean() == pytest.approx(share, abs=6e-4)


def test_the_best_threshold_lies_between_rows_at_different_places():
    right = np.array([False, True, True])
    threshold, share = _best_threshold(np.array([0.0, 0.0, 1.0]), right, np.ones(3))
    assert share == pytest.approx(2 / 3)
    assert threshold in (-1.0, 0.5)
    assert _best_threshold(np.array([0.0, 0.5, 1.0]), right, np.ones(3)) == (0.25, 1.0)


def test_the_share_that_simplify_reports_is_true_where_many_rows_share_a_place():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 4, 400) + 6.0 * (np.arange(400) % 2)
    X = np.column_stack([coarse, coarse + rng.standard_normal(400), rng.standard_normal(400)])
    model = with_method(MinimumDensity(2, max_iter=0), init=np.array([[1.0, 3.0, 1.0]])).fit(X)
    assert model.n_clusters_ == 2
    simple = model.tree_.simplify(X, max_features=1, agreement=0.5)
    share = float(simple.splits[0].status.split(":")[1].split("%")[0]) / 100
    assert (simple.predict(X) == model.labels_).mean() == pytest.approx(share, abs=6e-4)


# --- growth bounds, score, size ---


def test_max_depth_bounds_growth():
    model = PrincipalDirection(8, max_depth=2).fit(DIGITS)
    assert model.n_clusters_ == 4
    assert model.tree_.depth.max() == 2


def test_a_leaf_is_large_enough_to_be_searched_by_its_weight():
    place = np.repeat([[0.0, 0.0], [9.0, 0.0], [40.0, 0.0]], 20, axis=0)
    X = place + np.random.default_rng(0).standard_normal((60, 2))
    model = MinimumDensity(3, min_cluster_size=50).fit(X, sample_weight=np.full(60, 5.0))
    assert model.n_clusters_ == 3
    assert (model.labels_[40:] == 2).all()


def test_every_walk_down_the_tree_takes_the_same_way():
    path = TREE.decision_path(DIGITS).toarray().astype(bool)
    distances = TREE.distances(as_rows(DIGITS))
    for rows in (as_rows(DIGITS), as_rows(sparse.csr_array(DIGITS))):
        visits = list(TREE.visit(rows))
        assert sorted(node for node, _, _ in visits) == sorted(TREE.inner)
        for node, members, distance in visits:
            np.testing.assert_array_equal(members, np.flatnonzero(path[:, node]))
            expected = distances[members, list(TREE.inner).index(node)]
            np.testing.assert_allclose(distance, expected, atol=1e-9)


@pytest.mark.parametrize("use", ["predict", "predict_proba", "exemplars", "simplify"])
def test_rows_that_are_not_finite_are_refused(use):
    for tree in (TREE, TREE.cut(1)):
        for bad in (np.nan, np.inf):
            X = DIGITS.copy()
            X[100, 30] = bad
            for rows in (X, sparse.csr_array(X)):
                with pytest.raises(InvalidInputError, match="NaN or infinity"):
                    getattr(tree, use)(rows)


def test_ten_thousand_leaves_hit_no_recursion_limit():
    tree = staircase(10_000)
    X = np.column_stack([np.array([0.0, 5000.2, 9998.7]), np.zeros(3)])
    assert tree.predict(X).tolist() == [0, 5000, 9999]
    assert tree.cut(5000).n_leaves == 5000
    assert tree.prune(101).n_leaves == 10_000
    assert tree.merge(0, 9999).n_clusters == 9999
    assert len(tree.to_linkage()) == 9999
    assert tree.export_text().count("\n") == 2 * DEEPEST + 1
    assert tree.decision_path(X).shape == (3, 19999)
    assert ClusterTree.from_json(tree.to_json()) == tree
    assert tree.export_sql("t", columns=["a", "b"]).count("CASE") == 10_000


def test_a_tree_is_never_changed():
    before = TREE.to_json()
    TREE.cut(3)
    TREE.prune(1)
    TREE.merge(0, 5)
    TREE.simplify(DIGITS, 3, 0.5)
    assert TREE.to_json() == before
    assert replace(TREE, weight=TREE.weight + 1) != TREE


def test_a_model_may_take_an_edited_tree():
    model = PrincipalDirection(8).fit(DIGITS)
    model.tree_ = model.tree_.cut(3)
    assert model.n_clusters_ == 3
    assert set(model.predict(DIGITS)) == {0, 1, 2}
    assert model.transform(DIGITS).shape[1] == 2


# --- rows that do not fit, weights ---


def test_rows_with_other_columns_are_refused():
    frame = load_wine(as_frame=True).data
    tree = MinimumDensity(2).fit(frame).tree_
    for wrong in (WINE[:, :5], np.hstack([WINE, WINE]), sparse.csr_array(WINE[:, :5])):
        for use in (tree.predict, tree.predict_proba, tree.decision_path, tree.exemplars, tree.simplify):
            with pytest.raises(InvalidInputError, match="but the tree was grown on 13"):
                use(wrong)
    with pytest.raises(InvalidInputError, match="or their order, differ"):
        tree.predict(frame[frame.columns[::-1]])
    with pytest.raises(InvalidInputError, match="minimum of 1 is required"):
        tree.predict(np.empty((0, 13)))


def test_a_grafted_tree_keeps_its_refused_splits_through_json():
    rng = np.random.default_rng(0)
    X = (np.repeat(rng.normal(0, 12, (8, 3)), 100, axis=0) + rng.standard_normal((800, 3))) * [
        1,
        10,
        100,
    ] + 100
    grafted = MinimumDensity(2).fit(X).tree_.resplit(1, MinimumDensity(), X)
    again = ClusterTree.from_json(grafted.to_json())
    known = [split for split in grafted.refused if split is not None]
    assert known
    for a, b in zip(grafted.refused, again.refused, strict=True):
        if a is not None:
            assert a.boundary.intercept == pytest.approx(b.boundary.intercept, rel=1e-12)


def test_the_sign_of_the_decision_follows_the_labels():
    model = MinimumDensity(2).fit(WINE)
    np.testing.assert_array_equal(model.decision_function(WINE) > 0, model.predict(WINE) == 1)
    model = PrincipalDirection(4).fit(WINE)
    model.tree_ = model.tree_.cut(3).merge(0, 2)
    assert model.decision_function(WINE).ndim == 1
    np.testing.assert_array_equal(model.decision_function(WINE) > 0, model.predict(WINE) == 1)


def test_no_depth_is_one_cluster():
    assert PrincipalDirection(8, max_depth=0).fit(WINE).n_clusters_ == 1


def test_weights_are_repeats_in_edits_and_views():
    counts = np.random.default_rng(0).integers(0, 3, len(WINE))
    repeated = np.repeat(WINE, counts, axis=0)
    tree = MinimumDensity(3).fit(WINE, sample_weight=counts).tree_
    one = tree.simplify(WINE, 3, 0.7, sample_weight=counts)
    two = tree.simplify(repeated, 3, 0.7)
    for a, b in zip(one.splits, two.splits, strict=True):
        if a is not None:
            np.testing.assert_allclose(a.boundary.normal, b.boundary.normal, atol=1e-9)
            assert a.status == b.status
    np.testing.assert_allclose(one.weight, two.weight)
    np.testing.assert_array_equal(np.bincount(two.predict(repeated)), two.weight[two.leaves])
    leaf = int(tree.leaves[0])
    grown = tree.resplit(leaf, PrincipalDirection(2), WINE, sample_weight=counts)
    again = tree.resplit(leaf, PrincipalDirection(2), repeated)
    np.testing.assert_array_equal(grown.predict(WINE), again.predict(WINE))
    with pytest.raises(InvalidInputError, match="clusterer of ravine, got KMeans"):
        tree.resplit(leaf, KMeans(2, n_init=1), WINE)


def test_trees_are_compared_by_value():
    assert MinimumDensity(3).fit(WINE).tree_ == MinimumDensity(3).fit(WINE).tree_
    assert TREE.cut(3) != TREE
    assert TREE != "a tree"


def test_a_moved_threshold_is_that_of_the_distances():
    X = load_wine().data
    tree = MinimumDensity(3).fit(X).tree_
    distance = tree.boundary(0).signed_distance_of(X)
    for by in (-0.5, 0.3):
        moved = tree.move(0, by, X)
        right = np.isin(moved.decision_path(X).toarray()[:, tree.right[0]], 1)
        np.testing.assert_array_equal(right, distance > by)
        assert moved.weight[0] == 178
        assert moved.weight[moved.right[0]] == (distance > by).sum()
        for leaf in moved.leaves:
            assert moved.weight[leaf] == (moved.predict(X) == moved.label[leaf]).sum()
        assert moved.splits[0].quality < tree.splits[0].quality
        assert moved.splits[0].evidence is None
        np.testing.assert_array_equal(moved.move(0, -by, X).predict(X), tree.predict(X))
    weights = np.arange(178.0)
    heavy = tree.move(0, 0.3, X, weights)
    assert heavy.weight[heavy.right[0]] == weights[distance > 0.3].sum()
    for node, by, why in [
        (0, 99.0, "empty side"),
        (int(tree.leaves[0]), 0.1, "no threshold"),
        (77, 0.1, "nodes 0 to"),
    ]:
        with pytest.raises(InvalidInputError, match=why):
            tree.move(node, by, X)


def test_labels_steer_a_resplit():
    X = load_wine().data
    tree = MinimumDensity(2).fit(X).tree_
    node = int(tree.leaves[0])
    here = tree.leaf_of(tree.rows(X)) == node
    y = np.full(178, -1)
    y[np.flatnonzero(here)[:6]] = [0, 1, 0, 1, 1, 0]
    steered = tree.resplit(node, MinimumDensity(2), X, y=y)
    expected = MinimumDensity(2).fit(X[here], y[here]).labels_
    found = steered.predict(X)[here]
    assert len({*zip(found, expected, strict=True)}) == 2
    with pytest.raises(InvalidInputError, match="one label for each of the 178 rows"):
        tree.resplit(node, MinimumDensity(2), X, y=y[:5])


@pytest.mark.parametrize("unlabeled_elsewhere", [True, False])
def test_labels_of_all_rows_of_a_node_steer_a_resplit(unlabeled_elsewhere):
    """Low and high groups, left and right of each of which the labels ask for."""
    rng = np.random.default_rng(0)
    corner = np.arange(400) % 4
    X = np.column_stack([5.0 * (corner % 2), 9.0 * (corner // 2)]) + rng.normal(size=(400, 2))
    X[:, 1] += 6.0 * (rng.random(400) < 0.5)  # and a gap that the labels know nothing about
    tree = MinimumDensity(1).fit(X).tree_
    y = corner % 2
    if unlabeled_elsewhere:
        X, y = np.vstack([X, X[:1]]), np.append(y, -1)
        tree = MinimumDensity(1).fit(X).tree_
    found = tree.resplit(0, MinimumDensity(2), X, y=y).predict(X)[:400]
    agree = (found == corner % 2).mean()
    assert max(agree, 1 - agree) > 0.97


@pytest.mark.parametrize("kind", ["memory", "blocks"])
def test_rows_that_are_held_take_other_weights(kind):
    rows = MemoryRows(WINE) if kind == "memory" else in_blocks(WINE)
    tree = MinimumDensity(3).fit(WINE).tree_
    weights = np.random.default_rng(0).integers(1, 4, len(WINE)).astype(float)
    assert tree.rows(rows) is rows
    assert (tree.rows(rows, weights).map(lambda block: block.weights) == weights).all()
    assert tree.rows(rows, weights).total == weights.sum()
    some = rows.select(np.arange(5, 100))
    found = tree.rows(some, weights[5:100])
    assert (found.map(lambda block: block.weights) == weights[5:100]).all()
    assert (found.map(lambda block: block.dense()) == WINE[5:100]).all()
    assert rows.weights is None
    with pytest.raises(InvalidInputError, match="one weight for each of the 95 rows"):
        tree.rows(some, weights)


def test_resplit_leaves_the_given_estimator_as_it_was():
    given = MinimumDensity(2)
    TREE.resplit(0, given, DIGITS)
    assert not hasattr(given, "tree_")
