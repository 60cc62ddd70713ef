"""The papers' figures in three columns: as printed, with the papers' settings here, with our defaults.

python benchmarks/published.py --data DIR                        all tables
python benchmarks/published.py --data DIR --quick                small sets, one seed, one method of SCPP
python benchmarks/published.py --data DIR --tables mdh scpp --sets wine voting

Rows are added to the file as they are finished. The same command goes on where it was ended, as long as the
library and the settings (`published_cases.py`) are the same; otherwise all figures are begun anew.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record
from benchmarks.published_cases import METRICS, TABLES, Case, Row, printed, score

HERE = Path(__file__).resolve().parent
OUT = HERE / "results" / "published.csv"
COLUMNS = (
    *("table", "dataset", "method", "metric", "printed", "as_published", "as_published_sd"),
    *("default", "default_sd", "seeds", "seconds"),
)
SEEDS = 3  # runs of a method that draws
QUICK = (  # the sets of --quick, of at most 800 rows
    *("australian", "breast_w_683", "dermatology", "forest", "heart_hungarian", "ionosphere"),
    *("iris", "pima", "seeds", "voting", "wine"),
)
LATE = (  # sets that take longest, in the order in which they are run
    *("control_chart", "yeast_cc", "banknote", "segment", "mfeat_fac", "satellite", "optdigits", "pendigits"),
    *("spambase", "text_1", "text_2", "mnist_3_8", "mnist_1_7", "mnist_8_9", "mnist_45_pairs"),
)
SAMPLED = 16384  # rows above which a search draws samples
TOLERANCE = {"error": 1.0}  # percent; 0.02 for fractions


def run(case: Case, n_seeds: int) -> list[Row]:
    """Fit both columns of a case; one row per metric, with means and deviations over the seeds."""
    began = time.process_time()
    largest = max(len(y) for _, y in case.problems())
    seeds = range(n_seeds if (case.draws or largest > SAMPLED) and not case.once else 1)
    found: dict[str, dict[str, list[float]]] = {"as_published": {}, "default": {}}
    for column, fit in (("as_published", case.published), ("default", case.default)):
        for seed in seeds:
            tried = [(fit(X, seed), y) for X, y in case.problems()]
            for metric in METRICS[case.table]:
                best = min if metric == "error" else max
                values = [
                    best(score(case.table, metric, y, labels) for labels in every) for every, y in tried
                ]
                found[column].setdefault(metric, []).append(float(np.mean(values)))
    seconds = time.process_time() - began
    return [row_of(case, metric, found, len(seeds), seconds) for metric in METRICS[case.table]]


def row_of(
    case: Case, metric: str, found: dict[str, dict[str, list[float]]], seeds: int, seconds: float
) -> Row:
    """Return one row of the file."""
    row: Row = {"table": case.table, "dataset": case.dataset, "method": case.method, "metric": metric}
    row["printed"] = f"{printed(case.table)[case.dataset, case.method, metric]:g}"
    digits = 2 if metric == "error" else 4
    for column, of_metric in found.items():
        row[column] = f"{np.mean(of_metric[metric]):.{digits}f}"
        row[f"{column}_sd"] = f"{np.std(of_metric[metric]):.{digits}f}"
    return {**row, "seeds": seeds, "seconds": f"{seconds:.1f}"}


def read(path: Path) -> list[Row]:
    """Return the rows of a file of figures."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append(rows: list[Row], path: Path) -> None:
    """Add rows to a file of figures."""
    new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def settings() -> str:
    """Return one hash of the files that say what is run."""
    said = "".join((HERE / name).read_text() for name in ("published_cases.py", "datasets.py"))
    return hashlib.sha1(said.encode()).hexdigest()


def finished(path: Path) -> set[tuple[str, str, str]]:
    """Return the cases that a file has; a file of another library, or of other settings, is removed."""
    if not record.is_current(path) or record.read_stamp(path).get("settings") != settings():
        path.unlink(missing_ok=True)
        record.write_stamp(path, settings=settings())
        return set()
    record.add_command(path)
    return {(row["table"], row["dataset"], row["method"]) for row in read(path)}


def run_all(cases: Sequence[Case], path: Path, n_seeds: int) -> None:
    """Run the cases that are not in the file, and report progress."""
    done = finished(path)
    for k, case in enumerate(cases, start=1):
        name = case.table, case.dataset, case.method
        if name not in done:
            rows = run(case, n_seeds)
            append(rows, path)
            values = "  ".join(
                f"{r['metric']} {r['printed']} {r['as_published']} {r['default']}" for r in rows
            )
            print(f"{k}/{len(cases)} {' '.join(name)}: {values}  ({rows[0]['seconds']} s)", flush=True)


def within(row: Row) -> bool:
    """Return whether the figure as published is as close to the printed one as asked for."""
    tolerance = TOLERANCE.get(row["metric"], 0.02)
    return abs(float(row["as_published"]) - float(row["printed"])) <= tolerance + 1e-9


def sorted_as_printed(rows: Sequence[Row], table: str) -> list[Row]:
    """Return the rows of a table in the order of the paper's, by method."""
    order = list(printed(table))
    methods = list(dict.fromkeys(method for _, method, _ in order))

    def place(row: Row) -> tuple[int, int]:
        where = row["dataset"], row["method"], row["metric"]
        return methods.index(row["method"]), order.index(where)

    return sorted((row for row in rows if row["table"] == table), key=place)


def show(rows: Sequence[Row]) -> str:
    """Return the rows of one table as Markdown: a row per set, a column per method and metric.

    A cell is printed / as published / default; a star marks what is outside of the tolerance. Many methods
    have a table for each metric.
    """
    cells = {(row["dataset"], row["method"], row["metric"]): _cell(row) for row in rows}
    names, methods, metrics = (list(dict.fromkeys(key[k] for key in cells)) for k in range(3))
    columns = [(method, metric) for metric in metrics for method in methods]
    size = len(columns) if len(methods) <= 3 else len(methods)
    parts = []
    for some in (columns[k : k + size] for k in range(0, len(columns), size)):
        head = [f"{method}, {metric.replace('_', ' ')}" for method, metric in some]
        lines = [["set", *head], ["---"] * (1 + size)]
        lines += [[name, *(cells.get((name, *column), "") for column in some)] for name in names]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    close = sum(map(within, rows))
    return "\n\n".join([*parts, f"As published within the tolerance on {close} of {len(rows)} figures."])


def _cell(row: Row) -> str:
    star = "" if within(row) else " *"
    return f"{row['printed']} / {_with_spread(row, 'as_published')}{star} / {_with_spread(row, 'default')}"


def _with_spread(row: Row, column: str) -> str:
    digits = 1 if row["metric"] == "error" else 2
    value, spread = float(row[column]), float(row[f"{column}_sd"])
    several = int(row["seeds"]) > 1 and spread >= 0.5 * 10**-digits
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if several else "")


def main(argv: list[str] | None = None) -> int:
    """Run cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", help="only these methods")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--quick", action="store_true", help="sets of few rows only, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of a method that draws")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    cases = [case for table in asked.tables for case in TABLES[table](asked.data)]
    cases = [case for case in cases if asked.sets is None or case.dataset in asked.sets]
    cases = [case for case in cases if asked.methods is None or case.method in asked.methods]
    if asked.quick:
        slow = [case for case in cases if case.table == "scpp" and case.method != "SCnP2_o"]
        cases = [case for case in cases if case.dataset in QUICK and case not in slow]
    cases.sort(key=lambda case: LATE.index(case.dataset) if case.dataset in LATE else -1)
    run_all(cases, asked.out, 1 if asked.quick else asked.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
