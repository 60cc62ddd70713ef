"""The commands. Each checks its options, reads the data, does its work and writes the results."""

from __future__ import annotations

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
from typing import Any

import numpy as np

import ravine
from ravine._validate import IntArray
from ravine.cli.arguments import METHODS
from ravine.cli.console import Console
from ravine.cli.errors import INTERRUPTED, Ended, UsageError
from ravine.cli.options import check_files, make_clusterer
from ravine.exceptions import InvalidInputError
from ravine.io.atomic import write_atomically
from ravine.io.files import open_source
from ravine.io.label_file import write_labels
from ravine.io.source import Source, TableError
from ravine.io.table import Choice, Table, read_for_model, read_table

MAX_FIELD = 1 << 24  # characters per field of text; a quote that is never closed would take the whole file
STANDARD_INPUT = "standard input"
FIT_OUTPUTS = ("out", "model", "report", "sql")
ADVICE = {  # which options help, by the cause of a `TableError` or a note
    "encoding": ("name its encoding, for example --encoding latin-1",),
    "delimiter": ("try another --delimiter",),
    "missing": ("fill them in with --impute median", "leave the columns out with --exclude"),
    "infinite": ("correct them", "leave the columns out with --exclude"),
    "not a number": ("correct it", "leave the column out with --exclude {column}"),
    "text": ("encode it with --one-hot {column}", "leave it out"),
    "text left out": ("--one-hot includes them",),
    "too many values": ("leave it out with --exclude {column}",),
}


def _with_advice(arguments: Namespace, text: str, cause: str | None, column: str = "") -> str:
    """Add to an error or a note which options of this command help."""
    advice = [
        line for line in ADVICE.get(cause or "", ()) if "--exclude" not in line or "exclude" in arguments
    ]
    return f"{text}; {', or '.join(advice).format(column=column)}" if advice else text


@contextmanager
def _data_path(arguments: Namespace) -> Iterator[Path]:
    """Yield the path of the data; standard input is copied to a file, because it is read several times."""
    if arguments.data != "-":
        path = Path(arguments.data)
        if path.is_dir():
            raise InvalidInputError(f"{path} is a folder, not a file")
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="ravine-") as folder:
        path = Path(folder) / STANDARD_INPUT
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def _read(
    arguments: Namespace, console: Console, read: Callable[[Source, Choice], Table] = read_table
) -> tuple[Table, list[str]]:
    """Return the table and the notes about it, which are also printed."""
    csv.field_size_limit(MAX_FIELD)
    one_hot = getattr(arguments, "one_hot", [])
    choice = Choice(
        columns=getattr(arguments, "columns", None),
        exclude=getattr(arguments, "exclude", []),
        id=arguments.id,
        label=arguments.label,
        one_hot="all" if one_hot == ["all"] else one_hot,
        impute=arguments.impute is not None,
    )
    text_format = {"delimiter": arguments.delimiter, "encoding": arguments.encoding}
    with _data_path(arguments) as path:
        try:
            table = read(open_source(path, file_format=arguments.format, **text_format), choice)
        except TableError as error:
            text = str(error).replace(str(path), _source_name(arguments))
            raise InvalidInputError(_with_advice(arguments, text, error.cause, error.column)) from error
    notes = [_with_advice(arguments, *note) for note in table.notes]
    console.notes(notes)
    return table, notes


def _source_name(arguments: Namespace) -> str:
    return STANDARD_INPUT if arguments.data == "-" else str(Path(arguments.data))


def _write_labels(name: str, table: Table, labels: IntArray) -> None:
    write_labels(sys.stdout.buffer if name == "-" else Path(name), table, labels)


def _write_text(path: str | Path, text: str) -> None:
    """Write text; bytes of a file name that are not UTF-8 appear as escapes."""
    write_atomically(Path(path), text.encode(errors="backslashreplace"))


def _write_report(path: str | Path, model: Any, table: Table, arguments: Namespace, **details: Any) -> None:
    classes = None
    if table.class_of is not None:
        classes = np.array([*table.classes, None], dtype=object)[table.class_of]  # -1 is the None at the end
    ids = table.ids_of if table.id_name else None
    source = Path(_source_name(arguments)).name
    _write_text(
        path, ravine.report(model, table.values, row_ids=ids, labels=classes, source=source, **details)
    )


