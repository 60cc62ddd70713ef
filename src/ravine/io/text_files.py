"""Tables in delimited text: CSV and TSV, also compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ravine._validate import FloatArray, listed
from ravine.io.source import BLOCK_ROWS, MISSING, Block, Note, Source, TableError, check_names, counted

DELIMITERS = ",;\t|"  # that are recognized
GZIP = b"\x1f\x8b"  # how a file compressed by gzip begins
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how text in UTF-16 begins: its byte order mark


@contextmanager
def open_text(path: Path, encoding: str | None, skip: int = 0) -> Iterator[TextIO]:
    """Open a text file, also one compressed by gzip, after `skip` lines; it is UTF-8 without an encoding."""
    with open(path, "rb") as raw:
        head = raw.read(2)
        raw.seek(0)
        data: Any = gzip.GzipFile(fileobj=raw) if head == GZIP else raw
        encoding = encoding or ("utf-16" if head in UTF_16 else "utf-8-sig")
        with io.TextIOWrapper(data, encoding=encoding, newline="") as text:
            for _ in itertools.islice(text, skip):
                pass
            yield text


@dataclass(frozen=True, kw_only=True)
class _Csv(Source):
    """Delimited text; every record after the first `n_before` lines has as many fields as there are names."""

    delimiter: str
    encoding: str | None
    decimal: str
    n_before: int

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        n_read = 0
        with open_text(self.path, self.encoding, self.n_before) as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            records = filter(None, reader)  # blank lines are left out
            while block := list(itertools.islice(records, BLOCK_ROWS)):
                self._check_lengths(block, n_read)
                columns = list(zip(*block, strict=True))
                values = np.empty((len(block), len(numbers)))
                for j, name in enumerate(numbers):
                    values[:, j] = self._numbers(columns[self.place[name]], name, n_read)
                yield values, [list(columns[self.place[name]]) for name in texts]
                n_read += len(block)

    def _numbers(self, texts: Sequence[str], name: str, n_read: int) -> FloatArray:
        """Return the fields of a column as numbers; an error names the row of a field that is not."""
        if self.decimal == "." and "_" not in "".join(texts):
            try:  # four times as fast as a look at each field
                return np.fromiter(map(float, texts), np.float64, len(texts))
            except ValueError:
                pass
        numbers = [parse_number(text, self.decimal) for text in texts]
        if None in numbers:
            i = numbers.index(None)
            found = f"column {name!r} holds {texts[i]!r} in row {n_read + i + 1}"
            raise TableError(f"{found}, where numbers are expected", "not a number", name)
        return np.array(numbers, dtype=np.float64)

    def _check_lengths(self, block: Sequence[Sequence[str]], n_read: int) -> None:
        """Refuse rows that have another number of fields than the header."""
        for i, record in enumerate(block, start=n_read + 1):
            if len(record) != len(self.names):
                fields = counted(len(record), "field")
                found = f"{self.path} has {fields} in row {i}, but {len(self.names)} columns"
                reasons = "the row is damaged, the file is truncated, or the delimiter is different"
                raise TableError(f"{found}: {reasons}", "delimiter")


def parse_number(text: str, decimal: str = ".") -> float | None:
    """Return a field as a number, NaN if it is missing, None if it is neither.

    >>> parse_number(" 1e3"), parse_number("1,5", ","), parse_number("TRUE"), parse_number("NA")
    (1000.0, 1.5, 1.0, nan)
    >>> parse_number("1,5"), parse_number("1_000"), parse_number("$5")  # Python alone reads the second
    (None, None, None)
    """
    try:
        return None if "_" in text else float(text.replace(decimal, "."))
    except ValueError:
        word = text.strip().lower()
        return np.nan if word in MISSING else {"true": 1.0, "false": 0.0}.get(word)


def open_csv(path: Path, delimiter: str | None, encoding: str | None, skip: int = 0) -> Source:
    """Open delimited text, after `skip` lines and any blank lines.

    By default the delimiter is the most frequent one in the first line. In files with semicolons, which are
    used because of it, a comma is a decimal comma, as for `read.csv2` in R; a point is read as well.
    """
    with open_text(path, encoding, skip) as file:
        skip += sum(1 for _ in itertools.takewhile(lambda line: not line.strip("\r\n"), file))
    with open_text(path, encoding, skip) as file:
        first = next(file, "")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        reader = csv.reader(itertools.chain([first], file), delimiter=delimiter, strict=True)
        records = filter(None, reader)
        header = next(records, None)
        n_before = skip + reader.line_num
        body = list(itertools.islice(records, BLOCK_ROWS))
    if header is None:
        raise TableError(f"{path} is empty")
    has_header = _is_header(header)
    if not has_header:
        body.insert(0, header)
    if not body:
        raise TableError(f"{path} has column names but no rows")
    names, unnamed = _column_names(header) if has_header else ([f"x{j}" for j in range(len(header))], [])
    check_names(path, names)
    decimal = "," if delimiter == ";" else "."
    complete = [record for record in body if len(record) == len(names)]
    columns = {name: texts for name, *texts in zip(names, *complete, strict=True)}
    numeric = [name for name in names if _holds_numbers(columns[name], decimal)]
    commas = [name for name in numeric if decimal == "," and any("," in text for text in columns[name])]
    return _Csv(
        path=path,
        names=names,
        numeric=frozenset(numeric),
        unnamed=frozenset(unnamed),
        notes=tuple(_describe(has_header, commas)),
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        n_before=n_before if has_header else skip,
    )


def _is_header(first: Sequence[str]) -> bool:
    """Whether the first line has names: a field is not a number, or they are 0, 1, 2, ... as in pandas."""
    has_words = any(parse_number(field, ",") is None for field in first)
    return has_words or (len(first) > 1 and list(first) == list(map(str, range(len(first)))))


def _column_names(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and those among them that were made up."""
    names = [name.strip() or f"column{j}" for j, name in enumerate(header, start=1)]
    return names, [name for name, given in zip(names, header, strict=True) if not given.strip()]


def _holds_numbers(texts: Sequence[str], decimal: str) -> bool:
    """Whether at least half of the fields present are numbers.

    Then a word among them is an error, and no column is lost because of one wrong field.
    """
    numbers = [parse_number(text, decimal) for text in texts]
    n_missing = sum(number != number for number in numbers)
    return 2 * numbers.count(None) <= len(numbers) - n_missing


def _describe(has_header: bool, commas: Sequence[str]) -> Iterator[Note]:
    """Yield sentences about how a file is read."""
    if not has_header:
        yield "the first line holds numbers, so it is read as a row; columns are x0, x1, ...", None
    if commas:
        yield f"numbers are read with decimal commas in {listed(commas)}", None
