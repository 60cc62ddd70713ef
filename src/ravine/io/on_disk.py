"""A matrix that stays in a file: rows are read when they are asked for, and never mapped into memory."""

from __future__ import annotations

import threading
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidInputError

FEW = 16  # where rows lie farther apart than this on average, they are read one by one
PIECE_BYTES = 1 << 22  # what a search for scattered rows holds at a time


class FileMatrix:
    """Rows of numbers in an open file, in C order; slices and lists of rows are read, all else is not.

    Unlike a memmap its rows never count as memory of the process, whatever the number of passes.
    `columns` picks some of the file's columns, and `fill` takes the place of NaN, a value a column.

    >>> import tempfile
    >>> file = tempfile.TemporaryFile()
    >>> _ = file.write(np.arange(6.0).tobytes())
    >>> FileMatrix(file, (3, 2))[1:3].tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """

    ndim = 2

    def __init__(
        self,
        file: BinaryIO,
        shape: tuple[int, int],
        dtype: npt.DTypeLike = np.float64,
        offset: int = 0,
        columns: IntArray | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = shape if columns is None else (shape[0], len(columns))
        self.fill: FloatArray | None = None
        self._file, self._offset, self._width, self._columns = file, offset, shape[1], columns
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: Any) -> npt.NDArray[Any]:
        if isinstance(where, slice):
            start, stop, step = where.indices(len(self))
            rows = self._read(start, max(start, stop))[::step]
        else:
            rows = self._gather(np.asarray(where, dtype=np.int64))
        if self._columns is not None:
            rows = rows[:, self._columns]
        if self.fill is not None:
            rows = np.where(np.isnan(rows), self.fill, rows)
        return rows

    def only(self, columns: IntArray) -> FileMatrix:
        """Return the matrix of some of the columns; nothing is read."""
        return FileMatrix(self._file, (self.shape[0], self._width), self.dtype, self._offset, columns)

    def _read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows start..stop with all of the file's columns."""
        rows = np.empty((stop - start, self._width), dtype=self.dtype)
        with self._lock:
            self._file.seek(self._offset + start * self._width * self.dtype.itemsize)
            got = self._file.readinto(rows.data.cast("B")) if rows.size else 0  # type: ignore[attr-defined]
        if got != rows.nbytes:
            raise InvalidInputError("the file of the rows became shorter while it was read")
        return rows

    def _gather(self, picked: IntArray) -> npt.NDArray[Any]:
        """Return rows in increasing order: those that lie close together by reading all between them."""
        if len(picked) == 0 or picked[-1] - picked[0] > FEW * len(picked):
            rows = np.empty((len(picked), self._width), dtype=self.dtype)
            for i, row in enumerate(picked):
                rows[i] = self._read(int(row), int(row) + 1)
            return rows
        step = max(1, PIECE_BYTES // (self._width * self.dtype.itemsize))
        parts = []
        for start in range(int(picked[0]), int(picked[-1]) + 1, step):
            low, high = np.searchsorted(picked, [start, start + step])
            if low < high:
                stop = int(picked[high - 1]) + 1
                parts.append(self._read(start, stop)[picked[low:high] - start])
        return np.concatenate(parts)
