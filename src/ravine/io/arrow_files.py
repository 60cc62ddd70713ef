"""Parquet, Arrow and Feather files; the only module that imports pyarrow."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ravine._validate import listed
from ravine.exceptions import RavineError
from ravine.io.block_file import BlockFile
from ravine.io.source import BLOCK_ROWS, MISSING, Block, Source, TableError, check_names, to_text

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the names under which pandas stores an index without one
ARROW_SUFFIXES = PARQUET_SUFFIXES | {".arrow", ".feather", ".ipc"}


def import_pyarrow() -> Any:
    """Return the package pyarrow with its submodule `parquet`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RavineError('Parquet and Arrow files need pyarrow: pip install "ravine[io]"') from error
    return pyarrow


@dataclass(frozen=True, kw_only=True)
class _ArrowTable(Source):
    """Record batches of a Parquet or Arrow file; `batches` reads the columns of the given names."""

    batches: Callable[[list[str]], Iterator[Any]]

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        for batch in self.batches(list(dict.fromkeys([*numbers, *texts]))):
            yield _block(batch, numbers, texts)


def _block(batch: Any, numbers: Sequence[str], texts: Sequence[str]) -> Block:
    """Return a record batch as numbers and texts."""
    values = np.empty((batch.num_rows, len(numbers)))
    for j, name in enumerate(numbers):
        values[:, j] = batch.column(name).cast("float64").to_numpy(zero_copy_only=False)
    return values, [[to_text(value) for value in batch.column(name).to_pylist()] for name in texts]


def _table(path: Path, schema: Any, batches: Callable[[list[str]], Iterator[Any]]) -> Source:
    types = import_pyarrow().types
    check_names(schema.names, f"{path}: column")
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = frozenset(field.name for field in schema if any(check(field.type) for check in checks))
    dates = frozenset(field.name for field in schema if types.is_temporal(field.type))
    index = frozenset(name for name in schema.names if PANDAS_INDEX.fullmatch(name))
    return _ArrowTable(
        path=path,
        names=list(schema.names),
        numeric=numeric - index,
        dates=dates,
        no_features=index,
        batches=batches,
    )


def open_parquet(path: Path) -> Source:
    """Open a Parquet file."""
    pyarrow = import_pyarrow()

    def open_file() -> Any:
        # without these two settings pyarrow reads whole row groups ahead, and memory grows with the file
        return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)

    def batches(names: list[str]) -> Iterator[Any]:
        with open_file() as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=names, use_threads=False)

    with open_file() as file:
        return _table(path, file.schema_arrow, batches)


def open_arrow(path: Path) -> Source:
    """Open an Arrow or Feather file, in the file format or the stream format."""
    pyarrow = import_pyarrow()

    def open_reader(file: Any) -> Any:
        try:
            return pyarrow.ipc.open_file(file)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            return pyarrow.ipc.open_stream(file)

    def batches(names: list[str]) -> Iterator[Any]:
        with pyarrow.OSFile(str(path)) as file:
            reader = open_reader(file)
            n_batches = getattr(reader, "num_record_batches", None)  # a stream does not know
            for batch in reader if n_batches is None else map(reader.get_batch, range(n_batches)):
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield batch.select(names).slice(start, BLOCK_ROWS)

    with pyarrow.OSFile(str(path)) as file:
        return _table(path, open_reader(file).schema, batches)


def csv_blocks(
    path: Path,
    names: Sequence[str],
    numbers: Sequence[str],
    texts: Sequence[str],
    delimiter: str,
    n_before: int,
) -> Iterator[Block]:
    """Read delimited text without quotes that follows `n_before` lines, as far as pyarrow reads it.

    It ends early, without an error, where a number or a line is not as pyarrow expects it, and yields nothing
    if there is no pyarrow. Numbers have the bits of Python's `float`.
    """
    try:
        from pyarrow import ArrowInvalid, csv, float64, string
    except ImportError:
        return
    read = csv.ReadOptions(use_threads=False, block_size=1 << 20, skip_rows=n_before, column_names=names)
    parse = csv.ParseOptions(delimiter=delimiter, quote_char=False)
    convert = csv.ConvertOptions(
        include_columns=list(dict.fromkeys([*numbers, *texts])),
        column_types={**dict.fromkeys(numbers, float64()), **dict.fromkeys(texts, string())},
        null_values=[form(word) for word in sorted(MISSING) for form in (str, str.upper, str.title)]
        + ["NaN"],
    )
    try:
        with csv.open_csv(path, read, parse, convert) as reader:
            for batch in reader:
                yield _block(batch, numbers, texts)
    except ArrowInvalid:
        return


def write_parquet(file: BinaryIO, kinds: Mapping[str, str], blocks: Iterable[Sequence[Any]]) -> None:
    """Write blocks of columns as Parquet: a "row" is an integer, a "number" a float, all others text."""
    pyarrow = import_pyarrow()
    types = {"row": pyarrow.int64(), "number": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in kinds.items()])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for columns in blocks:
            arrays = [pyarrow.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))


