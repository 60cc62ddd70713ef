"""A given number of clusters is found wherever enough rows differ."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from ravine import MaximinSeparation, MaximumMargin, MinimumDensity, PrincipalDirection, SpectralConnectivity
from ravine.split.split import NO_VALLEY

RNG = np.random.default_rng(0)
TABLES = {
    "uniform": RNG.random((300, 3)),
    "normal": RNG.standard_normal((300, 5)),
    "heavy tails": RNG.standard_cauchy((200, 2)),
    "skewed": np.exp(2.0 * RNG.standard_normal((300, 2))),
    "ten rows": RNG.standard_normal((10, 3)),
    "most rows are equal": np.concatenate([np.zeros((30, 2)), np.arange(12.0).reshape(6, 2) ** 3]),
    "one column": RNG.standard_normal((100, 1)),
    "two values": np.array([[i >> k & 1 for k in range(4)] for i in range(10)], dtype=float),
}
MODELS = {
    "density": MinimumDensity,
    "rbf": lambda k: MinimumDensity(k, kernel="rbf"),
    "connectivity": SpectralConnectivity,
    "two directions": lambda k: SpectralConnectivity(k, n_directions=2),
    "separation": MaximinSeparation,
    "margin": MaximumMargin,
    "principal": PrincipalDirection,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("model", MODELS)
def test_as_many_clusters_as_were_asked_for_are_found(model, table):
    for k in (2, 3, 7):
        assert len(np.unique(MODELS[model](k).fit(TABLES[table]).labels_)) == k


@pytest.mark.filterwarnings("ignore")
def test_ten_rows_have_a_diffusion_map():
    for k in (2, 3, 7):
        labels = MinimumDensity(k, kernel="diffusion").fit(TABLES["ten rows"]).labels_
        assert len(np.unique(labels)) == k


def test_a_split_without_a_valley_says_so_and_has_memberships():
    X = load_iris().data
    with pytest.warns(ConvergenceWarning, match=r"1 of 2 splits have no valley: the rows show fewer than 3"):
        model = MinimumDensity(3).fit(X)
    forced = [split for split in model.tree_.splits if split is not None and NO_VALLEY in split.facts]
    assert len(forced) == 1
    assert forced[0].quality < 0.1
    assert "split, without a valley, with quality 0.0" in str(model.tree_)
    assert np.median(model.predict_proba(X).max(axis=1)) > 0.9


@pytest.mark.parametrize("limit", [{"max_depth": 1}, {"min_cluster_size": 60}, {"outliers": "label"}])
@pytest.mark.filterwarnings("ignore:.*far from all:UserWarning")
def test_limits_of_the_user_are_kept_and_named(limit):
    X = np.concatenate([np.zeros((60, 1)), np.ones((40, 1)), [[1e6]]])
    with pytest.warns(ConvergenceWarning, match=f"found . of 3 clusters.*{next(iter(limit))}"):
        MinimumDensity(3, **limit).fit(X)


@pytest.mark.filterwarnings("ignore")
def test_rows_that_are_all_equal_are_one_cluster():
    assert MinimumDensity(2).fit(np.ones((20, 2))).n_clusters_ == 1
