"""Rows far from everything, alone or in a group: do they hide three clear clusters?

python benchmarks/far.py [--clusters 3] [--layouts 4] [--model MinimumDensity]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ravine
from benchmarks.papers import Row, show

Array = np.ndarray[Any, Any]
N = 900
GROUP = 9  # rows of a far group: 1 %
MODELS: dict[str, Callable[..., Any]] = {
    "MinimumDensity": ravine.MinimumDensity,
    "SpectralConnectivity": ravine.SpectralConnectivity,
    "SpectralConnectivity, standard": lambda k, **p: ravine.SpectralConnectivity(
        k, laplacian="standard", **p
    ),
    "SpectralConnectivity, orthogonal": lambda k, **p: ravine.SpectralConnectivity(
        k, projection="orthogonal", **p
    ),
    "SpectralConnectivity, correlated": lambda k, **p: ravine.SpectralConnectivity(
        k, projection="correlated", **p
    ),
    "SpectralConnectivity, large margin": lambda k, **p: ravine.SpectralConnectivity(
        k, large_margin=True, **p
    ),
    "MaximumMargin": ravine.MaximumMargin,
    "MaximinSeparation, mpm": ravine.MaximinSeparation,
    "MaximinSeparation, gep": lambda k, **p: ravine.MaximinSeparation(k, solver="gep", **p),
    "MaximinSeparation, eig": lambda k, **p: ravine.MaximinSeparation(k, solver="eig", **p),
    "MaximinSeparation, pursuit": lambda k, **p: ravine.MaximinSeparation(k, solver="pursuit", **p),
    "PrincipalDirection": ravine.PrincipalDirection,
    "PrincipalDirection, density": lambda k, **p: ravine.PrincipalDirection(k, threshold="density", **p),
    "AutoCluster": ravine.AutoCluster,
}
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


SINGLE: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "none": lambda X, rng: X[:0],
    **{f"row at 1e{k}": lambda X, rng, k=k: np.full((1, 2), 10.0**k) for k in range(2, 10)},  # type: ignore[misc]
    "1 %": lambda X, rng: noise(X, 0.01, 100.0, rng),
    "5 %": lambda X, rng: noise(X, 0.05, 100.0, rng),
    "99999 in a cell": lambda X, rng: cells(X, 1, 99999.0, rng),
    "20 % near": lambda X, rng: noise(X, 0.2, 1.5, rng),
}
GROUPS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    **{
        f"group at 1e{k}": lambda X, rng, k=k: np.array([1.0, 0.5]) * 10.0**k + rng.normal(size=(GROUP, 2))  # type: ignore[misc]
        for k in (2, 3, 6)
    },
    "99999 in 1 %": lambda X, rng: cells(X, GROUP, 99999.0, rng),
}


def lowest(
    make: Callable[..., Any], k: int | str, added: Callable[..., Array], layouts: int, **given: Any
) -> float:
    """Return the lowest adjusted Rand index over the layouts; the rows that were added do not count."""
    found = []
    for layout in range(layouts):
        X, y = blobs(layout)
        more = added(X, np.random.default_rng([layout, 7]))
        labels = make(k, **given).fit(np.vstack([X, more])).labels_
        found.append(adjusted_rand_score(y, labels[: len(y)]))
    return float(min(found))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clusters", default="3", choices=["3", "auto"])
    parser.add_argument("--layouts", type=int, default=len(CENTERS))
    parser.add_argument("--model", action="append", choices=MODELS, help="all by default")
    parser.add_argument("--outliers", default="assign", choices=["assign", "include"])
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    k = 3 if given.clusters == "3" else "auto"
    rows: list[Row] = []
    for name in given.model or MODELS:
        row: Row = {"method": name}
        for added, draw in {**SINGLE, **GROUPS}.items():
            row[added] = lowest(MODELS[name], k, draw, given.layouts, outliers=given.outliers)
        rows.append(_shortened(row))
        print(rows[-1], file=sys.stderr, flush=True)
    print(show(rows))
    return 0


def _shortened(row: Row) -> Row:
    """Return a row with one column, the lowest figure, for all distances and for all groups."""
    found: Row = {}
    for name, value in row.items():
        far = str(name).startswith("row at")
        column = "row at 1e2 to 1e9" if far else "1 % in a group" if name in GROUPS else name
        found[column] = min(found[column], value) if column in found else value
    return found


if __name__ == "__main__":
    sys.exit(main())
