"""The number of clusters by itself: false alarms, blobs, and every set with nothing given.

python benchmarks/number.py unimodal [--draws 100]
python benchmarks/number.py tables [--draws 100] [--rows 500] [--table counts]
python benchmarks/number.py blobs [--draws 100] [--k 20] [--features 100]
python benchmarks/number.py record --data DIR --out FILE [--method MinimumDensity]
python benchmarks/number.py kernels [--draws 10]
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load
from benchmarks.generators import generated, spirals
from benchmarks.papers import Row, keep, show
from ravine import AutoCluster, MinimumDensity, SpectralConnectivity, metrics

Array = np.ndarray[Any, Any]
MOST_ROWS = 11_000  # of the sets of a directory


def gaussian(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.standard_normal((n, d))


def long_and_thin(n: int, d: int, rng: np.random.Generator) -> Array:
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray((rng.standard_normal((n, d)) * np.geomspace(1, 10, d)) @ rotation)


def uniform_ball(n: int, d: int, rng: np.random.Generator) -> Array:
    points = rng.standard_normal((n, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * rng.random((n, 1)) ** (1 / d))


def student(n: int, d: int, rng: np.random.Generator) -> Array:
    return np.asarray(rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(5, (n, 1)) / 5))


SHAPES: dict[str, Callable[[int, int, np.random.Generator], Array]] = {
    "Gaussian": gaussian,
    "long and thin": long_and_thin,
    "uniform ball": uniform_ball,
    "t, 5 degrees": student,
}


def one_hot(n: int, shares: list[float], rng: np.random.Generator) -> Array:
    return np.asarray(np.eye(len(shares))[rng.choice(len(shares), n, p=shares)])


def people(n: int, rng: np.random.Generator) -> Array:
    """Income, age, number of children and share of savings."""
    columns = rng.lognormal(10, 0.8, n), rng.integers(18, 90, n), rng.poisson(2, n), rng.beta(2, 5, n)
    return np.column_stack(columns)


def shares(n: int, rng: np.random.Generator) -> Array:
    return np.column_stack([rng.beta(1, 3, n), rng.beta(5, 1, n), rng.beta(2, 2, n), rng.random(n)])


def skewed(n: int, rng: np.random.Generator) -> Array:
    return np.column_stack([rng.lognormal(0, 1, (n, 3)), rng.exponential(1, (n, 3))])


def with_many_zeros(n: int, rng: np.random.Generator) -> Array:
    spent = rng.lognormal(0, 1, (n, 2)) * (rng.random((n, 2)) < 0.5)
    return np.column_stack([spent, rng.standard_normal((n, 2))])


def indicators(n: int, rng: np.random.Generator) -> Array:
    groups = one_hot(n, [1 / 3] * 3, rng), one_hot(n, [0.5, 0.25, 0.15, 0.1], rng)
    return np.column_stack([*groups, rng.standard_normal((n, 4))])


def mixed(n: int, rng: np.random.Generator) -> Array:
    numbers = rng.lognormal(0, 1, n), rng.random(n), rng.poisson(3, n), rng.standard_normal(n)
    discrete = rng.random(n) < 0.5, np.round(rng.normal(40, 12, n)), rng.integers(1, 6, n)
    return np.column_stack([*numbers, *discrete])


TABLES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "square": lambda n, rng: rng.random((n, 2)),
    "cube, 10 columns": lambda n, rng: rng.random((n, 10)),
    "people": people,
    "counts": lambda n, rng: rng.poisson([0.5, 1, 2, 4, 8], (n, 5)).astype(np.float64),
    "skewed": skewed,
    "rounded": lambda n, rng: np.round(rng.standard_normal((n, 5)) * [1, 2, 3, 5, 8]),
    "shares": shares,
    "two-valued": lambda n, rng: (rng.random((n, 6)) < [0.5, 0.4, 0.3, 0.2, 0.1, 0.5]).astype(np.float64),
    "many zeros": with_many_zeros,
    "indicators": indicators,
    "mixed": mixed,
}


def segments(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Three segments of customers in three columns, beside the indicators of a city and of a membership."""
    labels = rng.integers(0, 3, n)
    places = np.array([[0, 0, 0], [6, 0, 0], [3, 5, 3]])[labels] + rng.standard_normal((n, 3))
    return np.column_stack([places, one_hot(n, [1 / 3] * 3, rng), rng.random(n) < 0.4]), labels


