"""What can be saved from a session: labels, model, SQL, report, script."""

from __future__ import annotations

import copy
import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ravine.explorer.answers import Answers
from ravine.io.label_file import write_delimited
from ravine.store.model_file import save
from ravine.view.report import report

EXPORTS = {
    "labels": ("labels.csv", "text/csv"),
    "model": ("model.ravine", "application/octet-stream"),
    "sql": ("clusters.sql", "text/plain"),
    "report": ("report.html", "text/html"),
    "script": ("clusters.py", "text/x-python"),
}


class Export:
    """Writes the present state in one of several forms."""

    def __init__(self, answers: Answers, source: str | None = None, table: str = "data") -> None:
        self.answers, self.source, self.table = answers, source, table

    def make(self, what: str) -> bytes:
        """Return the content of an export."""
        made: str | bytes = getattr(self, f"_{what}")()
        return made.encode(errors="backslashreplace") if isinstance(made, str) else made

    def model(self) -> Any:
        """Return the model with the tree as it is now."""
        shown = self.answers.shown()
        model = copy.copy(shown.state.model)
        names = None if shown.tree.mapped else tuple(shown.names)
        model.tree_ = replace(shown.tree, feature_names=names or shown.tree.feature_names)
        model.labels_ = shown.tree.label[shown.leaf]
        return model

    def _labels(self) -> bytes:
        shown, ids = self.answers.shown(), self.answers.row_ids
        labels, names = shown.tree.label[shown.leaf], shown.state.names
        kinds = {"row" if ids is None else "id": "text", "cluster": "row"}
        columns = [list(range(len(labels)) if ids is None else ids), labels]
        if names:
            kinds["name"] = "text"
            columns.append([names.get(k, "") for k in labels.tolist()])
        file = io.BytesIO()
        write_delimited(file, ",", kinds, [columns])
        return file.getvalue()

    def _model(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="ravine-") as folder:
            path = Path(folder) / "model.ravine"
            save(self.model(), path)
            return path.read_bytes()

    def _sql(self) -> str:
        text: str = self.model().tree_.export_sql(self.table, columns=self.answers.shown().names)
        return f"{text};\n"

    def _report(self) -> str:
        shown, X = self.answers.shown(), self.answers.session.rows.X
        return report(
            self.model(),
            X,
            feature_names=shown.names,
            names=shown.state.names,
            colors=shown.state.colors,
            row_ids=self.answers.row_ids,
            row_html=self.answers.row_html,
            source=self.source,
        )

    def _script(self) -> str:
        return self.answers.session.script()
