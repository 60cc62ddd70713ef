"""The Python that reads a file and fits a model as a command did, for the script of an explorer."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any


def reading_code(arguments: Namespace, model: Any) -> list[str]:
    """Return the lines that make `X` and `model`; only what differs from the defaults is written."""
    source = [repr(str(Path(arguments.data).resolve()))]
    source += _given(
        file_format=arguments.format,
        delimiter=arguments.delimiter,
        encoding=arguments.encoding,
        decimal=arguments.decimal,
        skip=arguments.skip or None,
    )
    file = f"open_source({', '.join([f'Path({source[0]})', *source[1:]])})"
    lines = ["from pathlib import Path", "", "from ravine.io.files import open_source"]
    if getattr(arguments, "model", None):
        choice = _given(id=arguments.id, label=arguments.label)
        fill = "model.fill_" if arguments.impute else "None"
        return [
            *lines,
            "from ravine.io.table import Choice, read_for_model",
            "",
            f"model = ravine.load({str(Path(arguments.model).resolve())!r})",
            'names = getattr(model, "feature_names_in_", None)',
            f"choice = Choice({', '.join(choice)})",
            f"table = read_for_model({file}, names, model.n_features_in_, choice, {fill})",
            "X = table.values[0 : table.n_rows]",
        ]
    choice = _given(
        columns=arguments.columns,
        exclude=arguments.exclude or None,
        id=arguments.id,
        label=arguments.label,
        one_hot=("all" if arguments.one_hot == ["all"] else arguments.one_hot) or None,
        impute=True if arguments.impute else None,
    )
    parameters = _given(random_state=arguments.seed, methods=getattr(model, "methods", None))
    fit = ", ".join([repr(arguments.clusters), *parameters])
    return [
        *lines,
        "from ravine.io.table import Choice, read_table",
        "",
        f"table = read_table({file}, Choice({', '.join(choice)}))",
        "X = table.values[0 : table.n_rows]",
        f"model = ravine.{type(model).__name__}({fit}).fit(X)",
    ]


def _given(**options: Any) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]
