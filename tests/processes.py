"""Runs the command line in processes of their own, forked from one that has its imports behind it.

Importing scikit-learn takes seconds, and there are dozens of commands to run. `started` is the same with a
Python of its own, for what depends on how a process begins.
"""

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "ravine.cli.commands",
        "ravine.estimators.minimum_density",
        "ravine.view.report",
        "ravine.metrics",
    ]
)
COMMAND = [sys.executable, "-m", "ravine"]


def _child(arguments, where, folder, largest_file):
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    os.chdir(where)
    for number, (name, flags) in enumerate(
        {"in": os.O_RDONLY, "out": os.O_WRONLY | os.O_CREAT, "err": os.O_WRONLY | os.O_CREAT}.items()
    ):
        os.dup2(os.open(Path(folder) / name, flags), number)
    sys.stdin = open(0)  # noqa: SIM115
    from ravine.cli.main import main

    sys.exit(main(arguments))


def run(*arguments, where=".", data="", largest_file=None):
    """Run one command; return what subprocess.run returns. No file grows above `largest_file` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").write_text(data)
        details = [str(a) for a in arguments], str(where), folder, largest_file
        process = CONTEXT.Process(target=_child, args=details)
        process.start()
        process.join()
        out, err = ((Path(folder) / name).read_text() for name in ("out", "err"))
    return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


def started(*arguments, where=".", before=()):
    """Run one command in a Python of its own, perhaps behind another command."""
    return subprocess.run(
        [*before, *COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=where
    )
