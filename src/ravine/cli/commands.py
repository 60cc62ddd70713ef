"""The commands that fit: fit, compare and demo. Each checks its options before it reads the data."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import ravine
from ravine import MinimumDensity, metrics
from ravine._validate import FloatArray, listed
from ravine.cli.arguments import METHODS
from ravine.cli.console import Console
from ravine.cli.options import check_files, make_clusterer
from ravine.cli.reading import check_notes, exclude_value, opened, read, source_name
from ravine.cli.results import score_line, scores_of, write_clusters, write_report, write_text
from ravine.estimators.methods import DIFFUSION
from ravine.io.atomic import all_or_none
from ravine.io.source import Source, counted
from ravine.io.table import Table

FIT_OUTPUTS = ("out", "append", "model", "report", "sql")


def run_fit(arguments: Namespace) -> None:
    """Cluster a file, write the requested outputs, and print the tree."""
    check_files(arguments, *FIT_OUTPUTS)
    model = make_clusterer(arguments, arguments.method)
    console = Console(arguments.quiet)
    with opened(arguments) as source:
        _fit(arguments, console, model, source)


def _fit(arguments: Namespace, console: Console, model: Any, source: Source) -> None:
    table, notes = read(arguments, console, source)
    own = {"checkpoint": arguments.checkpoint} if arguments.checkpoint else {}
    start = time.perf_counter()
    found = fit_table(arguments, console, model, table, table.values, **own)
    seconds = time.perf_counter() - start
    _write_fit(arguments, model, source, table)
    if arguments.checkpoint:
        Path(arguments.checkpoint).unlink(missing_ok=True)  # the results are written
    files = {
        option: path for option in FIT_OUTPUTS if (path := getattr(arguments, option)) not in (None, "-")
    }
    stream = sys.stderr if "-" in (arguments.out, arguments.append) else sys.stdout
    if arguments.json:
        more = {"seconds": seconds, "notes": notes + found, "files": files}
        print(json.dumps({**_summary(arguments, model, table), **more}), file=stream)
    else:
        print(*_lines(model, table, files), sep="\n", file=stream)


def fit_table(
    arguments: Namespace, console: Console, model: Any, table: Table, rows: Any, **own: Any
) -> list[str]:
    """Fit a model to the rows of a table; return the notes, which are printed.

    `own` are parameters of this fit only, which the model does not keep.
    """
    notes = check_notes(arguments, table)
    console.notes(notes)
    size = f"{counted(table.n_rows, 'row')}, {counted(len(table.names), 'column')}"
    console.print(f"{size} of {source_name(arguments)}")
    own |= {"verbose": console.progress, "n_jobs": model.n_jobs or os.cpu_count()}
    before = {name: getattr(model, name) for name in own}
    model.set_params(**own)
    with console.capture_warnings() as caught:
        model.fit(rows)
    model.set_params(**before)
    _add_columns(model, table)
    found = _warning_texts(arguments, table, caught)
    console.notes(found)
    return notes + found


def _warning_texts(
    arguments: Namespace, table: Table, caught: Sequence[warnings.WarningMessage]
) -> list[str]:
    """Return warnings as notes, each once; constant columns are named already."""
    texts = dict.fromkeys(_warning_text(arguments, table, warning.message) for warning in caught)
    return [text for text in texts if "columns are constant" not in text]


def _warning_text(arguments: Namespace, table: Table, message: Any) -> str:
    """Return a warning as a note, with the names of columns, and with advice in terms of options."""
    if isinstance(message, ravine.DiscreteColumnWarning):
        shown = [table.names[j] for j in message.columns]
        advice = f"--exclude {exclude_value(shown)} leaves out what should not define clusters"
        return f"{message.reason} ({listed(shown)}); {advice}, --clusters auto ignores these gaps"
    if isinstance(message, ravine.OutlierWarning):
        offered = arguments.command == "fit" and "outliers" not in dict(arguments.set)
        label = "; --set outliers=label labels them -1" if offered else ""
        return str(message).replace("; see outliers_, and check", f"{label}; check")
    if not isinstance(message, ravine.OneClusterWarning):
        return str(message)
    kernel = ", --kernel diffusion" if getattr(arguments, "kernel", "") is None else ""
    data = shlex.quote(arguments.data)
    return f"{message.reason}; try --clusters 2{kernel}, or all methods with 'ravine compare {data}'"


def _add_columns(model: Any, table: Table) -> None:
    """Store in a fitted model the names of its columns and the values that replace missing ones."""
    if hasattr(model, "best_estimator_"):
        _add_columns(model.best_estimator_, table)
        return
    model.feature_names_in_ = np.array(table.names, dtype=object)
    if not model.tree_.mapped:
        model.tree_ = replace(model.tree_, feature_names=table.names)
    if table.fill is not None:
        model.fill_ = table.fill


def _write_fit(arguments: Namespace, model: Any, source: Source, table: Table) -> None:
    with all_or_none() as place:
        write_clusters(arguments, source, table, model, model.labels_, place)
        if arguments.model:
            ravine.save(model, place(arguments.model))
        if arguments.sql:
            sql = model.tree_.export_sql(arguments.table, arguments.dialect)
            write_text(place(arguments.sql), f"{sql};\n")
        if arguments.report:
            write_report(place(arguments.report), model, table, arguments, arguments.typed)


def _lines(model: Any, table: Table, files: Mapping[str, str]) -> Iterator[str]:
    """Yield what is printed about a result."""
    yield model.tree_.export_text()
    if hasattr(model, "candidates_"):
        yield str(model.candidates_)
    if model.n_clusters_ > 1:
        text = "a column with + has higher values on the lower branch"
        yield f"quality: 0 is no valley, 1 an empty gap; {text}"
    if scores := scores_of(table, model.labels_):
        yield score_line(scores)
    for option, path in files.items():
        yield f"{'labels' if option == 'out' else option}: {path}"


def _summary(arguments: Namespace, model: Any, table: Table) -> dict[str, Any]:
    """Return a result as JSON has it."""
    tree, labels = model.tree_, model.labels_
    judged = {"candidates": [vars(c) for c in model.candidates_]} if hasattr(model, "candidates_") else {}
    return {
        **judged,
        "n_rows": table.n_rows,
        "columns": list(table.names),
        "method": arguments.method,
        "n_clusters": model.n_clusters_,
        "sizes": np.bincount(labels[labels >= 0], minlength=int(tree.label.max()) + 1).tolist(),
        "n_outliers": len(model.outliers_),
        "scores": scores_of(table, labels),
        "splits": [
            {"node": int(node), "quality": tree.splits[node].quality, "weight": float(tree.weight[node])}
            for node in tree.inner
        ],
        "passes": model.n_passes_,
    }


def run_compare(arguments: Namespace) -> None:
    """Run all methods, two of them also on the diffusion map, and rank them without labels."""
    check_files(arguments)
    models = {method: make_clusterer(arguments, method) for method in METHODS if method != "auto"}
    for method in [method for method in models if METHODS[method] in DIFFUSION]:
        models[f"{method} diffusion"] = clone(models[method]).set_params(kernel="diffusion")
    for model in models.values():
        model.set_params(n_jobs=arguments.jobs or os.cpu_count())
    console = Console(arguments.quiet)
    with opened(arguments) as source:
        table, _ = read(arguments, console, source)
    console.notes(check_notes(arguments, table))
    with console.capture_warnings() as caught:
        selection = ravine.select(table.values, models)
    console.notes(_warning_texts(arguments, table, caught))
    if n_far := max(len(candidate.estimator.outliers_) for candidate in selection):
        console.notes([f"{counted(n_far, 'row')} far from all others left out of the searches"])
    scores = [scores_of(table, candidate.estimator.labels_) for candidate in selection]
    if arguments.json:
        found = zip(selection, scores, strict=True)
        print(json.dumps([{**candidate.figures(), **own} for candidate, own in found]))
        return
    print(selection)
    for candidate, own in zip(selection, scores, strict=True):
        if own:
            print(f"{candidate.name} {score_line(own)}")


DEMO_END = """
How to read this: every line with a quality is a split, where a hyperplane divides the rows in two at a
valley of their density. Quality 0 is no valley, 1 an empty gap. The pixels with the most influence are named:
with +, rows with higher values go to the lower branch; with -, to the upper one.

