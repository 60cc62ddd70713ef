"""The diffusion kernel beside scikit-learn's spectral clustering and Ward's, in one run, and new rows.

python benchmarks/kernels.py --data DIR
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load
from benchmarks.papers import Row, keep, mean_row, show
from ravine import MinimumDensity, SpectralConnectivity, metrics

ELEVEN = (
    "wine",
    "seeds",
    "dermatology",
    "breast_w",
    "control_chart",
    "yeast_cc",
    "mfeat_fac",
    "segment",
    "satellite",
    "optdigits",
    "pendigits",
)
HELD_OUT = 5  # every fifth row


def agreement(a: Any, b: Any) -> float:
    """Return the share of rows with the same label, clusters being matched one to one."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(a, b)
    return float(table[linear_sum_assignment(-table)].sum() / table.sum())


def compare(X: Any, y: Any) -> Row:
    """V-measure at the true number of clusters, and how held-out rows are labelled."""
    from sklearn.cluster import AgglomerativeClustering, SpectralClustering
    from sklearn.preprocessing import StandardScaler

    k = len(np.unique(y))
    scaled = StandardScaler().fit_transform(X)
    began = time.perf_counter()
    density = MinimumDensity(k, kernel="diffusion").fit(X)
    seconds = time.perf_counter() - began
    held = np.arange(len(X)) % HELD_OUT == 0
    rest = MinimumDensity(k, kernel="diffusion").fit(X[~held])
    nearest = SpectralClustering(k, affinity="nearest_neighbors", random_state=0)
    return {
        "MinimumDensity": metrics.v_measure(y, density.labels_),
        "SpectralConnectivity": metrics.v_measure(
            y, SpectralConnectivity(k, kernel="diffusion").fit(X).labels_
        ),
        "SpectralClustering": metrics.v_measure(y, nearest.fit_predict(scaled)),
        "Ward": metrics.v_measure(y, AgglomerativeClustering(k).fit_predict(scaled)),
        "held out as together": agreement(density.labels_[held], rest.predict(X[held])),
        "seconds": seconds,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--sets", nargs="+", default=list(ELEVEN), choices=ELEVEN)
    parser.add_argument("--out", default=str(Path(__file__).parent / "results" / "kernels.csv"))
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name in arguments.sets:
        rows.append({"dataset": name, **compare(*load(name, arguments.data))})
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    rows.append(mean_row("mean", rows))
    print(show(rows))
    keep(rows, Path(arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
