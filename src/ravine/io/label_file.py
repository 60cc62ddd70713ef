"""The clusters of rows as a CSV, TSV or Parquet file, with the ids of the rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ravine._validate import IntArray
from ravine.exceptions import InvalidInputError
from ravine.io.arrow_files import import_pyarrow, write_parquet
from ravine.io.atomic import atomic_file
from ravine.io.table import Table

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMULA = re.compile(r"[=+\-@\t\r\n]")  # a spreadsheet runs text that begins with one of these
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_label_path(path: Path) -> None:
    """Refuse a path whose suffix is not that of a format in which labels can be written here."""
    if path.suffix.lower() == ".parquet":
        import_pyarrow()
    elif path.suffix.lower() not in DELIMITERS:
        raise InvalidInputError(f"labels are written as .csv, .tsv or .parquet, not as {path}")


def write_labels(target: Path | BinaryIO, table: Table, labels: IntArray) -> None:
    """Write the id and the cluster of every row to a path, or as CSV to an open binary file."""
    blocks = _blocks(table, labels)
    if not isinstance(target, Path):
        _write_text(target, ",", table.id_name, blocks)
        return
    suffix = target.suffix.lower()
    with atomic_file(target) as file:
        if suffix == ".parquet":
            write_parquet(file, table.id_name, blocks)
        else:
            _write_text(file, DELIMITERS[suffix], table.id_name, blocks)


def _blocks(table: Table, labels: IntArray) -> Iterator[tuple[list[str], IntArray]]:
    start = 0
    for ids in table.ids():
        yield ids, labels[start : start + len(ids)]
        start += len(ids)


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> escape_formula("=1+1"), escape_formula("-5"), escape_formula("b007")
    ("'=1+1", '-5', 'b007')
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def _write_text(
    file: BinaryIO, delimiter: str, id_name: str | None, blocks: Iterable[tuple[list[str], IntArray]]
) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([escape_formula(id_name or "row"), "cluster"])
    for ids, clusters in blocks:
        writer.writerows(zip(map(escape_formula, ids), clusters.tolist(), strict=True))
    text.flush()
    text.detach()  # otherwise the wrapper would close the file
