"""The command that opens the explorer on a file of rows, or on a model and such a file."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ravine
from ravine.cli.commands import fit_table
from ravine.cli.console import Console
from ravine.cli.errors import INTERRUPTED, Ended, UsageError
from ravine.cli.model_commands import check_impute, check_tree, model_of, rows_for
from ravine.cli.options import check_files, make_clusterer
from ravine.cli.reading import opened, read
from ravine.cli.reading_code import reading_code
from ravine.explorer.session import INDEX
from ravine.io.table import Table


def run_explore(arguments: Namespace) -> None:
    """Cluster a file, or load a model, and open the page in which its tree is edited."""

    if len(arguments.files) > 2 or "-" in arguments.files:
        raise UsageError("explore takes a file of rows, or a model and a file of rows")
    import_module("ravine.explorer.server")  # a missing extra is reported before any work
    *model_file, arguments.data = arguments.files
    arguments.model = model_file[0] if model_file else None
    check_files(arguments)
    console = Console(arguments.quiet)
    folder = Path(arguments.session or f"{arguments.data}.explore")
    model, table, ids = _model_and_rows(arguments, console)
    X = table.values if isinstance(table.values, np.ndarray) else table.values[0 : table.n_rows]
    fits = not model_file and not (folder / INDEX).exists()
    if fits:
        fit_table(arguments, console, model, table, X)
    explorer = ravine.explore(
        model,
        X,
        feature_names=table.names,
        row_ids=ids,
        session=folder,
        code=reading_code(arguments, model, table, fits=fits),
        source=Path(arguments.data).name,
        port=arguments.port,
        open_browser=not arguments.no_browser,
    )
    console.print(f"work is saved in {folder}; Ctrl-C ends the explorer")
    print(explorer.address, flush=True)
    try:
        while explorer.is_running:
            time.sleep(0.2)
    except Ended as ended:
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # the signal was received
        if ended.exit_code != INTERRUPTED:
            raise
    finally:
        explorer.stop()


def _model_and_rows(arguments: Namespace, console: Console) -> tuple[Any, Table, list[Any] | None]:
    """Return the model, fitted if it was given, the table, and the ids of its rows."""
    if arguments.model:
        model = model_of(arguments)
        check_tree(arguments, model)
        check_impute(arguments, model)
    else:
        model = make_clusterer(arguments, arguments.method)
    with opened(arguments) as source:
        if arguments.model:
            table = rows_for(arguments, console, model, source)
        else:
            table, _ = read(arguments, console, source)
        ids = [one for block in table.ids() for one in block] if table.id_name else None
    return model, table, ids
