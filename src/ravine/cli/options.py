"""Checks of the options before any data is read: output files, the method and its parameters, the kernel."""

from __future__ import annotations

import ast
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ravine
from ravine.cli.arguments import METHODS
from ravine.cli.errors import UsageError
from ravine.exceptions import InvalidInputError
from ravine.io.atomic import file_to_replace
from ravine.io.label_file import check_label_path


def check_files(arguments: Namespace, *outputs: str) -> None:
    """Refuse outputs that cannot or should not be written."""
    given = {option: Path(getattr(arguments, option)) for option in outputs if getattr(arguments, option)}
    if arguments.command in ("fit", "predict"):
        given = _check_labels(arguments, given)
    if getattr(arguments, "checkpoint", None):
        given["checkpoint"] = Path(arguments.checkpoint)
    options: dict[Path, str] = {}
    for option, path in given.items():
        target = _check_target(option, path)
        if path.exists() and option != "checkpoint" and not arguments.force:
            raise UsageError(f"--{option}: {path} exists; --force overwrites it")
        if target in (Path(name).resolve() for name in _inputs(arguments)):
            raise UsageError(f"--{option}: {path} is the input file")
        if target in options:
            raise UsageError(f"--{option} and --{options[target]} are the same file, {path}")
        options[target] = option


def _check_labels(arguments: Namespace, given: dict[str, Path]) -> dict[str, Path]:
    """Check where labels go; return the files among the outputs, without those that are standard output."""
    labels = {"out": arguments.out, "append": arguments.append}
    if arguments.proba and not any(labels.values()):
        raise UsageError("--proba adds the memberships to a file: name it with --out or --append")
    if list(labels.values()) == ["-", "-"]:
        raise UsageError("--out and --append cannot both be standard output")
    files = {option: path for option, path in given.items() if labels.get(option) != "-"}
    for option in labels.keys() & files.keys():
        with _usage_errors(option):
            check_label_path(files[option])
    return files


def _inputs(arguments: Namespace) -> list[str]:
    """Return the files that a command reads."""
    model = [] if arguments.command == "fit" else [getattr(arguments, "model", None)]
    return [name for name in [*model, getattr(arguments, "data", None)] if name]


@contextmanager
def _usage_errors(option: str) -> Iterator[None]:
    """Turn errors about a path into errors about the option that gives it."""
    try:
        yield
    except InvalidInputError as error:
        raise UsageError(f"--{option}: {error}") from error


def _check_target(option: str, path: Path) -> Path:
    """Return the file that would be replaced, with links followed."""
    with _usage_errors(option):
        target = file_to_replace(path)
    folder = target.parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise UsageError(f"--{option}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--{option}: the folder {folder} is not writable")
    return target


def make_clusterer(arguments: Namespace, method: str) -> Any:
    """Return the estimator that the options describe, after a check of all parameters."""
    make = getattr(ravine, METHODS[method])
    settings = _settings(make, arguments)
    if getattr(arguments, "sql", None):
        _check_sql(arguments, settings)
    if getattr(arguments, "report", None) and isinstance(settings["n_clusters"], int):
        _check_report(settings["n_clusters"])
    model = make(**settings)
    model._check_parameters(1)  # the number of columns is not known before the data is read
    return model


def _check_report(n_clusters: int) -> None:
    """Refuse a report of more clusters than a page has, before the fit."""
    from ravine.view.report import MAX_LEAVES  # `predict` starts without the report

    if n_clusters > MAX_LEAVES:
        raise UsageError(f"--report: a page has at most {MAX_LEAVES} clusters, got --clusters {n_clusters}")


def _check_sql(arguments: Namespace, settings: Mapping[str, Any]) -> None:
    """Refuse what a query cannot compute from the columns of a table."""
    if arguments.method == "auto":
        raise UsageError("--sql needs boundaries in the columns: use --method minimum-density, not auto")
    for name, linear in (("kernel", None), ("n_directions", 1)):
        if settings.get(name, linear) != linear:
            raise UsageError(f"--sql cannot be used with {name}: boundaries are not linear in the columns")


def _settings(make: Any, arguments: Namespace) -> dict[str, Any]:
    """Return the parameters of an estimator that the options give; those of --set come last."""
    found = {"n_clusters": arguments.clusters, "random_state": arguments.seed, "n_jobs": arguments.jobs}
    known = sorted(make().get_params(deep=False))
    kernel = getattr(arguments, "kernel", None)
    given = [("kernel", kernel)] if kernel is not None else []
    given += [(name, _literal(text)) for name, text in getattr(arguments, "set", ())]
    for name, value in given:
        if name not in known:
            raise UsageError(f"{make.__name__} has no parameter {name}; it has {', '.join(known)}")
        found[name] = value
    return found


def _literal(text: str) -> Any:
    """Read a number, a list or another value in Python's syntax; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # the last two: deep nesting
        return text
