"""The same clusters on another processor, of a mirror image, and of rows with noise in the last digits.

Every estimator is fitted to every data set, once as it is and once per variant, and the partitions are
compared by their adjusted Rand index: the bar is 0.99 everywhere.

python benchmarks/robustness.py --data DIR
python benchmarks/robustness.py --data DIR --sets iris wine --estimators MaximumMargin --variants perturbed
python benchmarks/robustness.py --data DIR --sets letter --rows 20000 --clusters 26   all rows and classes
"""

from __future__ import annotations

import argparse
import csv
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

import ravine
from benchmarks.datasets import load
from benchmarks.processors import PROCESSORS, can_run, environment

BAR = 0.99
MAX_ROWS = 2500  # rows per set at most (every k-th), so that a run ends within the hour
MAX_CLUSTERS = 10

ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "MinimumDensity": ravine.MinimumDensity,
    "MinimumDensity auto": lambda k: ravine.MinimumDensity("auto"),
    "PrincipalDirection": ravine.PrincipalDirection,
    "SpectralConnectivity": ravine.SpectralConnectivity,
    "standard Laplacian": partial(ravine.SpectralConnectivity, laplacian="standard"),
    "orthogonal": partial(ravine.SpectralConnectivity, n_directions=2),
    "large margin": partial(ravine.SpectralConnectivity, large_margin=True),
    "MaximumMargin": ravine.MaximumMargin,
    "mpm": ravine.MaximinSeparation,
    "gep": partial(ravine.MaximinSeparation, solver="gep"),
    "eig": partial(ravine.MaximinSeparation, solver="eig"),
    "pursuit": partial(ravine.MaximinSeparation, solver="pursuit"),
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
    parser.add_argument("--out", help="CSV file of all pairs")
    parser.add_argument("--labels", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
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
    rows, low = [], 0
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
        with open(given.out, "w", newline="") as file:
            writer = csv.DictWriter(file, ["variant", "set", "estimator", "index"])
            writer.writeheader()
            writer.writerows(rows)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
