"""Other processors find the same clusters, and their versions of the hottest loops have the same bits."""

import ctypes
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.robustness import ESTIMATORS

from ravine.data import loops
from ravine.index.density import MinimumDensityIndex
from ravine.index.line import evaluate
from ravine.optimize.descent import Descent
from ravine.optimize.memory_loops import Projector, StandardizedRows
from tests.processors import PROCESSORS, can_run, environment
from tests.test_same_answer import ROWS

ROOT = Path(__file__).resolve().parent.parent
SETS = ("iris", "five groups and a far row")


# --- the same clusters --------------------------------------------------------------------------------------


def partitions():
    """Return the labels of every way to cluster, for the rows that show a difference soonest."""
    return {
        f"{way}, {rows}": ESTIMATORS[way](ROWS[rows][1]).fit(ROWS[rows][0]).labels_.tolist()
        for rows in SETS
        for way in ESTIMATORS
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name",
    [
        # the oldest one here, the others in `make test-all`
        pytest.param(name, marks=pytest.mark.slow if k else ())
        for k, name in enumerate(name for name in PROCESSORS if can_run(name))
    ],
)
def test_another_processor_finds_the_same_clusters(name):
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.test_processors"],
        env=environment(name),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(child.stdout) == partitions()


# --- the same bits ------------------------------------------------------------------------------------------

CPUINFO = Path("/proc/cpuinfo")
HERE = set(CPUINFO.read_text().split()) if CPUINFO.exists() else set()
ONE_VERSION = "#undef __GLIBC__"  # which the versions for wider vectors need
VERSIONS = {
    "as built": ([], ""),
    "baseline": ([], ONE_VERSION),
    "avx2": (["-mavx2", "-mfma"], ONE_VERSION),
    "avx512f": (["-mavx512f", "-mfma"], ONE_VERSION),
}


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """The functions of wide.h by the flags of setup.py, for each processor that this one can stand for."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder, libraries = tmp_path_factory.mktemp("wide"), {}
    (line,) = [line for line in (ROOT / "setup.py").read_text().splitlines() if "-O3" in line]
    flags = ["-shared", "-fPIC", f"-I{ROOT}/src/ravine/data", *re.findall(r'"(-[^"]+)"', line)]
    for name, (options, first) in VERSIONS.items():
        if {option.removeprefix("-m") for option in options} <= HERE:
            source, library = folder / f"{name}.c", folder / f"{name}.so"
            source.write_text(f'#include <stdlib.h>\n{first}\n#define static\n#include "wide.h"\n')
            subprocess.run([compiler, *flags, *options, source, "-o", library], check=True)
            libraries[name] = ctypes.CDLL(str(library))
    return libraries


def call(library, name, *arguments):
    """Call a function with arrays, lengths and numbers."""
    kinds = {
        np.ndarray: lambda a: a.ctypes.data_as(ctypes.c_void_p),
        int: ctypes.c_ssize_t,
        float: ctypes.c_double,
    }
    getattr(library, name)(*(kinds[type(argument)](argument) for argument in arguments))


def same_bits(versions, name, *arguments, out):
    """Return what a function adds to `out`, which is the same in every version."""
    found = {}
    for version, library in versions.items():
        found[version] = [array.copy() for array in out]
        call(library, name, *arguments, *found[version])
    first, *others = found.values()
    for other in others:
        for one, two in zip(first, other, strict=True):
            np.testing.assert_array_equal(one.view(np.int64), two.view(np.int64))
    return first


@pytest.fixture(params=[(1, 1), (7, 3), (300, 21), (1026, 50)], ids=str)
def rows(request):
    """Rows, with a pivot, a direction and weights of which some are 0."""
    n, d = request.param
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    return X, rng.standard_normal(d), rng.standard_normal(d), rng.integers(0, 3, n) * rng.uniform(0, 1, n)


def test_loops_over_blocks_have_the_same_bits_on_every_processor(versions, rows):
    X, pivot, direction, weights = rows
    n, d = X.shape
    projected = np.empty((1, n))
    loops.project(X, pivot, direction[None], projected)
    (out,) = same_bits(versions, "wide_centered_dots", X, pivot, direction, n, d, out=[np.empty(n)])
    np.testing.assert_array_equal(projected[0], out)

    groups, sums = np.arange(n) % 3, np.zeros((3, d))
    loops.group_sums(X, pivot, weights, groups, sums)
    (out,) = same_bits(versions, "wide_group_sums", X, pivot, weights, groups, n, d, out=[np.zeros((3, d))])
    np.testing.assert_array_equal(sums, out)

    scale, totals, low, high = np.exp(direction), np.zeros((2, d)), np.full(d, np.inf), np.full(d, -np.inf)
    start = [*totals.copy(), low.copy(), high.copy(), np.zeros(d)]
    loops.moments(X, pivot, scale, weights, totals, low, high)
    out = same_bits(versions, "wide_moments", X, pivot, scale, weights, n, d, out=start)
    np.testing.assert_array_equal([*totals, low, high], out[:4])


def test_sums_of_terms_have_the_same_bits_on_every_processor(versions):
    e, r = np.random.default_rng(0).uniform(0.5, 1.0, (2, 4))
    same_bits(versions, "wide_add_terms", e, r, 0.97, 61, out=[np.ones(61)])


def test_projections_and_gradients_in_memory_have_the_same_bits_on_every_processor(versions, rows):
    X, _, v, _ = rows
    n, d = X.shape
    v /= np.linalg.norm(v)
    by_column = np.ascontiguousarray(X.T)
    (points,) = same_bits(versions, "wide_project", by_column, v, n, d, out=[np.empty(n)])
    same_bits(versions, "wide_weighted_sum", X, points, n, d, out=[np.zeros(d)])

    # the compiled descent, with a bin for every row
    width, n_bins = np.ptp(points) / 2**20 + 1e-9, 2**20 + 1
    projector = Projector(StandardizedRows(np.ones(n), X, by_column), points.min(), width, n_bins, float(n))
    descent, index = Descent(v, tol=0.0, progress=0.0, max_iter=0), MinimumDensityIndex(0.3, 0.5)
    projector.descend(index.line_function, index.parameters, descent)
    _, centers, mass, std = projector.profile()
    order = np.argsort(points, kind="stable")
    np.testing.assert_array_equal(centers, points[order])
    slope = np.empty(n)
    _, _, d_std, _ = evaluate(index.line_function, centers, mass, float(n), std, index.parameters, slope)
    factors = np.empty(n)
    factors[order] = slope + d_std * centers / (n * std) if std > 0.0 else slope
    (gradient,) = same_bits(versions, "wide_weighted_sum", X, factors, n, d, out=[np.zeros(d)])
    np.testing.assert_array_equal(descent.end_gradient, gradient - np.cumsum(gradient * v)[-1] * v)


if __name__ == "__main__":
    print(json.dumps(partitions()))