def blobs(k: int, d: int, rng: np.random.Generator, n: int = 200, apart: float = 8.0) -> tuple[Array, Array]:
    """Draw k unit Gaussians of n rows whose centers are random, the two closest `apart` from each other."""
    centers = rng.standard_normal((k, d))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    centers *= apart / distances[np.triu_indices(k, 1)].min()
    labels = np.repeat(np.arange(k), n)
    return centers[labels] + rng.standard_normal((k * n, d)), labels


def run_unimodal(given: argparse.Namespace) -> list[Row]:
    """How often data with one mode come out as one cluster."""
    rows: list[Row] = []
    for n in (200, 2000):
        for d in (2, 10, 50):
            row: Row = {"rows": n, "features": d}
            for name, draw in SHAPES.items():
                rng = np.random.default_rng([n, d])
                found = [MinimumDensity("auto").fit(draw(n, d, rng)).n_clusters_ for _ in range(given.draws)]
                row[name] = f"{sum(k == 1 for k in found)} of {given.draws}"
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    return rows


def run_tables(given: argparse.Namespace) -> list[Row]:
    """How often tables of independent columns come out as one cluster, and segments as three."""
    rows: list[Row] = []
    for n in given.rows or (500, 2000):
        row: Row = {"rows": n}
        for name in given.table or TABLES:
            draw = TABLES[name]
            rng = np.random.default_rng([n, zlib.crc32(name.encode())])
            found = [MinimumDensity("auto").fit(draw(n, rng)).n_clusters_ for _ in range(given.draws)]
            row[name] = f"{sum(k == 1 for k in found)} of {given.draws}"
            print(n, name, row[name], file=sys.stderr, flush=True)
        rng = np.random.default_rng([n, 3])
        found = [MinimumDensity("auto").fit(segments(n, rng)[0]).n_clusters_ for _ in range(given.draws)]
        row["3 segments"] = f"{sum(k == 3 for k in found)} of {given.draws}"
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def run_blobs(given: argparse.Namespace) -> list[Row]:
    """How often k blobs come out as k clusters."""
    rows: list[Row] = []
    for k in given.k or (2, 3, 5, 10, 20):
        for d in given.features or (2, 10, 30, 100):
            rng, found, v, began = np.random.default_rng([k, d]), [], [], time.perf_counter()
            for _ in range(given.draws):
                X, y = blobs(k, d, rng)
                model = MinimumDensity("auto").fit(X)
                found.append(model.n_clusters_)
                v.append(metrics.v_measure(y, model.labels_))
            right = f"{sum(c == k for c in found)} of {given.draws}"
            seconds = (time.perf_counter() - began) / given.draws
            rows.append(
                {"k": k, "features": d, "correct": right, "v_measure": float(np.mean(v)), "seconds": seconds}
            )
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def toys(seed: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield scikit-learn's small tables, and the shapes of its comparison of clusterers."""
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    draw = {"n_samples": 1000, "random_state": seed}
    X, y = datasets.make_blobs(**draw, centers=3)
    yield f"blobs {seed}", X, y
    yield f"long blobs {seed}", X @ [[0.6, -0.6], [-0.4, 0.8]], y
    yield f"unequal blobs {seed}", *datasets.make_blobs(**draw, centers=3, cluster_std=[1.0, 2.5, 0.5])
    yield f"two moons {seed}", *datasets.make_moons(**draw, noise=0.08)
    yield f"two circles {seed}", *datasets.make_circles(**draw, noise=0.05, factor=0.5)


def all_sets(given: argparse.Namespace) -> Iterator[tuple[str, Any, Any]]:
    """Yield toys, generated sets, and those of a directory that are not among the toys."""
    yield from toys(170)
    yield from generated(0)
    for path in sorted(Path(given.data).glob("*.npz")) if given.data else ():
        X, y = load(path.stem, given.data)
        if X.shape[0] <= MOST_ROWS and path.stem not in ("iris", "wine"):
            yield path.stem, X, y


def few_columns(X: Any) -> Array:
    """Return standardized rows, or at most 20 of their principal components; sparse rows as they are."""
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.preprocessing import StandardScaler

    if sparse.issparse(X):
        return np.asarray(TruncatedSVD(20, random_state=0).fit_transform(X))
    Z = StandardScaler().fit_transform(X)
    return np.asarray(PCA(min(20, *Z.shape), random_state=0).fit_transform(Z))


def mixture_by_bic(X: Any) -> Array:
    """The Gaussian mixture with the number of components of the lowest BIC, up to 30."""
    from sklearn.mixture import GaussianMixture

    Z = few_columns(X)
    fits = (GaussianMixture(k, reg_covar=1e-3, random_state=0).fit(Z) for k in range(1, min(31, len(Z))))
    return np.asarray(min(fits, key=lambda fit: fit.bic(Z)).predict(Z))


def hdbscan(X: Any) -> Array:
    """HDBSCAN with the defaults of scikit-learn, on the same columns as the mixture."""
    from sklearn.cluster import HDBSCAN

    return np.asarray(HDBSCAN(copy=True).fit_predict(few_columns(X)))


METHODS: dict[str, Callable[[Any], Array]] = {
    "MinimumDensity": lambda X: MinimumDensity(n_jobs=1).fit(X).labels_,
    "SpectralConnectivity": lambda X: SpectralConnectivity(n_jobs=1).fit(X).labels_,
    "diffusion": lambda X: MinimumDensity(kernel="diffusion", n_jobs=1).fit(X).labels_,
    "AutoCluster": lambda X: AutoCluster(n_jobs=1).fit(X).labels_,
    "mixture by BIC": mixture_by_bic,
    "HDBSCAN": hdbscan,
}


def run_record(given: argparse.Namespace) -> list[Row]:
    """Nothing given: what each method finds on every set. Rows of `--out` are kept, and not made again."""
    from sklearn.metrics import adjusted_rand_score

    rows: list[Row] = read(given.out) if given.out and given.out.exists() else []
    done = {(row["dataset"], row["method"]) for row in rows}
    for (name, X, y), method in itertools.product(all_sets(given), given.method or METHODS):
        if (name, method) in done:
            continue
        began = time.process_time()
        labels = METHODS[method](X)
        seconds = time.process_time() - began
        rows.append(
            {"dataset": name, "classes": len(np.unique(y)), "method": method, "found": len(np.unique(labels)),
             "V": metrics.v_measure(y, labels), "ARI": adjusted_rand_score(y, labels), "seconds": seconds}
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
        if given.out:
            keep(rows, given.out)
    return rows


def read(path: Path) -> list[Row]:
    """Return the rows of an earlier run."""
    with open(path, newline="") as file:
        return [
            {key: float(x) if key in ("V", "ARI", "seconds") else x for key, x in row.items()}
            for row in csv.DictReader(file)
        ]


def mean_figures(rows: list[Row]) -> list[Row]:
    """Return the means of every method."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    return [
        {"method": method, "sets": len(some),
         "right number": sum(str(r["found"]) == str(r["classes"]) for r in some),
         **{key: float(np.mean([r[key] for r in some])) for key in ("V", "ARI")},
         "seconds": float(sum(r["seconds"] for r in some))}
        for method, some in by_method.items()
    ]  # fmt: skip


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


CURVED: dict[str, tuple[int, Callable[[np.random.Generator], Array]]] = {
    "two moons": (2, moons),
    "three rings": (3, rings),
    "two spirals": (2, lambda rng: spirals(600, 0.1, int(rng.integers(1 << 31)))[0]),
    "three blobs": (3, lambda rng: rng.normal(size=(600, 5)) + 4.0 * (np.arange(600) % 3)[:, None]),
    "Gaussian, 2 columns": (1, lambda rng: rng.normal(size=(500, 2))),
    "Gaussian, 5 columns": (1, lambda rng: rng.normal(size=(500, 5))),
    "cube, 5 columns": (1, lambda rng: rng.random((500, 5))),
}


def run_kernels(given: argparse.Namespace) -> list[Row]:
    """How often the number of clusters is found with a kernel."""
    rows: list[Row] = []
    for name, (k, draw) in CURVED.items():
        row: Row = {"shape": name, "clusters": k}
        for kernel in ("diffusion", "rbf"):
            sets = (draw(np.random.default_rng(seed)) for seed in range(given.draws))
            right = sum(MinimumDensity("auto", kernel=kernel).fit(X).n_clusters_ == k for X in sets)
            row[kernel] = f"{right} of {given.draws}"
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


RUN = {
    "unimodal": run_unimodal,
    "tables": run_tables,
    "blobs": run_blobs,
    "record": run_record,
    "kernels": run_kernels,
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=sorted(RUN))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument(
        "--rows", type=int, action="append", help="rows of the tables; 500 and 2000 by default"
    )
    parser.add_argument("--table", action="append", choices=TABLES, help="all tables by default")
    parser.add_argument("--k", type=int, action="append", help="numbers of blobs; all by default")
    parser.add_argument("--features", type=int, action="append", help="their dimensions; all by default")
    parser.add_argument("--method", action="append", choices=METHODS, help="all by default")
    parser.add_argument("--data", help="directory of npz files; without it, OpenML is asked")
    parser.add_argument("--out", type=Path, help="a CSV file")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = RUN[arguments.what](arguments)
    print(show(mean_figures(rows) if arguments.what == "record" else rows))
    if arguments.out:
        keep(rows, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
