"""Queries: algorithms that ask for sums over rows and never hold the rows.

A query is a generator. It yields requests, each about one set of rows, and receives the answers:

    def mean(rows):
        ((total,),) = yield [Asked(rows, ColumnSums())]
        return total / rows.total

`gather` runs several queries side by side, so that one pass over the rows answers all of them. `run` runs one
query to its end, and `run_all` several; only these two call an engine. An engine decides how rows are read:
one set after the other in memory, or all sets in one pass over blocks that are expensive to read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.threads import Threads

AnyArray = npt.NDArray[Any]
Answer = tuple[AnyArray, ...]
Result = TypeVar("Result")
Key = TypeVar("Key")


class Request:
    """A summary of rows that can be merged from summaries of parts of them.

    A subclass defines `start`, `merge`, and either `add` or, where several requests of its kind can share
    work on a block, `add_many`: each of the two is defined here by the other.
    """

    def start(self, n_features: int) -> Answer:
        """Return the summary of no rows."""
        raise NotImplementedError

    def add(self, block: Block, answer: Answer) -> None:
        """Add one block to the answer, in place."""
        self.add_many(block, [self], [answer])

    @staticmethod
    def add_many(block: Block, requests: Sequence[Any], answers: Sequence[Answer]) -> None:
        """Add one block to the answers of all requests of this kind, in place."""
        for request, answer in zip(requests, answers, strict=True):
            request.add(block, answer)

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Return the summary of two sets of rows from that of each, without changing these."""
        raise NotImplementedError

    def merge_all(self, parts: Sequence[Answer | None]) -> Answer:
        """Merge summaries in the tree of `fold`; at least one is not None."""
        found: Answer = fold(self.merge, parts)
        return found


class Additive(Request):
    """A request whose answers are merged by adding them."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        return tuple(a + b for a, b in zip(left, right, strict=True))


class RowSet(Protocol):
    """Some rows of an engine. Queries know their number and total weight, and ask for everything else."""

    shape: tuple[int, int]
    total: float

    @property
    def threads(self) -> Threads:
        """The threads that share passes, also over copies of some of the rows."""

    @property
    def numbers(self) -> IntArray:
        """The numbers of these rows in the whole data: 8 bytes per row."""

    @property
    def n_counted(self) -> int:
        """The number of rows of positive weight."""

    @property
    def is_whole(self) -> bool:
        """Whether the rows are all those of an array in memory, so that a copy gains nothing."""

    @property
    def first(self) -> int:
        """The number of the first row of positive weight."""

    @property
    def values_per_row(self) -> float:
        """How many values a row holds in the mean over the whole data: the columns, or fewer if sparse."""

    @property
    def weights(self) -> FloatArray | None:
        """The weights of all rows of the data; None where each counts once."""

    def map(self, function: Callable[[Block], AnyArray]) -> AnyArray:
        """Return one value per row, in the order of the rows; one pass."""

    def select(self, rows: IntArray, /) -> RowSet:
        """Return some of these rows, given by their places in increasing order."""

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""

    @property
    def reads(self) -> Any:
        """How many rows were read so far, see `ReadCount`."""


class Divider(Protocol):
    """A boundary: rows of positive distance are on its right."""

    def distances(self, block: Block) -> FloatArray:
        """Return the signed distance of every row of a block."""


@dataclass(frozen=True)
class Asked:
    """A request about some rows."""

    rows: RowSet
    request: Request


class Engine(Protocol):
    """Answers requests about its rows, and decides in which order they are read."""

    local: bool  # whether passes are cheap: rows in memory

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer all requests."""

    def divide(self, parts: Sequence[tuple[Any, Divider]]) -> list[tuple[Any, Any]]:
        """Divide sets of rows, each by a boundary; return the left and the right rows of each. One pass."""

    def union(self, parts: Sequence[Any]) -> Any:
        """Return the rows of several sets as one."""

    def assign(self, parts: Sequence[Any], labels: Sequence[int]) -> AnyArray:
        """Return one label per row of the data: that of the set to which it belongs."""


