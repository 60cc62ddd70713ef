"""The papers' sets with our defaults: tables that `published.py` does not have, and the ledger's.

python benchmarks/papers.py --data DIR --table mdh          one split, beside the paper's figures
python benchmarks/papers.py --data DIR --table scpp         spectral connectivity, all projections
python benchmarks/papers.py --data DIR --table clusters     the true number of clusters, beside scikit-learn
python benchmarks/papers.py --data DIR --table diffusion    the diffusion kernel, beside scikit-learn
python benchmarks/papers.py --table shapes                  kernels on what no hyperplane separates
python benchmarks/papers.py --data DIR --table text         text and counts
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

from benchmarks import record
from benchmarks.datasets import load
from benchmarks.generators import spirals, topics
from ravine import MinimumDensity, PrincipalDirection, SpectralConnectivity, metrics

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
    """V-measure at the true number of clusters on ten sets, standardized, beside scikit-learn's."""
    from sklearn.cluster import AgglomerativeClustering, BisectingKMeans, KMeans
    from sklearn.preprocessing import StandardScaler

    methods: dict[str, Callable[[int], Any]] = {
        "MinimumDensity": lambda k: MinimumDensity(k),
        "PDDP": lambda k: PrincipalDirection(k),
        "dePDDP": lambda k: PrincipalDirection(k, threshold="density", outliers="include"),  # as published
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
            row[method] = metrics.v_measure(y, make(len(np.unique(y))).fit_predict(X))
        rows.append(row)
    return [*rows, mean_row("mean", rows)]


SEEDS = 10  # runs of a method that draws
WAYS: dict[str, dict[str, Any]] = {
    "SCnP2 univariate": {},
    "SCnP2_o": {"n_directions": 2},
}


def scpp(directory: str | None) -> list[Row]:
    """Tables 1 to 6 of Minimum Spectral Connectivity Projection Pursuit: purity and V-measure.

    Means over runs where the method draws (micro-clusters); `univariate` has no counterpart in the paper.
    """
    paper: dict[tuple[str, str, str], float] = {}
    with open(TABLES / "scpp_tables1to6.csv") as file:
        for figure in csv.DictReader(file):
            paper[figure["method"], figure["dataset"], figure["metric"]] = float(figure["mean"])
    rows: list[Row] = []
    for method, parameters in WAYS.items():
        mine: list[Row] = []
        for name in TEN:
            X, y = load(name, directory)
            seeds = SEEDS if "n_directions" in parameters else 1
            began = time.perf_counter()
            runs = [
                SpectralConnectivity(len(np.unique(y)), random_state=seed, **parameters).fit(X).labels_
                for seed in range(seeds)
            ]
            row: Row = {"dataset": name, "method": method}
            for metric, score in (("purity", metrics.purity), ("v_measure", metrics.v_measure)):
                row[metric] = float(np.mean([score(y, labels) for labels in runs]))
                row[f"paper {metric}"] = paper.get((method, name, metric), np.nan)
            row["seconds"] = (time.perf_counter() - began) / seeds
            mine.append(row)
        rows += [*mine, {"dataset": "mean", "method": method, **mean_row("mean", mine)}]
        print(show(rows[-len(TEN) - 1 :]), flush=True)
    return rows


HELD_OUT = 5  # every fifth row
ELEVEN = ("wine", "seeds", *(name for name in TEN if name != "voting"))


def diffusion(directory: str | None) -> list[Row]:
    """V-measure of the diffusion kernel at the true number of clusters, and how held-out rows are labeled."""
    from sklearn.cluster import AgglomerativeClustering, SpectralClustering
    from sklearn.preprocessing import StandardScaler

    rows: list[Row] = []
    for name in ELEVEN:
        X, y = load(name, directory)
        k, scaled = len(np.unique(y)), StandardScaler().fit_transform(X)
        held = np.arange(len(X)) % HELD_OUT == 0
        density = MinimumDensity(k, kernel="diffusion").fit(X)
        rest = MinimumDensity(k, kernel="diffusion").fit(X[~held])
        found = {
            "MinimumDensity": density.labels_,
            "SpectralConnectivity": SpectralConnectivity(k, kernel="diffusion").fit(X).labels_,
            "SpectralClustering": SpectralClustering(
                k, affinity="nearest_neighbors", random_state=0
            ).fit_predict(scaled),
            "Ward": AgglomerativeClustering(k).fit_predict(scaled),
        }
        row: Row = {"dataset": name}
        row |= {method: metrics.v_measure(y, labels) for method, labels in found.items()}
        rows.append({**row, "held out": agreement(density.labels_[held], rest.predict(X[held]))})
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    return [*rows, mean_row("mean", rows)]


def agreement(a: Any, b: Any) -> float:
    """Return the share of rows with the same label, clusters being matched one to one."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(a, b)
    return float(table[linear_sum_assignment(-table)].sum() / table.sum())


def shapes(directory: str | None) -> list[Row]:
    """The least and the mean adjusted Rand index over five draws, for what no hyperplane separates."""
    from sklearn.datasets import make_circles, make_moons
    from sklearn.metrics import adjusted_rand_score

    drawn: dict[str, Callable[[int], Any]] = {
        "moons 400, noise 0.06": lambda seed: make_moons(400, noise=0.06, random_state=seed),
        "moons 600, noise 0.1": lambda seed: make_moons(600, noise=0.1, random_state=seed),
        "rings 400, factor 0.4": lambda seed: make_circles(400, noise=0.05, factor=0.4, random_state=seed),
        "spirals 600, noise 0.1": lambda seed: spirals(600, 0.1, seed),
        "spirals 1000, noise 0.3": lambda seed: spirals(1000, 0.3, seed),
    }
    rows: list[Row] = []
    for name, draw in drawn.items():
        row: Row = {"shape": name}
        for method in (MinimumDensity, SpectralConnectivity):
            for kernel in ("rbf", "diffusion"):
                found = [
                    adjusted_rand_score(y, method(2, kernel=kernel).fit(X).labels_)
                    for X, y in map(draw, range(5))
                ]
                row[f"{method.__name__} {kernel}"] = f"{np.min(found):.2f} / {np.mean(found):.2f}"
        rows.append(row)
    return rows


def text(directory: str | None) -> list[Row]:
    """V-measure at the true number of clusters: generated topics, and news where there is a directory."""
    sets = [one for seed in range(4) for one in topics(seed)]
    sets += [("news_rec", *load("news_rec", directory))] if directory else []
    rows: list[Row] = []
    for name, X, y in sets:
        row: Row = {"dataset": name}
        for method in (MinimumDensity, SpectralConnectivity):
            for kernel in (None, "diffusion"):
                labels = method(len(np.unique(y)), kernel=kernel).fit(X).labels_
                row[f"{method.__name__} {kernel or 'linear'}"] = metrics.v_measure(y, labels)
        rows.append(row)
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    return [*rows, mean_row("mean", rows)]


RUN: dict[str, Callable[[str | None], list[Row]]] = {
    "mdh": mdh,
    "scpp": scpp,
    "clusters": clusters,
    "diffusion": diffusion,
    "shapes": shapes,
    "text": text,
}


def mean_row(name: str, rows: list[Row]) -> Row:
    """Return the mean of every figure under a name."""
    keys = [key for key, cell in rows[0].items() if not isinstance(cell, str)]
    return {"dataset": name, **{key: float(np.mean([row[key] for row in rows])) for key in keys}}


def show(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    for row in rows:
        cells = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def keep(rows: list[Row], path: Path) -> None:
    """Write the rows as CSV, and where they come from beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{cell:.4f}" if isinstance(cell, float) else cell for key, cell in row.items()}
            for row in rows
        )
    record.write_stamp(path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", choices=sorted(RUN), required=True)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--out", help="CSV file (default: benchmarks/results/TABLE.csv)")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = RUN[arguments.table](arguments.data)
    print(show(rows))
    keep(rows, Path(arguments.out or Path(__file__).parent / "results" / f"{arguments.table}.csv"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
