"""From a file to rows of numbers: which columns are features, how text and missing values are handled.

Small tables stay in memory. Larger ones are written block by block to an unnamed temporary file and read from
there (`FileMatrix`), so that a table larger than memory takes disk space instead.
"""

from __future__ import annotations

import difflib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ravine._validate import FloatArray, IntArray, listed
from ravine.io.numpy_files import Matrix
from ravine.io.on_disk import FileMatrix
from ravine.io.source import BLOCK_ROWS, Note, Source, TableError, Texts, counted, is_missing

MEMORY_BYTES = 1 << 27  # 128 MB: larger tables go to a file, of which a block takes as much by default
MAX_VALUES = 50  # distinct values of a one-hot encoded column; more are most likely ids or free text


class Feature(NamedTuple):
    """A numeric column, or the indicator of one value of a text column."""

    column: str
    value: str | None = None

    @property
    def name(self) -> str:
        """The name of the feature: column, or column=value."""
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclass(frozen=True)
class Choice:
    """What to read from a file. `one_hot` names text columns to encode, or is "all"."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: str | None = None
    label: str | None = None
    one_hot: Sequence[str] | str = ()
    impute: bool = False

    @property
    def row_columns(self) -> list[str]:
        """The columns that describe rows and are never features: id and label."""
        return [name for name in (self.id, self.label) if name is not None]


@dataclass(frozen=True)
class Table:
    """Rows of numbers with the names of their columns, ids and classes.

    `fill` has the value per column that replaces missing ones, if any were to be filled in. `classes` has the
    values of the label column, and `class_of` the position of each row's class in it, -1 if it has none.
    `columns` has the column of the file for each name: indicators of one column share it.
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
    columns: tuple[str, ...] = ()

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
    one_hot = () if choice.one_hot == "all" else choice.one_hot
    _check_known(source, [*(choice.columns or ()), *choice.exclude, *one_hot, *choice.row_columns])
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


def _choose_features(source: Source, choice: Choice) -> tuple[list[Feature], list[str], list[str]]:
    """Return the features of the chosen columns, and which columns of text or without a name are left out."""
    excluded = {*choice.exclude, *choice.row_columns}
    if choice.columns is None and isinstance(source, Matrix):
        excluded |= source.vectors.keys()  # beside the matrix are labels or ids, which is nothing to note
    features, texts, unnamed = [], [], []
    for name in source.names if choice.columns is None else choice.columns:
        if name in excluded:
            continue
        if choice.columns is None and name in source.unnamed:
            unnamed.append(name)
        elif name in source.numeric:
            features.append(Feature(name))
        elif choice.one_hot == "all" or name in choice.one_hot:
            features += [Feature(name, value) for value in _distinct_values(source, name)]
        elif choice.columns is None:
            texts.append(name)
        else:
            raise TableError(f"{source.path}: column {name!r} holds text", "text", name)
    return features, texts, unnamed


def read_for_model(
    source: Source, names: Sequence[str] | None, n_features: int, choice: Choice, fill: FloatArray | None
) -> Table:
    """Read the features of a model; `fill` has one value per feature for missing values, or is None."""
    _check_known(source, choice.row_columns)
    if names is None:
        others = {*choice.row_columns, *source.unnamed}
        names = [name for name in source.names if name in source.numeric and name not in others]
        if len(names) != n_features:
            found = f"{source.path} has {len(names)} numeric columns"
            raise TableError(f"{found}, but the model was fitted on {n_features}")
    absent = [name for name in names if _find_feature(name, source) is None]
    if absent:
        raise TableError(f"{source.path} lacks columns that the model was fitted on: {listed(absent)}")
    features = [feature for name in names if (feature := _find_feature(name, source)) is not None]
    for column, value in features:
        if value is None and column not in source.numeric:
            raise TableError(f"{source.path}: column {column!r} holds text, where numbers are expected")
    return _load(source, features, choice, fill, [])


def _find_feature(name: str, source: Source) -> Feature | None:
    """Find a feature of a model in a file: a column, or an indicator column=value (both may contain "=")."""
    if name in source.place:
        return Feature(name)
    for i in (i for i, letter in enumerate(name) if letter == "="):
        if name[:i] in source.place:
            return Feature(name[:i], name[i + 1 :])
    return None


def _check_known(source: Source, names: Sequence[str]) -> None:
    for name in names:
        if name not in source.place:
            close = difflib.get_close_matches(name, source.names, 1)
            guess = f"; did you mean {close[0]!r}?" if close else f"; it has {listed(source.names)}"
            raise TableError(f"{source.path} has no column {name!r}{guess}")


def _distinct_values(source: Source, name: str) -> list[str]:
    """Return the values of a text column, sorted; one pass over the file."""
    found: set[str] = set()
    for _, (texts,) in source.blocks([], [name]):
        found.update(text for text in texts if text is not None and not is_missing(text))
        if len(found) > MAX_VALUES:
            text = f"{source.path}: column {name!r} has more than {MAX_VALUES} values, too many to encode"
            raise TableError(text, "too many values", name)
    return sorted(found)


