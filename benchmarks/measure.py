"""One clustering in a process of its own: labels, processor seconds and peak memory, within limits."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Cluster = Callable[[Any], Any]

MEMORY = 8 << 30  # bytes of address space that one fit may take


@dataclass(frozen=True)
class Measured:
    """How a fit ended: its labels, or in `problem` why there are none."""

    labels: Array | None
    seconds: float = float("nan")
    peak_mb: float = float("nan")  # above what the process held before the fit
    problem: str = ""


def measured(cluster: Cluster, X: Any, warm_up: Callable[[], Any], cpu_limit: int) -> Measured:
    """Run `cluster(X)` in a new process and return what it found and what it cost.

    Both functions are sent to the process; a forked one would hang if this one has threads. `warm_up` runs
    before the clock starts, so that imports and the loading of compiled code do not count. A fit that takes
    more than `cpu_limit` seconds of processor time is ended.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_fit, args=(there, cluster, X, warm_up, cpu_limit))
    process.start()
    there.close()
    try:
        found: Measured | None = here.recv()
    except EOFError:  # the process was ended before it could answer
        found = None
    process.join()
    if found is not None:
        return found
    late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
    return Measured(None, problem=f"more than {cpu_limit} s" if late else f"exit code {process.exitcode}")


def _fit(out: Connection, cluster: Cluster, X: Any, warm_up: Callable[[], Any], cpu_limit: int) -> None:
    from threadpoolctl import threadpool_limits

    try:
        warm_up()
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_limit, used + cpu_limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        before, began = _memory("VmRSS"), time.process_time()
        with threadpool_limits(1):
            labels = np.asarray(cluster(X))
        seconds = time.process_time() - began
        peak = _memory("VmHWM")
        out.send(Measured(labels, seconds, (peak - before) / 2**20))
    except Exception as error:  # a method that fails on a set is a result
        out.send(Measured(None, problem=f"{type(error).__name__}: {error}".splitlines()[0][:80]))


def _memory(name: str) -> int:
    """Return the bytes that this process holds in memory (VmRSS), or the most that it held (VmHWM).

    `ru_maxrss` is not used: it includes what the process that started this one held.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measured_elsewhere(python: str, script: str, X: Any, arguments: list[str], cpu_limit: int) -> Measured:
    """Run a script with another interpreter; it gets the path of the rows and the arguments.

    Its last line is a JSON object with `labels`, `seconds` and `peak_mb`.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit + 10, cpu_limit + 11))  # 10 s for its imports

    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        done = subprocess.run(
            [python, "-c", script, f"{folder}/X.npy", *arguments],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limit,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
    if done.returncode < 0:
        return Measured(None, problem=f"more than {cpu_limit} s")
    if done.returncode:
        return Measured(None, problem=done.stderr.strip().splitlines()[-1][:80])
    answer = json.loads(done.stdout.splitlines()[-1])
    return Measured(np.asarray(answer["labels"]), answer["seconds"], answer["peak_mb"])
