"""The benchmarks' own parts: loading, and the fall back to OpenML with a stub in its place."""

import csv
import json
import tomllib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from benchmarks import (
    bench,
    choice,
    compare,
    datasets,
    papers,
    published,
    published_cases,
    record,
    robustness,
    semisupervised,
)
from scipy import sparse

import ravine
from ravine import MinimumDensity, SpectralConnectivity
from ravine.papers import MDP2
from tests.oracles import two_blobs

RNG = np.random.default_rng(0)


def fake_openml(name, *, version, as_frame, parser):
    labels = RNG.integers(0, 2, 120)
    data = pd.DataFrame({"x": RNG.standard_normal(120) + 6 * labels, "y": RNG.standard_normal(120)})
    data["vote"] = pd.Categorical(np.where(labels == 1, "yes", "no"))
    data.loc[0, "vote"] = np.nan
    data.loc[1, "y"] = np.nan
    return SimpleNamespace(data=data, target=pd.Series(np.where(labels == 1, "b", "a")), name=(name, version))


def test_without_a_directory_the_sets_come_from_openml(monkeypatch, tmp_path):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fake_openml)
    X, y = datasets.load("wine")
    assert X.shape == (120, 3)
    assert np.isfinite(X).all()
    assert set(y) == {0, 1}
    out = tmp_path / "mdh.csv"
    assert papers.main(["--table", "mdh", "--out", str(out)]) == 0
    with open(out) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13 + 2
    assert all(float(row["success_ratio"]) > 0.9 for row in rows)


def test_a_directory_is_read_from_npz(tmp_path):
    np.savez(tmp_path / "wine.npz", X=np.arange(6, dtype=np.uint8).reshape(3, 2), y=np.array([0, 1, 1]))
    X, y = datasets.load("wine", str(tmp_path))
    assert X.dtype == np.float64
    assert y.tolist() == [0, 1, 1]


def test_text_is_read_as_csr_and_two_classes_are_picked_by_rank(tmp_path):
    X = sparse.random_array((6, 4), density=0.5, format="csr", random_state=np.random.default_rng(0))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez(tmp_path / "news_rec.npz", y=np.array([1, 1, 4, 4, 7, 7]), **parts)
    loaded, y = datasets.load("news_rec", str(tmp_path))
    rows, labels = datasets.pair(loaded, y, 0, 2)
    np.testing.assert_array_equal(rows.toarray(), X.toarray()[[0, 1, 4, 5]])
    assert labels.tolist() == [0, 0, 1, 1]


def test_a_set_that_nobody_has_is_said_by_name():
    with pytest.raises(KeyError, match=r"s1 is not on OpenML.*--data"):
        datasets.load("s1")


def test_every_set_of_the_paper_has_a_name_on_openml():
    with open(papers.TABLES / "mdh_table2.csv") as file:
        names = {row["dataset"] for row in csv.DictReader(file)} - {"smartphone"}
    assert names <= set(datasets.OPENML)


def test_two_class_problems_are_scaled_to_their_range(tmp_path):
    labels = np.repeat([3, 1, 7], 40)
    X = RNG.standard_normal((120, 3)) + 5 * labels[:, None]
    X[:, 2] = 4.0
    np.savez(tmp_path / "satellite.npz", X=X, y=labels)
    scaled, y = datasets.problem("satellite_1_2", str(tmp_path))
    assert set(y) == {0, 1}
    assert scaled.shape == (80, 2)
    np.testing.assert_allclose([scaled.min(axis=0), scaled.max(axis=0)], [[-1, -1], [1, 1]])


def test_held_out_labels_are_matched_one_to_one():
    assert papers.agreement(np.array([0, 0, 1, 1, 2]), np.array([2, 2, 0, 0, 0])) == pytest.approx(0.8)


def test_the_laplacian_machine_without_its_graph_is_the_linear_machine():
    from sklearn.svm import LinearSVC

    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    X = semisupervised.standardized(X)
    known = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    there = known != -1
    C = 1 / (2 * 0.01 * there.sum())
    machine = LinearSVC(C=C, dual=False, intercept_scaling=100.0, tol=1e-8).fit(X[there], y[there])
    found = semisupervised.LapSVM(ridge=0.01, smooth=0.0).fit_predict(X, known)
    assert (found == machine.predict(X)).mean() > 0.995
    smoothed = semisupervised.LapSVM(ridge=0.01, smooth=100.0).fit_predict(X, known)
    assert (smoothed != found).any()


