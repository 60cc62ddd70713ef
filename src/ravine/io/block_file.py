"""Rows of a file in blocks, which are read one at a time: data larger than memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from ravine._validate import IntArray, check_int
from ravine.data.memory import chunk_rows
from ravine.exceptions import InvalidInputError
from ravine.io.source import BLOCK_ROWS

MEMORY_LIMIT = 1 << 30  # bytes for blocks of rows and what is made of them, unless a user says otherwise
BLOCKS_PER_LIMIT = 8  # a block is an eighth of the limit: two or more are in memory, and what is made of them


def block_bytes(memory_limit: int | None) -> int:
    """Return how many bytes the rows of a block may take; a table that takes no more stays in memory."""
    limit = MEMORY_LIMIT if memory_limit is None else memory_limit
    return check_int("memory_limit", limit, BLOCKS_PER_LIMIT) // BLOCKS_PER_LIMIT


def block_rows(n_rows: int, row_bytes: int, memory_limit: int | None) -> int:
    """Return how many rows a block has, of `n_rows` rows of some bytes each.

    Unless the limit is lower, they are the blocks of an array in memory, for the same sums to the bit.
    """
    return max(1, min(chunk_rows(n_rows), block_bytes(memory_limit) // max(row_bytes, 1)))


class BlockFile(ABC):
    """Rows of numbers in a file; `fit`, `predict`, `transform` and `score` of every estimator take it.

    Only the bounds of the blocks are held in memory. `names` are those of the columns, if they have any.
    """

    ndim = 2

    def __init__(
        self, path: Path, names: Sequence[str] | None, n_columns: int, lengths: Sequence[int], dtype: Any
    ) -> None:
        self.path, self.names = path, None if names is None else tuple(names)
        self.lengths = tuple(int(n) for n in lengths)
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        self.shape = (int(self.bounds[-1]), n_columns)
        self.dtype = np.dtype(dtype)

    @abstractmethod
    def read(self, block: int) -> npt.NDArray[Any]:
        """Return the rows of one block; safe to call from several threads."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """Return some rows, selected as in an array."""
        n = len(self)
        numbers = np.arange(*index.indices(n)) if isinstance(index, slice) else np.arange(n)[index]
        if np.ndim(numbers) > 1:
            raise IndexError("rows are selected by a number, a slice, a list of numbers or a mask")
        distinct, places = np.unique(numbers, return_inverse=True)
        found = self._gather(distinct)
        return found if np.array_equal(distinct, numbers) else found[places.reshape(np.shape(numbers))]

    def _gather(self, numbers: IntArray) -> npt.NDArray[Any]:
        """Return rows by their numbers, which increase; reads the blocks that hold them."""
        found = [np.empty((0, self.shape[1]), dtype=self.dtype)]
        ends = np.searchsorted(numbers, self.bounds)
        for block in np.flatnonzero(np.diff(ends)).tolist():
            found.append(self.read(block)[numbers[ends[block] : ends[block + 1]] - self.bounds[block]])
        return np.concatenate(found)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{type(self).__name__} {self.path}: {n} rows, {d} columns, {len(self.lengths)} blocks>"


class MatrixFile(BlockFile):
    """A matrix of numbers in an open file, in C order or column by column ("F"), in blocks of equal length.

    Unlike those of a memmap, its rows never count as memory of the process, whatever the number of passes,
    and a file that becomes shorter is an error and no signal.

    >>> import tempfile
    >>> file = tempfile.TemporaryFile()
    >>> _ = file.write(np.arange(6.0).tobytes())
    >>> MatrixFile(Path("rows"), file, (3, 2))[1:3].tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    >>> MatrixFile(Path("rows"), file, (3, 2), order="F")[1:3].tolist()
    [[1.0, 4.0], [2.0, 5.0]]
    """

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        shape: tuple[int, int],
        dtype: npt.DTypeLike = np.float64,
        offset: int = 0,
        order: Literal["C", "F"] = "C",
        *,
        columns: IntArray | None = None,
        memory_limit: int | None = None,
    ) -> None:
        n, width = shape
        step = block_rows(n, np.dtype(dtype).itemsize * width, memory_limit)  # whole rows are read
        lengths = np.diff(np.append(np.arange(0, n, step), n))
        super().__init__(path, None, width if columns is None else len(columns), lengths.tolist(), dtype)
        self._file, self._shape, self._offset, self._order = file, shape, offset, order
        self._columns = columns
        self._lock = threading.Lock()  # threads share the file's position

    @property
    def nbytes(self) -> int:
        """The bytes that the rows would take in memory."""
        return int(self.shape[0] * self.shape[1] * self.dtype.itemsize)

    def only(self, columns: IntArray | None, memory_limit: int | None) -> MatrixFile:
        """Return the matrix of some columns; nothing is read."""
        layout = self._shape, self.dtype, self._offset, self._order
        return MatrixFile(self.path, self._file, *layout, columns=columns, memory_limit=memory_limit)

    def read(self, block: int) -> npt.NDArray[Any]:
        """Return the rows of one block."""
        return self._read(self.bounds[block], self.bounds[block + 1])

    def _gather(self, numbers: IntArray) -> npt.NDArray[Any]:
        if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
            return self._read(numbers[0], numbers[-1] + 1)
        found = [np.empty((0, self.shape[1]), dtype=self.dtype)]
        # rows between selected ones are read too, which is faster than to read each by itself
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers // BLOCK_ROWS)) + 1):
            if len(run):
                found.append(self._read(run[0], run[-1] + 1)[run - run[0]])
        return np.concatenate(found)

    def _read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows from start to stop."""
        n, width = self._shape
        if self._order == "C":
            rows = np.empty((stop - start, width), dtype=self.dtype)
            self._fill(rows, start * width)
            return rows if self._columns is None else rows[:, self._columns]
        strips = np.empty((self.shape[1], stop - start), dtype=self.dtype)
        columns = range(width) if self._columns is None else self._columns
        for strip, column in zip(strips, columns, strict=True):
            self._fill(strip, column * n + start)
        return strips.T

    def _fill(self, array: npt.NDArray[Any], start: int) -> None:
        """Fill an array with the numbers of the file from `start` on."""
        with self._lock:
            self._file.seek(self._offset + int(start) * self.dtype.itemsize)
            n_bytes = self._file.readinto(array.data.cast("B")) if array.size else 0  # type: ignore[attr-defined]
        if n_bytes != array.nbytes:
            raise InvalidInputError("the file of the rows became shorter while it was being read")
