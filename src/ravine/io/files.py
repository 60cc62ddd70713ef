"""Open a table in CSV, TSV, JSON lines, Parquet, Arrow, NPY or NPZ format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ravine.io.arrow_files import open_arrow, open_parquet
from ravine.io.numpy_files import open_npy, open_npz
from ravine.io.source import Source, TableError, translate_read_errors
from ravine.io.text_files import open_csv, open_json_lines

FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
SUFFIXES = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
}
FORMATS = tuple(SUFFIXES)


def open_source(
    path: Path, *, file_format: str | None = None, delimiter: str | None = None, encoding: str | None = None
) -> Source:
    """Open the table in a file.

    The format is detected from the first bytes, then from the suffix; otherwise it is JSON lines if the file
    starts with a brace, else CSV.
    """
    with open(path, "rb") as file:
        head = file.read(8)
    if not head:
        raise TableError(f"{path} is empty")
    openers: dict[str, Callable[[], Source]] = {
        "csv": lambda: open_csv(path, delimiter, encoding),
        "tsv": lambda: open_csv(path, delimiter or "\t", encoding),
        "jsonl": lambda: open_json_lines(path, encoding),
        "parquet": lambda: open_parquet(path),
        "arrow": lambda: open_arrow(path),
        "npy": lambda: open_npy(path),
        "npz": lambda: open_npz(path),
    }
    with translate_read_errors(path):
        return openers[file_format or _detect(path, head)]()


def _detect(path: Path, head: bytes) -> str:
    by_content = [name for first, name in FIRST_BYTES.items() if head.startswith(first)]
    suffixes = [suffix.lower() for suffix in reversed(path.suffixes)]  # the last first: .csv.gz is CSV
    by_suffix = [name for suffix in suffixes for name, known in SUFFIXES.items() if suffix in known]
    return next(iter(by_content + by_suffix), "jsonl" if head.lstrip().startswith(b"{") else "csv")
