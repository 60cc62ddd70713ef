"""Messages about the work in progress, on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import ravine
from ravine._validate import on_one_line
from ravine.tree.progress import UNLIMITED

MANY_ROWS = 10_000_000  # rows read from which on they are shown: work that takes seconds
LINE_SECONDS = 60.0  # seconds between two lines of progress that are not about a split, without a terminal


def duration(seconds: float) -> str:
    """Return a time in its largest unit.

    >>> duration(75.0), duration(7200.0)
    ('75 s', '2.0 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


class Console:
    """Prints messages and progress: a bar on a terminal, plain lines otherwise."""

    def __init__(self, quiet: bool, stream: TextIO | None = None) -> None:
        self.quiet, self.stream = quiet, stream or sys.stderr
        self.bar_is_open = False
        self.next_line = LINE_SECONDS

    def print(self, text: str) -> None:
        """Print one line; line breaks become spaces."""
        self.end_bar()
        if not self.quiet:
            self._write(f"{on_one_line(text)}\n")

    def notes(self, texts: Sequence[str]) -> None:
        """Print one line per note; empty ones are left out."""
        for text in filter(None, texts):
            self.print(f"note: {text}")

    def progress(self, progress: ravine.Progress) -> None:
        """Show the state after a split, and between splits of large data."""
        if self.quiet:
            return
        n, total = progress.n_leaves, progress.n_clusters
        bounded = total < UNLIMITED
        text = f"{n}{f' of {total}' if bounded else ''} clusters, {progress.seconds:.1f} s"
        if progress.rows_read >= MANY_ROWS:
            text = (
                f"{text}, {progress.rows_read / 1e6:.0f} million rows read in {progress.n_passes:.1f} passes"
            )
        if progress.seconds_left >= 1.0:
            text = f"{text}, about {duration(progress.seconds_left)} left"
        if not self.stream.isatty():
            if progress.split is not None or progress.seconds >= self.next_line:
                self.next_line = progress.seconds + LINE_SECONDS
                self.print(text)
            return
        columns = shutil.get_terminal_size().columns
        width = max(10, min(30, columns - 40))
        text = text[: max(24, columns - width - 4)]  # a line that wraps could not be replaced
        done = round(width * n / total) if bounded else n % width
        # the last characters clear the rest of the line
        self._write(f"\r[{'#' * done}{'.' * (width - done)}] {text} \x1b[K", escaped=False)
        self.bar_is_open = True

    def end_bar(self) -> None:
        """End the line of the progress bar."""
        if self.bar_is_open:
            self.bar_is_open = False
            self._write("\n")

    def _write(self, text: str, *, escaped: bool = True) -> None:
        try:
            (self.stream if escaped else getattr(self.stream, "stream", self.stream)).write(text)
            self.stream.flush()
        except BrokenPipeError:  # nobody reads the messages, but the results are still wanted
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    @contextmanager
    def capture_warnings(
        self, describe: Callable[[list[warnings.WarningMessage]], list[str]]
    ) -> Iterator[list[warnings.WarningMessage]]:
        """Print warnings as notes at the end, as described; yield the list of them."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield caught
        finally:
            self.end_bar()
        self.notes(describe(caught))
