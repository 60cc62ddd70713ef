"""A matrix that stays in a file: rows are read when they are needed, and never mapped into memory."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidInputError

MAX_GAP = 16  # rows; if selected rows lie farther apart on average, reading one by one reads less in total
PIECE_BYTES = 1 << 22  # memory for the rows between selected ones: 4 MB, far above the cost of one read


def take_rows(index: Any, n_rows: int, read: Callable[[IntArray], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the rows that an index selects, as numpy does; `read` takes numbers in increasing order."""
    numbers = _row_numbers(index, n_rows)
    if numbers.ndim == 0:
        row: npt.NDArray[Any] = read(numbers.reshape(1))[0]
        return row
    if (numbers[1:] >= numbers[:-1]).all():
        return read(numbers)
    order = np.argsort(numbers, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return read(numbers[order])[place]


def _row_numbers(index: Any, n_rows: int) -> IntArray:
    """Return the numbers, from 0 on, of the rows that a slice, a mask or numbers of rows select."""
    if isinstance(index, slice):
        return np.arange(*index.indices(n_rows), dtype=np.int64)
    numbers = np.asarray([] if isinstance(index, tuple) or index is None else index)
    if numbers.dtype == np.bool_ and numbers.ndim == 1:
        if len(numbers) != n_rows:
            raise IndexError(f"the mask has {len(numbers)} values, but there are {n_rows} rows")
        return np.flatnonzero(numbers)
    is_empty = isinstance(index, list) and not index
    if numbers.ndim > 1 or not (numbers.dtype.kind in "iu" or is_empty):
        raise IndexError(
            "rows are selected by a number, a slice, a list of numbers or a mask with a value per row, "
            f"got {index!r:.60}; to select columns, index the result"
        )
    beyond = numbers[(numbers < -n_rows) | (numbers >= n_rows)]
    if beyond.size:
        raise IndexError(f"there is no row {beyond.flat[0]}: there are {n_rows} rows, the first is row 0")
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + n_rows, numbers)


class FileMatrix:
    """Rows of numbers in an open file, in C order or column by column; indexed as an array is, by rows only.

    Unlike a memmap, its rows never count as memory of the process, whatever the number of passes, and a file
    that becomes shorter is an error of one sentence. `columns` selects columns of the file, and `fill` has
    one value per column that replaces NaN.

    >>> import tempfile
    >>> file = tempfile.TemporaryFile()
    >>> _ = file.write(np.arange(6.0).tobytes())
    >>> FileMatrix(file, (3, 2))[1:3].tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    >>> FileMatrix(file, (3, 2), by_column=True)[1:3].tolist()
    [[1.0, 4.0], [2.0, 5.0]]
    """

    ndim = 2

    def __init__(
        self,
        file: BinaryIO,
        shape: tuple[int, int],
        dtype: npt.DTypeLike = np.float64,
        offset: int = 0,
        columns: IntArray | None = None,
        by_column: bool = False,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = shape if columns is None else (shape[0], len(columns))
        self.fill: FloatArray | None = None
        self._file, self._offset, self._width, self._columns = file, offset, shape[1], columns
        self._by_column = by_column
        self._lock = threading.Lock()  # threads share the file's position

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes that the rows would take in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(len(self))
            return self._filled(self._read(start, max(start, stop)))
        return self._filled(take_rows(index, len(self), self._gather))

    def _filled(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rows if self.fill is None else np.where(np.isnan(rows), self.fill, rows)

    def filled_with(self, fill: FloatArray) -> FileMatrix:
        """Return the same rows with values in place of NaN; this matrix stays as it is."""
        found = copy.copy(self)  # with the same file, so with the same lock
        found.fill = fill
        return found

    def only(self, columns: IntArray) -> FileMatrix:
        """Return the matrix of some columns; nothing is read."""
        shape = (self.shape[0], self._width)
        return FileMatrix(self._file, shape, self.dtype, self._offset, columns, self._by_column)

    def _read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows from start to stop."""
        if self._by_column:
            strips = np.empty((self.shape[1], stop - start), dtype=self.dtype)
            columns = range(self._width) if self._columns is None else self._columns.tolist()
            for strip, column in zip(strips, columns, strict=True):
                self._read_numbers(column * self.shape[0] + start, strip)
            return strips.T
        rows = np.empty((stop - start, self._width), dtype=self.dtype)
        self._read_numbers(start * self._width, rows)
        return rows if self._columns is None else rows[:, self._columns]

    def _read_numbers(self, start: int, array: npt.NDArray[Any]) -> None:
        """Fill an array with the numbers of the file from `start` on."""
        if not array.size:
            return
        left = array.data.cast("B")
        with self._lock:
            self._file.seek(self._offset + start * self.dtype.itemsize)
            while left.nbytes and (n_bytes := self._file.readinto(left)):  # type: ignore[attr-defined]
                left = left[n_bytes:]
        if left.nbytes:
            raise InvalidInputError("the file of the rows became shorter while it was being read")

    def _gather(self, selected: IntArray) -> npt.NDArray[Any]:
        """Return rows in increasing order; where they lie close together, the rows between are read too."""
        if len(selected) == 0:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        if not self._by_column and selected[-1] - selected[0] > MAX_GAP * len(selected):
            rows = np.empty((len(selected), self.shape[1]), dtype=self.dtype)
            for i, row in enumerate(selected.tolist()):
                rows[i] = self._read(row, row + 1)
            return rows
        step = max(1, PIECE_BYTES // (self._width * self.dtype.itemsize))
        runs = np.split(selected, np.flatnonzero(np.diff(selected // step)) + 1)
        return np.concatenate([self._read(int(run[0]), int(run[-1]) + 1)[run - run[0]] for run in runs])
