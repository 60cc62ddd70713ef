"""Parquet, Arrow and Feather files; the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine._validate import IntArray
from ravine.exceptions import RavineError
from ravine.io.source import BLOCK_ROWS, Block, Source, check_names, to_text


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
            yield values, [[to_text(value) for value in batch.column(name).to_pylist()] for name in texts]


def _table(path: Path, schema: Any, batches: Callable[[list[str]], Iterator[Any]]) -> Source:
    types = import_pyarrow().types
    check_names(schema.names, f"{path}: column")
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = frozenset(field.name for field in schema if any(check(field.type) for check in checks))
    return _ArrowTable(path=path, names=list(schema.names), numeric=numeric, batches=batches)


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


def write_parquet(file: BinaryIO, id_name: str | None, blocks: Iterable[tuple[list[str], IntArray]]) -> None:
    """Write ids and clusters as Parquet; without an id column, the numbers of the rows."""
    pyarrow = import_pyarrow()
    kind = pyarrow.int64() if id_name is None else pyarrow.string()
    schema = pyarrow.schema([(id_name or "row", kind), ("cluster", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for ids, clusters in blocks:
            column = pyarrow.array(ids if id_name else list(map(int, ids)), kind)
            writer.write_batch(pyarrow.record_batch([column, clusters], schema=schema))
