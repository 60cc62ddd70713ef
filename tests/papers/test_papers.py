"""The papers' methods: the page lists what they set, and every setting does what the paper describes."""

import re
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import ravine
from ravine import InvalidInputError, MaximumMargin, MinimumDensity, MinimumDensityClassifier, papers
from ravine.exceptions import OutlierWarning
from ravine.papers import CPMMC, KMDH, LMSC, MDP2, MSPC, SCP2, SKMDH, SCnP2, SemiSupervisedMDP2
from tests.changed_method import with_method
from tests.oracles import two_blobs

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()
METHODS = [getattr(papers, name) for name in papers.__all__]


def parent_of(make):
    """The estimator of ravine that a paper's method is a form of."""
    return next(base for base in make.__mro__ if base.__name__ in ravine.__all__)


@pytest.mark.parametrize("make", METHODS)
def test_the_page_names_every_default_that_differs(make):
    ours, usual = make().get_params(), parent_of(make)().get_params()
    section = PAGE.split(f"## {make.__name__}\n")[1].split("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", section, flags=re.MULTILINE))
    # n_clusters is 2 and outliers are included in all of them, as the page says at the top
    differs = {name for name in ours if ours[name] != usual.get(name)} - {"n_clusters", "outliers"}
    assert {name for name in listed if name in ours} == differs
    assert all(repr(ours[name]) == value for name, value in listed.items() if name in ours)


@pytest.mark.parametrize("make", METHODS)
def test_a_method_of_a_paper_is_an_ordinary_estimator(make, tmp_path):
    X, y = two_blobs(80, 3, gap=8.0)
    model = make()
    assert len(model.get_params()) <= 16
    assert clone(model).get_params() == model.get_params()
    partly = np.where(np.arange(80) % 10 == 0, y, -1)
    model.fit(X, partly) if isinstance(model, MinimumDensityClassifier) else model.fit(X)
    assert len(model.outliers_) == 0
    ravine.save(model, tmp_path / "model.ravine")
    again = ravine.load(tmp_path / "model.ravine")
    assert type(again) is make
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert ravine.metrics.clustering_error(y, model.predict(X)) < 0.05


def test_the_kernel_has_all_components_unless_others_are_given():
    assert KMDH(kernel_params={"gamma": 1.0})._map_params == {"landmarks": None, "gamma": 1.0}
    assert SKMDH()._map_params == {"landmarks": None, "n_components": 0.9}
    assert SKMDH(kernel_params={"landmarks": 50})._map_params == {"landmarks": 50, "n_components": 0.9}


def test_the_threshold_stays_in_its_interval():
    """By default a valley less than one bandwidth outside counts; in the paper it does not."""
    X, y = two_blobs(400, 3, gap=5.0, share=0.15)

    def further(method, rows):
        return replace(method, schedule=replace(method.schedule, overshoot=1.0))

    model = with_method(MDP2(standardize=False), further).fit(X)
    assert ravine.metrics.clustering_error(y, model.labels_) < 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert MDP2(standardize=False).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("make", [partial(KMDH, init="random"), partial(CPMMC, n_init=3)])
def test_random_starts_follow_the_seed_and_find_two_blobs(make):
    X, y = two_blobs(100, 4, gap=8.0)
    models = [make(random_state=seed).fit(X) for seed in (1, 1, 2)]
    assert all(ravine.metrics.clustering_error(y, model.labels_) < 0.03 for model in models)
    same, again, other = (model.tree_.splits[0].direction for model in models)
    np.testing.assert_array_equal(same, again)
    assert not np.array_equal(same, other)


def test_a_balance_of_the_sum_is_that_of_the_mean_times_the_rows():
    X, _ = two_blobs(90, 3, gap=3.0, share=0.3)
    mean = MaximumMargin(2, balance=0.1).fit(X).tree_.splits[0]
    total = (
        with_method(MaximumMargin(2, balance=0.1), balance=9.0, balance_of_sum=True).fit(X).tree_.splits[0]
    )
    np.testing.assert_allclose(mean.direction, total.direction, atol=1e-6)
    with pytest.raises(InvalidInputError, match="balance has to be"):
        MaximumMargin(2, balance=9.0).fit(X)
    assert CPMMC(balance=9.0)._method().balance_of_sum
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert CPMMC(balance=90.0).fit(X).n_clusters_ == 1


