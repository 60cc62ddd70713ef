"""What commands write and print about a result: labels, reports, scores."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ravine
from ravine._validate import FloatArray, IntArray
from ravine.cli.reading import source_name
from ravine.io.atomic import write_atomically
from ravine.io.label_file import write_labels, write_rows
from ravine.io.source import Source
from ravine.io.table import Table


def write_clusters(
    arguments: Namespace,
    source: Source,
    table: Table,
    model: Any,
    labels: IntArray,
    place: Callable[[str], Path],
) -> None:
    """Write the clusters of the rows to --out and --append, with the memberships if --proba asks for them.

    `place` returns where the file of a name is written, see `all_or_none`.
    """
    if not arguments.out and not arguments.append:
        return
    shares = _memberships(model, table) if arguments.proba else None
    if arguments.out:
        write_labels(_target(arguments.out, place), table, labels, shares)
    if arguments.append:
        write_rows(_target(arguments.append, place), source, labels, shares)


def _memberships(model: Any, table: Table) -> FloatArray:
    """Return the memberships of the rows of a table, also of a model with one cluster."""
    several = model.n_clusters_ > 1
    return np.asarray(model.predict_proba(table.values) if several else np.ones((table.n_rows, 1)))


def _target(name: str, place: Callable[[str], Path]) -> Any:
    return sys.stdout.buffer if name == "-" else place(name)


def write_text(path: str | Path, text: str) -> None:
    """Write text; bytes of a file name that are not UTF-8 appear as escapes."""
    write_atomically(Path(path), text.encode(errors="backslashreplace"))


def write_report(
    path: Path, model: Any, table: Table, arguments: Namespace, command: str | None = None
) -> None:
    """Write a page about a model and the rows of a table."""
    classes = None
    if table.class_of is not None:
        classes = np.array([*table.classes, None], dtype=object)[table.class_of]  # -1 is the None at the end
    ids = table.ids_of if table.id_name else None
    source = Path(source_name(arguments)).name
    page = ravine.report(
        model,
        table.values,
        feature_names=table.names,
        row_ids=ids,
        labels=classes,
        source=source,
        command=command,
    )
    write_text(path, page)


def scores_of(table: Table, labels: IntArray) -> dict[str, float]:
    """Compare the clusters with the label column, if there is one; rows without a class do not count."""
    if table.class_of is None or not (table.class_of >= 0).any():
        return {}
    from ravine.view.facts import scores_against  # `predict` starts without scikit-learn's metrics

    labeled = table.class_of >= 0
    return scores_against(table.class_of[labeled], labels[labeled])


def score_line(scores: Mapping[str, float]) -> str:
    """Return the scores as one line."""
    return "against the labels: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
