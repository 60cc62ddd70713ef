"""Tables in text files: CSV, TSV and JSON lines, with or without gzip."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ravine._validate import FloatArray
from ravine.io.source import BLOCK_ROWS, Block, Source, TableError, check_names, is_missing, to_text

PEEK_ROWS = 4096  # rows at the start of a file that decide which columns hold numbers
DELIMITERS = ",;\t|"


@contextmanager
def _open_text(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """Open a text file, with or without gzip; a byte order mark is recognized."""
    with open(path, "rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        data: Any = gzip.GzipFile(fileobj=raw) if head[:2] == b"\x1f\x8b" else raw
        if encoding is None:
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with io.TextIOWrapper(data, encoding=encoding, newline="") as text:
            yield text


def _parse_number(text: str | None) -> float | None:
    """Return a field as a number, NaN if it is missing, None if it is neither."""
    if text is None or is_missing(text):
        return np.nan
    try:
        return None if "_" in text else float(text)  # Python reads 1_000 as a number, other programs do not
    except ValueError:
        return None


def _parse_numbers(texts: Sequence[str | None], name: str, unit: str, places: Sequence[int]) -> FloatArray:
    """Return the fields of a column as numbers; an error names the place ("row 3") of a field that is not."""
    try:
        if "_" not in "".join(texts):  # type: ignore[arg-type]
            return np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        pass  # missing values or words: look at each field
    numbers = [_parse_number(text) for text in texts]
    if None in numbers:
        i = numbers.index(None)
        found = f"column {name!r} holds {texts[i]!r} in {unit} {places[i]}"
        raise TableError(f"{found}, where numbers are expected", "not a number", name)
    return np.array(numbers, dtype=np.float64)


def _holds_numbers(texts: Sequence[str | None]) -> bool:
    """Whether at least half of the fields present are numbers: then a word among them is an error."""
    present = [text for text in texts if not is_missing(text)]
    return 2 * sum(_parse_number(text) is not None for text in present) >= len(present)


@dataclass(frozen=True, kw_only=True)
class _Csv(Source):
    """Delimited text; every record has as many fields as there are names."""

    delimiter: str
    encoding: str | None

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        n_read = 0
        with _open_text(self.path, self.encoding) as file:
            if self.has_header:
                next(filter(None, csv.reader(file, delimiter=self.delimiter)))
            for lines, records in self._pieces(file):
                block = self._parse_fast(lines, numbers, texts) if lines else None
                if block is None:
                    records = records or list(filter(None, csv.reader(lines, delimiter=self.delimiter)))
                    block = self._parse_checked(records, numbers, texts, n_read)
                n_read += len(block[0])
                yield block

    def _pieces(self, file: TextIO) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Yield lines while there are no quotes, and records from the first quote on.

        A quoted field may span lines, and so may cross the end of any block of lines that comes later.
        """
        lines = list(itertools.islice(file, BLOCK_ROWS))
        while lines and not any('"' in line for line in lines):
            yield lines, []
            lines = list(itertools.islice(file, BLOCK_ROWS))
        reader = csv.reader(itertools.chain(lines, file), delimiter=self.delimiter, strict=True)
        rest = filter(None, reader)
        while records := list(itertools.islice(rest, BLOCK_ROWS)):
            yield [], records

    def _parse_fast(self, lines: list[str], numbers: Sequence[str], texts: Sequence[str]) -> Block | None:
        """Parse lines without quotes, blank lines and missing numbers; None if these are others."""
        if {line.count(self.delimiter) for line in lines} != {len(self.names) - 1}:
            return None
        if len(self.names) == 1 and not all(map(str.strip, lines)):
            return None
        values = np.empty((len(lines), 0))
        if numbers:
            columns = [self.names.index(name) for name in numbers]
            try:
                values = np.loadtxt(lines, delimiter=self.delimiter, usecols=columns, comments=None, ndmin=2)
            except ValueError:
                return None
        fields = [line.rstrip("\r\n").split(self.delimiter) for line in lines] if texts else []
        return values, [[field[self.names.index(name)] for field in fields] for name in texts]

    def _parse_checked(
        self, records: list[list[str]], numbers: Sequence[str], texts: Sequence[str], n_read: int
    ) -> Block:
        """Parse records field by field: missing numbers become NaN, and errors name the row."""
        if any(len(record) != len(self.names) for record in records):
            raise TableError(self._first_ragged_line(), "delimiter")
        place = {name: j for j, name in enumerate(self.names)}
        values = np.empty((len(records), len(numbers)))
        rows = range(n_read + 1, n_read + 1 + len(records))
        for j, name in enumerate(numbers):
            values[:, j] = _parse_numbers([record[place[name]] for record in records], name, "row", rows)
        return values, [[record[place[name]] for record in records] for name in texts]

    def _first_ragged_line(self) -> str:
        """Describe the first line that has another number of fields than the header."""
        with _open_text(self.path, self.encoding) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            n = next(len(record) for record in reader if record and len(record) != len(self.names))
            return (
                f"{self.path} has {n} field{'s' * (n != 1)} in line {reader.line_num}, but {len(self.names)} "
                "in the first line: the line is damaged, the file is truncated, or the delimiter is different"
            )