It took {seconds:.2f} s. Now look at the true digits: {purity:.0%} of the rows belong to the most
frequent digit of their cluster (purity), and the V-measure is {v_measure:.2f} (1 is perfect, 0 is chance).

What to try next:
    ravine fit your.csv --report report.html          # your own table, one row per observation
or in Python:
    from ravine import MinimumDensity
    model = MinimumDensity(n_clusters=10).fit(X)
    model.labels_, model.predict(X_new), print(model.tree_)

The same with pictures, for your browser:
    {path}"""


def _digit_picture(image: FloatArray) -> str:
    """Return an image of 8 x 8 pixels of 0 to 16 as a picture on a page."""
    dots = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" opacity="{value / 16:.2g}"/>'
        for (y, x), value in np.ndenumerate(image)
        if value
    )
    size = 'viewBox="0 0 8 8" width="40" height="40"'
    return f'<svg {size} fill="currentColor" aria-hidden="true">{dots}</svg>'


def run_demo(arguments: Namespace) -> None:
    """Cluster the handwritten digits into ten, explain the result, and write a page about it."""
    from sklearn.datasets import load_digits

    check_files(arguments, "report")
    path = Path(arguments.report or Path(tempfile.mkdtemp(prefix="ravine-")) / "digits.html")
    digits = load_digits()
    print("1797 handwritten digits, each an image of 8 x 8 pixels: 64 numbers per row.")
    print("ravine looks for ten clusters without knowing which digit is which.\n")
    names = [f"row{i // 8}col{i % 8}" for i in range(64)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
        row_html=lambda i: _digit_picture(digits.images[i]),
        source="the digits of scikit-learn",
        command=arguments.typed,
    )
    write_text(path, page)
    purity, v_measure = (score(digits.target, model.labels_) for score in (metrics.purity, metrics.v_measure))
    print(DEMO_END.format(seconds=seconds, purity=purity, v_measure=v_measure, path=path.resolve()))
