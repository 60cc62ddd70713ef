"""Parquet, Arrow and Feather, with pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.exceptions import RavineError
from ravine.io.source import BLOCK_ROWS, Block, check_names, plain, saying


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise RavineError('Parquet and Arrow files need pyarrow: pip install "ravine[io]"') from error
    return pyarrow


@dataclass(frozen=True)
class _ArrowTable:
    """Record batches of Parquet or Arrow files."""

    path: Path
    names: list[str]
    numeric: frozenset[str]
    batches: Callable[[list[str]], Iterator[Any]]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        with saying(self.path):
            for batch in self.batches(list(dict.fromkeys([*numbers, *texts]))):
                values = np.empty((batch.num_rows, len(numbers)))
                for j, name in enumerate(numbers):
                    values[:, j] = _floats(batch.column(name))
                yield values, [[plain(value) for value in batch.column(name).to_pylist()] for name in texts]


def _floats(column: Any) -> FloatArray:
    floats: FloatArray = column.cast("float64").to_numpy(zero_copy_only=False)
    return floats


def _schema(path: Path, schema: Any, batches: Callable[[list[str]], Iterator[Any]]) -> _ArrowTable:
    types = _pyarrow().types
    check_names(schema.names, f"{path}: column")
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = frozenset(field.name for field in schema if any(check(field.type) for check in checks))
    return _ArrowTable(path, list(schema.names), numeric, batches)


def parquet(path: Path) -> _ArrowTable:
    """Open a Parquet file."""
    _pyarrow()
    from pyarrow import parquet

    def opened() -> Any:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)

    def batches(names: list[str]) -> Iterator[Any]:
        with opened() as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=names, use_threads=False)

    with opened() as file:
        return _schema(path, file.schema_arrow, batches)


def arrow(path: Path) -> _ArrowTable:
    """Open an Arrow or Feather file."""
    pyarrow = _pyarrow()

    def opened(file: Any) -> Any:
        try:
            return pyarrow.ipc.open_file(file)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            return pyarrow.ipc.open_stream(file)

    def batches(names: list[str]) -> Iterator[Any]:
        with pyarrow.OSFile(str(path)) as file:
            reader = opened(file)
            whole = (
                (reader.get_batch(i) for i in range(reader.num_record_batches))
                if hasattr(reader, "num_record_batches")
                else iter(reader)
            )
            for batch in whole:
                chosen = batch.select(names)
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield chosen.slice(start, BLOCK_ROWS)

    with pyarrow.OSFile(str(path)) as file:
        return _schema(path, opened(file).schema, batches)
