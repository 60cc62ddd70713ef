"""Figures and tables of times of the five papers, as CSV files, and as pictures when asked.

python benchmarks/figures.py regret --data DIR --plot     MDH, Figure 6; `--table kmdh`: KMDH, Figure 2
python benchmarks/figures.py pairs --data DIR             one split of every pair of classes of a set
python benchmarks/figures.py margin-times --data DIR      CPMMC, Table 6
python benchmarks/figures.py epsilon --data DIR           CPMMC, Figure 3; also `C`, Figure 4
python benchmarks/figures.py separation-times --data DIR  MSPC, Table 3
python benchmarks/figures.py sigma --data DIR             SCPP, Figures 7 and 8
python benchmarks/figures.py microclusters                SCPP, Figure 9; also `rows`, Figure 10

Each writes benchmarks/results/figure_NAME.csv, and with --plot figure_NAME.png. `regret` reads the columns of
the competitors from results/competitors_TABLE.csv (`benchmarks/competitors.py`). `--quick` runs a part: fewer
sets, values or draws.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import baselines, competitors, record
from benchmarks.beside import standardized as scaled
from benchmarks.datasets import load, pair, problem
from benchmarks.papers import Row, keep, show
from benchmarks.ranks import regret as regret_of
from benchmarks.sensitivity import SETS, gaussians
from ravine import MaximinSeparation, MaximumMargin, MinimumDensity, SpectralConnectivity, metrics

RESULTS = Path(__file__).resolve().parent / "results"
Labels = Callable[[Any], Any]


def load_compiled_code() -> None:
    """Fit a few rows, so that the first time in a table is not that of loading compiled code."""
    X = np.random.default_rng(0).standard_normal((60, 2)) + 8 * (np.arange(60) % 2)[:, None]
    for model in (MaximumMargin(2), MaximinSeparation(2)):
        model.fit(X)


def processor_time(run: Labels, X: Any) -> tuple[Any, float]:
    """Return the result and the seconds of processor time."""
    began = time.process_time()
    return run(X), time.process_time() - began


def ours_of(table: str) -> dict[str, Labels]:
    """Return our columns of a table of one split: the defaults."""
    if table == "mdh":
        return {"MinimumDensity": lambda X: MinimumDensity(2).fit(X).labels_}
    few = {"n_components": 0.9}
    return {
        "KMDH": lambda X: MinimumDensity(2, kernel="rbf").fit(X).labels_,
        "S-KMDH": lambda X: MinimumDensity(2, kernel="rbf", kernel_params=few).fit(X).labels_,
    }


def regret(asked: argparse.Namespace) -> list[Row]:
    """Scores and regrets of one split: how far each method is below the best one on each set.

    Ours and the competitors of `benchmarks/baselines`, on the sets that all of them have.
    """
    lines = competitors.read(RESULTS / f"competitors_{asked.table}.csv")
    methods = list(dict.fromkeys(line["method"] for line in lines))
    cells = {(line["dataset"], line["method"]): line for line in lines}
    names = [n for n in dict.fromkeys(n for n, _ in cells) if all((n, m) in cells for m in methods)]
    rows: list[Row] = []
    fitted = {(n, m): run(load(n, asked.data)[0]) for n in names for m, run in ours_of(asked.table).items()}
    for measure, score in competitors.TABLE[asked.table].measures.items():
        columns = [*ours_of(asked.table), *methods]
        scores = np.array(
            [
                [
                    score(load(n, asked.data)[1], fitted[n, m])
                    if (n, m) in fitted
                    else float(cells[n, m][measure])
                    for m in columns
                ]
                for n in names
            ]
        )
        for method, values, losses in zip(columns, scores.T, regret_of(scores).T, strict=True):
            for name, value, loss in zip(names, values, losses, strict=True):
                rows.append(
                    {"measure": measure, "method": method, "dataset": name, "score": value, "regret": loss}
                )
    return rows


def pairs(asked: argparse.Namespace) -> list[Row]:
    """Errors in percent of one split of every pair of classes, by default parameters."""
    ways: dict[str, Labels] = {
        "MinimumDensity": lambda X: MinimumDensity(2).fit(X).labels_,
        "SpectralConnectivity": lambda X: SpectralConnectivity(2).fit(X).labels_,
        "MaximumMargin": lambda X: MaximumMargin(2).fit(X).labels_,
        "MaximinSeparation": lambda X: MaximinSeparation(2).fit(X).labels_,
        "k-means": lambda X: next(competitors.k_means(X, 2)),
        "PDDP": baselines.pddp,
    }
    rows: list[Row] = []
    for name in asked.sets or (
        ["satellite"] if asked.quick else ["satellite", "optdigits", "pendigits", "segment"]
    ):
        X, y = load(name, asked.data)
        for a, b in itertools.combinations(range(len(np.unique(y))), 2):
            rows_of, labels = pair(X, y, a, b)
            rows_of = scaled(rows_of)
            row: Row = {"dataset": name, "pair": f"{a}-{b}"}
            row |= {way: 100 * metrics.clustering_error(labels, run(rows_of)) for way, run in ways.items()}
            rows.append(row)
    return rows


MARGIN_SETS = (
    "digits_3_8",
    "digits_1_7",
    "digits_2_7",
    "digits_8_9",
    "ionosphere",
    "letter_ab",
    "satellite_1_2",
)
TEXT = ("text_1", "text_2")


def _first(method: competitors.Method) -> Labels:
    """Return the first setting of a method with two clusters."""
    return lambda X: next(method(X, 2))


def margin_times(asked: argparse.Namespace) -> list[Row]:
    """CPMMC's Table 6: seconds of processor time of one fit, one setting each, beside the paper's of 2008."""
    paper = {
        (line["dataset"], line["method"]): float(line["cpu_seconds_2008_pc"])
        for line in competitors.read(competitors.TABLES / "cpmmc_table6.csv")
    }
    table = competitors.TABLE["cpmmc"]
    load_compiled_code()
    rows: list[Row] = []
    for name in asked.sets or (MARGIN_SETS[:5] if asked.quick else MARGIN_SETS + TEXT):
        ((X, _),) = table.problems(name, asked.data)
        ways = {m: _first(table.methods[m]) for m in ("KM", "NC", "GMMC", "IterSVR") if (name, m) in paper}
        ways["CPMMC"] = MaximumMargin(2, standardize=False).fit
        row: Row = {"dataset": name, "rows": X.shape[0]}
        for method in ("KM", "NC", "GMMC", "IterSVR", "CPMMC"):
            row |= {method: np.nan, f"paper {method}": paper.get((name, method), np.nan)}
            if method in ways:
                found, row[method] = processor_time(ways[method], X)
        split = found.tree_.splits[0]
        row["CCCP steps per round"] = split.n_iter / split.facts["rounds"] if split else np.nan
        rows.append(row)
    return rows


def margin_by(parameter: str, values: tuple[float, ...]) -> Callable[[argparse.Namespace], list[Row]]:
    """Return the figure of error, time and iterations by one parameter of the cutting planes."""

    def run(asked: argparse.Namespace) -> list[Row]:
        rows: list[Row] = []
        for name in asked.sets or (MARGIN_SETS[:3] if asked.quick else MARGIN_SETS):
            ((X, y),) = competitors.margin_problems(name, asked.data)
            usual = MaximumMargin(2, standardize=False).fit(X).tree_.splits[0]
            if usual is None:  # no margin to be had at any of these values
                continue
            for value in values:
                given = value * usual.facts["C"] if parameter == "C" else value
                model = MaximumMargin(2, standardize=False, max_iter=500).set_params(**{parameter: given})
                seconds = processor_time(model.fit, X)[1]
                split = model.tree_.splits[0]
                rows.append(
                    {
                        "dataset": name,
                        "C / auto" if parameter == "C" else parameter: value,
                        "error %": 100 * metrics.clustering_error(y, model.labels_),
                        "cpu_seconds": seconds,
                        "rounds": split.facts["rounds"] if split else np.nan,
                        "CCCP steps": float(split.n_iter) if split else np.nan,
                    }
                )
        return rows

    return run


EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
CS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def separation_times(asked: argparse.Namespace) -> list[Row]:
    """MSPC's Table 3: seconds of one fit; the paper's are wall seconds of 2015, ours processor seconds."""
    paper = {
        (line["dataset"], line["method"]): float(line["wall_seconds_2015_i7"])
        for line in competitors.read(competitors.TABLES / "mspc_table3.csv")
    }
    table = competitors.TABLE["mspc"]
    load_compiled_code()
    ways = {m: _first(table.methods[m]) for m in ("IterSVR", "LG-MMC", "LDA-KM", "Dis-KM")}
    for solver in ("mpm", "gep", "eig"):
        ways[f"MSPC-{solver.upper()}"] = MaximinSeparation(2).set_params(solver=solver).fit
    names = list(dict.fromkeys(name for name, _ in paper))
    rows: list[Row] = []
    for name in asked.sets or (names[:2] if asked.quick else names):
        X = problem(name, asked.data)[0]
        row: Row = {"dataset": name, "rows": len(X), "columns": X.shape[1]}
        for method, run in ways.items():
            row[method] = processor_time(run, X)[1]
            row[f"paper {method}"] = paper[name, method]
        rows.append(row)
    return rows


FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # of the paper's sigma, which is twice the default


def sigma(asked: argparse.Namespace) -> list[Row]:
    """SCPP's Figures 7 and 8: purity and V-measure by sigma, both Laplacians, three projections."""
    rows: list[Row] = []
    ways = itertools.product(
        asked.sets or (SETS[:2] if asked.quick else SETS),
        ("standard", "normalized"),
        ("univariate", "orthogonal", "correlated"),
        FACTORS,
    )
    for name, laplacian, projection, factor in ways:
        X, y = load(name, asked.data)
        model = SpectralConnectivity(len(np.unique(y)), sigma_factor=2 * factor, random_state=0)
        labels = model.set_params(laplacian=laplacian, projection=projection).fit(X).labels_
        row: Row = {"dataset": name, "laplacian": laplacian, "projection": projection, "factor": factor}
        rows.append(row | {"purity": metrics.purity(y, labels), "v_measure": metrics.v_measure(y, labels)})
    return rows