class RowGroups(BlockFile):
    """Row groups of Parquet files, or record batches of Arrow files; a block is one of them or a few."""

    def __init__(self, path: Path, names: Sequence[str], groups: Sequence[Sequence[_RowGroup]], dtype: Any):
        lengths = [sum(group.n_rows for group in block) for block in groups]
        super().__init__(path, names, len(names), lengths, dtype)
        self._groups = groups

    def read(self, block: int) -> npt.NDArray[Any]:
        """Return the rows of one block, column by column in memory; NaN where a value is missing."""
        columns = np.empty((self.shape[1], self.lengths[block]), dtype=self.dtype)
        start = 0
        for group in self._groups[block]:
            table = group.read(list(self.names or ()))
            for j, name in enumerate(self.names or ()):
                column = table.column(name).cast(str(self.dtype).replace("float32", "float"))
                columns[j, start : start + group.n_rows] = column.to_numpy(zero_copy_only=False)
            start += group.n_rows
        return columns.T


@dataclass(frozen=True)
class _RowGroup:
    """One row group or record batch of a file."""

    path: Path
    number: int
    n_rows: int
    is_parquet: bool

    def read(self, names: list[str]) -> Any:
        """Read some columns; the file is opened anew, so that threads share nothing."""
        pyarrow = import_pyarrow()
        if self.is_parquet:
            with pyarrow.parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20) as file:
                return file.read_row_group(self.number, columns=names, use_threads=False).combine_chunks()
        with pyarrow.OSFile(str(self.path)) as file:
            return pyarrow.ipc.open_file(file).get_batch(self.number).select(names)


def open_row_groups(
    path: Path, columns: list[str] | None, block_rows: Callable[[int, int], int]
) -> RowGroups | None:
    """Open a Parquet or Arrow file, or all such files of a directory in the order of their names.

    Small row groups are read together, as many as `block_rows(n_rows, row_bytes)` allows; larger ones are not
    divided. Returns None for the stream format of Arrow, which can only be read from its beginning.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ARROW_SUFFIXES)
        if not files:
            raise TableError(f"{path} has no Parquet or Arrow files ({', '.join(sorted(ARROW_SUFFIXES))})")
    groups: list[_RowGroup] = []
    names, dtype = None, None
    for file in files:
        found = _groups_of(file)
        if found is None:
            return None
        schema, here = found
        own, kind = _columns_of(file, schema, columns if names is None else list(names))
        dtype = kind if dtype is None else np.promote_types(dtype, kind)
        names = own
        groups += here
    n_rows = sum(group.n_rows for group in groups)
    assert names is not None
    assert dtype is not None
    most = block_rows(n_rows, dtype.itemsize * len(names))
    return RowGroups(path, names, _packed(groups, most), dtype)


def _groups_of(path: Path) -> tuple[Any, list[_RowGroup]] | None:
    """Return the schema of a file and its row groups; only its metadata are read."""
    pyarrow = import_pyarrow()
    if path.suffix.lower() in PARQUET_SUFFIXES:
        with pyarrow.parquet.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            return file.schema_arrow, [_RowGroup(path, i, n, True) for i, n in enumerate(sizes)]
    with pyarrow.memory_map(str(path)) as file:
        try:
            reader = pyarrow.ipc.open_file(file)
        except pyarrow.ArrowInvalid:
            return None
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        return reader.schema, [_RowGroup(path, i, n, False) for i, n in enumerate(sizes)]


def _columns_of(path: Path, schema: Any, columns: list[str] | None) -> tuple[list[str], np.dtype[Any]]:
    """Return the columns of numbers that are read, and the type that holds all of them."""
    source = _table(path, schema, lambda names: iter(()))
    left_out = [name for name in source.names if name not in source.numeric]
    if columns is None:
        columns = [name for name in source.names if name in source.numeric]
        if left_out:
            warnings.warn(f"{path}: columns of text are left out ({listed(left_out)})", stacklevel=5)
    for name in columns:
        if name not in source.numeric:
            what = "holds text" if name in left_out else "is not there"
            raise TableError(f"{path}: column {name!r} {what}, where numbers are expected", "text", name)
    if not columns:
        raise TableError(f"{path} has no column of numbers")
    single = all(str(schema.field(name).type) in ("float", "halffloat") for name in columns)
    return columns, np.dtype(np.float32 if single else np.float64)


def _packed(groups: Sequence[_RowGroup], most: int) -> list[list[_RowGroup]]:
    """Put consecutive row groups together, up to a number of rows; empty ones are left out."""
    blocks: list[list[_RowGroup]] = []
    size = most
    for group in groups:
        if group.n_rows == 0:
            continue
        if size + group.n_rows > most:
            blocks.append([])
            size = 0
        blocks[-1].append(group)
        size += group.n_rows
    return blocks
