"""The cases of `published.py`: every method and set of the papers' tables, with both columns' settings."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.datasets import PAIRS, load, pair, problem
from ravine import MaximinSeparation, MaximumMargin, MinimumDensity, SpectralConnectivity, metrics
from ravine.papers import CPMMC, KMDH, LMSC, MDP2, MSPC, SCP2, SKMDH, SCnP2

HERE = Path(__file__).resolve().parent
WIDTHS = tuple(2.0 ** (k / 4) for k in range(-12, 9))  # KMDH: sigma over the root of the number of columns
EXACT_ROWS = 2500  # with a kernel: more rows have landmarks, as all components would take hours
LAMBDAS = tuple(10.0**k for k in range(-4, 5))  # MSPC, "Baselines and parameter setting"
C_FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # times 10 over the first principal variance
BALANCES = (0.0, 0.01, 0.03, 0.06, 0.1, 0.2)  # of the number of rows
ROUGH = ((0.3, 1.0, 10.0), (0.0, 0.03, 0.1))  # the same for many problems at once
MICRO_CLUSTERED = ("segment", "mfeat_fac", "satellite", "optdigits", "pendigits")  # above 1000 rows: drawn
DIGITS = ((3, 8), (1, 7), (2, 7), (8, 9))

Row = dict[str, Any]
Data = tuple[Any, Any]
Problems = Callable[[], Iterable[Data]]
Fit = Callable[[Any, int], list[Any]]  # rows and seed -> labels of every setting that was tried


@dataclass(frozen=True)
class Case:
    """One method on one set: the data, the fits of both columns, and whether they draw.

    Both fits return the labels of several settings if the paper chose among them by the classes; the best
    value of each metric counts.
    """

    table: str
    dataset: str
    method: str
    problems: Problems
    published: Fit
    default: Fit
    draws: bool = False
    once: bool = False  # one seed, as it takes long


def one(make: Callable[..., Any], n_clusters: int = 2, **params: Any) -> Fit:
    """Return the fit of one estimator."""

    def fit(X: Any, seed: int) -> list[Any]:
        return [make(n_clusters, random_state=seed, **params).fit(X).labels_]

    return fit


def clustering_error(y: Any, labels: Any) -> float:
    """Return the error in percent."""
    return 100 * metrics.clustering_error(y, labels)


Scores = dict[str, Callable[[Any, Any], float]]
BINARY: Scores = {
    "success_ratio": metrics.success_ratio,
    "binary_v_measure": metrics.binary_v_measure,
}
METRICS: dict[str, Scores] = {
    "mdh": BINARY,
    "kmdh": BINARY,
    "scpp": {"purity": metrics.purity, "v_measure": metrics.v_measure},
    "cpmmc": {"error": clustering_error},
    "mspc": {"error": clustering_error},
}


def score(table: str, metric: str, y: Any, labels: Any) -> float:
    """Return a figure of one clustering; without a split, the papers' measures of two clusters are 0."""
    if METRICS[table] is BINARY and len(np.unique(labels)) < 2:
        return 0.0
    return METRICS[table][metric](y, labels)


@cache
def printed(table: str) -> dict[tuple[str, str, str], float]:
    """Return the figures of a paper's table, by set, method and metric."""
    name = {"scpp": "scpp_tables1to6", "cpmmc": "cpmmc_table5"}.get(table, f"{table}_table2")
    found: dict[tuple[str, str, str], float] = {}
    with open(HERE / "paper_tables" / f"{name}.csv") as file:
        for row in csv.DictReader(file):
            where = row["dataset"], row["method"]
            if "metric" in row:
                found[*where, row["metric"]] = float(row["mean"])
            elif "clustering_error_percent" in row:
                found[*where, "error"] = float(row["clustering_error_percent"])
            else:
                found |= {(*where, metric): float(row[metric]) for metric in BINARY if row[metric]}
    return found


def sets_of(table: str, method: str) -> list[str]:
    """Return the sets for which a paper prints a method, without the one that cannot be had."""
    found = dict.fromkeys(name for name, of, _ in printed(table) if of == method)
    return [name for name in found if name != "smartphone"]


