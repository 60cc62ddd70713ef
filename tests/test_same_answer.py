"""The same clusters of a mirror image, of permuted columns and of rows with noise in their last digits.

Rounding differs between processors, and a perturbation of 1e-12 is larger than any such difference: where
that changes nothing, another processor does not either. `make test-cpus` emulates some.
"""

import numpy as np
import pytest
from benchmarks.robustness import ESTIMATORS, VARIANTS
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import ravine

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROWS = {
    "iris": (load_iris().data, 3),
    "wine": (load_wine().data, 3),
    "digits": (load_digits().data[:200, ::2], 3),
    "whole numbers": (np.round(load_breast_cancer().data[:, :6]), 2),
    "two columns": (np.round(load_wine().data[:, [0, 6]], 1), 3),
    "five groups and a far row": (
        np.concatenate(
            [
                np.random.default_rng(0).normal(0, 0.4, (200, 3)) + np.repeat(np.eye(5, 3) * 5, 40, axis=0),
                [[0.0, 60.0, 0.0]],
            ]
        ),
        4,
    ),
}


def ways_and_rows():
    """Every way with two of the tables, and every table with a third of the ways; the others are slow."""
    for i, way in enumerate(ESTIMATORS):
        for j, rows in enumerate(ROWS):
            is_slow = (j - i) % len(ROWS) not in (0, 1)
            yield pytest.param(way, rows, marks=pytest.mark.slow if is_slow else ())


@pytest.mark.parametrize(("way", "rows"), list(ways_and_rows()))
def test_mirrored_permuted_and_perturbed_rows_have_the_same_clusters(way, rows):
    X, k = ROWS[rows]
    usual = ESTIMATORS[way](k).fit(X).labels_
    for name, change in VARIANTS.items():
        labels = ESTIMATORS[way](k).fit(change(X)).labels_
        assert adjusted_rand_score(usual, labels) >= 0.99, name


IN_ANY_ORDER = {
    **ESTIMATORS,
    "AutoCluster": ravine.AutoCluster,
    "connectivity auto": lambda k: ravine.SpectralConnectivity("auto"),
    "orthogonal auto": lambda k: ravine.SpectralConnectivity("auto", n_directions=2),
}


def check_order(way, X, k, seeds):
    usual = IN_ANY_ORDER[way](k).fit(X).labels_
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(X))
        assert adjusted_rand_score(usual[order], IN_ANY_ORDER[way](k).fit(X[order]).labels_) >= 0.99, seed


@pytest.mark.parametrize("way", ["MinimumDensity", "diffusion", "connectivity auto"])
def test_the_order_of_the_rows_does_not_matter(way):
    check_order(way, *ROWS["wine"], [3])


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_wine, load_iris, load_breast_cancer])
@pytest.mark.parametrize("way", IN_ANY_ORDER)
def test_eight_orders_of_the_rows_do_not_matter(way, load):
    check_order(way, load().data, 3, range(8))


@pytest.mark.parametrize("rows", ROWS)
def test_orthogonal_directions_are_orthogonal_at_every_split(rows):
    X, k = ROWS[rows]
    model = ravine.SpectralConnectivity(k, n_directions=2).fit(X)
    near = np.delete(X, model.outliers_, axis=0)
    deviation = np.where(near.std(axis=0) > 0, near.std(axis=0), 1.0)
    assert model.n_clusters_ > 1
    for split in model.tree_.splits:
        if split is not None:
            directions = split.boundary.directions * deviation
            cosines = directions @ directions.T
            np.testing.assert_allclose(cosines, np.eye(len(directions)), atol=1e-6)
