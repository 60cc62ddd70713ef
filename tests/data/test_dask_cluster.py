"""A cluster of processes: the same bits as in memory, also when a worker is killed during the fit."""

import os
import signal
import subprocess
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from ravine import MinimumDensity
from ravine.data.memory import chunk_rows
from ravine.exceptions import InvalidInputError, RavineError

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.normal(size=(N, 4)) + 7.0 * np.eye(4)[RNG.integers(4, size=N)]


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(n_workers=2, processes=True, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def few_local_rows(monkeypatch):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 10_000)


def test_two_processes_give_the_same_bits(client):
    rows = da.from_array(X, chunks=(chunk_rows(N), 4)).persist()
    one, two = MinimumDensity(3).fit(X), MinimumDensity(3).fit(rows)
    assert one.tree_ == two.tree_
    np.testing.assert_array_equal(two.labels_.compute(), one.labels_)
    np.testing.assert_array_equal(two.predict(rows).compute(), one.labels_)


def test_a_killed_worker_changes_nothing(client):
    rows = da.from_array(X, chunks=(chunk_rows(N), 4)).persist()
    killed = []

    def kill(progress):
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    one, two = MinimumDensity(4).fit(X), MinimumDensity(4, verbose=kill).fit(rows)
    assert killed
    assert one.tree_ == two.tree_
    np.testing.assert_array_equal(two.labels_.compute(), one.labels_)


def partition(i, kind):
    rows = X[i * 10_000 : (i + 1) * 10_000]
    if i == 2 and kind == "broken":
        raise OSError("disk on fire")
    return np.random.default_rng().permutation(rows) if i == 2 and kind == "shuffled" else rows


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("broken", OSError, "disk on fire"),
        ("shuffled", InvalidInputError, "partition 2 of X changed"),
    ],
)
def test_errors_of_workers_reach_the_client(client, kind, error, message):
    parts = [dask.delayed(partition, pure=False)(i, kind) for i in range(4)]
    rows = da.concatenate([da.from_delayed(part, (10_000, 4), dtype=float) for part in parts])
    with pytest.raises(error, match=message):
        MinimumDensity(2).fit(rows)


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and a worker as processes of their own: the address and the process of the scheduler."""
    started, where = [], tmp_path / "scheduler.json"
    for name in ("scheduler", "worker"):
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--scheduler-file", where]
        own = ["--port", "0"] if name == "scheduler" else ["--nthreads", "1", "--no-nanny"]
        command += ["--host", "127.0.0.1", "--no-dashboard", *own]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    yield where, started[0]
    for process in started:
        process.kill()
        process.wait()


def test_a_lost_scheduler_is_not_called_bad_data(scheduler):
    where, process = scheduler

    def kill(progress):
        process.kill()

    with Client(scheduler_file=where, timeout=30, set_as_default=False) as own, own.as_current():
        rows = da.from_array(X, chunks=(chunk_rows(N), 4)).persist()
        with pytest.raises(RavineError, match=r"connection to the scheduler .*lost"):
            MinimumDensity(4, verbose=kill).fit(rows)


def test_data_frames_weights_and_probabilities_on_a_cluster(client):
    frame = pd.DataFrame(X, columns=list("abcd"))
    rows = dd.from_pandas(frame, npartitions=3).persist()
    weights = RNG.integers(0, 3, N).astype(float)
    one = MinimumDensity(2).fit(frame, sample_weight=weights)
    two = MinimumDensity(2).fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(two.labels_.compute(), one.labels_)
    np.testing.assert_allclose(two.predict_proba(rows).compute(), one.predict_proba(frame), atol=1e-3)
