"""The same clusters on another processor, of a mirror image, of rows with noise in the last digits; far rows.

Every estimator is fitted to every data set, once as it is and once per variant, and the partitions are
compared by their adjusted Rand index: the bar is 0.99 everywhere.

python benchmarks/robustness.py --data DIR
python benchmarks/robustness.py --data DIR --sets iris wine --estimators MaximumMargin --variants perturbed
python benchmarks/robustness.py --data DIR --sets letter --rows 20000 --clusters 26   all rows and classes
python benchmarks/robustness.py --far                     do rows far from everything hide three clusters?
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.processors import PROCESSORS, can_run, environment

import ravine
from benchmarks.datasets import load
from benchmarks.papers import Row, keep, show

Array = np.ndarray[Any, Any]
BAR = 0.99
MAX_ROWS = 2500  # rows per set at most (every k-th), so that a run ends within the hour
MAX_CLUSTERS = 10

ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "MinimumDensity": ravine.MinimumDensity,
    "MinimumDensity auto": lambda k: ravine.MinimumDensity("auto"),
    "PrincipalDirection": ravine.PrincipalDirection,
    "SpectralConnectivity": ravine.SpectralConnectivity,
    "orthogonal": partial(ravine.SpectralConnectivity, n_directions=2),
    "MaximumMargin": ravine.MaximumMargin,
    "mpm": ravine.MaximinSeparation,
    "gep": partial(ravine.MaximinSeparation, solver="gep"),
    "eig": partial(ravine.MaximinSeparation, solver="eig"),
    "rbf": partial(ravine.MinimumDensity, kernel="rbf"),
    "diffusion": partial(ravine.MinimumDensity, kernel="diffusion"),
    "connectivity, diffusion": partial(ravine.SpectralConnectivity, kernel="diffusion"),
}


def as_it_is(X: Any) -> Any:
    return X


def perturbed(X: Any) -> Any:
    """Multiply every value by 1 + 1e-12 times a standard normal number."""
    rng = np.random.default_rng(0)
    if sparse.issparse(X):
        noisy = X.copy()
        noisy.data = X.data * (1 + 1e-12 * rng.standard_normal(X.data.shape))
        return noisy
    return X * (1 + 1e-12 * rng.standard_normal(X.shape))


def negated(X: Any) -> Any:
    return -X


def mirrored(X: Any) -> Any:
    """Negate every other column."""
    signs = np.where(np.arange(X.shape[1]) % 2, -1.0, 1.0)
    return (X @ sparse.diags(signs)).tocsr() if sparse.issparse(X) else X * signs


def permuted(X: Any) -> Any:
    return X[:, np.random.default_rng(0).permutation(X.shape[1])]


VARIANTS = {f.__name__: f for f in (perturbed, negated, mirrored, permuted)}


N = 900  # rows of three clusters
GROUP = 9  # rows of a far group: 1 %
CENTERS = np.array(
    [
        [[0, 0], [8, 0], [4, 7]],
        [[-8, -6], [0, 8], [9, -5]],
        [[0, 0], [9, 0], [4.5, 9]],
        [[3, 3], [17, 4], [4, 30]],
    ],
    dtype=float,
)  # of three unit Gaussians, in four layouts


def blobs(layout: int) -> tuple[Array, Array]:
    """Draw three unit Gaussians of 300 rows."""
    labels = np.repeat(np.arange(3), N // 3)
    return CENTERS[layout][labels] + np.random.default_rng(layout).normal(size=(N, 2)), labels


def noise(X: Array, share: float, times: float, rng: np.random.Generator) -> Array:
    """Draw uniform rows over a multiple of the range of others."""
    low, high = X.min(axis=0), X.max(axis=0)
    shape = (int(share * len(X)), X.shape[1])
    return np.asarray((low + high) / 2 + times * (high - low) * rng.uniform(-0.5, 0.5, shape))


def cells(X: Array, n: int, value: float, rng: np.random.Generator) -> Array:
    """Take n rows with a value for missing ones in the first column."""
    found: Array = X[rng.choice(len(X), n, replace=False)].copy()
    found[:, 0] = value
    return found


Added = Callable[[Array, np.random.Generator], Array]


def row_at(exponent: int) -> Added:
    """Return what adds one row far away."""
    return lambda X, rng: np.full((1, 2), 10.0**exponent)


def group_at(exponent: int) -> Added:
    """Return what adds 1 % of rows in a group far away."""
    return lambda X, rng: np.array([1.0, 0.5]) * 10.0**exponent + rng.normal(size=(GROUP, 2))


FAR: dict[str, list[Added]] = {
    "none": [lambda X, rng: X[:0]],
    "row at 1e2 to 1e9": [row_at(k) for k in range(2, 10)],
    "1 %": [lambda X, rng: noise(X, 0.01, 100.0, rng)],
    "5 %": [lambda X, rng: noise(X, 0.05, 100.0, rng)],
    "99999 in a cell": [lambda X, rng: cells(X, 1, 99999.0, rng)],
    "20 % near": [lambda X, rng: noise(X, 0.2, 1.5, rng)],
    "1 % in a group": [
        *(group_at(k) for k in (2, 3, 6)),
        lambda X, rng: cells(X, GROUP, 99999.0, rng),
    ],
}


def lowest(make: Callable[[int], Any], added: Added) -> float:
    """Return the lowest adjusted Rand index over the layouts; the rows that were added do not count."""
    found = []
    for layout in range(len(CENTERS)):
        X, y = blobs(layout)
        more = added(X, np.random.default_rng([layout, 7]))
        labels = make(3).fit(np.vstack([X, more])).labels_
        found.append(adjusted_rand_score(y, labels[: len(y)]))
    return float(min(found))


def hide_clusters(estimators: list[str]) -> list[Row]:
    """Return one row per estimator: the lowest index for every kind of rows that are added."""
    rows: list[Row] = []
    for name in estimators:
        row: Row = {"method": name}
        for kind, kinds in FAR.items():
            row[kind] = min(lowest(ESTIMATORS[name], added) for added in kinds)
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def rows_of(name: str, given: argparse.Namespace) -> tuple[Any, int]:
    """Return some rows of a set, evenly spread, and how many clusters to ask for."""
    X, y = load(name, given.data)
    step = -(-X.shape[0] // given.rows)
    return X[::step], min(given.clusters, len(np.unique(y)))


def partition(make: Callable[[int], Any], X: Any, k: int) -> list[int]:
    """Return the labels of a fit; an estimator that takes no such rows has one cluster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            labels: list[int] = make(k).fit(X).labels_.tolist()
        except ravine.InvalidInputError:
            labels = [0] * X.shape[0]
    return labels


