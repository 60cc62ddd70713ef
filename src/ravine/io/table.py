"""From a file to rows: which columns are features, how text and missing values are dealt with.

What is small is kept in memory; what is larger goes to a temporary file that has no name, block by block, and
is read from there (`FileMatrix`): a table larger than memory costs disk, not memory.
"""

from __future__ import annotations

import difflib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidInputError
from ravine.io.numpy_files import Matrix
from ravine.io.on_disk import FileMatrix
from ravine.io.source import Source, Texts
from ravine.io.text_files import is_missing

MEMORY_BYTES = 1 << 27  # tables above this size go to a file
MAX_VALUES = 50  # of a text column that is one-hot encoded


@dataclass(frozen=True)
class Feature:
    """A column of numbers, or the indicator of one value of a text column."""

    column: str
    value: str | None = None

    @property
    def name(self) -> str:
        """How the feature is called: column, or column=value."""
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclass(frozen=True)
class Choice:
    """What to take from a file. `one_hot` names text columns to encode, or is "all"."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: str | None = None
    label: str | None = None
    one_hot: Sequence[str] | str = ()
    impute: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of numbers with the names of their columns, and what goes with them.

    `fill` has what missing values were filled with, where that was asked for; `classes` and `class_of` are
    the values of the label column and which of them each row has, -1 where it has none; `notes` say what was
    left out.
    """

    names: tuple[str, ...]
    values: Any
    fill: FloatArray | None
    id_name: str | None
    id_blocks: list[bytes]
    classes: tuple[str, ...]
    class_of: IntArray | None
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.values.shape[0])

    def ids(self) -> Iterator[list[str]]:
        """Yield the rows' ids in order, a block at a time; without an id column, 0, 1, ..."""
        if self.id_name is None:
            step = 4096
            for start in range(0, self.n_rows, step):
                yield [str(i) for i in range(start, min(start + step, self.n_rows))]
        for block in self.id_blocks:
            yield ["" if item is None else item for item in json.loads(block)]

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the ids of a few rows."""
        wanted, found, start = set(map(int, rows)), {}, 0
        for block in self.ids():
            found.update({i: block[i - start] for i in wanted if start <= i < start + len(block)})
            start += len(block)
        return found


def read_table(source: Source, path: Path, choice: Choice) -> Table:
    """Read the features that were chosen, or all columns of numbers."""
    named = [*(choice.columns or ()), *choice.exclude, *([] if choice.one_hot == "all" else choice.one_hot)]
    _check_known(source, path, [*named, *(name for name in (choice.id, choice.label) if name is not None)])
    kept_out = {*choice.exclude, choice.id, choice.label}
    if choice.columns is not None:
        wanted = [name for name in choice.columns if name not in kept_out]
    else:
        wanted = [name for name in source.names if name not in kept_out]
        if isinstance(source, Matrix):
            wanted = [name for name in wanted if name in source.numeric]
    features, left_out = [], []
    for name in wanted:
        if name in source.numeric:
            features.append(Feature(name))
        elif choice.one_hot == "all" or name in choice.one_hot:
            features += [Feature(name, value) for value in _values_of(source, name)]
        elif choice.columns is not None:
            raise InvalidInputError(
                f"{path}: column {name!r} holds text; encode it with --one-hot {name}, or leave it out"
            )
        else:
            left_out.append(name)
    notes = []
    if not getattr(source, "has_header", True):
        notes.append("the first line holds numbers, so it is a row, and the columns are called x0, x1, ...")
    if left_out:
        few = ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else "")
        notes.append(
            f"{len(left_out)} column{'s' * (len(left_out) > 1)} of text left out ({few}); "
            "--one-hot takes them in"
        )
    if not features:
        raise InvalidInputError(
            f"{path} has no column of numbers to cluster by (it has {_list(source.names)}); "
            "is its delimiter another? (--delimiter)"
        )
    table = _load(source, path, features, choice, "median" if choice.impute else None, notes)
    if table.n_rows < 2:
        raise InvalidInputError(f"{path} has one row, and clusters need at least two; bring more rows")
    return table


def read_for_model(
    source: Source, path: Path, names: Sequence[str] | None, n_features: int, choice: Choice, fill: Any
) -> Table:
    """Read the columns that a model knows; `fill` has what to put for missing values, or is None."""
    _check_known(source, path, [name for name in (choice.id, choice.label) if name is not None])
    if names is None:
        free = [name for name in source.features if name not in (choice.id, choice.label)]
        if len(free) != n_features:
            raise InvalidInputError(
                f"{path} has {len(free)} columns of numbers, but the model was fitted on {n_features}"
            )
        names = free
    features = [_feature(name, source) for name in names]
    lacking = [name for name, feature in zip(names, features, strict=True) if feature is None]
    if lacking:
        raise InvalidInputError(f"{path} lacks columns that the model was fitted on: {_list(lacking)}")
    found = [feature for feature in features if feature is not None]
    for feature in found:
        if feature.value is None and feature.column not in source.numeric:
            raise InvalidInputError(
                f"{path}: column {feature.column!r} holds text, where numbers are expected"
            )
    return _load(source, path, found, choice, fill, [])


def _feature(name: str, source: Source) -> Feature | None:
    """Find a model's feature in a file: a column, or the indicator column=value."""
    if name in source.names:
        return Feature(name)
    for at in (i for i, letter in enumerate(name) if letter == "="):
        if name[:at] in source.names:
            return Feature(name[:at], name[at + 1 :])
    return None


