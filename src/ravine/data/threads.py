"""The threads of a fit: they share passes over rows and the starts of a search, and BLAS has one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """As many threads as a fit may use at a time: the one that calls, and others while there is work.

    Threads help where they are idle: with the chunks of a pass, or with the starts of a search, which may
    again share its passes. No work ever waits for a thread, so that nothing can wait in a circle. What is
    computed does not depend on how many threads help.

    >>> Threads(2).map(lambda x: x * x, range(5))
    [0, 1, 4, 9, 16]
    """

    def __init__(self, n: int = 1) -> None:
        self.n = n
        self._idle, self._lock = n - 1, Lock()

    def __reduce__(self) -> Any:
        """Travel as a number: a worker process has threads of its own."""
        return Threads, (self.n,)

    @functools.cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n, thread_name_prefix="ravine")  # ends with this object

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the results for all items in order; idle threads take items, too.

        If some items fail, the error is that of the first of them, as if there were one thread.
        """
        if self.n == 1 or len(items) < 2:
            return [function(item) for item in items]
        found: list[Any] = [None] * len(items)
        errors: dict[int, Exception] = {}
        places, lock = iter(range(len(items))), Lock()

        def take() -> int | None:
            with lock:
                return None if errors else next(places, None)

        def work() -> None:
            while (k := take()) is not None:
                try:
                    found[k] = function(items[k])
                except Exception as error:
                    errors[k] = error

        helpers: list[Future[None]] = []
        while len(helpers) < len(items) - 1 and (helper := self.begin(work)) is not None:
            helpers.append(helper)
        try:
            work()
        finally:  # if this thread was interrupted, the others take no more items
            with lock:
                places = iter(range(0))
            wait(helpers)
        if errors:
            raise errors[min(errors)]
        return found

    def begin(self, function: Callable[[], Result]) -> Future[Result] | None:
        """Run a function in an idle thread; None if there is none."""
        with self._lock:
            if self._idle < 1:
                return None
            self._idle -= 1
        return self._pool.submit(self._run, function)

    def _run(self, function: Callable[[], Result]) -> Result:
        try:
            return function()
        finally:
            with self._lock:
                self._idle += 1


ONE_THREAD = Threads()


class _OneBlasThread:
    """Limits BLAS to one thread while any caller is inside; the last one to leave restores the number.

    The number of threads belongs to the process, so callers are counted. With OpenMP it belongs to the thread
    that set it, so every caller restores its own. threadpoolctl lets only one thread control the number of
    the process until that thread releases the control, so every caller releases it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: list[int] = []
        self._users = 0

    @functools.cached_property
    def _libraries(self) -> list[Any]:
        import scipy.linalg  # noqa: F401  # has a BLAS of its own, which is found only if it is loaded
        from threadpoolctl import ThreadpoolController

        found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        return found

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in self._libraries]
            self._users += 1
            for library in self._libraries:
                library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            for library, before in zip(self._libraries, self._before, strict=True):
                if self._users == 0 or getattr(library, "threading_layer", "") == "openmp":
                    library.set_num_threads(before)
                if hasattr(library, "clear_controlling_thread"):  # threadpoolctl 3.8
                    library.clear_controlling_thread()


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread inside a `with` block: the threads are used for chunks of rows."""
    return _ONE_BLAS_THREAD
