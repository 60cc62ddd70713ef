"""The papers' tables beside ours.

python benchmarks/papers.py --data DIR --table mdh
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.baselines import discriminative_kmeans, lda_km
from benchmarks.datasets import load, problem
from benchmarks.separation import accuracy
from ravine import MaximinSeparation, MinimumDensity, PrincipalDirection, metrics, select

TABLES = Path(__file__).parent / "paper_tables"
Row = dict[str, Any]


def mdh(directory: str | None) -> list[Row]:
    """Table 2 of Minimum Density Hyperplanes: one split, with the default parameters."""
    with open(TABLES / "mdh_table2.csv") as file:
        paper = {row["dataset"]: row for row in csv.DictReader(file) if row["method"] == "MDP2"}
    rows: list[Row] = []
    for name, figures in paper.items():
        if name == "smartphone":  # the set cannot be had
            continue
        X, y = load(name, directory)
        began = time.perf_counter()
        model = MinimumDensity(n_clusters=2).fit(X)
        rows.append(
            {
                "dataset": name,
                "success_ratio": metrics.success_ratio(y, model.labels_),
                "paper_success_ratio": float(figures["success_ratio"]),
                "v_measure": metrics.binary_v_measure(y, model.labels_),
                "paper_v_measure": float(figures["binary_v_measure"]),
                "seconds": time.perf_counter() - began,
            }
        )
    return [*rows, mean_row("mean", rows), mean_row("mean without banknote", rows[1:])]


TEN = (
    "breast_w",
    "control_chart",
    "dermatology",
    "mfeat_fac",
    "optdigits",
    "pendigits",
    "satellite",
    "segment",
    "voting",
    "yeast_cc",
)


def clusters(directory: str | None) -> list[Row]:
    """V-measure at the true number of clusters on ten sets, standardised, beside scikit-learn's."""
    from sklearn.cluster import AgglomerativeClustering, BisectingKMeans, KMeans
    from sklearn.preprocessing import StandardScaler

    methods: dict[str, Callable[[int], Any]] = {
        "MinimumDensity": lambda k: MinimumDensity(k),
        "PDDP": lambda k: PrincipalDirection(k),
        "dePDDP": lambda k: PrincipalDirection(k, cut="density"),
        "KMeans": lambda k: KMeans(k, n_init=10, random_state=0),
        "BisectingKMeans": lambda k: BisectingKMeans(k, random_state=0),
        "Ward": lambda k: AgglomerativeClustering(k),
    }
    rows: list[Row] = []
    for name in TEN:
        X, y = load(name, directory)
        X = StandardScaler().fit_transform(X)
        row: Row = {"dataset": name}
        for method, make in methods.items():
            began = time.perf_counter()
            labels = make(len(np.unique(y))).fit_predict(X)
            row[method] = metrics.v_measure(y, labels)
            if method == "MinimumDensity":
                row["its seconds"] = time.perf_counter() - began
        rows.append(row)
    return [*rows, mean_row("mean", rows)]


LAMBDAS = [10.0**k for k in range(-4, 5)]


def mspc(directory: str | None) -> list[Row]:
    """Table 2 of Maximin Separation Probability Clustering: errors in percent, with the paper's beside.

    lambda is chosen by the classes from 10^-4 to 10^4, as in the paper; "label-free" is the same solver with
    lambda chosen by `ravine.select`. A last row has spambase without the scaling of its columns.
    """
    from sklearn.cluster import KMeans

    paper: dict[str, dict[str, float]] = {}
    with open(TABLES / "mspc_table2.csv") as file:
        for figure in csv.DictReader(file):
            paper.setdefault(figure["dataset"], {})[figure["method"]] = float(
                figure["clustering_error_percent"]
            )
    rows: list[Row] = []
    for name in [*paper, "spambase, not scaled"]:
        if name in paper:
            X, y = problem(name, directory)
        else:
            X, y = load("spambase", directory)
        figures = paper.get(name, paper["spambase"])

        def error(labels: Any, y: Any = y) -> float:
            return 100 * (1 - accuracy(y, labels))

        began = time.perf_counter()
        row: Row = {"dataset": name}
        found: dict[str, float] = {"KM": error(KMeans(2, n_init=10, random_state=0).fit_predict(X))}
        found["LDA-KM"] = min(error(lda_km(X, 2, ridge)) for ridge in LAMBDAS)
        found["Dis-KM"] = min(error(discriminative_kmeans(X, 2, ridge)) for ridge in LAMBDAS)
        free: dict[str, float] = {}
        for solver in ("mpm", "gep"):
            model = MaximinSeparation(solver=solver, standardize=False)
            tried = select(X, model, {"regularization": LAMBDAS})
            errors = [error(candidate.estimator.labels_) for candidate in tried.candidates]
            found[f"MSPC-{solver.upper()}"], free[solver] = min(errors), errors[0]
        found["MSPC-EIG"] = error(MaximinSeparation(solver="eig", standardize=False).fit(X).labels_)
        for method, value in found.items():
            row |= {method: value, f"paper {method}": figures[method]}
            if method[5:].lower() in free:
                row[f"{method} label-free"] = free[method[5:].lower()]
        row["seconds"] = time.perf_counter() - began
        rows.append(row)
        print(row, flush=True)
    return [*rows, mean_row("mean of ten", rows[:-1])]


def mean_row(name: str, rows: list[Row]) -> Row:
    """Return the mean of every figure under a name."""
    keys = [key for key in rows[0] if key != "dataset"]
    return {"dataset": name, **{key: float(np.mean([row[key] for row in rows])) for key in keys}}


RUN: dict[str, Callable[[str | None], list[Row]]] = {"mdh": mdh, "clusters": clusters, "mspc": mspc}


def show(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    for row in rows:
        cells = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=sorted(RUN), required=True)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--out", help="CSV file (default: benchmarks/results/TABLE.csv)")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = RUN[arguments.table](arguments.data)
    print(show(rows))
    out = Path(arguments.out or Path(__file__).parent / "results" / f"{arguments.table}.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{cell:.4f}" if isinstance(cell, float) else cell for key, cell in row.items()}
            for row in rows
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
