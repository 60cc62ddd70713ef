"""Tables in delimited text: CSV and TSV."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from ravine._validate import FloatArray, listed
from ravine.io.arrow_files import csv_blocks
from ravine.io.compression import is_compressed, open_text
from ravine.io.number_text import (
    NumberFormat,
    find_decimal,
    find_formats,
    is_number,
    parse_numbers,
)
from ravine.io.source import (
    BLOCK_ROWS,
    PEEK_ROWS,
    Block,
    Note,
    Source,
    TableError,
    Texts,
    check_names,
    counted,
    is_missing,
)

DELIMITERS = ",;\t|"
DECLARED = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # a first line for Excel, which names the delimiter
ARROW_BYTES = 1 << 24  # 16 MB: reading smaller files with pyarrow saves less than importing it takes
SCAN_BYTES = 1 << 20  # bytes of a file that are searched for quotes at a time


@dataclass(frozen=True, kw_only=True)
class _Csv(Source):
    """Delimited text; every record has as many fields as there are names.

    The rows follow `n_before` lines: comments, and the names of the columns.
    """

    delimiter: str
    encoding: str | None
    formats: Mapping[str, NumberFormat]
    n_before: int
    n_comments: int

    @property
    def notes(self) -> list[Note]:
        notes = super().notes
        if self.n_comments:
            notes.append((f"{counted(self.n_comments, 'comment line')} at the top skipped", None))
        commas = [name for name in self.names if name in self.formats and self.formats[name].decimal == ","]
        if commas:
            notes.append((f"numbers are read with decimal commas in {listed(commas)}", "decimal comma"))
        return notes

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        n_read = 0
        if self._suits_arrow():
            strings = [name for name in numbers if not self.formats[name].is_plain]
            plain = [name for name in numbers if self.formats[name].is_plain]
            for values, fields in csv_blocks(
                self.path, self.names, plain, [*strings, *texts], self.delimiter, self.n_before
            ):
                yield self._joined(numbers, plain, values, fields, n_read)
                n_read += len(values)
        # also the rest of a file that pyarrow does not read: its errors are found and described here
        with open_text(self.path, self.encoding, self.n_before) as file:
            for lines, records in self._pieces(file, n_read):
                block = self._parse_fast(lines, numbers, texts, n_read) if lines else None
                if block is None:
                    records = records or list(filter(None, csv.reader(lines, delimiter=self.delimiter)))
                    block = self._parse_checked(records, numbers, texts, n_read)
                n_read += len(block[0])
                yield block

    def _suits_arrow(self) -> bool:
        """Whether pyarrow reads the file in the same way: large, UTF-8, no quotes (and pyarrow is there)."""
        plain = self.encoding in (None, "utf-8") and not is_compressed(self.path)
        if not plain or self.path.stat().st_size < ARROW_BYTES:
            return False
        with open(self.path, "rb") as file:
            for _ in itertools.islice(file, self.n_before):
                pass
            return not any(b'"' in piece for piece in iter(lambda: file.read(SCAN_BYTES), b""))

    def _joined(
        self,
        numbers: Sequence[str],
        plain: Sequence[str],
        values: FloatArray,
        fields: list[Texts],
        n_read: int,
    ) -> Block:
        """Return a block of plain columns that are numbers already, and of others that are still text."""
        if len(plain) == len(numbers):
            return values, fields
        found, others = dict(zip(plain, values.T, strict=True)), iter(fields)
        columns = np.empty((len(values), len(numbers)))
        for j, name in enumerate(numbers):
            columns[:, j] = found[name] if name in found else self._numbers(next(others), name, n_read)
        return columns, list(others)

    def _numbers(self, texts: Sequence[str | None], name: str, n_read: int) -> FloatArray:
        return parse_numbers(texts, self.formats[name], name, lambda i: f"row {n_read + i + 1}")

    def _pieces(self, file: TextIO, n_skip: int) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Yield lines while there are no quotes, and records from the first quote on.

        A quoted field may span lines, and so may cross the end of any block of lines that comes later. The
        first `n_skip` rows, which are read already, have no quotes.
        """
        rows = (
            file
            if n_skip == 0
            else itertools.islice((line for line in file if line.strip("\r\n")), n_skip, None)
        )
        lines = list(itertools.islice(rows, BLOCK_ROWS))
        while lines and not any('"' in line for line in lines):
            yield lines, []
            lines = list(itertools.islice(rows, BLOCK_ROWS))
        reader = csv.reader(itertools.chain(lines, rows), delimiter=self.delimiter, strict=True)
        rest = filter(None, reader)
        while records := list(itertools.islice(rest, BLOCK_ROWS)):
            yield [], records

    def _parse_fast(
        self, lines: list[str], numbers: Sequence[str], texts: Sequence[str], n_read: int
    ) -> Block | None:
        """Parse lines without quotes, blank lines and missing numbers; None if these are others."""
        if {line.count(self.delimiter) for line in lines} != {len(self.names) - 1}:
            return None
        if len(self.names) == 1 and not all(map(str.strip, lines)):
            return None
        plain = [name for name in numbers if self.formats[name].is_plain]
        values = np.empty((len(lines), 0))
        if plain:
            columns = [self.place[name] for name in plain]
            try:
                values = np.loadtxt(lines, delimiter=self.delimiter, usecols=columns, comments=None, ndmin=2)
            except ValueError:
                return None
        strings = [*(name for name in numbers if not self.formats[name].is_plain), *texts]
        fields = [line.rstrip("\r\n").split(self.delimiter) for line in lines] if strings else []
        columns_of_text: list[Texts] = [[field[self.place[name]] for field in fields] for name in strings]
        return self._joined(numbers, plain, values, columns_of_text, n_read)

    def _parse_checked(
        self, records: list[list[str]], numbers: Sequence[str], texts: Sequence[str], n_read: int
    ) -> Block:
        """Parse records field by field: missing numbers become NaN, and errors name the row."""
        if any(len(record) != len(self.names) for record in records):
            raise TableError(self._first_ragged_line(), "delimiter")
        values = np.empty((len(records), len(numbers)))
        for j, name in enumerate(numbers):
            values[:, j] = self._numbers([record[self.place[name]] for record in records], name, n_read)
        return values, [[record[self.place[name]] for record in records] for name in texts]

    def _first_ragged_line(self) -> str:
        """Describe the first line that has another number of fields than the header."""
        with open_text(self.path, self.encoding, self.n_before) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            n = next(len(record) for record in reader if record and len(record) != len(self.names))
            line = self.n_before + reader.line_num
            return (
                f"{self.path} has {counted(n, 'field')} in line {line}, but {len(self.names)} "
                "in the first line: the line is damaged, the file is truncated, or the delimiter is different"
            )


