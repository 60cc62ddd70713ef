"""Rows in files and in dask arrays: passes, seconds per pass, and the peak resident size of a fresh process.

python benchmarks/scale.py                                       # 1 000 000 x 20, half a minute
python benchmarks/scale.py --rows 20000000 --columns 50          # 4 GB of disk in --folder
python benchmarks/scale.py --kinds npy --method "MinimumDensity(16)" "MinimumDensity('auto')"
python benchmarks/scale.py --overhead 100                        # dask on two processes, per block and pass
python benchmarks/scale.py --workers 1 2 --rows 5000000 --columns 50   # dask on so many processes
MALLOC_TRIM_THRESHOLD_=65536 python benchmarks/scale.py --task --rows 156250 --columns 50   # one dask task

A pass is compared with one plain read-and-sum of the same NPY file on one thread, measured in the same run,
by processor time (of all threads), so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("memory", "npy", "parquet", "dask")
PIECE = 1 << 16  # rows that are written or summed at a time
METHOD = "MinimumDensity(16)"
PARTITION = 100_000_000  # bytes of a partition, which Dask's guide to chunks recommends


def write(path: Path, n: int, d: int, kind: str) -> None:
    """Write clusters of float32 rows to an NPY file; for Parquet, also to row groups of n/16 rows."""
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.standard_normal((16, d))
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for a in range(0, n, PIECE):
        k = min(PIECE, n - a)
        rows[a : a + k] = centers[rng.integers(16, size=k)] + rng.standard_normal((k, d))
    rows.flush()
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({f"x{j}": np.ascontiguousarray(rows[:, j]) for j in range(d)})
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=max(8192, -(-n // 16)))


def read_and_sum(path: Path) -> float:
    """Return the processor seconds of one read-and-sum of a file that was read before; the best of three."""
    shape = np.load(path, mmap_mode="r").shape
    seconds = []
    for _ in range(3):
        began, total = time.process_time(), 0.0
        with open(path, "rb") as file:
            file.seek(path.stat().st_size - 4 * shape[0] * shape[1])
            buffer = np.empty((PIECE, shape[1]), dtype=np.float32)
            while n_bytes := file.readinto(buffer.data.cast("B")):
                total += float(buffer.ravel()[: n_bytes // 4].sum())
        seconds.append(time.process_time() - began)
    return min(seconds)


def fit(path: Path, kind: str, method: str, memory_limit: int | None, n_jobs: int) -> dict[str, float]:
    """Fit in this process; return passes, times, clusters and the peak resident size in MB."""
    import ravine

    model: Any = eval(method, vars(ravine) | {name: getattr(ravine, name) for name in ravine.__all__})
    model.set_params(n_jobs=n_jobs)
    small = np.random.default_rng(0).standard_normal((20_000, 4))
    type(model)(4).fit(small + 9.0 * np.eye(4)[np.arange(20_000) % 4])  # loads modules
    X: Any
    if kind == "memory":
        X = np.load(path)
    elif kind == "dask":
        da: Any = importlib.import_module("dask.array")
        mapped = np.load(path, mmap_mode="r")
        X = da.from_array(mapped, chunks=(max(8192, -(-len(mapped) // 16)), mapped.shape[1]))
    else:
        X = ravine.open(path.with_suffix(f".{kind}"), memory_limit=memory_limit)
    began, worked = time.perf_counter(), time.process_time()
    model.fit(X)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    found = {"passes": model.n_passes_, "clusters": model.n_clusters_}
    found |= {"seconds": seconds, "processor": worked}
    return {**found, "peak": peak_resident()}


def overhead(n_blocks: int, n_passes: int = 15) -> tuple[float, float]:
    """Return processor ms per block and pass on a cluster of two processes, for blocks of 200 rows.

    The first number is that of this process, client and scheduler; the second that of the workers.
    """
    da: Any = importlib.import_module("dask.array")
    distributed: Any = importlib.import_module("distributed")
    from ravine.data.dask_engine import DaskEngine, DaskSource
    from ravine.data.query import Asked
    from ravine.data.standardization import Moments

    rows = da.from_array(np.random.default_rng(0).standard_normal((200 * n_blocks, 5)), chunks=(200, 5))
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        engine = DaskEngine(DaskSource(rows.persist()))
        asked = [Asked(engine.rows(), Moments(np.zeros(5), np.ones(5)))]
        engine.answer(asked)
        before = time.process_time(), sum(client.run(time.process_time).values())
        for _ in range(n_passes):
            engine.answer(asked)
        after = time.process_time(), sum(client.run(time.process_time).values())
    own, workers = (1e3 * (b - a) / n_passes / n_blocks for a, b in zip(before, after, strict=True))
    return own, workers


def task(n: int, d: int) -> None:
    """Print processor ms of a task of dask: answer a block of 16 leaves, merge 16 answers, move one.

    Dask's nanny starts workers with MALLOC_TRIM_THRESHOLD_=65536; set it to measure what they need.
    """
    distributed: Any = importlib.import_module("distributed")
    from ravine.data import partition_tasks as tasks
    from ravine.data.block_pass import Group
    from ravine.data.profile import Grid, ProfileSum
    from ravine.data.standardization import Standardization

    rng, own = np.random.default_rng(0), Standardization.identity(d, float(n))
    values, ids = rng.standard_normal((n, d), dtype=np.float32), rng.integers(16, size=n, dtype=np.int32)
    grid, directions = Grid(-5.0, 0.009, 1111), np.linalg.qr(rng.standard_normal((d, d)))[0]
    groups = [Group((k,), None, (ProfileSum(own, directions[k % d], grid, True),)) for k in range(16)]
    work = tasks.Constant(groups)
    seen = tasks.Seen(tasks.open_partition(values, 0), 0)

    def answer() -> Any:
        return tasks.answer(values, ids, None, seen, None, work)

    def spent(work: Any, times: int = 10) -> float:
        began = time.process_time()
        for _ in range(times):
            work()
        return 1e3 * (time.process_time() - began) / times

    parts = [answer() for _ in range(16)]
    shapes = [array.shape for array in parts[0][0][0]]

    def make(_: int) -> Any:
        return [[tuple(np.ones(shape) for shape in shapes)] for _ in range(16)]

    tasks.merge(work, parts)
    print(f"answer a block: {spent(answer):.1f} ms, merge 16: {spent(lambda: tasks.merge(work, parts)):.1f}")
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        one, other = client.scheduler_info()["workers"]
        for _ in range(2):  # the first time, connections are made
            held = client.map(make, range(16), workers=[one], pure=False)
            distributed.wait(held)
            before = sum(client.run(time.process_time).values())
            distributed.wait(client.map(len, held, workers=[other], pure=False))
            moved = 1e3 * (sum(client.run(time.process_time).values()) - before) / 16
    size = sum(array.nbytes for group in parts[0] for found in group for array in found) / 1e6
    print(f"move one answer, {size:.1f} MB: {moved:.1f} ms of both workers")


def on_workers(
    n_workers: int, n: int, d: int, method: str, n_parts: int | None, evenly: bool
) -> dict[str, Any]:
    """Fit on so many processes of one thread; return seconds, processor seconds and a worker's peak in MB.

    `evenly` gives every worker as many consecutive partitions; otherwise the scheduler places them.
    """
    da: Any = importlib.import_module("dask.array")
    distributed: Any = importlib.import_module("distributed")
    import ravine

    def block(k: int, size: int) -> Any:
        rng = np.random.default_rng(k)
        centers = 4.0 * np.random.default_rng(0).standard_normal((16, d))
        return (centers[rng.integers(16, size=size)] + rng.standard_normal((size, d))).astype(np.float32)

    n_parts = n_parts or max(8, -(-4 * n * d // PARTITION))
    size = n // n_parts
    model: Any = eval(method, vars(ravine) | {name: getattr(ravine, name) for name in ravine.__all__})
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=n_workers, **options) as cluster,
        distributed.Client(cluster) as c,
    ):
        names = list(c.scheduler_info()["workers"])
        places = [names[k * n_workers // n_parts] if evenly else names for k in range(n_parts)]
        futures = [c.submit(block, k, size, workers=at) for k, at in enumerate(places)]
        parts = [da.from_delayed(one, (size, d), dtype=np.float32) for one in futures]
        rows = da.concatenate(parts).persist()
        distributed.wait(rows)
        del futures, parts
        held = [at for one in c.who_has(distributed.futures_of(rows)).values() for at in one]
        shares = [held.count(name) for name in names]
        some = 16_000_000 // d // n_parts  # of each partition: so many values are not searched on the client
        few = [rows[a : a + some] for a in range(0, n, size)]
        type(model)(3).fit(da.concatenate(few).persist())  # every worker loads modules
        before = time.perf_counter(), time.process_time(), sum(c.run(time.process_time).values())
        model.fit(rows)
        after = time.perf_counter(), time.process_time(), sum(c.run(time.process_time).values())
        spent = [b - a for a, b in zip(before, after, strict=True)]
        found = dict(zip(("seconds", "client", "workers"), spent, strict=True))
        return {**found, "partitions": shares, "peak": max(c.run(peak_resident).values())}


def peak_resident() -> float:
    """Return the peak resident size of this process in MB; `ru_maxrss` would include that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--method", nargs="+", default=[METHOD], help="estimators, in Python")
    parser.add_argument("--memory-limit", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--overhead", type=int, metavar="BLOCKS", help="measure only the cost of dask")
    parser.add_argument("--task", action="store_true", help="measure only one task of dask")
    parser.add_argument("--workers", type=int, nargs="+", help="measure only dask on so many processes")
    parser.add_argument("--partitions", type=int, help="of the rows on workers; default: 100 MB each")
    parser.add_argument("--as-scheduled", action="store_true", help="let the scheduler place partitions")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # kind and method of the fresh process
    arguments = parser.parse_args(argv)
    if arguments.overhead:
        own, workers = overhead(arguments.overhead)
        print(f"processor ms per block and pass: client and scheduler {own:.2f}, workers {workers:.2f}")
        return 0
    if arguments.task:
        task(arguments.rows, arguments.columns)
        return 0
    for n_workers in arguments.workers or ():
        shape = arguments.rows, arguments.columns
        placed = arguments.partitions, not arguments.as_scheduled
        found = on_workers(n_workers, *shape, arguments.method[0], *placed)
        print(
            f"{n_workers} workers, {found['partitions']} partitions: {found['seconds']:.1f} s; processor "
            f"time {found['client']:.1f} s of client and scheduler, {found['workers']:.1f} s of all workers; "
            f"peak of a worker {found['peak']:.0f} MB",
            flush=True,
        )
    if arguments.workers:
        return 0
    path = arguments.folder / f"scale-{arguments.rows}-{arguments.columns}.npy"
    if arguments.one:
        kind, method = arguments.one
        print(json.dumps(fit(path, kind, method, arguments.memory_limit, arguments.jobs)))
        return 0
    for kind in {"npy", *arguments.kinds} & {"npy", "parquet"}:
        if not path.with_suffix(f".{kind}").exists():
            write(path, arguments.rows, arguments.columns, kind)
    plain = read_and_sum(path)
    print(f"read and sum {path.stat().st_size / 1e9:.2f} GB: {plain:.2f} s\n")
    print("| rows | method | passes | seconds | processor s | per pass / read-and-sum | clusters | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, method in itertools.product(arguments.kinds, arguments.method):
        given = sys.argv[1:] if argv is None else argv
        command = [sys.executable, __file__, *given, "--one", kind, method]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        share = found["processor"] / found["passes"] / plain
        times = f"{found['seconds']:.1f} | {found['processor']:.1f} | {share:.1f}"
        print(
            f"| {kind} | {method} | {found['passes']:.1f} | {times} | {found['clusters']} | "
            f"{found['peak']:.0f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