def _scores(table: Table, labels: IntArray) -> dict[str, float]:
    """Compare the clusters with the label column, if there is one; rows without a class do not count."""
    from ravine.view.facts import agreement

    if table.class_of is None or not (table.class_of >= 0).any():
        return {}
    labeled = table.class_of >= 0
    return agreement(table.class_of[labeled], labels[labeled])


def _score_line(scores: Mapping[str, float]) -> str:
    return "against the labels: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items())


def run_fit(arguments: Namespace) -> None:
    """Cluster a file, write the requested outputs, and print the tree."""
    check_files(arguments, *FIT_OUTPUTS)
    model = make_clusterer(arguments, arguments.method)
    console = Console(arguments.quiet)
    table, notes = _read(arguments, console)
    console.print(f"{table.n_rows} rows, {len(table.names)} columns of {_source_name(arguments)}")
    model.set_params(callback=console.progress, n_jobs=arguments.jobs or os.cpu_count())
    start = time.perf_counter()
    with console.capture_warnings() as caught:
        model.fit(table.values)
    seconds = time.perf_counter() - start
    interrupted = any(issubclass(warning.category, ravine.InterruptedWarning) for warning in caught)
    model.set_params(callback=None, n_jobs=arguments.jobs)
    _add_columns(model, table)
    _write_fit(arguments, model, table)
    files = {
        option: path for option in FIT_OUTPUTS if (path := getattr(arguments, option)) not in (None, "-")
    }
    scores = _scores(table, model.labels_)
    stream = sys.stderr if arguments.out == "-" else sys.stdout
    if arguments.json:
        more = {"seconds": seconds, "notes": notes, "files": files, "interrupted": interrupted}
        print(json.dumps({**_summary(arguments, model, table, scores), **more}), file=stream)
    elif not arguments.quiet:
        lines = [f"{'labels' if option == 'out' else option}: {path}" for option, path in files.items()]
        found = [_score_line(scores)] if scores else []
        print(model.tree_.export_text(), *found, *lines, sep="\n", file=stream)
    if interrupted:
        sys.stdout.flush()
        raise Ended(f"interrupted: the result has the {model.n_clusters_} clusters found so far", INTERRUPTED)


def _add_columns(model: Any, table: Table) -> None:
    """Store in a fitted model the names of its columns and the values that replace missing ones."""
    model.feature_names_in_ = np.array(table.names, dtype=object)
    if not model.tree_.mapped:
        model.tree_ = replace(model.tree_, feature_names=table.names)
    if table.fill is not None:
        model.fill_ = table.fill


def _write_fit(arguments: Namespace, model: Any, table: Table) -> None:
    if arguments.out:
        _write_labels(arguments.out, table, model.labels_)
    if arguments.model:
        ravine.save(model, arguments.model)
    if arguments.sql:
        _write_text(arguments.sql, model.tree_.export_sql(arguments.table, arguments.dialect) + ";\n")
    if arguments.report:
        _write_report(arguments.report, model, table, arguments, command=arguments.typed)


def _summary(arguments: Namespace, model: Any, table: Table, scores: Mapping[str, float]) -> dict[str, Any]:
    tree = model.tree_
    return {
        "n_rows": table.n_rows,
        "columns": list(table.names),
        "method": arguments.method,
        "n_clusters": model.n_clusters_,
        "sizes": np.bincount(model.labels_, minlength=int(tree.label.max()) + 1).tolist(),
        "scores": scores,
        "splits": [
            {"node": int(node), "quality": tree.splits[node].quality, "weight": float(tree.weight[node])}
            for node in tree.inner
        ],
        "passes": model.n_passes_,
    }


def _load_and_read(arguments: Namespace, console: Console) -> tuple[Any, Table]:
    """Return a clusterer and the rows of a file, with the columns that it was fitted on."""
    model = ravine.load(arguments.model)
    if not hasattr(model, "tree_"):
        kind = type(model).__name__
        raise UsageError(f"{arguments.model} holds a {kind}, and this command needs a clusterer: use Python")
    fill = getattr(model, "fill_", None) if arguments.impute else None
    if arguments.impute and fill is None:
        raise UsageError("--impute: the model was fitted without it and has no medians; fit it again with it")
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else tuple(map(str, names))

    def read(source: Source, choice: Choice) -> Table:
        return read_for_model(source, names, model.n_features_in_, choice, fill)

    return model, _read(arguments, console, read)[0]


