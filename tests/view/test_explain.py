import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine

from ravine import MinimumDensity, explain, report
from ravine.exceptions import OutlierWarning

WINE = load_wine(as_frame=True).data
MODEL = MinimumDensity(3).fit(WINE)


def test_contributions_are_shares_of_the_distance_of_the_means():
    split = MODEL.tree_.splits[0]
    found = explain(MODEL, WINE).splits[0]
    right = MODEL.tree_.cut(2).predict(WINE) == 1
    left_mean, right_mean = WINE[~right].mean(), WINE[right].mean()
    expected = split.boundary.normal * (right_mean - left_mean).to_numpy()
    expected /= expected.sum()
    for driver in found.drivers:
        j = list(WINE.columns).index(driver.feature)
        assert driver.contribution == pytest.approx(expected[j])
        assert driver.left_mean == pytest.approx(left_mean.iloc[j])
        assert driver.weight == split.boundary.normal[j]
    assert sum(driver.contribution for driver in found.drivers) == pytest.approx(1.0)
    order = np.argsort(-np.abs(split.direction))
    assert [driver.feature for driver in found.drivers] == list(WINE.columns[order])


def test_text_report_and_explanation_rank_features_alike():
    explained, page = explain(MODEL, WINE), report(MODEL, WINE)
    nodes = dict(re.findall(r'<details id="node-(\d+)" (.*?)(?=<details id=|</main>)', page, re.S))
    lines = [line for line in MODEL.tree_.export_text(n_features=8).splitlines() if " by " in line]
    assert len(lines) == len(explained.splits)
    shown = MODEL._repr_html_inner()
    for line, node in zip(lines, sorted(explained.splits), strict=True):  # a staircase, from the top down
        quality = f"quality {MODEL.tree_.splits[node].quality:.2f}"
        assert quality in line
        assert quality in nodes[str(node)]
        assert quality in shown
        named = [name[1:] for name in line.split(" by ")[1].split(", ")]
        assert [driver.feature for driver in explained.splits[node].drivers[:8]] == named
        table = re.search(r'<table class="drivers">.*?</table>', nodes[str(node)], re.S).group()
        rows = re.findall(r'<th scope="row">(.*?)</th>', table.replace("<wbr>", ""))
        assert rows == named


def test_a_cluster_is_set_apart_by_its_means_against_the_rest():
    found = explain(MODEL, WINE)
    for k, cluster in enumerate(found.clusters):
        inside = MODEL.labels_ == k
        assert cluster.weight == inside.sum()
        difference = (WINE[inside].mean() - WINE[~inside].mean()) / WINE.std(ddof=0)
        assert cluster.traits[0].feature == difference.abs().idxmax()
        assert cluster.traits[0].difference == pytest.approx(difference[cluster.traits[0].feature])
        assert cluster.traits[0].rest_mean == pytest.approx(WINE[~inside].mean()[cluster.traits[0].feature])


def test_rules_name_high_and_low_features():
    X = np.column_stack([np.repeat([0.0, 10.0], 50), np.tile([0.0, 0.1], 50)])
    model = MinimumDensity(2).fit(X + np.random.default_rng(0).normal(0, 0.01, X.shape))
    found = explain(model, X, ["size", "noise"])
    assert found.clusters[0].rules[0].startswith("low size")
    assert found.clusters[1].rules[0].startswith("high size")
    assert "driven by size (0 against 10" in found.splits[0].words()


def test_a_rule_is_read_from_the_root_down():
    place = np.repeat([[0.0, 0.0], [0.0, 9.0], [40.0, 0.0]], 60, axis=0)
    X = place + np.random.default_rng(0).normal(0, 0.5, place.shape)
    model = MinimumDensity(3).fit(X)
    leaves = model.tree_.depth[model.tree_.leaves]
    rules = [rule for cluster in explain(model, X, ["far", "near"], 1).clusters for rule in cluster.rules]
    assert leaves.tolist() == [2, 2, 1]
    assert rules == ["low far, then low near", "low far, then high near", "high far"]


def test_words_of_everything_and_of_merged_clusters():
    text = explain(MODEL, WINE).words()
    assert text.count("cluster ") == 3
    assert text.count("split ") == 2
    merged = MODEL.tree_.merge(0, 2)
    found = explain(merged, WINE)
    assert sum(cluster.weight for cluster in found.clusters) == 178
    assert sorted(len(cluster.rules) for cluster in found.clusters) == [1, 2]


def test_one_cluster_and_sparse_rows():
    one = explain(MODEL.tree_.cut(1), WINE)
    assert one.clusters[0].rules == ("every row",)
    dense, stored = (
        explain(MODEL.tree_, WINE.to_numpy()),
        explain(MODEL.tree_, sparse.csr_array(WINE.to_numpy())),
    )
    for a, b in zip(dense.splits[0].drivers, stored.splits[0].drivers, strict=True):
        assert a.contribution == pytest.approx(b.contribution)


def test_with_a_kernel_too_rows_far_from_all_others_do_not_count():
    X = load_iris().data.copy()
    X[[3, 90], 2] = 99999.0
    with pytest.warns(OutlierWarning):
        model = MinimumDensity(2, kernel="rbf").fit(X)
    kept = np.delete(np.arange(150), [3, 90])
    assert explain(model, X).words() == explain(model, X[kept]).words()
