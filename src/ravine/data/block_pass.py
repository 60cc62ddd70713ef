"""What one pass does with one block: cut it into the rows of every set, answer their requests, divide them.

These are functions of one block and nothing else, so that they run the same in a thread, in another process
or on another machine. A chunk of rows in memory is answered by the same function, so that the same block
bounds give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block, cache_rows, make_block, rows_at
from ravine.data.loops import sort_places
from ravine.data.query import Answer, AnyArray, Divider, Request, places_by
from ravine.data.sample import Sample

LeafIds = npt.NDArray[np.int32]


@dataclass(frozen=True)
class BlockData:
    """The rows of one block: dense or CSR, their weights (None: 1 each), and the number of the first.

    Rows that are copies have `numbers` of their own: those in the data, on which samples depend.
    """

    values: Any
    weights: FloatArray | None
    start: int = 0
    numbers: IntArray | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def numbers_of(self, places: IntArray) -> IntArray:
        """Return the numbers of the rows at some places."""
        return self.start + places if self.numbers is None else self.numbers[places]

    def pieces(self, where: IntArray | slice) -> Iterator[tuple[IntArray, Block]]:
        """Yield the rows at some places in pieces that fit a processor's cache, with their places.

        Pieces share their memory: each is valid until the next one.
        """
        places, in_place = to_places(where), isinstance(where, slice) or len(where) == len(self)
        for a in range(0, len(places), self._step):
            some = places[a : a + self._step]
            rows = slice(int(some[0]), int(some[-1]) + 1) if in_place else some
            weights = np.ones(len(some)) if self.weights is None else self.weights[rows]
            yield some, make_block(self._take(rows), weights, self.numbers_of(some))

    def _take(self, where: Any) -> Any:
        """Return some rows, in place or in memory that all pieces use: writing to new memory takes long."""
        values = self.values
        if isinstance(where, slice) or not isinstance(values, np.ndarray) or not values.flags.c_contiguous:
            return values[where]
        return np.take(values, where, axis=0, out=self._memory[: len(where)], mode="clip")

    @cached_property
    def _step(self) -> int:
        return cache_rows(self.values.shape[1], sparse.issparse(self.values))

    @cached_property
    def _memory(self) -> AnyArray:
        return np.empty((min(self._step, len(self)), self.values.shape[1]), self.values.dtype)


def to_places(where: IntArray | slice) -> IntArray:
    """Return the places of rows that are given by their places, or as a range."""
    return np.arange(where.start, where.stop) if isinstance(where, slice) else where


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
        """Merge the answers of several parts; None if no part has rows of the group."""
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
    return [
        answer_rows(block, here, group.requests) if len(here) else None
        for group, here in zip(groups, places(block, ids, groups), strict=True)
    ]


def answer_rows(block: BlockData, where: IntArray | slice, requests: Sequence[Request]) -> list[Answer]:
    """Answer requests about some rows of a block, piece by piece; a sample takes only the rows it draws."""
    kinds = places_by(type(request) for request in requests)
    kinds.pop(Sample, None)
    answers = [
        _draw(block, to_places(where), request)
        if isinstance(request, Sample)
        else request.start(block.values.shape[1])
        for request in requests
    ]
    for _, piece in block.pieces(where) if kinds else ():
        for kind, members in kinds.items():  # all requests of one kind at once
            kind.add_many(piece, [requests[i] for i in members], [answers[i] for i in members])
    return answers


def _draw(block: BlockData, places: IntArray, sample: Sample) -> Answer:
    if block.weights is not None:
        places = places[block.weights[places] > 0]
    few = places[sample.pick(block.numbers_of(places))]
    weights = np.ones(len(few)) if block.weights is None else block.weights[few]
    return sample.draw(rows_at(block.values, few), weights, block.numbers_of(few))


def map_block(
    block: BlockData, ids: LeafIds, group: Group, function: Callable[[Block], AnyArray]
) -> list[AnyArray]:
    """Return one value per row of a group in a block, in pieces."""
    (where,) = places(block, ids, [group])
    return map_pieces(block, where, function)


def map_pieces(
    block: BlockData, where: IntArray | slice, function: Callable[[Block], AnyArray]
) -> list[AnyArray]:
    """Return one value per row at some places of a block, in pieces."""
    return [
        np.array(function(piece)) for _, piece in block.pieces(where)
    ]  # the memory of a piece is used again


def divide_block(block: BlockData, ids: LeafIds, parts: Sequence[Part]) -> tuple[LeafIds, dict[int, Count]]:
    """Return the leaf ids after dividing some leaves, and the counts of the new ones."""
    new = ids.copy()
    found = places_of(ids, [part.leaves for part in parts])
    for part, places in zip(parts, found, strict=True):
        for where, piece in block.pieces(places):
            new[where] = np.where(part.boundary.distances(piece) > 0, part.right, part.left)
    sides = [(side,) for part in parts for side in (part.left, part.right)]
    return new, count(new, block.weights, block.start, sides)


def count(
    ids: LeafIds, weights: FloatArray | None, start: int, sets: Sequence[tuple[int, ...]]
) -> dict[int, Count]:
    """Count the rows of sets of leaves in one block; a set is named by its first leaf."""
    counts = {}
    for leaves, places in zip(sets, places_of(ids, sets), strict=True):
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
    """Return where the rows of every group are in a block."""
    sets = [group.leaves for group in groups if group.leaves is not None]
    by_leaves = iter(places_of(ids, sets))
    found = []
    for group in groups:
        if group.picked is None:
            found.append(next(by_leaves))
        else:
            a, b = np.searchsorted(group.picked, [block.start, block.start + len(block)])
            found.append(group.picked[a:b] - block.start)
    return found


def places_of(ids: LeafIds, sets: Sequence[tuple[int, ...]]) -> list[IntArray]:
    """Return the places of the rows of every set of leaves, in increasing order; one sort for all sets.

    >>> [places.tolist() for places in places_of(np.array([2, 0, 1, 2], dtype=np.int32), [(0, 2), (1,)])]
    [[0, 1, 3], [2]]
    """
    leaves = [leaf for some in sets for leaf in some]
    if (
        not leaves or len(ids) == 0 or len(set(leaves)) < len(leaves)
    ):  # the sort needs sets that share no leaf
        return [np.flatnonzero(np.isin(ids, some)) for some in sets]
    set_of = np.full(max(int(ids.max()), *leaves) + 1, -1)
    for k, some in enumerate(sets):
        set_of[list(some)] = k
    order, ends = np.empty(len(ids), dtype=np.int64), np.zeros(len(sets), dtype=np.int64)
    sort_places(ids, set_of, ends, order)
    return np.split(order[: ends[-1]], ends[:-1])
