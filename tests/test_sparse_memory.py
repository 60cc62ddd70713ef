"""Sparse rows cost their stored entries: a fit of very wide ones stays far below their size with zeros."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import warnings
from pathlib import Path
import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
import ravine


def peak():  # MB that this process held; ru_maxrss would include the process that started it
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d, stored = 3000, 50_000, 20
y = np.arange(n) % 2
columns = rng.integers(0, d // 2, (n, stored)) + (d // 2) * ((rng.random((n, stored)) < 0.1) != y[:, None])
starts = np.arange(0, n * stored + 1, stored)
X = sparse.csr_matrix((np.ones(n * stored), columns.ravel(), starts), shape=(n, d))
X.sum_duplicates()
ravine.SpectralConnectivity(2).fit(rng.standard_normal((60, 3)))  # imports and compiled code
before = peak()
model = ravine.SpectralConnectivity(2, n_directions=N_DIRECTIONS, standardize=False).fit(X)
assert adjusted_rand_score(y, model.labels_) > 0.7
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("n_directions", [1, 2])
def test_very_wide_sparse_rows_are_never_written_out(n_directions):
    script = SCRIPT.replace("N_DIRECTIONS", repr(n_directions))
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(child.stdout) < 250  # MB; with zeros, the rows have 1200
