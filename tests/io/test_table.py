"""Tables from files: the same rows from every format, in memory and on disk, and clear errors."""

import gzip
import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ravine import InvalidInputError, MinimumDensity, report
from ravine.io import arrow_files, numpy_files, text_files
from ravine.io.block_file import MatrixFile
from ravine.io.files import open_source
from ravine.io.source import TableError
from ravine.io.table import Choice, read_for_model, read_table

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "name": [f"row {i}, é" for i in range(N)],
        "size": RNG.standard_normal(N),
        "count": RNG.integers(0, 9, N),
        "color": RNG.choice(["red", "blue"], N),
        "kind": np.repeat([0, 1], N // 2),
    }
)
WRITERS = {
    "t.csv": lambda f, p: f.to_csv(p, index=False),
    "semicolons.csv": lambda f, p: f.to_csv(p, index=False, sep=";"),
    "t.csv.gz": lambda f, p: f.to_csv(p, index=False),
    "utf16.csv": lambda f, p: f.to_csv(p, index=False, encoding="utf-16"),
    "t.tsv": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    "no suffix": lambda f, p: f.to_csv(p, index=False),
    "t.parquet": lambda f, p: f.to_parquet(p),
    "misnamed.csv": lambda f, p: f.to_parquet(p),
    "t.feather": lambda f, p: f.to_feather(p),
    "t.arrow": lambda f, p: _write_batches(f, p),
}


def _write_batches(frame, path):
    import pyarrow as pa

    rows = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(str(path), rows.schema) as writer:
        writer.write_table(rows, max_chunksize=80)


def read(path, **choice):
    return read_table(open_source(path), Choice(**choice))


def write(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path, name, monkeypatch):
    for module in (text_files, arrow_files, numpy_files):
        monkeypatch.setattr(module, "BLOCK_ROWS", 50)
    WRITERS[name](FRAME, tmp_path / name)
    found = read(tmp_path / name, id="name", label="kind")
    assert found.names == ("size", "count")
    np.testing.assert_allclose(found.values, FRAME[["size", "count"]], rtol=1e-9)
    assert [name for block in found.ids() for name in block] == list(FRAME["name"])
    np.testing.assert_array_equal(np.array(found.classes)[found.class_of], FRAME["kind"].astype(str))
    assert found.ids_of([3, 101]) == {3: "row 3, é", 101: "row 101, é"}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", ">f8"])
def test_matrices(tmp_path, order, dtype):
    X = np.asarray(100 * RNG.standard_normal((70, 4)), dtype=dtype, order=order)
    np.save(tmp_path / "X.npy", X)
    found = read(tmp_path / "X.npy", exclude=["x1"], label="x1")
    assert found.names == ("x0", "x2", "x3")
    assert type(found.values) is np.ndarray
    np.testing.assert_array_equal(found.values, X[:, [0, 2, 3]])
    assert [found.classes[code] for code in found.class_of] == [str(value) for value in X[:, 1].tolist()]


def test_a_file_without_a_header_gets_names(tmp_path):
    found = read(write(tmp_path, "1,2\n3,4\n5,6\n"))
    assert found.names == ("x0", "x1")
    assert found.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert "the first line holds numbers" in found.notes[0][0]
    counted = read(write(tmp_path, "0,1\n3,4\n5,6\n"))  # as pandas names columns
    assert counted.names == ("0", "1")
    assert counted.values.tolist() == [[3, 4], [5, 6]]


def test_columns_without_a_name_are_used_only_on_request(tmp_path):
    path = write(tmp_path, ",a,\n5,1,2\n6,3,4\n")
    found = read(path)
    assert found.names == ("a",)
    assert found.notes == [("2 columns without a name left out (column1, column3)", "unnamed left out")]
    found = read(path, id="column1", columns=["a", "column3"])
    assert found.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert list(found.ids()) == [["5", "6"]]
    assert found.notes == []


