"""The clusters of rows as a CSV, TSV or Parquet file, with the ids of the rows or with all columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidInputError
from ravine.io.arrow_files import import_pyarrow, write_parquet
from ravine.io.source import Source
from ravine.io.table import Table
from ravine.io.text_files import parse_number

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet runs text that begins with one of these

Columns = list[Any]  # a list or an array per column, with a value per row


def check_label_path(path: Path) -> None:
    """Refuse a path whose suffix is not that of a format in which labels can be written here."""
    if path.suffix.lower() == ".parquet":
        import_pyarrow()
    elif path.suffix.lower() not in (".csv", ".tsv"):
        raise InvalidInputError(f"labels are written as .csv, .tsv or .parquet, not as {path}")


def write_labels(
    target: Path | BinaryIO, table: Table, labels: IntArray, memberships: FloatArray | None = None
) -> None:
    """Write the id and the cluster of every row to a path, or as CSV to an open binary file.

    `memberships` (rows, clusters) are written as further columns.
    """
    in_parquet = _is_parquet(target)
    blocks: Iterator[Columns] = (
        [list(map(int, ids)) if in_parquet and table.id_name is None else ids] for ids in table.ids()
    )
    kinds = {table.id_name or "row": "text" if table.id_name else "row"}
    _write(target, kinds, _with_results(blocks, labels, memberships), memberships)


def write_rows(
    target: Path | BinaryIO, source: Source, labels: IntArray, memberships: FloatArray | None = None
) -> None:
    """Write all columns of a file and the cluster of every row, as `write_labels` does; reads it again.

    In a Parquet file, columns of numbers are float64 and all others text; in other files, fields are as they
    were read.
    """
    numbers = [name for name in source.names if _is_parquet(target) and name in source.numeric]
    texts = [name for name in source.names if not (_is_parquet(target) and name in source.numeric)]

    def blocks() -> Iterator[Columns]:
        for values, fields in source.blocks(numbers, texts):
            found: dict[str, Any] = dict(zip(texts, fields, strict=True))
            found.update(zip(numbers, values.T, strict=True))
            yield [found[name] for name in source.names]

    kinds = {name: "number" if name in source.numeric else "text" for name in source.names}
    _write(target, kinds, _with_results(blocks(), labels, memberships), memberships)


def _is_parquet(target: Path | BinaryIO) -> bool:
    return isinstance(target, Path) and target.suffix.lower() == ".parquet"


def _with_results(
    blocks: Iterator[Columns], labels: IntArray, memberships: FloatArray | None
) -> Iterator[Columns]:
    """Add the columns of the clusters, and of the memberships, to blocks of columns."""
    start = 0
    for columns in blocks:
        end = start + len(columns[0])
        shares = [] if memberships is None else list(memberships[start:end].T)
        yield [*columns, labels[start:end], *shares]
        start = end


def _write(
    target: Path | BinaryIO, kinds: dict[str, str], blocks: Iterator[Columns], memberships: FloatArray | None
) -> None:
    """Write columns; `kinds` has those before the cluster: "row" numbers, "number" or "text"."""
    n_clusters = 0 if memberships is None else memberships.shape[1]
    added = {"cluster": "row"} | {f"membership_{k}": "number" for k in range(n_clusters)}
    for name, kind in added.items():
        while name in kinds:
            name += "_"
        kinds[name] = kind
    if not isinstance(target, Path):
        write_delimited(target, ",", kinds, blocks)
        return
    with open(target, "wb") as file:
        if _is_parquet(target):
            write_parquet(file, kinds, blocks)
        else:
            write_delimited(file, "\t" if target.suffix.lower() == ".tsv" else ",", kinds, blocks)


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> escape_formula("=1+1"), escape_formula("-5"), escape_formula("b007")
    ("'=1+1", '-5', 'b007')
    """
    return f"'{text}" if text.startswith(FORMULA) and parse_number(text) is None else text


def write_delimited(file: BinaryIO, delimiter: str, kinds: dict[str, str], blocks: Iterable[Columns]) -> None:
    """Write blocks of columns as delimited text; `kinds` are their names and "row", "number" or "text"."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(map(escape_formula, kinds))
    for columns in blocks:
        fields = [
            column.tolist() if hasattr(column, "tolist") else _fields(column, kind)
            for column, kind in zip(columns, kinds.values(), strict=True)
        ]
        writer.writerows(zip(*fields, strict=True))
    text.flush()
    text.detach()  # otherwise the wrapper would close the file


def _fields(column: Sequence[Any], kind: str) -> list[str]:
    """Return the fields of a column; what is not a number is escaped."""
    present = ("" if value is None else str(value) for value in column)
    return list(map(escape_formula, present) if kind == "text" else present)
