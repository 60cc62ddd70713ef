"""Clusterers with a few labels: how well the clusters of the other rows agree with the classes.

python benchmarks/steering.py --data DIR
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import datasets

Array = np.ndarray[Any, Any]

SETS = ("banknote", "breast_w", "dermatology", "seeds", "voting", "wine")
METHODS = ("MinimumDensity", "SpectralConnectivity", "MaximumMargin", "MaximinSeparation")
EACH = (0, 2, 6)  # labeled rows of each class


def draw(y: Array, each: int, rng: np.random.Generator) -> Array:
    """Return y with all but some random rows of each class unlabeled."""
    partly = np.full(len(y), -1)
    for c in np.unique(y):
        known = rng.choice(np.flatnonzero(y == c), each, replace=False)
        partly[known] = c
    return partly


def agreement(method: str, X: Array, y: Array, each: int, n_draws: int) -> float:
    """Return the mean adjusted Rand index over the unlabeled rows."""
    import ravine

    found = []
    for seed in range(n_draws if each else 1):
        partly = draw(y, each, np.random.default_rng(seed))
        labels = getattr(ravine, method)(len(np.unique(y))).fit(X, partly).labels_
        found.append(adjusted_rand_score(y[partly < 0], labels[partly < 0]))
    return float(np.mean(found))


def main() -> None:
    """Print the table: a row a set, for each method the index without labels and with some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="directory of npz files; OpenML without it")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--draws", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for name in asked.sets:
        X, y = datasets.load(name, asked.data)
        cells = [
            " / ".join(f"{agreement(method, X, y, each, asked.draws):.2f}" for each in EACH)
            for method in METHODS
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
