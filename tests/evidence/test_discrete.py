"""Discrete columns and margins: tables without clusters, and splits that one discrete column makes."""

import warnings

import numpy as np
import pytest
from benchmarks.generators import customers
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.metrics import adjusted_rand_score

from ravine import MinimumDensity, PrincipalDirection, SpectralConnectivity
from ravine.data.memory import MemoryRows
from ravine.data.query import run
from ravine.evidence.discrete import discrete_variables, leave_out
from ravine.evidence.margins import (
    explained,
    grouped,
    margins,
    normal_scores,
    settled,
    unimodal,
)
from ravine.evidence.orientation import Orientation
from ravine.evidence.significance import margins_of, t_test
from ravine.exceptions import DiscreteColumnWarning, OneClusterWarning
from ravine.split.split import MADE_BY
from tests.nodes import measured


def test_equal_values_stay_equal_wherever_rounding_puts_them():
    """Rounded to ten digits, noise parts equal values at a half; then a margin has more values."""
    rng = np.random.default_rng(0)
    values = np.repeat(rng.integers(0, 10**10, 500) + 0.5, 4) / 1e9
    noisy = values * (1 + 1e-14 * rng.standard_normal(2000))
    _, place = np.unique(settled(noisy[:, None]), return_inverse=True)
    assert (place.ravel() == np.unique(values, return_inverse=True)[1]).all()
    np.testing.assert_allclose(settled(noisy[:, None])[:, 0], values, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_unimodal_heights_are_the_nearest_of_all_modes(seed):
    rng = np.random.default_rng(seed)
    heights, widths = rng.random(6), rng.random(6) + 0.1

    def error(found):
        return float(widths @ (found - heights) ** 2)

    best = np.inf
    for mode in range(6):
        signs = np.where(np.arange(5) < mode, 1.0, -1.0)
        rule = {"type": "ineq", "fun": lambda x, signs=signs: signs * np.diff(x)}
        best = min(best, minimize(error, heights, constraints=rule, method="SLSQP").fun)
    found = unimodal(heights, widths)
    turns = np.sign(np.diff(found)[np.diff(found) != 0])
    assert (np.diff(turns) <= 0).all()
    assert error(found) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-200])
def test_rounding_does_not_choose_between_two_equal_modes(scale):
    heights, widths = np.array([1.0, 3.0, 1.0, 3.0, 1.0]), np.full(5, scale)
    for noise in (-1e-15, 1e-15):
        found = unimodal(heights + np.array([0.0, noise, 0.0, 0.0, 0.0]), widths)
        np.testing.assert_allclose(found, unimodal(heights, widths), atol=1e-12)


def test_normal_scores_are_means_of_normal_numbers_between_quantiles():
    mass = np.array([0.2, 0.5, 0.3])
    z = norm.ppf((np.arange(10**5) + 0.5) / 10**5)
    expected = [part.mean() for part in np.split(z, [20_000, 70_000])]
    np.testing.assert_allclose(normal_scores(mass), expected, atol=1e-3)


def table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 2)) @ np.linalg.cholesky([[1.0, 0.6], [0.6, 1.0]]).T
    flag = rng.random(n) < 0.3
    city = np.eye(3)[rng.integers(0, 3, n)]
    return np.column_stack([np.exp(z[:, 0]), z[:, 1], flag, city])


def test_the_reference_has_the_margins_and_the_correlation_of_the_columns():
    X = table()
    drawn = margins(X, np.ones(len(X))).draw(4000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), rtol=1e-9)
    assert [len(np.unique(drawn[:, j].round(9))) for j in range(2, 6)] == [2, 2, 2, 2]
    skew = ((drawn[:, 0] / drawn[:, 0].std()) ** 3).mean()
    assert skew > 1.5  # lognormal, as the column
    ranks = np.argsort(np.argsort(drawn[:, :2], axis=0), axis=0)
    own = np.argsort(np.argsort(X[:, :2], axis=0), axis=0)
    assert np.corrcoef(ranks.T)[0, 1] == pytest.approx(np.corrcoef(own.T)[0, 1], abs=0.05)
    city = drawn[:, 3:] == drawn[:, 3:].max(axis=0)
    assert (city.sum(axis=1) == 1).all()  # indicators of one variable still exclude each other


