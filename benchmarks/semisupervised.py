"""Semi-supervised classification: the error on unlabeled rows by the number of labels.

The protocol of Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016, Section 5.2.2:
random draws of labeled rows (with both classes among them), the error on all others, the median and
quartiles over the draws; for more than two classes the mean over all pairs of classes.

python benchmarks/semisupervised.py --data DIR                                  all sets, 30 draws
python benchmarks/semisupervised.py --data DIR --sets voting --draws 10 --csv voting.csv
python benchmarks/semisupervised.py --data DIR --several                        all classes at once
python benchmarks/semisupervised.py --read voting.csv --plot out.png            table and plot of earlier runs
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import datasets, record
from benchmarks.baselines import TSVM, LapSVM, label_spreading, self_training, supervised_svm

Array = np.ndarray[Any, Any]
Method = Callable[[Array, Array], Array]
Result = tuple[str, int, int, str, float, float]  # set, labels, draw, method, error in percent, seconds

SCHEMES = ("one-vs-one", "tree")
TWO_CLASSES = ("banknote", "breast_w", "ionosphere", "voting")
PAIRS = ("optdigits", "pendigits", "satellite", "segment")
LABELS = {**dict.fromkeys(TWO_CLASSES, (5, 10, 20, 50, 100)), **dict.fromkeys(PAIRS, (10, 20, 100, 300))}


def minimum_density(X: Array, y: Array) -> Array:
    """Ours."""
    from ravine import MinimumDensityClassifier

    return np.asarray(MinimumDensityClassifier().fit(X, y).predict(X))


def as_published(X: Array, y: Array) -> Array:
    """Ours with the settings of the paper."""
    from ravine.papers import SemiSupervisedMDP2

    return np.asarray(SemiSupervisedMDP2().fit(X, y).predict(X))


METHODS: dict[str, Method] = {
    "MinimumDensityClassifier": minimum_density,
    "MDP2 as published": as_published,
    "linear SVM": supervised_svm,
    "LabelSpreading": label_spreading,
    "SelfTraining": self_training,
    "LapSVM": LapSVM().fit_predict,
    "TSVM": TSVM().fit_predict,
}


def problems(name: str, directory: str | None) -> list[tuple[Array, Array]]:
    """Return the two-class problems of a set, columns standardized: one, or all pairs of its classes."""
    X, y = datasets.load(name, directory)
    pairs = itertools.combinations(range(len(np.unique(y))), 2)
    return [(standardized(rows), labels) for rows, labels in (datasets.pair(X, y, a, b) for a, b in pairs)]


def standardized(X: Array) -> Array:
    """Return the columns that vary, with unit variance."""
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def draw(y: Array, n_labels: int, rng: np.random.Generator) -> Array:
    """Return y with all but `n_labels` random rows unlabeled, rows of both classes among them."""
    while True:
        known = rng.choice(len(y), n_labels, replace=False)
        if len(np.unique(y[known])) == 2:
            break
    partly = np.full(len(y), -1)
    partly[known] = y[known]
    return partly


def errors(
    name: str, directory: str | None, labels: tuple[int, ...], n_draws: int, methods: Sequence[str]
) -> Iterator[Result]:
    """Yield (set, labels, draw, method, mean error over its problems in percent, seconds)."""
    given = problems(name, directory)
    for n_labels, seed in itertools.product(labels, range(n_draws)):
        usable = [(X, y) for X, y in given if len(y) > 2 * n_labels]
        partly = [draw(y, n_labels, np.random.default_rng([seed, k])) for k, (_, y) in enumerate(usable)]
        for method in methods:
            fit = METHODS[method]
            start = time.perf_counter()
            wrong = [
                np.mean((fit(X, known) != y)[known == -1])
                for (X, y), known in zip(usable, partly, strict=True)
            ]
            yield name, n_labels, seed, method, 100 * float(np.mean(wrong)), time.perf_counter() - start


def several(directory: str | None, n_rows: int = 1500, n_draws: int = 2) -> str:
    """Return a table of the error with all classes at once: one against one, a tree, a linear SVM."""
    from sklearn.svm import LinearSVC

    from ravine import MinimumDensityClassifier

    lines = ["| set | labels | one-vs-one | tree | linear SVM |", "|---|---|---|---|---|"]
    for name, n_labels in itertools.product(("optdigits", "segment"), (50, 200)):
        X, y = datasets.load(name, directory)
        some = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
        X, y = standardized(X[some]), y[some]
        found = []
        for seed in range(n_draws):
            known = np.random.default_rng(seed).choice(n_rows, n_labels, replace=False)
            partly = np.full(n_rows, -1)
            partly[known] = y[known]
            result = [
                MinimumDensityClassifier().set_params(multi_class=m).fit(X, partly).predict(X)
                for m in SCHEMES
            ]
            result.append(LinearSVC(dual=False).fit(X[known], y[known]).predict(X))
            found.append([100 * np.mean((s != y)[partly == -1]) for s in result])
        cells = " | ".join(f"{error:.1f}" for error in np.median(found, axis=0))
        lines.append(f"| {name} | {n_labels} | {cells} |")
    return "\n".join(lines)


def write(results: list[Result], path: Path) -> None:
    """Write every draw's error to a file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "labels", "draw", "method", "error", "seconds"])
        writer.writerows((*r[:4], f"{r[4]:.3f}", f"{r[5]:.2f}") for r in results)