def mdh(directory: str | None) -> Iterator[Case]:
    """Table 2 of Minimum Density Hyperplanes."""
    for name in sets_of("mdh", "MDP2"):
        fits = one(MDP2), one(MinimumDensity)
        yield Case("mdh", name, "MDP2", partial(whole, name, directory), *fits)


def whole(name: str, directory: str | None) -> list[Data]:
    """Return a set as the only problem; missing votes are a third value, as inferred for two papers.

    With 1 for yes, 2 for no and -1 for a missing vote, PDDP, MDP2, SCP2 and SCnP2 give the printed figures;
    with a value between yes and no, or the mean, all of them are better than printed.
    """
    X, y = load(name, directory)
    if name == "voting":  # stored as 1, -1 and 0
        X = np.select([X == 1, X == -1], [1.0, 2.0], -1.0)
    return [(X, y)]


def complete(name: str, directory: str | None) -> list[Data]:
    """Return a set as the only problem; of voting, the 232 rows without missing votes.

    The paper says 435 rows, but its figure of spectral clustering is exactly that of the 232.
    """
    X, y = load(name, directory)
    keep = (X != 0).all(axis=1) if name == "voting" else np.ones(len(y), dtype=bool)
    return [(X[keep], y[keep])]


def kernel_settings(X: Any, width: float) -> Row:
    """Return the parameters of a kernel with this width, in units of sqrt(d); many rows have landmarks."""
    sigma = width * math.sqrt(int((np.std(X, axis=0) > 0).sum()))
    few = {"landmarks": max(500, EXACT_ROWS**2 // len(X))} if len(X) > EXACT_ROWS else {}
    return {"gamma": 0.5 / sigma**2, **few}


@cache
def width_by_classes(name: str, directory: str | None) -> float:
    """Return the width with which KMDH (PCA) has the largest binary V-measure, in units of sqrt(d).

    The paper does not give the width; on nearly all sets its figure is the largest that any width gives (see
    docs/papers.md). Of equally good ones, the one nearest to sqrt(d) is taken.
    """
    ((X, y),) = complete(name, directory)
    found: dict[float, float] = {}
    for width in WIDTHS:
        fit = one(KMDH, kernel_params=kernel_settings(X, width))
        found[width] = score("kmdh", "binary_v_measure", y, fit(X, 0)[0])
    best = max(found.values())
    return min((w for w, value in found.items() if value > best - 1e-9), key=lambda w: abs(math.log(w)))


def kernel_fit(name: str, directory: str | None, make: type[KMDH], **params: Any) -> tuple[Fit, Fit]:
    """Return the fits with the RBF kernel: all methods of the paper have the width of KMDH (PCA)."""
    part = {"n_components": 0.9} if make is SKMDH else {}

    def ours(X: Any, seed: int) -> list[Any]:
        settings = kernel_settings(X, width_by_classes(name, directory))
        return one(make, kernel_params=settings, **params)(X, seed)

    return ours, one(MinimumDensity, kernel="rbf", kernel_params=part)


def kmdh(directory: str | None) -> Iterator[Case]:
    """Table 2 of Minimum Density Hyperplanes in the Feature Space."""
    ways: dict[str, tuple[type[KMDH], Row]] = {
        "KMDH_pca": (KMDH, {}),
        "KMDH_rand": (KMDH, {"init": "random"}),
        "S-KMDH": (SKMDH, {}),
    }
    for method, (make, params) in ways.items():
        for name in sets_of("kmdh", method):
            fits = kernel_fit(name, directory, make, **params)
            yield Case("kmdh", name, method, partial(complete, name, directory), *fits, draws=bool(params))


def scpp(directory: str | None) -> Iterator[Case]:
    """Tables 1 to 6 of Minimum Spectral Connectivity Projection Pursuit."""
    correlated = {"correlated": True, "n_directions": 3}
    ways: dict[str, tuple[type[SCnP2], Row, Row]] = {  # the paper's method, and what is like it in ravine
        "SCP2_o": (SCP2, {}, {"n_directions": 2}),
        "SCP2_c": (SCP2, correlated, {}),
        "SCnP2_o": (SCnP2, {}, {"n_directions": 2}),
        "SCnP2_c": (SCnP2, correlated, {}),
        "LMSC": (LMSC, {}, {}),
        "LMSC_o": (LMSC, {"n_directions": 2}, {"n_directions": 2}),
    }
    for method, (make, params, like) in ways.items():
        for name in sets_of("scpp", method):
            data = partial(whole, name, directory)
            ours, usual = with_clusters(make, data, params), with_clusters(SpectralConnectivity, data, like)
            yield Case("scpp", name, method, data, ours, usual, draws=name in MICRO_CLUSTERED)


def with_clusters(make: Callable[..., Any], data: Callable[[], list[Data]], params: Row) -> Fit:
    """Return the fit with as many clusters as the set has classes."""

    def fit(X: Any, seed: int) -> list[Any]:
        ((_, y),) = data()
        return one(make, len(np.unique(y)), **params)(X, seed)

    return fit


def first_variance(X: Any) -> float:
    """Return the variance along the first principal component, also of sparse rows."""
    mean = np.asarray(X.mean(axis=0)).ravel()

    def times(v: Any) -> Any:
        v = v.ravel()
        return X.T @ (X @ v) / X.shape[0] - mean * (mean @ v)

    covariance = LinearOperator((X.shape[1],) * 2, matvec=times, dtype=np.float64)
    return float(eigsh(covariance, k=1, v0=np.ones(X.shape[1]), return_eigenvectors=False)[0])


def margin_grid(X: Any, seed: int, factors: Sequence[float], balances: Sequence[float]) -> list[Any]:
    """Return the labels of CPMMC for every C and balance of the grid, each from its own random start."""
    variance = first_variance(X)
    found = []
    for k, (factor, share) in enumerate(itertools.product(factors, balances)):
        settings: Row = {"C": 10 * factor / variance, "balance": share * X.shape[0]}
        model = CPMMC(**settings, random_state=1000 * seed + k)
        found.append(model.fit(X).labels_)
    return found


def cpmmc(directory: str | None) -> Iterator[Case]:
    """Table 5 of Efficient Maximum Margin Clustering via Cutting Plane Algorithm.

    C and l are chosen by the classes, as in the paper; for 45 pairs at once from fewer values.
    """
    fine = partial(margin_grid, factors=C_FACTORS, balances=BALANCES)
    rough = partial(margin_grid, factors=ROUGH[0], balances=ROUGH[1])

    def two(name: str, a: int, b: int) -> list[Data]:
        return [pair(*load(name, directory), a, b)]

    def every(name: str) -> list[Data]:
        X, y = load(name, directory)
        return [pair(X, y, a, b) for a, b in itertools.combinations(range(10), 2)]

    def case(
        name: str, problems: Callable[[], list[Data]], published: Fit = fine, once: bool = False
    ) -> Case:
        return Case("cpmmc", name, "CPMMC", problems, published, one(MaximumMargin), draws=True, once=once)

    for a, b in DIGITS:
        yield case(f"digits_{a}_{b}", partial(two, "digits", a, b))
    yield case("ionosphere", partial(whole, "ionosphere", directory))
    for name in ("letter_ab", "satellite_1_2", "text_1", "text_2"):
        yield case(name, partial(two, *PAIRS[name]))
    yield case("uci_digits_45_pairs", partial(every, "digits"), rough)
    yield case("mnist_45_pairs", partial(every, "mnist"), rough, once=True)


def mspc(directory: str | None) -> Iterator[Case]:
    """Table 2 of Maximin Separation Probability Clustering; lambda is chosen by the classes, as there."""

    def grid(X: Any, seed: int, solver: Any) -> list[Any]:
        lambdas = LAMBDAS if solver != "eig" else (1.0,)  # lambda does not change its eigenvectors
        return [MSPC(solver=solver, regularization=value).fit(X).labels_ for value in lambdas]

    for solver in ("mpm", "gep", "eig"):
        method = f"MSPC-{solver.upper()}"
        for name in sets_of("mspc", method):
            fits = partial(grid, solver=solver), one(MaximinSeparation, solver=solver)
            yield Case("mspc", name, method, partial(scaled_problem, name, directory), *fits)


def scaled_problem(name: str, directory: str | None) -> list[Data]:
    """Return one of the two-class problems of the paper."""
    return [problem(name, directory)]


TABLES: dict[str, Callable[[str | None], Iterator[Case]]] = {
    "mdh": mdh,
    "kmdh": kmdh,
    "scpp": scpp,
    "cpmmc": cpmmc,
    "mspc": mspc,
}
