"""The first five minutes on the command line: what people bring works, or is answered in one sentence."""

import gzip
import inspect
import json
import shlex
import sqlite3
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest

import ravine
from ravine.cli.arguments import METHODS, build_parser
from ravine.cli.console import Console
from ravine.cli.explore_command import read_rows, run_explore, starting_code
from ravine.cli.options import make_clusterer
from ravine.cli.reading import opened, read
from ravine.exceptions import RavineError
from tests.cli.test_cli import fail, succeed
from tests.processes import COMMAND, started

RNG = np.random.default_rng(0)
N = 90
GROUP = np.arange(N) % 3
FRAME = pd.DataFrame(
    {
        "size": 4.0 * GROUP + RNG.normal(0, 0.3, N),
        "price": 1000.0 + 700.0 * (GROUP == 1) + RNG.normal(0, 30, N),
    }
).round(3)
OPTIONS = ("--clusters", "3", "--jobs", "1")


def labels(*arguments, where):
    """The clusters that a command writes, and its notes."""
    done = succeed(*arguments, "--out", "-", where=where)
    return np.loadtxt(done.stdout.splitlines()[1:], delimiter=",", usecols=-1, dtype=int), done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("first")
    FRAME.to_csv(where / "plain.csv", index=False)
    succeed("fit", "plain.csv", *OPTIONS, "--model", "m.ravine", where=where)
    return where


@pytest.fixture(scope="module")
def expected():
    return ravine.MinimumDensity(3).fit(FRAME).labels_


