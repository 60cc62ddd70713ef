"""A table in a file, whatever its format: its columns, which of them hold numbers, and blocks of rows."""

from __future__ import annotations

import csv
import gzip
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ravine._validate import FloatArray
from ravine.exceptions import InvalidInputError, RavineError

Texts = list[str | None]
Block = tuple[FloatArray, list[Texts]]
# A sentence about a table, and a word for what it is about: a program that knows the word can add advice in
# its own terms, such as the name of an option.
Note = tuple[str, str | None]

# Rows per block: enough to hide the cost of a Python call, and at 100 columns only 3 MB. The first block of
# text decides which columns hold numbers.
BLOCK_ROWS = 4096
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # fields without a value, in lower case


class TableError(InvalidInputError):
    """A table cannot be read as requested; `about` is as in `Note`, and `column` the name of a column."""

    def __init__(self, message: str, about: str | None = None, column: str = "") -> None:
        super().__init__(message)
        self.about, self.column = about, column


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """A table that can be read any number of times, in blocks of rows.

    `names` has all columns and `numeric` those that hold numbers. Columns that are `unnamed` in the file,
    such as an index that pandas wrote, are read only on request. `notes` say how the file is read.
    """

    path: Path
    names: list[str]
    numeric: frozenset[str]
    unnamed: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()

    @cached_property
    def place(self) -> dict[str, int]:
        """The number of each column, from 0 on, by its name."""
        return {name: j for j, name in enumerate(self.names)}

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
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        text = f"{path} is not {error.encoding.upper()} text (it contains the byte 0x{byte:02x})"
        raise TableError(text, "encoding") from error
    except (RavineError, gzip.BadGzipFile, LookupError) as error:
        text = str(error)
        text = text if text.startswith(str(path)) else f"{path}: {text}"
        raise TableError(text, getattr(error, "about", None), getattr(error, "column", "")) from error
    except (ValueError, EOFError, csv.Error, OSError, zlib.error) as error:
        # pyarrow reports damaged files as an OSError without a number; the others come from the system
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = str(error).split("\n")[0] or type(error).__name__
        if "field limit" in what:
            what = f"a field has more than {csv.field_size_limit()} characters; is a closing quote missing?"
        raise TableError(f"{path} cannot be read: {what}") from error


def counted(n: int, what: str) -> str:
    """Return a number with its noun, which has an s unless the number is 1.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{n} {what}{'s' * (n != 1)}"


def check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse columns with the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f"{path}: {count} columns are named {name!r}; rename them in the file")


def to_text(value: Any) -> str | None:
    """Return a value of Arrow or numpy as text; true and false become 1 and 0."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, bool) else str(value)


def is_missing(text: str | None) -> bool:
    """Whether a field stands for a missing value."""
    return text is None or text.strip().lower() in MISSING
