"""Rows whose projections are computed by numpy alone: `ravine predict` starts without numba."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows, cache_rows


@dataclass(frozen=True)
class PlainBlock:
    """The part of a dense block that a tree needs: projections with the bits of the compiled loops."""

    values: FloatArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def project(self, pivot: FloatArray, directions: FloatArray) -> FloatArray:
        """Return directions . (x - pivot) for every row x; shape (directions, rows)."""
        return np.stack([centered_dots(self.values, pivot, direction) for direction in directions])

    def take(self, picked: IntArray) -> PlainBlock:
        """Return some of the rows."""
        return PlainBlock(self.values[picked], self.weights[picked])

    def dense(self) -> FloatArray:
        """Return the rows."""
        return self.values


def centered_dots(X: FloatArray, pivot: FloatArray, direction: FloatArray) -> FloatArray:
    """Return direction . (x - pivot) for every row x, added in the order of `kernels.centered_dot`."""
    d = X.shape[1]
    whole = d - d % 4
    sums = np.zeros((4, len(X)))
    with np.errstate(over="ignore", invalid="ignore"):  # a row that is not finite is refused later
        for j in range(d):
            sums[j % 4 if j < whole else 0] += (X[:, j] - pivot[j]) * direction[j]
        return np.asarray((sums[0] + sums[1]) + (sums[2] + sums[3]))


@dataclass
class PlainRows(MemoryRows):
    """Dense rows in memory or in a file, in blocks of `PlainBlock`."""

    def _blocks(self, start: int, stop: int) -> Iterator[Block]:
        step = cache_rows(self.shape[1], False)
        for a in range(start, stop, step):
            values = np.ascontiguousarray(self.array[a : min(a + step, stop)], dtype=np.float64)
            # only `map` is called, with functions that need no sums
            yield PlainBlock(values, np.ones(len(values)))  # type: ignore[misc]
