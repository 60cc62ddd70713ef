"""Unlabeled rows must not hurt: MinimumDensityClassifier against classifiers of the labeled rows alone.

    python benchmarks/never_worse.py --data DIR
    python benchmarks/never_worse.py --data DIR --constants

Every labeled set of the directory, all of its classes at once, with 3, 5, 10 and 30 labels per class (at most
half of a class), and at most 2000 other rows. The figures are medians over the draws of the error in percent
on the rows without labels; the excess is that over the better of a linear SVM and a logistic regression, and
its standard error is that over bootstrap samples of the draws.

With --constants, the constants of the rule (`split/labeled.py`) are chosen from a grid by leave-sets-out:
for each set, by the mean over the other sets of excess + max(0, excess - 1).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import datasets
from benchmarks.semisupervised import standardized
from ravine import MinimumDensityClassifier
from ravine.data.memory import MemoryRows
from ravine.estimators import class_boundaries
from ravine.split import labeled

Array = np.ndarray[Any, Any]
# by how much sparser, most labels, whether mistakes count, penalty of the supervised boundary
Constants = tuple[float, float, bool, float]
Case = tuple[str, int]  # set, labels per class

LABELS = (3, 5, 10, 30)
WIDEST = 10_000  # rows of a set from which labels and others are drawn, at most
BOOTSTRAP = 1000  # samples of the draws
GRID: list[Constants] = list(
    itertools.product((0.3, 0.5, 0.8), (12.0, 20.0), (False, True), (10.0, 20.0, 40.0))
)


def drawn(name: str, directory: str, n_labels: int, n_rows: int, seed: int) -> tuple[Any, Array, Array]:
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
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    known = partial != -1
    models = SVC(kernel="linear"), LogisticRegression(max_iter=1000)
    machine, logistic = (model.fit(X[known], y[known]).predict(X[~known]) for model in models)
    return error(machine, y[~known]), error(logistic, y[~known])


def error(found: Array, y: Array) -> float:
    """Return the share of wrong classes in percent."""
    return 100.0 * float(np.mean(found != y))


def ours(X: Any, y: Array, partial: Array) -> tuple[float, float]:
    """Return the error, and the share of boundaries through a valley in percent."""
    model = MinimumDensityClassifier().fit(X, partial)
    valleys = np.mean([between.split.method != "supervised" for between in model.boundaries_])
    return error(model.predict(X)[partial == -1], y[partial == -1]), 100.0 * float(valleys)


def over_better(errors: Array) -> Array:
    """Return our median error minus that of the better other: (..., draws, 3) to (...)."""
    found = np.median(errors, axis=-2)
    return np.asarray(found[..., 0] - found[..., 1:].min(axis=-1))


def excess(name: str, directory: str, n_labels: int, n_rows: int, n_draws: int) -> list[float]:
    """Return medians: our error, that of the SVM, of logistic regression; excess and its error; valleys."""
    draws = [drawn(name, directory, n_labels, n_rows, seed) for seed in range(n_draws)]
    found = np.array([[*ours(*draw), *reference(*draw)] for draw in draws])
    errors, valleys = found[:, [0, 2, 3]], float(np.median(found[:, 1]))
    samples = errors[np.random.default_rng(0).integers(0, n_draws, (BOOTSTRAP, n_draws))]
    deviation = float(over_better(samples).std())
    return [*np.median(errors, axis=0).tolist(), float(over_better(errors)), deviation, valleys]


def alone(X: Any, partial: Array, penalty: float) -> list[Any]:
    """Return the supervised boundaries."""
    few = mock.patch.object(class_boundaries, "FEW_LABELS", 0.0)
    with few, mock.patch.object(labeled, "LABEL_PENALTY", penalty):
        return MinimumDensityClassifier().fit(X, partial).boundaries_


def mistakes(between: Any, X: Any, partial: Array) -> float:
    """Return the number of labeled rows on the wrong side of a boundary."""
    distances = between.split.boundary.signed_distance(MemoryRows(X))
    on_left, on_right = np.isin(partial, between.left), np.isin(partial, between.right)
    return float(np.sum(on_left & (distances > 0)) + np.sum(on_right & (distances <= 0)))


def prefers_valley(valley: Any, other: Any, wrong: float, n_labels: float, constants: Constants) -> bool:
    """Return what the rule says with these constants, if the valley has `wrong` more mistakes."""
    sparser, few, counts, _ = constants
    clear = valley.split.value <= other.split.value * math.exp(-sparser)
    return bool(clear and n_labels <= few and (wrong <= 0 or not counts))


def errors_of_grid(X: Any, y: Array, partial: Array, grid: Sequence[Constants]) -> list[float]:
    """Return the error with every choice of the constants; equal boundaries are evaluated once."""
    model = MinimumDensityClassifier(supervised_fallback=False).fit(X, partial)
    valleys, unknown = model.boundaries_, partial == -1
    labels = [float(np.isin(partial, b.left + b.right).sum()) for b in valleys]
    others = {penalty: alone(X, partial, penalty) for penalty in {constants[-1] for constants in grid}}
    wrong = {
        penalty: [
            mistakes(v, X, partial) - mistakes(s, X, partial) for v, s in zip(valleys, some, strict=True)
        ]
        for penalty, some in others.items()
    }
    known, found = dict[tuple[int, ...], float](), []
    for constants in grid:
        columns = zip(valleys, others[constants[-1]], wrong[constants[-1]], labels, strict=True)
        model.boundaries_ = [v if prefers_valley(v, s, w, n, constants) else s for v, s, w, n in columns]
        key = tuple(map(id, model.boundaries_))
        if key not in known:
            known[key] = error(model.predict(X)[unknown], y[unknown])
        found.append(known[key])
    return found


def leave_sets_out(table: dict[Case, Array], grid: Sequence[Constants]) -> str:
    """Return the choice on all sets, and what the choice on the others is worth on each set."""
    cases = list(table)
    excesses = np.array([table[case] for case in cases])
    loss = excesses + np.maximum(0.0, excesses - 1.0)
    sets = np.array([name for name, _ in cases])
    kept, picks = [], []
    for name in dict.fromkeys(sets.tolist()):
        best = int(np.argmin(loss[sets != name].mean(axis=0)))
        kept += excesses[sets == name, best].tolist()
        picks.append(grid[best])
    best = int(np.argmin(loss.mean(axis=0)))
    values, counts = np.unique(np.array(picks), axis=0, return_counts=True)
    lines = [f"on all sets: {grid[best]}, mean excess {excesses[:, best].mean():.2f}"]
    lines.append(f"leave-sets-out: mean excess {np.mean(kept):.2f}, above 1 in {np.sum(np.array(kept) > 1)}")
    lines += [f"{count} times {tuple(value.tolist())}" for value, count in zip(values, counts, strict=True)]
    return "\n".join(lines)


def constants_table(cases: Sequence[Case], directory: str, n_rows: int, n_draws: int) -> str:
    """Return what `leave_sets_out` says about the grid."""
    table = {}
    for name, n_labels in cases:
        draws = [drawn(name, directory, n_labels, n_rows, seed) for seed in range(n_draws)]
        errors = np.median([errors_of_grid(*draw, GRID) for draw in draws], axis=0)
        table[name, n_labels] = errors - np.median([reference(*draw) for draw in draws], axis=0).min()
        print(name, n_labels, f"{table[name, n_labels].min():.2f}", flush=True)
    return leave_sets_out(table, GRID)


def main() -> None:
    """Run the comparison and print one line per set and number of labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", required=True, help="directory of npz files")
    parser.add_argument("--sets", nargs="+", help="all of the directory without it")
    parser.add_argument("--labels", nargs="+", type=int, default=LABELS, help="labels per class")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--rows", type=int, default=2000, help="rows without labels, at most")
    parser.add_argument("--constants", action="store_true", help="choose the constants of the rule")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = asked.sets or sorted(path.stem for path in Path(asked.data).glob("*.npz"))
    cases = list(itertools.product(names, asked.labels))
    if asked.constants:
        print(constants_table(cases, asked.data, asked.rows, asked.draws))
        return
    print(
        "| set | labels | ours | linear SVM | logistic | excess | +- | valleys, % |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for name, n_labels in cases:
        figures = excess(name, asked.data, n_labels, asked.rows, asked.draws)
        print(f"| {name} | {n_labels} | " + " | ".join(f"{x:.1f}" for x in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
