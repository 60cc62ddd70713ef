"""Methods beside each other: ranks, regret, critical difference, limits, and runs that resume."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest

from tests.oracles import two_blobs

if not Path("/proc/self/status").exists():
    pytest.skip("the memory of a process is read from /proc", allow_module_level=True)

from benchmarks import beside, competitors, figures, measure, ranks, record


def test_mean_ranks_share_ties_and_a_missing_score_is_the_worst():
    scores = np.array([[0.9, 0.5, 0.5], [0.2, np.nan, 0.8]])
    np.testing.assert_allclose(ranks.mean_ranks(scores), [1.5, 2.75, 1.75])
    np.testing.assert_allclose(ranks.regret(scores), [[0, 0.4, 0.4], [0.6, 0.8, 0]])


def test_the_critical_difference_is_that_of_the_textbook():
    # Demsar, 2006, Table 5: q = 2.569 for four and 3.164 for ten methods at 0.05
    assert ranks.critical_difference(14, 4) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert ranks.critical_difference(30, 10) == pytest.approx(3.164 * np.sqrt(10 * 11 / (6 * 30)), rel=1e-3)


def test_bars_join_methods_within_the_critical_difference():
    assert ranks.cliques(np.array([3.9, 1.0, 1.8, 2.5]), 1.5) == [(1.0, 2.5), (2.5, 3.9)]
    assert ranks.cliques(np.array([1.0, 3.0]), 1.5) == []


def test_the_plot_of_critical_differences_is_drawn(tmp_path):
    scores = np.random.default_rng(0).random((12, 5))
    ranks.plot_critical_differences(list("abcde"), scores, tmp_path / "cd.png")
    assert (tmp_path / "cd.png").stat().st_size > 5000


def nothing():
    pass


def by_sign(X):
    held = np.ones(30 << 17)  # 30 MB
    began = time.process_time()
    while time.process_time() < began + 0.05:
        held += 1
    return X[:, 0] > 0


def fails(X):
    raise ValueError("no such rows")


def never_ends(X):
    while True:
        pass


def test_a_fit_is_measured_in_a_process_of_its_own():
    X = np.array([[-1.0], [1.0]])
    found = measure.measured(by_sign, X, nothing, 20)
    assert found.labels.tolist() == [False, True]
    assert found.seconds >= 0.05
    assert 25 < found.peak_mb < 100


@pytest.mark.slow
def test_a_fit_that_fails_or_takes_too_long_is_a_result():
    assert measure.measured(fails, 0, nothing, 5).problem == "ValueError: no such rows"
    assert measure.measured(never_ends, 0, nothing, 1).problem == "more than 1 s"


@pytest.fixture
def data(tmp_path):
    for name, gap in (("near", 3.0), ("far", 9.0)):
        X, y = two_blobs(60, 2, gap=gap)
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    return tmp_path


@pytest.mark.slow
def test_what_is_in_the_file_is_not_run_again(data, capsys, monkeypatch):
    out = data / "beside.csv"
    given = ["--data", str(data), "--out", str(out), "--hipart", "none", "--methods", "KMeans", "Ward"]
    assert beside.main(given) == 0
    lines = beside.read(out)
    assert [(line["dataset"], line["method"]) for line in lines] == [
        (name, method) for name in ("far", "near") for method in ("KMeans", "Ward")
    ]
    assert float(lines[0]["v_measure"]) == 1.0
    out.write_text(
        out.read_text().replace(f"far,60,2,2,Ward,2,{lines[1]['v_measure']}", "far,60,2,2,Ward,2,0.1234")
    )
    assert beside.main([*given, "--plot", str(data / "cd.png")]) == 0
    assert float(beside.read(out)[1]["v_measure"]) == 0.1234
    assert "| KMeans | 1." in capsys.readouterr().out
    monkeypatch.setattr(record, "source", lambda: "another")
    record.announce_earlier(out)
    assert "stay as they are" in capsys.readouterr().out.splitlines()[-1]


def test_sets_and_methods_that_are_not_run_through_are_left_out():
    def line(name, method, value):
        return {"dataset": name, "method": method, "rows": "9", "v_measure": value}

    rows = [line(name, method, "0.5") for name in "ab" for method in "pqrs"]
    rows += [line("a", "late", "0.9"), line("c", "p", "0.1")]
    rows[1]["v_measure"] = ""  # q failed on a
    names, tried, scores = beside.scores_of(rows, "v_measure", 10)
    assert (names, tried) == (["a", "b"], ["p", "q", "r", "s"])
    assert np.isnan(scores[0, 1])
    assert scores.shape == (2, 4)


def test_every_competitor_is_a_column_of_its_papers_table():
    columns = 0
    for name, table in competitors.TABLE.items():
        printed = {method for _, method, _ in competitors.printed(name)}
        assert set(table.methods) <= printed
        columns += len(table.methods)
    assert columns >= 20


def test_the_best_setting_counts_and_problems_are_averaged():
    X, y = two_blobs(60, 2, gap=9.0)
    halves = competitors.Table(
        "", competitors.ERROR, {"two": lambda X, k: iter([y, np.zeros(60)])}, lambda n, d: [], {}
    )
    assert competitors.figures(halves, "two", [(X, y), (X, y)]) == {"clustering_error_percent": 0.0}


def test_a_table_of_competitors_is_filled_line_by_line(data, capsys):
    np.savez(data / "wine.npz", **np.load(data / "far.npz"))
    given = ["--table", "mdh", "--data", str(data), "--sets", "wine", "--methods", "PDDP", "2-means++"]
    assert competitors.main([*given, "--out", str(data / "mdh.csv")]) == 0
    with open(data / "mdh.csv") as file:
        lines = list(csv.DictReader(file))
    assert {line["method"] for line in lines} == {"PDDP", "2-means++"}
    assert all(float(line["success_ratio"]) == 1.0 for line in lines)
    assert {float(line["paper success_ratio"]) for line in lines} == {0.65, 0.68}
    assert "| wine | 1.000 | 0.650" in capsys.readouterr().out


def test_figures_write_a_file_and_a_picture(data, monkeypatch):
    np.savez(data / "ionosphere.npz", **np.load(data / "near.npz"))
    monkeypatch.setattr(
        figures,
        "FIGURES",
        {**figures.FIGURES, "C": (figures.margin_by("C", (1.0, 3.0)), figures.draw_margin)},
    )
    given = ["C", "--data", str(data), "--sets", "ionosphere", "--out", str(data), "--plot"]
    assert figures.main(given) == 0
    with open(data / "figure_C.csv") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["C / auto"]) for line in lines] == [1.0, 3.0]
    assert (data / "figure_C.png").exists()
