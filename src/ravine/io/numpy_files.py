"""Arrays of numpy: NPY and NPZ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine.exceptions import InvalidInputError
from ravine.io.on_disk import FileMatrix
from ravine.io.source import BLOCK_ROWS, Block, plain


@dataclass(frozen=True)
class Matrix:
    """A numeric matrix whose columns are x0, x1, ...; `beside` are other columns that go with its rows."""

    path: Path
    rows: Any
    beside: dict[str, Any]

    @property
    def features(self) -> list[str]:
        """The columns of the matrix."""
        return [f"x{j}" for j in range(self.rows.shape[1])]

    @property
    def names(self) -> list[str]:
        """Those, and the columns beside."""
        return [*self.features, *self.beside]

    @property
    def numeric(self) -> frozenset[str]:
        """The columns of the matrix."""
        return frozenset(self.features)

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        """Yield slices of the matrix and of what is beside it."""
        place = [int(name[1:]) for name in numbers]
        for start in range(0, self.rows.shape[0], BLOCK_ROWS):
            where = slice(start, start + BLOCK_ROWS)
            rows = self.rows[where]
            columns = [
                self.beside[name][where] if name in self.beside else rows[:, int(name[1:])] for name in texts
            ]
            yield (
                np.asarray(rows[:, place], dtype=np.float64),
                [[plain(value) for value in column.tolist()] for column in columns],
            )


def _check_matrix(shape: Sequence[int], dtype: Any, what: str) -> None:
    if len(shape) != 2 or np.dtype(dtype).kind not in "biuf":
        raise InvalidInputError(
            f"{what} has to be a matrix of numbers, one row an object; it has shape {tuple(shape)} of {dtype}"
        )


def npy(path: Path) -> Matrix:
    """Open an NPY file of one matrix."""
    file: BinaryIO = open(path, "rb")  # noqa: SIM115 - stays open as long as the matrix
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    _check_matrix(shape, dtype, "the array")
    if by_columns and shape[0] > 1 and shape[1] > 1:
        return Matrix(path, np.load(path, mmap_mode="r", allow_pickle=False), {})
    offset = file.tell()
    wanted = offset + shape[0] * shape[1] * dtype.itemsize
    if path.stat().st_size < wanted:
        raise InvalidInputError(f"{path} is cut off: {path.stat().st_size} of {wanted} bytes are there")
    return Matrix(path, FileMatrix(file, (shape[0], shape[1]), dtype, offset), {})


def npz(path: Path) -> Matrix:
    """Open an NPZ file: its one matrix, and the arrays of as many rows beside it."""
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InvalidInputError(f"{path} is not a whole NPZ file of plain arrays: {error}") from error
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" not in matrices and len(matrices) != 1:
        raise InvalidInputError(
            f"{path} has to hold one matrix, or one called X; it holds {', '.join(arrays)}"
        )
    main = "X" if "X" in matrices else matrices[0]
    _check_matrix(arrays[main].shape, arrays[main].dtype, main)
    n = arrays[main].shape[0]
    beside = {name: array for name, array in arrays.items() if array.shape == (n,)}
    return Matrix(path, arrays[main], beside)
