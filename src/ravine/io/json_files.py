"""Tables in JSON: one object per line, or an array of objects."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ravine.io.compression import open_text
from ravine.io.number_text import NumberFormat, find_formats, parse_numbers
from ravine.io.source import BLOCK_ROWS, PEEK_ROWS, Block, Source, TableError, check_names, to_text

DECODER = json.JSONDecoder()
SEPARATORS = re.compile(r"[ \t\r\n,]*")
PIECE = 1 << 16  # characters of an array of objects that are read at a time


@dataclass(frozen=True, kw_only=True)
class _JsonObjects(Source):
    """JSON objects; a key that is absent is a missing value."""

    encoding: str | None
    formats: Mapping[str, NumberFormat]

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        objects, known = _json_objects(self.path, self.encoding), set(self.names)
        while block := list(itertools.islice(objects, BLOCK_ROWS)):
            places, items = zip(*block, strict=True)
            for place, item in block:
                if unknown := item.keys() - known:
                    key = f"a key {min(unknown)!r} that is not in the first {PEEK_ROWS} objects"
                    raise TableError(f"{place} has {key}")
            columns = {name: [to_text(item.get(name)) for item in items] for name in {*numbers, *texts}}
            values = np.empty((len(block), len(numbers)))
            for j, name in enumerate(numbers):
                values[:, j] = parse_numbers(columns[name], self.formats[name], name, places.__getitem__)
            yield values, [columns[name] for name in texts]


def _json_objects(path: Path, encoding: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each object ("line 3"), and the object."""
    with open_text(path, encoding) as file:
        first = next((line for line in file if line.strip()), "")
    is_array = first.lstrip().startswith("[")
    with open_text(path, encoding) as file:
        for place, item in _of_array(file, path) if is_array else _of_lines(file, path):
            if not isinstance(item, dict):
                raise TableError(f"{path}: {place} is JSON, but not an object with named values")
            yield place, item


def _of_lines(file: TextIO, path: Path) -> Iterator[tuple[str, Any]]:
    for i, line in enumerate(file, start=1):
        if line.strip():
            yield f"line {i}", _decoded(f"{path}: line {i}", json.loads, line)


def _of_array(file: TextIO, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the items of an array, reading a piece at a time."""
    text = file.read(PIECE)
    at = text.index("[") + 1
    for i in itertools.count(1):
        while True:
            at = SEPARATORS.match(text, at).end()  # type: ignore[union-attr]
            if text[at : at + 1] == "]":
                return
            try:
                item, at = _decoded(f"{path}: item {i}", DECODER.raw_decode, text, at)
                break
            except TableError:
                text, at = text[at:], 0
                more = file.read(max(PIECE, len(text)))  # perhaps the piece ends within the item
                if not more:
                    raise
                text += more
        yield f"item {i}", item


def _decoded(place: str, decode: Callable[..., Any], *where: Any) -> Any:
    """Decode JSON; an error names the place."""
    try:
        return decode(*where)
    except json.JSONDecodeError as error:
        raise TableError(f"{place} is not JSON: {error.msg}") from error
    except RecursionError:
        raise TableError(f"{place} has too many nested brackets") from None


def open_json(path: Path, encoding: str | None) -> Source:
    """Open a file with one JSON object per line, or with an array of objects."""
    items = [item for _, item in itertools.islice(_json_objects(path, encoding), PEEK_ROWS)]
    if not items:
        raise TableError(f"{path} is empty")
    if len(items) == 1 and all(isinstance(value, dict | list) for value in items[0].values()):
        text = 'one object per row is expected; pandas writes that with to_json(orient="records")'
        raise TableError(f"{path} holds a single JSON object with one entry per column, where {text}")
    names = list(dict.fromkeys(name for item in items for name in item))
    check_names(names, f"{path}: key")
    columns = {name: [to_text(item.get(name)) for item in items] for name in names}
    formats, dates, units = find_formats(columns)
    return _JsonObjects(
        path=path,
        names=names,
        numeric=frozenset(formats),
        dates=dates,
        units=units,
        encoding=encoding,
        formats=formats,
    )
