"""Parquet, Arrow and Feather files; the only module that imports pyarrow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from ravine._validate import listed
from ravine.exceptions import RavineError
from ravine.io.block_file import BlockFile, block_rows
from ravine.io.source import BLOCK_ROWS, Block, Source, TableError, check_names, to_text


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
            values = np.empty((batch.num_rows, len(numbers)))
            for j, name in enumerate(numbers):
                values[:, j] = batch.column(name).cast("float64").to_numpy(zero_copy_only=False)
            yield values, [list(map(to_text, batch.column(name).to_pylist())) for name in texts]


def _table(path: Path, schema: Any, batches: Callable[[list[str]], Iterator[Any]]) -> Source:
    types = import_pyarrow().types
    check_names(path, schema.names)
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = frozenset(field.name for field in schema if any(check(field.type) for check in checks))
    # so pandas stores an index without a name
    index = frozenset(name for name in schema.names if name.startswith("__index_level_"))
    return _ArrowTable(
        path=path, names=list(schema.names), numeric=numeric - index, unnamed=index, batches=batches
    )


def _parquet_file(path: Path) -> Any:
    # without these two settings pyarrow reads whole row groups ahead, and memory grows with the file
    return import_pyarrow().parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)


def open_parquet(path: Path) -> Source:
    """Open a Parquet file."""

    def batches(names: list[str]) -> Iterator[Any]:
        with _parquet_file(path) as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=names, use_threads=False)

    with _parquet_file(path) as file:
        return _table(path, file.schema_arrow, batches)


def open_arrow(path: Path) -> Source:
    """Open an Arrow or Feather file; not the stream format, which has no beginning to be known by."""
    pyarrow = import_pyarrow()

    def batches(names: list[str]) -> Iterator[Any]:
        with pyarrow.OSFile(str(path)) as file:
            reader = pyarrow.ipc.open_file(file)
            for batch in map(reader.get_batch, range(reader.num_record_batches)):
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield batch.select(names).slice(start, BLOCK_ROWS)

    with pyarrow.OSFile(str(path)) as file:
        return _table(path, pyarrow.ipc.open_file(file).schema, batches)


def write_parquet(file: BinaryIO, kinds: Mapping[str, str], blocks: Iterable[Sequence[Any]]) -> None:
    """Write blocks of columns as Parquet: a "row" is an integer, a "number" a float, all others text."""
    pyarrow = import_pyarrow()
    types = {"row": pyarrow.int64(), "number": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in kinds.items()])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for columns in blocks:
            arrays = [pyarrow.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))


class _RowGroup(NamedTuple):
    """One row group of a file."""

    path: Path
    number: int
    n_rows: int


class RowGroups(BlockFile):
    """Row groups of Parquet files; a block is one of them or a few."""

    def __init__(self, path: Path, names: Sequence[str], groups: Sequence[Sequence[_RowGroup]], dtype: Any):
        lengths = [sum(group.n_rows for group in block) for block in groups]
        super().__init__(path, names, len(names), lengths, dtype)
        self._groups = groups

    def read(self, block: int) -> npt.NDArray[Any]:
        """Return the rows of one block, column by column in memory; NaN where a value is missing."""
        names = list(self.names or ())
        columns = np.empty((len(names), self.lengths[block]), dtype=self.dtype)
        start = 0
        for path, number, n_rows in self._groups[block]:
            with _parquet_file(path) as file:  # opened anew, so that threads share nothing
                table = file.read_row_group(number, columns=names, use_threads=False).combine_chunks()
            for j, name in enumerate(names):
                column = table.column(name).cast(str(self.dtype).replace("float32", "float"))
                columns[j, start : start + n_rows] = column.to_numpy(zero_copy_only=False)
            start += n_rows
        return columns.T


def open_row_groups(path: Path, columns: list[str] | None, memory_limit: int | None) -> RowGroups:
    """Open a Parquet file, or all those of a directory in the order of their names.

    Small row groups are read together, as many as a block may have; larger ones are not divided.
    """
    files = [path]
    if path.is_dir():
        files = sorted(path.rglob("*.parquet"))
        if not files:
            raise TableError(f"{path} has no Parquet files (*.parquet)")
    groups: list[_RowGroup] = []
    dtype = np.dtype(np.float32)
    for one in files:
        with _parquet_file(one) as file:
            schema = file.schema_arrow
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        columns, kind = _choose_columns(one, schema, columns)  # those of the first file, of all files
        dtype = np.promote_types(dtype, kind)
        groups += [_RowGroup(one, i, n) for i, n in enumerate(sizes)]
    names = columns or []
    n_rows = sum(group.n_rows for group in groups)
    most = block_rows(n_rows, dtype.itemsize * len(names), memory_limit)
    return RowGroups(path, names, _pack_groups(groups, most), dtype)


def _choose_columns(path: Path, schema: Any, columns: list[str] | None) -> tuple[list[str], np.dtype[Any]]:
    """Return the columns of numbers that are read, and the type that holds all of them."""
    source = _table(path, schema, lambda names: iter(()))
    left_out = [name for name in source.names if name not in source.numeric]
    if columns is None:
        columns = [name for name in source.names if name in source.numeric]
        if left_out:
            warnings.warn(f"{path}: columns of text are left out ({listed(left_out)})", stacklevel=4)
    for name in columns:
        if name not in source.numeric:
            what = "holds text" if name in left_out else "is not there"
            raise TableError(f"{path}: column {name!r} {what}, where numbers are expected", "text", name)
    if not columns:
        raise TableError(f"{path} has no column of numbers")
    single = all(str(schema.field(name).type) in ("float", "halffloat") for name in columns)
    return columns, np.dtype(np.float32 if single else np.float64)


def _pack_groups(groups: Sequence[_RowGroup], most: int) -> list[list[_RowGroup]]:
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
