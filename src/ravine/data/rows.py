"""What a user gives as rows (arrays, matrices, data frames, lists, files), and rows with their engine."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray, check_standardize, is_block_source
from ravine.data.block_engine import BlockEngine, BlockRows
from ravine.data.memory import MemoryRows
from ravine.data.query import RowSet
from ravine.data.threads import Threads


def length(rows: Any) -> int:
    """Return the number of rows of an array, a matrix, a data frame or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take(rows: Any, where: slice | IntArray) -> Any:
    """Return some of the rows of an array, a matrix, a data frame or a list."""
    return rows.iloc[where] if hasattr(rows, "iloc") else rows[where]


def weights_of(weights: FloatArray | None, rows: IntArray) -> FloatArray:
    """Return the weights of some rows; None means that all weights are 1."""
    return np.ones(len(rows)) if weights is None else weights[rows]


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame; dask is not imported for it."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def scales_columns(standardize: Any, rows: Any) -> bool:
    """Return whether columns are scaled to unit variance; with "auto", those of a sparse matrix are not.

    >>> scales_columns("auto", np.eye(2)), scales_columns("auto", sparse.eye_array(2))
    (True, False)
    """
    found = check_standardize(standardize)
    if found != "auto":
        return bool(found)
    return not (sparse.issparse(rows) or (is_block_source(rows) and getattr(rows, "is_sparse", False)))


def rows_of(X: Any, weights: FloatArray | None, n_jobs: int = 1) -> RowSet:
    """Return rows with the engine that suits them: `BlockRows` of a block source, or else `MemoryRows`."""
    if callable(getattr(X, "rows_in_place", None)):  # the source has an engine of its own
        return cast("RowSet", X.rows_in_place(weights))
    if is_block_source(X):
        return BlockEngine(X, weights, Threads(n_jobs)).rows()
    return MemoryRows(X, weights, Threads(n_jobs))


def with_weights(rows: MemoryRows | BlockRows, weights: FloatArray | None) -> RowSet:
    """Return rows of an engine with other weights, one for each of them."""
    everything = rows.array if isinstance(rows, MemoryRows) else rows.engine.source
    whole = np.zeros(everything.shape[0])
    whole[rows.numbers] = weights
    if isinstance(rows, MemoryRows):
        return replace(rows, weights=whole)
    found = rows_of(everything, whole, rows.threads.n)
    return found if rows.shape == found.shape else found.select(rows.numbers)


@dataclass(frozen=True)
class SomeRows:
    """Some rows of a block source as a source of their own, given by their numbers in increasing order."""

    source: Any
    picked: IntArray

    def __post_init__(self) -> None:
        bounds = np.concatenate([[0], np.cumsum(self.source.lengths, dtype=np.int64)])
        ends = np.searchsorted(self.picked, bounds)
        parts = itertools.pairwise(ends)
        places = [self.picked[a:b] - start for (a, b), start in zip(parts, bounds[:-1], strict=True)]
        filled = [i for i, some in enumerate(places) if len(some)]
        object.__setattr__(self, "_parts", [(i, places[i]) for i in filled])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return len(self.picked), self.source.shape[1]

    @property
    def lengths(self) -> Sequence[int]:
        """The number of rows of every block that has some."""
        return [len(places) for _, places in self._parts]  # type: ignore[attr-defined]

    def read(self, block: int) -> Any:
        """Return the rows of one block."""
        number, places = self._parts[block]  # type: ignore[attr-defined]
        return self.source.read(number)[places]


def rows_among(rows: Any, members: IntArray) -> Any:
    """Return some rows of an engine for another fit: an array, or a source of blocks that is read again."""
    if isinstance(rows, MemoryRows):
        return rows.array[members]
    source = rows.engine.source
    return source.among(members) if hasattr(source, "among") else SomeRows(source, members)


def fingerprint(rows: Any) -> int:
    """Return a checksum of all rows of some data: of arrays, or of blocks read before."""
    found = rows.checksums() if isinstance(rows, MemoryRows) else rows.engine.checksums()
    return zlib.crc32(np.array([*rows.shape, *found], dtype=np.uint64).tobytes())
