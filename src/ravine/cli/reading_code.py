"""The Python that reads a file and fits a model as a command did, for the script of an explorer."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ravine.io.table import Table


def reading_code(arguments: Namespace, model: Any, table: Table, *, fits: bool = True) -> list[str]:
    """Return the lines that make `X`, and `model` if it was loaded or if the command `fits` it.

    Only what differs from the defaults is written.
    """
    source = _given(
        file_format=arguments.format,
        delimiter=arguments.delimiter,
        encoding=arguments.encoding,
        decimal=arguments.decimal,
        skip=arguments.skip or None,
    )
    is_plain = not source and not arguments.impute and table.names == table.columns
    lines = []
    if arguments.model:
        lines.append(f"model = ravine.load({str(Path(arguments.model).resolve())!r})")
    path = str(Path(arguments.data).resolve())
    if is_plain:
        lines += [f"X = ravine.open({path!r}, columns={list(table.names)!r})", "X = X[0 : X.shape[0]]"]
    else:
        file = f"open_source({', '.join([f'Path({path!r})', *source])})"
        read = "read_for_model" if arguments.model else "read_table"
        lines = [
            "from pathlib import Path",
            "",
            "# indicators, medians and the format of text have no public names",
            "from ravine.io.files import open_source",
            f"from ravine.io.table import Choice, {read}",
            "",
            *lines,
            f"table = {read}({file}, {_choice(arguments)})",
            "X = table.values[0 : table.n_rows]",
        ]
    if fits and not arguments.model:
        parameters = _given(random_state=arguments.seed, methods=getattr(model, "methods", None))
        fit = ", ".join([repr(arguments.clusters), *parameters])
        lines.append(f"model = ravine.{type(model).__name__}({fit}).fit(X)")
    return lines


def _choice(arguments: Namespace) -> str:
    """Return what is read of a table, as further arguments of `read_for_model` or `read_table`."""
    if arguments.model:
        names, choice = (
            'getattr(model, "feature_names_in_", None)',
            _given(id=arguments.id, label=arguments.label),
        )
        fill = "model.fill_" if arguments.impute else "None"
        return f"{names}, model.n_features_in_, Choice({', '.join(choice)}), {fill}"
    choice = _given(
        columns=arguments.columns,
        exclude=arguments.exclude or None,
        id=arguments.id,
        label=arguments.label,
        one_hot=("all" if arguments.one_hot == ["all"] else arguments.one_hot) or None,
        impute=True if arguments.impute else None,
    )
    return f"Choice({', '.join(choice)})"


def _given(**options: Any) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]