def mixtures(cases: list[tuple[int, int]]) -> Callable[[argparse.Namespace], list[Row]]:
    """Return the figure over numbers of rows and micro-clusters: mixtures of five Gaussians in 50 columns."""

    def run(asked: argparse.Namespace) -> list[Row]:
        rows: list[Row] = []
        for (n, m), laplacian in itertools.product(cases, ("standard", "normalized")):
            found = np.array(list(_scores(n, m, laplacian, 3 if asked.quick else asked.draws)))
            row: Row = {"rows": n, "micro-clusters": m, "laplacian": laplacian}
            for j, measure in enumerate(("purity", "v_measure")):
                low, median, high = map(float, np.percentile(found[:, j], [25, 50, 75]))
                row |= {f"{measure} quartile": low, f"{measure} median": median, f"{measure} upper": high}
            rows.append(row)
        return rows

    return run


def _scores(n: int, m: int, laplacian: str, draws: int) -> Iterator[tuple[float, float]]:
    for seed in range(draws):
        X, y = gaussians(n, seed)
        model = SpectralConnectivity(5, projection="orthogonal", n_microclusters=m, random_state=seed)
        labels = model.set_params(laplacian=laplacian).fit(X).labels_
        yield metrics.purity(y, labels), metrics.v_measure(y, labels)


