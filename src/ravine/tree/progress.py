"""Progress of growth, for the function `verbose`: after every split, and between the splits of large data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import current_thread

from ravine.data.query import RowSet
from ravine.split.split import Split

UNLIMITED = 2**31 - 1  # number of leaves or levels that no tree reaches
WATCH_SECONDS = 1.0  # least time between two calls of the callback that are not about a split


@dataclass(frozen=True)
class Progress:
    """The argument of the callback: after each split, and between splits if passes are long.

    Attributes
    ----------
    n_leaves : int
        Number of leaves so far.
    n_clusters : int
        Number of leaves at which growth stops.
    weight : float
        Weight of the rows that were split; between splits, that of all rows.
    split : Split or None
        The split that was made; None between splits.
    n_passes : float
        `rows_read` divided by the number of rows.
    seconds : float
        Time so far.
    rows_read : int
        Number of rows read so far.
    seconds_left : float
        Estimate from the time so far; NaN if there is none.
    """

    n_leaves: int
    n_clusters: int
    weight: float
    split: Split | None
    n_passes: float
    seconds: float
    rows_read: int = 0
    seconds_left: float = math.nan


@dataclass
class Watcher:
    """Calls the callback after every split, and between splits if it was not called for a while."""

    callback: Callable[[Progress], None]
    rows: RowSet
    n_clusters: int
    began: float
    n_leaves: int = 1

    def __post_init__(self) -> None:
        self.last, self.thread = time.perf_counter(), current_thread()

    def tell(self, n_leaves: int, split: Split | None, weight: float) -> None:
        """Call the callback."""
        self.last, self.n_leaves = time.perf_counter(), n_leaves
        seconds, rows_read = self.last - self.began, self.rows.reads.rows
        self.callback(
            Progress(
                n_leaves=n_leaves,
                n_clusters=self.n_clusters,
                weight=weight,
                split=split,
                n_passes=rows_read / self.rows.shape[0],
                seconds=seconds,
                rows_read=rows_read,
                seconds_left=seconds_left(seconds, n_leaves, self.n_clusters),
            )
        )

    def after_read(self) -> None:
        """Call the callback if it was not called for a while, always in the thread of the fit."""
        if time.perf_counter() - self.last >= WATCH_SECONDS and current_thread() is self.thread:
            self.tell(self.n_leaves, None, self.rows.total)


def seconds_left(seconds: float, n_leaves: int, n_clusters: int) -> float:
    """Return an estimate of the time until there are enough clusters; NaN before the first split.

    From n to 2 n leaves of a balanced tree, all rows are searched once.

    >>> seconds_left(10.0, 4, 16), seconds_left(10.0, 1, 16)
    (10.0, nan)
    """
    if n_leaves < 2 or n_clusters == UNLIMITED:
        return math.nan
    return seconds * (math.log(n_clusters) / math.log(n_leaves) - 1.0)