def test_a_continuous_margin_has_no_valley_and_a_discrete_one_keeps_its_gaps():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.normal(0, 1, 500), rng.normal(10, 1, 500)])
    three = rng.choice(3, 1000, p=[0.45, 0.1, 0.45]).astype(float)
    found = margins(np.column_stack([two, three]), np.ones(1000))
    values = found.variables[0].quantile(rng.random(5000))[:, 0]
    assert ((values > 4) & (values < 6)).mean() > 0.05  # filled
    np.testing.assert_allclose(
        found.variables[1].cumulative, np.cumsum(np.bincount(three.astype(int)) / 1000)
    )


def test_margins_with_weights_are_those_of_copies():
    X = table(300)
    counts = np.random.default_rng(1).integers(0, 4, 300)
    kept = counts > 0
    one = margins(X[kept], counts[kept].astype(float))
    two = margins(np.repeat(X, counts, axis=0), np.ones(counts.sum()))
    np.testing.assert_allclose(one.root, two.root, atol=1e-9)
    draws = [found.draw(50, np.random.default_rng(0)) for found in (one, two)]
    np.testing.assert_allclose(*draws, atol=1e-6)


def test_indicators_that_exclude_each_other_are_one_variable_in_any_order():
    X = table()
    assert [group.tolist() for group in grouped(X, np.ones(len(X)), np.arange(6))][2:] in (
        [[3, 4, 5], [2]],
        [[2], [3, 4, 5]],
    )
    back = [sorted(5 - v.columns) for v in discrete_variables(X[:, ::-1], np.ones(len(X)), np.arange(6))]
    assert sorted(back) == [[2], [3, 4, 5]]


def test_the_kind_with_the_deepest_valleys_decides():
    shallow, deep = [0.1, 0.12, 0.09, 0.11], [1.0, 1.1, 0.9, 1.0]
    found = t_test(1.0, [shallow, deep], n=1000)
    assert found.null_mean == pytest.approx(1.0)
    assert found.n_draws == 8
    assert found.p_value > 0.4
    assert t_test(1.0, [shallow, shallow], n=1000).p_value < 1e-3


def test_explained_is_the_share_of_the_smaller_side():
    right = np.repeat([False, True], [60, 40])
    wrong = right.copy()
    wrong[:10] = True
    assert explained(wrong.astype(int), np.ones(100), right) == pytest.approx(1 - 10 / 40)


def test_a_node_without_columns_searches_as_if_they_were_constant():
    node = measured(table())
    left_out = leave_out(node, np.array([0, 2]))
    assert left_out.root_standardization.inverse_scale[[0, 2]].tolist() == [0.0, 0.0]
    assert node.standardization.inverse_scale.all()


def quiet_auto(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MinimumDensity("auto").fit(X)


def test_diabetes_is_not_cut_by_sex():
    data = load_diabetes(as_frame=True, scaled=False).data
    for model in (quiet_auto(data), MinimumDensity(2).fit(data)):
        split = model.tree_.splits[0] or model.tree_.refused[0]
        assert MADE_BY not in split.facts
        assert split.direction[list(data.columns).index("sex")] == 0.0


def test_the_gap_of_a_discrete_column_is_named_where_no_other_valley_is_left():
    rng = np.random.default_rng(0)
    data = np.column_stack([np.linspace(0, 1, 300), rng.random(300) < 0.4])
    with pytest.warns(DiscreteColumnWarning, match=r"1 of 1 splits .* \(x1\)"):
        model = MinimumDensity(2).fit(data)
    assert model.tree_.splits[0].facts[MADE_BY] == 1


def test_segments_beside_indicators_are_counted():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 900)
    places = np.array([[0, 0, 0], [6, 0, 0], [3, 5, 3]])[y] + rng.standard_normal((900, 3))
    X = np.column_stack([places, np.eye(3)[rng.integers(0, 3, 900)], rng.random(900) < 0.4])
    assert quiet_auto(X).n_clusters_ == 3


