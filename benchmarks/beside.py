"""Our methods beside those of scikit-learn, hdbscan, fast_hdbscan and genieclust, at the true K.

python benchmarks/beside.py --data DIR --rows 3000       sets with at most 3000 rows
python benchmarks/beside.py --show                       tables of what the file has; nothing is run

One line per set and method goes to `results/beside.csv`. What is there is not run again, so that a run can be
stopped and resumed (delete lines to run them anew). Columns are standardized for every method, except those
of sparse rows. Every method has its default parameters and random state 0; nothing is chosen by the labels.
HDBSCAN is not told K, and its noise counts as one cluster. Packages that are not installed are left out, with
a line that says so. Each fit runs in a process of its own, within limits of time and memory.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record
from benchmarks.datasets import load
from benchmarks.papers import Row, show

Array = np.ndarray[Any, Any]
Cluster = Callable[[Any], Any]

HERE = Path(__file__).resolve().parent
MEMORY = 8 << 30  # bytes of address space that one fit may take
SCORES, COSTS = ("v_measure", "ari", "purity"), ("cpu_seconds", "peak_mb")
FIELDS = ("dataset", "rows", "columns", "K", "method", "clusters", *SCORES, *COSTS, "problem")

# name -> (module, class, parameters); K is given as the parameter of that name, where there is one
SKLEARN: dict[str, tuple[str, str, Row]] = {
    "KMeans": ("sklearn.cluster", "KMeans", {"n_clusters": "K", "n_init": 10, "random_state": 0}),
    "BisectingKMeans": ("sklearn.cluster", "BisectingKMeans", {"n_clusters": "K", "random_state": 0}),
    "Ward": ("sklearn.cluster", "AgglomerativeClustering", {"n_clusters": "K"}),
    "GaussianMixture": ("sklearn.mixture", "GaussianMixture", {"n_components": "K", "random_state": 0}),
    "Birch": ("sklearn.cluster", "Birch", {"n_clusters": "K"}),
    "SpectralClustering": (
        "sklearn.cluster",
        "SpectralClustering",
        {"n_clusters": "K", "affinity": "nearest_neighbors", "random_state": 0},
    ),
    "HDBSCAN": ("sklearn.cluster", "HDBSCAN", {"copy": True}),
    "hdbscan": ("hdbscan", "HDBSCAN", {}),
    "fast_hdbscan": ("fast_hdbscan", "HDBSCAN", {}),
    "genieclust": ("genieclust", "Genie", {"n_clusters": "K"}),
}
OURS: dict[str, tuple[str, str, Row]] = {
    name: ("ravine", name.split()[0], {"n_clusters": "K", **parameters})
    for name, parameters in {
        "MinimumDensity": {},
        "MinimumDensity rbf": {"kernel": "rbf"},
        "MinimumDensity diffusion": {"kernel": "diffusion"},
        "SpectralConnectivity": {},
        "SpectralConnectivity diffusion": {"kernel": "diffusion"},
        "MaximumMargin": {},
        "MaximinSeparation": {},
        "PrincipalDirection": {},
        "PrincipalDirection density": {"threshold": "density"},
        "AutoCluster": {},
    }.items()
}


def cluster(method: str, k: int) -> Callable[[Any], Any]:
    """Return the function from rows to labels of a method that runs in this environment."""
    module, name, parameters = (OURS | SKLEARN)[method]
    given = {key: k if value == "K" else value for key, value in parameters.items()}
    return partial(fit_predict, module, name, given)


def fit_predict(module: str, name: str, given: Row, X: Any) -> Any:
    """Return the labels that a class finds."""
    return getattr(importlib.import_module(module), name)(**given).fit_predict(X)


def warm_up(method: str) -> None:
    """Run a method on few rows, so that imports and the loading of compiled code are not timed."""
    cluster(method, 3)(few_rows())


def methods() -> list[str]:
    """Return the methods that can be run here, with a line for each package that is missing."""
    found = []
    for method, (module, _, _) in (OURS | SKLEARN).items():
        if importlib.util.find_spec(module):
            found.append(method)
        else:
            print(f"{method}: {module} is not installed, left out", flush=True)
    return found


def standardized(X: Any) -> Any:
    """Return the columns that vary with unit variance; sparse rows as they are."""
    if not isinstance(X, np.ndarray):
        return X
    X = X[:, X.std(axis=0) > 0]
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))


def few_rows() -> Any:
    """Return three blobs, on which every method is run before it is timed."""
    return np.random.default_rng(0).standard_normal((90, 3)) + 8 * np.eye(3)[np.arange(90) % 3]


def row_of(name: str, method: str, X: Any, y: Any, found: Measured) -> Row:
    """Return the line of one set and one method."""
    from sklearn.metrics import adjusted_rand_score

    from ravine import metrics

    k = len(np.unique(y))
    row: Row = {"dataset": name, "rows": X.shape[0], "columns": X.shape[1], "K": k, "method": method}
    if found.labels is None:
        return {**dict.fromkeys(FIELDS, ""), **row, "problem": found.problem}
    scores = {
        "clusters": len(np.unique(found.labels)),
        "v_measure": f"{metrics.v_measure(y, found.labels):.4f}",
        "ari": f"{adjusted_rand_score(y, found.labels):.4f}",
        "purity": f"{metrics.purity(y, found.labels):.4f}",
        "cpu_seconds": f"{found.seconds:.3f}",
        "peak_mb": f"{found.peak_mb:.1f}",
        "problem": "",
    }
    return row | scores


@dataclass(frozen=True)
class Measured:
    """How a fit ended: its labels, or in `problem` why there are none."""

    labels: Array | None
    seconds: float = float("nan")
    peak_mb: float = float("nan")  # above what the process held before the fit
    problem: str = ""


def measured(cluster: Cluster, X: Any, warm_up: Callable[[], Any], cpu_limit: int) -> Measured:
    """Run `cluster(X)` in a new process and return what it found and what it cost.

    Both functions are sent to the process; a forked one would hang if this one has threads. `warm_up` runs
    before the clock starts, so that imports and the loading of compiled code do not count. A fit that takes
    more than `cpu_limit` seconds of processor time is ended.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_fit, args=(there, cluster, X, warm_up, cpu_limit))
    process.start()
    there.close()
    try:
        found: Measured | None = here.recv()
    except EOFError:  # the process was ended before it could answer
        found = None
    process.join()
    if found is not None:
        return found
    late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
    return Measured(None, problem=f"more than {cpu_limit} s" if late else f"exit code {process.exitcode}")


