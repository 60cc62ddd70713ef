"""Read blocks ahead in background threads, while the processor works on those that are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import TypeVar

Read = TypeVar("Read")
Result = TypeVar("Result")


def over_blocks(
    blocks: Iterable[int], read: Callable[[int], Read], work: Callable[[int, Read], Result], n_jobs: int
) -> Iterator[tuple[int, Result]]:
    """Yield the result of every block, in order.

    At most `n_jobs` blocks are worked on and one more is read, so that `n_jobs + 1` are in memory.

    >>> list(over_blocks(range(3), lambda i: 10 * i, lambda i, rows: rows + 1, 1))
    [(0, 1), (1, 11), (2, 21)]
    """
    at_work = Semaphore(n_jobs)

    def serve(block: int) -> Result:
        rows = read(block)
        with at_work:
            return work(block, rows)

    with ThreadPoolExecutor(n_jobs + 1, thread_name_prefix="ravine-read") as pool:
        pending: deque[tuple[int, Future[Result]]] = deque()
        try:
            for block in blocks:
                pending.append((block, pool.submit(serve, block)))
                if len(pending) > n_jobs:
                    first, future = pending.popleft()
                    yield first, future.result()
            while pending:
                first, future = pending.popleft()
                yield first, future.result()
        finally:
            for _, future in pending:
                future.cancel()
