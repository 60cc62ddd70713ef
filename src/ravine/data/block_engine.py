"""The engine of rows in blocks that are expensive to read: a pass reads each block once, for all leaves."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.block_pass import (
    BlockData,
    Count,
    Group,
    LeafIds,
    Part,
    answer_block,
    count,
    divide_block,
    map_block,
    places_of,
)
from ravine.data.blocks import Block, checksum
from ravine.data.memory import ReadCount
from ravine.data.query import Answer, AnyArray, Asked, Divider, Fold
from ravine.data.read_ahead import over_blocks
from ravine.data.sample import bound_samples
from ravine.data.threads import ONE_THREAD, Threads
from ravine.exceptions import InvalidInputError, RavineError

Result = TypeVar("Result")


class BlockSource(Protocol):
    """Rows in blocks: files on disk, or anything that can be read block by block, any number of times."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @property
    def lengths(self) -> Sequence[int]:
        """The number of rows of every block."""

    def read(self, block: int) -> Any:
        """Return the rows of one block: a two-dimensional array of numbers, or a CSR matrix."""


class Leaves:
    """Leaf ids: 0 is all rows, and a leaf that was divided stands for the leaves below it.

    `counts` has the rows of every leaf, block by block; it is all that the owner of the blocks has to know of
    them to skip blocks and to say how large a set of rows is. `places` are those of the blocks with rows in
    the tree of `fold`, in which sums over blocks are merged.
    """

    def __init__(self, root: dict[int, Count]) -> None:
        self.counts: dict[int, dict[int, Count]] = {0: root}
        self.places = {block: place for place, block in enumerate(sorted(root))}
        self.children: dict[int, tuple[int, int]] = {}

    def below(self, leaves: Iterable[int]) -> tuple[int, ...]:
        """Return the undivided leaves that some leaves are made of."""
        found, stack = [], list(leaves)
        while stack:
            leaf = stack.pop()
            if leaf in self.children:
                stack += self.children[leaf]
            else:
                found.append(leaf)
        return tuple(sorted(found))

    def blocks(self, leaves: Iterable[int]) -> set[int]:
        """Return the blocks that have rows of some leaves."""
        return {block for leaf in leaves for block in self.counts[leaf]}

    def parts(self, pairs: Sequence[tuple[int, Divider]]) -> list[Part]:
        """Return how leaves are to be divided, with new ids for both sides."""
        first = len(self.counts)
        return [
            Part(self.below([leaf]), boundary, first + 2 * k, first + 2 * k + 1)
            for k, (leaf, boundary) in enumerate(pairs)
        ]

    def divide(self, leaf: int, part: Part, found: dict[int, dict[int, Count]]) -> None:
        """Note that a leaf was divided; `found` has the counts of every block."""
        for side in (part.left, part.right):
            self.counts[side] = {block: counts[side] for block, counts in found.items() if side in counts}
        self.children[leaf] = (part.left, part.right)

    def total(self, counts: dict[int, Count]) -> Count:
        """Return the count of all blocks; weights are added in the tree of `fold`."""
        ordered = [counts[block] for block in sorted(counts)]
        weight = Fold(operator.add)
        for block in self.places:
            weight.add(counts[block].total if block in counts else None)
        firsts = [one.first for one in ordered if one.n_counted]
        return Count(
            sum(one.n_rows for one in ordered),
            weight.result() or 0.0,
            sum(one.n_counted for one in ordered),
            firsts[0] if firsts else -1,
        )


