"""Open a file of rows that are read block by block, without loading it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ravine._validate import check_int
from ravine.data.memory import chunk_rows
from ravine.exceptions import InvalidInputError
from ravine.io.arrow_files import ARROW_SUFFIXES, open_row_groups
from ravine.io.block_file import BlockFile, MatrixBlocks
from ravine.io.files import open_source
from ravine.io.numpy_files import Matrix, name_columns
from ravine.io.source import Source, translate_read_errors
from ravine.io.table import MEMORY_BYTES, Choice, read_table

BLOCKS_PER_LIMIT = 8  # a block is an eighth of the limit: two or more are in memory, and what is made of them


def open(
    path: str | os.PathLike[str] | np.memmap[Any, Any],
    columns: Sequence[str | int] | None = None,
    memory_limit: int | None = None,
) -> BlockFile:
    """Open a file of rows for `fit`, `predict`, `transform` and `score`, without loading it.

    Parameters
    ----------
    path : str or path, or a numpy.memmap
        An NPY file, a Parquet or Arrow file, or a directory of such files, which are read where they are,
        block by block; row groups and record batches are not divided. Other tables (CSV, TSV, NPZ) are
        converted once, to an unnamed temporary file if they are large.
    columns : list of str or int, optional
        The names of the columns to read, or their numbers in an NPY file; all columns of numbers by default.
    memory_limit : int, optional
        Bytes that a fit may use for blocks and what is computed from them, 1 GiB by default. A block takes at
        most an eighth of it, and has at most a sixteenth of all rows; with blocks of that many rows, the
        result is identical to the bit to that of the array in memory.

    Examples
    --------
    >>> import numpy as np, ravine, tempfile
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)) + 8 * rng.integers(2, size=(1000, 1))
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file.name, X)
    ...     model = ravine.MinimumDensity(2).fit(ravine.open(file.name))
    >>> bool((model.labels_ == ravine.MinimumDensity(2).fit(X).labels_).all())
    True
    """
    block_rows = _block_rows(memory_limit)
    names = None if columns is None else list(map(str, columns))
    if isinstance(path, np.memmap):
        return _open_table(name_columns(Path(path.filename or "memmap"), path), names, block_rows)
    path = Path(path)
    if path.is_dir() or path.suffix.lower() in ARROW_SUFFIXES:
        with translate_read_errors(path):
            found = open_row_groups(path, names, block_rows)
        if found is not None:
            return found
    return _open_table(open_source(path), names, block_rows)


def matrix_blocks(
    path: Path, names: Sequence[str] | None, rows: Any, memory_limit: int | None = None
) -> BlockFile:
    """Return a matrix whose rows can be sliced as rows in blocks, as `open` reads a file."""
    step = _block_rows(memory_limit)(rows.shape[0], rows.dtype.itemsize * rows.shape[1])
    return MatrixBlocks(path, names, rows, step)


def _block_rows(memory_limit: int | None) -> Callable[[int, int], int]:
    """Return how many rows a block has, of n rows of some bytes each."""
    if memory_limit is None:
        most = MEMORY_BYTES
    else:
        most = check_int("memory_limit", memory_limit, BLOCKS_PER_LIMIT) // BLOCKS_PER_LIMIT
    return lambda n, row_bytes: max(1, min(chunk_rows(n), most // max(row_bytes, 1)))


def _open_table(
    source: Source, columns: list[str] | None, block_rows: Callable[[int, int], int]
) -> BlockFile:
    """Return the rows of a table in blocks; a matrix stays in its file, other tables are converted."""
    if isinstance(source, Matrix):
        n, d = source.rows.shape
        step = block_rows(n, source.rows.dtype.itemsize * d)  # whole rows are read, whatever the columns
        _check_columns(source, columns or [])
        rows = source.rows if columns is None else source.select([f"x{c.removeprefix('x')}" for c in columns])
        return MatrixBlocks(source.path, None, rows, step)
    table = read_table(source, Choice(columns=columns))
    for note, _ in table.notes:
        warnings.warn(f"{source.path}: {note}", UserWarning, stacklevel=3)
    n, d = table.values.shape
    return MatrixBlocks(source.path, table.names, table.values, block_rows(n, 8 * d))


def _check_columns(source: Matrix, columns: list[str]) -> None:
    """Refuse columns that a matrix does not have; 3 and x3 are the same."""
    n = source.rows.shape[1]
    for column in columns:
        number = column.removeprefix("x")
        if not number.isdecimal() or int(number) >= n:
            raise InvalidInputError(f"{source.path} has no column {column}; its columns are 0 to {n - 1}")