def _fit(out: Connection, cluster: Cluster, X: Any, warm_up: Callable[[], Any], cpu_limit: int) -> None:
    from threadpoolctl import threadpool_limits

    try:
        warm_up()
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_limit, used + cpu_limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        before, began = _memory("VmRSS"), time.process_time()
        with threadpool_limits(1):
            labels = np.asarray(cluster(X))
        seconds = time.process_time() - began
        peak = _memory("VmHWM")
        out.send(Measured(labels, seconds, (peak - before) / 2**20))
    except Exception as error:  # a method that fails on a set is a result
        out.send(Measured(None, problem=f"{type(error).__name__}: {error}".splitlines()[0][:80]))


def _memory(name: str) -> int:
    """Return the bytes that this process holds in memory (VmRSS), or the most that it held (VmHWM).

    `ru_maxrss` is not used: it includes what the process that started this one held.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def sets(directory: str, most_rows: int) -> list[str]:
    """Return the labeled sets of a directory with at most so many rows, the smallest first."""
    sizes = {}
    for path in Path(directory).glob("*.npz"):
        with np.load(path) as stored:
            sizes[path.stem] = len(stored["y"])
    return sorted((name for name in sizes if sizes[name] <= most_rows), key=lambda name: (sizes[name], name))


def read(path: Path) -> list[Row]:
    """Return the lines of the file, if it is there."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, directory: str, names: list[str], chosen: list[str], cpu_limit: int) -> None:
    """Run what the file does not have, one line at a time."""
    done = {(row["dataset"], row["method"]) for row in read(path)}
    new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        for name in names:
            X, y = load(name, directory)
            X = standardized(X)
            for method in chosen:
                if (name, method) in done:
                    continue
                found = measured(cluster(method, len(np.unique(y))), X, partial(warm_up, method), cpu_limit)
                row = row_of(name, method, X, y, found)
                writer.writerow(row)
                file.flush()
                print(name, method, row["v_measure"], row["cpu_seconds"], row["problem"], flush=True)


