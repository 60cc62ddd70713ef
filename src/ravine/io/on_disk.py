"""A matrix that stays in a file: rows are read when they are needed, and never mapped into memory."""

from __future__ import annotations

import threading
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidInputError

MAX_GAP = 16  # rows; if selected rows lie farther apart on average, reading one by one reads less in total
PIECE_BYTES = 1 << 22  # memory for the rows between selected ones: 4 MB, far above the cost of one read


class FileMatrix:
    """Rows of numbers in an open file, in C order. Only slices and sorted lists of rows can be read.

    Unlike a memmap, its rows never count as memory of the process, whatever the number of passes.
    `columns` selects columns of the file, and `fill` has one value per column that replaces NaN.

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
        self._lock = threading.Lock()  # threads share the file's position

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes that the rows would take in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._chosen(self._read(start, max(start, stop))[::step])
        return self._chosen(self._gather(np.asarray(index, dtype=np.int64)))

    def read_into(self, start: int, stop: int, buffer: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return the rows from start to stop, in the memory of a buffer that an earlier call returned."""
        return self._chosen(self._read(start, stop, buffer))

    def _chosen(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the chosen columns of rows of the file, with missing values filled in."""
        if self._columns is not None:
            rows = rows[:, self._columns]
        if self.fill is not None:
            rows = np.where(np.isnan(rows), self.fill, rows)
        return rows

    def only(self, columns: IntArray) -> FileMatrix:
        """Return the matrix of some columns; nothing is read."""
        return FileMatrix(self._file, (self.shape[0], self._width), self.dtype, self._offset, columns)

    def _read(self, start: int, stop: int, buffer: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Return the rows from start to stop with all columns of the file."""
        shape = (stop - start, self._width)
        if buffer is not None and buffer.shape == shape and buffer.dtype == self.dtype:
            rows = buffer
        else:
            rows = np.empty(shape, dtype=self.dtype)
        with self._lock:
            self._file.seek(self._offset + start * self._width * self.dtype.itemsize)
            n_bytes = self._file.readinto(rows.data.cast("B")) if rows.size else 0  # type: ignore[attr-defined]
        if n_bytes != rows.nbytes:
            raise InvalidInputError("the file of the rows became shorter while it was being read")
        return rows

    def _gather(self, selected: IntArray) -> npt.NDArray[Any]:
        """Return rows in increasing order; where they lie close together, the rows between are read too."""
        if len(selected) == 0 or selected[-1] - selected[0] > MAX_GAP * len(selected):
            rows = np.empty((len(selected), self._width), dtype=self.dtype)
            for i, row in enumerate(selected.tolist()):
                rows[i] = self._read(row, row + 1)
            return rows
        step = max(1, PIECE_BYTES // (self._width * self.dtype.itemsize))
        runs = np.split(selected, np.flatnonzero(np.diff(selected // step)) + 1)
        return np.concatenate([self._read(int(run[0]), int(run[-1]) + 1)[run - run[0]] for run in runs])
