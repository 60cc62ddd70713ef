"""Rows mapped into the feature space of a kernel: hyperplanes there are curved boundaries between rows.

A map is fitted once, at the root. Every method then works on mapped rows, computed block by block, and does
not know about kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, is_block_source
from ravine.data.block_engine import BlockSource
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.query import RowSet, run
from ravine.data.rows import length, rows_of, take
from ravine.data.standardization import Standardization
from ravine.data.threads import Threads

MAP_ROWS = 1024  # rows that are mapped at a time, which bounds the memory of the kernel matrix
HELD_BYTES = 1 << 28  # most bytes of mapped rows that are kept in memory; else mapped again in every pass


class FeatureMap(ABC):
    """Maps rows to points of a Euclidean space, training rows and new ones alike.

    `landmarks` are the rows that represent all rows; `coefficients` (landmarks, components) turn what the map
    knows of a row and the landmarks into its components.
    """

    landmarks: Any
    coefficients: FloatArray

    @property
    def n_components(self) -> int:
        """The dimension of the space."""
        return int(self.coefficients.shape[1])

    @property
    def nbytes(self) -> int:
        """The memory of the map (0 for landmarks that are not numbers)."""
        return sum(int(getattr(array, "nbytes", 0)) for array in self.arrays().values())

    @property
    @abstractmethod
    def constant(self) -> npt.NDArray[np.bool_]:
        """The columns that are constant, and have no effect; empty if rows are not vectors."""

    @abstractmethod
    def __call__(self, rows: Any) -> FloatArray:
        """Return the points of raw rows."""

    def map_all(self, rows: Any) -> FloatArray:
        """Return the points of any number of raw rows, computed a few at a time."""
        pieces = [self(take(rows, slice(a, a + MAP_ROWS))) for a in range(0, length(rows), MAP_ROWS)]
        return np.concatenate([np.empty((0, self.n_components)), *pieces])

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the map as a model file stores it: values for JSON, and arrays."""
        return self.facts(), self.arrays()

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what a model file says of the map in JSON."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Return the arrays of the map, by their names in a model file."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({length(self.landmarks)} landmarks, {self.n_components} components, "
            f"{self.nbytes / 1e6:.2f} MB)"
        )


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
        """Return the points of one block."""
        return self.map.map_all(self.source.read(block))


def make_mapped_rows(
    rows: Any, weights: FloatArray | None, feature_map: FeatureMap, n_jobs: int = 1
) -> RowSet:
    """Return the points of the rows as blocks: held where they are small, else made anew in every pass."""
    if callable(getattr(rows, "mapped", None)):  # a source with an engine of its own
        return rows_of(rows.mapped(feature_map), weights)
    if is_block_source(rows):
        return rows_of(MappedSource(rows, feature_map), weights, n_jobs)
    points: Any = MappedRows(rows, feature_map)
    if points.shape[0] * points.shape[1] * points.dtype.itemsize <= HELD_BYTES:
        points = feature_map.map_all(rows)
    return MemoryRows(points, weights, Threads(n_jobs))


def measure_columns(X: Any, weights: FloatArray | None, standardize: bool) -> Standardization:
    """Return the standardization of the weighted rows, or one that only leaves constant columns out.

    Raises on NaN and infinity.
    """
    found = run(measure(Node(rows_of(X, weights)))).standardization
    if standardize:
        return found
    return Standardization.of_scales(np.zeros(len(found.mean)), np.where(found.constant, 0.0, 1.0))


def choose_rows(
    n_rows: int, weights: FloatArray | None, wanted: int | None, rng: np.random.Generator
) -> IntArray:
    """Return the numbers of random rows of positive weight: so many, or all (None)."""
    counted = np.arange(n_rows) if weights is None else np.flatnonzero(weights > 0)
    if wanted is None or wanted >= len(counted):
        return counted
    return np.sort(rng.choice(counted, wanted, replace=False))


def eigh_descending(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues in descending order, with their eigenvectors."""
    values, vectors = np.linalg.eigh(symmetric)
    return values[::-1], vectors[:, ::-1]


def column_signs(columns: FloatArray) -> FloatArray:
    """Return the sign of the entry of largest absolute value of every column, which fixes its orientation."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
