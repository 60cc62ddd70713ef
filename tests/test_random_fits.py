"""Random fits over estimators, kernels, dtypes, weights and scales end without an error or a warning.

`python -m tests.test_random_fits 0 2000` runs some seeds and prints those that fail or take long.
"""

import sys
import time
import traceback
import warnings

import numpy as np
import pytest
from scipy import sparse

import ravine

SECONDS = 20.0  # for a fit of at most 300 rows, on a slow machine

WAYS = [
    lambda k: ravine.MinimumDensity(k),
    lambda k: ravine.MinimumDensity(k, standardize=False),
    lambda k: ravine.MinimumDensity(k, outliers="label"),
    lambda k: ravine.MinimumDensity(k, kernel="rbf"),
    lambda k: ravine.MinimumDensity(k, kernel="diffusion"),
    lambda k: ravine.SpectralConnectivity(k),
    lambda k: ravine.SpectralConnectivity(k, n_directions=2),
    lambda k: ravine.SpectralConnectivity(k, kernel="laplacian"),
    lambda k: ravine.MaximumMargin(k),
    lambda k: ravine.MaximumMargin(k, kernel="rbf"),
    lambda k: ravine.MaximinSeparation(k),
    lambda k: ravine.MaximinSeparation(k, solver="gep"),
    lambda k: ravine.MaximinSeparation(k, solver="eig"),
    lambda k: ravine.PrincipalDirection(k),
    lambda k: ravine.PrincipalDirection(k, threshold="density"),
    lambda k: ravine.AutoCluster(k),
]


def table(rng):
    """Return rows: blobs, tails, counts, copies or constant columns, at some scale and of some dtype."""
    n, d = int(rng.integers(2, 301)), int(rng.integers(1, 9))
    kind = rng.integers(6)
    X = rng.standard_normal((n, d))
    if kind == 1:
        X += 8.0 * rng.integers(0, 3, (n, 1))
    elif kind == 2:
        X = rng.standard_t(1.5, (n, d))
    elif kind == 3:
        X = rng.poisson(1.0, (n, d)).astype(float)
    elif kind == 4:
        X = X[rng.integers(0, max(2, n // 10), n)]
    elif kind == 5:
        X[:, 0] = 3.0
    scale = rng.choice([1.0, 1.0, 1e-300, 1e-150, 1e-12, 1e9, 1e100, 1e140])
    if scale == 1.0 and rng.random() < 0.5:
        X = X.astype(rng.choice(["float32", "int64"]))
        return sparse.csr_array(X) if rng.random() < 0.3 else X
    return X * scale + (1e9 * scale if rng.random() < 0.2 else 0.0)


def weights_for(n, k, rng):
    """Return weights for n rows, or None; some are 0, at least two are not.

    Weights of a million are a million copies, which "auto" rightly takes for clusters, each of them.
    """
    kind = rng.integers(5 if k != "auto" else 4)
    if kind < 2:
        return None
    weights = rng.integers(1, 4, n).astype(float)
    if kind == 3:
        weights[2:] *= rng.random(n - 2) < 0.8
    elif kind == 4:
        weights *= rng.choice([1e-100, 1e-3, 1e6, 1e100])
    return weights


def try_fit(seed):
    """Fit one estimator to one table, predict, and check the shapes; return the seconds and the model."""
    rng = np.random.default_rng(seed)
    X = table(rng)
    k = ["auto", 2, 3, 5][rng.integers(4)]
    weights = weights_for(X.shape[0], k, rng)
    model = WAYS[rng.integers(len(WAYS))](k)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X, sample_weight=weights)
        except ravine.InvalidInputError:  # a sentence: such as fewer rows than clusters
            return time.perf_counter() - started, model
        assert len(model.labels_) == X.shape[0]
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        str(model.tree_)
    return time.perf_counter() - started, model


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_fits_end_without_an_error_or_a_warning(first):
    for seed in range(first, first + 10):
        seconds, model = try_fit(seed)
        assert seconds < SECONDS, (seed, model)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_two_thousand_random_fits_end_without_an_error_or_a_warning(first):
    for seed in range(first, first + 100):
        seconds, model = try_fit(seed)
        assert seconds < SECONDS, (seed, model)


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            seconds, model = try_fit(seed)
            if seconds > 3.0:
                print(seed, f"{seconds:.1f} s", model, flush=True)
        except Exception:
            print(seed, traceback.format_exc(limit=-3), flush=True)
