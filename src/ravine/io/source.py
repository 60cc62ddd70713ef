"""A table in a file, whatever its format: columns, which of them hold numbers, and blocks of rows.

What a file cannot be read for is said in one sentence, an `InvalidInputError` that starts with its name.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ravine._validate import FloatArray
from ravine.exceptions import InvalidInputError, RavineError

Texts = list[str | None]
Block = tuple[FloatArray, list[Texts]]

BLOCK_ROWS = 4096


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


@contextmanager
def saying(path: Path) -> Iterator[None]:
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
        if "field limit" in str(error):
            raise InvalidInputError(
                f"{path} has a field of more than {csv.field_size_limit()} characters; is a quote not closed?"
            ) from error
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(f"{path} cannot be read: {first_line}") from error


def _of_arrow(error: OSError) -> bool:
    """Whether an error of the system is pyarrow's word for a broken file."""
    return error.errno is None


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse columns without a name, and two of one name."""
    for i, name in enumerate(names):
        if not name.strip():
            raise InvalidInputError(f"{what} {i + 1} has no name; name it in the file")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidInputError(f"{names.count(twice)} columns are called {twice!r}; rename them in the file")


def plain(value: Any) -> str | None:
    """Return a value of JSON or Arrow as text; true and false are 1 and 0."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, bool) else str(value)
