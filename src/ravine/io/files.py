"""Open a table in CSV, TSV, Parquet, Arrow, NPY or NPZ format."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from ravine.io.arrow_files import open_arrow, open_parquet
from ravine.io.numpy_files import open_npy, open_npz
from ravine.io.source import Source, TableError, translate_read_errors
from ravine.io.text_files import GZIP, UTF_16, open_csv

# How the formats that are not text begin; an Arrow file in the stream format begins with 0xffffffff.
BINARY_FORMATS = {
    b"PAR1": open_parquet,
    b"ARROW1": open_arrow,
    b"\xff\xff\xff\xff": open_arrow,
    b"\x93NUMPY": open_npy,
    b"PK\x03\x04": open_npz,
}
HEAD_BYTES = 512  # bytes of a file that are looked at: the first block of a tar archive


def open_source(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int = 0,
) -> Source:
    """Open the table in a file, whose first bytes tell the format; the parameters are those of `open_csv`."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise TableError(f"{path} is empty")
    with translate_read_errors(path):
        for first, open_binary in BINARY_FORMATS.items():
            if head.startswith(first):
                if open_binary is open_npz:
                    _check_archive(path)
                return open_binary(path)
        if encoding is None:
            _check_text(path, head)
        if delimiter is None and ".tsv" in path.suffixes:
            delimiter = "\t"
        return open_csv(path, delimiter, encoding, decimal, skip)


def _check_text(path: Path, head: bytes) -> None:
    """Refuse bytes that are no text, and text that is JSON, HTML or XML."""
    if head.startswith(GZIP):
        with gzip.open(path) as file:
            head = file.read(HEAD_BYTES)
    is_binary = b"\0" in head and not head.startswith(UTF_16)
    if is_binary or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[", b"<")):
        raise _not_a_table(path)


def _check_archive(path: Path) -> None:
    """Refuse zip files that do not hold arrays: office documents, models, other archives."""
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is a zip archive or an NPZ file without its end; copy it again")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if "meta.npy" in names:
        raise TableError(f"{path} is a ravine model, where a table is expected", "model")
    if not all(name.endswith(".npy") for name in names):
        raise _not_a_table(path)


def _not_a_table(path: Path) -> TableError:
    formats = "CSV, TSV (also .gz), Parquet, Arrow, NPY or NPZ"
    return TableError(f"{path} is not a table that ravine reads: {formats}; save it as CSV or Parquet")
