"""as_published(): the page lists what it sets, and every setting does what the paper describes."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import ravine
from ravine import (
    InvalidInputError,
    MaximinSeparation,
    MaximumMargin,
    MinimumDensity,
    MinimumDensityClassifier,
    SpectralConnectivity,
)
from ravine.exceptions import OutlierWarning
from tests.oracles import two_blobs

PAGE = Path(__file__).parents[2] / "docs" / "as-published.md"
GIVEN = {"n_clusters", "kernel"}  # what a heading passes, or every page of a paper needs


def sections():
    """The tables of the page by the constructor in their heading."""
    found, heading = {}, ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line.strip("# `")
        elif line.startswith("| `"):
            found.setdefault(heading, []).append([cell.strip().strip("`") for cell in line.split("|")[1:-1]])
    return found


SECTIONS = sections()
PAPERS = {
    MinimumDensity,
    MinimumDensityClassifier,
    SpectralConnectivity,
    MaximumMargin,
    MaximinSeparation,
}


def made(heading):
    return eval(heading, {make.__name__: make for make in PAPERS})


def test_every_paper_has_a_section():
    assert {type(made(heading)) for heading in SECTIONS} == PAPERS


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_lists_what_differs_from_the_defaults_with_both_values(heading):
    model = made(heading)
    ours, usual = model.get_params(), type(model)().get_params()
    passed = GIVEN | set(re.findall(r"(\w+)=", heading))
    differs = {name for name in ours if ours[name] != usual[name]} - passed
    assert differs == {row[0] for row in SECTIONS[heading]}
    for name, value, where, default, why in SECTIONS[heading]:
        assert ours[name] == ast.literal_eval(value), name
        assert usual[name] == ast.literal_eval(default), name
        assert where, name
        assert why, name


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_result_is_an_ordinary_estimator(heading, tmp_path):
    X, y = two_blobs(80, 3, gap=8.0)
    model = made(heading)
    assert clone(model).get_params() == model.get_params()
    partly = np.where(np.arange(80) % 10 == 0, y, -1)
    model.fit(X, partly) if isinstance(model, MinimumDensityClassifier) else model.fit(X)
    assert len(model.outliers_) == 0
    ravine.save(model, tmp_path / "model.ravine")
    again = ravine.load(tmp_path / "model.ravine")
    listed = [{**m.get_params(), "gammas": tuple(getattr(m, "gammas", ()))} for m in (model, again)]
    assert repr(listed[0]) == repr(listed[1]).replace("[2.0", "(2.0").replace("0.5]", "0.5)")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert ravine.metrics.clustering_error(y, model.predict(X)) < 0.05


def test_what_is_passed_counts_more():
    assert SpectralConnectivity.as_published(4, n_init=3, laplacian="standard").n_init == 3
    assert MinimumDensity.as_published(7, outliers="label").n_clusters == 7
    kernel_params = {"n_components": 0.9}
    model = MinimumDensity.as_published(kernel="rbf", kernel_params=kernel_params)
    assert model.kernel_params == {"landmarks": None, "n_components": 0.9}
    assert kernel_params == {"n_components": 0.9}


def test_the_threshold_stays_in_its_interval():
    """By default a valley less than one bandwidth outside counts; in the paper it does not."""
    X, y = two_blobs(400, 3, gap=5.0, share=0.15)
    model = MinimumDensity.as_published(standardize=False, overshoot=1.0).fit(X)
    assert ravine.metrics.clustering_error(y, model.labels_) < 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert MinimumDensity.as_published(standardize=False).fit(X).n_clusters_ == 1


def test_random_starts_follow_the_seed_and_find_two_blobs():
    X, y = two_blobs(100, 4, gap=8.0)
    for make in (
        lambda seed: MinimumDensity(2, init="random", n_init=3, random_state=seed),
        lambda seed: MaximumMargin(2, init="random", n_init=3, random_state=seed),
    ):
        models = [make(seed).fit(X) for seed in (1, 1, 2)]
        assert all(ravine.metrics.clustering_error(y, model.labels_) < 0.03 for model in models)
        same, again, other = (model.tree_.splits[0].direction for model in models)
        np.testing.assert_array_equal(same, again)
        assert not np.array_equal(same, other)


def test_a_balance_of_the_sum_is_that_of_the_mean_times_the_rows():
    X, _ = two_blobs(90, 3, gap=3.0, share=0.3)
    mean = MaximumMargin(2, balance=0.1).fit(X).tree_.splits[0]
    total = MaximumMargin(2, balance=9.0, balance_of="sum").fit(X).tree_.splits[0]
    np.testing.assert_allclose(mean.direction, total.direction, atol=1e-6)
    with pytest.raises(InvalidInputError, match="balance has to be"):
        MaximumMargin(2, balance=9.0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert MaximumMargin(2, balance=90.0, balance_of="sum").fit(X).n_clusters_ == 1


def test_far_rows_are_searched_only_if_they_are_included():
    X, _ = two_blobs(200, 3, gap=6.0)
    X[0] = 1e6
    with pytest.warns(OutlierWarning):
        assert MinimumDensity(2).fit(X).outliers_.tolist() == [0]
    partly = np.where(np.arange(200) % 10 == 5, np.arange(200) // 100, -1)
    models = [MinimumDensity(2, outliers="include"), MinimumDensity(2, outliers="include", kernel="rbf")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", OutlierWarning)
        for model in models:
            assert len(model.fit(X).outliers_) == 0
        assert len(MinimumDensityClassifier(outliers="include").fit(X, partly).outliers_) == 0


def test_rows_are_their_own_micro_clusters_up_to_a_number():
    X, _ = two_blobs(260, 3, gap=8.0)
    for exact_rows, most in ((259, 200), (260, 260)):
        model = SpectralConnectivity(2, projection="orthogonal", exact_rows=exact_rows, n_init=1).fit(X)
        centers = model.tree_.splits[0].facts["microclusters"]
        assert centers == 260 if most == 260 else centers <= most


def test_the_first_beta_that_is_balanced_counts():
    X, _ = two_blobs(120, 3, gap=8.0)
    for beta, used in ((2.0, 2.0), ((4.0, 0.5), 4.0), (np.array([3.0, 0.5]), 3.0)):
        assert SpectralConnectivity(2, beta=beta).fit(X).tree_.splits[0].facts["beta"] == used
    for wrong in ((), (1.0, -1.0), "large", (1.0, "a")):
        with pytest.raises(InvalidInputError, match="beta has to be"):
            SpectralConnectivity(2, beta=wrong).fit(X)


@pytest.mark.parametrize("params", [{}, {"projection": "correlated"}, {"projection": "univariate"}])
def test_the_published_balance_counts_all_rows(params):
    rng = np.random.default_rng(0)
    sizes, places = (60, 100, 22), (-30.0, 0.0, 8.0)
    X = np.concatenate(
        [rng.normal((place, 0, 0), 1.0, (n, 3)) for n, place in zip(sizes, places, strict=True)]
    )
    split = SpectralConnectivity.as_published(3, standardize=False, **params).fit(X).tree_.splits
    assert split[0].facts["beta"] == 2.0
    assert split[2].facts["beta"] < 2.0  # 22 rows are more than 122 / 6, but fewer than 182 / 6
    usual = {**params, "formulation": "scale-free", "omega": 0.3, "tol": 0.02, "max_iter": 15}
    split = SpectralConnectivity.as_published(3, standardize=False, **usual).fit(X).tree_.splits
    assert split[2].facts["beta"] == 2.0


def test_published_directions_are_nearly_orthogonal_or_nearly_parallel():
    X, _ = two_blobs(100, 4, gap=3.0)
    cosines = {}
    for projection in ("orthogonal", "correlated"):
        model = SpectralConnectivity.as_published(
            2, projection=projection, n_directions=2, standardize=False
        ).fit(X)
        a, b = model.tree_.splits[0].boundary.directions
        cosines[projection] = abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)
    assert cosines["orthogonal"] < 0.3
    assert cosines["correlated"] > 0.9


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"laplacian": "standard"},
        {"projection": "correlated"},
        {"projection": "univariate", "large_margin": True},
        {"large_margin": True},
    ],
)
def test_every_published_form_of_spectral_connectivity_finds_three_blobs(params):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), 40)
    X = rng.standard_normal((120, 4)) + 9.0 * np.eye(4)[y]
    model = SpectralConnectivity.as_published(3, **params).fit(X)
    assert ravine.metrics.clustering_error(y, model.labels_) == 0
    assert ravine.metrics.clustering_error(y, model.predict(X)) == 0


@pytest.mark.parametrize("make", sorted(PAPERS - {SpectralConnectivity}, key=lambda make: make.__name__))
def test_without_samples_all_rows_are_searched_from_every_start(make):
    X, y = two_blobs(18_000, 2, gap=8.0)
    passes = []
    for samples in (True, False):
        if make is MinimumDensityClassifier:
            model = make(samples=samples).fit(X, np.where(np.arange(18_000) % 1800 == 0, y, -1))
        else:
            model = make(2, samples=samples).fit(X)
        passes.append(model.n_passes_)
        assert ravine.metrics.clustering_error(y, model.predict(X)) < 0.01
    assert passes[0] < passes[1]


def test_parameters_are_checked():
    for model, text in (
        (MinimumDensity(overshoot=-1.0), "overshoot has to be"),
        (MinimumDensity(samples="no"), "samples has to be"),
        (MinimumDensity(init="randomly"), "init has to be"),
        (SpectralConnectivity(exact_rows=-1), "exact_rows has to be"),
        (SpectralConnectivity(formulation="paper"), "formulation has to be"),
        (MinimumDensityClassifier(n_alphas=0), "n_alphas has to be"),
        (MinimumDensityClassifier(discount_overlap=1), "discount_overlap has to be"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            model._check_parameters(3)


def test_without_samples_there_is_no_budget_of_passes(monkeypatch):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 100)
    X, _ = two_blobs(400, 6, gap=2.0)
    for make in (MaximinSeparation, MaximumMargin):
        status = [
            make(2, samples=samples, n_init=1).fit(X).tree_.splits[0].status for samples in (True, False)
        ]
        assert status[0] == "pass limit"
        assert status[1] != "pass limit"