WRITERS = {
    "index.csv": lambda p: FRAME.to_csv(p),
    "levels of an index.csv": lambda p: FRAME.set_index([np.arange(N) // 3, np.arange(N) % 3]).to_csv(p),
    "named index.parquet": lambda p: FRAME.set_index(np.arange(N) + 7).to_parquet(p),
    "t.csv.gz": lambda p: p.write_bytes(gzip.compress(FRAME.to_csv(index=False).encode())),
    "decimal comma.csv": lambda p: FRAME.to_csv(p, index=False, sep=";", decimal=","),
    "blank lines.csv": lambda p: p.write_text("\n\n" + FRAME.to_csv(index=False)),
    "number sign.csv": lambda p: p.write_text("#" + FRAME.to_csv(index=False)),
    "trailing.csv": lambda p: p.write_text(FRAME.to_csv(index=False).replace("\n", ",\n")),
    "date.csv": lambda p: FRAME.assign(day=pd.date_range("2024-01-31", periods=N)).to_csv(p, index=False),
    "date.parquet": lambda p: FRAME.assign(day=pd.date_range("2024-01-31", periods=N)).to_parquet(p),
    "money.csv": lambda p: FRAME.assign(paid=FRAME["price"].map("${:,.2f}".format)).to_csv(p, index=False),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_what_people_bring_gives_the_clusters_of_the_plain_table(tmp_path, expected, name):
    WRITERS[name](tmp_path / name)
    found, notes = labels("fit", name, *OPTIONS, where=tmp_path)
    np.testing.assert_array_equal(found, expected)
    for word, note in (
        ("index.csv", "1 column without a name left out (column1); --columns uses them, --id copies one"),
        ("levels", "2 columns without a name left out (column1, column2)"),
        ("trailing", "1 column without a name left out (column3)"),
        ("comma", "numbers are read with decimal commas in size, price"),
        ("date", "1 column without numbers left out (day); --id copies one to the output"),
        ("money", "1 column without numbers left out (paid)"),
    ):
        if name.startswith(word):
            assert note in notes


def test_true_and_false_are_numbers_in_every_format(tmp_path):
    flag = FRAME.assign(flag=GROUP == 2)
    flag.to_csv(tmp_path / "t.csv", index=False)
    flag.to_parquet(tmp_path / "t.parquet")
    found = [json.loads(succeed("fit", name, *OPTIONS, "--json", where=tmp_path).stdout) for name in
             ("t.csv", "t.parquet")]  # fmt: skip
    assert found[0]["columns"] == found[1]["columns"] == ["size", "price", "flag"]
    assert found[0]["sizes"] == found[1]["sizes"]
    assert found[0]["splits"] == found[1]["splits"]


def test_splits_of_one_discrete_column_are_named_with_options(tmp_path):
    numbers = np.arange(len(FRAME))
    FRAME.assign(size=numbers, flag=numbers % 3 == 2)[["size", "flag"]].to_csv(
        tmp_path / "t.csv", index=False
    )
    words = ("fit", "t.csv", "-k", "2", "--jobs", "1", "--json")
    notes = json.loads(succeed(*words, where=tmp_path).stdout)["notes"]
    (note,) = [line for line in notes if "run between the values" in line]
    assert note == (
        "1 of 1 splits run between the values of one discrete column (flag); "
        "--exclude flag leaves out what should not define clusters, "
        "--clusters auto ignores these gaps"
    )
    (note,) = [line for line in notes if "only two values" in line]
    assert "--exclude flag leaves out" in note


def _zip(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")


def _sqlite(path):
    with sqlite3.connect(path) as database:
        database.execute("create table t (a real)")


def _tar(path):
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("t.csv"))


NO_TABLE = "is not a table that ravine reads: CSV, TSV (also .gz), Parquet, Arrow or NPY; save it as"
REFUSED = {
    "t.xlsx": (lambda p: _zip(p, "[Content_Types].xml", "xl/workbook.xml"), NO_TABLE),
    "t.xls": (lambda p: p.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)), NO_TABLE),
    "t.zip": (lambda p: _zip(p, "t.csv"), NO_TABLE),
    "t.npz": (lambda p: np.savez(p, X=FRAME), NO_TABLE),
    "t.tgz": (_tar, NO_TABLE),
    "t.dta": (lambda p: FRAME.to_stata(p), NO_TABLE),
    "t.sqlite": (_sqlite, NO_TABLE),
    "t.pkl": (lambda p: FRAME.to_pickle(p), NO_TABLE),
    "page.csv": (lambda p: p.write_text("\n<!DOCTYPE html>\n<html><p>a,b</p></html>"), NO_TABLE),
    "t.xml": (lambda p: p.write_text('<?xml version="1.0"?><rows/>'), NO_TABLE),
    "t.json": (lambda p: FRAME.to_json(p, orient="records"), NO_TABLE),
    "t.jsonl": (lambda p: FRAME.to_json(p, orient="records", lines=True), NO_TABLE),
    "broken.gz": (lambda p: p.write_bytes(b"\x1f\x8b\x08" + bytes(64)), "broken.gz cannot be read"),
    "one row.csv": (lambda p: p.write_text("a,b\n1,2\n"), "has one row"),
    "no numbers.csv": (lambda p: p.write_text("a title\nx,y\n1,2\n3,4\n"), "--skip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_named_in_one_sentence(tmp_path, name):
    write, message = REFUSED[name]
    write(tmp_path / name)
    line = fail(1, "fit", name, where=tmp_path)
    assert message in line
    assert "allow_pickle" not in line


@pytest.mark.parametrize("top", ["a title\n", "# made by hand\n"])
def test_a_title_above_the_table_is_skipped_on_request(tmp_path, expected, top):
    (tmp_path / "t.csv").write_text(top + FRAME.to_csv(index=False))
    line = fail(1, "fit", "t.csv", where=tmp_path)
    assert "skip lines at the top with --skip" in line
    found, _ = labels("fit", "t.csv", "--skip", "1", *OPTIONS, where=tmp_path)
    np.testing.assert_array_equal(found, expected)


def test_swapped_model_and_data(folder):
    line = fail(1, "predict", "plain.csv", "m.ravine", where=folder)
    assert "plain.csv is not a valid ravine model" in line
    assert NO_TABLE in fail(1, "fit", "m.ravine", where=folder)
    np.savez(folder / "t.npz", X=FRAME.to_numpy())
    assert "t.npz is not a valid ravine model" in fail(1, "predict", "t.npz", "plain.csv", where=folder)


def test_an_unknown_option_or_command_is_one_line_with_a_hint(folder):
    for words, message in (
        (("fit", "plain.csv", "--cluster-number", "3"), "see 'ravine fit --help'"),
        (("fit", "plain.csv", "--imptue", "median"), "see 'ravine fit --help'"),
        (("fti", "plain.csv"), "see 'ravine --help'"),
        ((), "see 'ravine --help'"),
    ):
        done = started(*words, where=folder)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.endswith(message)


def test_a_misspelled_setting_is_found_before_the_data_is_read(folder):
    line = fail(2, "fit", "none.csv", "--set", "bandwith_factor=2", where=folder)
    assert "has no parameter bandwith_factor; it has alpha_max, bandwidth_factor" in line


def test_one_default_for_the_number_of_clusters():
    """The same data give the same answer in Python, on the command line, and in both comparisons."""
    defaults = {getattr(ravine, name)().n_clusters for name in METHODS.values()}
    defaults.add(inspect.signature(ravine.compare).parameters["n_clusters"].default)
    parser = build_parser()
    defaults |= {parser.parse_args([command, "t.csv"]).clusters for command in ("fit", "compare", "explore")}
    assert defaults == {"auto"}


def test_quiet_silences_the_progress_and_not_the_result(folder):
    loud = succeed("fit", "plain.csv", *OPTIONS, where=folder)
    quiet = succeed("fit", "plain.csv", *OPTIONS, "--quiet", where=folder)
    assert quiet.stdout == loud.stdout
    assert "cluster 2" in quiet.stdout
    assert "quality: 0 is no valley" in quiet.stdout
    assert quiet.stderr == ""
    assert loud.stderr != ""


def test_the_data_is_checked_before_the_fit(tmp_path):
    frame = FRAME.assign(customer=RNG.permutation(N) + 500, member=GROUP % 2, one=1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = json.loads(succeed("fit", "t.csv", "--clusters", "2", "--report", "r.html", "--json",
                               where=tmp_path).stdout)["notes"]  # fmt: skip
    for note in (
        "customer has a different whole number in nearly every row, like an id; leave it out with "
        "--exclude customer, or copy it to the output with --id",
        "one is constant",
        "member has only two values",
    ):
        assert any(line.startswith(note) for line in found), note
    page = (tmp_path / "r.html").read_text()
    assert "About the data" in page
    assert "customer has a different whole number in nearly every row, like an id" in page


def test_one_cluster_is_explained(tmp_path):
    pd.DataFrame(np.random.default_rng(1).normal(size=(300, 2)), columns=["a", "b"]).to_csv(
        tmp_path / "t.csv", index=False
    )
    done = succeed("fit", "t.csv", "--jobs", "1", where=tmp_path)
    (line,) = [line for line in done.stderr.splitlines() if "one cluster" in line]
    assert line.startswith("note: found one cluster: the deepest valley has quality 0.")
    assert "(p = " in line
    assert line.endswith("try --clusters 2, --kernel diffusion, or all methods with 'ravine compare t.csv'")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_append_writes_all_columns_and_the_clusters(tmp_path, expected, suffix):
    frame = FRAME.assign(name=[f"=row {i}" for i in range(N)], cluster="old")
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / f"out{suffix}"
    succeed("fit", "t.csv", *OPTIONS, "--append", out, "--proba", "--model", "m.ravine", where=tmp_path)
    if suffix == ".parquet":
        found = pd.read_parquet(out)
    else:
        found = pd.read_csv(out, sep="\t" if suffix == ".tsv" else ",", float_precision="round_trip")
    shares = [f"membership_{k}" for k in range(3)]
    assert list(found.columns) == ["size", "price", "name", "cluster", "cluster_", *shares]
    assert list(found["size"]) == list(FRAME["size"])
    assert list(found["name"]) == [f"{'' if suffix == '.parquet' else chr(39)}=row {i}" for i in range(N)]
    np.testing.assert_array_equal(found["cluster_"], expected)
    proba = ravine.MinimumDensity(3).fit(FRAME).predict_proba(FRAME)
    np.testing.assert_array_equal(found[shares], proba)
    again = tmp_path / f"again{suffix}"
    succeed("predict", "m.ravine", "t.csv", "--append", again, "--proba", where=tmp_path)
    assert again.read_bytes() == out.read_bytes() or suffix == ".parquet"


def test_standard_input_is_appended_to(expected):
    done = succeed("fit", "-", *OPTIONS, "--append", "-", "--quiet", data=FRAME.to_csv(index=False))
    assert done.stdout.splitlines()[0] == "size,price,cluster"
    assert [int(line[-1]) for line in done.stdout.splitlines()[1:]] == expected.tolist()


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_every_row_belongs_to_a_single_cluster_entirely(kernel, folder, tmp_path):
    model = ravine.MinimumDensity(1, kernel=kernel).fit(pd.read_csv(folder / "plain.csv"))
    ravine.save(model, tmp_path / "one.ravine")
    out = tmp_path / "one.csv"
    succeed("predict", tmp_path / "one.ravine", "plain.csv", "--out", out, "--proba", where=folder)
    assert (pd.read_csv(out).iloc[:, -2:] == [0, 1]).all(axis=None)


def test_proba_needs_a_file(folder):
    assert "name it with --out or --append" in fail(2, "fit", "plain.csv", "--proba", where=folder)


def test_show_prints_a_model(folder):
    text = succeed("show", "m.ravine", where=folder).stdout
    assert text.startswith("MinimumDensity(")
    assert "n_clusters=3" in text
    assert "2 columns: size, price" in text
    assert str(ravine.load(folder / "m.ravine").tree_) in text
    found = json.loads(succeed("show", "m.ravine", "--json", where=folder).stdout)
    assert (found["class"], found["columns"], found["n_clusters"]) == ("MinimumDensity", ["size", "price"], 3)


def test_cut_writes_a_model_with_fewer_clusters(folder):
    done = succeed("cut", "m.ravine", "-k", "2", "-o", "two.ravine", where=folder)
    model = ravine.load(folder / "two.ravine")
    assert model.tree_ == ravine.load(folder / "m.ravine").tree_.cut(2)
    assert str(model.tree_) in done.stdout
    assert "exists; --force overwrites it" in fail(
        2, "cut", "m.ravine", "-k", "2", "-o", "two.ravine", where=folder
    )
    assert "is the input file" in fail(
        2, "cut", "m.ravine", "-k", "2", "-o", "m.ravine", "--force", where=folder
    )
    assert "cannot be cut into 9" in fail(1, "cut", "m.ravine", "-k", "9", "-o", "nine.ravine", where=folder)


def test_cut_counts_leaves_that_share_a_label_as_one_cluster(folder):
    model = ravine.MinimumDensity(4).fit(FRAME)
    model.tree_ = model.tree_.merge(2, 3)  # leaves of the first two splits, and no siblings
    ravine.save(model, folder / "shared.ravine")
    for k in (1, 2, 3):
        succeed("cut", "shared.ravine", "-k", k, "-o", f"shared{k}.ravine", where=folder)
        assert ravine.load(folder / f"shared{k}.ravine").n_clusters_ == k
    done = fail(1, "cut", "shared.ravine", "-k", "4", "-o", "shared4.ravine", where=folder)
    assert "the tree has 3 clusters and cannot be cut into 4" in done


def test_cut_of_a_chosen_model_is_that_of_its_winner(folder):
    chosen = ravine.AutoCluster(3).fit(FRAME)
    ravine.save(chosen, folder / "chosen.ravine")
    succeed("cut", "chosen.ravine", "-k", "1", "-o", "one.ravine", where=folder)
    model = ravine.load(folder / "one.ravine")
    assert type(model) is type(chosen.best_estimator_)
    assert model.tree_ == chosen.tree_.cut(1)


def test_predict_is_quick(folder, expected):
    code = (
        "import resource; from ravine.cli.main import main\n"
        "code = main(['predict', 'm.ravine', 'plain.csv', '--out', 'quick.csv', '--force', '--proba'])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(code, used.ru_utime + used.ru_stime)"
    )
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        exit_code, used = done.stdout.split()
        assert exit_code == "0", done.stderr
        seconds.append(float(used))
    assert min(seconds) < 0.8 * 2  # twice the aim, for machines that are slow or busy
    found = pd.read_csv(folder / "quick.csv")
    np.testing.assert_array_equal(found["cluster"], expected)


def test_help_names_every_command_in_one_screen():
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True)
    assert all(word in done.stdout for word in ("show", "cut", "predict"))


def test_a_missing_extra_is_reported_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "ravine.explorer.server", raising=False)
    with pytest.raises(RavineError, match=r"pip install \"ravine\[explore\]"):
        run_explore(build_parser().parse_args(["explore", "no such file.csv"]))


def explored(*words):
    """The arguments of the explorer, as the command has them."""
    arguments = build_parser().parse_args(["explore", *words])
    (arguments.data,), arguments.model = arguments.files, None
    arguments.typed = shlex.join(["ravine", "explore", *words])
    return arguments


@pytest.mark.parametrize("method", ["auto", "principal-direction"])
def test_the_explorer_takes_every_method_and_its_script_repeats_the_fit(folder, method, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = explored("plain.csv", "--method", method, "--clusters", "3")
    model = make_clusterer(arguments, method)
    code = "\n".join(starting_code(arguments, model, fits=True))
    monkeypatch.chdir("/")  # the script can be run anywhere
    found = {"ravine": ravine}
    exec(code, found)
    np.testing.assert_array_equal(found["model"].labels_, model.fit(FRAME).labels_)


@pytest.mark.parametrize(("name", "options"), [("t.csv", ["--delimiter", ";"]), ("t.parquet", [])])
def test_the_script_of_an_explorer_reads_what_the_command_reads(tmp_path, name, options):
    kinds = np.resize(["red", "blue"], N)
    frame = FRAME.astype("float32").assign(number=np.arange(N), kind=kinds)
    frame.to_csv(tmp_path / name, index=False, sep=";") if options else frame.to_parquet(tmp_path / name)
    arguments = explored(str(tmp_path / name), "--exclude", "number", *options)
    with opened(arguments) as source:
        table, _ = read(arguments, Console(quiet=True), source)
    found = {"ravine": ravine}
    exec("\n".join(starting_code(arguments, None, fits=False)), found)
    np.testing.assert_array_equal(found["X"], table.values[0 : table.n_rows])
    assert found["X"].shape == FRAME.shape
    assert "model" not in found


def test_the_script_of_an_explorer_begins_with_the_model_that_was_given(folder, monkeypatch):
    monkeypatch.chdir(folder)
    X = read_rows("ravine explore m.ravine plain.csv")
    np.testing.assert_array_equal(X, FRAME)


def test_far_rows_are_in_the_notes_the_labels_and_the_json(tmp_path):
    rows = FRAME.to_numpy().copy()
    rows[7, 0], rows[20, 1] = 99999, -1e6
    pd.DataFrame(rows, columns=FRAME.columns).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", "t.csv", *OPTIONS, "--json")
    found = json.loads(succeed(*words, where=tmp_path).stdout)
    assert found["n_outliers"] == 2
    assert sum(found["sizes"]) == N
    note = "2 rows (7, 20) are far from all others, and left out of the searches; "
    (line,) = [line for line in found["notes"] if line.startswith(note)]
    assert line == note + (
        "--set outliers=label labels them -1; check for missing values that are coded as a number, "
        "or for a small cluster"
    )
    labeled = json.loads(
        succeed(*words, "--set", "outliers=label", "--out", "labels.csv", where=tmp_path).stdout
    )
    assert sum(labeled["sizes"]) == N - 2
    assert not any("outliers=label" in line for line in labeled["notes"])
    assert pd.read_csv(tmp_path / "labels.csv")["cluster"][[7, 20]].tolist() == [-1, -1]
    done = succeed("compare", "t.csv", "--clusters", "3", where=tmp_path)
    assert "2 rows far from all others left out of the searches" in done.stderr


def test_one_cluster_is_explained_in_the_json(tmp_path):
    pd.DataFrame(np.random.default_rng(1).normal(size=(300, 2)), columns=["a", "b"]).to_csv(
        tmp_path / "t.csv", index=False
    )
    found = json.loads(succeed("fit", "t.csv", "--jobs", "1", "--json", where=tmp_path).stdout)
    assert any(line.startswith("found one cluster: the deepest valley") for line in found["notes"])