class BlockEngine:
    """Answers requests about rows in blocks, and holds the leaf of every row: 4 bytes per row.

    Blocks without a row of any asked leaf are skipped. `passes` counts passes and `reads`
    the rows that were read. The first read of a block records a checksum, and every later read is
    compared with it: rows that change during a fit are refused.
    """

    local = False
    threads = ONE_THREAD

    def __init__(
        self, source: BlockSource, weights: FloatArray | None = None, threads: Threads = ONE_THREAD
    ) -> None:
        self.source, self.weights, self.threads = source, weights, threads
        self.bounds = np.concatenate([[0], np.cumsum(source.lengths, dtype=np.int64)])
        self.ids: list[LeafIds] = [np.zeros(n, dtype=np.int32) for n in source.lengths]
        self.passes = 0
        self.reads = ReadCount()
        self._checksums: dict[int, int] = {}
        self.leaves = Leaves(self.count((0,)))

    @property
    def values_per_row(self) -> float:
        """How many values a row holds in the mean."""
        return float(self.source.shape[1])

    def rows(self) -> BlockRows:
        """Return all rows."""
        return BlockRows(self, leaves=frozenset([0]))

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer all requests about all sets of rows in one pass."""
        members: dict[Any, list[int]] = {}
        for i, one in enumerate(asked):
            members.setdefault(one.rows.key, []).append(i)  # type: ignore[attr-defined]
        groups = [
            asked[own[0]].rows.group([asked[i].request for i in own])  # type: ignore[attr-defined]
            for own in members.values()
        ]
        blocks = set().union(*(one.rows.blocks for one in asked))  # type: ignore[attr-defined]
        found: dict[int, Answer] = {}
        for own, answers in zip(members.values(), self._sums(sorted(blocks), groups), strict=True):
            for k, i in enumerate(own):
                nothing = asked[i].request.start
                found[i] = nothing(self.source.shape[1]) if answers is None else answers[k]
        return [found[i] for i in range(len(asked))]

    def _sums(self, blocks: Sequence[int], groups: Sequence[Group]) -> Sequence[Sequence[Answer] | None]:
        """Return the answers of all groups, merged over the blocks; None for a group without rows."""
        merged, before = [Fold(group.merge) for group in groups], 0
        for i, parts in self._pass(blocks, lambda i, block: answer_block(block, self.ids[i], groups)):
            for fold, part in zip(merged, parts, strict=True):
                for _ in range(before, self.leaves.places[i]):  # blocks that were not read
                    fold.add(None)
                fold.add(part)
            before = self.leaves.places[i] + 1
        return [fold.result() for fold in merged]

    def divide(self, parts: Sequence[tuple[BlockRows, Divider]]) -> list[tuple[BlockRows, BlockRows]]:
        """Divide leaves, each by a boundary; one pass for all of them."""
        pairs = [(rows.leaf, boundary) for rows, boundary in parts]
        divided = self.leaves.parts(pairs)
        blocks = set().union(*(rows.blocks for rows, _ in parts))
        found = self._relabel(sorted(blocks), divided)
        for (leaf, _), part in zip(pairs, divided, strict=True):
            self.leaves.divide(leaf, part, found)
        return [
            (BlockRows(self, frozenset([part.left])), BlockRows(self, frozenset([part.right])))
            for part in divided
        ]

    def _relabel(self, blocks: Sequence[int], parts: Sequence[Part]) -> dict[int, dict[int, Count]]:
        """Give the rows of divided leaves their new ids; return the counts of every block."""
        found = dict(self._pass(blocks, lambda i, block: divide_block(block, self.ids[i], parts)))
        for i, (ids, _) in found.items():  # all or nothing: an interrupt leaves the ids as they were
            self.ids[i] = ids
        return {i: counts for i, (_, counts) in found.items()}

    def union(self, parts: Sequence[BlockRows]) -> BlockRows:
        """Return the rows of several sets of leaves as one."""
        return BlockRows(self, frozenset().union(*(rows.leaves or () for rows in parts)))

    def assign(self, parts: Sequence[BlockRows], labels: Sequence[int]) -> AnyArray:
        """Return one label per row; nothing is read."""
        label_of = self._label_of(parts, labels)
        return np.concatenate([label_of[ids] for ids in self.ids])

    def _label_of(self, parts: Sequence[BlockRows], labels: Sequence[int]) -> IntArray:
        """Return the label of every leaf."""
        label_of = np.zeros(len(self.leaves.counts), dtype=np.int64)
        for rows, label in zip(parts, labels, strict=True):
            label_of[list(self.leaves.below(rows.leaves or ()))] = label
        return label_of

    def numbers(self, leaves: tuple[int, ...]) -> IntArray:
        """Return the numbers of the rows of some leaves; nothing is read."""
        return np.concatenate(
            [self.bounds[i] + places_of(ids, [leaves])[0] for i, ids in enumerate(self.ids)]
        )

    def map(self, rows: BlockRows, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row, in the order of the rows; one pass."""
        group = rows.group(())

        def work(i: int, block: BlockData) -> list[AnyArray]:
            return map_block(block, self.ids[i], group, function)

        passed = self._pass(rows.blocks, work)
        return np.concatenate([values for _, found in passed for values in found])

    def _pass(
        self, blocks: Iterable[int], work: Callable[[int, BlockData], Result]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the result of every block; an error names its block."""
        self.passes += 1

        def work_on(i: int, block: BlockData) -> Result:
            try:
                return work(i, block)
            except Exception as error:
                error.add_note(f"in {self._name(i)}")
                raise

        for i, result in over_blocks(sorted(blocks), self._read, work_on, self.threads.n):
            self.reads.add(len(self.ids[i]))
            yield i, result

    def _read(self, i: int) -> BlockData:
        """Read one block and compare it with what it was before."""
        try:
            values = self.source.read(i)
        except Exception as error:
            raise RavineError(f"{self._name(i)} cannot be read: {error}") from error
        if values.shape != (len(self.ids[i]), self.source.shape[1]):
            raise InvalidInputError(
                f"{self._name(i)} has the shape {values.shape}, expected "
                f"{(len(self.ids[i]), self.source.shape[1])}; do not change the data during a fit"
            )
        found = checksum(values)
        if self._checksums.setdefault(i, found) != found:
            raise InvalidInputError(
                f"{self._name(i)} changed since it was read before; do not change the data during a fit"
            )
        start, stop = self.bounds[i], self.bounds[i + 1]
        weights = None if self.weights is None else self.weights[start:stop]
        return BlockData(values, weights, int(start))

    def checksums(self) -> list[int]:
        """Return the checksum of every block, once all were read."""
        return [self._checksums[i] for i in sorted(self._checksums)]

    def _name(self, i: int) -> str:
        path = getattr(self.source, "path", None)
        where = "" if path is None else f" of {path}"
        return f"block {i}{where} (rows {self.bounds[i]} to {self.bounds[i + 1] - 1})"

    def count(self, leaves: tuple[int, ...]) -> dict[int, Count]:
        """Count the rows of a set of leaves in every block; nothing is read."""
        found: dict[int, Count] = {}
        for i, ids in enumerate(self.ids):
            start, stop = int(self.bounds[i]), int(self.bounds[i + 1])
            weights = None if self.weights is None else self.weights[start:stop]
            for one in count(ids, weights, start, [leaves]).values():
                found[i] = one
        return found


@dataclass(eq=False)
class BlockRows:
    """Some rows of a block engine: those of some leaves, or `picked` by their numbers in increasing order.

    Leaves that were divided since are those below them.
    """

    engine: BlockEngine
    leaves: frozenset[int] | None = None
    picked: IntArray | None = None

    is_whole = False

    def __post_init__(self) -> None:
        own = self._count()
        self.shape = (own.n_rows, self.engine.source.shape[1])
        self.total, self.n_counted, self.first = own.total, own.n_counted, own.first

    def _count(self) -> Count:
        if self.picked is not None:
            return _count_picked(self.picked, self.engine)
        leaves = self.engine.leaves
        assert self.leaves is not None
        if len(self.leaves) == 1:
            return leaves.total(leaves.counts[min(self.leaves)])
        return leaves.total(self.engine.count(leaves.below(self.leaves)))

    @property
    def threads(self) -> Threads:
        """The threads of the engine."""
        return self.engine.threads

    @property
    def leaf(self) -> int:
        """The only leaf: what can be divided."""
        assert self.leaves is not None
        (leaf,) = self.leaves
        return leaf

    @property
    def key(self) -> Any:
        """Identifies this set of rows."""
        return self.leaves if self.picked is None else id(self)

    @property
    def weights(self) -> FloatArray | None:
        """The weights of all rows of the data; None where each counts once."""
        return self.engine.weights

    @property
    def reads(self) -> ReadCount:
        """How many rows were read so far."""
        return self.engine.reads

    @property
    def values_per_row(self) -> float:
        """How many values a row of the data holds in the mean."""
        return self.engine.values_per_row

    @property
    def blocks(self) -> set[int]:
        """The blocks that have some of these rows."""
        if self.picked is not None:
            return set(np.unique(np.searchsorted(self.engine.bounds, self.picked, side="right") - 1).tolist())
        return self.engine.leaves.blocks(self.engine.leaves.below(self.leaves or ()))

    def group(self, requests: Sequence[Any]) -> Group:
        """Return these rows with requests about them, as blocks take them."""
        given = bound_samples(requests, self.n_counted)
        if self.picked is not None:
            return Group(None, self.picked, tuple(given))
        return Group(self.engine.leaves.below(self.leaves or ()), None, tuple(given))

    @cached_property
    def numbers(self) -> IntArray:
        """The numbers of these rows in the data; 8 bytes per row."""
        if self.picked is not None:
            return self.picked
        return self.engine.numbers(self.engine.leaves.below(self.leaves or ()))

    def select(self, places: IntArray) -> BlockRows:
        """Return some of these rows (places in increasing order) as a set of their own."""
        return BlockRows(self.engine, picked=self.numbers[places])

    def map(self, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row, in the order of the rows; one pass."""
        return self.engine.map(self, function)


def _count_picked(picked: IntArray, engine: BlockEngine) -> Count:
    if engine.weights is None:
        return Count(len(picked), float(len(picked)), len(picked), int(picked[0]) if len(picked) else -1)
    ends = np.searchsorted(picked, engine.bounds)
    counts = {}
    for i in np.flatnonzero(np.diff(ends)):
        numbers = picked[ends[i] : ends[i + 1]]
        own = engine.weights[numbers]
        first = int(numbers[own > 0][0]) if (own > 0).any() else -1
        counts[int(i)] = Count(len(own), float(own.sum()), int((own > 0).sum()), first)
    return engine.leaves.total(counts)
