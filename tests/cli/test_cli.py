"""The command line as a user runs it: in its own process."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine, make_moons

import ravine
from ravine.cli import arguments
from ravine.cli.console import Console
from ravine.cli.errors import INTERRUPTED
from ravine.cli.main import main
from tests.processes import COMMAND, run, started

WINE = load_wine(as_frame=True)


def succeed(*arguments, by=run, **options):
    done = by(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done


def fail(code, *arguments, by=run, **options):
    """Run a command that must fail with one sentence on standard error and no other output."""
    done = by(*arguments, **options)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ravine")
    assert "Traceback" not in done.stderr
    return last


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the wine data: ids, classes and a text column; another file has missing values."""
    where = tmp_path_factory.mktemp("wine")
    frame = WINE.data.copy()
    frame.insert(0, "bottle", [f"b{i:03}" for i in range(len(frame))])
    frame["kind"] = [f"class {k}" for k in WINE.target]
    frame["color"] = np.where(np.arange(len(frame)) % 3, "red", "white")
    frame.to_csv(where / "wine.csv", index=False)
    frame.to_csv(where / "wine.txt", index=False, sep="|", encoding="latin-1")
    frame.assign(ash=frame["ash"].where(frame.index > 3)).to_csv(where / "holes.csv", index=False)
    return where


@pytest.fixture(scope="module")
def fitted(folder):
    """The outputs of one fit with all options for writing, and the same model fitted in Python."""
    done = succeed(
        "fit", "wine.csv", "--id", "bottle", "--label", "kind", "--clusters", "3", "--seed", "1",
        "--jobs", "1",
        "--out", "labels.csv", "--model", "wine.ravine", "--report", "wine.html", "--sql", "wine.sql",
        "--table", "wines", "--dialect", "sqlite",
        where=folder, by=started,
    )  # fmt: skip
    model = ravine.MinimumDensity(3, random_state=1).fit(WINE.data)
    return done, model


def test_fit_writes_labels_with_ids(folder, fitted):
    _, model = fitted
    labels = pd.read_csv(folder / "labels.csv")
    assert list(labels.columns) == ["bottle", "cluster"]
    assert list(labels["bottle"]) == [f"b{i:03}" for i in range(178)]
    np.testing.assert_array_equal(labels["cluster"], model.labels_)


def test_fit_prints_the_tree_and_the_files(fitted):
    done, model = fitted
    assert model.tree_.export_text() in done.stdout
    assert re.search(r"against the labels: V-measure 0\.\d{3}", done.stdout)
    for line in ("labels: labels.csv", "model: wine.ravine", "report: wine.html", "sql: wine.sql"):
        assert line in done.stdout
    assert "note: 1 column without numbers left out (color); --id copies one to the output" in done.stderr
    assert "3 of 3 clusters" in done.stderr
    assert "\r" not in done.stderr  # no progress bar without a terminal


def test_the_model_can_be_used_from_python(folder, fitted):
    again = ravine.load(folder / "wine.ravine")
    assert again.tree_ == fitted[1].tree_
    np.testing.assert_array_equal(again.predict(WINE.data), fitted[1].labels_)


def test_the_sql_gives_the_same_clusters(folder, fitted):
    import sqlite3

    database = sqlite3.connect(":memory:")
    pd.read_csv(folder / "wine.csv").to_sql("wines", database, index=False)
    found = pd.read_sql((folder / "wine.sql").read_text(), database)
    np.testing.assert_array_equal(found["cluster"], fitted[1].labels_)


def test_the_report_of_a_fit_shows_how_to_repeat_it(folder, fitted):
    page = (folder / "wine.html").read_text()
    assert "ravine fit wine.csv --id bottle" in page
    assert "MinimumDensity(n_clusters=3, random_state=1).fit(X)" in page
    assert "b0" in page  # exemplars are shown by their ids


def test_predict(folder, fitted):
    done = succeed("predict", "wine.ravine", "wine.csv", "--id", "bottle", "--label", "kind", where=folder)
    assert done.stdout == (folder / "labels.csv").read_text()
    assert "against the labels: V-measure" in done.stderr
    succeed("predict", "wine.ravine", "wine.csv", "--out", "again.parquet", "--quiet", where=folder)
    found = pd.read_parquet(folder / "again.parquet")
    assert list(found.columns) == ["row", "cluster"]
    assert list(found["row"]) == list(range(178))
    np.testing.assert_array_equal(found["cluster"], fitted[1].labels_)


def test_predict_refuses_missing_columns_and_other_files(folder, fitted):
    WINE.data[["ash", "hue"]].to_csv(folder / "few.csv", index=False)
    assert "lacks columns that the model was fitted on: alcohol" in fail(
        1, "predict", "wine.ravine", "few.csv", where=folder
    )
    assert "wine.csv is not a valid ravine model" in fail(1, "predict", "wine.csv", "wine.csv", where=folder)
    assert "fitted without it" in fail(
        2, "predict", "wine.ravine", "wine.csv", "--impute", "median", where=folder
    )
    assert "labels are written as .csv, .tsv or .parquet" in fail(
        2, "predict", "wine.ravine", "wine.csv", "--out", "labels.xls", where=folder
    )


