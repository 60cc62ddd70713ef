"""Searches of leaves in idle threads, before growth needs them: those that come next in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Event

from ravine.data.node import Node
from ravine.data.query import Query, run_while
from ravine.data.threads import ONE_THREAD, Threads
from ravine.store.checkpoint import SearchResult
from ravine.tree.cells import Cell

# Least values of a leaf that another thread searches: most of the work on fewer is Python's, which only one
# thread does at a time.
AHEAD_VALUES = 1 << 20
AHEAD_COMPILED = 1 << 17  # the same if the search is compiled

Path = tuple[int, ...]
Search = Callable[[Cell, Node | None], Query[SearchResult]]  # of a cell, and its node if that is opened


@dataclass
class Background:
    """Searches in other threads. Which leaves are searched there depends on time; what is found does not."""

    threads: Threads
    compiled: bool
    begun: dict[Path, Future[SearchResult | None]] = field(default_factory=dict)
    stopped: Event = field(default_factory=Event)

    def begin(self, cells: Sequence[Cell], search: Search) -> None:
        """Begin searches of cells that are large enough, the first ones first, while threads are idle."""
        for cell in cells:
            if cell.path in self.begun or not self.suits(cell):
                continue
            query = search(cell, cell.opened)
            begun = self.threads.begin(lambda query=query: run_while(self.is_wanted, query))  # type: ignore[misc]
            if begun is None:
                break
            self.begun[cell.path] = begun
            cell.opened = None  # it belongs to the search

    def map(self, function: Callable[[Cell], None], cells: Sequence[Cell]) -> None:
        """Call a function for some cells, by threads if they are large enough."""
        threads = self.threads if all(map(self.suits, cells)) else ONE_THREAD
        threads.map(function, cells)

    def suits(self, cell: Cell) -> bool:
        """Return whether threads gain by working on several cells of this size."""
        least = AHEAD_COMPILED if self.compiled else AHEAD_VALUES
        return cell.rows.shape[0] * cell.rows.values_per_row >= least

    def result(self, path: Path) -> SearchResult:
        """Return the result of a search that has begun, when it is there."""
        found = self.threads.result_of(self.begun[path])
        assert found is not None
        return found

    def stop(self) -> None:
        """End all searches, at their next request."""
        self.stopped.set()
        wait(self.begun.values())

    def is_wanted(self) -> bool:
        """Return whether searches may go on."""
        return not self.stopped.is_set()