def test_drawn_labels_are_right_and_of_both_classes():
    y = (np.arange(100) < 5).astype(int)
    for seed in range(20):
        partly = semisupervised.draw(y, 5, np.random.default_rng(seed))
        known = partly != -1
        assert known.sum() == 5
        assert (partly[known] == y[known]).all()
        assert set(partly[known]) == {0, 1}


def test_results_of_draws_are_read_as_they_were_written(tmp_path):
    results = [("voting", 5, 0, method, 10.0 + k, 0.5) for k, method in enumerate(semisupervised.METHODS)]
    semisupervised.write(results, tmp_path / "results.csv")
    assert semisupervised.read(tmp_path / "results.csv") == results
    assert "| voting | 5 | 10.0 (10.0-10.0) | 11.0" in semisupervised.table(results)


def test_means_that_got_worse_are_listed(tmp_path):
    for folder, purity, share in (("before", 0.80, 0.95), ("now", 0.79, 0.94)):
        (tmp_path / folder).mkdir()
        rows = ["dataset,method,purity,paper purity,seconds", "wine,A,0.9,0.9,1"]
        rows += [f"mean,A,{purity},0.9,1", "mean,B,0.7,nan,1"]
        (tmp_path / folder / "scpp.csv").write_text("\n".join(rows))
        (tmp_path / folder / "mdh.csv").write_text(f"dataset,success_ratio\nmean,{share}\n")
    now, before = tmp_path / "now", tmp_path / "before"
    assert bench.worsened(now, before) == [
        "mdh, mean success_ratio: 0.9400, before 0.9500",
        "scpp, mean A purity: 0.7900, before 0.8000",
    ]
    assert bench.worsened(before, now) == []


def test_generated_sets_are_the_same_every_time_and_have_what_they_promise():
    from benchmarks.generators import KINDS, generated, topics

    one, two = (list(generated(3)) for _ in range(2))
    assert len(one) == len(KINDS)
    for (name, X, y), (_, again, _) in zip(one, two, strict=True):
        np.testing.assert_array_equal(X, again)
        assert np.isfinite(X).all(), name
        assert np.bincount(y).min() >= 30
        assert len(X) == len(y)
    counts, weighted = (X for _, X, _ in topics(0))
    assert (counts.data == np.round(counts.data)).all()
    np.testing.assert_allclose(np.sqrt(weighted.multiply(weighted).sum(axis=1)), 1.0)


def test_what_is_chosen_on_the_other_sets():
    table = np.array([[0.5, 0.6], [0.5, 0.7], [0.9, 0.1]])
    mean, chosen = choice.leave_sets_out(table)  # without a set, the best value over the two others
    assert chosen == {1: 1, 0: 2}
    assert mean == pytest.approx((0.5 + 0.5 + 0.1) / 3)


def test_the_parameters_that_are_compared_are_those_of_the_estimators():
    for parameters in papers.WAYS.values():
        SpectralConnectivity(2, **parameters)
    for estimator, values in choice.QUESTIONS.values():
        for value in values:
            getattr(ravine, estimator)(2, **value)
    for make in robustness.ESTIMATORS.values():
        make(2)


def test_the_table_of_choices_can_be_read_again(tmp_path, capsys):
    X, y = two_blobs(60, 2)
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    choice.main(["--data", str(tmp_path), "--no-others", "--out", str(tmp_path / "t.csv")])
    first = capsys.readouterr().out.splitlines()
    choice.main(["--read", str(tmp_path / "t.csv")])
    again = capsys.readouterr().out.splitlines()
    assert first[0] == "blobs"
    assert first[1:] == again


# --- as published, stamps, stale figures --------------------------------------------------------------------


def small_case(monkeypatch):
    X, y = two_blobs(60, 3, gap=8.0)
    monkeypatch.setitem(published.METRICS, "toy", published.METRICS["mdh"])
    printed = {("blobs", "MDP2", "success_ratio"): 1.0, ("blobs", "MDP2", "binary_v_measure"): 0.9}
    monkeypatch.setattr(published, "printed", lambda table: printed)
    fits = (published_cases.one(make) for make in (MDP2, MinimumDensity))
    return published.Case("toy", "blobs", "MDP2", lambda: [(X, y)], *fits)


