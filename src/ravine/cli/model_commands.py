"""The commands that use a model file: predict, show and cut."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from ravine._validate import on_one_line
from ravine.cli.console import Console
from ravine.cli.errors import UsageError
from ravine.cli.options import check_files
from ravine.cli.reading import opened, read
from ravine.cli.results import score_line, scores_of, write_clusters, write_report
from ravine.io.atomic import all_or_none
from ravine.io.source import Source
from ravine.io.table import Choice, Table, read_for_model
from ravine.store.model_file import load, save, stored_parameters


def model_of(arguments: Namespace, *, needs_tree: bool = True) -> Any:
    """Read the model of a command, and refuse one that it cannot use."""
    model = load(arguments.model)
    if needs_tree and not hasattr(model, "tree_"):
        text = f"{arguments.model} contains a {type(model).__name__}, but this command needs a clusterer"
        raise UsageError(f"{text}; use it from Python")
    if getattr(arguments, "impute", None) and not hasattr(model, "fill_"):
        text = "--impute: the model was fitted without it and has no medians"
        raise UsageError(f"{text}; fit again with --impute")
    return model


def rows_for(arguments: Namespace, console: Console, model: Any, source: Source) -> Table:
    """Return the rows of a file, with the columns that a model was fitted on."""
    fill = model.fill_ if arguments.impute else None

    def reader(source: Source, choice: Choice) -> Table:
        return read_for_model(source, columns_of(model), model.n_features_in_, choice, fill)

    return read(arguments, console, source, reader)[0]


def columns_of(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, if they have names."""
    return list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None


def run_predict(arguments: Namespace) -> None:
    """Assign the rows of a file to the clusters of a model, and write the requested outputs."""
    if not (arguments.out or arguments.append or arguments.report):
        arguments.out = "-"
    check_files(arguments, "out", "append", "report")
    console = Console(arguments.quiet)
    model = model_of(arguments)
    with opened(arguments) as source:
        table = rows_for(arguments, console, model, source)
        labels = model.predict(table.values)
        with all_or_none() as place:
            write_clusters(arguments, source, table, model, labels, place)
            if arguments.report:
                write_report(place(arguments.report), model, table, arguments)
    if scores := scores_of(table, labels):
        console.print(score_line(scores))
    for option in ("out", "append", "report"):
        if (name := getattr(arguments, option)) not in (None, "-"):
            console.print(f"{'labels' if option == 'out' else option}: {name}")


def run_show(arguments: Namespace) -> None:
    """Print what a model file holds: method, columns, parameters and tree."""
    model = _winner(model_of(arguments, needs_tree=False))
    kind, parameters, columns = type(model).__name__, stored_parameters(model), columns_of(model)
    tree, imputes = getattr(model, "tree_", None), hasattr(model, "fill_")
    if arguments.json:
        facts = {
            "class": kind,
            "n_features": model.n_features_in_,
            "columns": columns,
            "imputes": imputes,
            "parameters": parameters,
            "n_clusters": None if tree is None else tree.n_clusters,
            "tree": None if tree is None else json.loads(tree.to_json()),
        }
        print(json.dumps(facts))
        return
    named = "" if columns is None else f": {', '.join(map(on_one_line, columns))}"
    given = [f"{name}={value!r}" for name, value in parameters.items() if value is not None]
    print(f"{kind}({', '.join(given)})")
    print(f"{model.n_features_in_} columns{named}")
    if imputes:
        print("with the medians of the columns, for --impute median")
    if tree is not None:
        print(
            f"{tree.n_clusters} cluster{'s' * (tree.n_clusters > 1)} of {tree.weight[0]:g} rows",
            tree,
            sep="\n",
        )


def _winner(model: Any) -> Any:
    """Return the estimator in a model file, which of an `AutoCluster` is its winner."""
    return getattr(model, "best_estimator_", model)


def run_cut(arguments: Namespace) -> None:
    """Write a model with fewer clusters: the first splits of its tree. Leaves that share a label are one.

    Of an `AutoCluster` the winner is written, because the cut is not its choice.
    """
    check_files(arguments, "out")
    model = _winner(model_of(arguments))
    model.tree_ = model.tree_.cut(arguments.clusters)
    save(model.set_params(n_clusters=arguments.clusters), arguments.out)
    print(model.tree_, f"model: {arguments.out}", sep="\n")