def test_text_columns_are_left_out_with_a_note(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    found = read(tmp_path / "t.csv")
    assert found.names == ("size", "count", "kind")
    ((note, kind),) = found.notes
    assert "(name, color)" in note
    assert kind == "text left out"


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_missing_values_name_their_columns_or_get_the_median(tmp_path, large, kind):
    limit = 8000 if large else None
    X = RNG.standard_normal((300, 3))
    X[:7, 0] = np.nan
    X[5, 2] = np.nan
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        pd.DataFrame(X, columns=["x0", "x1", "x2"]).to_csv(path, index=False)
    else:
        np.save(path, X)
    with pytest.raises(TableError, match=r"8 missing values in x0 \(7\), x2 \(1\)$") as raised:
        read(path)
    assert raised.value.about == "missing"
    found = read(path, impute=True, memory_limit=limit)
    assert isinstance(found.values, MatrixFile) == large
    expected = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    np.testing.assert_allclose(found.values[:], expected, rtol=1e-15)
    np.testing.assert_allclose(found.fill, np.nanmedian(X, axis=0))


def test_words_that_mean_a_missing_value(tmp_path):
    path = write(tmp_path, "a\n1\nNA\n?\nnull\n \n nan\n2\n")
    with pytest.raises(InvalidInputError, match=r"5 missing values in a \(5\)"):
        read(path)


BAD = {
    "ragged": ("a,b\n1,2\n3\n", "1 field in row 2, but 2 columns"),
    "cut off": ("a,b,c\n1,2,3\n4,5,6\n7,8", r"2 fields in row 3"),
    "twice": ("a,b,a\n1,2,3\n", r"2 columns are named 'a'"),
    "header only": ("a,b\n", r"column names but no rows"),
    "blank": ("\n\n", r"is empty"),
    "text only": ("a b c\n1 2 3\n", r"no numeric column"),
    "a word among numbers": ("a,b\n1,2\n3,4\nfive,6\n", "'a' holds 'five' in row 3"),
    "infinity": ("a,b\n1,2\ninf,4\n", r"1 infinite value in a \(1\)"),
    "quote": ('a,b\n1,"2\n3,4\n', "cannot be read"),
    "zero bytes": ("a\0b\n1\n", r"not a table that ravine reads"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_in_text_is_one_sentence_that_names_the_file(tmp_path, case):
    content, message = BAD[case]
    path = write(tmp_path, content)
    with pytest.raises(InvalidInputError, match=message) as raised:
        read(path)
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_numbers_with_underscores_are_text(tmp_path):
    assert read(write(tmp_path, "a,b\n1_0,1\n2_0,2\n")).names == ("b",)
    path = write(tmp_path, "a\n" + "1\n" * 9 + "1_0\n")
    with pytest.raises(InvalidInputError, match="holds '1_0' in row 10"):
        read(path)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_quoted_fields_may_cross_the_end_of_a_block(tmp_path, monkeypatch, ends):
    monkeypatch.setattr(text_files, "BLOCK_ROWS", 3)
    numbers = [0.1, -2e-300, 1e22, 3.0, 7.25, 1 / 3, 4.0, 5.5, 6.0, 8.0, 9.0]
    lines = [f"{x!r},w{i}" for i, x in enumerate(numbers)]
    lines[4] = f" {numbers[4]!r} ,w4"
    lines.insert(7, "")
    lines[8] = f'"{numbers[7]!r}","two{ends}lines"'  # the last line of a block, and the first of the next
    found = read(write(tmp_path, ends.join(["a,id", *lines]) + ends), id="id")
    assert found.values[:, 0].tolist() == numbers
    names = [name for block in found.ids() for name in block]
    assert names == [f"w{i}" for i in range(7)] + [f"two{ends}lines"] + ["w8", "w9", "w10"]


def test_a_wrong_encoding_is_an_error_and_the_right_one_is_read(tmp_path):
    path = write(tmp_path, "naïve,b\n1,2\n3,5\n", encoding="latin-1")
    with pytest.raises(TableError, match=r"not UTF-8.*byte 0xef") as raised:
        read(path)
    assert raised.value.about == "encoding"
    source = open_source(path, encoding="latin-1")
    assert read_table(source, Choice()).names == ("naïve", "b")
    with pytest.raises(InvalidInputError, match="unknown encoding"):
        open_source(path, encoding="nonsense")


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv.gz", "X.npy"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_an_error_of_one_sentence(tmp_path, name, share):
    path = tmp_path / name
    if name.startswith("X"):
        np.save(path, FRAME[["size", "count"]].to_numpy())
    else:
        WRITERS[name](FRAME, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidInputError) as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_column_is_answered_with_a_suggestion(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    for choice in ({"columns": ["sise"]}, {"exclude": ["sise"]}, {"id": "sise"}, {"label": "sise"}):
        with pytest.raises(InvalidInputError, match=r"no column 'sise'; did you mean 'size'\?"):
            read(tmp_path / "t.csv", **choice)
    with pytest.raises(TableError, match="'color' holds text") as raised:
        read(tmp_path / "t.csv", columns=["size", "color"])
    assert (raised.value.about, raised.value.column) == ("text", "color")


def test_the_columns_of_a_model_are_found_in_any_order(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.parquet"
    FRAME.drop(columns="name").to_csv(train, index=False)
    columns = FRAME.columns[::-1]
    FRAME[columns].to_parquet(new)
    known = read(train, label="kind")
    found = read_for_model(open_source(new), known.names, len(known.names), Choice(id="name"), None)
    assert found.names == known.names
    np.testing.assert_allclose(found.values, known.values, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="'color' holds text, where numbers are expected"):
        read_for_model(open_source(new), ["size", "color"], 2, Choice(), None)
    FRAME[["size", "kind"]].to_csv(train, index=False)
    with pytest.raises(InvalidInputError, match=r"lacks columns that the model was fitted on: count$"):
        read_for_model(open_source(train), known.names, len(known.names), Choice(), None)
    with pytest.raises(InvalidInputError, match=r"2 numeric columns, but .*fitted on 3"):
        read_for_model(open_source(train), None, 3, Choice(), None)


@pytest.mark.parametrize("id_name", [None, "name"])
def test_ids_of_a_few_rows_are_found_in_every_block(tmp_path, id_name):
    path = tmp_path / "long.csv"
    pd.DataFrame({"name": [f"n{i}" for i in range(9000)], "x": np.arange(9000.0)}).to_csv(path, index=False)
    rows = [8999, 0, 4095, 4096, 8192]
    found = read(path, id=id_name, columns=["x"]).ids_of(rows)
    assert found == {i: f"n{i}" if id_name else str(i) for i in rows}


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_on_disk_equal_rows_in_memory(tmp_path, order):
    X = RNG.standard_normal((5000, 3)).astype(np.float32, order=order)
    np.save(tmp_path / "X.npy", X)
    rows = open_source(tmp_path / "X.npy").rows
    assert isinstance(rows, MatrixFile)
    np.testing.assert_array_equal(rows[10:4000:7], X[10:4000:7])
    for step in (1, 2, 37, 900):
        picked = np.arange(3, 5000, step)
        np.testing.assert_array_equal(rows[picked], X[picked])
    assert rows[np.array([], dtype=int)].shape == (0, 3)


def test_a_fit_on_disk_equals_one_in_memory_bit_for_bit(tmp_path, monkeypatch):
    centers = 4 * RNG.standard_normal((4, 6))
    X = centers[RNG.integers(0, 4, 40_000)] + RNG.standard_normal((40_000, 6))
    np.save(tmp_path / "X.npy", X)
    rows = open_source(tmp_path / "X.npy").rows
    inside = MinimumDensity(4, random_state=0).fit(X)
    outside = MinimumDensity(4, random_state=0, n_jobs=2).fit(rows)
    assert outside.tree_ == inside.tree_
    np.testing.assert_array_equal(outside.labels_, inside.labels_)
    np.testing.assert_array_equal(outside.predict(rows), inside.predict(X))
    pages = [report(model.tree_, data) for model, data in ((inside, X), (outside, rows))]
    assert pages[0] == pages[1]


def test_a_large_table_goes_to_disk_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    X = RNG.standard_normal((20_000, 2))
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        pd.DataFrame(X, columns=["a", "b"]).to_csv(file, index=False)
    found = read(tmp_path / "t.csv.gz", memory_limit=80_000)
    assert isinstance(found.values, MatrixFile)
    np.testing.assert_array_equal(found.values[:], X)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_rows_with_a_missing_label_have_no_class(tmp_path):
    found = read(write(tmp_path, "a,y\n1,u\n2,\n3,v\n4,u\n"), label="y")
    assert found.class_of.tolist() == [0, -1, 1, 0]


def test_the_time_to_read_a_wide_table_is_linear_in_its_columns(tmp_path):
    names = [f"c{j}" for j in range(100_000)]
    lines = [",".join(names), ",".join(["1.5"] * 100_000), ",".join(["2.5"] * 100_000)]
    start = time.process_time()
    found = read(write(tmp_path, "\n".join(lines)))
    again = read_for_model(open_source(tmp_path / "t.csv"), found.names, 100_000, Choice(), None)
    assert time.process_time() - start < 20.0  # a few seconds; more than a minute if it is quadratic
    np.testing.assert_array_equal(again.values, found.values)
    assert found.values[:, 1].tolist() == [1.5, 2.5]


def test_a_missing_file_raises_file_not_found():
    with pytest.raises(FileNotFoundError):
        open_source(Path("no such file.csv"))


def test_threads_that_read_one_file_do_not_disturb_each_other(tmp_path):
    rows = np.arange(40.0).reshape(20, 2)
    rows.tofile(tmp_path / "rows")

    class Slow(io.FileIO):
        def readinto(self, buffer):
            time.sleep(0.002)  # another thread may move the position now
            return super().readinto(buffer)

    with Slow(tmp_path / "rows") as file, ThreadPoolExecutor(4) as pool:
        matrix = MatrixFile(Path("rows"), file, rows.shape)
        found = list(pool.map(lambda i: matrix[i : i + 1][0], range(20)))
    np.testing.assert_array_equal(found, rows)


def test_values_filled_in_for_one_reading_are_missing_in_the_next(tmp_path):
    rows = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 7.0]])
    np.save(tmp_path / "rows.npy", rows)
    source = open_source(tmp_path / "rows.npy")
    for _ in range(2):
        table = read_table(source, Choice(impute=True))
        assert table.values[0:1].tolist() == [[1.0, 6.0]]
        assert table.notes == [("1 missing value filled in with the median of the column", None)]
    np.testing.assert_array_equal(np.concatenate([v for v, _ in source.blocks(source.names, [])]), rows)