def test_predict_writes_a_report(folder, fitted):
    options = ("--id", "bottle", "--label", "kind")
    done = succeed("predict", "wine.ravine", "wine.csv", *options, "--report", "page.html", where=folder)
    assert done.stdout == ""
    assert "report: page.html" in done.stderr
    page = (folder / "page.html").read_text()
    assert "Against the given classes" in page
    assert "b0" in page
    assert "exists; --force overwrites it" in fail(
        2, "predict", "wine.ravine", "wine.csv", "--report", "page.html", where=folder
    )


def test_standard_input_with_json_and_columns(folder):
    done = succeed(
        "fit", "-", "--columns", "proline,hue,flavanoids,ash", "--exclude", "ash", "--json", "--quiet",
        "--clusters", "2", "--method", "principal-direction", "--set", "threshold=density",
        "--set", "bandwidth_factor=0.8",
        data=(folder / "wine.csv").read_text(),
    )  # fmt: skip
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["columns"] == ["proline", "hue", "flavanoids"]
    assert found["method"] == "principal-direction"
    model = ravine.PrincipalDirection(2, threshold="density", bandwidth_factor=0.8)
    model.fit(WINE.data[["proline", "hue", "flavanoids"]])
    assert found["sizes"] == np.bincount(model.labels_).tolist()
    assert found["splits"][0]["quality"] == pytest.approx(model.tree_.splits[0].quality)


def test_missing_values_are_filled_in_on_request(folder):
    where = {"where": folder}
    assert "holes.csv has 4 missing values in ash (4); fill them in with --impute median" in fail(
        1, "fit", "holes.csv", **where
    )
    options = (
        "--impute",
        "median",
        "--id",
        "bottle",
        "--exclude",
        "kind",
        "--clusters",
        "2",
    )
    done = succeed("fit", "holes.csv", *options, "--out", "-", "--model", "holes.ravine", **where)
    assert "4 missing values filled in" in done.stderr
    assert "cluster 0" in done.stderr  # standard output has the labels
    assert done.stdout.startswith("bottle,cluster\nb000,")
    again = succeed("predict", "holes.ravine", "holes.csv", "--id", "bottle", "--impute", "median", **where)
    assert again.stdout == done.stdout


def test_delimiter_and_encoding(folder):
    options = (
        "--delimiter",
        "|",
        "--encoding",
        "latin-1",
        "--id",
        "bottle",
        "--label",
        "kind",
    )
    found = json.loads(succeed("fit", "wine.txt", *options, "--clusters", "1", "--json", where=folder).stdout)
    assert found["n_rows"] == 178
    assert len(found["columns"]) == 13
    assert "try another --delimiter" in fail(1, "fit", "wine.txt", "--delimiter", "tab", where=folder)


def test_compare_ranks_without_labels_and_scores_with_them(folder):
    options = ("--exclude", "bottle", "--label", "kind", "--clusters", "3", "--seed", "1", "--jobs", "1")
    found = json.loads(succeed("compare", "wine.csv", *options, "--json", "--quiet", where=folder).stdout)
    assert {entry["name"] for entry in found} == COMPARED
    allowed = [entry["rank_sum"] for entry in found if entry["allowed"]]
    assert allowed == sorted(allowed, reverse=True)
    assert len(allowed) >= 2
    assert all(0 <= entry["V-measure"] <= 1 for entry in found)
    model = ravine.MinimumDensity(3, random_state=1).fit(WINE.data)
    own = next(entry for entry in found if entry["name"] == "minimum-density")
    msp = ravine.metrics.separation_probability(WINE.data, model.labels_, regularization=0.1)
    assert own["separation_probability"] == pytest.approx(msp)
    few = ("--columns", "ash,hue", "--clusters", "2", "--label", "kind")
    text = succeed("compare", "wine.csv", *few, where=folder).stdout
    judges = ["MSP", "modularity", "cut", "agreement", "ranks", "clusters", "smallest", "seconds"]
    lines = text.splitlines()
    assert lines[0].split() == judges
    assert len({len(line) for line in lines[: len(COMPARED) + 1]}) == 1
    assert [line.split(" against the labels: V-measure ")[0] for line in lines[len(COMPARED) + 1 :]] == [
        re.split("  +", line)[0] for line in lines[1 : len(COMPARED) + 1]
    ]


COMPARED = {method for method in arguments.METHODS if method != "auto"} | {
    *("minimum-density diffusion", "spectral-connectivity diffusion")
}


