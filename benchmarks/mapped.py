"""The number of clusters with a kernel: shapes, rows without clusters, and the bands of the test.

    python benchmarks/mapped.py shapes [--draws 10] [--kernel diffusion] [--method MinimumDensity]
    python benchmarks/mapped.py bands [--draws 30]

"shapes" counts how often the number that "auto" finds is the true one. "bands" gives mean and deviation of L,
the depth in the neighbor graph, over uniform bands that are cut where it is largest: BAND_MEAN and
BAND_DEVIATION of `evidence/graph_test.py` are not below them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ravine
from benchmarks.kernels import spirals
from ravine.data.memory import MemoryRows
from ravine.evidence.graph_test import GraphTest
from ravine.features.row_graph import row_graph

Array = np.ndarray[Any, Any]
ASPECT = 8.0  # length of a band over its width
CUTS = 25  # places at which a band is cut
OUTER = 0.1  # share of the rows on the smaller side of such a cut, at least


def moons(rng: np.random.Generator) -> Array:
    """Two half circles of radius 1, one inside the other's opening, with noise 0.07."""
    angle, second = np.pi * rng.random(600), rng.integers(0, 2, 600)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    flipped = np.array([1.0, 0.5]) - circle
    return np.where(second[:, None] == 1, flipped, circle) + rng.normal(0, 0.07, (600, 2))


def rings(rng: np.random.Generator) -> Array:
    """Three rings of equal density with radii 1, 2 and 3, and noise 0.1."""
    radius, angle = rng.choice([1.0, 2.0, 3.0], 900, p=[1 / 6, 2 / 6, 3 / 6]), 2 * np.pi * rng.random(900)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(radius[:, None] * circle + rng.normal(0, 0.1, (900, 2)))


def blobs(rng: np.random.Generator) -> Array:
    """Three unit Gaussians in five columns."""
    return rng.normal(size=(600, 5)) + 4.0 * (np.arange(600) % 3)[:, None]


SHAPES: dict[str, tuple[int, Callable[[np.random.Generator], Array]]] = {
    "moons": (2, moons),
    "rings": (3, rings),
    "spirals": (2, lambda rng: spirals(600, 0.1, int(rng.integers(1 << 31)))[0]),
    "blobs": (3, blobs),
    "Gaussian, 2 columns": (1, lambda rng: rng.normal(size=(500, 2))),
    "Gaussian, 5 columns": (1, lambda rng: rng.normal(size=(500, 5))),
    "cube, 5 columns": (1, lambda rng: rng.random((500, 5))),
}


def run_shapes(given: argparse.Namespace) -> None:
    """Print how often the number of clusters is the true one, and all numbers found."""
    estimator = getattr(ravine, given.method)
    print("| rows | clusters | right | found |\n|---|---|---|---|")
    for name, (k, draw) in SHAPES.items():
        rows = [draw(np.random.default_rng(seed)) for seed in range(given.draws)]
        found = [estimator("auto", kernel=given.kernel).fit(X).n_clusters_ for X in rows]
        right = sum(n == k for n in found)
        print(f"| {name} | {k} | {right} of {given.draws} | {found} |", flush=True)


def deepest(n: int, rng: np.random.Generator) -> float:
    """Return the largest L of cuts across a band of n rows."""
    X = rng.random((n, 2)) * [ASPECT, 1.0]
    graph = row_graph(MemoryRows(X), standardize=False)
    test = GraphTest(ravine.MinimumDensity()._method(), 0.01, graph)
    along = X[graph.numbers, 0]
    cuts = np.quantile(along, np.linspace(OUTER, 1 - OUTER, CUTS))
    return max(test.depth(np.arange(len(along)), along > cut) for cut in cuts)


def run_bands(given: argparse.Namespace) -> None:
    """Print mean and deviation of L by the number of rows."""
    print("| rows | mean | deviation |\n|---|---|---|")
    for n in (100, 300, 1000, 3000):
        found = [deepest(n, np.random.default_rng(seed)) for seed in range(given.draws)]
        print(f"| {n} | {np.mean(found):.2f} | {np.std(found, ddof=1):.2f} |", flush=True)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("shapes", "bands"))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--kernel", default="diffusion")
    parser.add_argument("--method", default="MinimumDensity")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    (run_shapes if given.what == "shapes" else run_bands)(given)


if __name__ == "__main__":
    main()
