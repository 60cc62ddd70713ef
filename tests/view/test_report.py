"""The page: whole, small, escaped, and true to the model; test_browser.py looks at it in a browser."""

import html
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine

import ravine
from ravine import InvalidInputError, MinimumDensity, PrincipalDirection, explain, report
from ravine.data.memory import MemoryRows
from ravine.view.facts import agreement, gather

WINE = load_wine(as_frame=True)
MODEL = MinimumDensity("auto").fit(WINE.data)
VOID = {"meta", "link", "wbr"}


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
    found = re.search(rf'<details id="node-{number}">(.*?)</details>', page, re.S).group(1)
    return html.unescape(re.sub(r"<[^>]+>", " ", found.replace("<wbr>", "")))


def test_the_page_is_whole_and_refers_to_nothing_outside():
    page = report(MODEL, WINE.data, labels=WINE.target, source="wine.csv", command="ravine fit wine.csv")
    reader = read(page)
    assert reader.tags.count("details") == MODEL.tree_.n_nodes
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
    for name, value in agreement(WINE.target[5:], MODEL.labels_[5:]).items():
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
    assert html.escape(bad) in page
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
    assert report(MODEL.tree_, sparse.csr_array(X)).count("<details") == MODEL.tree_.n_nodes


def test_other_numbers_of_a_split_are_shown():
    from types import SimpleNamespace

    from ravine.view.report import _how_good

    split = SimpleNamespace(
        quality=0.5, evidence=None, facts={"margin <": 0.25}, method="m", status="s", n_iter=1
    )
    assert "<dt>margin &lt;</dt><dd>0.25</dd>" in _how_good(split)


def test_weights_count_as_rows():
    weights = np.where(MODEL.labels_ == 0, 2, 1)
    page = report(MODEL.tree_, WINE.data.to_numpy(), sample_weight=weights)
    leaf = MODEL.tree_.leaves[0]
    assert f"{2 * (MODEL.labels_ == 0).sum()} rows" in node(page, leaf)
    facts = gather(MODEL.tree_, WINE.data.to_numpy(), None, weights, None, None)
    explained = explain(MODEL.tree_, WINE.data.to_numpy(), sample_weight=weights)
    assert facts.explained.splits == explained.splits


def test_notebooks_show_estimators_and_trees():
    assert "ravine-tree" not in MinimumDensity(2)._repr_html_()
    shown = MODEL._repr_html_()
    assert MODEL.tree_._repr_html_() in shown
    assert MODEL._repr_mimebundle_()["text/html"].count("ravine-tree") == 1
    for k in range(MODEL.n_clusters_):
        assert f"<b>cluster {k}</b>: {(MODEL.labels_ == k).sum()} rows" in shown


def test_a_report_reads_the_rows_five_times():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((20_000, 3)), rng.standard_normal((20_000, 3)) + 8.0])
    rows = MemoryRows(X)
    gather(PrincipalDirection(4).fit(X).tree_, rows, None, None, None, np.arange(len(X)) % 2)
    assert rows.reads.rows / len(X) == pytest.approx(
        5, abs=0.05
    )  # besides, a few rows to begin, and exemplars
    assert "five passes" in report.__doc__
    assert "five passes" in gather.__doc__


def test_the_report_is_public():
    assert ravine.report is report
