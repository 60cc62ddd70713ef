"""Every table from one commit: `make bench DATA=DIR` writes one CSV per table.

python benchmarks/bench.py --data DIR --out DIR
python benchmarks/bench.py --data DIR --out DIR --tables mdh kernels

The folder also gets `commit.txt`, the commit that made the tables. `--against FOLDER` compares the means with
those of an earlier run and fails where one is lower by more than 0.005.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAPERS = ["mdh", "clusters", "cpmmc", "mspc", "kmdh", "scpp"]
TABLES = [*PAPERS, "kernels"]
LOWER = 0.005  # a mean may be as much below the earlier run's


def command(table: str, data: str | None, out: Path) -> list[str]:
    """Return the command that writes a table."""
    script = ["papers.py", "--table", table] if table in PAPERS else [f"{table}.py"]
    source = ["--data", data] if data else []
    return [sys.executable, str(HERE / script[0]), *script[1:], *source, "--out", str(out / f"{table}.csv")]


def means(path: Path) -> dict[str, float]:
    """Return the figures of the last row of a table, its mean, without times and the paper's own figures."""
    with open(path, newline="") as file:
        last = list(csv.DictReader(file))[-1]
    skipped = ("paper", "dataset")
    numbers = {
        key: text for key, text in last.items() if not key.startswith(skipped) and "seconds" not in key
    }
    return {key: float(text) for key, text in numbers.items() if text.replace(".", "", 1).isdigit()}


def lowered(now: Path, before: Path) -> list[str]:
    """Return one line per mean that is lower than before by more than 0.005."""
    lines = []
    for table in TABLES:
        if (now / f"{table}.csv").exists() and (before / f"{table}.csv").exists():
            old, new = means(before / f"{table}.csv"), means(now / f"{table}.csv")
            lines += [
                f"{table}, {key}: {new[key]:.4f}, before {old[key]:.4f}"
                for key in old
                if key in new and new[key] < old[key] - LOWER
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
    lines = lowered(arguments.out, arguments.against) if arguments.against else []
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
