"""The diffusion kernel beside scikit-learn's spectral clustering and Ward's, in one run, and new rows.

python benchmarks/kernels.py --data DIR
python benchmarks/kernels.py --nystroem 1000000
python benchmarks/kernels.py --shapes 10
python benchmarks/kernels.py --full optdigits --data DIR
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load
from benchmarks.papers import Row, keep, mean_row, show
from benchmarks.speed import in_process
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
    """V-measure at the true number of clusters, and how held-out rows are labeled."""
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
        "held out": agreement(density.labels_[held], rest.predict(X[held])),
        "seconds": seconds,
    }


NYSTROEM = """
import time
import numpy as np
from benchmarks.speed import four_gaussians
from ravine import MinimumDensity
from ravine.features.kernel_map import KernelMap
X, y = four_gaussians(ROWS, 50)
MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 50}).fit(X[:1000].copy())
mapped, largest = KernelMap.__call__, 0
def watched(self, rows):
    global largest
    points = mapped(self, rows)
    largest = max(largest, len(points))
    return points
KernelMap.__call__ = watched
def status(name):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from here
before, began = status("VmRSS"), time.perf_counter()
model = MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 500}, n_jobs=2).fit(X)
seconds, peak = time.perf_counter() - began, status("VmHWM")
side = np.array([model.labels_[y == k].mean() for k in range(4)])
together = np.where(side < 0.5, 1 - side, side)
print(f"{len(X)} x 50, {model.feature_map_!r}: {model.n_passes_:.1f} passes, {seconds:.0f} s")
print(f"resident before {before:.0f} MB, {peak - before:.0f} MB more at the peak")
print(f"at most {largest} rows mapped at a time; an image of all rows is {len(X) * 500 * 8 / 2**20:.0f} MB")
print(f"rows with the others of their Gaussian: {together.min():.2%} to {together.max():.2%}")
"""


def spirals(n: int, noise: float, seed: int) -> tuple[Any, Any]:
    """Two interlocked arms of n / 2 rows each, with few rows near the middle."""
    rng = np.random.default_rng(seed)
    angle = np.pi * (0.5 + 2.5 * np.sqrt(rng.random(n // 2)))
    arm = angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.concatenate([arm, -arm]) + noise * rng.standard_normal((n, 2)), np.repeat([0, 1], n // 2)


def shapes(n_seeds: int) -> list[Row]:
    """The least and the mean adjusted Rand index over seeds, for what no hyperplane of the rows separates."""
    from sklearn.datasets import make_circles, make_moons
    from sklearn.metrics import adjusted_rand_score

    drawn: dict[str, Callable[[int], Any]] = {
        "moons 400, noise 0.06": lambda seed: make_moons(400, noise=0.06, random_state=seed),
        "moons 600, noise 0.1": lambda seed: make_moons(600, noise=0.1, random_state=seed),
        "rings 400, factor 0.4": lambda seed: make_circles(400, noise=0.05, factor=0.4, random_state=seed),
        "spirals 600, noise 0.1": lambda seed: spirals(600, 0.1, seed),
        "spirals 1000, noise 0.3": lambda seed: spirals(1000, 0.3, seed),
    }
    rows: list[Row] = []
    for name, draw in drawn.items():
        row: Row = {"shape": name}
        for method in (MinimumDensity, SpectralConnectivity):
            for kernel, params in (("rbf", None), ("rbf", {"n_components": 0.9}), ("diffusion", None)):
                found = []
                for seed in range(n_seeds):
                    X, y = draw(seed)
                    model = method(2, kernel=kernel, kernel_params=params).fit(X)
                    found.append(adjusted_rand_score(y, model.labels_))
                told = f"{method.__name__} {kernel}{' 0.9' if params else ''}"
                row[told] = f"{np.min(found):.2f} / {np.mean(found):.2f}"
        rows.append(row)
    return rows


def full(name: str, directory: str | None) -> list[Row]:
    """KMDH with all rows as landmarks beside landmarks and S-KMDH, on one set."""
    X, y = load(name, directory)
    ways: dict[str, dict[str, Any]] = {
        "S-KMDH": {"n_components": 0.9},
        "KMDH, landmarks": {},
        "S-KMDH, all rows": {"n_components": 0.9, "landmarks": None},
        "KMDH, all rows": {"landmarks": None},
    }
    rows: list[Row] = []
    for way, params in ways.items():
        began = time.perf_counter()
        model = MinimumDensity(2, kernel="rbf", kernel_params=params).fit(X)
        seconds = time.perf_counter() - began
        split = model.tree_.splits[0]
        assert model.feature_map_ is not None
        assert split is not None
        rows.append(
            {
                "way": way,
                "components": str(model.feature_map_.n_components),
                "SR": metrics.success_ratio(y, model.labels_),
                "V": metrics.binary_v_measure(y, model.labels_),
                "depth": split.quality,
                "seconds": seconds,
            }
        )
        print(show(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--sets", nargs="+", default=list(ELEVEN), choices=ELEVEN)
    parser.add_argument("--out", default=str(Path(__file__).parent / "results" / "kernels.csv"))
    parser.add_argument("--nystroem", type=int, metavar="ROWS", help="fit as many rows in a fresh process")
    parser.add_argument("--shapes", type=int, metavar="SEEDS", help="moons, rings and spirals")
    parser.add_argument("--full", metavar="SET", help="KMDH of all rows of a set beside landmarks")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if arguments.nystroem:
        print(in_process(NYSTROEM.replace("ROWS", str(arguments.nystroem))))
        return 0
    if arguments.shapes or arguments.full:
        print(show(shapes(arguments.shapes) if arguments.shapes else full(arguments.full, arguments.data)))
        return 0
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
