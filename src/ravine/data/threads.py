"""BLAS on one thread: the threads are spent on blocks of rows."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any


class _OneBlasThread:
    """BLAS held to one thread while anyone is inside; the last to leave gives the threads back.

    The number belongs to the process, so that users are counted, except where BLAS runs on OpenMP: there it
    belongs to the thread that set it. threadpoolctl lets only one thread set the number of the process until
    that one lets go of it, so that whoever leaves does.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: list[int] = []
        self._users = 0

    @functools.cached_property
    def _libraries(self) -> list[Any]:
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
    """Hold BLAS to one thread: the threads are spent on blocks of rows."""
    return _ONE_BLAS_THREAD
