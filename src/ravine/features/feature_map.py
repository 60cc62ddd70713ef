"""Rows mapped into the feature space of a kernel: hyperplanes there are curved boundaries between rows.

A map is fitted once, at the root. Every method then works on mapped rows, computed block by block, and does
not know about kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, is_block_source
from ravine.data.any_rows import length, take
from ravine.data.block_engine import BlockSource, rows_of
from ravine.data.memory import MemoryRows
from ravine.data.threads import Threads
from ravine.features.kernel import MAP_ROWS

HELD_BYTES = 1 << 28  # most bytes of mapped rows that are kept in memory; else mapped again in every pass


class FeatureMap(Protocol):
    """Maps rows to points of a Euclidean space, training rows and new ones alike."""

    @property
    def n_components(self) -> int:
        """The dimension of the space."""

    @property
    def nbytes(self) -> int:
        """The memory of the map."""

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """The columns that are constant, and have no effect."""

    def __call__(self, rows: Any) -> FloatArray:
        """Return the points of raw rows."""

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the map as values for JSON and as arrays."""


class MappedRows:
    """An array of mapped rows that are computed when they are indexed."""

    def __init__(self, rows: Any, feature_map: FeatureMap) -> None:
        self.rows, self.map = rows, feature_map
        self.shape = (length(rows), feature_map.n_components)
        self.dtype = np.dtype(np.float64)
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: Any) -> FloatArray:
        return self.map(take(self.rows, where))


def held(points: MappedRows) -> FloatArray:
    """Return mapped rows as an array, computed a few at a time."""
    return np.concatenate([points[a : a + MAP_ROWS] for a in range(0, len(points), MAP_ROWS)])


@dataclass(frozen=True)
class MappedSource:
    """Rows in blocks, mapped whenever a block is read."""

    source: BlockSource
    map: FeatureMap

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of components."""
        return self.source.shape[0], self.map.n_components

    @property
    def lengths(self) -> Sequence[int]:
        """The number of rows of every block."""
        return self.source.lengths

    def read(self, block: int) -> FloatArray:
        """Return the points of one block, made a few at a time."""
        return held(MappedRows(self.source.read(block), self.map))


def mapped_blocks(rows: Any, weights: FloatArray | None, feature_map: FeatureMap, n_jobs: int = 1) -> Any:
    """Return the points of the rows as blocks: held where they are small, else made anew in every pass."""
    if callable(getattr(rows, "mapped", None)):  # a source with an engine of its own
        return rows_of(rows.mapped(feature_map), weights)
    if is_block_source(rows):
        return rows_of(MappedSource(rows, feature_map), weights, n_jobs)
    points: Any = MappedRows(rows, feature_map)
    if points.shape[0] * points.shape[1] * 8 <= HELD_BYTES:
        points = held(points)
    return MemoryRows(points, weights, Threads(n_jobs))
