"""Searches of leaves in idle threads, before growth needs them: those that come next in its order."""

from __future__ import annotations

from concurrent.futures import Future, wait
from threading import Event
from typing import Generic, TypeVar

from ravine.data.query import Query, run_while
from ravine.data.threads import Threads

Key = TypeVar("Key")
Result = TypeVar("Result")


class Background(Generic[Key, Result]):
    """Searches in other threads. Which leaves are searched there depends on time; what is found does not."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self._begun: dict[Key, Future[Result | None]] = {}
        self._stopped = Event()

    def begin(self, key: Key, search: Query[Result]) -> bool:
        """Begin a search, unless no thread is idle; return whether it has begun."""
        begun = self.threads.begin(lambda: run_while(self._is_wanted, search))
        if begun is not None:
            self._begun[key] = begun
        return begun is not None

    def __contains__(self, key: Key) -> bool:
        """Whether a search has begun."""
        return key in self._begun

    def result(self, key: Key) -> Result:
        """Return the result of a search that has begun, when it is there."""
        found = self.threads.result_of(self._begun[key])
        assert found is not None
        return found

    def stop(self) -> None:
        """End all searches, at their next request."""
        self._stopped.set()
        wait(self._begun.values())

    def _is_wanted(self) -> bool:
        return not self._stopped.is_set()