def read(path: Path) -> list[Result]:
    """Return what `write` wrote."""
    with path.open(newline="") as file:
        return [
            (r["set"], int(r["labels"]), int(r["draw"]), r["method"], float(r["error"]), float(r["seconds"]))
            for r in csv.DictReader(file)
        ]


def table(results: list[Result]) -> str:
    """Return medians and quartiles over the draws as a table."""
    methods = [method for method in METHODS if any(r[3] == method for r in results)]
    lines = ["| set | labels | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]
    for name, n_labels in dict.fromkeys((r[0], r[1]) for r in results):
        cells = []
        for method in methods:
            found = [r[4] for r in results if r[:2] == (name, n_labels) and r[3] == method]
            if not found:  # a file of earlier runs may lack a method
                cells.append("-")
                continue
            low, middle, high = np.percentile(found, [25, 50, 75])
            cells.append(f"{middle:.1f} ({low:.1f}-{high:.1f})")
        lines.append(f"| {name} | {n_labels} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results: list[Result], path: Path) -> None:
    """Draw the median error by the number of labels, with the quartiles, a panel a set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r[0] for r in results))
    figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.2), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        counts = sorted({r[1] for r in results if r[0] == name})
        for method in (m for m in METHODS if any(r[3] == m for r in results)):
            found = [[r[4] for r in results if r[:2] == (name, k) and r[3] == method] for k in counts]
            low, middle, high = np.array([np.percentile(f, [25, 50, 75]) for f in found]).T
            (line,) = axis.plot(counts, middle, marker="o", markersize=3, label=method)
            axis.fill_between(counts, low, high, color=line.get_color(), alpha=0.15)
        axis.set(title=name, xlabel="labels", xscale="log")
    axes[0][0].set_ylabel("error on unlabeled rows, %")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the protocol and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="directory of npz files; OpenML without it")
    parser.add_argument("--sets", nargs="+", default=[*TWO_CLASSES, *PAIRS], choices=list(LABELS))
    parser.add_argument(
        "--labels", nargs="+", type=int, help="numbers of labels; the paper's range without it"
    )
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--several", action="store_true", help="all classes at once, and nothing else")
    parser.add_argument("--read", type=Path, nargs="+", help="files of --csv to show; nothing is run then")
    parser.add_argument("--csv", type=Path, help="write every draw's error here")
    parser.add_argument("--plot", type=Path, help="draw the curves here")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.several:
        print(several(asked.data))
        return
    results = [result for path in asked.read or () for result in read(path) if result[0] in asked.sets]
    for name in asked.sets if not asked.read else ():
        labels = tuple(asked.labels or LABELS[name])
        for result in errors(name, asked.data, labels, asked.draws, asked.methods):
            results.append(result)
            print(*result[:4], f"{result[4]:.2f} {result[5]:.2f}s", flush=True)
    if asked.csv:
        write(results, asked.csv)
        record.write_stamp(asked.csv)
    print(table(results))
    if asked.plot:
        plot(results, asked.plot)


if __name__ == "__main__":
    main()
