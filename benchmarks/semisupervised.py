"""Semi-supervised classification: the error on unlabeled rows by the number of labels.

The protocol of Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016, Section 5.2.2:
random draws of labeled rows (with both classes among them), the error on all others, the median and
quartiles over the draws; for more than two classes the mean over all pairs of classes.

python benchmarks/semisupervised.py --data DIR                                  all sets, 30 draws
python benchmarks/semisupervised.py --data DIR --sets voting --draws 10 --out voting.csv
python benchmarks/semisupervised.py --read voting.csv                           table of an earlier run
python benchmarks/semisupervised.py --data DIR --several                        all classes at once
python benchmarks/semisupervised.py --data DIR --excess --draws 8 --sets wine   do unlabeled rows hurt?

With --excess: all classes at once, 3, 5, 10 and 30 labels per class (at most half of a class), and at most
1000 other rows. The figures are medians over the draws of the error in percent on the rows without labels;
the excess is that over the better of a linear SVM and a logistic regression, and its standard error is that
over bootstrap samples of the draws.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve
from scipy.sparse.csgraph import laplacian
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import datasets, record
from benchmarks.papers import Row, keep, show
from ravine import MinimumDensityClassifier

Array = np.ndarray[Any, Any]
Method = Callable[[Array, Array], Array]
Result = tuple[str, int, int, str, float, float]  # set, labels, draw, method, error in percent, seconds

EACH = (3, 5, 10, 30)  # labels of each class
WIDEST = 10_000  # rows of a set from which labels and others are drawn, at most
TWO_CLASSES = ("banknote", "breast_w", "ionosphere", "voting")
PAIRS = ("optdigits", "pendigits", "satellite", "segment")
LABELS = {**dict.fromkeys(TWO_CLASSES, (5, 10, 20, 50, 100)), **dict.fromkeys(PAIRS, (10, 20, 100, 300))}


def minimum_density(X: Array, y: Array) -> Array:
    """Ours."""
    return np.asarray(MinimumDensityClassifier().fit(X, y).predict(X))


def supervised_svm(X: Array, y: Array) -> Array:
    """A linear support vector machine on the labeled rows only."""
    known = y != -1
    return np.asarray(SVC(kernel="linear").fit(X[known], y[known]).predict(X))


def self_training(X: Array, y: Array) -> Array:
    """Self-training of a logistic regression: its sure predictions become labels, round by round.

    Yarowsky: Unsupervised word sense disambiguation rivaling supervised methods. ACL, 1995.
    """
    return np.asarray(SelfTrainingClassifier(LogisticRegression(max_iter=300)).fit(X, y).predict(X))


def label_spreading(X: Array, y: Array) -> Array:
    """Label spreading over nearest neighbors.

    Zhou, Bousquet, Lal, Weston, Schoelkopf: Learning with local and global consistency. NIPS, 2003.
    """
    return np.asarray(LabelSpreading(kernel="knn", n_neighbors=10).fit(X, y).predict(X))


def squared_hinge(rows: Array, sides: Array, costs: Array, penalty: Array, *, max_iter: int = 50) -> Array:
    r"""Return the w that minimizes a quadratic penalty plus squared hinge losses.

    .. math:: \tfrac12 w^T P w + \tfrac12 \sum_i c_i \max(0, 1 - s_i w^T x_i)^2

    Each step solves the linear system of the rows within the margin; when these stay, the solution
    is exact. Chapelle: Training a support vector machine in the primal. Neural Computation 19, 2007.
    """
    inside = np.ones(len(rows), dtype=bool)
    for _ in range(max_iter):
        few, weighted = rows[inside], (costs * sides)[inside]
        system = penalty + (few.T * costs[inside]) @ few
        normal = _solve(system, few.T @ weighted)
        now = sides * (rows @ normal) < 1
        if (now == inside).all():
            break
        inside = now
    return np.asarray(normal)


def _solve(system: Array, right: Array) -> Array:
    """Solve a positive system; one without rows inside the margin may be singular, and has its least norm."""
    try:
        return np.asarray(solve(system, right, assume_a="pos"))
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])


@dataclass
class LapSVM:
    r"""The Laplacian support vector machine with a linear kernel.

    .. math:: \tfrac{1}{l} \sum_{i \le l} \max(0, 1 - y_i f(x_i))^2 + \gamma_A |w|^2
              + \tfrac{\gamma_I}{n} f^T L f

    with the normalized Laplacian L of the graph of nearest neighbors. Belkin, Niyogi, Sindhwani: Manifold
    regularization. JMLR 7, 2006; in the primal, as in Melacci, Belkin: Laplacian support vector machines
    trained in the primal. JMLR 12, 2011. `y` is -1 for a row without a label.
    """

    ridge: float = 0.01
    smooth: float = 1.0
    n_neighbors: int = 10
    max_iter: int = 50

    def fit_predict(self, X: Any, y: Array) -> Array:
        """Return the class of every row."""
        graph = kneighbors_graph(X, self.n_neighbors)
        rows = np.column_stack([X, np.ones(len(X))])
        penalty = np.diag([self.ridge] * X.shape[1] + [0.0])  # the intercept is free
        smooth = X.T @ (laplacian(graph.maximum(graph.T), normed=True) @ X) / len(X)
        penalty[:-1, :-1] += self.smooth * smooth
        known = np.flatnonzero(y != -1)
        classes = np.unique(y[known])
        sides = np.where(y[known] == classes[1], 1.0, -1.0)
        costs = np.full(len(known), 1 / len(known))
        normal = squared_hinge(rows[known], sides, costs, penalty, max_iter=self.max_iter)
        return np.asarray(classes[(rows @ normal > 0).astype(int)])


METHODS: dict[str, Method] = {
    "MinimumDensityClassifier": minimum_density,
    "linear SVM": supervised_svm,
    "LabelSpreading": label_spreading,
    "SelfTraining": self_training,
    "LapSVM": LapSVM().fit_predict,
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
    """Return a table of the error with all classes at once: one against one, and a linear SVM."""
    from sklearn.svm import LinearSVC

    lines = ["| set | labels | one-vs-one | linear SVM |", "|---|---|---|---|"]
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
                MinimumDensityClassifier().fit(X, partly).predict(X),
                LinearSVC(dual=False).fit(X[known], y[known]).predict(X),
            ]
            found.append([100 * np.mean((s != y)[partly == -1]) for s in result])
        cells = " | ".join(f"{error:.1f}" for error in np.median(found, axis=0))
        lines.append(f"| {name} | {n_labels} | {cells} |")
    return "\n".join(lines)


def draw_of_each(
    name: str, directory: str, n_labels: int, n_rows: int, seed: int
) -> tuple[Any, Array, Array]:
    """Return rows with unit variance, their classes, and the classes of the labeled ones (-1 for others)."""
    X, y = datasets.load(name, directory)
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:WIDEST])
    X, y = X[some], np.unique(y[some], return_inverse=True)[1]
    rng = np.random.default_rng([seed, n_labels])
    of_class = [rng.permutation(np.flatnonzero(y == c)) for c in range(y.max() + 1)]
    known = np.concatenate([rows[: min(n_labels, len(rows) // 2)] for rows in of_class])
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), known))[:n_rows]
    partial = np.full(len(y), -1)
    partial[known] = y[known]
    rows = np.sort(np.concatenate([known, others]))
    X = X[rows] if sparse.issparse(X) else standardized(X[rows])
    return X, y[rows], partial[rows]


def reference(X: Any, y: Array, partial: Array) -> tuple[float, float]:
    """Return the errors of a linear SVM and of a logistic regression on the labeled rows."""
    known = partial != -1
    models = SVC(kernel="linear"), LogisticRegression(max_iter=1000)
    machine, logistic = (model.fit(X[known], y[known]).predict(X[~known]) for model in models)
    return error_of(machine, y[~known]), error_of(logistic, y[~known])


def error_of(found: Array, y: Array) -> float:
    """Return the share of wrong classes in percent."""
    return 100.0 * float(np.mean(found != y))


def ours(X: Any, y: Array, partial: Array) -> tuple[float, float]:
    """Return the error, and the share of boundaries through a valley in percent."""
    model = MinimumDensityClassifier().fit(X, partial)
    valleys = np.mean([between.split.method != "supervised" for between in model.boundaries_])
    return error_of(model.predict(X)[partial == -1], y[partial == -1]), 100.0 * float(valleys)


def over_better(errors: Array) -> Array:
    """Return our median error minus that of the better other: (..., draws, 3) to (...)."""
    found = np.median(errors, axis=-2)
    return np.asarray(found[..., 0] - found[..., 1:].min(axis=-1))


def excess(name: str, directory: str, n_labels: int, n_rows: int, n_draws: int) -> list[float]:
    """Return medians: our error, that of the SVM, of logistic regression; excess and its error; valleys."""
    draws = [draw_of_each(name, directory, n_labels, n_rows, seed) for seed in range(n_draws)]
    found = np.array([[*ours(*draw), *reference(*draw)] for draw in draws])
    errors, valleys = found[:, [0, 2, 3]], float(np.median(found[:, 1]))
    samples = errors[np.random.default_rng(0).integers(0, n_draws, (1000, n_draws))]
    deviation = float(over_better(samples).std())
    return [*np.median(errors, axis=0).tolist(), float(over_better(errors)), deviation, valleys]


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


def excesses(directory: str, names: Sequence[str], n_draws: int) -> list[Row]:
    """Return one row per set and number of labels of each class."""
    columns = ("ours", "linear SVM", "logistic", "excess", "+-", "valleys, %")
    rows: list[Row] = []
    for name, n_labels in itertools.product(names, EACH):
        figures = excess(name, directory, n_labels, 1000, n_draws)
        rows.append({"set": name, "labels": n_labels, **dict(zip(columns, figures, strict=True))})
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def main() -> None:
    """Run the protocol and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="directory of npz files; OpenML without it")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument(
        "--labels", nargs="+", type=int, help="numbers of labels; those of the paper without it"
    )
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--several", action="store_true", help="all classes at once, and nothing else")
    parser.add_argument(
        "--excess", action="store_true", help="beside supervised classifiers, and nothing else"
    )
    parser.add_argument("--read", type=Path, nargs="+", help="files of --out to show; nothing is run then")
    parser.add_argument("--out", type=Path, help="write every draw's error, or the table, here")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.several:
        print(several(asked.data))
    elif asked.excess:
        rows = excesses(asked.data, asked.sets or TWO_CLASSES, asked.draws)
        print(show(rows))
        if asked.out:
            keep(rows, asked.out)
    else:
        results = [result for path in asked.read or () for result in read(path)]
        for name in asked.sets or LABELS if not asked.read else ():
            labels = tuple(asked.labels or LABELS[name])
            for result in errors(name, asked.data, labels, asked.draws, asked.methods):
                results.append(result)
                print(*result[:4], f"{result[4]:.2f} {result[5]:.2f}s", flush=True)
        if asked.out:
            write(results, asked.out)
            record.write_stamp(asked.out)
        print(table(results))


if __name__ == "__main__":
    main()
