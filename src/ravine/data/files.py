"""Tables in files, read a block at a time: CSV, TSV, JSON lines, Parquet, Arrow, NPY and NPZ.

Every format is a `Source`: the names of its columns, which of them hold numbers, and the blocks. What a file
cannot be read for is said in one sentence, an `InvalidInputError` that starts with the file's name.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

import numpy as np

from ravine._validate import FloatArray, InvalidInputError, RavineError
from ravine.data.on_disk import FileMatrix

Texts = list[str | None]
Block = tuple[FloatArray, list[Texts]]

BLOCK_ROWS = 4096
PEEK_ROWS = 4096  # the rows that say which columns hold numbers
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
DELIMITERS = ",;\t|"
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


class Source(Protocol):
    """A table that can be read again and again, in blocks."""

    @property
    def names(self) -> list[str]:
        """All columns that may be asked for."""

    @property
    def features(self) -> list[str]:
        """The columns that hold numbers and are taken where no others are asked for."""

    @property
    def numeric(self) -> frozenset[str]:
        """The columns that hold numbers."""

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        """Yield blocks of some columns: numbers as one array (NaN where missing), texts as lists."""


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
        "csv": lambda: _csv(path, delimiter, encoding),
        "tsv": lambda: _csv(path, delimiter or "\t", encoding),
        "jsonl": lambda: _json_lines(path, encoding),
        "parquet": lambda: _parquet(path),
        "arrow": lambda: _arrow(path),
        "npy": lambda: _npy(path),
        "npz": lambda: _npz(path),
    }
    with _saying(path):
        return make[kind]()


@contextmanager
def _saying(path: Path) -> Iterator[None]:
    """Make whatever a file cannot be read for one sentence with its name."""
    try:
        yield
    except (RavineError, OSError) as error:
        if isinstance(error, gzip.BadGzipFile):
            raise InvalidInputError(f"{path}: {error}") from error
        if isinstance(error, OSError) and not _of_arrow(error):
            raise
        text = str(error)
        raise InvalidInputError(text if text.startswith(str(path)) else f"{path}: {text}") from error
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise InvalidInputError(
            f"{path} is not {error.encoding.upper()} text (it has a byte 0x{wrong:02x}); "
            "say how it is encoded, with --encoding latin-1 for instance"
        ) from error
    except LookupError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    except (ValueError, EOFError, csv.Error) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(f"{path} cannot be read: {first_line}") from error


def _of_arrow(error: OSError) -> bool:
    """Whether an error of the system is pyarrow's word for a broken file."""
    return error.errno is None


def _check_names(names: Sequence[str], what: str) -> None:
    for i, name in enumerate(names):
        if not name.strip():
            raise InvalidInputError(f"{what} {i + 1} has no name; name it in the file")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidInputError(f"{names.count(twice)} columns are called {twice!r}; rename them in the file")


# --- text ---


