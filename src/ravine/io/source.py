"""A table in a file, whatever its format: its columns, which of them hold numbers, and blocks of rows."""

from __future__ import annotations

import csv
import gzip
import itertools
import lzma
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ravine._validate import FloatArray
from ravine.exceptions import InvalidInputError, RavineError

Texts = list[str | None]
Block = tuple[FloatArray, list[Texts]]
Cause = Literal[
    "encoding",
    "delimiter",
    "missing",
    "infinite",
    "not a number",
    "text",
    "text left out",
    "dates left out",
    "units left out",
    "index left out",
    "decimal comma",
    "too many values",
    "model",
]

BLOCK_ROWS = 4096  # rows per block: enough to hide the cost of a Python call, and at 100 columns only 3 MB
PEEK_ROWS = 4096  # rows at the start of a file that decide which columns hold numbers, and in which format
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # in lower case


class TableError(InvalidInputError):
    """A table cannot be read as requested.

    `cause` and `column` let a program add advice in its own terms, such as the name of an option.
    """

    def __init__(self, message: str, cause: Cause | None = None, column: str = "") -> None:
        super().__init__(message)
        self.cause, self.column = cause, column


Note = tuple[str, Cause | None]  # a sentence about a table, with a cause as in `TableError`


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """A table that can be read any number of times, in blocks of rows.

    `names` has all columns, `numeric` those that hold numbers, `dates` those of the others that hold dates,
    and `units` those that hold numbers with text (12.5 kg). Without a header in the file
    (`has_header=False`) the names are x0, x1, ... Columns without a name in the header are `unnamed`, and
    those that are `no_features` are read only on request: an index, as pandas writes it, and columns without
    a name and without values.
    """

    path: Path
    names: list[str]
    numeric: frozenset[str]
    dates: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    has_header: bool = True
    unnamed: tuple[str, ...] = ()
    no_features: frozenset[str] = frozenset()

    @cached_property
    def place(self) -> dict[str, int]:
        """The number of each column, from 0 on, by its name."""
        return {name: j for j, name in enumerate(self.names)}

    @property
    def notes(self) -> list[Note]:
        """Sentences about how the file is read, besides those about its columns of text."""
        notes: list[Note] = []
        if not self.has_header:
            text = "the first line holds numbers, so it is read as a row; columns are x0, x1, ..."
            notes.append((text, None))
        for name in self.unnamed:
            if name not in self.no_features:
                notes.append((f"column {self.place[name] + 1} has no name: it is called {name}", None))
        n_index = len(list(itertools.takewhile(self.no_features.__contains__, self.names)))
        if n_index == 1:
            text = "the first column has no name and looks like an index: it is left out"
            notes.append((text, "index left out"))
        elif n_index:
            text = f"the first {n_index} columns have no names and look like an index: they are left out"
            notes.append((text, "index left out"))
        return notes

    def blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]:
        """Yield blocks of the given columns: numbers as one array (NaN where missing), texts as lists."""
        with translate_read_errors(self.path):
            yield from self._blocks(numbers, texts)

    @abstractmethod
    def _blocks(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Block]: ...


@contextmanager
def translate_read_errors(path: Path) -> Iterator[None]:
    """Turn every error in the content of a file into a `TableError` of one line that names the file."""
    try:
        yield
    except (RavineError, gzip.BadGzipFile, LookupError) as error:
        text = str(error)
        text = text if text.startswith(str(path)) else f"{path}: {text}"
        raise TableError(text, getattr(error, "cause", None), getattr(error, "column", "")) from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        text = f"{path} is not {error.encoding.upper()} text (it contains the byte 0x{byte:02x})"
        raise TableError(text, "encoding") from error
    except (ValueError, EOFError, csv.Error, OSError, lzma.LZMAError) as error:
        # pyarrow reports damaged files as an OSError without a number; the others come from the system
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "field limit" in str(error):
            limit = csv.field_size_limit()
            text = f"{path} has a field of more than {limit} characters; is a closing quote missing?"
            raise TableError(text) from error
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path} cannot be read: {first_line}") from error


def counted(n: int, what: str) -> str:
    """Return a number with its noun, which has an s unless the number is 1.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{n} {what}{'s' * (n != 1)}"


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse columns without a name, and columns with the same name."""
    for i, name in enumerate(names):
        if not name.strip():
            raise TableError(f"{what} {i + 1} has no name; name it in the file")
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f"{count} columns are named {name!r}; rename them in the file")


def to_text(value: Any) -> str | None:
    """Return a value of JSON, Arrow or numpy as text; true and false become 1 and 0."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, bool) else str(value)


def is_missing(text: str | None) -> bool:
    """Whether a field stands for a missing value."""
    return text is None or text.strip().lower() in MISSING
