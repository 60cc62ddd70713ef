"""Every table from one commit: `make bench DATA=DIR` writes one CSV per table.

python benchmarks/bench.py --data DIR --out DIR
python benchmarks/bench.py --data DIR --out DIR --tables mdh kernels

The folder also gets `commit.txt`, the commit that made the tables. `--against FOLDER` compares the means with
those of an earlier run and fails where one is worse by more than 0.005.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAPERS = ["mdh", "clusters", "cpmmc", "mspc", "kmdh", "scpp"]
TABLES = [*PAPERS, "kernels"]
ERRORS = ("cpmmc", "mspc")  # tables of errors in percent: lower is better
TOLERANCE = 0.005  # a mean may be worse by as much


def command(table: str, data: str | None, out: Path) -> list[str]:
    """Return the command that writes a table."""
    script = ["papers.py", "--table", table] if table in PAPERS else [f"{table}.py"]
    source = ["--data", data] if data else []
    return [sys.executable, str(HERE / script[0]), *script[1:], *source, "--out", str(out / f"{table}.csv")]


def means(path: Path) -> dict[str, float]:
    """Return the figures of the rows of means, without times and without the paper's own figures.

    The key of a figure has the texts of its row after the first cell, such as the name of a method.
    """
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if not row["dataset"].startswith("mean"):
                continue
            numbers = {key: _number(cell) for key, cell in row.items() if key != "dataset"}
            texts = [row["dataset"], *(row[key] for key, number in numbers.items() if number is None)]
            for key, number in numbers.items():
                if number is None or math.isnan(number) or key.startswith("paper") or "seconds" in key:
                    continue
                found[" ".join([*texts, key])] = number
    return found


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def worsened(now: Path, before: Path) -> list[str]:
    """Return one line per mean that is worse than before by more than 0.005 (errors: 0.5 percent points)."""
    lines = []
    for table in TABLES:
        if (now / f"{table}.csv").exists() and (before / f"{table}.csv").exists():
            old, new = means(before / f"{table}.csv"), means(now / f"{table}.csv")
            loss = {
                key: (new[key] - old[key]) / 100 if table in ERRORS else old[key] - new[key] for key in old
            }
            lines += [
                f"{table}, {key}: {new[key]:.4f}, before {old[key]:.4f}"
                for key in old
                if loss[key] > TOLERANCE
            ]
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the CSV files")
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--against", type=Path, help="folder of an earlier run")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    head = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True)
    (arguments.out / "commit.txt").write_text(head.stdout)
    for table in arguments.tables:
        began = time.perf_counter()
        subprocess.run(command(table, arguments.data, arguments.out), check=True)
        print(f"{table}: {time.perf_counter() - began:.0f} s", flush=True)
    lines = worsened(arguments.out, arguments.against) if arguments.against else []
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
