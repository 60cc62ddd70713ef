"""Open a table in CSV, TSV, JSON lines, Parquet, Arrow, NPY or NPZ format."""

from __future__ import annotations

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
BINARY_FORMATS = {"parquet": open_parquet, "arrow": open_arrow, "npy": open_npy, "npz": open_npz}


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
    found = file_format or _detect(path, head)
    with translate_read_errors(path):
        if found in ("csv", "tsv"):
            return open_csv(path, delimiter or ("\t" if found == "tsv" else None), encoding)
        if found == "jsonl":
            return open_json_lines(path, encoding)
        return BINARY_FORMATS[found](path)


def _detect(path: Path, head: bytes) -> str:
    by_content = [name for first, name in FIRST_BYTES.items() if head.startswith(first)]
    suffixes = [suffix.lower() for suffix in reversed(path.suffixes)]  # the last first: .csv.gz is CSV
    by_suffix = [name for suffix in suffixes for name, known in SUFFIXES.items() if suffix in known]
    return next(iter(by_content + by_suffix), "jsonl" if head.lstrip().startswith(b"{") else "csv")