@contextmanager
def _text(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """Open a text file, compressed by gzip or not."""
    with open(path, "rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        packed = head[:2] == b"\x1f\x8b"
        data: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        if encoding is None:
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with io.TextIOWrapper(data, encoding=encoding, newline="") as text:
            yield text


def is_missing(text: str | None) -> bool:
    """Whether a text stands for a value that is not there."""
    return text is None or text.strip().lower() in MISSING


def _number(text: str | None) -> float | None:
    """Return the number that a text is, NaN where it is missing, None where it is neither."""
    if text is None or is_missing(text):
        return np.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _numbers(texts: Sequence[str | None], name: str, where: Callable[[int], str]) -> FloatArray:
    """Return texts as numbers; `where` says the line of one that is none."""
    try:
        if "_" not in "".join(texts):  # type: ignore[arg-type]
            return np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        pass
    found = [_number(text) for text in texts]
    if None in found:
        i = found.index(None)
        raise InvalidInputError(
            f"column {name!r} holds {texts[i]!r} in {where(i)}, where numbers are expected; "
            f"correct it, or leave the column out with --exclude {name}"
        )
    return np.array(found, dtype=np.float64)


def _holds_numbers(texts: Sequence[str | None]) -> bool:
    """Whether at least half of what is there are numbers: then a word among them is an error."""
    there = [text for text in texts if not is_missing(text)]
    return 2 * sum(_number(text) is not None for text in there) >= len(there)


@dataclass(frozen=True)
class _Csv:
    """Delimited text; every record has as many fields as the first."""

    path: Path
    delimiter: str
    encoding: str | None
    names: list[str]
    has_header: bool
    numeric: frozenset[str]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        with _saying(self.path), _text(self.path, self.encoding) as file:
            if self.has_header:
                next(record for record in csv.reader(file, delimiter=self.delimiter) if record)
            done = 0
            for records in self._records(file, numbers, texts):
                block = records if isinstance(records, tuple) else self._slowly(records, numbers, texts, done)
                done += len(block[0])
                yield block

    def _records(
        self, file: TextIO, numbers: Sequence[str], texts: Sequence[str]
    ) -> Iterator[Block | list[list[str]]]:
        """Yield blocks where lines are plain, and lists of records where they need a closer look.

        From the first quote on, which may hold a line break, only records are yielded.
        """
        lines = list(itertools.islice(file, BLOCK_ROWS))
        while lines and not any('"' in line for line in lines):
            quick = self._quickly(lines, numbers, texts)
            if quick is not None:
                yield quick
            elif records := [record for record in csv.reader(lines, delimiter=self.delimiter) if record]:
                yield records
            lines = list(itertools.islice(file, BLOCK_ROWS))
        reader = csv.reader(itertools.chain(lines, file), delimiter=self.delimiter, strict=True)
        rest = (record for record in reader if record)
        while records := list(itertools.islice(rest, BLOCK_ROWS)):
            yield records

    def _quickly(self, lines: list[str], numbers: Sequence[str], texts: Sequence[str]) -> Block | None:
        """Read lines in which every field is plain and every number is one; None where they are not."""
        if {line.count(self.delimiter) for line in lines} != {len(self.names) - 1}:
            return None
        if len(self.names) == 1 and not all(map(str.strip, lines)):
            return None
        values = np.empty((len(lines), 0))
        if numbers:
            try:
                values = np.loadtxt(
                    lines,
                    delimiter=self.delimiter,
                    usecols=[self.names.index(name) for name in numbers],
                    comments=None,
                    ndmin=2,
                )
            except ValueError:
                return None
        fields = [line.rstrip("\r\n").split(self.delimiter) for line in lines] if texts else []
        return values, [[field[self.names.index(name)] for field in fields] for name in texts]

    def _slowly(
        self, records: list[list[str]], numbers: Sequence[str], texts: Sequence[str], done: int
    ) -> Block:
        """Read records field by field: what is missing becomes NaN, and what is wrong is named."""
        if set(map(len, records)) != {len(self.names)}:
            raise InvalidInputError(self._ragged())
        columns = dict(zip(self.names, zip(*records, strict=True), strict=True))
        values = np.empty((len(records), len(numbers)))
        for j, name in enumerate(numbers):
            values[:, j] = _numbers(columns[name], name, lambda i: f"row {done + i + 1}")
        return values, [list(columns[name]) for name in texts]

    def _ragged(self) -> str:
        """Find the first line that has another number of fields, and say so."""
        with _text(self.path, self.encoding) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            for record in reader:
                if record and len(record) != len(self.names):
                    return (
                        f"{self.path} has {len(record)} field{'s' * (len(record) != 1)} in line "
                        f"{reader.line_num}, but {len(self.names)} in the first: the line is damaged, or "
                        "the file is cut off, or its delimiter is another (--delimiter)"
                    )
        raise AssertionError("no record differs")


def _csv(path: Path, delimiter: str | None, encoding: str | None) -> _Csv:
    with _text(path, encoding) as file:
        first = file.readline()
        file.seek(0)
        if "\0" in first:
            raise InvalidInputError(f"{path} is not text: its first line has zero bytes")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        records = list(itertools.islice((record for record in reader if record), PEEK_ROWS + 1))
    if not records:
        raise InvalidInputError(f"{path} is empty")
    has_header = _names_columns(records[0])
    names = [name.strip() for name in records[0]]
    if not has_header:
        names = [f"x{j}" for j in range(len(records[0]))]
    _check_names(names, f"{path}: column")
    body = [record for record in records[has_header:] if len(record) == len(names)]
    if not body and len(records) == 1:
        raise InvalidInputError(f"{path} has column names but no rows")
    columns = zip(*body, strict=True)
    numeric = frozenset(name for name, texts in zip(names, columns, strict=False) if _holds_numbers(texts))
    return _Csv(path, delimiter, encoding, names, has_header, numeric)


def _names_columns(first: Sequence[str]) -> bool:
    """Whether a first line is one of names: not all numbers, or 0, 1, 2, ... as pandas numbers columns."""
    counted = [str(j) for j in range(len(first))]
    return any(_number(text) is None for text in first) or (len(first) > 1 and list(first) == counted)


@dataclass(frozen=True)
class _JsonLines:
    """One JSON object a line; a key that a line lacks is a missing value."""

    path: Path
    encoding: str | None
    names: list[str]
    numeric: frozenset[str]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        known = set(self.names)
        with _saying(self.path):
            objects = _objects(self.path, self.encoding)
            while block := list(itertools.islice(objects, BLOCK_ROWS)):
                lines = [line for line, _ in block]
                for line, item in block:
                    if not item.keys() <= known:
                        new = next(iter(item.keys() - known))
                        raise InvalidInputError(
                            f"line {line} has a key {new!r} that the first {PEEK_ROWS} lines lack"
                        )

                def where(i: int, lines: list[int] = lines) -> str:
                    return f"line {lines[i]}"

                values = np.empty((len(block), len(numbers)))
                for j, name in enumerate(numbers):
                    values[:, j] = _numbers([_plain(item.get(name)) for _, item in block], name, where)
                yield values, [[_plain(item.get(name)) for _, item in block] for name in texts]


def _objects(path: Path, encoding: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    with _text(path, encoding) as file:
        for i, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInputError(f"{path}: line {i} is not JSON: {error.msg}") from error
            if not isinstance(item, dict):
                raise InvalidInputError(f"{path}: line {i} is JSON, but no object with named values")
            yield i, item


def _plain(value: Any) -> str | None:
    """Return a value of JSON or Arrow as text; true and false are 1 and 0."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, bool) else str(value)


def _json_lines(path: Path, encoding: str | None) -> _JsonLines:
    items = [item for _, item in itertools.islice(_objects(path, encoding), PEEK_ROWS)]
    if not items:
        raise InvalidInputError(f"{path} is empty")
    names = list(dict.fromkeys(name for item in items for name in item))
    _check_names(names, f"{path}: key")
    numeric = frozenset(name for name in names if _holds_numbers([_plain(item.get(name)) for item in items]))
    return _JsonLines(path, encoding, names, numeric)


# --- Arrow ---


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise RavineError('Parquet and Arrow files need pyarrow: pip install "ravine[io]"') from error
    return pyarrow


@dataclass(frozen=True)
class _ArrowTable:
    """Record batches of Parquet or Arrow files."""

    path: Path
    names: list[str]
    numeric: frozenset[str]
    batches: Callable[[list[str]], Iterator[Any]]

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name in self.numeric]

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        with _saying(self.path):
            for batch in self.batches(list(dict.fromkeys([*numbers, *texts]))):
                values = np.empty((batch.num_rows, len(numbers)))
                for j, name in enumerate(numbers):
                    values[:, j] = _floats(batch.column(name))
                yield values, [[_plain(value) for value in batch.column(name).to_pylist()] for name in texts]


def _floats(column: Any) -> FloatArray:
    floats: FloatArray = column.cast("float64").to_numpy(zero_copy_only=False)
    return floats


def _schema(path: Path, schema: Any, batches: Callable[[list[str]], Iterator[Any]]) -> _ArrowTable:
    types = _pyarrow().types
    _check_names(schema.names, f"{path}: column")
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    numeric = frozenset(field.name for field in schema if any(check(field.type) for check in checks))
    return _ArrowTable(path, list(schema.names), numeric, batches)


def _parquet(path: Path) -> _ArrowTable:
    _pyarrow()
    from pyarrow import parquet

    def opened() -> Any:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)

    def batches(names: list[str]) -> Iterator[Any]:
        with opened() as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=names, use_threads=False)

    with opened() as file:
        return _schema(path, file.schema_arrow, batches)


def _arrow(path: Path) -> _ArrowTable:
    pyarrow = _pyarrow()

    def opened(file: Any) -> Any:
        try:
            return pyarrow.ipc.open_file(file)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            return pyarrow.ipc.open_stream(file)

    def batches(names: list[str]) -> Iterator[Any]:
        with pyarrow.OSFile(str(path)) as file:
            reader = opened(file)
            whole = (
                (reader.get_batch(i) for i in range(reader.num_record_batches))
                if hasattr(reader, "num_record_batches")
                else iter(reader)
            )
            for batch in whole:
                chosen = batch.select(names)
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield chosen.slice(start, BLOCK_ROWS)

    with pyarrow.OSFile(str(path)) as file:
        return _schema(path, opened(file).schema, batches)


# --- numpy ---


@dataclass(frozen=True)
class Matrix:
    """A numeric matrix whose columns are x0, x1, ...; `beside` are other columns that go with its rows."""

    path: Path
    rows: Any
    beside: dict[str, Any]

    @property
    def features(self) -> list[str]:
        """The columns of the matrix."""
        return [f"x{j}" for j in range(self.rows.shape[1])]

    @property
    def names(self) -> list[str]:
        """Those, and the columns beside."""
        return [*self.features, *self.beside]

    @property
    def numeric(self) -> frozenset[str]:
        """The columns of the matrix."""
        return frozenset(self.features)

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        """Yield slices of the matrix and of what is beside it."""
        place = [int(name[1:]) for name in numbers]
        for start in range(0, self.rows.shape[0], BLOCK_ROWS):
            where = slice(start, start + BLOCK_ROWS)
            rows = self.rows[where]
            columns = [
                self.beside[name][where] if name in self.beside else rows[:, int(name[1:])] for name in texts
            ]
            yield (
                np.asarray(rows[:, place], dtype=np.float64),
                [[_plain(value) for value in column.tolist()] for column in columns],
            )


def _check_matrix(shape: Sequence[int], dtype: Any, what: str) -> None:
    if len(shape) != 2 or np.dtype(dtype).kind not in "biuf":
        raise InvalidInputError(
            f"{what} has to be a matrix of numbers, one row an object; it has shape {tuple(shape)} of {dtype}"
        )


def _npy(path: Path) -> Matrix:
    file: BinaryIO = open(path, "rb")  # noqa: SIM115 - stays open as long as the matrix
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    _check_matrix(shape, dtype, "the array")
    if by_columns and shape[0] > 1 and shape[1] > 1:
        return Matrix(path, np.load(path, mmap_mode="r", allow_pickle=False), {})
    offset = file.tell()
    wanted = offset + shape[0] * shape[1] * dtype.itemsize
    if path.stat().st_size < wanted:
        raise InvalidInputError(f"{path} is cut off: {path.stat().st_size} of {wanted} bytes are there")
    return Matrix(path, FileMatrix(file, (shape[0], shape[1]), dtype, offset), {})


def _npz(path: Path) -> Matrix:
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InvalidInputError(f"{path} is not a whole NPZ file of plain arrays: {error}") from error
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" not in matrices and len(matrices) != 1:
        raise InvalidInputError(
            f"{path} has to hold one matrix, or one called X; it holds {', '.join(arrays)}"
        )
    main = "X" if "X" in matrices else matrices[0]
    _check_matrix(arrays[main].shape, arrays[main].dtype, main)
    n = arrays[main].shape[0]
    beside = {name: array for name, array in arrays.items() if array.shape == (n,)}
    return Matrix(path, arrays[main], beside)