def open_csv(path: Path, delimiter: str | None, encoding: str | None) -> Source:
    """Open delimited text; by default the delimiter is the most frequent one in the first line."""
    with _open_text(path, encoding) as file:
        first = file.readline()
        file.seek(0)
        if "\0" in first:
            raise TableError(f"{path} is not text: its first line contains zero bytes")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        records = list(itertools.islice(filter(None, reader), PEEK_ROWS + 1))
    if not records:
        raise TableError(f"{path} is empty")
    has_header = _is_header(records[0])
    names = [name.strip() for name in records[0]] if has_header else [f"x{j}" for j in range(len(records[0]))]
    check_names(names, f"{path}: column")
    if has_header and len(records) == 1:
        raise TableError(f"{path} has column names but no rows")
    body = [record for record in records[has_header:] if len(record) == len(names)]
    numeric = frozenset(name for name, *texts in zip(names, *body, strict=True) if _holds_numbers(texts))
    return _Csv(
        path=path, names=names, numeric=numeric, has_header=has_header, delimiter=delimiter, encoding=encoding
    )


def _is_header(first: Sequence[str]) -> bool:
    """Whether the first line has names: a field is not a number, or they are 0, 1, 2, ... as in pandas."""
    counted = [str(j) for j in range(len(first))]
    return any(_parse_number(text) is None for text in first) or (len(first) > 1 and list(first) == counted)


@dataclass(frozen=True, kw_only=True)
class _JsonLines(Source):
    """One JSON object per line; a key that is absent is a missing value."""

    encoding: str | None

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        objects, known = _json_objects(self.path, self.encoding), set(self.names)
        while block := list(itertools.islice(objects, BLOCK_ROWS)):
            lines, items = zip(*block, strict=True)
            for line, item in block:
                if unknown := item.keys() - known:
                    key = f"a key {min(unknown)!r} that is not in the first {PEEK_ROWS} lines"
                    raise TableError(f"line {line} has {key}")
            columns = {name: [to_text(item.get(name)) for item in items] for name in {*numbers, *texts}}
            values = np.empty((len(block), len(numbers)))
            for j, name in enumerate(numbers):
                values[:, j] = _parse_numbers(columns[name], name, "line", lines)
            yield values, [columns[name] for name in texts]


def _json_objects(path: Path, encoding: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line that is not blank, and its object."""
    with _open_text(path, encoding) as file:
        for i, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except json.JSONDecodeError as error:
                raise TableError(f"{path}: line {i} is not JSON: {error.msg}") from error
            except RecursionError:
                raise TableError(f"{path}: line {i} has too many nested brackets") from None
            if not isinstance(item, dict):
                raise TableError(f"{path}: line {i} is JSON, but not an object with named values")
            yield i, item


def open_json_lines(path: Path, encoding: str | None) -> Source:
    """Open a file with one JSON object per line."""
    items = [item for _, item in itertools.islice(_json_objects(path, encoding), PEEK_ROWS)]
    if not items:
        raise TableError(f"{path} is empty")
    names = list(dict.fromkeys(name for item in items for name in item))
    check_names(names, f"{path}: key")
    numeric = frozenset(name for name in names if _holds_numbers([to_text(item.get(name)) for item in items]))
    return _JsonLines(path=path, names=names, numeric=numeric, encoding=encoding)
