"""The page: whole, small, escaped, and true to the model; test_browser.py looks at it in a browser."""

import copy
import html
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

import ravine
from ravine import (
    InvalidInputError,
    MinimumDensity,
    PrincipalDirection,
    explain,
    report,
)
from ravine.data.memory import MemoryRows
from ravine.exceptions import OutlierWarning
from ravine.view.facts import facts_of, scores_against
from tests.tree.test_tree import staircase

WINE = load_wine(as_frame=True)
MODEL = MinimumDensity("auto").fit(WINE.data)
VOID = {"meta", "link", "wbr", "input"}


class Reader(HTMLParser):
    """Checks that tags nest, and gathers what the page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.loads = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.loads += [value for name, value in attrs if name in ("src", "srcset", "data") or tag == "link"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.loads == []
    for link in reader.links:
        assert link[1:] in reader.ids
    return reader


def node(page, number):
    """Return the text of one node of the tree."""
    found = re.search(rf'<details id="node-{number}" (.*?)(?=<details id=|</main>)', page, re.S).group(1)
    return html.unescape(re.sub(r"<[^>]+>", " ", found.replace("<wbr>", "")))


def test_the_page_is_whole_and_refers_to_nothing_outside():
    page = report(MODEL, WINE.data, labels=WINE.target, source="wine.csv", command="ravine fit wine.csv")
    reader = read(page)
    assert page.count('<details id="node-') == MODEL.tree_.n_nodes
    assert "http://" not in page
    assert "https://" not in page
    assert reader.tags.count("script") == 1


def test_splits_show_the_numbers_of_the_model():
    page = report(MODEL, WINE.data)
    for number, split in explain(MODEL, WINE.data).splits.items():
        text = node(page, number)
        made = MODEL.tree_.splits[number]
        assert f"{made.quality:.3f}" in text
        assert f"p = {made.evidence.p_value:.2g}" in text
        assert f"left: {split.left_weight:g} rows" in text
        assert f"right: {split.right_weight:g} rows" in text
        for driver in split.drivers[:8]:
            assert driver.feature in text


def test_clusters_show_their_profile_and_exemplars():
    names = [f"bottle {i}" for i in range(len(WINE.data))]
    page = report(MODEL, WINE.data, row_ids=names)
    exemplars = MODEL.tree_.exemplars(WINE.data)
    for leaf in MODEL.tree_.leaves:
        k = MODEL.tree_.label[leaf]
        text = node(page, leaf)
        inside = MODEL.labels_ == k
        assert f"{inside.sum()} rows" in text
        trait = explain(MODEL, WINE.data).clusters[k].traits[0]
        mean = WINE.data[trait.feature][inside].mean()
        assert (f"{mean:,.0f}" if mean >= 1000 else f"{mean:.3g}") in text
        for row in exemplars[k]:
            assert names[row] in text


def test_classes_are_compared_where_they_are_given():
    labels = np.array([f"class {k}" for k in WINE.target], dtype=object)
    labels[:5] = None
    page = report(MODEL, WINE.data, labels=labels)
    for name, value in scores_against(WINE.target[5:], MODEL.labels_[5:]).items():
        assert f"<dt>{name}</dt><dd>{value:.3f}</dd>" in page
    assert page.count("mostly class") == 1 + MODEL.tree_.n_leaves
    assert "Against the given classes" not in report(MODEL, WINE.data)
    with pytest.raises(InvalidInputError, match="one class for each of the 178 rows"):
        report(MODEL, WINE.data, labels=[1, 2])


def test_whatever_comes_from_the_data_is_escaped():
    bad = '<script>alert("1")</script>\'&'
    names = [f"{bad}{j}" for j in range(13)]
    page = report(
        MODEL.tree_,
        WINE.data.to_numpy(),
        feature_names=names,
        row_ids=[bad] * 178,
        labels=[bad, "fine"] * 89,
        title=bad,
        source=bad,
        command=bad,
    )
    assert read(page).tags.count("script") == 1
    assert bad not in page
    assert page.count("&lt;script&gt;alert(") > 10
    assert bad in html.unescape(page)
    shown = MinimumDensity(2).fit(WINE.data.set_axis(names, axis=1))
    assert "<script>" not in shown.tree_._repr_html_()


def test_thirty_clusters_are_under_a_megabyte():
    rng = np.random.default_rng(0)
    centers = 30 * rng.standard_normal((30, 40))
    X = np.repeat(centers, 40, axis=0) + rng.standard_normal((1200, 40))
    model = MinimumDensity(30).fit(X)
    assert model.n_clusters_ == 30
    page = report(model, X, labels=np.repeat(np.arange(30), 40))
    assert len(page.encode()) < 1_000_000
    read(page)


def test_a_hundred_thousand_rows_are_under_a_megabyte():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 30, 100_000)
    X = 30 * rng.standard_normal((30, 8))[which] + rng.standard_normal((100_000, 8))
    tree = PrincipalDirection(30).fit(X).tree_
    page = report(tree, X, row_ids=[f"customer {i}" for i in range(len(X))])
    assert len(page.encode()) < 1_000_000
    drawn = sum(
        part.count("M") for part in re.findall(r'class="dots [^"]*" data-leaf="\d+" d="([^"]*)"', page)
    )
    assert 3000 <= drawn <= 3030


def test_a_kernel_has_a_page_about_the_user_s_columns():
    model = MinimumDensity(3, kernel="rbf").fit(WINE.data)
    page = report(model, WINE.data, labels=WINE.target)
    read(page)
    assert "component 1" not in page.replace("principal component 1", "")
    assert "The boundary is curved (a kernel)" in page
    explained = explain(model, WINE.data)
    right = model.transform(WINE.data)[:, 0] > 0
    Z = (WINE.data - WINE.data.mean()) / WINE.data.std(ddof=0)
    difference = Z[right].mean() - Z[~right].mean()
    strongest = difference.abs().idxmax()
    first = explained.splits[0].drivers[0]
    assert first.feature == strongest
    assert first.weight == pytest.approx(difference[strongest])
    assert first.left_mean == pytest.approx(WINE.data[strongest][~right].mean())
    assert sum(d.contribution for d in explained.splits[0].drivers) == pytest.approx(1)
    for cluster in explained.clusters:
        assert cluster.weight == (model.labels_ == cluster.label).sum()
    with pytest.raises(InvalidInputError, match="give the model itself"):
        report(model.tree_, WINE.data)


def test_a_precomputed_kernel_is_described_by_its_components():
    K = np.exp(-((WINE.data.to_numpy()[:, None, -1] - WINE.data.to_numpy()[None, :, -1]) ** 2) / 1e5)
    page = report(MinimumDensity(2, kernel="precomputed").fit(K), K)
    read(page)
    assert "component 1" in page


def test_what_is_handed_in_is_shown():
    page = report(MODEL, WINE.data, row_html=lambda i: f"<b>picture of {i}</b>")
    for rows in MODEL.tree_.exemplars(WINE.data):
        shown = [page.count(f"<b>picture of {i}</b>") for i in rows]
        assert shown == [2, 1, 1]  # the most typical row is also in the table of clusters
    assert "Rows set aside" not in page


def test_names_of_clusters_are_those_given():
    page = report(MODEL, WINE.data, names={1: "a <b>"})
    assert "<b>a &lt;b&gt;</b>: " in page
    assert "</span></a> a &lt;b&gt;</th>" in page
    assert "Cluster 0" in page
    assert "Cluster 1" not in page


@pytest.mark.parametrize("outliers", ["assign", "label"])
def test_rows_far_from_all_others_do_not_spoil_the_page(outliers):
    X = WINE.data.to_numpy().copy()
    X[3], X[90, 2] = 1e6, 99999.0
    with pytest.warns(OutlierWarning):
        model = MinimumDensity(3, outliers=outliers).fit(X)
    facts = facts_of(model, X)
    kept = np.delete(np.arange(178), [3, 90])
    np.testing.assert_array_equal(facts.aside, [3, 90])
    clean = facts_of(model.tree_, X[kept])
    for one, other in zip(facts.explained.splits.values(), clean.explained.splits.values(), strict=True):
        assert one.words() == other.words()
    for node, curve in clean.densities.items():
        np.testing.assert_allclose(facts.densities[node].density, curve.density, atol=1e-9)
    np.testing.assert_allclose(facts.row_map.frame[1], clean.row_map.frame[1])
    np.testing.assert_allclose(facts.row_map.lines[0].normal, clean.row_map.lines[0].normal)
    for label, quality in facts.quality.items():
        assert quality.membership == pytest.approx(clean.quality[label].membership)
    page = report(model, X, row_ids=[f"bottle <{i}>" for i in range(178)])
    assert "2 rows far from all others are not counted." in page
    assert "bottle &lt;3&gt;, bottle &lt;90&gt;. " in page
    assert ("Their label is -1." in page) == (outliers == "label")
    assert explain(model, X).words() == explain(model.tree_, X[kept]).words()


def test_findings_about_the_data_are_listed_as_text():
    X = np.column_stack([WINE.data, np.ones(178)])
    names = [*WINE.feature_names, "<a>"]
    page = report(MinimumDensity(2).fit(X), X, feature_names=names)
    assert "About the data" in page
    assert "&lt;a&gt; is constant" in page
    assert "<a>" not in page


def test_given_coordinates_are_the_places_of_the_map():
    places = np.random.default_rng(0).standard_normal((178, 2))
    facts = facts_of(MODEL, WINE.data, coordinates=places)
    np.testing.assert_array_equal(facts.row_map.points, places)
    assert facts.row_map.lines == {}
    with pytest.raises(InvalidInputError, match=r"shape \(178, 2\)"):
        report(MODEL, WINE.data, coordinates=places[:5])


def test_defaults_are_left_out_and_shares_have_no_negative_zero():
    page = report(MinimumDensity(2, alpha_max=0.5).fit(WINE.data), WINE.data)
    folded = re.search(r"parameters that are not the defaults.*?</details>", page, re.S).group()
    assert "<dt>alpha_max</dt><dd>0.5</dd>" in folded
    assert "None" not in folded
    assert "\u22120\u00a0%" not in page
    assert "1 clusters" not in report(MODEL.tree_.cut(1), WINE.data.to_numpy())


def test_one_cluster_less_and_one_more():
    page = report(MODEL, WINE.data)
    last = int(MODEL.tree_.inner[-1])
    quality = MODEL.tree_.splits[last].quality
    text = html.unescape(re.sub(r"<[^>]+>", " ", page[page.index("One cluster fewer, one more") :]))
    assert re.search(rf"With one cluster fewer,\s+0\s+and\s+1\s+would be one.*quality of {quality:.2f}", text)
    refused = max(
        (MODEL.tree_.weight[leaf] * refused.quality, leaf)
        for leaf in MODEL.tree_.leaves
        if (refused := MODEL.tree_.refused[leaf]) is not None
    )[1]
    assert re.search(rf"With one more,\s+{MODEL.tree_.label[refused]}\s+would be divided", text)


def test_with_leaves_that_were_not_searched_nothing_is_said_of_one_more():
    model = MinimumDensity(4).fit(WINE.data)
    tree = model.tree_
    known = [tree.weight[leaf] * tree.refused[leaf].quality for leaf in tree.leaves if tree.refused[leaf]]
    unknown = [tree.weight[leaf] for leaf in tree.leaves if not tree.refused[leaf]]
    assert max(known, default=0.0) < max(unknown)
    page = report(model, WINE.data)
    assert "<h2>One cluster fewer</h2>" in page
    assert "With one more" not in page


def test_a_page_has_a_thousand_leaves_at_most():
    n = 3000
    rows = np.column_stack([np.arange(n), np.zeros(n)])
    with pytest.raises(InvalidInputError, match="1000 leaves, got 3000; cut the tree"):
        report(staircase(n), rows)
    page = report(staircase(n).cut(150), rows)
    assert page.count('id="node-') == 299
    assert page.count("<li") == page.count("</li>")
    assert page.count("<ul") == page.count("</ul>")


def test_odd_trees_have_pages():
    X = WINE.data.to_numpy()
    one = report(MODEL.tree_.cut(1), X)
    assert "all rows are one cluster" in one
    read(one)
    merged = MODEL.tree_.merge(0, 2)
    page = report(merged, X)
    read(page)
    assert "Part of cluster 0" in page
    few = report(MODEL.tree_, X[MODEL.labels_ != 1])  # nobody in a cluster
    read(few)
    assert "None of these rows" in few
    assert report(MODEL.tree_, sparse.csr_array(X)).count('<details id="node-') == MODEL.tree_.n_nodes


def test_other_numbers_of_a_split_are_shown():
    split, *others = MODEL.tree_.splits
    made = replace(split, facts={"margin <": 0.25})
    page = report(replace(MODEL.tree_, splits=(made, *others)), WINE.data.to_numpy())
    assert "<dt>margin &lt;</dt><dd>0.25</dd>" in page


def test_weights_count_as_rows():
    weights = np.where(MODEL.labels_ == 0, 2, 1)
    page = report(MODEL.tree_, WINE.data.to_numpy(), sample_weight=weights)
    leaf = MODEL.tree_.leaves[0]
    assert f"{2 * (MODEL.labels_ == 0).sum()} rows" in node(page, leaf)
    facts = facts_of(MODEL.tree_, WINE.data.to_numpy(), sample_weight=weights)
    explained = explain(MODEL.tree_, WINE.data.to_numpy(), sample_weight=weights)
    assert facts.explained.splits == explained.splits


def test_notebooks_show_estimators_and_trees():
    assert "ravine-tree" not in MinimumDensity(2)._repr_html_()
    shown = MODEL._repr_html_()
    assert shown.count("<rect") == MODEL.tree_.n_nodes  # the picture of the tree
    assert len(MODEL.tree_._repr_html_().splitlines()) == MODEL.tree_.n_nodes
    assert MODEL._repr_mimebundle_()["text/html"].count('class="ravine-tree"') == 1
    for k in range(MODEL.n_clusters_):
        assert f"cluster {k}: {(MODEL.labels_ == k).sum()} rows" in shown
    assert pickle.loads(pickle.dumps(MODEL))._repr_html_().count("<rect") == MODEL.tree_.n_nodes
    edited = copy.copy(MODEL)
    edited.tree_ = MODEL.tree_.prune(0)
    assert edited._repr_html_().count("<rect") == 1


def test_a_report_reads_the_rows_six_times():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((20_000, 3)), rng.standard_normal((20_000, 3)) + 8.0])
    rows = MemoryRows(X)
    tree = PrincipalDirection(4).fit(X).tree_
    facts_of(tree, rows, labels=np.arange(len(X)) % 2)
    assert rows.reads.rows / len(X) == pytest.approx(
        6, abs=0.1
    )  # besides, 3000 rows of the map, and exemplars
    assert "six passes" in report.__doc__
    assert "six passes" in facts_of.__doc__


def test_a_clustering_without_a_tree_has_no_report():
    X = load_wine().data
    with pytest.raises(InvalidInputError, match="KMeans has no tree to show"):
        ravine.report(KMeans(2, n_init=1).fit(X), X)


def test_a_report_needs_a_fitted_model():
    with pytest.raises(NotFittedError, match=r"MinimumDensity .*not fitted"):
        ravine.report(MinimumDensity(), load_wine().data)
