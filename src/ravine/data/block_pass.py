"""What one pass does with one block: cut it into the rows of every set, answer their requests, divide them.

These are functions of one block and nothing else, so that they run the same in a thread, in another process
or on another machine. Rows of a set are cut into pieces as `MemoryRows` does, so that the same block bounds
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.loops import sort_places
from ravine.data.memory import add_block, cache_rows, make_block, rows_at
from ravine.data.query import Answer, AnyArray, Divider, Request, fold, places_by
from ravine.data.sample import Sample
from ravine.data.scratch import scratch

LeafIds = npt.NDArray[np.int32]


@dataclass(frozen=True)
class BlockData:
    """The rows of one block: dense or CSR, their weights (None: 1 each), and the number of the first."""

    values: Any
    weights: FloatArray | None
    start: int

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def step(self) -> int:
        """The rows of a piece."""
        return cache_rows(self.values.shape[1], sparse.issparse(self.values))

    def pieces(self, places: IntArray, *, reuse: bool = False) -> Iterator[tuple[IntArray | slice, Block]]:
        """Yield the rows at some places in pieces that fit a processor's cache, with their numbers.

        With `reuse`, pieces of dense rows share their memory: each is valid until the next one.
        """
        everything = len(places) == len(self)
        for a in range(0, len(places), self.step):
            some = places[a : a + self.step]
            where: IntArray | slice = slice(a, a + len(some)) if everything else some
            weights = np.ones(len(some)) if self.weights is None else self.weights[where]
            rows = self._taken(where, len(some)) if reuse else rows_at(self.values, where)
            yield where, make_block(rows, weights, self.start + some)

    def _taken(self, where: IntArray | slice, n: int) -> Any:
        """Return some rows: those of an array as float64, in the memory of the thread if not in place."""
        values = self.values
        if not isinstance(values, np.ndarray) or not values.flags.c_contiguous:
            return rows_at(values, where)
        if isinstance(where, slice):
            narrow = values[where]
        else:
            narrow = scratch("rows as they are", (n, values.shape[1]), values.dtype)
            np.take(values, where, axis=0, out=narrow, mode="clip")  # "raise" would copy once more
        if narrow.dtype == np.float64:
            return narrow
        wide = scratch("rows", narrow.shape)
        with np.errstate(over="ignore"):  # as in `make_block`
            wide[...] = narrow
        return wide


class Count(NamedTuple):
    """The rows of a leaf in one block: their number, weight, how many count, and the first of these."""

    n_rows: int
    total: float
    n_counted: int
    first: int


class Group(NamedTuple):
    """A set of rows, by leaf ids or by row numbers, and the requests about it."""

    leaves: tuple[int, ...] | None
    picked: IntArray | None
    requests: tuple[Request, ...]

    def merge(self, left: Sequence[Answer], right: Sequence[Answer]) -> list[Answer]:
        """Merge the answers of two parts of the rows."""
        return [request.merge(*both) for request, *both in zip(self.requests, left, right, strict=True)]

    def merge_all(self, parts: Sequence[Sequence[Answer] | None]) -> list[Answer] | None:
        """Merge the answers of several parts, without changing any; None if no part has rows of the group."""
        if all(part is None for part in parts):
            return None
        return [
            request.merge_all([None if part is None else part[k] for part in parts])
            for k, request in enumerate(self.requests)
        ]


class Part(NamedTuple):
    """Leaves to be divided by a boundary, and the ids of both sides."""

    leaves: tuple[int, ...]
    boundary: Divider
    left: int
    right: int


def answer_block(block: BlockData, ids: LeafIds, groups: Sequence[Group]) -> list[list[Answer] | None]:
    """Return what this block adds to the answers of every group; None for a group without rows here."""
    answers: list[list[Answer] | None] = []
    for group, here in zip(groups, places(block, ids, groups), strict=True):
        answers.append(_answer_group(block, here, group.requests) if len(here) else None)
    return answers


def _answer_group(block: BlockData, where: IntArray, requests: Sequence[Request]) -> list[Answer]:
    """Answer requests about some rows of a block, piece by piece; a sample takes only the rows it draws."""
    kinds = places_by(type(request) for request in requests)
    answers = [request.start(block.values.shape[1]) for request in requests]
    for i in kinds.pop(Sample, []):
        _draw(block, where, requests[i], answers[i])  # type: ignore[arg-type]
    for _, piece in block.pieces(where, reuse=True) if kinds else ():
        add_block(piece, kinds, requests, answers)
    return answers


def _draw(block: BlockData, where: IntArray, sample: Sample, answer: Answer) -> None:
    if block.weights is not None:
        where = where[block.weights[where] > 0]
    few = where[sample.pick(block.start + where)]
    weights = np.ones(len(few)) if block.weights is None else block.weights[few]
    sample.draw(rows_at(block.values, few), weights, block.start + few, answer)


def map_block(
    block: BlockData, ids: LeafIds, group: Group, function: Callable[[Block], AnyArray]
) -> list[AnyArray]:
    """Return one value per row of a group in a block, in pieces."""
    (where,) = places(block, ids, [group])
    return [function(piece) for _, piece in block.pieces(where)]


def divide_block(block: BlockData, ids: LeafIds, parts: Sequence[Part]) -> tuple[LeafIds, dict[int, Count]]:
    """Return the leaf ids after dividing some leaves, and the counts of the new ones."""
    new = ids.copy()
    found = places_of(ids, [part.leaves for part in parts], reuse=True)
    for part, places in zip(parts, found, strict=True):
        for where, piece in block.pieces(places, reuse=True):
            new[where] = np.where(part.boundary.distances(piece) > 0, part.right, part.left)
    sides = [(side,) for part in parts for side in (part.left, part.right)]
    return new, count(new, block.weights, block.start, sides)


def count(
    ids: LeafIds, weights: FloatArray | None, start: int, sets: Sequence[tuple[int, ...]]
) -> dict[int, Count]:
    """Count the rows of sets of leaves in one block; a set is named by its first leaf."""
    counts = {}
    for leaves, places in zip(sets, places_of(ids, sets, reuse=True), strict=True):
        if len(places) == 0:
            continue
        counted, total = places, float(len(places))
        if weights is not None:
            own = weights[places]
            counted, total = places[own > 0], float(own.sum())
        first = start + int(counted[0]) if len(counted) else -1
        counts[leaves[0]] = Count(len(places), total, len(counted), first)
    return counts


def places(block: BlockData, ids: LeafIds, groups: Sequence[Group]) -> list[IntArray]:
    """Return where the rows of every group are in a block; valid until the thread asks again."""
    sets = [group.leaves for group in groups if group.leaves is not None]
    by_leaves = iter(places_of(ids, sets, reuse=True))
    found = []
    for group in groups:
        if group.picked is None:
            found.append(next(by_leaves))
        else:
            a, b = np.searchsorted(group.picked, [block.start, block.start + len(block)])
            found.append(group.picked[a:b] - block.start)
    return found


def places_of(ids: LeafIds, sets: Sequence[tuple[int, ...]], *, reuse: bool = False) -> list[IntArray]:
    """Return the places of the rows of every set of leaves, in increasing order; one sort for all sets.

    With `reuse`, they are in memory of the thread, and valid until it asks again.

    >>> [places.tolist() for places in places_of(np.array([2, 0, 1, 2], dtype=np.int32), [(0, 2), (1,)])]
    [[0, 1, 3], [2]]
    """
    leaves = [leaf for some in sets for leaf in some]
    if not leaves or len(ids) == 0:
        return [np.empty(0, dtype=np.int64) for _ in sets]
    if len(set(leaves)) < len(leaves):  # sets that share leaves: one after the other
        return [np.flatnonzero(np.isin(ids, some)) for some in sets]
    set_of = np.full(max(int(ids.max()), *leaves) + 1, -1)
    for k, some in enumerate(sets):
        set_of[list(some)] = k
    order = scratch("places", ids.shape, np.int64) if reuse else np.empty(len(ids), dtype=np.int64)
    ends = np.zeros(len(sets), dtype=np.int64)
    sort_places(ids, set_of, ends, order)
    return np.split(order[: ends[-1]], ends[:-1])


class Fold:
    """Merges answers as they arrive, in the tree of `fold`; holds as many as the number of blocks has bits.

    None is the answer of a block without rows, which keeps its place in the tree.

    >>> merged = Fold("({}{})".format)
    >>> for name in ["a", None, "c", "d", "e"]:
    ...     merged.add(name)
    >>> merged.result()
    '((a(cd))e)'
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._sizes: list[int] = []
        self._parts: list[Any] = []

    def add(self, answer: Any) -> None:
        """Add the answer of the next block."""
        self._parts.append(answer)
        self._sizes.append(1)
        while len(self._sizes) > 1 and self._sizes[-1] == self._sizes[-2]:
            self._join()

    def result(self) -> Any:
        """Return the answer of all blocks; None where there were none."""
        while len(self._parts) > 1:
            self._join()
        return self._parts[0] if self._parts else None

    def _join(self) -> None:
        right, size = self._parts.pop(), self._sizes.pop()
        self._parts[-1] = fold(self._merge, [self._parts[-1], right])
        self._sizes[-1] += size
