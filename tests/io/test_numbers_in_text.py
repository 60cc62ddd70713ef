"""Numbers in text: what is read as a number, and which columns hold numbers."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ravine.io.files import open_source
from ravine.io.text_files import parse_number


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("1e3", ".", 1000.0),
        (" 7 ", ".", 7.0),
        ("1_000", ".", None),
        ("1,5", ".", None),
        ("1,234", ".", None),
        ("$5", ".", None),
        ("7%", ".", None),
        (" TRUE ", ".", 1.0),
        ("False", ".", 0.0),
        ("1,5", ",", 1.5),
        ("1.5", ",", 1.5),
        (",5", ",", 0.5),
        ("1.234,5", ",", None),
        (",", ",", None),
        ("-", ",", None),
        ("word", ".", None),
    ],
)
def test_numbers_are_read_as_they_are_meant(text, decimal, number):
    assert parse_number(text, decimal) == number


@pytest.mark.parametrize("text", ["", " ", "NA", "n/a", "NaN", "NULL", "None", "?"])
def test_words_for_missing_values_are_no_numbers(text):
    assert np.isnan(parse_number(text))


@given(st.floats(allow_nan=False), st.sampled_from(".,"))
def test_what_is_written_is_read_back(x, decimal):
    assert parse_number(repr(x).replace(".", decimal), decimal) == x


def numeric(path, text, **options):
    path.write_text(text)
    return open_source(path, **options).numeric


def test_a_column_holds_numbers_if_half_of_its_fields_are_numbers(tmp_path):
    rows = "1,a,true,,1\n2,b,False,NA,$2\nx,1,NA,?,$3\n"
    assert numeric(tmp_path / "t.csv", f"most,few,flag,none,money\n{rows}") == {"most", "flag", "none"}


def test_a_comma_is_a_decimal_comma_between_semicolons(tmp_path):
    path = tmp_path / "t.csv"
    assert numeric(path, "a;b\n1,5;2\n2,5;3.5\n") == {"a", "b"}
    ((values, _),) = open_source(path).blocks(["a", "b"], [])
    assert values.tolist() == [[1.5, 2.0], [2.5, 3.5]]
    assert numeric(path, "a\tb\n1,5\t2\n2,5\t3\n") == {"b"}


def test_a_million_numbers_are_read_in_a_second(tmp_path):
    X = np.random.default_rng(0).normal(size=(50_000, 20))
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", fmt="%.17g")
    began = time.process_time()
    source = open_source(tmp_path / "t.csv")
    found = np.concatenate([values for values, _ in source.blocks(source.names, [])])
    assert time.process_time() - began < 5.0  # 0.5 s on a quiet machine
    np.testing.assert_array_equal(found, X)