@dataclass
class _Spool:
    """Blocks of rows as they arrive: in memory up to MEMORY_BYTES, in an unnamed file above that."""

    width: int
    parts: list[FloatArray] = field(default_factory=list)
    n_rows: int = 0
    file: BinaryIO | None = None

    def add(self, block: FloatArray) -> None:
        """Append one block."""
        self.n_rows += len(block)
        self.parts.append(block)
        if self.file is None and 8 * self.n_rows * self.width > MEMORY_BYTES:
            self.file = tempfile.TemporaryFile(prefix="ravine-", buffering=0)  # noqa: SIM115
        if self.file is not None:
            for part in self.parts:
                data = np.ascontiguousarray(part).data.cast("B")
                while data.nbytes:  # an unbuffered write may stop short
                    data = data[self.file.write(data) :]
            self.parts = []

    def rows(self) -> Any:
        """Return all rows."""
        if self.file is not None:
            return FileMatrix(self.file, (self.n_rows, self.width))
        return np.concatenate(self.parts)


def _load(
    source: Source,
    features: Sequence[Feature],
    choice: Choice,
    fill: FloatArray | str | None,
    notes: list[Note],
) -> Table:
    """Read features, ids and labels in one pass; `fill` has a value per feature, or is "median"."""
    numbers = list(dict.fromkeys(f.column for f in features if f.value is None))
    encoded = [f.column for f in features if f.value is not None]
    texts = list(dict.fromkeys([*encoded, *choice.row_columns]))
    in_place = isinstance(source, Matrix) and not encoded  # its rows stay where they are
    spool, classes = _Spool(len(features)), dict[str, int]()
    id_blocks, codes = [], []
    n_rows, missing, infinite = 0, np.zeros(len(features), np.int64), np.zeros(len(features), np.int64)
    for values, fields in source.blocks(numbers, texts):
        text_of = dict(zip(texts, fields, strict=True))
        block = _assemble(features, dict(zip(numbers, values.T, strict=True)), text_of, len(values))
        n_rows += len(block)
        missing += np.isnan(block).sum(axis=0)
        infinite += np.isinf(block).sum(axis=0)
        if choice.id is not None:
            id_blocks.append(json.dumps(text_of[choice.id]).encode())
        if choice.label is not None:
            labels = text_of[choice.label]
            codes += [-1 if is_missing(t) else classes.setdefault(str(t), len(classes)) for t in labels]
        if not in_place:
            spool.add(block)
    if n_rows == 0:
        raise TableError(f"{source.path} has column names but no rows")
    _check_finite(source, features, infinite, "infinite")
    if fill is None:
        _check_finite(source, features, missing, "missing")
    rows = source.select(numbers) if isinstance(source, Matrix) and in_place else spool.rows()
    if isinstance(fill, str):
        fill = _medians(rows)
    if fill is not None and missing.any():
        in_file = isinstance(rows, FileMatrix)
        rows = rows.filled_with(fill) if in_file else np.where(np.isnan(rows), fill, rows)
        filled = counted(int(missing.sum()), "missing value")
        notes.append((f"{filled} filled in with the median of the column", None))
    class_of = None if choice.label is None else np.array(codes, dtype=np.int64)
    names, columns = tuple(f.name for f in features), tuple(f.column for f in features)
    return Table(names, rows, fill, choice.id, id_blocks, tuple(classes), class_of, notes, columns)


def _assemble(
    features: Sequence[Feature], numbers: Mapping[str, FloatArray], texts: Mapping[str, Texts], n_rows: int
) -> FloatArray:
    """Return the features of one block; where a text is missing, so are its indicators."""
    block = np.empty((n_rows, len(features)))
    for j, (column, value) in enumerate(features):
        if value is None:
            block[:, j] = numbers[column]
        else:
            block[:, j] = [np.nan if is_missing(text) else text == value for text in texts[column]]
    return block


def _check_finite(source: Source, features: Sequence[Feature], counts: IntArray, kind: str) -> None:
    """Refuse missing or infinite values; the indicators of one column count once."""
    by_column: dict[str, int] = {}
    for feature, count in zip(features, counts, strict=True):
        if count:
            by_column.setdefault(feature.column, int(count))
    if by_column:
        named = listed([f"{name} ({count})" for name, count in by_column.items()])
        values = counted(sum(by_column.values()), f"{kind} value")
        raise TableError(f"{source.path} has {values} in {named}", kind)


def _medians(rows: Any) -> FloatArray:
    """Return the median of the values present in each column, as many columns at a time as memory allows."""
    n, d = rows.shape
    step = max(1, MEMORY_BYTES // (8 * n))
    medians = np.zeros(d)
    for start in range(0, d, step):
        pieces = (np.asarray(rows[i : i + BLOCK_ROWS], np.float64) for i in range(0, n, BLOCK_ROWS))
        part = np.concatenate([piece[:, start : start + step] for piece in pieces])
        for j, column in enumerate(part.T, start):
            present = column[~np.isnan(column)]
            medians[j] = np.median(present) if len(present) else 0.0
    return medians