def test_far_rows_are_searched_only_if_they_are_included():
    X, _ = two_blobs(200, 3, gap=6.0)
    X[0] = 1e6
    with pytest.warns(OutlierWarning):
        assert MinimumDensity(2).fit(X).outliers_.tolist() == [0]
    partly = np.where(np.arange(200) % 10 == 5, np.arange(200) // 100, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", OutlierWarning)
        for model in (MDP2(), KMDH()):
            assert len(model.fit(X).outliers_) == 0
        assert len(SemiSupervisedMDP2().fit(X, partly).outliers_) == 0


@pytest.mark.parametrize(("n", "most"), [(1000, 1000), (1002, 200)])
def test_rows_are_their_own_micro_clusters_up_to_a_thousand(n, most):
    rows = ravine.data.memory.MemoryRows(np.zeros((n, 2)))
    assert SCnP2()._method(rows).n_microclusters == most


@pytest.mark.parametrize("make", [SCnP2, partial(SCnP2, correlated=True, n_directions=3)])
def test_the_published_balance_counts_all_rows(make):
    rng = np.random.default_rng(0)
    sizes, places = (60, 100, 22), (-30.0, 0.0, 8.0)
    X = np.concatenate(
        [rng.normal((place, 0, 0), 1.0, (n, 3)) for n, place in zip(sizes, places, strict=True)]
    )
    split = make(3, standardize=False).fit(X).tree_.splits
    assert split[0].facts["beta"] == 2.0
    assert split[2].facts["beta"] < 2.0  # 22 rows are more than 122 / 6, but fewer than 182 / 6


def test_published_directions_are_nearly_orthogonal_or_nearly_parallel():
    X, _ = two_blobs(100, 4, gap=3.0)
    cosines = []
    for correlated in (False, True):
        model = SCnP2(correlated=correlated, standardize=False).fit(X)
        a, b = model.tree_.splits[0].boundary.directions
        cosines.append(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert cosines[0] < 0.3
    assert cosines[1] > 0.9


@pytest.mark.parametrize(
    "make",
    [SCnP2, SCP2, partial(SCnP2, correlated=True, n_directions=3), LMSC, partial(LMSC, n_directions=2)],
)
def test_every_published_form_of_spectral_connectivity_finds_three_blobs(make):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), 40)
    X = rng.standard_normal((120, 4)) + 9.0 * np.eye(4)[y]
    model = make(3).fit(X)
    assert ravine.metrics.clustering_error(y, model.labels_) == 0
    assert ravine.metrics.clustering_error(y, model.predict(X)) == 0


@pytest.mark.parametrize("make", [MDP2, CPMMC, MSPC, SemiSupervisedMDP2])
def test_all_rows_are_searched_from_every_start(make):
    X, y = two_blobs(18_000, 2, gap=8.0)
    ours, usual = make(), parent_of(make)()
    if make is SemiSupervisedMDP2:
        partly = np.where(np.arange(18_000) % 1800 == 0, y, -1)
        usual.set_params(supervised_fallback=False)  # one search per boundary, as in the paper
        models = [model.fit(X, partly) for model in (usual, ours)]
    else:
        models = [model.fit(X) for model in (usual.set_params(n_clusters=2), ours)]
    assert all(ravine.metrics.clustering_error(y, model.predict(X)) < 0.01 for model in models)
    assert models[0].n_passes_ < models[1].n_passes_


def test_parameters_are_checked():
    for model, text in (
        (KMDH(init="randomly"), "init has to be"),
        (SCnP2(correlated=1), "correlated has to be"),
        (MSPC(solver="pursuit"), "solver has to be"),
        (CPMMC(balance=-1.0), "balance has to be"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            model._check_parameters(3)


def test_there_is_no_budget_of_passes(monkeypatch):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 100)
    X, _ = two_blobs(400, 6, gap=2.0)
    for make in (MSPC, CPMMC):
        usual = parent_of(make)(2, n_init=1).fit(X).tree_.splits[0]
        assert usual.status == "pass limit"
        assert make(n_init=1).fit(X).tree_.splits[0].status != "pass limit"
