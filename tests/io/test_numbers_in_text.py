"""Numbers in text: how they are written, and the same rows with pyarrow and without."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravine.io import text_files
from ravine.io.files import open_source
from ravine.io.number_text import NumberFormat, find_decimal, find_format, kinds_of_text
from ravine.io.source import TableError


@pytest.mark.parametrize(
    ("texts", "delimiter", "sign"),
    [
        (["1.5", "2"], ",", "."),
        (["1,5", "2"], ";", ","),
        (["1,5", "2"], "\t", ","),
        (["1,234"], ";", ","),
        (["1,234"], ",", "."),
        (["1,234", "5.5"], ";", "."),
        (["1,234,567"], ";", "."),
        (["1.234,5"], ",", ","),
        (["$1,234.50"], ";", "."),
        (["12,5 %"], ";", ","),
        (["EUR 1.234,50"], ",", ","),
        (["(1,234.50)"], ";", "."),
        (["a, b", "1.5"], ";", "."),
        (["1,5", "2.5"], ";", "."),  # both: as programs write them
    ],
)
def test_the_decimal_sign_of_a_file(texts, delimiter, sign):
    assert find_decimal(texts, delimiter) == sign


@pytest.mark.parametrize(
    ("form", "text", "number"),
    [
        (NumberFormat(), "1_000", None),
        (NumberFormat(), "1,23", None),
        (NumberFormat(), "1,234", 1234.0),
        (NumberFormat(), "12,34,567", None),
        (NumberFormat(), "1'234.5", 1234.5),
        (NumberFormat(), "1\u202f234", 1234.0),
        (NumberFormat(), "1 234'567", None),
        (NumberFormat(), "1e3", 1000.0),
        (NumberFormat(","), "1.5", None),
        (NumberFormat(","), "1.500", 1500.0),
        (NumberFormat(","), ",5", 0.5),
        (NumberFormat(","), "1,5e3", 1500.0),
        (NumberFormat(","), ",", None),
        (NumberFormat(","), "-", None),
        (NumberFormat(unit="%"), "7.5 %", 7.5),
        (NumberFormat(unit="%"), "7.5", None),
        (NumberFormat(unit="$"), "-$1,000", -1000.0),
        (NumberFormat(unit="$"), "($1,000.50)", -1000.5),
        (NumberFormat(unit="EUR"), "EUR 5", 5.0),
        (NumberFormat(unit="EUR"), "(5 EUR)", -5.0),
        (NumberFormat(), "(5)", -5.0),
        (NumberFormat(), "(-5)", None),
        (NumberFormat(), "(a)", None),
        (NumberFormat(), "\u22125", -5.0),
        (NumberFormat(","), "\u22125,5", -5.5),
        (NumberFormat(boolean=True), " TRUE ", 1.0),
        (NumberFormat(boolean=True), "1", None),
    ],
)
def test_numbers_are_read_as_they_are_meant(form, text, number):
    assert form.parse(text) == number


CENTS = st.floats(-1e12, 1e12).map(lambda x: round(x, 2))


@settings(max_examples=100, deadline=None)
@given(CENTS, st.sampled_from(".,"), st.sampled_from(["", "%", "€"]))
def test_what_is_written_is_read_back(x, decimal, unit):
    text = f"{x:,.2f}"
    text = text if decimal == "." else text.translate(str.maketrans(",.", ".,"))
    assert NumberFormat(decimal, unit).parse(f"{text}{unit}") == x


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2024-01-31"], "date"),
        (["31.01.2024", "x"], "date"),
        (["January 31, 2024"], "date"),
        (["31-Jan-24"], "date"),
        (["9:05 pm", "12:30:15.5"], "date"),
        (["5 kg", "6.5 kg", "x"], "unit"),
        (["1,200m"], "unit"),
        (["12 Main Street", "3 Elm Street"], None),
        (["r1", "r2"], None),
        (["1st", "2nd"], None),
    ],
)
def test_dates_and_numbers_with_text_are_recognized(texts, kind):
    dates, units = kinds_of_text({"a": texts})
    assert ("date" if dates else "unit" if units else None) == kind


def test_a_column_has_the_format_of_half_its_fields():
    assert find_format(["1", "2", "x"]) == NumberFormat()
    assert find_format(["true", "False", "NA"]) == NumberFormat(boolean=True)
    assert find_format(["5 €", "7 €"]) == NumberFormat(unit="€")
    assert find_format(["5 USD", "(7 USD)"]) == NumberFormat(unit="USD")
    assert find_format(["LOT 5", "LOT 7"]) is None
    assert find_format(["a", "b", "1"]) is None
    assert find_format(["", None]) == NumberFormat()


# --- pyarrow and the standard library ---

FIELDS = st.sampled_from(
    ["1", "-2.5", "+3", "1e300", "1e-320", "0.1", " 7 ", "", "NA", "n/a", "NaN", "NULL", "None", "?", "inf",
     "1_0", "word", "true", "FALSE", "$5", "$1'000", "9%", "é", '"1"', '"a,b"', "\uff11", "0x1p3", "infinity"]
)  # fmt: skip


def outcome(path, arrow, monkeypatch):
    """All values and texts of a file, or the error."""
    monkeypatch.setattr(text_files, "ARROW_BYTES", 0 if arrow else 1 << 60)
    try:
        source = open_source(path)
        numbers = [name for name in source.names if name in source.numeric]
        blocks = list(source.blocks(numbers, source.names))
        values = np.concatenate([values for values, _ in blocks])
        texts = [[text for _, columns in blocks for text in columns[j]] for j in range(len(source.names))]
    except TableError as error:
        return str(error)
    return source.names, np.ascontiguousarray(values).view(np.int64).tolist(), texts


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(FIELDS, min_size=2, max_size=2), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.sampled_from(["", "# note\n", "\n", "\ufeff"]),
    st.booleans(),
)
def test_pyarrow_and_the_standard_library_read_the_same(tmp_path_factory, rows, end, top, last):
    text = top + end.join(",".join(row) for row in [["a", "b"], *rows]) + end * last
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert outcome(path, True, monkeypatch) == outcome(path, False, monkeypatch)


@pytest.mark.parametrize("spoiled", [None, "x", "1,2", '"3"', "\xff"])
def test_long_files_are_the_same_up_to_a_row_that_pyarrow_does_not_read(tmp_path, spoiled, monkeypatch):
    numbers = np.random.default_rng(0).normal(size=60_000)
    lines = [f"{x!r},{n},{'yes' if n % 2 else 'no'},{n % 3 == 0}" for n, x in enumerate(numbers.tolist())]
    if spoiled is not None:
        lines[50_000] = f"{spoiled},1,no,True"
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["x,n,word,flag", *lines]).encode("latin-1"))
    with_arrow = outcome(path, True, monkeypatch)
    assert with_arrow == outcome(path, False, monkeypatch)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert with_arrow == outcome(path, True, monkeypatch)


def test_large_files_are_read_by_pyarrow(tmp_path, monkeypatch):
    read = []
    blocks = text_files.csv_blocks
    monkeypatch.setattr(text_files, "csv_blocks", lambda *a: (read.append(a), blocks(*a))[1])
    monkeypatch.setattr(text_files._Csv, "_pieces", lambda *a: iter(()))  # the standard library reads nothing
    (tmp_path / "t.csv").write_text('"a","b"\n' + "1.5,2\n" * 20_000)
    values = outcome(tmp_path / "t.csv", True, monkeypatch)[1]
    assert len(values) == 20_000
    assert len(read) == 1
