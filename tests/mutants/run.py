"""Put deliberate bugs into a copy of the sources, one at a time, and report those that no test sees.

python -m tests.mutants.run                      all of them
python -m tests.mutants.run --only s11 t7        some of them
python -m tests.mutants.run --folder data view   those in some folders
python -m tests.mutants.run --list               what there is
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutants import REQUIRED, ROOT, load

COPIED = ("src", "tests", "benchmarks", "docs", "pyproject.toml", "README.md")
CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "BROKEN"
NOT_COPIED = shutil.ignore_patterns(".hypothesis", "*.egg-info")


def copy_of_the_tree(folder):
    """Copy what the tests need; times of files are kept, so that compiled code stays valid."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=NOT_COPIED)
        elif source.exists():
            shutil.copy2(source, folder / name)


def run_tests(tree, tests, limit, *options, cache=None):
    """Run some tests in the copy; return pytest's exit code (None after `limit` seconds) and its output."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",  # the copy's compiled Python stays that of the sources without bugs
    }
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    plain = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *plain, *options, *tests]
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    except BaseException:  # an interrupt ends the tests, too
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output


def try_one(tree, mutant, limit, failing):
    """Run the tests of one bug, except those that fail anyway.

    Returns what became of it, and the test that saw it or what went wrong.
    """
    path = tree / mutant.path
    text, times = path.read_text("utf-8"), path.stat()
    path.write_text(mutant.applied_to(text), "utf-8")
    try:
        with tempfile.TemporaryDirectory() as cache:
            options = ["-x", *(f"--deselect={test}" for test in failing)]
            compiled = Path(cache) if mutant.compiled else None
            code, output = run_tests(tree, mutant.tests, limit, *options, cache=compiled)
    finally:
        path.write_text(text, "utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if code is None:
        return (CAUGHT if mutant.may_hang else BROKEN), f"time limit of {limit:g} s"
    if code == pytest_code("OK"):
        return SURVIVED, ""
    if code == pytest_code("TESTS_FAILED"):
        return CAUGHT, failures(output)[0]
    return BROKEN, f"pytest ended with {code}: {(output.strip().splitlines() or ['no output'])[-1]}"


def pytest_code(name):
    """Return an exit code of pytest by its name."""
    import pytest

    return int(pytest.ExitCode[name])


def failures(output):
    """Return the tests that failed, from pytest's summary."""
    lines = [line.split(" ", 1)[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [line.split(" - ")[0] for line in lines]


def failing_without_a_bug(tree, mutants, limit):
    """Return the tests that fail in the sources as they are: their failing says nothing about a bug."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    code, output = run_tests(tree, tests, limit * len(mutants))
    if code not in (pytest_code("OK"), pytest_code("TESTS_FAILED")):
        raise SystemExit(f"{output}\nthe tests do not run in the sources as they are")
    for test in failures(output):
        print(f"fails without a bug, and is left out: {test}", flush=True)
    return failures(output)


def chosen(mutants, arguments):
    """Return those that were asked for."""
    unknown = set(arguments.only) - {mutant.id for mutant in mutants}
    if unknown:
        raise SystemExit(f"there is no mutant called {', '.join(sorted(unknown))}; --list names all")
    return [
        mutant
        for mutant in mutants
        if (not arguments.only or mutant.id in arguments.only)
        and (not arguments.folder or mutant.folder in arguments.folder)
        and (not arguments.origin or mutant.origin == arguments.origin)
    ]


def summary(results):
    """Return the lines of the summary, and whether enough bugs were caught."""
    lines, enough = [], True
    for origin, required in REQUIRED.items():
        fates = [fate for mutant, fate in results if mutant.origin == origin]
        if fates:
            caught = fates.count(CAUGHT)
            share = caught / len(fates)
            enough = enough and share >= required
            lines.append(f"{origin}: {caught} of {len(fates)} caught, {share:.0%} (at least {required:.0%})")
    missed = [mutant for mutant, fate in results if fate != CAUGHT]
    lines += [f"not caught: {mutant.id} ({mutant.path}): {mutant.what}" for mutant in missed]
    return lines, enough


def parse(argv):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="run these")
    parser.add_argument("--folder", nargs="+", default=[], metavar="NAME", help="run those of some folders")
    parser.add_argument("--origin", choices=tuple(REQUIRED), help="run those of one origin")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for each (600)")
    parser.add_argument("--list", action="store_true", help="list them, and run nothing")
    return parser.parse_args(argv)


def main(argv=None):
    """Run what was asked for; return 0 if enough bugs were caught."""
    arguments = parse(argv)
    mutants = chosen(load(), arguments)
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.folder:9} {mutant.id:40} {mutant.origin:7} {mutant.what}")
        return 0
    with tempfile.TemporaryDirectory(prefix="ravine-mutants-") as folder:
        tree = Path(folder)
        copy_of_the_tree(tree)
        failing = failing_without_a_bug(tree, mutants, arguments.limit)
        results = []
        for mutant in mutants:
            began = time.perf_counter()
            fate, why = try_one(tree, mutant, arguments.limit, failing)
            results.append((mutant, fate))
            seconds = time.perf_counter() - began
            print(f"{fate:8} {mutant.origin:6} {seconds:6.1f} s  {mutant.id:40} {why}", flush=True)
    lines, enough = summary(results)
    print("\n" + "\n".join(lines))
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
