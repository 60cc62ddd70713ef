"""An engine that reads whole blocks in every pass, as files and clusters of machines do, and counts them."""

from dataclasses import dataclass, field

import numpy as np

from ravine.data import memory
from ravine.data.blocks import DenseBlock
from ravine.data.memory import add_block, fold


@dataclass
class BlockEngine:
    """Rows in blocks, and the leaf of every row; each pass reads every block once."""

    array: np.ndarray
    weights: np.ndarray | None = None
    passes: int = 0
    largest_answer: int = 0
    local: bool = False
    leaf: np.ndarray = field(init=False)
    n_leaves: int = 1
    children: dict = field(default_factory=dict)

    def __post_init__(self):
        self.leaf = np.zeros(len(self.array), dtype=np.int64)

    def below(self, leaves):
        """Return the leaves that some leaves were divided into."""
        return [
            leaf
            for some in leaves
            for leaf in (self.below(self.children[some]) if some in self.children else [some])
        ]

    def root(self):
        return BlockRows(self, frozenset([0]))

    def blocks(self):
        """Yield the bounds of the blocks: those of the chunks of rows in memory."""
        step = max(memory.CHUNK_ROWS, -(-len(self.array) // memory.MAX_CHUNKS))
        for start in range(0, len(self.array), step):
            yield start, min(start + step, len(self.array))

    def pieces(self, start, stop, leaves):
        """Yield the rows of some leaves in one block, in pieces that fit the cache."""
        members = start + np.flatnonzero(np.isin(self.leaf[start:stop], self.below(leaves)))
        step = max(64, memory.BLOCK_BYTES // (8 * self.array.shape[1]))
        for a in range(0, len(members), step):
            some = members[a : a + step]
            weights = np.ones(len(some)) if self.weights is None else self.weights[some]
            yield DenseBlock(np.ascontiguousarray(self.array[some], dtype=np.float64), weights, some)

    def answer(self, asked):
        self.passes += 1
        by_rows = {}
        for i, one in enumerate(asked):
            by_rows.setdefault(one.rows.leaves, []).append(i)
        parts = {i: [] for i in range(len(asked))}
        for start, stop in self.blocks():
            for leaves, members in by_rows.items():
                requests = [asked[i].request for i in members]
                kinds = {}
                for k, request in enumerate(requests):
                    kinds.setdefault(type(request), []).append(k)
                pieces = list(self.pieces(start, stop, leaves))
                if not pieces:
                    continue
                answers = [request.start(self.array.shape[1]) for request in requests]
                for piece in pieces:
                    add_block(piece, kinds, requests, answers)
                for i, found in zip(members, answers, strict=True):
                    parts[i].append(found)
        return [fold(one.request.merge, parts[i]) for i, one in enumerate(asked)]

    def divide(self, pairs):
        self.passes += 1
        leaf, children, divided = self.leaf.copy(), [], []
        for rows, boundary in pairs:
            left, right = self.n_leaves, self.n_leaves + 1
            self.n_leaves += 2
            for start, stop in self.blocks():
                for piece in self.pieces(start, stop, rows.leaves):
                    leaf[piece.numbers] = np.where(boundary.distances(piece) > 0, right, left)
            children.append((left, right))
            divided.append(rows.leaves)
        self.leaf = leaf
        for (parent,), pair in zip(divided, children, strict=True):
            self.children[parent] = pair
        return [tuple(BlockRows(self, frozenset([side])) for side in pair) for pair in children]

    def union(self, parts):
        return BlockRows(self, frozenset().union(*(rows.leaves for rows in parts)))

    def assign(self, parts, labels):
        found = np.zeros(len(self.array), dtype=np.int64)
        for rows, label in zip(parts, labels, strict=True):
            found[np.isin(self.leaf, self.below(rows.leaves))] = label
        return found


class BlockRows:
    """The rows of some leaves of a block engine; divided rows are those of the leaves below."""

    is_whole = False

    def __init__(self, engine, leaves):
        self.engine, self.leaves = engine, leaves
        member = np.isin(engine.leaf, engine.below(leaves))
        weights = np.ones(member.sum()) if engine.weights is None else engine.weights[member]
        self.shape = (int(member.sum()), engine.array.shape[1])
        self.total = float(weights.sum())
        self.n_counted = int((weights > 0).sum())
        self.first = int(np.flatnonzero(member)[weights > 0][0]) if self.n_counted else -1
