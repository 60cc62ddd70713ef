"""How much spectral connectivity depends on sigma and on the number of micro-clusters (Section 7.4).

python benchmarks/sensitivity.py sigma --data DIR          Figures 7 and 8: five sets, factors 0.1 to 10
python benchmarks/sensitivity.py microclusters             Figures 9 and 10: five Gaussians in 50 dimensions

Each writes benchmarks/results/sensitivity_WHAT.png.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load
from benchmarks.papers import Row, show
from ravine import SpectralConnectivity, metrics

SETS = ("breast_w", "voting", "dermatology", "yeast_cc", "control_chart")
FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
RESULTS = Path(__file__).parent / "results"


def sigma(directory: str | None) -> list[Row]:
    """V-measure by the factor of sigma, one direction and two."""
    rows: list[Row] = []
    for name in SETS:
        X, y = load(name, directory)
        for projection in ("univariate", "orthogonal"):
            row: Row = {"dataset": name, "projection": projection}
            for factor in FACTORS:
                model = SpectralConnectivity(len(np.unique(y)), projection=projection, sigma_factor=factor)
                row[f"x {factor:g}"] = metrics.v_measure(y, model.fit(X).labels_)
            rows.append(row)
    return rows


def gaussians(n: int, seed: int) -> tuple[Any, Any]:
    """Five Gaussians with random covariances in 50 dimensions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=n)
    X = np.empty((n, 50))
    for k in range(5):
        spread = rng.standard_normal((50, 50)) / 5
        X[labels == k] = (
            0.5 * rng.standard_normal(50) + rng.standard_normal(((labels == k).sum(), 50)) @ spread
        )
    return X, labels


def microclusters(directory: str | None) -> list[Row]:
    """V-measure by the number of micro-clusters for 1000 rows, and by the rows for 200 of them."""
    rows: list[Row] = []
    cases = [(1000, m) for m in (50, 100, 200, 400, 1000)] + [(n, 200) for n in (2000, 5000, 10_000)]
    for n, m in cases:
        found = []
        for seed in range(5):
            X, y = gaussians(n, seed)
            model = SpectralConnectivity(5, projection="orthogonal", n_microclusters=m, random_state=seed)
            found.append(metrics.v_measure(y, model.fit(X).labels_))
        low, median, high = np.percentile(found, [25, 50, 75])
        rows.append({"rows": n, "micro-clusters": m, "quartile": low, "median": median, "upper": high})
    return rows


def draw(what: str, rows: list[Row]) -> None:
    """Draw the table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    if what == "sigma":
        for row in rows:
            style = "-" if row["projection"] == "univariate" else "--"
            values = [row[f"x {factor:g}"] for factor in FACTORS]
            ax.plot(FACTORS, values, style, marker=".", label=f"{row['dataset']}, {row['projection']}")
        ax.set(xscale="log", xlabel="factor of sigma", ylabel="V-measure", ylim=(0, 1))
        ax.legend(fontsize=7, ncols=2)
    else:
        places = range(len(rows))
        middle = [row["median"] for row in rows]
        spread = [
            [row["median"] - row["quartile"] for row in rows],
            [row["upper"] - row["median"] for row in rows],
        ]
        ax.errorbar(places, middle, yerr=spread, fmt="o", capsize=4)
        ax.set_xticks(places, [f"{row['rows']}\n{row['micro-clusters']}" for row in rows])
        ax.set(xlabel="rows, micro-clusters", ylabel="V-measure (median, quartiles)", ylim=(0, 1.02))
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"sensitivity_{what}.png", dpi=110)


RUN = {"sigma": sigma, "microclusters": microclusters}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=sorted(RUN))
    parser.add_argument("--data", help="directory of npz files; without it, OpenML is asked")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = RUN[arguments.what](arguments.data)
    print(show(rows))
    draw(arguments.what, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
