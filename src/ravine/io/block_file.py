"""Rows of a file in blocks, which are read one at a time: data larger than memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import IntArray
from ravine.io.on_disk import FileMatrix, take_rows


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

    def read_into(self, block: int, buffer: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return the rows of one block, perhaps in the memory of a buffer that an earlier call returned."""
        return self.read(block)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """Return some rows, selected as in an array; reads the blocks that hold them."""
        return take_rows(index, len(self), self._gather)

    def _gather(self, numbers: IntArray) -> npt.NDArray[Any]:
        """Return rows by their numbers, which increase."""
        found = [np.empty((0, self.shape[1]), dtype=self.dtype)]
        ends = np.searchsorted(numbers, self.bounds)
        for block in np.flatnonzero(np.diff(ends)).tolist():
            found.append(self.read(block)[numbers[ends[block] : ends[block + 1]] - self.bounds[block]])
        return np.concatenate(found)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{type(self).__name__} {self.path}: {n} rows, {d} columns, {len(self.lengths)} blocks>"


class MatrixBlocks(BlockFile):
    """A matrix whose rows can be sliced, a `FileMatrix` or a memory map, in blocks of equal length."""

    def __init__(self, path: Path, names: Sequence[str] | None, matrix: Any, block_rows: int) -> None:
        n = matrix.shape[0]
        lengths = np.diff(np.append(np.arange(0, n, block_rows), n))
        super().__init__(path, names, matrix.shape[1], lengths.tolist(), matrix.dtype)
        self._matrix = matrix

    def read(self, block: int) -> npt.NDArray[Any]:
        """Return the rows of one block."""
        return np.asarray(self._matrix[self.bounds[block] : self.bounds[block + 1]])

    def read_into(self, block: int, buffer: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return the rows of one block; fresh memory for every block would cost as much as reading it."""
        if not isinstance(self._matrix, FileMatrix):
            return self.read(block)
        return self._matrix.read_into(int(self.bounds[block]), int(self.bounds[block + 1]), buffer)
