"""Arrays in memory as a source of blocks, as files are one; reads are counted."""

from dataclasses import dataclass, field

import numpy as np

from ravine.data.block_engine import BlockEngine
from ravine.data.blocks import make_block
from ravine.data.memory import chunk_rows
from ravine.data.threads import Threads


@dataclass
class ArraySource:
    """An array in blocks; the default bounds are those of the chunks of rows in memory."""

    array: object
    bounds: np.ndarray | None = None
    reads: list = field(default_factory=list)

    def __post_init__(self):
        n = self.array.shape[0]
        if self.bounds is None:
            self.bounds = np.append(np.arange(0, n, chunk_rows(n)), n)
        self.shape, self.lengths = self.array.shape, np.diff(self.bounds)

    def read(self, block):
        self.reads.append(block)
        return self.array[self.bounds[block] : self.bounds[block + 1]]


def engine_of(array, weights=None, bounds=None, n_jobs=1):
    """Return the engine of an array in blocks."""
    return BlockEngine(ArraySource(array, bounds), weights, Threads(n_jobs))


def in_blocks(array, weights=None, size=100):
    """Return the rows of an array in blocks of some size."""
    bounds = np.append(np.arange(0, array.shape[0], size), array.shape[0])
    return engine_of(array, weights, bounds).rows()


def block_of(engine, numbers):
    """Return some rows of an engine as one block."""
    weights = np.ones(len(numbers)) if engine.weights is None else engine.weights[numbers]
    return make_block(engine.source.array[numbers], weights, numbers)