def test_a_run_goes_on_where_it_was_ended_and_begins_anew_with_another_library(monkeypatch, tmp_path, capsys):
    case, path = small_case(monkeypatch), tmp_path / "published.csv"
    monkeypatch.setattr(record, "source", lambda: "one")
    published.run_all([case], path, 1)
    first = published.read(path)
    assert [(row["printed"], row["as_published"], row["default"]) for row in first] == [
        ("1", "1.0000", "1.0000"),
        ("0.9", "1.0000", "1.0000"),
    ]
    assert [published.within(row) for row in first] == [True, False]
    monkeypatch.setattr(published, "run", lambda *_: pytest.fail("the case is in the file"))
    published.run_all([case], path, 1)
    assert published.read(path) == first
    monkeypatch.setattr(published, "run", lambda *_: first[:1])
    monkeypatch.setattr(record, "source", lambda: "two")
    published.run_all([case], path, 1)
    assert published.read(path) == first[:1]
    assert record.read_stamp(path)["source"] == "two"
    assert {"command", "commit", "versions"} <= set(record.read_stamp(path))
    assert capsys.readouterr().out.count("1/1 toy blobs MDP2") == 2


def test_a_run_begins_anew_with_other_settings_and_names_every_command(monkeypatch, tmp_path):
    case, path = small_case(monkeypatch), tmp_path / "published.csv"
    monkeypatch.setattr(record, "source", lambda: "one")
    for words in (["x.py", "--tables", "mdh"], ["x.py", "--tables", "kmdh"], ["x.py", "--tables", "mdh"]):
        monkeypatch.setattr(record.sys, "argv", words)
        published.run_all([case], path, 1)
    command = "python benchmarks/x.py --tables "
    assert record.read_stamp(path)["command"] == f"{command}mdh; {command}kmdh"
    assert len(published.read(path)) == 2
    monkeypatch.setattr(published, "settings", lambda: "other")
    published.run_all([], path, 1)
    assert not path.exists()
    assert record.stamp_of(path).exists()


def test_stamps_name_the_sources_of_their_commit():
    """Figures of several commits in one file, or of changes that were never committed, would be found."""
    for path in published.OUT.parent.glob("*.json"):
        made = json.loads(path.read_text())
        if record._git("cat-file", "-t", made["commit"]) == "commit":  # not in a copy without its history
            assert made["source"] == record.source(made["commit"]), path.name


def test_the_width_of_a_kernel_is_that_of_the_best_partition_nearest_to_the_root_of_the_columns(monkeypatch):
    X, y = two_blobs(60, 4, gap=8.0)
    monkeypatch.setattr(published_cases, "load", lambda name, directory: (X, y))
    monkeypatch.setattr(published_cases, "WIDTHS", (0.5, 0.9, 2.0))
    assert published_cases.width_by_classes("blobs, all widths are right", None) == 0.9
    right = []

    def score(table, metric, y, labels):
        right.append(labels)
        return float(len(right) == 3)

    monkeypatch.setattr(published_cases, "score", score)
    assert published_cases.width_by_classes("blobs, the third is right", None) == 2.0


