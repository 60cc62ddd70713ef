"""A tiny engine for tests: it reads blocks and serves all sets of rows in one pass, as one for files does."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from ravine.data.blocks import DenseBlock, SparseBlock
from ravine.data.memory import add_block, fold


@dataclass
class BlockEngine:
    """Holds an array in blocks that end at `bounds`; `passes` counts how often they were read."""

    array: object
    weights: np.ndarray
    bounds: tuple[int, ...]
    local: bool = False
    passes: int = 0

    def rows(self, numbers=None):
        return BlockRows(self, np.arange(self.array.shape[0]) if numbers is None else numbers)

    def answer(self, asked):
        self.passes += 1
        sets = {id(one.rows): one.rows for one in asked}
        parts = [[] for _ in asked]
        for start, stop in zip((0, *self.bounds[:-1]), self.bounds, strict=True):
            for key, rows in sets.items():
                here = rows.numbers[(rows.numbers >= start) & (rows.numbers < stop)]
                own = [i for i, one in enumerate(asked) if id(one.rows) == key]
                requests = [asked[i].request for i in own]
                answers = [request.start(self.array.shape[1]) for request in requests]
                kinds = {}
                for i, request in enumerate(requests):
                    kinds.setdefault(type(request), []).append(i)
                add_block(self.block(here), kinds, requests, answers)
                for i, answer in zip(own, answers, strict=True):
                    parts[i].append(answer)
        return [fold(one.request.merge, found) for one, found in zip(asked, parts, strict=True)]

    def block(self, numbers):
        values, weights = self.array[numbers], self.weights[numbers]
        if sparse.issparse(values):
            return SparseBlock(sparse.csr_array(values), weights, numbers)
        return DenseBlock(np.ascontiguousarray(values, dtype=float), weights, numbers)


@dataclass
class BlockRows:
    """Some rows of a `BlockEngine`."""

    engine: BlockEngine
    numbers: np.ndarray
    is_whole: bool = field(default=False, init=False)

    def __post_init__(self):
        self.shape = (len(self.numbers), self.engine.array.shape[1])
        self.total = float(self.engine.weights[self.numbers].sum())

    @cached_property
    def counted(self):
        return self.numbers[self.engine.weights[self.numbers] > 0]

    @property
    def n_counted(self):
        return len(self.counted)

    @property
    def first(self):
        return int(self.counted[0])


def in_blocks(array, weights=None, size=100, **options):
    """Return the rows of an array in blocks of some size."""
    n = array.shape[0]
    weights = np.ones(n) if weights is None else weights
    bounds = tuple(np.append(np.arange(size, n, size), n))
    return BlockEngine(array, weights, bounds, **options).rows()