def open_csv(
    path: Path, delimiter: str | None, encoding: str | None, decimal: str | None = None, skip: int = 0
) -> Source:
    """Open delimited text, after `skip` lines and any comment lines, which begin with "#".

    By default the delimiter is that of a first line "sep=;", as Excel writes it, or the most frequent one in
    the first line, and the decimal sign that of the numbers.
    """
    with open_text(path, encoding, skip) as file:
        if declared := DECLARED.fullmatch(next(file, "")):
            skip, delimiter = skip + 1, delimiter or declared[1]
    with open_text(path, encoding, skip) as file:
        n_top = skip + _count_comments(file, delimiter)
    with open_text(path, encoding, n_top) as file:
        first = next(file, "")
        if "\0" in first:
            raise TableError(f"{path} is not text: its first line contains zero bytes")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        reader = csv.reader(itertools.chain([first], file), delimiter=delimiter, strict=True)
        records = filter(None, reader)
        header = next(records, None)
        if header is None:
            raise TableError(f"{path} is empty")
        n_before = n_top + reader.line_num
        body = list(itertools.islice(records, PEEK_ROWS))
    has_header = _is_header(header)
    if not has_header:
        body, n_before = [header, *body], n_top
    elif not body:
        raise TableError(f"{path} has column names but no rows")
    names, unnamed = _names(header) if has_header else ([f"x{j}" for j in range(len(header))], ())
    check_names(names, f"{path}: column")
    body = [record for record in body if len(record) == len(names)]
    columns = {name: list(texts) for name, *texts in zip(names, *body, strict=True)}
    if decimal is None:
        decimal = find_decimal((field for texts in columns.values() for field in texts), delimiter)
    formats, dates, units = find_formats(columns, decimal)
    return _Csv(
        path=path,
        names=names,
        numeric=frozenset(formats),
        dates=dates,
        units=units,
        has_header=has_header,
        unnamed=unnamed,
        no_features=_no_features(unnamed, names, columns),
        delimiter=delimiter,
        encoding=encoding,
        formats=formats,
        n_before=n_before,
        n_comments=n_top - skip,
    )


def _count_comments(file: TextIO, delimiter: str | None) -> int:
    """Return how many lines that begin with "#" are comments; the last may hold the names of the columns."""
    comments = []
    for line in file:
        if not line.startswith("#"):
            break
        comments.append(line)
    else:
        return 0
    if not comments:
        return 0
    delimiter = delimiter or max(DELIMITERS, key=line.count)
    n = line.count(delimiter)
    return len(comments) - (n > 0 and comments[-1].count(delimiter) == n)


def _names(header: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the columns, and those among them that were made up."""
    names = [name.strip() for name in header]
    names[0] = names[0].lstrip("#").strip()
    unnamed, taken = [], set(names)
    for j, name in enumerate(names):
        if not name:
            names[j] = f"column{j + 1}"
            while names[j] in taken:
                names[j] += "_"
            taken.add(names[j])
            unnamed.append(names[j])
    return names, tuple(unnamed)


def _no_features(
    unnamed: Sequence[str], names: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    """Return the columns without a name that are an index in front, or have no values."""
    front = list(itertools.takewhile(set(unnamed).__contains__, names))
    index = itertools.takewhile(lambda name: _is_index(columns[name], levels=len(front) > 1), front)
    return frozenset([*index, *(name for name in unnamed if all(map(is_missing, columns[name])))])


def _is_index(texts: Sequence[str], levels: bool) -> bool:
    """Whether the fields of a column are words, or whole numbers that are all different or mostly count up.

    Numbers are counted from the start again in a table that was put together from several. The `levels` of
    an index, which are several columns, may repeat any number.
    """
    numbers = [NumberFormat().parse(text) for text in texts]
    if None in numbers:
        return True
    values = np.array(numbers, dtype=np.float64)
    counts_up = 2 * (np.diff(values) == 1.0).sum() >= len(values) - 1
    different = len(set(numbers)) == len(numbers)
    return bool((values == np.floor(values)).all() and (levels or counts_up or different))


def _is_header(first: Sequence[str]) -> bool:
    """Whether the first line has names: a field is not a number, or they are 0, 1, 2, ... as in pandas."""
    counted = [str(j) for j in range(len(first))]
    return not all(map(is_number, first)) or (len(first) > 1 and list(first) == counted)
