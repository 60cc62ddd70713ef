"""Queries: algorithms that ask for sums over rows and never hold the rows.

A query is a generator. It yields requests, each about one set of rows, and receives the answers:

    def mean(rows):
        ((total,),) = yield [Asked(rows, ColumnSums())]
        return total / rows.total

`gather` runs several queries side by side, so that one pass over the rows answers all of them. `run` drives a
query to its end and `run_all` many; only these two meet an engine. An engine decides how rows are read: one
set after the other in memory, or all sets in one pass over blocks that are expensive to read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.blocks import Block

AnyArray = npt.NDArray[Any]
Answer = tuple[AnyArray, ...]
Result = TypeVar("Result")


class Request(Protocol):
    """A summary of rows that can be merged from summaries of parts of them."""

    def start(self, n_features: int) -> Answer:
        """Return the summary of no rows."""

    @staticmethod
    def add(block: Block, requests: Sequence[Any], answers: Sequence[Answer]) -> None:
        """Add one block to the answers of all requests of this kind, in place."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Return the summary of two sets of rows from that of each; may reuse `left`."""


class Additive:
    """A `Request` whose answers are merged by adding them."""

    def merge(self, left: Answer, right: Answer) -> Answer:
        """Add `right` to `left` in place."""
        for a, b in zip(left, right, strict=True):
            a += b
        return left


class RowSet(Protocol):
    """Some rows that an engine holds. Queries know their number and weight, and ask for the rest."""

    shape: tuple[int, int]
    total: float

    @property
    def n_counted(self) -> int:
        """How many rows have a positive weight."""

    @property
    def is_whole(self) -> bool:
        """Whether the rows are all those of an array in memory, so that a copy gains nothing."""

    @property
    def first(self) -> int:
        """The number of the first row of positive weight."""

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""


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
        """Answer all requests; an error names the request that failed, see `blame`."""

    def divide(self, parts: Sequence[tuple[Any, Divider]]) -> list[tuple[Any, Any]]:
        """Divide sets of rows, each by a boundary: return the left and the right rows of each; one pass."""

    def union(self, parts: Sequence[Any]) -> Any:
        """Return the rows of several sets as one."""

    def assign(self, parts: Sequence[Any], labels: Sequence[int]) -> AnyArray:
        """Return one label per row of the data: that of the set that it is in."""


Query = Generator[Sequence[Asked], list[Answer], Result]


def blame(error: Exception, request: Request) -> Exception:
    """Note on an error which request failed, so that it is raised inside the query that asked."""
    error.request = request  # type: ignore[attr-defined]
    return error


def gather(queries: Sequence[Query[Result]]) -> Query[list[Result]]:
    """Run queries side by side: each round asks for what every live one of them needs.

    A request that fails raises inside the query that asked for it, see `blame`.
    """
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
        try:
            answers = iter((yield [asked for _, asks in round_of for asked in asks]))
        except Exception as error:
            failed = getattr(error, "request", None)
            i = next((i for i, asks in round_of if any(a.request is failed for a in asks)), round_of[0][0])
            advance(i, lambda query=queries[i], error=error: query.throw(error))  # type: ignore[misc]
            continue  # where that query goes on, the others ask again
        for i, asks in round_of:
            own = [next(answers) for _ in asks]
            advance(i, lambda query=queries[i], own=own: query.send(own))  # type: ignore[misc]
    return [results[i] for i in range(len(queries))]


def answer(asked: Sequence[Asked]) -> list[Answer]:
    """Let every engine answer what it is asked, all of it at once."""
    by_engine: dict[int, list[int]] = {}
    for i, one in enumerate(asked):
        by_engine.setdefault(id(one.rows.engine), []).append(i)
    answers: dict[int, Answer] = {}
    for members in by_engine.values():
        found = asked[members[0]].rows.engine.answer([asked[i] for i in members])
        answers.update(zip(members, found, strict=True))
    return [answers[i] for i in range(len(asked))]


def run(query: Query[Result]) -> Result:
    """Run a query to its end. A request that fails raises inside the query, so that a traceback shows it."""
    try:
        asked = next(query)
        while True:
            try:
                answers = answer(asked)
            except Exception as error:
                asked = query.throw(error)
            else:
                asked = query.send(answers)
    except StopIteration as stop:
        result: Result = stop.value
        return result


def run_all(queries: Sequence[Query[Result]]) -> list[Result]:
    """Run queries over rows whose passes are expensive: each pass serves all of them.

    A query that asks only about local rows is served at once, so that it does not lag behind.
    """
    return run(gather([_local_at_once(query) for query in queries]))


def _local_at_once(query: Query[Result]) -> Query[Result]:
    """Answer requests about local rows without a round of their own."""
    try:
        asked = next(query)
        while True:
            local = all(one.rows.engine.local for one in asked)
            try:
                answers = answer(asked) if local else (yield asked)
            except Exception as error:
                asked = query.throw(error)
            else:
                asked = query.send(answers)
    except StopIteration as stop:
        result: Result = stop.value
        return result
