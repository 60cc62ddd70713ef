"""`ravine fit` of a 1 GB CSV and a 2 GB Parquet file of 50 columns: peak memory and time.

python benchmarks/files.py --folder DIR     # needs 8 GB of disk there, pyarrow, and a few minutes
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

COLUMNS, CLUSTERS = 50, 5
SIZES = {"csv": 1_000_000_000, "parquet": 2_000_000_000}


def blocks(n_rows: int) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((CLUSTERS, COLUMNS))
    while True:
        rows = centers[rng.integers(0, CLUSTERS, n_rows)] + rng.standard_normal((n_rows, COLUMNS))
        yield pa.table([rows[:, j] for j in range(COLUMNS)], names=[f"f{j}" for j in range(COLUMNS)])


def write_csv(path: Path) -> None:
    with open(path, "wb") as file:
        for i, block in enumerate(blocks(50_000)):
            rounded = pa.table(
                [np.round(column.to_numpy(), 6) for column in block.columns], block.column_names
            )
            pa.csv.write_csv(rounded, file, pa.csv.WriteOptions(include_header=i == 0))
            if file.tell() > SIZES["csv"]:
                return


def write_parquet(path: Path) -> None:
    first = next(blocks(1))
    with pa.parquet.ParquetWriter(path, first.schema) as writer:
        for block in blocks(500_000):
            writer.write_table(block)
            if os.path.getsize(path) > SIZES["parquet"]:
                return


def measure(path: Path) -> tuple[float, float, float]:
    """Return peak memory in MB, processor seconds and wall seconds of one fit with its labels and report."""
    out = [f"--{option}={path.parent / name}" for option, name in (("out", "l.csv"), ("report", "r.html"))]
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    code += "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_maxrss, u.ru_utime + u.ru_stime)"
    fit = [
        sys.executable,
        "-m",
        "ravine",
        "fit",
        str(path),
        f"--clusters={CLUSTERS}",
        "--quiet",
        "--force",
        *out,
    ]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *fit], check=True, capture_output=True, text=True)
    peak, seconds = map(float, done.stdout.split())
    return peak / 1024, seconds, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    folder = parser.parse_args().folder
    print("| file | bytes | peak MB | processor s | wall s |\n|---|---|---|---|---|")
    for kind, write in (("csv", write_csv), ("parquet", write_parquet)):
        path = folder / f"big.{kind}"
        if not path.exists():
            write(path)
        peak, seconds, wall = measure(path)
        print(f"| {kind} | {path.stat().st_size:,} | {peak:.0f} | {seconds:.0f} | {wall:.0f} |", flush=True)


if __name__ == "__main__":
    main()
