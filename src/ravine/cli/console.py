"""What the command line says while it works."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import ravine


class Voice:
    """Says what goes on, on standard error: a bar on a terminal, plain lines otherwise."""

    def __init__(self, quiet: bool, stream: TextIO) -> None:
        self.quiet, self.stream = quiet, stream
        self.on_terminal = stream.isatty()
        self.bar_is_open = False

    def say(self, text: str) -> None:
        """Write one line."""
        self.close()
        if not self.quiet:
            self._write(f"{text}\n")

    def notes(self, texts: Sequence[str]) -> None:
        """Write what deserves a note."""
        for text in texts:
            self.say(f"note: {text}")

    def progress(self, progress: ravine.Progress) -> None:
        """Tell of one more split."""
        told = "" if progress.n_clusters >= 2**31 - 1 else f" of {progress.n_clusters}"
        text = f"{progress.n_leaves}{told} clusters, {progress.seconds:.1f} s"
        if self.quiet:
            return
        if not self.on_terminal:
            self.say(text)
            return
        width = max(10, min(30, shutil.get_terminal_size().columns - 40))
        done = round(width * progress.n_leaves / progress.n_clusters) if told else progress.n_leaves % width
        self._write(f"\r[{'#' * done}{'.' * (width - done)}] {text} ")
        self.bar_is_open = True

    def close(self) -> None:
        """End the bar's line."""
        if self.bar_is_open:
            self.bar_is_open = False
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:  # nobody listens, which is no reason to stop working
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    @contextmanager
    def listening(self) -> Iterator[list[warnings.WarningMessage]]:
        """Make notes of the warnings that come up, and hand them out."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield caught
        finally:
            self.close()
        self.notes(list(dict.fromkeys(str(w.message) for w in caught)))
