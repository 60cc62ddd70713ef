"""Every table from one commit, with progress: `make bench DATA=DIR`, `make bench-quick DATA=DIR`.

python benchmarks/bench.py --data DIR --out DIR
python benchmarks/bench.py --data DIR --out DIR --tables mdh diffusion
python benchmarks/bench.py --data DIR --quick                 a few minutes, compared with the results at hand
python benchmarks/bench.py --check                            which results were made with another library
python benchmarks/bench.py --write                            RESULTS.md from the CSV files; nothing is run
python benchmarks/speed.py trees | python benchmarks/bench.py --keep trees     a printed table as a CSV file

Each table is a CSV file, and a JSON file beside it has its command, commit and versions. A run that was ended
goes on with the tables that are missing (`published` also within its table), as long as the library is the
same; `--again` makes all of them anew. `--against FOLDER` compares the means with those of an earlier run and
fails where one is worse by more than 0.005.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
import time
import tomllib
from pathlib import Path

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import beside, choice, number, published, record, semisupervised
from benchmarks.papers import Row, show

HERE = Path(__file__).resolve().parent
PAPERS = ["mdh", "clusters", "scpp", "diffusion", "shapes", "text"]  # tables of papers.py
TABLES = ["published", *PAPERS, "semisupervised", "choice"]
RESULTS = HERE / "RESULTS.md"
TOLERANCE = 0.005  # a mean may be worse by as much
SAME = 0.01  # figures of `published` that differ by more are stale: fractions, or hundreds of percent


def command(table: str, data: str | None, out: Path) -> list[str]:
    """Return the command that writes a table."""
    script = ["papers.py", "--table", table] if table in PAPERS else [f"{table}.py"]
    source = ["--data", data] if data else []
    target = ["--out", str(out / f"{table}.csv")]
    return [sys.executable, str(HERE / script[0]), *script[1:], *source, *target]


def means(path: Path) -> dict[str, float]:
    """Return the figures of the rows of means, without times and without the paper's own figures.

    The key of a figure has the texts of its row after the first cell, such as the name of a method.
    """
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if not row.get("dataset", "").startswith("mean"):
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
    """Return one line per mean that is worse than before by more than 0.005."""
    lines = []
    for table in PAPERS:
        if (now / f"{table}.csv").exists() and (before / f"{table}.csv").exists():
            old, new = means(before / f"{table}.csv"), means(now / f"{table}.csv")
            lines += [
                f"{table}, {key}: {new[key]:.4f}, before {old[key]:.4f}"
                for key in old
                if old[key] - new[key] > TOLERANCE
            ]
    return lines


def stale(now: Path, before: Path) -> list[str]:
    """Return one line per figure of `published` that is not what an earlier file has.

    Figures of several seeds may also differ by three of their deviations.
    """
    lines = []
    where = ("table", "dataset", "method", "metric")
    old = {tuple(row[key] for key in where): row for row in published.read(before)}
    for row in published.read(now):
        earlier = old.get(tuple(row[key] for key in where), {})
        for column in ("as_published", "default") if earlier else ():
            allowed = SAME * (100 if row["metric"] == "error" else 1) + 3 * float(earlier[f"{column}_sd"])
            if abs(float(row[column]) - float(earlier[column])) > allowed:
                name = " ".join(row[key] for key in where)
                lines.append(f"{name}, {column}: {row[column]}, in the results {earlier[column]}")
    return lines


def unfinished(tables: list[str], out: Path, again: bool) -> list[str]:
    """Return the tables that are to be run: those without a file of the present library."""
    if again:
        for table in tables:
            record.stamp_of(out / f"{table}.csv").unlink(missing_ok=True)
    return [table for table in tables if table == "published" or not record.is_current(out / f"{table}.csv")]


def run(tables: list[str], data: str | None, out: Path) -> None:
    """Make tables one after the other, with progress; the stamp of a table is written when it is finished."""
    for k, table in enumerate(tables, start=1):
        began = time.perf_counter()
        print(f"[{k}/{len(tables)}] {table}", flush=True)
        words = command(table, data, out)
        subprocess.run(words, check=True)
        if table != "published":  # that one stamps its file when it begins
            record.write_stamp(out / f"{table}.csv", command=record.shown(words[1:]))
        print(f"[{k}/{len(tables)}] {table}: {time.perf_counter() - began:.0f} s", flush=True)


def quick(data: str | None, out: Path) -> list[str]:
    """Run the small sets of `published`, and return what differs from the results at hand."""
    words = [sys.executable, str(HERE / "published.py"), "--quick", "--out", str(out / "quick.csv")]
    subprocess.run([*words, *(["--data", data] if data else [])], check=True)
    return stale(out / "quick.csv", published.OUT)


def keep_printed(text: str, path: Path) -> None:
    """Write the last Markdown table of a text as a CSV file."""
    lines = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    starts = [i for i, cells in enumerate(lines) if set("".join(cells)) == {"-"}]
    rows = [[cell.strip() for cell in cells] for cells in lines[starts[-1] - 1 :]]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([rows[0], *rows[2:]])


def page() -> str:
    """Return RESULTS.md: the sections of results/page.toml with the tables of their CSV files."""
    said = tomllib.loads((HERE / "results" / "page.toml").read_text())
    parts = ["# Results", said["introduction"].strip()]
    for section in said["section"]:
        parts.append(f"{section.get('level', '##')} {section['title']}")
        command = (
            f"`python benchmarks/{section['command']}`{origin(section)}\n" if "command" in section else ""
        )
        parts.append((command + section.get("text", "")).strip())
        parts.append(table_of(section) if "file" in section else "")
    return "\n\n".join(filter(None, parts)) + "\n"


def origin(section: Row) -> str:
    """Return the commit of the figures, where it is known."""
    made = record.read_stamp(HERE / "results" / str(section.get("file", section.get("origin"))))
    return f" (commit {made['commit'][:7]})" if made else ""


def table_of(section: Row) -> str:
    """Return the table of a section: the rows of its file, some of them, or a summary of them.

    `pivot` has the names of the columns that become rows and columns of the table, and the text of a cell.
    """
    path = HERE / "results" / section["file"]
    if path.name == "published.csv":
        return published.show(published.sorted_as_printed(published.read(path), section["table"]))
    if path.name == "semisupervised.csv":
        few = [result for result in semisupervised.read(path) if result[1] <= section["labels"]]
        return semisupervised.table(few)
    rows = published.read(path)
    if path.name == "beside.csv":
        return show(beside.summary(rows, section["rows"]))
    if path.name == "number.csv":
        return show(number.mean_figures(number.read(path)))
    if path.name == "choice.csv":
        return show(choice.means(rows))
    rows = [row for row in rows if all(row[key] in some for key, some in section.get("where", {}).items())]
    if "pivot" in section:
        across, down, cell = section["pivot"]
        found: dict[str, Row] = {}
        for row in rows:
            figures = {key: shortened(value) for key, value in row.items()}
            found.setdefault(row[across], {across: row[across]})[row[down]] = cell.format(**figures)
        return show(list(found.values()))
    columns = section.get("columns", list(rows[0]))
    return show([{key: shortened(row[key]) for key in columns} for row in rows])


def shortened(cell: str) -> str:
    """Return a cell with at most three decimals.

    >>> shortened("0.78801"), shortened("12"), shortened("9 of 10")
    ('0.788', '12', '9 of 10')
    """
    number = _number(cell)
    return f"{number:.3f}" if number is not None and len(cell.partition(".")[2]) > 3 else cell


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="directory of npz files (X, y); without it, OpenML is asked")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the CSV files")
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--again", action="store_true", help="also make tables that are finished")
    parser.add_argument("--quick", action="store_true", help="small sets only; compare with the results")
    parser.add_argument("--check", action="store_true", help="run nothing; name results of another library")
    parser.add_argument("--against", type=Path, help="folder of an earlier run")
    parser.add_argument("--write", action="store_true", help="only write RESULTS.md from the CSV files")
    parser.add_argument("--keep", metavar="NAME", help="only write the table on standard input to NAME.csv")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    if arguments.write:
        RESULTS.write_text(page())
    elif arguments.keep:
        keep_printed(sys.stdin.read(), arguments.out / f"{arguments.keep}.csv")
    elif arguments.check:
        made = [arguments.out / f"{table}.csv" for table in arguments.tables]
        lines = [f"{path.name}: not of the present library" for path in made if not record.is_current(path)]
    elif arguments.quick:
        lines = quick(arguments.data, arguments.out)
    else:
        run(unfinished(arguments.tables, arguments.out, arguments.again), arguments.data, arguments.out)
        lines = worsened(arguments.out, arguments.against) if arguments.against else []
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
