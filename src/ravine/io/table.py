"""From a file to rows of numbers: which columns are features, how text and missing values are handled.

Small tables stay in memory. Larger ones are written block by block to an unnamed temporary file and read from
there (`MatrixFile`), so that a table larger than memory takes disk space instead.
"""

from __future__ import annotations

import difflib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine._validate import FloatArray, IntArray, listed
from ravine.io.block_file import MatrixFile, block_bytes
from ravine.io.numpy_files import Matrix
from ravine.io.source import BLOCK_ROWS, Note, Source, TableError, counted, is_missing


@dataclass(frozen=True)
class Choice:
    """What to read from a file, and whether its rows go to a file however few they are."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: str | None = None
    label: str | None = None
    impute: bool = False
    memory_limit: int | None = None
    in_file: bool = False

    @property
    def row_columns(self) -> list[str]:
        """The columns that describe rows and are never features: id and label."""
        return [name for name in (self.id, self.label) if name is not None]

    @property
    def most_bytes(self) -> int:
        """The bytes of rows that stay in memory."""
        return -1 if self.in_file else block_bytes(self.memory_limit)


@dataclass(frozen=True)
class Table:
    """Rows of numbers with the names of their columns, ids and classes.

    `fill` has the value per column that replaces missing ones, if any were to be filled in. `classes` has the
    values of the label column, and `class_of` the position of each row's class in it, -1 if it has none.
    `notes` are sentences about how the table was read, see `Note`.
    """

    names: tuple[str, ...]
    values: Any
    fill: FloatArray | None = None
    id_name: str | None = None
    id_blocks: Sequence[bytes] = ()  # JSON lists: strings of Python take several times the memory
    classes: tuple[str, ...] = ()
    class_of: IntArray | None = None
    notes: Sequence[Note] = ()

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.values.shape[0])

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of the rows in order, in blocks; without an id column they are 0, 1, ..."""
        if self.id_name is None:
            for start in range(0, self.n_rows, BLOCK_ROWS):
                yield [str(i) for i in range(start, min(start + BLOCK_ROWS, self.n_rows))]
        for block in self.id_blocks:
            yield ["" if item is None else item for item in json.loads(block)]

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the ids of a few rows."""
        wanted, found, start = set(map(int, rows)), {}, 0
        for block in self.ids():
            found.update({i: block[i - start] for i in wanted if start <= i < start + len(block)})
            start += len(block)
        return found


def read_table(source: Source, choice: Choice) -> Table:
    """Read the chosen features, or all numeric columns."""
    check_known(source, [*(choice.columns or ()), *choice.exclude, *choice.row_columns])
    features, texts, unnamed = _choose_features(source, choice)
    notes = list(source.notes)
    for left_out, lacks, about in (
        (unnamed, "a name", "unnamed left out"),
        (texts, "numbers", "text left out"),
    ):
        if left_out:
            count = counted(len(left_out), "column")
            notes.append((f"{count} without {lacks} left out ({listed(left_out)})", about))
    if not features:
        found = f"{source.path} has no numeric column to cluster by (it has {listed(source.names)})"
        raise TableError(found, "delimiter")
    table = _load(source, features, choice, "median" if choice.impute else None, notes)
    if table.n_rows < 2:
        raise TableError(f"{source.path} has one row, and clustering needs at least two")
    return table


def _choose_features(source: Source, choice: Choice) -> tuple[list[str], list[str], list[str]]:
    """Return the features of the chosen columns, and which columns of text or without a name are left out."""
    excluded = {*choice.exclude, *choice.row_columns}
    features, texts, unnamed = [], [], []
    for name in source.names if choice.columns is None else choice.columns:
        if name in excluded:
            continue
        if choice.columns is None and name in source.unnamed:
            unnamed.append(name)
        elif name in source.numeric:
            features.append(name)
        elif choice.columns is None:
            texts.append(name)
        else:
            raise TableError(f"{source.path}: column {name!r} holds text", "text", name)
    return features, texts, unnamed


def read_for_model(
    source: Source, names: Sequence[str] | None, n_features: int, choice: Choice, fill: FloatArray | None
) -> Table:
    """Read the features of a model; `fill` has one value per feature for missing values, or is None."""
    check_known(source, choice.row_columns)
    if names is None:
        others = {*choice.row_columns, *source.unnamed}
        names = [name for name in source.names if name in source.numeric and name not in others]
        if len(names) != n_features:
            found = f"{source.path} has {len(names)} numeric columns"
            raise TableError(f"{found}, but the model was fitted on {n_features}")
    absent = [name for name in names if name not in source.place]
    if absent:
        raise TableError(f"{source.path} lacks columns that the model was fitted on: {listed(absent)}")
    for name in names:
        if name not in source.numeric:
            raise TableError(f"{source.path}: column {name!r} holds text, where numbers are expected")
    return _load(source, names, choice, fill, [])


def check_known(source: Source, names: Sequence[str]) -> None:
    """Refuse columns that a table does not have."""
    for name in names:
        if name not in source.place:
            close = difflib.get_close_matches(name, source.names, 1)
            guess = f"; did you mean {close[0]!r}?" if close else f"; it has {listed(source.names)}"
            raise TableError(f"{source.path} has no column {name!r}{guess}")


class _Spool:
    """Blocks of rows as they arrive: in memory up to some bytes, in an unnamed file above that."""

    def __init__(self, path: Path, width: int, choice: Choice) -> None:
        self.path, self.width, self.choice = path, width, choice
        self.parts: list[FloatArray] = []
        self.n_rows = 0
        self.file: BinaryIO | None = None

    def add(self, block: FloatArray) -> None:
        """Append one block."""
        self.n_rows += len(block)
        self.parts.append(block)
        if self.file is None and 8 * self.n_rows * self.width > self.choice.most_bytes:
            self.file = tempfile.TemporaryFile(prefix="ravine-")  # noqa: SIM115
        if self.file is not None:
            for part in self.parts:
                self.file.write(np.ascontiguousarray(part).data)
            self.parts = []

    def rows(self) -> Any:
        """Return all rows."""
        if self.file is None:
            return np.concatenate(self.parts)
        self.file.flush()
        shape = self.n_rows, self.width
        return MatrixFile(self.path, self.file, shape, memory_limit=self.choice.memory_limit)


def _load(
    source: Source, names: Sequence[str], choice: Choice, fill: FloatArray | str | None, notes: list[Note]
) -> Table:
    """Read features, ids and labels in one pass; `fill` has a value per feature, or is "median"."""
    texts = list(dict.fromkeys(choice.row_columns))
    spool, classes = _Spool(source.path, len(names), choice), dict[str, int]()
    id_blocks, codes = [], []
    n_rows, missing, infinite = 0, np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for values, fields in source.blocks(names, texts):
        text_of = dict(zip(texts, fields, strict=True))
        n_rows += len(values)
        missing += np.isnan(values).sum(axis=0)
        infinite += np.isinf(values).sum(axis=0)
        if choice.id is not None:
            id_blocks.append(json.dumps(text_of[choice.id]).encode())
        if choice.label is not None:
            labels = text_of[choice.label]
            codes += [-1 if is_missing(t) else classes.setdefault(str(t), len(classes)) for t in labels]
        if not isinstance(source, Matrix):  # whose rows stay where they are
            spool.add(values)
    if n_rows == 0:
        raise TableError(f"{source.path} has column names but no rows")
    _check_finite(source, names, infinite, "infinite")
    if fill is None:
        _check_finite(source, names, missing, "missing")
    rows = source.select(names, choice.memory_limit) if isinstance(source, Matrix) else spool.rows()
    if isinstance(fill, str):
        fill = _find_medians(rows)
    if fill is not None and missing.any():
        rows = _fill_missing(rows, fill, _Spool(source.path, len(names), choice))
        filled = counted(int(missing.sum()), "missing value")
        notes.append((f"{filled} filled in with the median of the column", None))
    if isinstance(rows, MatrixFile) and rows.nbytes <= choice.most_bytes:
        rows = rows[:]
    class_of = None if choice.label is None else np.array(codes, dtype=np.int64)
    return Table(tuple(names), rows, fill, choice.id, id_blocks, tuple(classes), class_of, notes)


def _check_finite(source: Source, names: Sequence[str], counts: IntArray, kind: str) -> None:
    """Refuse missing or infinite values."""
    if counts.any():
        named = listed([f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count])
        values = counted(int(counts.sum()), f"{kind} value")
        raise TableError(f"{source.path} has {values} in {named}", kind)


def _find_medians(rows: Any) -> FloatArray:
    """Return the median of the values present in each column, as many columns at a time as memory allows."""
    n, d = rows.shape
    step = max(1, block_bytes(None) // (8 * n))
    medians = np.zeros(d)
    for start in range(0, d, step):
        part = np.concatenate([piece[:, start : start + step] for piece in _pieces(rows)])
        for j, column in enumerate(part.T, start):
            present = column[~np.isnan(column)]
            medians[j] = np.median(present) if len(present) else 0.0
    return medians


def _fill_missing(rows: Any, fill: FloatArray, spool: _Spool) -> Any:
    """Return the same rows with values in place of NaN."""
    for piece in _pieces(rows):
        spool.add(np.where(np.isnan(piece), fill, piece))
    return spool.rows()


def _pieces(rows: Any) -> Iterator[FloatArray]:
    """Yield all rows, some at a time."""
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        yield np.asarray(rows[start : start + BLOCK_ROWS], dtype=np.float64)
