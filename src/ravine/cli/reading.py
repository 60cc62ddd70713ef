"""Reading the table of a command: which options apply, and which of them help when it cannot be read."""

from __future__ import annotations

import csv
import shlex
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ravine.cli.console import Console
from ravine.exceptions import InvalidInputError
from ravine.io.files import open_source
from ravine.io.source import Source, TableError
from ravine.io.table import Choice, Table, read_table
from ravine.view.check import check

MAX_FIELD = 1 << 24  # characters per field of text; a quote that is never closed would take the whole file
ADVICE = {  # which options help, by what a `TableError`, a note or a finding is about
    "encoding": "name its encoding, for example --encoding latin-1",
    "delimiter": "try another --delimiter, or skip lines at the top with --skip",
    "missing": "fill them in with --impute median, or leave the columns out with --exclude",
    "infinite": "correct them, or leave the columns out with --exclude",
    "not a number": "correct it, or leave the column out with --exclude {columns}",
    "text": "leave it out of --columns",
    "text left out": "--id copies one to the output",
    "unnamed left out": "--columns uses them, --id copies one to the output",
    "id": "leave it out with --exclude {columns}, or copy it to the output with --id",
    "constant": "constant columns have no influence",
    "two-valued": "--exclude {columns} leaves out what should not define clusters",
}


def with_advice(arguments: Namespace, text: str, about: str | None, columns: str = "") -> str:
    """Add to an error or a note which options help; `predict` and `report` cannot leave columns out."""
    advice = ADVICE.get(about or "", "").format(columns=columns)
    if "exclude" not in arguments:
        advice = advice.split(", or leave")[0]
    return f"{text}; {advice}" if advice else text


@contextmanager
def data_path(arguments: Namespace) -> Iterator[Path]:
    """Yield the path of the data; standard input is copied to a file, because it is read several times."""
    if arguments.data != "-":
        yield Path(arguments.data)
        return
    with tempfile.TemporaryDirectory(prefix="ravine-") as folder:
        path = Path(folder) / source_name(arguments)
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def source_name(arguments: Namespace) -> str:
    """Return how messages name the data."""
    return "standard input" if arguments.data == "-" else str(Path(arguments.data))


@contextmanager
def opened(arguments: Namespace) -> Iterator[Source]:
    """Yield the table of a command; errors about it, also later, end with advice."""
    csv.field_size_limit(MAX_FIELD)
    options = {name: getattr(arguments, name) for name in ("delimiter", "encoding", "skip")}
    with data_path(arguments) as path:
        try:
            yield open_source(path, **options)
        except TableError as error:
            text = str(error).replace(str(path), source_name(arguments))
            raise InvalidInputError(with_advice(arguments, text, error.about, error.column)) from error


def read(
    arguments: Namespace,
    console: Console,
    source: Source,
    reader: Callable[[Source, Choice], Table] = read_table,
) -> tuple[Table, list[str]]:
    """Return the table and the notes about it, which are also printed."""
    choice = Choice(
        columns=getattr(arguments, "columns", None),
        exclude=getattr(arguments, "exclude", []),
        id=arguments.id,
        label=arguments.label,
        impute=arguments.impute is not None,
        memory_limit=getattr(arguments, "memory_limit", None),
    )
    table = reader(source, choice)
    notes = [with_advice(arguments, *note) for note in table.notes]
    console.notes(notes)
    return table, notes


def check_notes(arguments: Namespace, table: Table) -> list[str]:
    """Return what `ravine.check` finds in a table, with the options that help."""
    return [
        with_advice(arguments, finding.fact, finding.kind, exclude_value(finding.columns))
        for finding in check(table.values, table.names)
    ]


def exclude_value(names: Sequence[str]) -> str:
    """Return the value of --exclude for some columns."""
    return shlex.quote(",".join(f'"{name}"' if "," in name else name for name in names))
