"""Open a table in CSV, TSV, JSON, Parquet, Arrow, NPY or NPZ format; name the kind of other files."""

from __future__ import annotations

import zipfile
from pathlib import Path

from ravine.io.arrow_files import open_arrow, open_parquet
from ravine.io.compression import first_bytes
from ravine.io.json_files import open_json
from ravine.io.numpy_files import open_npy, open_npz
from ravine.io.source import Source, TableError, translate_read_errors
from ravine.io.text_files import open_csv
from ravine.store.archive import ZIP

FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", ZIP: "npz"}
CONVERT = "convert it to CSV or Parquet first"
OTHER_KINDS = {  # the first bytes of files that are not tables here: what they are, and what to do
    b"SQLite format 3\0": ("an SQLite database", "export the table as CSV first"),
    b"\xd0\xcf\x11\xe0": ("an Excel file", "save it as CSV first"),
    b"\x89HDF": ("an HDF5 file", CONVERT),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "decompress it first"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it first"),
    b"Obj\x01": ("an Avro file", CONVERT),
    b"ORC": ("an ORC file", CONVERT),
    b"%PDF": ("a PDF file", "save the table as CSV first"),
    b"$FL2": ("an SPSS file", CONVERT),
    b"<stata_dta>": ("a Stata file", CONVERT),
    b"r\x01\x01\0": ("a Stata file", CONVERT),
    b"r\x02\x01\0": ("a Stata file", CONVERT),
    b"RDX": ("an R file", CONVERT),
    b"X\n\0\0\0": ("an R file", CONVERT),
    b"\x80\x04": ("a pickle, which can run code", CONVERT),
    b"\x80\x05": ("a pickle, which can run code", CONVERT),
}
OTHER_TEXTS = {  # the first letters, in lower case, of texts that are not tables
    b"<!doctype html": ("an HTML page", "download or export the table as CSV first"),
    b"<html": ("an HTML page", "download or export the table as CSV first"),
    b"<?xml": ("an XML file", CONVERT),
    b"@relation": ("an ARFF file", CONVERT),
}
HEAD_BYTES = 512  # bytes of a file that are looked at: the first block of a tar archive
TAR_SIGN = slice(257, 262)  # where a tar archive has the letters "ustar"
SUFFIXES = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
}
FORMATS = tuple(SUFFIXES)
BINARY_FORMATS = {"parquet": open_parquet, "arrow": open_arrow, "npy": open_npy, "npz": open_npz}


def open_source(
    path: Path,
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int = 0,
) -> Source:
    """Open the table in a file.

    The format is detected from the first bytes, then from the suffix; otherwise it is JSON if the file starts
    with a brace or a bracket, else CSV. The other parameters are those of `open_csv`.
    """
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise TableError(f"{path} is empty")
    if file_format is None:
        with translate_read_errors(path):
            _check_kind(path, first_bytes(path, HEAD_BYTES))
    found = file_format or _detect(path, head)
    with translate_read_errors(path):
        if found in ("csv", "tsv"):
            return open_csv(path, delimiter or ("\t" if found == "tsv" else None), encoding, decimal, skip)
        if found == "jsonl":
            return open_json(path, encoding)
        return BINARY_FORMATS[found](path)


def _detect(path: Path, head: bytes) -> str:
    by_content = [name for first, name in FIRST_BYTES.items() if head.startswith(first)]
    suffixes = [suffix.lower() for suffix in reversed(path.suffixes)]  # the last first: .csv.gz is CSV
    by_suffix = [name for suffix in suffixes for name, known in SUFFIXES.items() if suffix in known]
    return next(iter(by_content + by_suffix), "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv")


def _check_kind(path: Path, head: bytes) -> None:
    """Refuse files that are known not to be tables, by what they are; compressed ones by their content."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for start, kinds in ((head, OTHER_KINDS), (text, OTHER_TEXTS)):
        for first, (kind, advice) in kinds.items():
            if start.startswith(first):
                raise TableError(f"{path} is {kind}, which ravine does not read; {advice}")
    if head[TAR_SIGN] == b"ustar":
        raise TableError(f"{path} is a tar archive; unpack it first")
    if not head.startswith(ZIP):
        return
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is a zip archive or an NPZ file without its end; copy it again")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if "[Content_Types].xml" in names or "mimetype" in names:
        what = "an Excel file" if any(name.startswith("xl/") for name in names) else "an office document"
        raise TableError(f"{path} is {what}, which ravine does not read; save the table as CSV first")
    if "meta.npy" in names and "left.npy" in names:
        raise TableError(f"{path} is a ravine model, where a table is expected", "model")
    if not all(name.endswith(".npy") for name in names):
        raise TableError(f"{path} is a zip archive; unpack it first")
