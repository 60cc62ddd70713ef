"""Messages about the work in progress, on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

import ravine
from ravine._validate import on_one_line
from ravine.tree.grow import UNLIMITED

LINE_SECONDS = 60.0  # seconds between two lines of progress that are not about a split, without a terminal


class Console:
    """Prints messages and progress: one line that is replaced on a terminal, lines otherwise."""

    def __init__(self, quiet: bool, stream: TextIO | None = None) -> None:
        self.quiet, self.stream = quiet, stream or sys.stderr
        self.line_is_open = False
        self.next_line = LINE_SECONDS

    def print(self, text: str) -> None:
        """Print one line; line breaks become spaces."""
        self.end_line()
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
        goal = f" of {total}" if total < UNLIMITED else ""
        text = f"{n}{goal} clusters, {progress.n_passes:.1f} passes, {progress.seconds:.1f} s"
        if progress.seconds_left >= 1.0:
            text += f", about {timedelta(seconds=round(progress.seconds_left))} left"
        if self.stream.isatty():
            # a line that wraps could not be replaced; the last characters clear the rest of the line
            text = text[: shutil.get_terminal_size().columns - 1]
            self._write(f"\r{text}\x1b[K", escaped=False)
            self.line_is_open = True
        elif progress.split is not None or progress.seconds >= self.next_line:
            self.next_line = progress.seconds + LINE_SECONDS
            self.print(text)

    def end_line(self) -> None:
        """End the line of progress on a terminal."""
        if self.line_is_open:
            self.line_is_open = False
            self._write("\n")

    def _write(self, text: str, *, escaped: bool = True) -> None:
        try:
            (self.stream if escaped else getattr(self.stream, "stream", self.stream)).write(text)
            self.stream.flush()
        except BrokenPipeError:  # nobody reads the messages, but the results are still wanted
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    @contextmanager
    def capture_warnings(self) -> Iterator[list[warnings.WarningMessage]]:
        """Yield a list to which warnings are added instead of being printed; end the line of progress."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield caught
        finally:
            self.end_line()  # an error has a line of its own
