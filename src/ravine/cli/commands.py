"""What each command of the command line does."""

from __future__ import annotations

import ast
import csv
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

import ravine
from ravine._validate import IntArray
from ravine.cli.arguments import INTERRUPTED, Ended, UsageError, methods
from ravine.cli.console import Voice
from ravine.cli.label_file import check_labels_name, write_labels
from ravine.exceptions import InvalidInputError
from ravine.io.files import open_source
from ravine.io.source import Source
from ravine.io.table import Choice, Table, read_for_model, read_table

OWN_OPTIONS = {  # parameters that have an option of their own, or none
    "n_clusters": "--clusters",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "kernel": "--kernel",
    "callback": "nothing",
    "verbose": "nothing",
}
LONGEST_FIELD = 1 << 24  # characters; a quote that is never closed makes one field of the rest of a file
YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


# --- files in and out ---


@contextmanager
def _source(arguments: Namespace) -> Iterator[tuple[Source, Path]]:
    """Open the data; standard input is kept in a file while it is read."""
    csv.field_size_limit(LONGEST_FIELD)
    told = {"kind": arguments.format, "delimiter": arguments.delimiter, "encoding": arguments.encoding}
    if arguments.data != "-":
        path = Path(arguments.data)
        if path.is_dir():
            raise InvalidInputError(f"{path} is a folder, not a file")
        yield open_source(path, **told), path
        return
    if "stdin" in arguments.closed:
        raise UsageError("standard input is closed, so that there are no rows to read; name a file")
    with tempfile.TemporaryDirectory(prefix="ravine-") as folder:
        path = Path(folder) / "standard input"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield open_source(path, **told), path
        except InvalidInputError as error:
            raise InvalidInputError(str(error).replace(str(path), "standard input")) from error


def _choice(arguments: Namespace) -> Choice:
    one_hot = getattr(arguments, "one_hot", [])
    return Choice(
        columns=getattr(arguments, "columns", None),
        exclude=getattr(arguments, "exclude", []),
        id=arguments.id,
        label=arguments.label,
        one_hot="all" if one_hot == ["all"] else one_hot,
        impute=arguments.impute is not None,
    )


def _check_outputs(arguments: Namespace, *options: str) -> None:
    """Refuse what could not be written, or should not be, before any work is done."""
    given = {option: Path(getattr(arguments, option)) for option in options if getattr(arguments, option)}
    if arguments.command != "report" and str(given.get("out")) == "-":
        del given["out"]
        if "stdout" in arguments.closed:
            raise UsageError("--out: standard output is closed; name a file")
    places: dict[Path, str] = {}
    for option, path in given.items():
        real = _file_to_replace(option, path)
        if path.exists() and not arguments.force:
            raise UsageError(f"--{option}: {path} is there already; --force overwrites it")
        if real == Path(getattr(arguments, "data", "")).resolve():
            raise UsageError(f"--{option}: {path} is the file that is read")
        if real in places:
            raise UsageError(f"--{option} and --{places[real]} are the same file, {path}")
        places[real] = option


def _file_to_replace(option: str, path: Path) -> Path:
    """Return the file behind the name of an output, or say why it cannot be written."""
    from ravine.io.atomic import file_to_replace

    try:
        real = file_to_replace(path)
    except InvalidInputError as error:
        raise UsageError(f"--{option}: {error}; name a file") from error
    folder = real.parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise UsageError(f"--{option}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--{option}: the folder {folder} may not be written to")
    return real


def _write_text(path: str | Path, text: str) -> None:
    """Write a text at once or not at all; bytes of a file's name that are no UTF-8 are written as codes."""
    from ravine.io.atomic import write_atomically

    write_atomically(Path(path), text.encode(errors="backslashreplace"))


# --- fit ---


def _clusterer(method: str) -> Any:
    from ravine.estimators.clusterer import TreeClusterer

    found = getattr(ravine, methods()[method])
    assert issubclass(found, TreeClusterer)
    return found


