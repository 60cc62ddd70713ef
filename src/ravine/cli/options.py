"""Checks of the options before any data is read: output files, the method and its parameters, the kernel."""

from __future__ import annotations

import ast
import difflib
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

OWN_OPTIONS = {  # parameters that --set refuses, and the option that sets them
    "n_clusters": "; use --clusters",
    "random_state": "; use --seed",
    "n_jobs": "; use --jobs",
    "kernel": "; use --kernel",
    "checkpoint": "; use --checkpoint",
    "verbose": "",
}
KERNEL_OPTIONS = {"gamma": "gamma", "components": "n_components", "landmarks": "landmarks"}
LABEL_OUTPUTS = ("out", "append")
SWITCHES = {"standardize": ("auto",)}  # parameters that are on or off, or one of these words
LINEAR = [  # what --method auto tries if its result is to be explained by columns
    *("minimum-density", "spectral-connectivity", "maximin-separation", "maximum-margin"),
]
YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


def check_files(arguments: Namespace, *outputs: str) -> None:
    """Refuse outputs that cannot or should not be written, and a standard input that is closed."""
    if getattr(arguments, "data", None) == "-" and "stdin" in arguments.closed:
        raise UsageError("standard input is closed, so there are no rows to read; name a file")
    given = {option: Path(getattr(arguments, option)) for option in outputs if getattr(arguments, option)}
    for option in LABEL_OUTPUTS if arguments.command in ("fit", "predict") else ():
        if getattr(arguments, option) == "-":
            del given[option]
            if "stdout" in arguments.closed:
                raise UsageError(f"--{option}: standard output is closed; name a file")
        elif option in given:
            with _usage_errors(option):
                check_label_path(given[option])
    if getattr(arguments, "proba", False) and not any(getattr(arguments, o) for o in LABEL_OUTPUTS):
        raise UsageError("--proba adds the memberships to a file: name it with --out or --append")
    if [getattr(arguments, option, None) for option in LABEL_OUTPUTS] == ["-", "-"]:
        raise UsageError("--out and --append cannot both be standard output")
    options: dict[Path, str] = {}
    for option, path in given.items():
        target = _check_target(option, path)
        if path.exists() and not arguments.force:
            raise UsageError(f"--{option}: {path} exists; --force overwrites it")
        if target in (Path(name).resolve() for name in _inputs(arguments)):
            raise UsageError(f"--{option}: {path} is the input file")
        if target in options:
            raise UsageError(f"--{option} and --{options[target]} are the same file, {path}")
        options[target] = option
    checkpoint = getattr(arguments, "checkpoint", None)
    if checkpoint:
        target = _check_target("checkpoint", Path(checkpoint))
        if target in options:
            raise UsageError(f"--checkpoint and --{options[target]} are the same file, {checkpoint}")


def _inputs(arguments: Namespace) -> list[str]:
    """Return the files that a command reads."""
    model = [] if arguments.command == "fit" else [getattr(arguments, "model", "")]
    return [*model, getattr(arguments, "data", "")]


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
    if getattr(arguments, "report", None) and isinstance(arguments.clusters, int):
        _check_report(arguments.clusters)
    if method == "auto" and (arguments.command == "explore" or arguments.report or arguments.sql):
        settings.setdefault("methods", LINEAR)
    model = make(
        n_clusters=arguments.clusters, random_state=arguments.seed, n_jobs=arguments.jobs, **settings
    )
    model._check_parameters(1)  # the number of columns is not known before the data is read
    return model


def _check_report(n_clusters: int) -> None:
    """Refuse a report of more clusters than a page has, before the fit."""
    from ravine.view.report import MAX_LEAVES  # `predict` starts without the report

    if n_clusters > MAX_LEAVES:
        raise UsageError(f"--report: a page has at most {MAX_LEAVES} clusters, got --clusters {n_clusters}")


def _settings(make: Any, arguments: Namespace) -> dict[str, Any]:
    """Return the parameters given by --set and by the options of the kernel."""
    defaults = make().get_params(deep=False)
    known = sorted(set(defaults) - set(OWN_OPTIONS))
    settings: dict[str, Any] = {}
    for name, text in getattr(arguments, "set", ()):
        if name in OWN_OPTIONS:
            raise UsageError(f"--set: {name} cannot be set here{OWN_OPTIONS[name]}")
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            guess = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise UsageError(f"--set: {make.__name__} has no parameter {name}; {guess}")
        is_switch = isinstance(defaults[name], bool) or name in SWITCHES
        settings[name] = _switch(name, text) if is_switch else _literal(text)
    if getattr(arguments, "sql", None):
        if arguments.one_hot:
            raise UsageError("--sql cannot be used with --one-hot: a table has no columns for the indicators")
        if settings.get("n_directions", 1) != 1:
            raise UsageError("--sql cannot be used with --set n_directions: boundaries are not linear")
    if arguments.command == "fit":
        settings |= _kernel_settings(arguments, settings, defaults)
    return settings


def _switch(name: str, text: str) -> bool | str:
    """Read the value of a parameter that is on or off."""
    word, others = text.strip().lower(), SWITCHES.get(name, ())
    if word in others:
        return word
    if word not in (*YES, *NO):
        raise UsageError(f"--set {name}: expected {', '.join(['yes', *others])} or no, got {text!r}")
    return word in YES


def _literal(text: str) -> Any:
    """Read a number, a list or another value in Python's syntax; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # the last two: deep nesting
        return text


def _kernel_settings(
    arguments: Namespace, settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the kernel and its parameters, from their own options and from --set kernel_params=..."""
    given = {name: getattr(arguments, name) for name in KERNEL_OPTIONS if hasattr(arguments, name)}
    kernel = arguments.kernel
    if kernel is None:
        if given:
            raise UsageError(f"--{next(iter(given))} needs a kernel: add --kernel rbf, for example")
        return {}
    if "kernel" not in defaults:
        raise UsageError("--kernel cannot be used with --method auto, which tries diffusion itself")
    if arguments.sql:
        reason = "the boundaries are not linear in the columns"
        raise UsageError(f"--sql is not available with --kernel: {reason}")
    if kernel in ("chi2", "additive_chi2") and settings.get("standardize", defaults["standardize"]):
        reason = "standardized columns have negative ones: add --set standardize=no"
        raise InvalidInputError(f"--kernel {kernel} needs values of at least 0, and {reason}")
    others = settings.get("kernel_params") or {}
    if not isinstance(others, Mapping):
        raise UsageError(f"--set kernel_params: expected a dict such as {{'degree': 2}}, got {others!r}")
    for name in given:
        if KERNEL_OPTIONS[name] in others:
            raise UsageError(f"--{name} and --set kernel_params both set {KERNEL_OPTIONS[name]}")
    parameters = {**others, **{KERNEL_OPTIONS[name]: value for name, value in given.items()}}
    return {"kernel": kernel, "kernel_params": parameters or None}