def label_all(names: list[str], given: argparse.Namespace, change: Any) -> dict[str, Any]:
    """Return the labels of every set and estimator, and print the slow ones."""
    found = {}
    for name in names:
        X, k = rows_of(name, given)
        for estimator in given.estimators:
            began = time.perf_counter()
            found[f"{name}/{estimator}"] = partition(ESTIMATORS[estimator], change(X), k)
            seconds = time.perf_counter() - began
            if seconds > 20:
                print(f"  {name}, {estimator}: {seconds:.0f} s", file=sys.stderr)
    return found


def on_processor(name: str, arguments: list[str]) -> dict[str, Any]:
    """Return the labels that a process on an emulated processor finds."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "labels.json"
        command = [sys.executable, __file__, *arguments, "--labels", str(out)]
        subprocess.run(command, env=environment(name), check=True)
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--sets", nargs="+", default=["iris"])
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument(
        "--variants",
        nargs="+",
        default=[*VARIANTS, *filter(can_run, PROCESSORS)],
        choices=[*VARIANTS, *filter(can_run, PROCESSORS)],
    )
    parser.add_argument("--rows", type=int, default=MAX_ROWS, help="rows per set at most")
    parser.add_argument("--clusters", type=int, default=MAX_CLUSTERS, help="clusters at most")
    parser.add_argument("--out", type=Path, help="CSV file")
    parser.add_argument("--far", action="store_true", help="only clusters beside rows far from everything")
    parser.add_argument("--labels", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.far:
        warnings.simplefilter("ignore")
        hidden = hide_clusters(given.estimators)
        print(show(hidden))
        if given.out:
            keep(hidden, given.out)
        return 0
    names = given.sets
    if names == ["all"]:
        names = sorted(path.stem for path in Path(given.data).glob("*.npz"))
    usual = label_all(names, given, as_it_is)
    if given.labels:
        Path(given.labels).write_text(json.dumps(usual))
        return 0
    data = ["--data", given.data] if given.data else []
    size = ["--rows", str(given.rows), "--clusters", str(given.clusters)]
    arguments = [*data, *size, "--sets", *names, "--estimators", *given.estimators]
    rows: list[Row] = []
    low = 0
    for variant in given.variants:
        began = time.perf_counter()
        if variant in PROCESSORS:
            found = on_processor(variant, arguments)
        else:
            found = label_all(names, given, VARIANTS[variant])
        scores = {pair: adjusted_rand_score(usual[pair], found[pair]) for pair in usual}
        rows += [
            {"variant": variant, "set": pair.split("/")[0], "estimator": pair.split("/")[1], "index": score}
            for pair, score in scores.items()
        ]
        below = {pair: score for pair, score in scores.items() if score < BAR}
        low += len(below)
        print(
            f"{variant}: {len(scores) - len(below)} of {len(scores)} pairs at {BAR} or above "
            f"({time.perf_counter() - began:.0f} s)"
        )
        for pair, score in sorted(below.items(), key=lambda item: item[1]):
            print(f"  {score:6.3f}  {pair}")
        sys.stdout.flush()
    if given.out:
        keep(rows, given.out)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
