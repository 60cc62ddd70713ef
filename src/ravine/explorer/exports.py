"""What can be saved from a session: labels, model, SQL, report, script."""

from __future__ import annotations

import copy
import io
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ravine.explorer.answers import Answers
from ravine.io.label_file import write_delimited
from ravine.store.model_file import save
from ravine.view.report import report


def model_of(answers: Answers) -> Any:
    """Return the model with the tree as it is now."""
    state, shown = answers.view_state()
    model = copy.copy(state.model)
    names = None if shown.tree.mapped else tuple(shown.names)
    model.tree_ = replace(shown.tree, feature_names=names or shown.tree.feature_names)
    model.labels_ = shown.tree.label[shown.leaf]
    return model


def _labels(answers: Answers) -> bytes:
    (state, shown), ids = answers.view_state(), answers.row_ids
    labels, names = shown.tree.label[shown.leaf], state.names
    kinds = {"row" if ids is None else "id": "text", "cluster": "row"}
    columns = [list(range(len(labels)) if ids is None else ids), labels]
    if names:
        kinds["name"] = "text"
        columns.append([names.get(k, "") for k in labels.tolist()])
    file = io.BytesIO()
    write_delimited(file, ",", kinds, [columns])
    return file.getvalue()


def _model(answers: Answers) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ravine-") as folder:
        path = Path(folder) / "model.ravine"
        save(model_of(answers), path)
        return path.read_bytes()


def _sql(answers: Answers) -> bytes:
    tree, table = model_of(answers).tree_, Path(answers.title).stem or "data"
    return f"{tree.export_sql(table, columns=answers.view_state()[1].names)};\n".encode(
        errors="backslashreplace"
    )


def _report(answers: Answers) -> bytes:
    state, shown = answers.view_state()
    page = report(
        model_of(answers),
        answers.session.rows.X,
        feature_names=shown.names,
        names=state.names,
        row_ids=answers.row_ids,
        row_html=answers.row_html,
        source=answers.title,
    )
    return page.encode(errors="backslashreplace")


def _script(answers: Answers) -> bytes:
    return answers.session.script().encode(errors="backslashreplace")


# the file of each export, its type, and the function that makes its content
EXPORTS: dict[str, tuple[str, str, Callable[[Answers], bytes]]] = {
    "labels": ("labels.csv", "text/csv", _labels),
    "model": ("model.ravine", "application/octet-stream", _model),
    "sql": ("clusters.sql", "text/plain", _sql),
    "report": ("report.html", "text/html", _report),
    "script": ("clusters.py", "text/x-python", _script),
}