def run_predict(arguments: Namespace) -> None:
    """Assign the rows of a file to the clusters of a model."""
    check_files(arguments, "out")
    console = Console(arguments.quiet)
    model, table = _load_and_read(arguments, console)
    with warnings.catch_warnings():  # the columns were already matched by name
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        labels = model.predict(table.values)
    _write_labels(arguments.out, table, labels)
    if scores := _scores(table, labels):
        console.print(_score_line(scores))
    if arguments.out != "-":
        console.print(f"labels: {arguments.out}")


def run_report(arguments: Namespace) -> None:
    """Write a page about a model and the rows of a file."""
    check_files(arguments, "out")
    console = Console(arguments.quiet)
    model, table = _load_and_read(arguments, console)
    _write_report(arguments.out, model, table, arguments, feature_names=table.names, title=arguments.title)
    console.print(f"report: {arguments.out}")


def run_compare(arguments: Namespace) -> None:
    """Run all methods and rank them by their separation probability (MSP), which needs no labels."""
    from ravine.estimators.selection import MIN_SHARE, fit_candidate, rank

    check_files(arguments)
    models = {method: make_clusterer(arguments, method) for method in METHODS}
    console = Console(arguments.quiet)
    table, _ = _read(arguments, console)
    candidates = []
    with console.capture_warnings():
        for method, model in models.items():
            model.set_params(n_jobs=arguments.jobs or os.cpu_count())
            candidates.append(fit_candidate(method, model, table.values, None, MIN_SHARE))
            console.print(f"{method}: {candidates[-1].n_clusters} clusters, {candidates[-1].seconds:.1f} s")
    found = [
        {
            "method": candidate.name,
            "MSP": candidate.separation_probability,
            "smallest": candidate.smallest_share,
            "n_clusters": candidate.n_clusters,
            "seconds": candidate.seconds,
            **_scores(table, candidate.estimator.labels_),
        }
        for candidate in sorted(candidates, key=rank, reverse=True)
    ]
    print(json.dumps(found) if arguments.json else _format_table(found))


def _format_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return entries with the same keys as lines of text: the first column to the left, others right."""
    cells = [
        list(entries[0]),
        *([f"{v:.3f}" if isinstance(v, float) else str(v) for v in entry.values()] for entry in entries),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        right = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *right]))
    return "\n".join(lines)


DEMO_START = """\
1797 handwritten digits, each an image of 8 x 8 pixels: 64 numbers per row.
ravine looks for ten clusters without knowing which digit is which.
"""
DEMO_END = """
How to read this: a hyperplane splits every line that names one in two, through a valley of the
density. Depth 0 is no valley at all, depth 1 an empty gap; the pixels named have the most influence
(+ for the lower branch, - for the upper one).

It took {seconds:.2f} s. Now look at the true digits: {purity:.0%} of the rows belong to the most
frequent digit of their cluster (purity), and the V-measure is {v_measure:.2f} (1 is perfect, 0 is chance).

What to try next:
    ravine fit your.csv --report report.html          # your own table, one row per observation
or in Python:
    from ravine import MinimumDensity
    model = MinimumDensity(n_clusters=10).fit(X)
    model.labels_, model.predict(X_new), print(model.tree_.export_text())

The same with pictures, for your browser:
    {path}"""


def run_demo(arguments: Namespace) -> None:
    """Cluster the handwritten digits into ten, explain the result, and write a page about it."""
    from sklearn.datasets import load_digits

    from ravine import MinimumDensity, metrics

    check_files(arguments, "report")
    path = Path(arguments.report or Path(tempfile.mkdtemp(prefix="ravine-")) / "digits.html")
    digits = load_digits()
    print(DEMO_START)
    names = [f"row{i // 8}col{i % 8}" for i in range(64)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MinimumDensity(2).fit(digits.data[:200])  # compiles, which would otherwise count as time of the fit
        start = time.perf_counter()
        model = MinimumDensity(n_clusters=10, random_state=0).fit(digits.data)
        seconds = time.perf_counter() - start
    print(model.tree_.export_text(names))
    page = ravine.report(
        model,
        digits.data,
        feature_names=names,
        labels=digits.target,
        title="Ten clusters of handwritten digits",
        source="the digits of scikit-learn",
        command=arguments.typed,
    )
    _write_text(path, page)
    purity, v_measure = (score(digits.target, model.labels_) for score in (metrics.purity, metrics.v_measure))
    print(DEMO_END.format(seconds=seconds, purity=purity, v_measure=v_measure, path=path.resolve()))