def test_auto_tells_what_it_tried_and_why_it_kept_one(folder, tmp_path):
    model, page = tmp_path / "m.ravine", tmp_path / "page.html"
    options = ("--method", "auto", "--exclude", "bottle", "--label", "kind", "--clusters", "3", "--jobs", "1")
    outputs = ("--model", model, "--out", tmp_path / "fit.csv")
    found = json.loads(succeed("fit", "wine.csv", *options, *outputs, "--json", where=folder).stdout)
    assert found["method"] == "auto"
    assert found["candidates"][0]["name"] == "along neighbors"
    assert found["scores"]["V-measure"] > 0.8
    succeed("predict", model, "wine.csv", "--out", tmp_path / "again.csv", where=folder)
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "fit.csv").read_text()
    assert ravine.load(model).candidates_[0].name == found["candidates"][0]["name"]
    text = succeed("fit", "wine.csv", *options, "--report", page, where=folder).stdout
    assert "kept: " in text
    assert "proline" in page.read_text()
    assert "--sql needs boundaries in the columns" in fail(
        2, "fit", "wine.csv", *options, "--sql", "q", where=folder
    )
    refused = fail(2, "fit", "wine.csv", *options, "--kernel", "rbf", where=folder)
    assert "AutoCluster has no parameter kernel" in refused


def test_demo_explains_the_result_and_ends_with_the_report(tmp_path):
    page = tmp_path / "deep" / "demo.html"
    page.parent.mkdir()
    done = succeed("demo", "--report", page)
    for word in ("1797 handwritten digits", "cluster 9", "purity", "V-measure", "What to try next"):
        assert word in done.stdout
    assert done.stdout.strip().splitlines()[-1].strip() == str(page)
    assert "Ten clusters of handwritten digits" in page.read_text()
    assert "exists; --force overwrites it" in fail(2, "demo", "--report", page)


# --- files that cannot be read or written ---