def boxes(ax: Any, rows: list[Row], key: str, value: str) -> None:
    """Draw one box per value of a column, in order of the means."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(str(row[key]), []).append(row[value])
    names = sorted(groups, key=lambda name: float(np.mean(groups[name])), reverse=value != "regret")
    ax.boxplot([groups[name] for name in names], showmeans=True)
    ax.set_xticks(range(1, len(names) + 1), names, rotation=60, ha="right", fontsize=7)
    ax.set_ylabel(value)


def curves(ax: Any, rows: list[Row], x: str, y: str, by: tuple[str, ...]) -> None:
    """Draw one line per combination of the columns `by`, y over x."""
    groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in by), []).append((row[x], row[y]))
    for name, points in groups.items():
        ax.plot(*zip(*points, strict=True), marker=".", label=", ".join(map(str, name)))
    ax.set(xlabel=x, ylabel=y)
    ax.legend(fontsize=6)


def draw_regret(figure: Any, rows: list[Row]) -> None:
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    for i, (measure, value) in enumerate(itertools.product(measures, ("score", "regret"))):
        ax = figure.add_subplot(2, 2, i + 1)
        boxes(ax, [row for row in rows if row["measure"] == measure], "method", value)
        ax.set_title(measure, fontsize=9)


def draw_pairs(figure: Any, rows: list[Row]) -> None:
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    for i, name in enumerate(names):
        mine = [row for row in rows if row["dataset"] == name]
        long = [{"method": m, "error %": row[m]} for row in mine for m in list(row)[2:]]
        ax = figure.add_subplot(1, len(names), i + 1)
        boxes(ax, long, "method", "error %")
        ax.set_title(f"{name}, {len(mine)} pairs", fontsize=9)


def draw_margin(figure: Any, rows: list[Row]) -> None:
    parameter = list(rows[0])[1]
    for i, value in enumerate(("error %", "cpu_seconds", "rounds")):
        ax = figure.add_subplot(1, 3, i + 1)
        curves(ax, rows, parameter, value, ("dataset",))
        ax.set_xscale("log")
        ax.set_yscale("log" if i else "linear")


def draw_sigma(figure: Any, rows: list[Row]) -> None:
    for i, (laplacian, value) in enumerate(
        itertools.product(("standard", "normalized"), ("purity", "v_measure"))
    ):
        ax = figure.add_subplot(2, 2, i + 1)
        mine = [row for row in rows if row["laplacian"] == laplacian]
        curves(ax, mine, "factor", value, ("dataset", "projection"))
        ax.set(xscale="log", title=f"{laplacian} Laplacian", ylim=(0, 1))


def draw_mixtures(figure: Any, rows: list[Row]) -> None:
    x = "micro-clusters" if len({row["rows"] for row in rows}) == 1 else "rows"
    for i, value in enumerate(("purity", "v_measure")):
        ax = figure.add_subplot(1, 2, i + 1)
        curves(ax, rows, x, f"{value} median", ("laplacian",))
        for laplacian in ("standard", "normalized"):
            mine = [row for row in rows if row["laplacian"] == laplacian]
            low, high = ([row[f"{value} {end}"] for row in mine] for end in ("quartile", "upper"))
            ax.fill_between([row[x] for row in mine], low, high, alpha=0.15)
        ax.set_ylim(0, 1.02)


Run = Callable[[argparse.Namespace], list[Row]]
FIGURES: dict[str, tuple[Run, Callable[[Any, list[Row]], None] | None]] = {
    "regret": (regret, draw_regret),
    "pairs": (pairs, draw_pairs),
    "margin-times": (margin_times, None),
    "epsilon": (margin_by("epsilon", EPSILONS), draw_margin),
    "C": (margin_by("C", CS), draw_margin),
    "separation-times": (separation_times, None),
    "sigma": (sigma, draw_sigma),
    "microclusters": (mixtures([(1000, m) for m in range(100, 1001, 100)]), draw_mixtures),
    "rows": (mixtures([(n, 200) for n in range(1000, 10_001, 1000)]), draw_mixtures),
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figure", choices=list(FIGURES))
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--table", choices=("mdh", "kmdh"), default="mdh", help="of regret")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--draws", type=int, default=30, help="mixtures per number of rows")
    parser.add_argument("--quick", action="store_true", help="fewer sets, values or draws")
    parser.add_argument("--plot", action="store_true", help="draw it, too")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the files")
    asked = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    run, draw = FIGURES[asked.figure]
    rows = run(asked)
    name = f"figure_{asked.figure}" + (f"_{asked.table}" if asked.figure == "regret" else "")
    keep(rows, asked.out / f"{name}.csv")
    record.write_stamp(asked.out / f"{name}.csv")
    print(show(rows))
    if asked.plot and draw is not None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt

        figure = plt.figure(figsize=(11, 7), layout="constrained")
        draw(figure, rows)
        figure.savefig(asked.out / f"{name}.png", dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
