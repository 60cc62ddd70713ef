"""Extreme numbers end in an answer or in one sentence: no hang, no crash, no memory beyond the rows' own.

What might hang or crash runs in a process of its own, and has a time to end in.
"""

import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import ravine
from ravine import MinimumDensity
from ravine._validate import check_weights

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
    print(sizes(PrincipalDirection(2, threshold="density", bandwidth_factor=factor).fit(X)))
    y = np.where(np.arange(120) % 60 < 5, np.arange(120) // 60, -1)
    print(np.bincount(MinimumDensityClassifier(bandwidth_factor=factor).fit(X, y).predict(X)).tolist())
"""
    assert run(code) == ["[60, 60]"] * 9


def test_intervals_and_scales_beyond_all_measure_end():
    code = """
for alpha in (1e3, 1e12, 1e300):
    MinimumDensity(2, alpha_max=alpha).fit(X)
for factor in (1e-100, 1e100):
    for n_directions in (1, 2):
        SpectralConnectivity(2, n_directions=n_directions, sigma_factor=factor).fit(X)
print("done")
"""
    assert run(code) == ["done"]


def test_scales_that_cannot_be_squared_are_refused():
    from ravine import SpectralConnectivity

    with pytest.raises(ValueError, match=r"sigma_factor .*at least 1e-100"):
        SpectralConnectivity(2, sigma_factor=1e-200).fit(np.eye(4))


DAMAGE = """
from scipy import sparse
from ravine.metrics import separation_probability
X = sparse.random_array((50, 8), density=0.5, format="csr", random_state=0)
y = np.where(np.arange(50) < 40, -1, np.arange(50) % 2)
models = [MinimumDensity(2), SpectralConnectivity(2, n_directions=2), MaximumMargin(2),
          PrincipalDirection(2), MaximinSeparation(2), MinimumDensity(2, kernel="rbf")]
fitted = [model.fit(X) for model in models]
classifier = MinimumDensityClassifier().fit(X, y)
tree = fitted[0].tree_

def far_columns(A): A.indices[7] = 10**6
def negative_columns(A): A.indices[7] = -3
def falling_starts(A): A.indptr[5] = 10**6
def late_start(A): A.indptr[0] = 3
def long_starts(A): A.indptr[-1] = 10**6
def few_values(A): A.data = A.data[:9]
def few_starts(A): A.indptr = A.indptr[:9]

def attempts(A):
    for model in fitted:
        yield lambda model=model: type(model)(2).fit(A)
        for name in ("predict", "transform", "decision_function", "predict_proba"):
            yield lambda model=model, name=name: getattr(model, name)(A)
    yield lambda: MinimumDensityClassifier().fit(A, y)
    yield lambda: classifier.predict(A)
    for name in ("predict", "predict_proba", "decision_path", "exemplars"):
        yield lambda name=name: getattr(tree, name)(A)
    yield lambda: tree.resplit(0, MinimumDensity(2), A)
    yield lambda: separation_probability(A, np.arange(50) % 2)
    yield lambda: explain(fitted[0], A)

damages = far_columns, negative_columns, falling_starts, late_start, long_starts, few_values, few_starts
for damage in damages:
    for make in (sparse.csr_array, sparse.csr_matrix):
        A = make(X).copy()
        damage(A)
        for attempt in attempts(A):
            try:
                attempt()
                print("taken", damage)
            except InvalidInputError as error:
                assert "damaged CSR" in str(error) and "\\n" not in str(error), error
for name, part in (("csc", "indices"), ("bsr", "indices"), ("coo", "row"), ("coo", "col")):
    A = X.asformat(name)
    getattr(A, part)[3] = 10**6
    try:
        MinimumDensity(2).fit(A)
        print("taken", name)
    except InvalidInputError as error:
        assert f"damaged {name.upper()}" in str(error), error
A = X.asformat("lil")
A.rows[3] = [0, 10**6]
A.data[3] = [1.0, 1.0]
try:
    MinimumDensity(2).fit(A)
    print("taken lil")
except InvalidInputError as error:
    print(error)
"""


def test_damaged_sparse_matrices_are_refused_at_every_door():
    (line,) = run(DAMAGE)
    assert line.startswith("X is a damaged LIL matrix (")
    assert line.endswith("; build it again from its data")


WEIGHTS = """
from functools import partial
from tests.every_estimator import ESTIMATORS
one, n = np.ones(120), np.arange(120)
plain = {"ones": one, "zeros among": (n % 3 > 0) * 1.0, "integers": n % 4, "all 1e30": one * 1e30}
alone = {"1 and 1e300": np.where(n == 7, 1e300, 1.0), "1e-300 and 1": np.where(n == 7, 1.0, 1e-300)}
other = {"one 1e12": np.where(n == 7, 1e12, 1.0), "all 1e308": one * 1e308,
         "half 1e300": np.where(n % 2, 1e300, 1.0)}
few = {"all 1e-30": one * 1e-30, "subnormal": one * 5e-324}
warnings.simplefilter("ignore")
warnings.simplefilter("error", RuntimeWarning)
y = np.where(n % 60 < 5, n // 60, -1)
solvers = {solver: partial(MaximinSeparation, solver=solver) for solver in ("gep", "eig")}
for name, estimator in {**ESTIMATORS, **solvers}.items():
    for case, weights in {**plain, **alone, **other, **few}.items():
        model = estimator(2).fit(X, sample_weight=weights)
        if case in alone or case in few:
            assert sizes(model) == [120], (name, case, sizes(model))
        if case in plain and case != "all 1e30":
            assert sizes(model) == [60, 60], (name, case, sizes(model))
for case, weights in {**plain, **other, **few}.items():
    MinimumDensityClassifier().fit(X, y, sample_weight=weights)
print("done")
"""


def test_extreme_weights_end_in_every_estimator():
    assert run(WEIGHTS, 300) == ["done"]


def test_ordinary_weights_are_taken_as_they_are():
    weights = np.random.default_rng(0).uniform(0, 1e6, 50)
    weights[3] = 0.0
    assert check_weights(weights, 50) is weights


@pytest.mark.parametrize("power", [-1074, -900, 900, 1023])
def test_weights_beyond_measure_are_scaled_by_a_power_of_two(power):
    weights = np.ldexp(np.array([1.0, 0.5 if power > 0 else 1.0, 0.0]), power)
    scaled = check_weights(weights, 3)
    assert scaled[0] == 2.0 ** (199 if power > 0 else -201)
    np.testing.assert_array_equal(scaled / scaled[0], weights / weights[0])


def test_weights_lost_beside_the_largest_count_for_nothing():
    with pytest.warns(UserWarning, match=r"2 rows are ignored.*1e\+20"):
        found = check_weights(np.array([1e20, 1.0, 1e5, 1e-300, 0.0]), 5)
    np.testing.assert_array_equal(found, [1e20, 0.0, 1e5, 0.0, 0.0])
    assert check_weights(np.array([1e15, 1.0]), 2).tolist() == [1e15, 1.0]


STOPPABLE = """
import signal
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: sys.exit(3))
model = MinimumDensity(2).fit(X)
print("ready", flush=True)
while True:
    MinimumDensity(2, bandwidth_factor=1e-9).fit(X)
    MinimumDensity(2).fit(X, sample_weight=np.where(np.arange(120) == 7, 1e12, 1.0))
    model.predict(X + 1e12)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_at_any_moment_ends_a_fit_by_the_exception_of_its_handler():
    """Compiled code neither drops the exception nor raises another one in its place."""
    X = np.concatenate([np.random.default_rng(0).normal(place, 1, (60, 3)) for place in (0, 8)])
    model = MinimumDensity(2, bandwidth_factor=1e-9).fit(X)

    def fit_until(delay):
        signal.setitimer(signal.ITIMER_REAL, delay)
        end = time.monotonic() + 20.0
        while time.monotonic() < end:  # a lost exception fails the test, and does not hang it
            model.fit(X)
            model.predict(X + 1e12)

    before = signal.signal(signal.SIGALRM, lambda *_: sys.exit(3))
    try:
        for delay in np.linspace(0.0005, 0.005, 60):
            with pytest.raises(SystemExit):
                fit_until(delay)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_fit(number):
    process = subprocess.Popen([sys.executable, "-c", BLOBS + STOPPABLE], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.send_signal(number)
        assert process.wait(20.0) == 3
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    "name", ["MinimumDensity", "SpectralConnectivity", "MaximumMargin", "MaximinSeparation"]
)
@pytest.mark.parametrize("n", [2, 4, 40])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_few_rows_of_tiny_and_huge_values_are_divided(name, n, scale):
    X = scale * np.random.default_rng(n).normal(size=(n, 3))
    X[:, 2] = scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert getattr(ravine, name)(2).fit(X).n_clusters_ <= 2


@pytest.mark.parametrize(
    "model", [ravine.MinimumDensity(2), ravine.MaximumMargin(), ravine.MinimumDensity(2, kernel="rbf")]
)
def test_nan_in_a_row_of_weight_0_is_refused_by_fit_as_by_predict(model):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 5])
    X[3, 1] = np.nan
    weights = np.ones(120)
    weights[3] = 0.0
    with pytest.raises(ValueError, match="NaN or infinity in column 1"):
        model.fit(X, sample_weight=weights)
