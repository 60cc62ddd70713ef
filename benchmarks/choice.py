"""Choices without labels: AutoCluster against every single method, and defaults by leave-sets-out.

python benchmarks/choice.py --data DIR --out FILE        # every dense labeled set of at most 11 000 rows
python benchmarks/choice.py --seeds 3 --out FILE         # generated sets instead
python benchmarks/choice.py --read FILE                  # only the summary of an earlier run
python benchmarks/choice.py --default connectivity --data DIR --seeds 2

The oracle of a set is its best candidate, and the regret of a method what it loses against the oracle. The
file has one row per set and method, with the figures of the judges, so that `--read` repeats the choice: also
by other judges, and with the judges chosen on all other sets (leave-sets-out).

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

Array = np.ndarray[Any, Any]
MAX_ROWS = 11_000
FIGURES = ("separation_probability", "modularity", "agreement", "cut_ratio", "smallest_share", "n_clusters")
JUDGES = {  # combinations that are compared: weights of the ranks of MSP, modularity and agreement
    "MSP": (1, 0, 0),
    "modularity": (0, 1, 0),
    "agreement": (0, 0, 1),
    "MSP + modularity": (1, 1, 0),
    "MSP + agreement": (1, 0, 1),
    "modularity + agreement": (0, 1, 1),
    "MSP + modularity + agreement": (1, 1, 1),
    "MSP + modularity + 2 agreement": (1, 1, 2),
    "MSP + 2 modularity + agreement": (1, 2, 1),
    "2 MSP + modularity + agreement": (2, 1, 1),
}
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
    """Yield one row per method: AutoCluster's candidates, itself, and scikit-learn's."""
    from sklearn.preprocessing import StandardScaler

    from ravine import AutoCluster
    from ravine.metrics import v_measure

    k = len(np.unique(y))
    began = time.perf_counter()  # as for the candidates
    model = AutoCluster(k).fit(X)
    seconds = time.perf_counter() - began
    yield {"dataset": name, "method": "AutoCluster", "V": v_measure(y, model.labels_), "seconds": seconds}
    for c in model.candidates_:
        v = v_measure(y, c.estimator.labels_)
        figures = {figure: getattr(c, figure) for figure in FIGURES}
        yield {"dataset": name, "method": c.name, "V": v, "seconds": c.seconds, **figures}
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


def by_set(rows: list[Row]) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["dataset"], {})[row["method"]] = row
    return found


def candidates(methods: dict[str, Row]) -> list[Row]:
    return [row for row in methods.values() if row.get("modularity") not in (None, "")]


def chosen(rows: list[Row], weights: tuple[int, int, int], gate: bool = True) -> float:
    """Return the V-measure of the candidate that a weighted sum of ranks chooses."""
    from ravine.estimators.judging import Judgment, best_first, ranks

    figures = [[float(row[figure]) for row in rows] for figure in FIGURES]
    sums = np.array(sum(w * ranks(np.array(figures[j])) for j, w in enumerate(weights)))
    judged = [
        Judgment(msp, q, 0.0, ratio if gate else 1.0, share, int(k))
        for msp, q, _, ratio, share, k in zip(*figures, strict=True)
    ]
    return float(rows[best_first(judged, sums, 0.05)[0]]["V"])


def means(rows: list[Row]) -> list[Row]:
    """Return the mean V-measure and regret of all methods that ran on every set, the best first."""
    sets = by_set(rows)
    oracle = float(np.mean([max(float(row["V"]) for row in candidates(m)) for m in sets.values()]))
    found: list[Row] = [{"method": "oracle of the candidates", "V": oracle, "regret": 0.0}]
    for method in next(iter(sets.values())):
        if all(method in methods for methods in sets.values()):
            v = float(np.mean([float(methods[method]["V"]) for methods in sets.values()]))
            found.append({"method": method, "V": v, "regret": oracle - v})
    return sorted(found, key=lambda row: row["regret"])


def summary(rows: list[Row]) -> list[str]:
    """Return the means of all methods, the choice by other judges, and by judges chosen on the other sets."""
    sets = by_set(rows)
    lines = [f"{len(sets)} sets", ""]
    lines += [f"{row['method']:34} V {row['V']:.4f}  regret {row['regret']:+.4f}" for row in means(rows)]
    ways = [(name, w, gate) for gate in (True, False) for name, w in JUDGES.items()]
    table = np.array([[chosen(candidates(m), w, gate) for _, w, gate in ways] for m in sets.values()])
    lines.append("")
    for (name, _, gate), v in zip(ways, table.mean(axis=0), strict=True):
        lines.append(f"{name + ('' if gate else ', ranks only'):48} V {v:.4f}")
    lines.append(f"{'judges chosen on the other sets':34} V {leave_sets_out(table)[0]:.4f}")
    total = [sum(float(row["seconds"]) for row in candidates(m)) for m in sets.values()]
    auto = [float(m["AutoCluster"]["seconds"]) for m in sets.values()]
    lines.append(f"time: {sum(auto):.0f} s for {sum(total):.0f} s of the candidates")
    return lines


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
                    writer = csv.DictWriter(file, ["dataset", "method", "V", "seconds", *FIGURES])
                    writer.writeheader()
                    writer.writerows(rows)
                record.write_stamp(arguments.out)
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
