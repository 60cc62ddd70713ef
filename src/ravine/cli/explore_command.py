"""The command that opens the explorer on a file of rows, or on a model and such a file."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ravine
from ravine.cli.arguments import build_parser
from ravine.cli.commands import fit_table
from ravine.cli.console import Console
from ravine.cli.errors import UsageError
from ravine.cli.model_commands import model_of, rows_for
from ravine.cli.options import check_files, make_clusterer
from ravine.cli.reading import opened, read
from ravine.explorer.session import INDEX
from ravine.io.table import Table


def run_explore(arguments: Namespace) -> None:
    """Cluster a file, or load a model, and open the page in which its tree is edited."""
    import_module("ravine.explorer.server")  # a missing extra is reported before any work
    _name_files(arguments)
    check_files(arguments)
    console = Console(arguments.quiet)
    folder = Path(arguments.session or f"{arguments.data}.explore")
    model, table, ids = _model_and_rows(arguments, console)
    X = table.values[0 : table.n_rows]  # in memory
    fits = not arguments.model and not (folder / INDEX).exists()
    if fits:
        fit_table(arguments, console, model, table, X)
    explorer = ravine.explore(
        model,
        X,
        feature_names=table.names,
        row_ids=ids,
        session=folder,
        code=starting_code(arguments, model, fits=fits),
        source=Path(arguments.data).name,
        port=arguments.port,
        open_browser=not arguments.no_browser,
    )
    console.print(f"work is saved in {folder}; Ctrl-C ends the explorer")
    print(explorer.address, flush=True)
    try:
        while explorer.is_running:
            time.sleep(0.2)
    except SystemExit:
        pass  # a signal is how the explorer ends
    finally:
        explorer.stop()


def _name_files(arguments: Namespace) -> None:
    """Tell the model and the data apart."""
    if len(arguments.files) > 2 or "-" in arguments.files:
        raise UsageError("explore takes a file of rows, or a model and a file of rows")
    *model_file, arguments.data = arguments.files
    arguments.model = model_file[0] if model_file else None


def _model_and_rows(arguments: Namespace, console: Console) -> tuple[Any, Table, list[Any] | None]:
    """Return the model, fitted if it was given, the table, and the ids of its rows."""
    if arguments.model:
        model = model_of(arguments)
    else:
        model = make_clusterer(arguments, arguments.method)
    with opened(arguments) as source:
        if arguments.model:
            table = rows_for(arguments, console, model, source)
        else:
            table, _ = read(arguments, console, source)
        ids = [one for block in table.ids() for one in block] if table.id_name else None
    return model, table, ids


def starting_code(arguments: Namespace, model: Any, *, fits: bool) -> list[str]:
    """Return the Python that reads the rows as the command does, and loads or fits its model."""
    typed = shlex.split(arguments.typed)
    words = [str(Path(word).resolve()) if word in arguments.files else word for word in typed]
    lines = ["from ravine.cli.explore_command import read_rows", "", f"X = read_rows({shlex.join(words)!r})"]
    if arguments.model:
        lines.append(f"model = ravine.load({str(Path(arguments.model).resolve())!r})")
    elif fits:
        methods = f", methods={model.methods!r}" if getattr(model, "methods", None) else ""
        made = f"{type(model).__name__}({arguments.clusters!r}, random_state={arguments.seed}{methods})"
        lines.append(f"model = ravine.{made}.fit(X)")
    return lines


def read_rows(command: str) -> npt.NDArray[Any]:
    """Return the rows that `ravine explore` reads, by the words of the command."""
    arguments = build_parser().parse_args(shlex.split(command)[1:])
    _name_files(arguments)
    table = _model_and_rows(arguments, Console(quiet=True))[1]
    return np.asarray(table.values[0 : table.n_rows])
