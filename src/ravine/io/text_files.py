"""Tables of text: CSV, TSV and JSON lines, also gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ravine._validate import FloatArray
from ravine.exceptions import InvalidInputError
from ravine.io.source import BLOCK_ROWS, Block, check_names, plain, saying

PEEK_ROWS = 4096  # the rows that say which columns hold numbers
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
DELIMITERS = ",;\t|"


@contextmanager
def _text(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """Open a text file, compressed by gzip or not."""
    with open(path, "rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        packed = head[:2] == b"\x1f\x8b"
        data: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        if encoding is None:
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with io.TextIOWrapper(data, encoding=encoding, newline="") as text:
            yield text


def is_missing(text: str | None) -> bool:
    """Whether a text stands for a value that is not there."""
    return text is None or text.strip().lower() in MISSING


def _number(text: str | None) -> float | None:
    """Return the number that a text is, NaN where it is missing, None where it is neither."""
    if text is None or is_missing(text):
        return np.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _numbers(texts: Sequence[str | None], name: str, where: Callable[[int], str]) -> FloatArray:
    """Return texts as numbers; `where` says the line of one that is none."""
    try:
        if "_" not in "".join(texts):  # type: ignore[arg-type]
            return np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        pass
    found = [_number(text) for text in texts]
    if None in found:
        i = found.index(None)
        raise InvalidInputError(
            f"column {name!r} holds {texts[i]!r} in {where(i)}, where numbers are expected; "
            f"correct it, or leave the column out with --exclude {name}"
        )
    return np.array(found, dtype=np.float64)


def _holds_numbers(texts: Sequence[str | None]) -> bool:
    """Whether at least half of what is there are numbers: then a word among them is an error."""
    there = [text for text in texts if not is_missing(text)]
    return 2 * sum(_number(text) is not None for text in there) >= len(there)


@dataclass(frozen=True)
class _Csv:
    """Delimited text; every record has as many fields as the first."""

    path: Path
    delimiter: str
    encoding: str | None
    names: list[str]
    has_header: bool
    numeric: frozenset[str]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        with saying(self.path), _text(self.path, self.encoding) as file:
            if self.has_header:
                next(record for record in csv.reader(file, delimiter=self.delimiter) if record)
            done = 0
            for records in self._records(file, numbers, texts):
                block = records if isinstance(records, tuple) else self._slowly(records, numbers, texts, done)
                done += len(block[0])
                yield block

    def _records(
        self, file: TextIO, numbers: Sequence[str], texts: Sequence[str]
    ) -> Iterator[Block | list[list[str]]]:
        """Yield blocks where lines are plain, and lists of records where they need a closer look.

        From the first quote on, which may hold a line break, only records are yielded.
        """
        lines = list(itertools.islice(file, BLOCK_ROWS))
        while lines and not any('"' in line for line in lines):
            quick = self._quickly(lines, numbers, texts)
            if quick is not None:
                yield quick
            elif records := [record for record in csv.reader(lines, delimiter=self.delimiter) if record]:
                yield records
            lines = list(itertools.islice(file, BLOCK_ROWS))
        reader = csv.reader(itertools.chain(lines, file), delimiter=self.delimiter, strict=True)
        rest = (record for record in reader if record)
        while records := list(itertools.islice(rest, BLOCK_ROWS)):
            yield records

    def _quickly(self, lines: list[str], numbers: Sequence[str], texts: Sequence[str]) -> Block | None:
        """Read lines in which every field is plain and every number is one; None where they are not."""
        if {line.count(self.delimiter) for line in lines} != {len(self.names) - 1}:
            return None
        if len(self.names) == 1 and not all(map(str.strip, lines)):
            return None
        values = np.empty((len(lines), 0))
        if numbers:
            try:
                values = np.loadtxt(
                    lines,
                    delimiter=self.delimiter,
                    usecols=[self.names.index(name) for name in numbers],
                    comments=None,
                    ndmin=2,
                )
            except ValueError:
                return None
        fields = [line.rstrip("\r\n").split(self.delimiter) for line in lines] if texts else []
        return values, [[field[self.names.index(name)] for field in fields] for name in texts]

    def _slowly(
        self, records: list[list[str]], numbers: Sequence[str], texts: Sequence[str], done: int
    ) -> Block:
        """Read records field by field: what is missing becomes NaN, and what is wrong is named."""
        if set(map(len, records)) != {len(self.names)}:
            raise InvalidInputError(self._ragged())
        columns = dict(zip(self.names, zip(*records, strict=True), strict=True))
        values = np.empty((len(records), len(numbers)))
        for j, name in enumerate(numbers):
            values[:, j] = _numbers(columns[name], name, lambda i: f"row {done + i + 1}")
        return values, [list(columns[name]) for name in texts]

    def _ragged(self) -> str:
        """Find the first line that has another number of fields, and say so."""
        with _text(self.path, self.encoding) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            for record in reader:
                if record and len(record) != len(self.names):
                    return (
                        f"{self.path} has {len(record)} field{'s' * (len(record) != 1)} in line "
                        f"{reader.line_num}, but {len(self.names)} in the first: the line is damaged, or "
                        "the file is cut off, or its delimiter is another (--delimiter)"
                    )
        raise AssertionError("no record differs")


def csv_table(path: Path, delimiter: str | None, encoding: str | None) -> _Csv:
    """Open a table of delimited text; the delimiter is the most frequent one, if none is told."""
    with _text(path, encoding) as file:
        first = file.readline()
        file.seek(0)
        if "\0" in first:
            raise InvalidInputError(f"{path} is not text: its first line has zero bytes")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        records = list(itertools.islice((record for record in reader if record), PEEK_ROWS + 1))
    if not records:
        raise InvalidInputError(f"{path} is empty")
    has_header = _names_columns(records[0])
    names = [name.strip() for name in records[0]]
    if not has_header:
        names = [f"x{j}" for j in range(len(records[0]))]
    check_names(names, f"{path}: column")
    body = [record for record in records[has_header:] if len(record) == len(names)]
    if not body and len(records) == 1:
        raise InvalidInputError(f"{path} has column names but no rows")
    columns = zip(*body, strict=True)
    numeric = frozenset(name for name, texts in zip(names, columns, strict=False) if _holds_numbers(texts))
    return _Csv(path, delimiter, encoding, names, has_header, numeric)


def _names_columns(first: Sequence[str]) -> bool:
    """Whether a first line is one of names: not all numbers, or 0, 1, 2, ... as pandas numbers columns."""
    counted = [str(j) for j in range(len(first))]
    return any(_number(text) is None for text in first) or (len(first) > 1 and list(first) == counted)


@dataclass(frozen=True)
class _JsonLines:
    """One JSON object a line; a key that a line lacks is a missing value."""

    path: Path
    encoding: str | None
    names: list[str]
    numeric: frozenset[str]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        known = set(self.names)
        with saying(self.path):
            objects = _objects(self.path, self.encoding)
            while block := list(itertools.islice(objects, BLOCK_ROWS)):
                lines = [line for line, _ in block]
                for line, item in block:
                    if not item.keys() <= known:
                        new = next(iter(item.keys() - known))
                        raise InvalidInputError(
                            f"line {line} has a key {new!r} that the first {PEEK_ROWS} lines lack"
                        )

                def where(i: int, lines: list[int] = lines) -> str:
                    return f"line {lines[i]}"

                values = np.empty((len(block), len(numbers)))
                for j, name in enumerate(numbers):
                    values[:, j] = _numbers([plain(item.get(name)) for _, item in block], name, where)
                yield values, [[plain(item.get(name)) for _, item in block] for name in texts]


def _objects(path: Path, encoding: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    with _text(path, encoding) as file:
        for i, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInputError(f"{path}: line {i} is not JSON: {error.msg}") from error
            except RecursionError:
                raise InvalidInputError(
                    f"{path}: line {i} is nested too deeply; an object of numbers and texts is expected"
                ) from None
            if not isinstance(item, dict):
                raise InvalidInputError(f"{path}: line {i} is JSON, but no object with named values")
            yield i, item


def json_lines(path: Path, encoding: str | None) -> _JsonLines:
    """Open a file with one JSON object a line."""
    items = [item for _, item in itertools.islice(_objects(path, encoding), PEEK_ROWS)]
    if not items:
        raise InvalidInputError(f"{path} is empty")
    names = list(dict.fromkeys(name for item in items for name in item))
    check_names(names, f"{path}: key")
    numeric = frozenset(name for name in names if _holds_numbers([plain(item.get(name)) for item in items]))
    return _JsonLines(path, encoding, names, numeric)
