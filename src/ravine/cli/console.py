"""Messages about the work in progress, on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import ravine

UNLIMITED = 2**31 - 1  # `Progress.n_clusters` where the number of clusters is not fixed


class Console:
    """Prints messages and progress: a bar on a terminal, plain lines otherwise."""

    def __init__(self, quiet: bool, stream: TextIO | None = None) -> None:
        self.quiet, self.stream = quiet, stream or sys.stderr
        self.bar_is_open = False

    def print(self, text: str) -> None:
        """Print one line."""
        self.end_bar()
        if not self.quiet:
            self._write(f"{text}\n")

    def notes(self, texts: Sequence[str]) -> None:
        """Print one line per note."""
        for text in texts:
            self.print(f"note: {text}")

    def progress(self, progress: ravine.Progress) -> None:
        """Show the state after a split."""
        if self.quiet:
            return
        n, total = progress.n_leaves, progress.n_clusters
        bounded = total < UNLIMITED
        text = f"{n}{f' of {total}' if bounded else ''} clusters, {progress.seconds:.1f} s"
        if not self.stream.isatty():
            self.print(text)
            return
        width = max(10, min(30, shutil.get_terminal_size().columns - 40))
        done = round(width * n / total) if bounded else n % width
        self._write(f"\r[{'#' * done}{'.' * (width - done)}] {text} ")
        self.bar_is_open = True

    def end_bar(self) -> None:
        """End the line of the progress bar."""
        if self.bar_is_open:
            self.bar_is_open = False
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:  # nobody reads the messages, but the results are still wanted
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    @contextmanager
    def capture_warnings(self) -> Iterator[list[warnings.WarningMessage]]:
        """Print warnings as notes at the end, each once; yield the list of them."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield caught
        finally:
            self.end_bar()
        self.notes(list(dict.fromkeys(str(warning.message) for warning in caught)))
