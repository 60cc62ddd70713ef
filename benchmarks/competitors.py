"""The competitors' columns of the papers' tables: our figure beside the printed one.

python benchmarks/competitors.py --table mdh --data DIR                      all columns and sets
python benchmarks/competitors.py --table cpmmc --data DIR --sets ionosphere --methods NC GMMC
python benchmarks/competitors.py --table mdh --show                          what the file has; nothing is run

One line per set and method goes to `results/competitors_TABLE.csv`; what is there is not run again. Where a
paper tunes a method by the labels, so does this: the figure is the best of the settings named here. The
methods are those of `benchmarks/baselines`, each in a few lines, so differences from a paper's own code are
to be expected. Above the sizes named here a method sees a part of the rows.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import baselines, record
from benchmarks.baselines import IterSVR
from benchmarks.baselines.spectral import SCALES, affinity, clusters_of, components, representatives
from benchmarks.beside import standardized as with_unit_variance
from benchmarks.datasets import PAIRS, load, pair, problem
from benchmarks.papers import Row, show
from ravine import metrics

Array = np.ndarray[Any, Any]
Method = Callable[[Any, int], Iterator[Array]]  # labelings, one per setting; the best one counts
Problem = tuple[Any, Array]

HERE = Path(__file__).resolve().parent
TABLES = HERE / "paper_tables"
SVR_ROWS = 1000  # that a regression sees
DENSE = 1000  # rows of a dense eigenproblem (Hofmeyr, Pavlidis, Eckley, Section 7.1)
SMALL = 400  # rows that GMMC is given, as in the paper
TINY = 80  # rows that MMC is given, as in Xu et al.
LAMBDAS = [10.0**k for k in range(-4, 5)]


def k_means(X: Any, k: int) -> Iterator[Array]:
    from sklearn.cluster import KMeans

    yield KMeans(k, n_init=10, random_state=0).fit_predict(X)


def one(cluster: Callable[[Any, int], Array]) -> Method:
    """Return a method that has one setting."""

    def run(X: Any, k: int) -> Iterator[Array]:
        yield cluster(X, k)

    return run


def svr(*models: IterSVR) -> Method:
    """Return iterative support vector regression, which splits the largest cluster for more than two."""

    def run(X: Any, k: int) -> Iterator[Array]:
        for model in models:
            yield baselines.divide(X, k, lambda rows, m=model: m.fit_predict(rows) > 0)  # type: ignore[misc]

    return run


SVR_L, SVR_G = IterSVR("linear", max_rows=SVR_ROWS), IterSVR("rbf", max_rows=SVR_ROWS)
SVR_TUNED = svr(
    *(IterSVR("linear", C, max_rows=SVR_ROWS) for C in (0.001, 0.01, 0.1)),
    *(IterSVR("rbf", C, g, max_rows=SVR_ROWS) for C in (1.0, 10.0) for g in (0.25, 1.0, 4.0)),
)


def spectral(normalized: bool, kind: str = "") -> Method:
    """Return SC or SCn over the paper's scales and local scaling, on all columns or K - 1 components."""

    def run(X: Any, k: int) -> Iterator[Array]:
        points = components(X, k - 1, kind) if kind else X
        centers, follows = representatives(points, DENSE // 2 if len(X) > DENSE else DENSE)
        for scale in (None, *SCALES):
            yield clusters_of(affinity(centers, scale), k, normalized=normalized)[follows]

    return run


def drsc(X: Any, k: int) -> Iterator[Array]:
    for scale in SCALES[2:8]:
        yield baselines.drsc(X, k, scale)


def kernel_spectral(X: Any, k: int) -> Iterator[Array]:
    """Spectral clustering with the kernel matrix of KMDH: the RBF with ravine's width."""
    from sklearn.preprocessing import StandardScaler

    from ravine.features.kernel_map import rbf_width

    points = StandardScaler().fit_transform(X)
    centers, follows = representatives(points, DENSE)
    part = points[np.random.default_rng(0).permutation(len(points))[:2500]]
    yield clusters_of(affinity(centers, rbf_width(part, np.ones(len(part)))), k)[follows]


def widths(squared: Array) -> list[float]:
    """Return a grid of widths around the median distance."""
    median = float(np.sqrt(np.median(squared)))
    return [median * factor for factor in (0.1, 0.2, 0.5, 1.0, 2.0)]


def normalized_cut(X: Any, k: int) -> Iterator[Array]:
    """Normalized cut of Gaussian similarities, over widths; of text, of its cosines too."""
    from sklearn.metrics.pairwise import euclidean_distances

    if not isinstance(X, np.ndarray):
        yield baselines.normalized_cut((X @ X.T).toarray())
    squared = euclidean_distances(X, squared=True)
    for width in widths(squared):
        yield baselines.normalized_cut(np.exp(-squared / (2 * width**2)))


def centered(kernel: Array) -> Array:
    """Return the kernel matrix of centered images, with mean variance 1."""
    kernel = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    return np.asarray(kernel / (kernel.trace() / len(kernel)))


def kernel_grid(X: Any) -> Iterator[Array]:
    """Yield centered kernels: the linear one, and Gaussian ones of several widths."""
    from sklearn.metrics.pairwise import euclidean_distances

    squared = euclidean_distances(X, squared=True)
    yield centered(np.asarray(X @ X.T))
    for width in widths(squared)[2:]:
        yield centered(np.exp(-squared / (2 * width**2)))


def gmmc(X: Any, k: int) -> Iterator[Array]:
    for kernel, C in itertools.product(kernel_grid(X), (1.0, 100.0)):
        yield baselines.gmmc(kernel, C, tol=1e-4)


def mmc(X: Any, k: int) -> Iterator[Array]:
    for kernel, C in itertools.product(kernel_grid(X), (0.1, 1.0)):
        yield baselines.mmc(kernel, C)


def lgmmc(X: Any, k: int) -> Iterator[Array]:
    """LG-MMC, linear and with a Gaussian kernel by 60 landmarks, over C."""
    from sklearn.kernel_approximation import Nystroem

    scale = np.sqrt(X.var(axis=0).mean())
    spaces = [X / scale]
    if X.shape[1] < 100:  # as in the paper, linear for images
        gammas = [factor / X.shape[1] for factor in (0.25, 1.0)]
        spaces += [
            Nystroem(gamma=g, n_components=60, random_state=0).fit_transform(X / scale) for g in gammas
        ]
    for space, C in itertools.product(spaces, (0.01, 1.0)):
        yield baselines.lgmmc(space, C)


def lda_km(X: Any, k: int) -> Iterator[Array]:
    for ridge in LAMBDAS:
        yield baselines.lda_km(X, k, ridge)


def dis_km(X: Any, k: int) -> Iterator[Array]:
    for ridge in LAMBDAS:
        yield baselines.discriminative_kmeans(X, k, ridge)


@dataclass(frozen=True)
class Table:
    """A paper's table: its file, its measures (the higher the better unless an error), and its columns."""

    file: str
    measures: Mapping[str, Callable[[Any, Any], float]]
    methods: dict[str, Method]
    problems: Callable[[str, str | None], list[Problem]]
    most_rows: dict[str, int]  # of a method, where its size allows no more: a random part is taken
    two: bool = True  # clusters; False: the true number


def standardized(name: str, directory: str | None) -> list[Problem]:
    X, y = load(name, directory)
    return [(with_unit_variance(X), y)]


def margin_problems(name: str, directory: str | None) -> list[Problem]:
    """Return the problems of the cutting-plane paper's Table 5: one, or 45 pairs of digits."""
    if name.endswith("45_pairs"):
        X, y = load("digits") if name.startswith("uci") else load("mnist", directory)
        return [pair(X, y, a, b) for a, b in itertools.combinations(range(10), 2)]
    if name.startswith("digits"):
        a, b = map(int, name.split("_")[1:])
        return [pair(*load("digits"), a, b)]
    if name in PAIRS:
        base, a, b = PAIRS[name]
        return [pair(*load(base, directory), a, b)]
    return [load(name, directory)]


def error(y: Any, labels: Any) -> float:
    return 100 * metrics.clustering_error(y, labels)


BINARY = {"success_ratio": metrics.success_ratio, "binary_v_measure": metrics.binary_v_measure}
ERROR = {"clustering_error_percent": error}
TABLE = {
    "mdh": Table(
        "mdh_table2.csv",
        BINARY,
        {
            "2-means++": k_means,
            "PDDP": one(baselines.pddp),
            "dePDDP": one(baselines.depddp),
            "LDA-2m": one(baselines.lda_km),
            "SCn": one(baselines.self_tuning_spectral),
            "iSVR-L": svr(SVR_L),
            "iSVR-G": svr(SVR_G),
        },
        standardized,
        {},
    ),
    "scpp": Table(
        "scpp_tables1to6.csv",
        {"purity": metrics.purity, "v_measure": metrics.v_measure},
        {
            "SC": spectral(False),
            "SC_PCA": spectral(False, "pca"),
            "SC_ICA": spectral(False, "ica"),
            "SCn": spectral(True),
            "SCn_PCA": spectral(True, "pca"),
            "SCn_ICA": spectral(True, "ica"),
            "iSVR_L": svr(SVR_L),
            "iSVR_G": svr(SVR_G),
            "DRSC": drsc,
        },
        standardized,
        {},
        two=False,
    ),
    "cpmmc": Table(
        "cpmmc_table5.csv",
        ERROR,
        {"KM": k_means, "NC": normalized_cut, "GMMC": gmmc, "MMC": mmc, "IterSVR": SVR_TUNED},
        margin_problems,
        {"GMMC": SMALL, "MMC": TINY, "NC": DENSE},
    ),
    "kmdh": Table(
        "kmdh_table2.csv",
        BINARY,
        {"kernel_k-means": one(baselines.kernel_kmeans), "spectral": kernel_spectral},
        standardized,
        {},
    ),
    "mspc": Table(
        "mspc_table2.csv",
        ERROR,
        {"KM": k_means, "LDA-KM": lda_km, "Dis-KM": dis_km, "LG-MMC": lgmmc, "IterSVR": SVR_TUNED},
        lambda name, directory: [problem(name, directory)],
        {"LG-MMC": 3000},
    ),
}


def printed(table: str) -> dict[tuple[str, str, str], float]:
    """Return the paper's figures by set, method and measure."""
    found: dict[tuple[str, str, str], float] = {}
    with open(TABLES / TABLE[table].file) as file:
        for row in csv.DictReader(file):
            for measure in TABLE[table].measures:
                if "metric" not in row:
                    found[row["dataset"], row["method"], measure] = float(row[measure])
                elif row["metric"] == measure:
                    found[row["dataset"], row["method"], measure] = float(row["mean"])
    return found


def figures(table: Table, method: str, problems: list[Problem]) -> dict[str, float]:
    """Return each measure of a method: the best over its settings, the mean over the problems."""
    better = min if table.measures is ERROR else max
    found: dict[str, list[float]] = {measure: [] for measure in table.measures}
    for X, y in problems:
        most = table.most_rows.get(method, X.shape[0])
        if X.shape[0] > most:
            part = np.random.default_rng(0).permutation(X.shape[0])[:most]
            X, y = X[part], y[part]
        labelings = list(table.methods[method](X, 2 if table.two else len(np.unique(y))))
        for measure, score in table.measures.items():
            found[measure].append(better(score(y, labels) for labels in labelings))
    return {measure: float(np.mean(values)) for measure, values in found.items()}


def competitors(table: str, directory: str | None, out: Path, names: list[str], methods: list[str]) -> None:
    """Fill the file of a table, one line per set and method; lines that are there stay."""
    asked, paper = TABLE[table], printed(table)
    done = {(row["dataset"], row["method"]) for row in read(out)}
    new = not out.exists()
    with open(out, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            pairs = [(measure, f"paper {measure}") for measure in asked.measures]
            writer.writerow(["dataset", "method", *itertools.chain(*pairs), "cpu_seconds"])
        for name in names or list(dict.fromkeys(key[0] for key in paper)):
            wanted = [m for m in methods if (name, m) not in done and any(k[:2] == (name, m) for k in paper)]
            problems = asked.problems(name, directory) if wanted and name != "smartphone" else []
            for method in wanted if problems else []:
                began = time.process_time()
                found = figures(asked, method, problems)
                cells = [
                    f"{x:.4f}"
                    for m in asked.measures
                    for x in (found[m], paper.get((name, method, m), np.nan))
                ]
                writer.writerow([name, method, *cells, f"{time.process_time() - began:.2f}"])
                file.flush()
                print(table, name, method, *cells, flush=True)


def read(path: Path) -> list[Row]:
    """Return the lines of a CSV file, if it is there."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def wide(rows: list[Row], measure: str) -> list[Row]:
    """Return one row per set: ours and the paper's of each method, and their means over what both have."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(r["dataset"], r["method"]): (float(r[measure]), float(r[f"paper {measure}"])) for r in rows}
    found: list[Row] = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        line: Row = {"dataset": name}
        for method in methods:
            line |= dict(zip((method, f"paper {method}"), cells.get((name, method), ("", "")), strict=True))
        found.append(line)
    means: Row = {"dataset": "mean"}
    for method in methods:
        values = np.array([pair for (_, m), pair in cells.items() if m == method])
        means |= dict(zip((method, f"paper {method}"), map(float, values.mean(axis=0)), strict=True))
    return [*found, means]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", choices=sorted(TABLE), required=True)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--sets", nargs="+", default=[], help="only these sets")
    parser.add_argument("--methods", nargs="+", help="only these columns")
    parser.add_argument(
        "--out", type=Path, help="CSV file (default: benchmarks/results/competitors_TABLE.csv)"
    )
    parser.add_argument("--show", action="store_true", help="run nothing")
    asked = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    out = asked.out or HERE / "results" / f"competitors_{asked.table}.csv"
    if not asked.show:
        methods = asked.methods or list(TABLE[asked.table].methods)
        record.announce_earlier(out)
        competitors(asked.table, asked.data, out, asked.sets, methods)
        record.write_stamp(out)
    for measure in TABLE[asked.table].measures:
        print(f"\n{measure}\n\n{show(wide(read(out), measure))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