def test_a_bad_file_is_an_error_of_one_sentence_with_exit_code_1(tmp_path):
    cases = {
        "empty.csv": (b"", "empty.csv is empty"),
        "ragged.csv": (b"a,b\n1,2\n3,4,5\n", "3 fields in row 2, but 2 columns"),
        "names.csv": (b"a,a\n1,2\n", "2 columns are named 'a'"),
        "latin.csv": ("é,b\n1,2\n".encode("latin-1"), "--encoding latin-1"),
        "one.csv": (b"a,b\n1,2\n", "one.csv has one row, and clustering needs at least two"),
        "quote.csv": (b'a,b\n1,"2\n' + 3_000_000 * b"3,4567\n", "is a closing quote missing?"),
        "broken.parquet": (b"PAR1 and no more", "broken.parquet"),
        "broken.npy": (b"\x93NUMPY and no more", "broken.npy"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        assert message in fail(1, "fit", name, where=tmp_path)
    assert "is a directory" in fail(1, "fit", tmp_path)
    assert "none.csv: no such file or directory" in fail(1, "fit", "none.csv", where=tmp_path)
    assert "standard input is empty" in fail(1, "fit", "-", data="")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_without_read_permission(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    path.chmod(0)
    before = []
    if os.geteuid() == 0:  # root is refused only without its capabilities
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and there is no setpriv to drop its rights")
        before = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    assert "secret.csv: permission denied" in fail(1, "fit", path, by=started, before=before)


def test_files_are_overwritten_only_with_force(tmp_path):
    WINE.data.to_csv(tmp_path / "wine.csv", index=False)
    (tmp_path / "labels.csv").write_text("precious")
    for option in ("--out", "--report", "--model", "--sql"):
        assert f"{option}: labels.csv exists; --force overwrites it" in fail(
            2, "fit", "wine.csv", option, "labels.csv", where=tmp_path
        )
    assert (tmp_path / "labels.csv").read_text() == "precious"
    options = ("--clusters", "1", "--force", "--quiet")
    done = succeed("fit", "wine.csv", "--out", "labels.csv", *options, where=tmp_path)
    assert done.stdout == "cluster 0: 178 rows (100%)\nlabels: labels.csv\n"
    assert done.stderr == ""
    assert (tmp_path / "labels.csv").read_text().startswith("row,cluster\n0,0\n")


def test_pipes_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("pipe.csv")
    for option, name, kind in (
        ("--out", "pipe.csv", "a pipe"),
        ("--model", "link.csv", "a pipe"),
        ("--report", "/dev/null", "a device"),
    ):
        for force in ([], ["--force"]):
            message = fail(2, "fit", "t.csv", option, name, *force, where=tmp_path)
            assert f"{option}: {name} is {kind}, not a regular file" in message
    assert (tmp_path / "pipe.csv").is_fifo()
    assert (tmp_path / "link.csv").is_symlink()


def test_links_are_followed(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old.csv").write_text("old")
    (tmp_path / "old.csv").symlink_to("there/old.csv")
    (tmp_path / "new.csv").symlink_to("there/new.csv")  # its target does not exist yet
    (tmp_path / "lost.csv").symlink_to("nowhere/new.csv")
    options = ("--clusters", "1", "--quiet")
    assert "exists; --force overwrites it" in fail(
        2, "fit", "t.csv", "--out", "old.csv", *options, where=tmp_path
    )
    assert "nowhere" in fail(2, "fit", "t.csv", "--out", "lost.csv", *options, where=tmp_path)
    succeed("fit", "t.csv", "--out", "old.csv", "--force", *options, where=tmp_path)
    succeed("fit", "t.csv", "--out", "new.csv", *options, where=tmp_path)
    for name in ("old.csv", "new.csv"):
        assert (tmp_path / name).is_symlink()
        assert not (tmp_path / "there" / name).is_symlink()
        assert (tmp_path / "there" / name).read_text() == "row,cluster\n0,0\n1,0\n"
    assert "is the input file" in fail(
        2, "fit", "there/old.csv", "--out", "old.csv", "--force", where=tmp_path
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "wine.csv", "--force"], "is the input file"),
        (["--out", "x.csv", "--report", "x.csv"], "are the same file"),
        (["--out", "no/such/x.csv"], "there is no folder no/such"),
        (["--out", "x.doc"], "labels are written as"),
        (["--clusters", "some"], "a whole number of at least 1, or auto"),
        (["--clusters", "0"], "a whole number of at least 1, or auto"),
        (["--delimiter", "abc"], "one character"),
        (["--set", "x"], "NAME=VALUE"),
        (["--seed", "-1"], "--seed: expected a whole number of at least 0, got '-1'"),
        (["--method", "magic"], "minimum-density"),
        (["--kernel", "rbf", "--sql", "x.sql"], "--sql cannot be used with kernel"),
        (["--set", "kernel=rbf", "--sql", "x.sql"], "--sql cannot be used with kernel"),
    ],
)
def test_usage_errors_are_exit_code_2(tmp_path, options, message):
    (tmp_path / "wine.csv").write_text("a,b\n1,2\n3,4\n")
    done = run("fit", "wine.csv", *options, where=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (2, ["--clusters", "0"], "argument -k/--clusters: expected a whole number"),
        (2, ["--seed", "x"], "argument --seed: expected a whole number"),
        (2, ["--jobs", "0"], "argument --jobs: expected a whole number that is not 0"),
        (2, ["--encoding", "nonsense"], "expected the name of an encoding such as latin-1, got 'nonsense'"),
        (2, ["--delimiter", '"'], "expected one character, or tab"),
        (2, ["--set", "magic=1"], "MinimumDensity has no parameter magic"),
        (1, ["--set", "standardize=maybe"], "standardize has to be True, False or"),
        (1, ["--set", "alpha_max=-1"], "alpha_max has to be a number above 0"),
        (1, ["--set", "level=2"], "level has to be a number"),
        (1, ["--set", "max_depth=-1"], "max_depth has to be a whole number"),
        (1, ["--kernel", "magic"], "kernel has to be"),
        (1, ["--kernel", "rbf", "--set", "kernel_params={'gamma': -1}"], "gamma has to be a number above 0"),
        (1, ["--kernel", "rbf", "--set", "kernel_params={'magic': 1}"], "got 'magic'"),
        (1, ["--kernel", "rbf", "--set", "kernel_params=[1]"], "has to be a dict, got [1]"),
        (
            2,
            ["--method", "spectral-connectivity", "--set", "n_directions=2", "--sql", "x.sql"],
            "--sql cannot be used with n_directions",
        ),
        (2, ["--out", "x.doc"], "labels are written as .csv, .tsv or .parquet"),
        (2, ["--out", "no/x.csv"], "there is no folder no"),
        (2, ["--report", "."], "is a folder, not a regular file"),
    ],
)
def test_options_are_checked_before_the_data_is_read(tmp_path, code, options, message):
    done = run("fit", "no such file.csv", *options, where=tmp_path)
    assert done.returncode == code
    assert message in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_too_many_clusters_is_refused_before_the_data_is_read(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n")
    message = fail(2, "fit", "x.csv", "-k", "1001", "--report", "page.html", where=tmp_path)
    assert "--report: a page has at most 1000 clusters, got --clusters 1001" in message


def test_a_wrong_option_costs_no_reading_of_standard_input():
    command = f"yes '1,2' | {' '.join(COMMAND)} fit - --set magic=1"  # input without end
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "MinimumDensity has no parameter magic" in done.stderr


def test_other_commands_check_their_options_before_the_data_is_read(folder, fitted):
    for options, message in (
        (("predict", "wine.ravine", "none.csv", "--impute", "median"), "fitted without it"),
        (("predict", "wine.ravine", "none.csv", "--out", "x.doc"), "labels are written as"),
        (("predict", "wine.ravine", "none.csv", "--report", "no/page.html"), "there is no folder no"),
        (("compare", "none.csv", "--clusters", "none"), "expected a whole number"),
    ):
        done = run(*options, where=folder)
        assert done.returncode == 2
        assert message in done.stderr.splitlines()[-1]


def test_parquet_labels_without_pyarrow_are_refused_before_the_data_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["fit", "none.csv", "--out", str(tmp_path / "labels.parquet")]) == 1
    assert "pip install" in capsys.readouterr().err


def test_advice_names_only_options_of_the_command(folder, fitted):
    missing = "holes.csv has 4 missing values in ash (4); fill them in with --impute median"
    assert fail(1, "predict", "wine.ravine", "holes.csv", where=folder).endswith(missing)
    assert missing + ", or leave the columns out with --exclude" in fail(1, "fit", "holes.csv", where=folder)


