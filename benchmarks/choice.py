"""A given number of clusters: AutoCluster beside every single method, and defaults by leave-sets-out.

python benchmarks/choice.py --data DIR --out FILE        # every dense labeled set of at most 11 000 rows
python benchmarks/choice.py --seeds 3 --out FILE         # generated sets instead
python benchmarks/choice.py --read FILE                  # only the summary of an earlier run
python benchmarks/choice.py --default connectivity --data DIR --seeds 2

`--default` runs a few values of parameters, the default first, on the real and the generated sets, and says
what each gives and what is chosen on the other sets; the rule is in docs/defaults.md. The standard error
after +- is that of the mean difference from the default over the sets.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record
from benchmarks.datasets import load
from benchmarks.generators import generated
from benchmarks.papers import show

Array = np.ndarray[Any, Any]
MAX_ROWS = 11_000
Row = dict[str, Any]


def real_sets(directory: str) -> Iterator[tuple[str, Array, Array]]:
    """Yield the labeled dense sets of a directory."""
    for path in sorted(Path(directory).glob("*.npz")):
        with np.load(path) as stored:
            small = "X" in stored and len(stored["y"]) <= MAX_ROWS
        if small:
            yield path.stem, *load(path.stem, directory)


def others(k: int) -> dict[str, Any]:
    """Return clusterers of scikit-learn."""
    from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
    from sklearn.mixture import GaussianMixture

    spectral = {"affinity": "nearest_neighbors", "assign_labels": "cluster_qr", "random_state": 0}
    return {
        "KMeans": KMeans(k, n_init=10, random_state=0),
        "Ward": AgglomerativeClustering(k),
        "average linkage": AgglomerativeClustering(k, linkage="average"),
        "GaussianMixture": GaussianMixture(k, reg_covar=1e-3, random_state=0),
        "SpectralClustering": SpectralClustering(k, **spectral),
    }


def run_set(name: str, X: Array, y: Array, with_others: bool) -> Iterator[Row]:
    """Yield one row per method: AutoCluster, the methods of ravine, and scikit-learn's."""
    from sklearn.preprocessing import StandardScaler

    from ravine import AutoCluster, compare
    from ravine.metrics import v_measure

    k = len(np.unique(y))
    began = time.perf_counter()
    model = AutoCluster(k).fit(X)
    seconds = time.perf_counter() - began
    yield {"dataset": name, "method": "AutoCluster", "V": v_measure(y, model.labels_), "seconds": seconds}
    for c in compare(X, k):
        kernel = " diffusion" if c.estimator.kernel else ""
        method = type(c.estimator).__name__ + kernel
        v = v_measure(y, c.estimator.labels_)
        yield {"dataset": name, "method": method, "V": v, "seconds": c.seconds}
    Z = StandardScaler().fit_transform(X)
    for method, other in others(k).items() if with_others else ():
        began = time.process_time()
        labels = other.fit_predict(Z)
        yield {
            "dataset": name,
            "method": method,
            "V": v_measure(y, labels),
            "seconds": time.process_time() - began,
        }


def means(rows: list[Row]) -> list[Row]:
    """Return the mean V-measure and the time of all methods that ran on every set, the best first."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    n = max(map(len, by_method.values()))
    found: list[Row] = [
        {
            "method": method,
            "V": float(np.mean([float(row["V"]) for row in some])),
            "seconds": sum(float(row["seconds"]) for row in some),
        }
        for method, some in by_method.items()
        if len(some) == n
    ]
    return sorted(found, key=lambda row: -row["V"])


# question -> (estimator, values of its parameters; the default comes first)
QUESTIONS: dict[str, tuple[str, list[Row]]] = {
    "connectivity": ("SpectralConnectivity", [{}, {"sigma_factor": 2.0}, {"sigma_factor": 0.5}]),
    "margin": ("MaximumMargin", [{}, {"balance": 0.01}, {"balance": 0.1}, {"balance": 0.3}]),
    "principal": ("PrincipalDirection", [{}, {"threshold": "density"}]),
}


def leave_sets_out(table: Array) -> tuple[float, dict[int, int]]:
    """Return the mean of the values chosen on all other sets, and how often each was chosen.

    >>> leave_sets_out(np.array([[0.5, 0.6], [0.5, 0.7], [0.9, 0.1]]))[1]
    {1: 1, 0: 2}
    """
    chosen = [int(np.argmax(np.delete(table, i, axis=0).mean(axis=0))) for i in range(len(table))]
    counts = {value: chosen.count(value) for value in sorted(set(chosen), reverse=True)}
    return float(np.mean([table[i, value] for i, value in enumerate(chosen)])), counts


def choose_default(question: str, data: str | None, seeds: int) -> None:
    """Print what every value of a question gives, for the real and the generated sets by themselves."""
    import ravine

    estimator, values = QUESTIONS[question]
    families = {"real": real_sets(data) if data else iter(())}
    families["generated"] = (one for seed in range(seeds) for one in generated(seed))
    for family, sets in families.items():
        scores = []
        for name, X, y in sets:
            models = [getattr(ravine, estimator)(len(np.unique(y)), **value) for value in values]
            scores.append([ravine.metrics.v_measure(y, model.fit(X).labels_) for model in models])
            print(f"{name:24}", "  ".join(f"{v:.3f}" for v in scores[-1]), flush=True)
        if not scores:
            continue
        table = np.array(scores)
        errors = (table - table[:, :1]).std(axis=0) / np.sqrt(len(table))
        print(f"\n{family}, {len(table)} sets")
        for value, v, error in zip(values, table.mean(axis=0), errors, strict=True):
            print(f"  {value or 'default'!s:34} {v:.4f} +- {error:.4f}")
        mean, counts = leave_sets_out(table)
        print(f"  {'leave-sets-out':34} {mean:.4f}, chosen {counts}\n")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="directory of npz files (X, y)")
    parser.add_argument("--seeds", type=int, default=1, help="generated sets of so many seeds")
    parser.add_argument("--out", type=Path, help="a CSV file, one row per set and method")
    parser.add_argument("--read", type=Path, help="a CSV file of an earlier run")
    parser.add_argument("--no-others", action="store_true", help="without the methods of scikit-learn")
    parser.add_argument("--default", choices=QUESTIONS, help="compare values of a parameter instead")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if arguments.default:
        choose_default(arguments.default, arguments.data, arguments.seeds)
        return
    rows: list[Row] = []
    if arguments.read:
        with open(arguments.read, newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        made = (one for seed in range(arguments.seeds) for one in generated(seed))
        for name, X, y in real_sets(arguments.data) if arguments.data else made:
            rows += run_set(name, X, y, not arguments.no_others)
            print(name, flush=True)
            if arguments.out:
                with open(arguments.out, "w", newline="") as file:
                    writer = csv.DictWriter(file, ["dataset", "method", "V", "seconds"])
                    writer.writeheader()
                    writer.writerows(rows)
                record.write_stamp(arguments.out)
    print(show(means(rows)))


if __name__ == "__main__":
    main()