def test_figures_made_with_changes_that_are_not_committed_are_never_current(monkeypatch, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("")
    monkeypatch.setattr(record, "source", lambda: "tree" + record.CHANGED)
    record.write_stamp(path)
    assert not record.is_current(path)
    monkeypatch.setattr(record, "source", lambda: "tree")
    assert not record.is_current(path)
    record.write_stamp(path)
    assert record.is_current(path)
    assert bench.unfinished(["t", "published", "other"], tmp_path, again=False) == ["published", "other"]
    assert bench.unfinished(["t"], tmp_path, again=True) == ["t"]


def test_a_stamp_names_no_folder_of_this_machine():
    words = [
        "/home/me/benchmarks/papers.py",
        "--table",
        "mdh",
        "--data",
        "/home/me/data",
        "--out",
        "/tmp/x.csv",
    ]
    assert record.shown(words) == "python benchmarks/papers.py --table mdh --data DIR"


def test_a_clustering_without_a_split_has_the_papers_measures_0():
    y = np.array([0, 0, 1, 1])
    assert published.score("mdh", "binary_v_measure", y, np.zeros(4)) == 0.0
    assert published.score("mspc", "error", y, np.zeros(4)) == 50.0


def test_figures_that_changed_are_listed(tmp_path):
    rows = [dict.fromkeys(published.COLUMNS, "0") | {"table": "mdh", "metric": "purity", "dataset": "wine"}]
    published.append([rows[0] | {"as_published": "0.80", "default": "0.70"}], tmp_path / "before.csv")
    published.append([rows[0] | {"as_published": "0.83", "default": "0.705"}], tmp_path / "now.csv")
    assert bench.stale(tmp_path / "now.csv", tmp_path / "before.csv") == [
        "mdh wine 0 purity, as_published: 0.83, in the results 0.80"
    ]


def test_the_page_of_results_is_what_the_command_makes():
    page = bench.RESULTS.read_text()
    assert bench.page() == page, "run python benchmarks/bench.py --write"
    assert record.read_stamp(published.OUT)["commit"][:7] in page
    assert len(page.splitlines()) <= 500


def test_every_file_of_results_is_on_the_page_or_made_again_by_bench():
    said = tomllib.loads((published.OUT.parent / "page.toml").read_text())["section"]
    shown = {section["file"] for section in said if "file" in section}
    kept = {path.name for path in published.OUT.parent.glob("*.csv")}
    assert shown <= kept
    assert kept - shown <= {f"{table}.csv" for table in bench.TABLES}


def test_a_printed_table_becomes_a_file(tmp_path):
    text = "x86_64\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nand\n\n| c | d, e |\n|---|---|\n| 3 | 4, 5 |\n"
    bench.keep_printed(text, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'c,"d, e"\n3,"4, 5"\n'


def test_a_section_may_turn_a_file_around(monkeypatch, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "t.csv").write_text(
        "k,d,right,v\n2,5,1 of 2,0.12345\n2,9,2 of 2,0.5\n3,5,0 of 2,1\n"
    )
    monkeypatch.setattr(bench, "HERE", tmp_path)
    section = {"file": "t.csv", "pivot": ["k", "d", "{right}, {v}"], "where": {"k": ["2"]}}
    assert bench.table_of(section).splitlines()[2:] == ["| 2 | 1 of 2, 0.123 | 2 of 2, 0.5 |"]
    assert bench.table_of({"file": "t.csv", "columns": ["v", "k"]}).splitlines()[0] == "| v | k |"


@pytest.mark.parametrize(
    ("table", "dataset", "method"),
    [("mdh", "wine", "MDP2"), ("kmdh", "iris", "KMDH_pca"), ("cpmmc", "digits_1_7", "CPMMC")],
)
def test_figures_are_not_stale(table, dataset, method, monkeypatch, tmp_path):
    """A figure of each kind is made again, from sets that come with scikit-learn."""

    def load(name, directory=None):
        return getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)

    monkeypatch.setattr(published_cases, "load", load)
    monkeypatch.setattr(published_cases, "C_FACTORS", (1.0, 10.0))  # a coarser grid: the error may be higher
    (case,) = (
        case for case in published.TABLES[table](None) if (case.dataset, case.method) == (dataset, method)
    )
    rows = published.run(case, 1)
    where = table, dataset, method
    (*stored,) = (row for row in published.read(published.OUT) if tuple(row.values())[:3] == where)
    assert len(stored) == len(rows)
    for row, earlier in zip(rows, stored, strict=True):
        allowed = 1.5 if row["metric"] == "error" else 0.01
        assert float(row["default"]) == pytest.approx(float(earlier["default"]), abs=allowed / 2)
        assert float(row["as_published"]) == pytest.approx(float(earlier["as_published"]), abs=allowed)


def test_the_excess_is_that_of_the_median_over_the_better_median():
    errors = np.array([[3.0, 4.0, 9.0], [2.0, 1.0, 8.0], [7.0, 5.0, 2.0]])
    assert semisupervised.over_better(errors) == 3.0 - 4.0
    assert semisupervised.over_better(np.stack([errors, errors + [1.0, 0.0, 0.0]])).tolist() == [-1.0, 0.0]


@pytest.mark.parametrize(
    "method", [semisupervised.supervised_svm, semisupervised.self_training, semisupervised.label_spreading]
)
def test_classifiers_use_the_labels_they_get(method):
    X, y = two_blobs(100, 3, gap=8.0)
    partly = np.where(np.arange(100) % 5 == 0, y, -1)
    assert np.mean(method(X, partly) == y) > 0.98


def test_a_linear_machine_is_exact_when_the_rows_within_its_margin_stay():
    X, y = two_blobs(60, 2, gap=1.0)
    sides, costs, penalty = 2.0 * y - 1, np.ones(60), 0.1 * np.eye(2)
    normal = semisupervised.squared_hinge(X, sides, costs, penalty)
    slack = np.maximum(0, 1 - sides * (X @ normal))
    np.testing.assert_allclose(penalty @ normal - X.T @ (sides * slack), 0, atol=1e-8)


def test_the_ledger_measures_maximum_margin_with_names_that_both_commits_have():
    found = compare.margin_accuracies(*two_blobs(100, 3, gap=6.0))
    assert list(found) == ["tuned", "default", "standardized"]
    assert min(found.values()) > 0.97
