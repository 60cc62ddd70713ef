"""Methods beside each other: ranks, regret, critical difference, limits, and runs that resume."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.oracles import two_blobs

if not Path("/proc/self/status").exists():
    pytest.skip("the memory of a process is read from /proc", allow_module_level=True)

from benchmarks import beside, record


def test_mean_ranks_share_ties_and_a_missing_score_is_the_worst():
    scores = np.array([[0.9, 0.5, 0.5], [0.2, np.nan, 0.8]])
    np.testing.assert_allclose(beside.mean_ranks(scores), [1.5, 2.75, 1.75])
    np.testing.assert_allclose(beside.regret(scores), [[0, 0.4, 0.4], [0.6, 0.8, 0]])


def test_the_critical_difference_is_that_of_the_textbook():
    # Demsar, 2006, Table 5: q = 2.569 for four and 3.164 for ten methods at 0.05
    assert beside.critical_difference(14, 4) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert beside.critical_difference(30, 10) == pytest.approx(3.164 * np.sqrt(10 * 11 / (6 * 30)), rel=1e-3)


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
    found = beside.measured(by_sign, X, nothing, 20)
    assert found.labels.tolist() == [False, True]
    assert found.seconds >= 0.05
    assert 25 < found.peak_mb < 100


@pytest.mark.slow
def test_a_fit_that_fails_or_takes_too_long_is_a_result():
    assert beside.measured(fails, 0, nothing, 5).problem == "ValueError: no such rows"
    assert beside.measured(never_ends, 0, nothing, 1).problem == "more than 1 s"


@pytest.fixture
def data(tmp_path):
    for name, gap in (("near", 3.0), ("far", 9.0)):
        X, y = two_blobs(60, 2, gap=gap)
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    return tmp_path


@pytest.mark.slow
def test_what_is_in_the_file_is_not_run_again(data, capsys, monkeypatch):
    out = data / "beside.csv"
    given = ["--data", str(data), "--out", str(out), "--methods", "KMeans", "Ward"]
    assert beside.main(given) == 0
    lines = beside.read(out)
    assert [(line["dataset"], line["method"]) for line in lines] == [
        (name, method) for name in ("far", "near") for method in ("KMeans", "Ward")
    ]
    assert float(lines[0]["v_measure"]) == 1.0
    out.write_text(
        out.read_text().replace(f"far,60,2,2,Ward,2,{lines[1]['v_measure']}", "far,60,2,2,Ward,2,0.1234")
    )
    assert beside.main(given) == 0
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