class Fold:
    """Merges answers as they arrive, neighbors first; holds as many as the number of parts has bits.

    The tree of merges depends only on the number of parts. None stands for a part without rows. It keeps its
    place, so that the tree is that of the block numbers, whichever blocks have rows.
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._sizes: list[int] = []
        self._parts: list[Any] = []

    def add(self, answer: Any) -> None:
        """Add the answer of the next part."""
        self._parts.append(answer)
        self._sizes.append(1)
        while len(self._sizes) > 1 and self._sizes[-1] == self._sizes[-2]:
            self._join()

    def result(self) -> Any:
        """Return the answer of all parts; None where there were none."""
        while len(self._parts) > 1:
            self._join()
        return self._parts[0] if self._parts else None

    def _join(self) -> None:
        right, size = self._parts.pop(), self._sizes.pop()
        left = self._parts[-1]
        self._sizes[-1] += size
        if left is None or right is None:
            self._parts[-1] = right if left is None else left
        else:
            self._parts[-1] = self._merge(left, right)


def fold(merge: Callable[[Any, Any], Any], parts: Iterable[Any]) -> Any:
    """Merge all parts in the tree of `Fold`.

    >>> fold("({}{})".format, ["a", None, "c", "d", "e"])
    '((a(cd))e)'
    """
    merged = Fold(merge)
    for part in parts:
        merged.add(part)
    return merged.result()


Query = Generator[Sequence[Asked], list[Answer], Result]


def gather(queries: Sequence[Query[Result]]) -> Query[list[Result]]:
    """Run queries side by side: each round yields the requests of all queries that have not ended."""
    results: dict[int, Result] = {}
    live: dict[int, Sequence[Asked]] = {}

    def advance(i: int, step: Callable[[], Sequence[Asked]]) -> None:
        try:
            live[i] = step()
        except StopIteration as stop:
            live.pop(i, None)
            results[i] = stop.value

    for i, query in enumerate(queries):
        advance(i, lambda query=query: next(query))  # type: ignore[misc]
    while live:
        round_of = list(live.items())
        answers = iter((yield [asked for _, asks in round_of for asked in asks]))
        for i, asks in round_of:
            own = [next(answers) for _ in asks]
            advance(i, lambda query=queries[i], own=own: query.send(own))  # type: ignore[misc]
    return [results[i] for i in range(len(queries))]


def places_by(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """Return the places of every key.

    >>> places_by("abca")
    {'a': [0, 3], 'b': [1], 'c': [2]}
    """
    places: dict[Key, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return places


def answer(asked: Sequence[Asked]) -> list[Answer]:
    """Answer requests, all those of one engine in one call."""
    engine = asked[0].rows.engine if asked else None
    if engine is not None and all(one.rows.engine is engine for one in asked):
        return engine.answer(asked)
    answers: dict[int, Answer] = {}
    for members in places_by(id(one.rows.engine) for one in asked).values():
        found = asked[members[0]].rows.engine.answer([asked[i] for i in members])
        answers.update(zip(members, found, strict=True))
    return [answers[i] for i in range(len(asked))]


def run(query: Query[Result]) -> Result:
    """Run a query to its end."""
    try:
        asked = next(query)
        while True:
            asked = query.send(answer(asked))
    except StopIteration as stop:
        result: Result = stop.value
        return result


def run_all(queries: Sequence[Query[Result]]) -> list[Result]:
    """Run queries over rows whose passes are expensive: each pass answers requests of all of them.

    A query that asks only about local rows does not wait for the others: it is answered at once.
    """
    return run(gather([_answer_local(query) for query in queries]))


def _answer_local(query: Query[Result]) -> Query[Result]:
    """Answer those requests of a query that are about local rows only, and yield the others."""
    try:
        asked = next(query)
        while True:
            local = all(one.rows.engine.local for one in asked)
            asked = query.send(answer(asked) if local else (yield asked))
    except StopIteration as stop:
        result: Result = stop.value
        return result