def test_settings_are_checked_against_the_method(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert "MinimumDensity has no parameter magic; it has alpha_max" in fail(
        2, "fit", "t.csv", "--set", "magic=1", where=tmp_path
    )
    assert "alpha_max has to be a number above 0" in fail(
        1, "fit", "t.csv", "--set", "alpha_max=-1", where=tmp_path
    )


def test_settings_are_values_of_python(folder):
    options = ("wine.csv", "--columns", "proline,hue,ash", "--clusters", "2", "--json", "--quiet")

    def sizes(*more):
        return json.loads(succeed("fit", *options, *more, where=folder).stdout)["sizes"]

    X = WINE.data[["proline", "hue", "ash"]]
    raw = np.bincount(ravine.MinimumDensity(2, standardize=False).fit(X).labels_).tolist()
    assert raw != sizes()
    assert sizes("--set", "standardize=False") == raw
    assert sizes("--set", "standardize=True") == sizes()
    done = run("fit", *options, "--set", "standardize=perhaps", where=folder)
    assert "standardize has to be True, False" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "kernel_params=[1]"], "kernel_params has to be a dict, got [1]"),
        (["--set", "alpha_max=" + 500 * "["], "alpha_max has to be a number"),
        (["--set", "alpha_max={[]: 1}"], "alpha_max has to be a number"),
        (["--kernel", "chi2"], "standardized columns have negative ones: fit with standardize=False"),
        (["--kernel", "chi2", "--set", "standardize=False"], "X has negative ones"),
        (
            ["--kernel", "poly", "--set", "kernel_params={'degree': 'x'}"],
            "degree has to be a number at least",
        ),
    ],
)
def test_settings_with_wrong_values_are_an_error_of_one_sentence(tmp_path, options, message):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n3,-4,5\n5,4,3\n")
    assert message in fail(1, "fit", "t.csv", *options, where=tmp_path)