def mean_ranks(scores: Array) -> Array:
    """Return the mean rank of each method, 1 the best; equal scores share their ranks.

    `scores` has one row per set and one column per method, the higher the better. A score that is missing
    (nan) is worse than any other.
    """
    from scipy.stats import rankdata

    filled = np.where(np.isnan(scores), -np.inf, scores)
    return np.asarray(rankdata(-np.round(filled, 6), axis=1).mean(axis=0))


def regret(scores: Array) -> Array:
    """Return by how much each method is below the best one on each set; a missing score counts as 0."""
    filled = np.nan_to_num(scores, nan=0.0)
    return np.asarray(filled.max(axis=1, keepdims=True) - filled)


def critical_difference(n_sets: int, n_methods: int, level: float = 0.05) -> float:
    r"""Return the difference of mean ranks above which two methods differ at `level`.

    .. math:: CD = q_\alpha \sqrt{k (k + 1) / (6 N)}

    with q the quantile of the studentized range for k methods and infinitely many degrees of freedom, over
    the square root of 2. Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7,
    2006.
    """
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def scores_of(rows: list[Row], metric: str, most_rows: int) -> tuple[list[str], list[str], Any]:
    """Return (sets, methods, scores) where all of them were tried; nan where one failed.

    Sets that most methods have not been run on yet are left out, then methods that lack one of the others.
    """
    cells = {(row["dataset"], row["method"]): row[metric] for row in rows if int(row["rows"]) <= most_rows}
    methods = list(dict.fromkeys(method for _, method in cells))
    names = [
        name
        for name in dict.fromkeys(name for name, _ in cells)
        if 4 * sum((name, method) in cells for method in methods) >= 3 * len(methods)
    ]
    tried = [method for method in methods if all((name, method) in cells for name in names)]
    table = [[float(cells[name, method] or "nan") for method in tried] for name in names]
    return names, tried, np.array(table).reshape(len(names), len(tried))


def summary(rows: list[Row], most_rows: int) -> list[Row]:
    """Return one row per method: means over the sets that all of them finished, ranks over all sets."""
    _, tried, v = scores_of(rows, "v_measure", most_rows)
    figures = {key: scores_of(rows, key, most_rows)[2] for key in ("ari", "purity", "cpu_seconds", "peak_mb")}
    whole = ~np.isnan(v).any(axis=1)
    ranks, loss = mean_ranks(v), regret(v)
    found: list[Row] = [
        {
            "method": method,
            "mean rank": float(ranks[j]),
            "V": float(v[whole, j].mean()),
            "ARI": float(figures["ari"][whole, j].mean()),
            "purity": float(figures["purity"][whole, j].mean()),
            "mean regret": float(loss[:, j].mean()),
            "maximum regret": float(loss[:, j].max()),
            "CPU s": float(np.nansum(figures["cpu_seconds"][:, j])),
            "maximum MB": float(np.nanmax(figures["peak_mb"][:, j], initial=0.0)),
            "failed": int(np.isnan(v[:, j]).sum()),
        }
        for j, method in enumerate(tried)
    ]
    return sorted(found, key=lambda row: row["mean rank"])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="directory of npz files (X, y)")
    parser.add_argument("--rows", type=int, default=10**9, help="sets with at most so many rows")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time per fit")
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "beside.csv")
    parser.add_argument("--show", action="store_true", help="run nothing")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if not arguments.show:
        chosen = [m for m in methods() if m in (arguments.methods or [m])]
        names = arguments.sets or sets(arguments.data, arguments.rows)
        record.announce_earlier(arguments.out)
        fill(arguments.out, arguments.data, names, chosen, arguments.limit)
        record.write_stamp(arguments.out)
    rows = read(arguments.out)
    names, tried, v = scores_of(rows, "v_measure", arguments.rows)
    print(f"\n{len(names)} sets; critical difference {critical_difference(*v.shape):.2f}\n")
    print(show(summary(rows, arguments.rows)))
    print()
    print(
        show(
            [
                {"dataset": n, **dict(zip(tried, map(float, line), strict=True))}
                for n, line in zip(names, v, strict=True)
            ]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