def _settings(make: Any, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read the parameters of --set: a number, a list, yes or no, None, or else a word."""
    usual = make().get_params(deep=False)
    known = sorted(set(usual) - set(OWN_OPTIONS))
    settings: dict[str, Any] = {}
    for name, text in given:
        if name in OWN_OPTIONS:
            raise UsageError(f"--set: {name} is not set here; use {OWN_OPTIONS[name]}")
        if name not in known:
            raise UsageError(f"--set: {make.__name__} has no {name}; it has {', '.join(known)}")
        settings[name] = _switch(name, text) if isinstance(usual[name], bool) else _literal(text)
    return settings


def _switch(name: str, text: str) -> bool:
    """Read a parameter that is on or off."""
    word = text.strip().lower()
    if word not in (*YES, *NO):
        raise UsageError(f"--set {name}: yes or no is needed, not {text!r}")
    return word in YES


def _literal(text: str) -> Any:
    """Read a number, a list or another value as Python writes it, or else a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # also brackets in brackets
        return text


KERNEL_OPTIONS = {"gamma": "gamma", "components": "n_components", "landmarks": "landmarks"}


def _kernel_settings(arguments: Namespace, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel and its parameters, from options of their own and from --set kernel_params=..."""
    given = {name: getattr(arguments, name) for name in KERNEL_OPTIONS if hasattr(arguments, name)}
    if arguments.kernel is None:
        if given:
            raise UsageError(f"--{next(iter(given))} belongs to a kernel: add --kernel rbf, for instance")
        return {}
    for option in ("report", "sql"):
        if getattr(arguments, option):
            raise UsageError(f"--{option}: there is none with --kernel, whose boundaries are of no columns")
    others = settings.get("kernel_params") or {}
    if not isinstance(others, Mapping):
        raise UsageError(f"--set kernel_params: a dict such as {{'degree': 2}} is needed, not {others!r}")
    for name in given:
        if KERNEL_OPTIONS[name] in others:
            raise UsageError(f"--{name} and --set kernel_params both give {KERNEL_OPTIONS[name]}")
    found = {**others, **{KERNEL_OPTIONS[name]: value for name, value in given.items()}}
    return {"kernel": arguments.kernel, "kernel_params": found or None}


def _named(model: Any, table: Table) -> Any:
    """Let a fitted model know the names of its columns and what missing values are filled with."""
    model.feature_names_in_ = np.array(table.names, dtype=object)
    if not model.tree_.mapped:
        model.tree_ = replace(model.tree_, feature_names=table.names)
    if table.fill is not None:
        model.fill_ = table.fill
    return model


def _scores(table: Table, labels: IntArray) -> dict[str, float]:
    """Compare the clusters with the label column, where there is one; rows without a class do not count."""
    from ravine.view.facts import agreement

    if table.class_of is None or not (table.class_of >= 0).any():
        return {}
    there = table.class_of >= 0
    return agreement(table.class_of[there], labels[there])


def _classes(table: Table) -> Any:
    """Return the class of every row as text, None where there is none."""
    if table.class_of is None:
        return None
    return np.array([*table.classes, None], dtype=object)[table.class_of]


def run_fit(arguments: Namespace) -> None:
    """Cluster a file, write what was asked for, and say what was found."""
    _check_outputs(arguments, "out", "model", "report", "sql")
    check_labels_name(arguments.out)
    voice = Voice(arguments.quiet, sys.stderr)
    with _source(arguments) as (source, path):
        table = read_table(source, path, _choice(arguments))
    name = "standard input" if arguments.data == "-" else str(path)
    voice.notes(table.notes)
    voice.say(f"{table.n_rows} rows, {len(table.names)} columns of {name}")
    make = _clusterer(arguments.method)
    settings = _settings(make, arguments.set)
    model = make(
        n_clusters=arguments.clusters,
        random_state=arguments.seed,
        n_jobs=arguments.jobs or os.cpu_count(),
        callback=voice.progress,
        **{**settings, **_kernel_settings(arguments, settings)},
    )
    if arguments.sql and any("=" in feature and feature not in source.names for feature in table.names):
        raise UsageError("--sql: a table has no columns for the indicators that --one-hot makes")
    began = time.perf_counter()
    with voice.listening() as caught:
        model.fit(table.values)
    seconds = time.perf_counter() - began
    interrupted = any(issubclass(warning.category, ravine.InterruptedWarning) for warning in caught)
    model.set_params(callback=None, n_jobs=arguments.jobs)
    _named(model, table)
    _write_fit(arguments, model, table, Path(name).name)
    written = {
        option: getattr(arguments, option)
        for option in ("out", "model", "report", "sql")
        if getattr(arguments, option) and getattr(arguments, option) != "-"
    }
    scores = _scores(table, model.labels_)
    if arguments.json:
        stream = sys.stderr if arguments.out == "-" else sys.stdout
        found = _as_json(arguments, model, table, scores, written, seconds)
        print(json.dumps({**found, "interrupted": interrupted}), file=stream)
    elif not arguments.quiet:
        _tell(model, scores, written, sys.stderr if arguments.out == "-" else sys.stdout)
    if interrupted:
        sys.stdout.flush()
        raise Ended(f"interrupted: the result has the {model.n_clusters_} clusters found so far", INTERRUPTED)


def _write_fit(arguments: Namespace, model: Any, table: Table, source: str) -> None:
    if arguments.out:
        write_labels(arguments.out, table, model.labels_)
    if arguments.model:
        ravine.save(model, arguments.model)
    if arguments.sql:
        sql = model.tree_.export_sql(arguments.table, arguments.dialect) + ";\n"
        _write_text(arguments.sql, sql)
    if arguments.report:
        page = ravine.report(
            model,
            table.values,
            row_ids=table.ids_of if table.id_name else None,
            labels=_classes(table),
            source=source,
            command=arguments.typed,
        )
        _write_text(arguments.report, page)


def _sizes(model: Any, labels: IntArray) -> list[int]:
    return [int(size) for size in np.bincount(labels, minlength=int(model.tree_.label.max()) + 1)]


def _as_json(
    arguments: Namespace,
    model: Any,
    table: Table,
    scores: dict[str, float],
    written: dict[str, str],
    seconds: float,
) -> dict[str, Any]:
    return {
        "n_rows": table.n_rows,
        "columns": list(table.names),
        "method": arguments.method,
        "n_clusters": model.n_clusters_,
        "sizes": _sizes(model, model.labels_),
        "scores": scores,
        "splits": [
            {
                "node": int(node),
                "quality": model.tree_.splits[node].quality,
                "weight": float(model.tree_.weight[node]),
            }
            for node in model.tree_.inner
        ],
        "passes": model.n_passes_,
        "seconds": seconds,
        "notes": list(table.notes),
        "files": written,
    }


def _tell(model: Any, scores: dict[str, float], written: dict[str, str], stream: TextIO) -> None:
    print(model.tree_.export_text(), file=stream)
    if scores:
        told = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
        print(f"against the labels: {told}", file=stream)
    for option, path in written.items():
        print(f"{ {'out': 'labels'}.get(option, option) }: {path}", file=stream)


# --- with a model ---


def _load_clusterer(path: str) -> Any:
    """Read a model that has clusters; a classifier has none to write or to show."""
    model = ravine.load(path)
    if not hasattr(model, "tree_"):
        raise UsageError(
            f"{path} holds a {type(model).__name__}, and this command needs a clusterer: "
            "read it in Python with ravine.load"
        )
    return model


def _read_with(model: Any, arguments: Namespace, source: Source, path: Path) -> Table:
    fill = getattr(model, "fill_", None)
    if arguments.impute and fill is None:
        raise UsageError(
            "--impute: the model was fitted without it, so it knows no medians; fit it again with it"
        )
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else tuple(map(str, names))
    fill = fill if arguments.impute else None
    return read_for_model(source, path, names, model.n_features_in_, _choice(arguments), fill)


def run_predict(arguments: Namespace) -> None:
    """Give the rows of a file the clusters of a model."""
    _check_outputs(arguments, "out")
    check_labels_name(arguments.out)
    model = _load_clusterer(arguments.model)
    voice = Voice(arguments.quiet, sys.stderr)
    with _source(arguments) as (source, path):
        table = _read_with(model, arguments, source, path)
    voice.notes(table.notes)
    with warnings.catch_warnings():  # columns were found by their names already
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        labels = model.predict(table.values)
    write_labels(arguments.out, table, labels)
    scores = _scores(table, labels)
    if scores:
        voice.say("against the labels: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items()))
    if arguments.out != "-":
        voice.say(f"labels: {arguments.out}")


def run_report(arguments: Namespace) -> None:
    """Write a page about a model and the rows of a file."""
    _check_outputs(arguments, "out")
    model = _load_clusterer(arguments.model)
    voice = Voice(arguments.quiet, sys.stderr)
    with _source(arguments) as (source, path):
        table = _read_with(model, arguments, source, path)
    voice.notes(table.notes)
    page = ravine.report(
        model,
        table.values,
        feature_names=table.names,
        row_ids=table.ids_of if table.id_name else None,
        labels=_classes(table),
        title=arguments.title,
        source="standard input" if arguments.data == "-" else path.name,
    )
    _write_text(arguments.out, page)
    voice.say(f"report: {arguments.out}")


# --- compare ---


def run_compare(arguments: Namespace) -> None:
    """Run all methods and rank them by their separation probability (MSP), which needs no labels."""
    from ravine.estimators.selection import MIN_SHARE, fit_candidate, rank

    voice = Voice(arguments.quiet, sys.stderr)
    with _source(arguments) as (source, path):
        table = read_table(source, path, _choice(arguments))
    voice.notes(table.notes)
    judged = []
    with voice.listening():
        for method in methods():
            model = _clusterer(method)(
                n_clusters=arguments.clusters,
                random_state=arguments.seed,
                n_jobs=arguments.jobs or os.cpu_count(),
            )
            judged.append(fit_candidate(method, model, table.values, None, MIN_SHARE))
            voice.say(f"{method}: {judged[-1].n_clusters} clusters, {judged[-1].seconds:.1f} s")
    found = [
        {
            "method": candidate.name,
            "MSP": candidate.separation_probability,
            "smallest": candidate.smallest_share,
            "n_clusters": candidate.n_clusters,
            "seconds": candidate.seconds,
            **_scores(table, candidate.estimator.labels_),
        }
        for candidate in sorted(judged, key=rank, reverse=True)
    ]
    if arguments.json:
        print(json.dumps(found))
        return
    titles = ["method", "MSP", "smallest", "n_clusters", "seconds", *_score_names(found)]
    rows = [[_cell(entry[title]) for title in titles] for entry in found]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in [titles, *rows]:
        print(
            "  ".join(
                f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}"
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _score_names(found: Sequence[dict[str, Any]]) -> list[str]:
    own = {"method", "MSP", "smallest", "seconds", "n_clusters"}
    return [name for name in found[0] if name not in own]


# --- demo ---


def run_demo(arguments: Namespace) -> None:
    """Cluster the digits into ten, say in plain words what was found, and write the page about it."""
    from sklearn.datasets import load_digits

    from ravine import MinimumDensity, metrics

    if arguments.report:
        _check_outputs(arguments, "report")
        path = Path(arguments.report)
    else:
        path = Path(tempfile.mkdtemp(prefix="ravine-")) / "digits.html"
    digits = load_digits()
    n, d = digits.data.shape
    print(f"{n} handwritten digits, each an image of 8 x 8 pixels: {d} numbers a row.")
    print("ravine looks for ten clusters without being told which digit is which.\n")
    names = [f"row{i // 8}col{i % 8}" for i in range(d)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MinimumDensity(2).fit(digits.data[:200])
        began = time.perf_counter()
        model = MinimumDensity(n_clusters=10, random_state=0).fit(digits.data)
        seconds = time.perf_counter() - began
    print(model.tree_.export_text(names))
    purity = metrics.purity(digits.target, model.labels_)
    v_measure = metrics.v_measure(digits.target, model.labels_)
    page = ravine.report(
        model,
        digits.data,
        feature_names=names,
        labels=digits.target,
        title="Ten clusters of handwritten digits",
        source="the digits of scikit-learn",
        command=arguments.typed,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_text(path, page)
    print(
        "\nHow to read this: every line with a split is cut in two by a hyperplane through a valley of\n"
        "the density. Depth 0 is no valley at all, depth 1 an empty gap; the pixels named drive the\n"
        "split (+ for the lower branch, - for the upper one).\n\n"
        f"It took {seconds:.2f} s. Now look at the true digits: {purity:.0%} of the rows belong to the\n"
        f"main digit of their cluster (purity), and the V-measure is {v_measure:.2f} (1 is perfect,\n"
        "0 is chance).\n\n"
        "What to try next:\n"
        "    ravine fit your.csv --report report.html          # your own table, one row an object\n"
        "or in Python:\n"
        "    from ravine import MinimumDensity\n"
        "    model = MinimumDensity(n_clusters=10).fit(X)\n"
        "    model.labels_, model.predict(X_new), print(model.tree_.export_text())\n\n"
        "The same with pictures, for your browser:\n"
        f"    {path.resolve()}"
    )


COMMANDS: dict[str, Callable[[Namespace], None]] = {
    "fit": run_fit,
    "predict": run_predict,
    "report": run_report,
    "compare": run_compare,
    "demo": run_demo,
}
