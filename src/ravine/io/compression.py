"""Text files, compressed or not, opened as text."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}  # by their first bytes


@contextmanager
def open_text(path: Path, encoding: str | None, skip: int = 0) -> Iterator[TextIO]:
    """Open a text file, also one compressed by gzip, bzip2 or xz, after `skip` lines.

    A byte order mark is recognized.
    """
    with open(path, "rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        opener: Any = next((opener for first, opener in OPENERS.items() if head.startswith(first)), None)
        data: Any = raw if opener is None else opener(raw, "rb")
        if encoding is None:
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with io.TextIOWrapper(data, encoding=encoding, newline="") as text:
            for _ in itertools.islice(text, skip):
                pass
            yield text


def first_bytes(path: Path, n: int) -> bytes:
    """Return the first bytes of a file, decompressed if it is compressed in a way that `open_text` reads."""
    with open(path, "rb") as raw:
        head = raw.read(n)
        raw.seek(0)
        opener: Any = next((opener for first, opener in OPENERS.items() if head.startswith(first)), None)
        return head if opener is None else bytes(opener(raw, "rb").read(n))


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed in a way that `open_text` reads."""
    with open(path, "rb") as file:
        return file.read(6).startswith(tuple(OPENERS))
