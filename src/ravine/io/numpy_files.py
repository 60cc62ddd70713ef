"""Arrays of numpy in NPY and NPZ files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ravine.io.on_disk import FileMatrix
from ravine.io.source import BLOCK_ROWS, Block, Source, TableError, to_text


@dataclass(frozen=True, kw_only=True)
class Matrix(Source):
    """A numeric matrix whose columns are named x0, x1, ...; `vectors` are other columns of as many rows."""

    rows: Any
    vectors: Mapping[str, Any]

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        columns = [int(name[1:]) for name in numbers]
        for start in range(0, self.rows.shape[0], BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            rows = self.rows[part]
            found = [self.vectors[n][part] if n in self.vectors else rows[:, int(n[1:])] for n in texts]
            values = np.asarray(rows[:, columns], dtype=np.float64)
            yield values, [[to_text(value) for value in column.tolist()] for column in found]

    def select(self, names: Sequence[str]) -> Any:
        """Return columns of the matrix; a matrix in a file stays there."""
        columns = np.array([int(name[1:]) for name in names], dtype=np.int64)
        if np.array_equal(columns, np.arange(self.rows.shape[1])):
            return self.rows
        return self.rows.only(columns) if isinstance(self.rows, FileMatrix) else self.rows[:, columns]


def name_columns(path: Path, rows: Any, vectors: Mapping[str, Any] | None = None) -> Matrix:
    """Return a matrix of numbers with named columns, and the `vectors` beside it."""
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        found = f"it has shape {rows.shape} and type {rows.dtype}"
        raise TableError(f"{path} has to hold a matrix of numbers, a row per observation; {found}")
    features, vectors = [f"x{j}" for j in range(rows.shape[1])], vectors or {}
    names = [*features, *vectors]
    return Matrix(path=path, names=names, numeric=frozenset(features), rows=rows, vectors=vectors)


def open_npy(path: Path) -> Matrix:
    """Open an NPY file that holds one matrix."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    matrix = name_columns(path, array)
    file = open(path, "rb")  # noqa: SIM115 - stays open as long as the matrix
    by_column = not array.flags.c_contiguous
    rows = FileMatrix(file, array.shape, array.dtype, array.offset, by_column=by_column)
    return replace(matrix, rows=rows)


def open_npz(path: Path) -> Matrix:
    """Open an NPZ file: its only matrix or the one named X, and the vectors of as many rows."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise TableError(f"{path} is not a complete NPZ file of plain arrays: {error}") from error
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" not in matrices and len(matrices) != 1:
        raise TableError(f"{path} has to hold one matrix, or one named X; it holds {', '.join(arrays)}")
    main = "X" if "X" in matrices else matrices[0]
    rows = arrays[main]
    vectors = {name: array for name, array in arrays.items() if array.shape == rows.shape[:1]}
    return name_columns(path, rows, vectors)
