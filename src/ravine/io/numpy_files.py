"""Matrices of numpy in NPY files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ravine._validate import IntArray
from ravine.io.block_file import MatrixFile
from ravine.io.source import BLOCK_ROWS, Block, Source, TableError, to_text


@dataclass(frozen=True, kw_only=True)
class Matrix(Source):
    """A numeric matrix whose columns are named x0, x1, ...; its rows stay in their file."""

    rows: MatrixFile

    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        columns = self._columns(numbers)
        for start in range(0, len(self.rows), BLOCK_ROWS):
            rows = self.rows[start : start + BLOCK_ROWS]
            fields = [[to_text(value) for value in rows[:, self.place[name]].tolist()] for name in texts]
            yield np.asarray(rows[:, columns], dtype=np.float64), fields

    def select(self, names: Sequence[str], memory_limit: int | None) -> MatrixFile:
        """Return some columns of the matrix, in their file."""
        columns = None if list(names) == self.names else self._columns(names)  # choosing all copies rows
        return self.rows.only(columns, memory_limit)

    def _columns(self, names: Sequence[str]) -> IntArray:
        return np.array([self.place[name] for name in names], dtype=np.int64)


def open_npy(path: Path) -> Matrix:
    """Open an NPY file that holds one matrix."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        found = f"it has shape {array.shape} and type {array.dtype}"
        raise TableError(f"{path} has to hold a matrix of numbers, a row per observation; {found}")
    file = open(path, "rb")  # noqa: SIM115 - stays open as long as the matrix
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    rows = MatrixFile(path, file, array.shape, array.dtype, array.offset, order)
    names = [f"x{j}" for j in range(array.shape[1])]
    return Matrix(path=path, names=names, numeric=frozenset(names), rows=rows)
