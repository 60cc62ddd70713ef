"""BLAS on one thread: the threads are used for chunks of rows."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any


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