def _check_known(source: Source, path: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in source.names:
            close = difflib.get_close_matches(name, source.names, 1)
            guess = f"; did you mean {close[0]!r}?" if close else f"; it has {_list(source.names)}"
            raise InvalidInputError(f"{path} has no column {name!r}{guess}")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _values_of(source: Source, name: str) -> list[str]:
    """Return the values of a text column, sorted; one pass over the file."""
    found: set[str] = set()
    for _, (texts,) in source.blocks([], [name]):
        found.update(text for text in texts if text is not None and not is_missing(text))
        if len(found) > MAX_VALUES:
            raise InvalidInputError(
                f"column {name!r} has more than {MAX_VALUES} values, too many to encode; "
                f"leave it out with --exclude {name}"
            )
    return sorted(found)


@dataclass
class _Spool:
    """Blocks of rows on their way: in memory while they are few, in a file without a name above that."""

    width: int
    parts: list[FloatArray] = field(default_factory=list)
    n_rows: int = 0
    file: BinaryIO | None = None

    def add(self, block: FloatArray) -> None:
        """Take one block."""
        self.n_rows += len(block)
        self.parts.append(block)
        if self.file is None and 8 * self.n_rows * self.width > MEMORY_BYTES:
            self.file = tempfile.TemporaryFile(prefix="ravine-", buffering=0)  # noqa: SIM115
        if self.file is not None:
            for part in self.parts:
                _write_whole(self.file, np.ascontiguousarray(part).data.cast("B"))
            self.parts = []

    def rows(self) -> Any:
        """Return all rows."""
        if self.file is not None:
            return FileMatrix(self.file, (self.n_rows, self.width))
        return np.concatenate(self.parts) if self.parts else np.zeros((0, self.width))


def _write_whole(file: BinaryIO, data: memoryview) -> None:
    while data.nbytes:
        data = data[file.write(data) :]


def _load(
    source: Source, path: Path, features: Sequence[Feature], choice: Choice, fill: Any, notes: Sequence[str]
) -> Table:
    """Read the features, the ids and the labels in one pass, and see what is missing."""
    numbers = list(dict.fromkeys(f.column for f in features if f.value is None))
    encoded = list(dict.fromkeys(f.column for f in features if f.value is not None))
    extra = [name for name in (choice.id, choice.label) if name is not None]
    direct = isinstance(source, Matrix)  # its rows stay where they are
    spool = _Spool(len(features))
    missing, infinite = np.zeros(len(features), dtype=np.int64), np.zeros(len(features), dtype=np.int64)
    id_blocks: list[bytes] = []
    codes: list[IntArray] = []
    classes: dict[str, int] = {}
    for values, texts in source.blocks(numbers, [*encoded, *extra]):
        block = _assemble(
            features, dict(zip(numbers, values.T, strict=True)), dict(zip(encoded, texts, strict=False))
        )
        missing += np.isnan(block).sum(axis=0)
        infinite += np.isinf(block).sum(axis=0)
        beside = iter(texts[len(encoded) :])
        if choice.id is not None:
            id_blocks.append(json.dumps(next(beside)).encode())
        if choice.label is not None:
            codes.append(_encode(next(beside), classes))
        if not direct:
            spool.add(block)
        else:
            spool.n_rows += len(block)
    if spool.n_rows == 0:
        raise InvalidInputError(f"{path} has column names but no rows")
    rows = _columns(source, numbers) if isinstance(source, Matrix) else spool.rows()
    _check_finite(path, features, missing, infinite, fill is not None)
    if isinstance(fill, str):
        fill = _medians(rows)
    if fill is not None and missing.any():
        rows = _filled(rows, fill)
        notes = [*notes, f"{int(missing.sum())} missing values filled in with the median of their column"]
    return Table(
        names=tuple(feature.name for feature in features),
        values=rows,
        fill=fill,
        id_name=choice.id,
        id_blocks=id_blocks,
        classes=tuple(classes),
        class_of=np.concatenate(codes) if codes else None,
        notes=tuple(notes),
    )


def _assemble(
    features: Sequence[Feature], numbers: dict[str, FloatArray], texts: dict[str, Texts]
) -> FloatArray:
    """Return the features of one block; the indicators of a missing text are missing."""
    n = len(next(iter(numbers.values()))) if numbers else len(next(iter(texts.values())))
    block = np.empty((n, len(features)))
    for j, feature in enumerate(features):
        if feature.value is None:
            block[:, j] = numbers[feature.column]
        else:
            block[:, j] = [np.nan if is_missing(t) else t == feature.value for t in texts[feature.column]]
    return block


def _encode(texts: Texts, classes: dict[str, int]) -> IntArray:
    return np.array(
        [-1 if is_missing(text) else classes.setdefault(str(text), len(classes)) for text in texts],
        dtype=np.int64,
    )


def _columns(matrix: Matrix, names: Sequence[str]) -> Any:
    """Return some columns of a matrix, which stays in its file if it is in one."""
    place = np.array([int(name[1:]) for name in names], dtype=np.int64)
    if len(place) == matrix.rows.shape[1] and (place == np.arange(len(place))).all():
        return matrix.rows
    return matrix.rows.only(place) if isinstance(matrix.rows, FileMatrix) else matrix.rows[:, place]


def _check_finite(
    path: Path, features: Sequence[Feature], missing: IntArray, infinite: IntArray, may_fill: bool
) -> None:
    for counts, what in ((infinite, "infinite"), (missing, "missing")):
        if not counts.any() or (what == "missing" and may_fill):
            continue
        by_column: dict[str, int] = {}
        for feature, count in zip(features, counts, strict=True):
            if count:
                by_column.setdefault(feature.column, int(count))
        named = _list([f"{name} ({count})" for name, count in by_column.items()])
        way_out = "fill them in with --impute median" if what == "missing" else "correct them"
        raise InvalidInputError(
            f"{path} has {sum(by_column.values())} {what} values in {named}; {way_out}, "
            "or leave the columns out with --exclude"
        )


def _medians(rows: Any) -> FloatArray:
    """Return the median of what is there in each column, as many columns at a time as memory allows."""
    n, d = rows.shape
    step = max(1, MEMORY_BYTES // (8 * n))
    medians = np.empty(d)
    for start in range(0, d, step):
        stop = min(start + step, d)
        part = np.concatenate(
            [np.asarray(rows[i : i + 4096], dtype=np.float64)[:, start:stop] for i in range(0, n, 4096)]
        )
        for j in range(start, stop):
            there = part[:, j - start][~np.isnan(part[:, j - start])]
            medians[j] = np.median(there) if len(there) else 0.0
    return medians


def _filled(rows: Any, fill: FloatArray) -> Any:
    if isinstance(rows, FileMatrix):
        rows.fill = fill
        return rows
    return np.where(np.isnan(rows), fill, rows)