def test_blobs_on_a_coarse_grid_are_still_clusters():
    rng = np.random.default_rng(0)
    X = np.round(np.concatenate([rng.normal(0, 1, (300, 1)), rng.normal(9, 1, (300, 1))]), 1)
    assert quiet_auto(X).n_clusters_ == 2


@pytest.mark.parametrize("kind", ["cube", "people", "counts", "two-valued"])
def test_tables_of_independent_columns_are_one_cluster(kind):
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = {
            "cube": lambda rng=rng: rng.random((400, 10)),
            "people": lambda rng=rng: np.column_stack(
                [rng.lognormal(10, 0.8, 400), rng.integers(18, 90, 400), rng.poisson(2, 400)]
            ),
            "counts": lambda rng=rng: rng.poisson([0.5, 2, 8], (400, 3)).astype(float),
            "two-valued": lambda rng=rng: (rng.random((400, 4)) < 0.4).astype(float),
        }[kind]()
        found.append(quiet_auto(X).n_clusters_)
    assert found.count(1) >= 2


def test_one_cluster_comes_with_the_evidence_and_a_next_step():
    X = np.random.default_rng(0).standard_normal((200, 2))
    with pytest.warns(OneClusterWarning, match="level 0.01; set n_clusters"):
        MinimumDensity("auto").fit(X)
    flags = (np.random.default_rng(0).random((300, 2)) < 0.5).astype(float)
    with pytest.warns(OneClusterWarning, match="one discrete column"):
        tree = MinimumDensity("auto").fit(flags).tree_
    assert any("not split" in line and "discrete column" in line for line in str(tree).splitlines())


def test_with_a_given_number_of_clusters_no_gap_is_the_reason_of_a_leaf():
    rng = np.random.default_rng(0)
    groups = rng.normal(np.repeat([0.0, 12.0, 12.0], 100))
    X = np.column_stack([groups, rng.integers(0, 2, 300), rng.integers(0, 2, 300)])
    with pytest.warns(DiscreteColumnWarning):
        tree = MinimumDensity(3).fit(X).tree_
    assert any(split is not None and MADE_BY in split.facts for split in tree.refused)
    assert "not split" not in str(tree)


def test_continuous_columns_make_no_note():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (200, 3)), rng.normal(6, 1, (200, 3))])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiscreteColumnWarning)
        for model in (MinimumDensity(3), PrincipalDirection(3)):
            assert not any(MADE_BY in s.facts for s in model.fit(X).tree_.splits if s is not None)


def test_margins_come_from_a_request():
    node = measured(table(300))
    before = node.rows.reads.rows
    assert isinstance(node.rows, MemoryRows)
    run(margins_of(node, Orientation(np.arange(6), np.ones(6), 6)))
    assert node.rows.reads.rows - before == 300


def test_components_of_a_kernel_map_are_no_discrete_columns():
    """Separated groups have diffusion components of few values, which are clusters."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(40, 1, (100, 2))])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiscreteColumnWarning)
        assert MinimumDensity("auto", kernel="diffusion").fit(X).tree_.n_clusters >= 2
        MinimumDensity(2, kernel="diffusion").fit(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("make", [MinimumDensity, SpectralConnectivity])
def test_a_given_number_of_segments_is_found_beside_gaps_of_discrete_columns(make, plan):
    for seed in range(3):
        X, y = customers(np.random.default_rng(seed), plan_is_segment=plan)
        assert adjusted_rand_score(y, make(4).fit(X).labels_) > 0.9


def test_two_complete_sets_of_indicators_are_two_variables():
    rng = np.random.default_rng(0)
    one, two = (np.eye(3)[rng.integers(0, 3, 300)] for _ in range(2))
    found = discrete_variables(np.hstack([one, two]), np.ones(300), np.arange(6))
    assert sorted(sorted(v.columns.tolist()) for v in found) == [[0, 1, 2], [3, 4, 5]]
