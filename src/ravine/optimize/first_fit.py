"""The first fit of an environment compiles for many seconds: another process shares the work.

Compiled code is kept on disk, where this process then finds what the other has compiled. Where that cannot be
started, or fails, it compiles everything itself.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ravine.optimize.sphere import MEMORY

PATIENCE = 120.0  # seconds: a process that takes longer is ended, and this one compiles its share

_begun: list[subprocess.Popen[bytes]] = []


@cache
def begin() -> None:
    """Start the other process, unless the code is on disk; once per process."""
    if can_start() and not is_kept():
        start(compile_pursuit.__name__)
        atexit.register(end)


def can_start() -> bool:
    """Return whether there is an interpreter to start, and a processor for it."""
    name = Path(sys.executable or "").name.lower()  # that of an application, if it embeds Python
    return name.startswith("python") and (os.cpu_count() or 1) > 1


def is_kept() -> bool:
    """Return whether compiled code of a pursuit is on disk, not older than its source."""
    source = Path(__file__).with_name("pursuit_kernels.py")
    written = source.stat().st_mtime
    found = _cache_of(source).rglob(f"{source.stem}.pursue-*.nbi")
    return any(index.stat().st_mtime >= written for index in found)


def _cache_of(source: Path) -> Path:
    """Return where numba keeps compiled code; it is asked only if need be, as its import takes a while."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given)
    if os.access(source.parent, os.W_OK):
        return source.parent / "__pycache__"
    from ravine.optimize import pursuit_kernels

    pursue: Any = pursuit_kernels.pursue
    return Path(pursue.stats.cache_path)


def start(share: str) -> None:
    """Start a process that calls a function of this module."""
    code = (  # without garbage collection: what is compiled is needed until the process ends
        f"import gc, sys; gc.disable(); sys.path[:] = {sys.path!r}\nfrom {__name__} import {share}\n{share}()"
    )
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        _begun.append(subprocess.Popen([sys.executable, "-c", code], **quiet))
    except OSError:  # no processes here
        return


def wait() -> None:
    """Compile what comes next until the other process is done; several threads may wait at the same time."""
    if _begun:
        compile_ends()
    _join()


def _join() -> None:
    """Wait until the other process is done."""
    for process in _begun:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def end() -> None:
    """End the other process; numba writes its files at once or not at all."""
    for process in _begun:
        process.kill()
    _join()


def compile_pursuit() -> None:
    """Compile a pursuit except its index: the half of the other process."""
    from numba import typeof

    from ravine.optimize import pursuit_kernels

    given = _smallest_pursuit()
    pursuit_kernels.address_of_descent(0, *given)
    pursuit_kernels.pursue.compile(tuple(map(typeof, (0, 0, *given, 0, 0, True, True))))


@cache
def compile_ends() -> None:
    """Compile what comes after a pursuit: the depth of a valley, projections and sums of dense rows."""
    from ravine.data.blocks import DenseBlock  # imports SciPy's sparse matrices, which take a while
    from ravine.index.density_kernels import relative_depth

    one, square = np.ones(1), np.ones((1, 1))
    relative_depth(one, one, 1.0, 1.0, 1.0)
    block = DenseBlock(square, one)
    block.project(one, square)
    block.group_sums(one, one, np.zeros(1, dtype=np.int64), square)


def _smallest_pursuit() -> tuple[Any, ...]:
    """Return rows, options, stages, runs and bins of the types that they have in every pursuit."""
    from ravine.optimize.held_kernels import Rows
    from ravine.optimize.pursuit_kernels import Options, bins_for, runs_from

    one, none = np.ones((1, 1)), np.empty(0)
    rows = Rows(one, one, none, none.astype(np.int32), none.astype(np.int64), none, np.ones(1))
    options = Options(0.0, 1.0, 1.0, 1.0, 1.0, 1, 1.0, False, 1.0, 1.0, 1.0, 1.0)
    runs = runs_from(one, np.zeros((1, 2, MEMORY, 1)), np.zeros(1, dtype=np.int64), 1)
    return rows, options, np.ones((1, 4)), runs, bins_for(1, 1)