def test_options_of_a_kernel(tmp_path):
    X, y = make_moons(300, noise=0.06, random_state=0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": y})
    frame.to_csv(tmp_path / "moons.csv", index=False)
    parameters = {"gamma": 4.0, "n_components": 0.95, "landmarks": 250}
    options = ("--kernel", "rbf", "--set", f"kernel_params={parameters}")
    done = succeed(
        "fit", "moons.csv", "--label", "kind", "--clusters", "2", *options, "--json",
        "--model", "moons.ravine", "--out", "labels.csv", where=tmp_path,
    )  # fmt: skip
    assert json.loads(done.stdout)["scores"]["adjusted Rand index"] > 0.97
    loaded = ravine.load(tmp_path / "moons.ravine")
    assert loaded.kernel == "rbf"
    assert loaded.kernel_params == parameters
    assert len(loaded.feature_map_.landmarks) == 250
    assert list(loaded.feature_names_in_) == ["a", "b"]
    turned = frame[["b", "kind", "a"]]  # columns are found by name, with a kernel as well
    turned.to_csv(tmp_path / "turned.csv", index=False)
    again = succeed("predict", "moons.ravine", "turned.csv", where=tmp_path)
    assert again.stdout == (tmp_path / "labels.csv").read_text()
    assert "valid feature names" not in again.stderr


def test_debug_shows_a_traceback(tmp_path):
    done = run("fit", tmp_path / "none.csv", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("ravine: error: ")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A folder with rows that take several seconds to cluster."""
    where = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    centers = 8.0 * rng.standard_normal((600, 20))
    X = rng.standard_normal((20_000, 20)) + centers[rng.integers(600, size=20_000)]
    pd.DataFrame(X).to_csv(where / "large.csv", index=False)
    return where


def end(folder, number, *options, after="2 of 500 clusters"):
    """Send a signal to a long fit once it has printed `after`; return exit code, output and last line."""
    (folder / "labels.csv").write_text("old")
    process = subprocess.Popen(
        [*COMMAND, "fit", "large.csv", "--out", "labels.csv", "--force", "--clusters", "500", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell ignores it in background jobs
    )
    while after not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert sorted(path.name for path in folder.iterdir()) == ["labels.csv", "large.csv"]
    return process.returncode, out, err.splitlines()[-1]


@pytest.mark.parametrize("after", ["20000 rows, 20 columns of large.csv", "2 of 500 clusters"])
@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, INTERRUPTED, "ravine: error: interrupted"),
        (signal.SIGTERM, INTERRUPTED, "ravine: error: interrupted"),
    ],
)
def test_a_signal_leaves_the_old_file(large, number, code, line, after):
    assert end(large, number, after=after) == (code, "", line)
    assert (large / "labels.csv").read_text() == "old"


@pytest.mark.parametrize("writer", ["ravine.save", "commands.write_report"])
def test_a_signal_between_two_files_leaves_none_of_them(folder, tmp_path, writer):
    ended = f"""
import os, signal, sys
import ravine
from ravine.cli import commands, main

write = {writer}
def signaled(*arguments, **options):
    write(*arguments, **options)
    os.kill(os.getpid(), signal.SIGTERM)

{writer} = signaled
outputs = "--out a.csv --append b.csv --model m.ravine --sql c.sql --report d.html".split()
sys.exit(main.main(["fit", sys.argv[1], "-k", "2", "--jobs", "1", "--quiet", *outputs]))
"""
    command = [COMMAND[0], "-c", ended, folder / "wine.csv"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.stderr, done.returncode) == ("ravine: error: interrupted\n", INTERRUPTED)
    assert list(tmp_path.iterdir()) == []


def shell(command, where, **environment):
    """Run a line of shell, which can close streams; the word `ravine` is replaced by the command."""
    return subprocess.run(
        ["bash", "-c", command.replace("ravine", " ".join(COMMAND), 1)],
        cwd=where, env={**os.environ, **environment}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("ravine fit wine.csv --clusters 2 <&- --json", 0, None),
        ("ravine fit wine.csv --clusters 2 --quiet --out closed.csv <&- >&-", 0, ""),
        ("ravine fit wine.csv --clusters 2 --out closed.csv <&- >&- 2>&-", 0, ""),
        ("ravine fit - <&-", 1, "standard input is empty"),
    ],
)
def test_closed_streams(folder, fitted, command, code, message):
    (folder / "closed.csv").unlink(missing_ok=True)
    done = shell(command, folder)
    assert done.returncode == code
    if message is None:
        assert json.loads(done.stdout)["n_clusters"] == 2
    elif code:
        assert done.stderr.startswith(f"ravine: error: {message}")
    else:
        assert done.stdout + done.stderr == ""
        assert len((folder / "closed.csv").read_text().splitlines()) == 179


def test_a_pipe_that_nobody_reads_does_not_stop_a_fit(folder):
    done = shell("{ { ravine fit wine.csv --out unread.csv 2>&1 >&3; echo $? >&3; } | true; } 3>&1", folder)
    assert done.stdout.splitlines()[-1] == "0"
    assert len((folder / "unread.csv").read_text().splitlines()) == 179


@pytest.mark.parametrize(
    "command", ["fit wine.csv --clusters 2", "fit wine.csv --clusters 2 --out -", "demo"]
)
def test_a_terminal_without_utf_8_shows_codes(folder, tmp_path, command):
    done = shell(f"ravine {command}", folder, PYTHONIOENCODING="ascii", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert "\\u2500 cluster 0" in shown
    assert shown.isascii()


def test_a_file_name_that_is_not_utf_8(folder, tmp_path):
    name = os.fsdecode(b"w\xff.csv")
    shutil.copy(folder / "wine.csv", tmp_path / name)
    done = shell("ravine fit w*.csv --clusters 2 --report page.html", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "w\\udcff.csv" in (tmp_path / "page.html").read_text()


def test_with_json_errors_are_json(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    for code, message, *words in (
        (1, "none.csv: no such file or directory", "fit", "none.csv"),
        (1, "none.csv: no such file or directory", "compare", "none.csv"),
        (1, "n_clusters=9 is more than n_samples=2", "fit", "t.csv", "--clusters", "9", "--quiet"),
        (2, "--out: labels are written as .csv", "fit", "t.csv", "--out", "x.doc"),
        (2, "argument -k/--clusters: expected a whole number", "fit", "t.csv", "--clusters", "0"),
        (2, "the following arguments are required", "fit"),
    ):
        done = run(*words, "--json", where=tmp_path)
        assert done.returncode == code
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        error = json.loads(line)
        assert error["error"].startswith(message)
        assert error["exit_code"] == code


def test_a_full_disk_leaves_the_old_file(tmp_path):
    WINE.data.to_csv(tmp_path / "wine.csv", index=False)
    (tmp_path / "page.html").write_text("old")
    options = ("--clusters", "1", "--quiet", "--report", "page.html", "--force")
    message = fail(1, "fit", "wine.csv", *options, where=tmp_path, largest_file=4096)
    assert "file too large" in message
    assert (tmp_path / "page.html").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "wine.csv"]


# --- help ---


def test_control_characters_are_printed_as_escapes_and_written_as_they_are(tmp_path):
    name = "a\x1b]0;evil\x07\x9b31m\x7f\r\b\nravine: error: b"
    frame = WINE.data.rename(columns={"proline": name}).assign(**{f"text {name}": "x"})
    frame.to_csv(tmp_path / "odd.csv", index=False)
    WINE.data.to_csv(tmp_path / "wine.csv", index=False)
    options = ("-k", "3", "--jobs", "1", "--append", "rows.csv", "--model", "m.ravine")
    fitted = succeed("fit", "odd.csv", *options, where=tmp_path)
    shown = succeed("show", "m.ravine", where=tmp_path)
    cut = succeed("cut", "m.ravine", "-k", "2", "-o", f"\x1b{2}.ravine", where=tmp_path)
    refused = run("predict", "m.ravine", "wine.csv", "--debug", where=tmp_path)
    assert refused.returncode == 1
    unknown = run("fit", "odd.csv", "--columns", "\x1b[2J", where=tmp_path)
    wrong = run("fit", "odd.csv", "--colum\x1bns", where=tmp_path)
    escaped = r"a\u001b]0;evil\u0007\u009b31m\u007f"
    for done in (fitted, shown, cut, refused):
        assert escaped in done.stdout + done.stderr
        assert "\nravine: error: b" not in done.stdout
    for done in (fitted, shown, cut, refused, unknown, wrong):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr)
    assert name in pd.read_csv(tmp_path / "rows.csv").columns
    found = json.loads(succeed("show", "m.ravine", "--json", where=tmp_path).stdout)
    assert name in found["columns"]


def test_version():
    assert succeed("--version", by=started).stdout.strip() == f"ravine {ravine.__version__}"


def test_help_is_fast_and_shows_examples():
    assert "examples:" in succeed("--help").stdout
    times = []
    for _ in range(5):
        began = time.perf_counter()
        succeed("--help", by=started)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.3
    for command in ("fit", "predict", "show", "cut", "compare", "explore", "demo"):
        assert command in succeed(command, "--help").stdout


def test_every_public_clusterer_is_a_method():
    from tests.every_estimator import ESTIMATORS

    clusterers = {name for name, make in ESTIMATORS.items() if hasattr(make, "fit_predict")}
    assert set(arguments.METHODS.values()) == clusterers | {"AutoCluster"}
    assert set(arguments.METHODS) >= {"minimum-density", "principal-direction"}


def test_the_list_of_dialects_is_complete():
    from ravine.tree.export import QUOTES

    assert set(arguments.DIALECTS) == set(QUOTES)


def test_a_terminal_shows_progress_in_one_line(tmp_path):
    import pty

    WINE.data.to_csv(tmp_path / "wine.csv", index=False)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "fit", "wine.csv", "--clusters", "3"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs
    )
    out, _ = process.communicate(timeout=120)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r"\r2 of 3 clusters.*\r3 of 3 clusters", shown)
    assert b"cluster 2" in out


SPLIT = object()


@pytest.mark.parametrize(("bound", "text"), [(5, "3 of 5 clusters"), (2**31 - 1, "3 clusters")])
def test_progress_shows_the_requested_number_of_clusters_if_there_is_one(bound, text):
    stream = io.StringIO()
    Console(False, stream).progress(ravine.Progress(3, bound, 10.0, SPLIT, 4.0, 1.23))
    assert stream.getvalue() == f"{text}, 4.0 passes, 1.2 s\n"


def test_progress_of_long_work_shows_passes_and_the_time_left():
    stream = io.StringIO()
    console = Console(False, stream)
    for seconds, split in [(10.0, None), (61.0, None), (62.0, None), (63.0, SPLIT)]:
        console.progress(ravine.Progress(3, 16, 9.0, split, 4.04, seconds, 80_800_000, 200.0))
    assert stream.getvalue().splitlines() == [
        "3 of 16 clusters, 4.0 passes, 61.0 s, about 0:03:20 left",  # at most once per minute without a split
        "3 of 16 clusters, 4.0 passes, 63.0 s, about 0:03:20 left",
    ]


def test_a_checkpoint_is_resumed_and_deleted_after_the_results_are_written(folder, tmp_path):
    path, out = tmp_path / "fit.checkpoint", tmp_path / "labels.csv"
    fit = ("fit", "wine.csv", "--columns", "ash,hue,alcohol", "--checkpoint", path, "--jobs", "1", "--quiet")
    succeed(*fit, "--clusters", "4", "--out", out, where=folder)
    assert not path.exists()
    X = WINE.data[["ash", "hue", "alcohol"]].to_numpy()
    ravine.MinimumDensity(4, random_state=0, checkpoint=path).fit(X)
    again = tmp_path / "again.csv"
    succeed(*fit, "--clusters", "4", "--out", again, where=folder)
    assert again.read_text() == out.read_text()
    assert not path.exists()
    ravine.MinimumDensity(4, random_state=0, checkpoint=path).fit(X)
    done = run(*fit, "--clusters", "5", where=folder)
    assert done.returncode == 1
    assert "belongs to another fit: n_clusters was 4 and is 5; give another path" in done.stderr
    assert path.exists()
    done = run(*fit, "--model", path, "--force", where=folder)
    assert done.returncode == 2
    assert "--checkpoint and --model are the same file" in done.stderr


def test_large_tables_are_read_from_their_file_in_blocks(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 3)) + 8 * np.eye(3)[rng.integers(3, size=150_000)]
    np.save(tmp_path / "rows.npy", X)
    fit = ("fit", tmp_path / "rows.npy", "--clusters", "3", "--jobs", "1", "--quiet", "--out")
    for name, limit in [("whole.csv", ()), ("blocks.csv", ("--memory-limit", "1M"))]:
        succeed(*fit, tmp_path / name, *limit)
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "blocks.csv").read_text()
    done = run("fit", tmp_path / "rows.npy", "--memory-limit", "none")
    assert done.returncode == 2
    assert "expected a number of bytes such as 500M or 2G" in done.stderr


@pytest.mark.parametrize(
    ("dialect", "quoted"), [("mysql", "`ash`"), ("mssql", "[ash]"), ("postgres", '"ash"')]
)
def test_each_dialect_quotes_names_in_its_way(folder, tmp_path, dialect, quoted):
    out = tmp_path / "wine.sql"
    options = ("--columns", "ash,hue", "--clusters", "2", "--jobs", "1", "--quiet")
    succeed("fit", "wine.csv", *options, "--sql", out, "--dialect", dialect, where=folder)
    assert quoted in out.read_text()


def test_labels_as_tab_separated_values(folder, tmp_path):
    out = tmp_path / "labels.tsv"
    options = ("--columns", "ash,hue", "--id", "bottle", "--clusters", "2", "--jobs", "1", "--quiet")
    succeed("fit", "wine.csv", *options, "--out", out, where=folder)
    labels = pd.read_csv(out, sep="\t")
    assert list(labels.columns) == ["bottle", "cluster"]
    assert len(labels) == 178


def test_ids_that_look_like_formulas_are_escaped(tmp_path):
    ids = [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "-5",
        "+3.2",
        "-1e-3",
        "-.5",
        "b=1",
        "-",
        "",
    ]
    pd.DataFrame({"=id": ids, "a": range(12), "b": range(12)}).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"=id": ids, "a": range(12)}).to_parquet(tmp_path / "t.parquet")
    written = ["'" + text if i < 5 or text == "-" else text for i, text in enumerate(ids)]
    options = ("--id", "=id", "--clusters", "1", "--quiet")
    for name, delimiter in (("labels.csv", ","), ("labels.tsv", "\t")):
        succeed("fit", "t.csv", *options, "--out", name, where=tmp_path)
        found = pd.read_csv(tmp_path / name, sep=delimiter, dtype=str, keep_default_na=False)
        assert list(found["'=id"]) == written
    succeed("fit", "t.parquet", *options, "--out", "labels.parquet", where=tmp_path)
    assert list(pd.read_parquet(tmp_path / "labels.parquet")["=id"]) == ids


def test_long_fields_are_read(tmp_path):
    (tmp_path / "t.csv").write_text("id,a\n" + 200_000 * "x" + ',1\n"y",2\n')
    done = succeed("fit", "t.csv", "--id", "id", "--clusters", "1", "--out", "-", where=tmp_path)
    assert done.stdout == "id,cluster\n" + 200_000 * "x" + ",0\ny,0\n"


def test_a_report_of_rows_with_missing_values(folder, tmp_path):
    model, page = tmp_path / "m.ravine", tmp_path / "page.html"
    names = ("--columns", "ash,hue", "--impute", "median", "--clusters", "2", "--jobs", "1", "--quiet")
    succeed("fit", "holes.csv", *names, "--model", model, where=folder)
    succeed("predict", model, "holes.csv", "--impute", "median", "--report", page, where=folder)
    assert "hue" in page.read_text()


def test_a_saved_model_has_the_threads_that_were_asked_for_and_not_those_of_the_machine(folder, tmp_path):
    options = ("--columns", "ash,hue", "--clusters", "2", "--quiet", "--model", tmp_path / "m.ravine")
    succeed("fit", "wine.csv", *options, where=folder)
    assert ravine.load(tmp_path / "m.ravine").n_jobs is None


def test_a_checkpoint_stays_where_the_results_cannot_be_written(folder, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ravine.cli.commands.write_clusters", full)
    path, options = tmp_path / "fit.checkpoint", ("--columns", "ash,hue", "--clusters", "2", "--quiet")
    assert main(["fit", str(folder / "wine.csv"), *options, "--checkpoint", str(path)]) == 1
    assert "no space left" in capsys.readouterr().err
    assert path.exists()


def test_compare_uses_as_many_threads_as_are_asked_for(folder, monkeypatch, capsys):
    def refused(rows, models):
        raise ravine.InvalidInputError(f"{ {model.n_jobs for model in models.values()} } threads")

    monkeypatch.setattr(ravine, "select", refused)
    assert main(["compare", str(folder / "wine.csv"), "--columns", "ash,hue", "--jobs", "3", "--quiet"]) == 1
    assert "{3} threads" in capsys.readouterr().err


def test_an_error_has_a_line_of_its_own_below_the_progress():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def fail():
        console.progress(ravine.Progress(3, 16, 10.0, SPLIT, 4.0, 1.23))
        raise ValueError("wrong")

    console = Console(False, Terminal())
    with pytest.raises(ValueError, match="wrong"), console.capture_warnings():
        fail()
    assert console.stream.getvalue().endswith("\n")


def test_missing_values_of_a_matrix_are_appended_as_they_were(tmp_path):
    X = np.arange(20.0).reshape(10, 2) ** 2
    X[3, 1] = np.nan
    np.save(tmp_path / "rows.npy", X)
    options = ("--clusters", "2", "--jobs", "1", "--quiet", "--impute", "median", "--append", "all.csv")
    succeed("fit", "rows.npy", *options, where=tmp_path)
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "all.csv").to_numpy()[:, :2], X)
