"""Which format a file has: CSV, TSV, JSON lines, Parquet, Arrow, NPY or NPZ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ravine.exceptions import InvalidInputError
from ravine.io.arrow_files import arrow, parquet
from ravine.io.numpy_files import npy, npz
from ravine.io.source import Source, saying
from ravine.io.text_files import csv_table, json_lines

MAGIC = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
)
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


def open_source(
    path: Path, *, kind: str | None = None, delimiter: str | None = None, encoding: str | None = None
) -> Source:
    """Return the table in a file; its kind is told by its first bytes, else by its name, else it is CSV."""
    with open(path, "rb") as file:
        head = file.read(8)
    if not head:
        raise InvalidInputError(f"{path} is empty")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    by_name = [SUFFIXES[suffix] for suffix in suffixes if suffix in SUFFIXES][-1:]
    by_content = [found for magic, found in MAGIC if head.startswith(magic)]
    kind = kind or next(iter(by_content + by_name), "jsonl" if head.lstrip()[:1] == b"{" else "csv")
    make: dict[str, Callable[[], Source]] = {
        "csv": lambda: csv_table(path, delimiter, encoding),
        "tsv": lambda: csv_table(path, delimiter or "\t", encoding),
        "jsonl": lambda: json_lines(path, encoding),
        "parquet": lambda: parquet(path),
        "arrow": lambda: arrow(path),
        "npy": lambda: npy(path),
        "npz": lambda: npz(path),
    }
    with saying(path):
        return make[kind]()
