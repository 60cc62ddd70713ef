"""The labels of rows as a file: CSV, TSV or Parquet, with the rows' ids."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ravine._validate import IntArray
from ravine.cli.arguments import UsageError
from ravine.exceptions import RavineError
from ravine.io.table import Table

LABEL_FORMATS = {".csv": ",", ".tsv": "\t"}
FORMULA = re.compile(r"[=+\-@\t\r\n]")  # what a text begins with that a spreadsheet runs
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_labels_name(name: str | None) -> None:
    """Refuse a name whose ending tells no format that labels are written in."""
    if name not in (None, "-") and Path(str(name)).suffix.lower() not in (*LABEL_FORMATS, ".parquet"):
        raise UsageError(f"--out: labels are written as .csv, .tsv or .parquet, not as {name}")


def write_labels(name: str, table: Table, labels: IntArray) -> None:
    """Write the id and the cluster of every row, a block at a time."""
    from ravine.io.atomic import atomic_file

    if name == "-":
        _write_text(sys.stdout.buffer, ",", table, labels)
        return
    path = Path(name)
    with atomic_file(path) as file:
        if path.suffix.lower() == ".parquet":
            _write_parquet(file, table, labels)
        else:
            _write_text(file, LABEL_FORMATS[path.suffix.lower()], table, labels)


def _labeled(table: Table, labels: IntArray) -> Iterator[tuple[list[str], IntArray]]:
    start = 0
    for ids in table.ids():
        yield ids, labels[start : start + len(ids)]
        start += len(ids)


def plain_cell(text: str) -> str:
    """Return a text as a spreadsheet shows it instead of running it: with an apostrophe before a formula.

    >>> plain_cell("=1+1"), plain_cell("-5"), plain_cell("b007")
    ("'=1+1", '-5', 'b007')
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def _write_text(file: BinaryIO, delimiter: str, table: Table, labels: IntArray) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([plain_cell(table.id_name or "row"), "cluster"])
    for ids, part in _labeled(table, labels):
        writer.writerows(zip(map(plain_cell, ids), part.tolist(), strict=True))
    text.flush()
    text.detach()


def _write_parquet(file: BinaryIO, table: Table, labels: IntArray) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise RavineError('writing Parquet needs pyarrow: pip install "ravine[io]"') from error
    name = table.id_name or "row"
    kind = pyarrow.string() if table.id_name else pyarrow.int64()
    schema = pyarrow.schema([(name, kind), ("cluster", pyarrow.int64())])
    with parquet.ParquetWriter(file, schema) as writer:
        for ids, part in _labeled(table, labels):
            column = ids if table.id_name else [int(i) for i in ids]
            writer.write_batch(pyarrow.record_batch([pyarrow.array(column, kind), part], schema=schema))
