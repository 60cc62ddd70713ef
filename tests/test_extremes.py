"""Extreme numbers end in an answer or in one sentence: no hang, no crash, no memory beyond the rows' own.

What might hang or crash runs in a process of its own, and has a time to end in.
"""

import subprocess
import sys

import numpy as np
import pytest

SECONDS = 100  # a compiler's start on a busy machine; what is tested takes a few

BLOBS = """
import sys, warnings
import numpy as np
from ravine import *
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 5])
sizes = lambda model: sorted(np.bincount(model.labels_).tolist())
"""


def run(code, seconds=SECONDS):
    """Run code in a Python of its own; return what it printed, or fail where it does not end by itself."""
    done = subprocess.run(
        [sys.executable, "-c", BLOBS + code], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")[:-1]


def test_a_bandwidth_below_rounding_ends():
    code = """
for factor in (1e-3, 1e-9, 5e-324):
    print(sizes(MinimumDensity(2, bandwidth_factor=factor).fit(X)))
    print(sizes(PrincipalDirection(2, cut="density", bandwidth_factor=factor).fit(X)))
    y = np.where(np.arange(120) % 60 < 5, np.arange(120) // 60, -1)
    print(np.bincount(MinimumDensityClassifier(bandwidth_factor=factor).fit(X, y).predict(X)).tolist())
"""
    assert run(code) == ["[60, 60]"] * 9


def test_intervals_and_scales_beyond_all_measure_end():
    code = """
for alpha in (1e3, 1e12, 1e300):
    MinimumDensity(2, alpha_max=alpha).fit(X)
for factor in (1e-100, 1e100):
    for projection in ("univariate", "orthogonal", "correlated"):
        SpectralConnectivity(2, projection=projection, sigma_factor=factor).fit(X)
print("done")
"""
    assert run(code) == ["done"]


def test_the_time_of_a_score_does_not_grow_with_the_shift_of_the_rows():
    code = """
model = MinimumDensity(2).fit(X)
for shift in (0, 1e3, 1e9, 1e15, 1e300):
    print(round(model.score(X + shift), 6) if shift else model.score(X) > 0.5)
"""
    assert run(code) == ["True", "0.0", "0.0", "0.0", "0.0"]


def test_a_threshold_far_from_all_rows_has_no_depth():
    code = """
from dataclasses import replace
model = MinimumDensity(2).fit(X)
split = model.tree_.splits[0]
far = replace(split, boundary=replace(split.boundary, cut=2.0**31))
model.tree_ = replace(model.tree_, splits=(far, None, None))
print(model.score(X))
"""
    assert run(code) == ["0.0"]


def test_scales_that_cannot_be_squared_are_refused():
    from ravine import SpectralConnectivity

    with pytest.raises(ValueError, match="sigma_factor has to be a number at least 1e-100 and at most 1e"):
        SpectralConnectivity(2, sigma_factor=1e-200).fit(np.eye(4))
