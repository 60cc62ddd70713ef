"""Open a table in CSV, TSV, Parquet, Arrow or NPY format."""

from __future__ import annotations

import gzip
from pathlib import Path

from ravine.io.arrow_files import open_arrow, open_parquet
from ravine.io.numpy_files import open_npy
from ravine.io.source import Source, TableError, translate_read_errors
from ravine.io.text_files import GZIP, UTF_16, open_csv

# How the formats that are not text begin.
BINARY_FORMATS = {
    b"PAR1": open_parquet,
    b"ARROW1": open_arrow,
    b"\x93NUMPY": open_npy,
}
HEAD_BYTES = 512  # bytes of a file that are looked at: the first block of a tar archive


def open_source(
    path: Path, *, delimiter: str | None = None, encoding: str | None = None, skip: int = 0
) -> Source:
    """Open the table in a file, whose first bytes tell the format; the parameters are those of `open_csv`."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise TableError(f"{path} is empty")
    with translate_read_errors(path):
        for first, open_binary in BINARY_FORMATS.items():
            if head.startswith(first):
                return open_binary(path)
        if encoding is None:
            _check_text(path, head)
        return open_csv(path, delimiter, encoding, skip)


def _check_text(path: Path, head: bytes) -> None:
    """Refuse bytes that are no text, and text that is JSON, HTML or XML."""
    if head.startswith(GZIP):
        with gzip.open(path) as file:
            head = file.read(HEAD_BYTES)
    is_binary = b"\0" in head and not head.startswith(UTF_16)
    if is_binary or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[", b"<")):
        raise _not_a_table(path)


def _not_a_table(path: Path) -> TableError:
    formats = "CSV, TSV (also .gz), Parquet, Arrow or NPY"
    return TableError(f"{path} is not a table that ravine reads: {formats}; save it as CSV or Parquet")
