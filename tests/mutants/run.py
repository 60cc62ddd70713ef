"""Put deliberate bugs into copies of the sources, one into each, and report those that no test sees.

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
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mutants import REQUIRED, ROOT, load

COPIED = ("src", "tests", "benchmarks", "docs", "build", "setup.py", "pyproject.toml", "README.md")
CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "BROKEN"
NOT_COPIED = shutil.ignore_patterns(".hypothesis", "*.egg-info")
BUILT = ("cython", "lib.", "temp.")  # beginnings of the folders in build that make compiling shorter


def ignored(folder, names):
    """Return what is not copied: in build, all but what the compiler left there."""
    if Path(folder) == ROOT / "build":
        return [name for name in names if not name.startswith(BUILT)]
    return NOT_COPIED(folder, names)


@contextmanager
def copy_of_the_tree():
    """Copy what the tests need; times of files are kept, so that compiled modules stay newer than sources."""
    with tempfile.TemporaryDirectory(prefix="ravine-mutants-") as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            elif source.exists():
                shutil.copy2(source, target)
        yield Path(folder)


def compile_loops(tree):
    """Compile what changed in the copy; a bug that does not compile is an error."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(done.stdout)


def run_tests(tree, tests, limit, *options):
    """Run some tests in the copy; return pytest's exit code (None after `limit` seconds) and its output."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
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


def try_one(mutant, limit, failing):
    """Run the tests of one bug in a copy of its own, except those that fail anyway.

    Returns what became of it, and the test that saw it or what went wrong.
    """
    with copy_of_the_tree() as tree:
        path = tree / mutant.path
        path.write_text(mutant.applied_to(path.read_text("utf-8")), "utf-8")
        if mutant.compiled:
            compile_loops(tree)
        options = ["-x", *(f"--deselect={test}" for test in failing)]
        code, output = run_tests(tree, mutant.tests, limit, *options)
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


def failing_without_a_bug(mutants, limit):
    """Return the tests that fail in the sources as they are: their failing says nothing about a bug."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with copy_of_the_tree() as tree:
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
    failing = failing_without_a_bug(mutants, arguments.limit)
    results = []
    for mutant in mutants:
        began = time.perf_counter()
        fate, why = try_one(mutant, arguments.limit, failing)
        results.append((mutant, fate))
        seconds = time.perf_counter() - began
        print(f"{fate:8} {mutant.origin:6} {seconds:6.1f} s  {mutant.id:40} {why}", flush=True)
    lines, enough = summary(results)
    print("\n" + "\n".join(lines))
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
