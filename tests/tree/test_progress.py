"""What the callback of a fit is told: every split, and between the splits of large data how far it is."""

import contextlib

import numpy as np
import pytest

import ravine
from ravine import MinimumDensity
from ravine.data.memory import MemoryRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9000, 3)) + 8.0 * np.eye(3)[RNG.integers(3, size=9000)]


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_the_callback_is_called_between_the_splits_of_large_data(kind, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", X)
    rows = X if kind == "memory" else ravine.open(tmp_path / "rows.npy")
    received = []
    model = MinimumDensity(3, verbose=received.append).fit(rows)
    assert len(received) == 2  # small data: only the splits
    assert received[-1].seconds_left == pytest.approx(0.0, abs=1e-9)
    received.clear()
    monkeypatch.setattr("ravine.tree.grow.LOCAL_CELLS", 0)
    monkeypatch.setattr("ravine.tree.grow.WATCH_SECONDS", 0.0)
    model.fit(rows)
    assert sum(progress.split is not None for progress in received) == 2 < len(received)
    read = [progress.rows_read for progress in received]
    assert read == sorted(read)
    assert received[-1].n_passes == received[-1].rows_read / len(X) <= model.n_passes_
    assert all(np.isnan(progress.seconds_left) for progress in received if progress.n_leaves == 1)


def test_the_time_left_of_the_first_split_is_that_of_the_other_levels():
    received = []
    MinimumDensity(3, verbose=received.append).fit(X)
    first = received[0]
    assert first.seconds_left == pytest.approx(first.seconds * (np.log2(3) - 1))


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_rows_that_are_read_after_a_fit_call_nobody(error, monkeypatch):
    monkeypatch.setattr("ravine.tree.grow.LOCAL_CELLS", 0)
    monkeypatch.setattr("ravine.tree.grow.WATCH_SECONDS", 0.0)
    received, rows = [], MemoryRows(X)
    monkeypatch.setattr(MinimumDensity, "_blocks", lambda *_: rows)

    def callback(progress):
        received.append(progress)
        if error is not None and progress.split is not None:
            raise error

    with contextlib.nullcontext() if error is None else pytest.raises(error):
        MinimumDensity(2, verbose=callback).fit(X)
    n = len(received)
    rows.map(lambda block: block.weights)
    assert len(received) == n > 1
