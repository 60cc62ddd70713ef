"""Whatever goes in or out is in the user's units: rows times s change every length by s, and no partition."""

from functools import partial

import numpy as np
import pytest
from benchmarks.robustness import ESTIMATORS
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_blobs
from sklearn.svm import SVC

import ravine
from ravine.optimize.descent import CONVERGED
from tests.changed_method import with_method

IRIS = load_iris().data
LENGTHS = {"bandwidth", "sigma", "margin"}

WITH_KERNELS = ("rbf", "diffusion", "connectivity, diffusion")
WAYS = {name: way for name, way in ESTIMATORS.items() if name not in (*WITH_KERNELS, "MinimumDensity auto")}
WAYS["valley"] = partial(ravine.PrincipalDirection, threshold="density")


def fitted(make, scale, **parameters):
    """Fit iris in another unit; C, where it is given, means the same in all of them."""
    if "C" in parameters:
        parameters = parameters | {"C": parameters["C"] / scale**2}
    return make(3, standardize=False, **parameters).fit(IRIS * scale)


def of_value(split, scale):
    """Return what a split's own figure is multiplied by where rows are multiplied by `scale`."""
    if "at the mean" in split.method:
        return scale  # minus the root of the scatter
    return 1.0 / scale if "density" in split.method else 1.0


def check_units(one, other, scale):
    """Compare two models, of rows and of rows times `scale`, in every number that they report."""
    assert (one.labels_ == other.labels_).all()
    rows, moved = IRIS[::7], IRIS[::7] * scale
    # a pursuit that stops at its tolerance amplifies rounding to some 1e-4; a wrong unit shows at once
    near = partial(np.testing.assert_allclose, rtol=5e-3, atol=1e-5)
    near(other.predict_proba(moved), one.predict_proba(rows))
    near(other.transform(moved), scale * one.transform(rows), atol=1e-4 * scale)
    near(other.decision_function(moved), scale * one.decision_function(rows), atol=1e-4 * scale)
    for a, b in zip(one.tree_.splits, other.tree_.splits, strict=True):
        assert (a is None) == (b is None)
        if a is None:
            continue
        near(b.boundary.normal, a.boundary.normal, atol=1e-3)
        near(b.boundary.threshold, scale * a.boundary.threshold, atol=1e-4 * scale)
        near(b.direction, a.direction, atol=1e-3)
        near(b.value, of_value(a, scale) * a.value)
        near(b.quality, a.quality)
        assert a.facts.keys() == b.facts.keys()
        for name, fact in a.facts.items():
            factor = scale if name in LENGTHS else scale**-2 if name == "C" else 1.0
            near(b.facts[name], factor * fact, err_msg=name)


@pytest.mark.parametrize("scale", [1.3, 2.9, 1e-3, 1e7])
@pytest.mark.parametrize("name", WAYS)
def test_every_reported_number_follows_the_unit_of_the_rows(name, scale):
    check_units(fitted(WAYS[name], 1.0), fitted(WAYS[name], scale), scale)


@pytest.mark.parametrize("scale", [1.3, 1.6, 3.0, 10.0])
def test_a_given_C_means_the_same_in_every_unit(scale):
    check_units(fitted(ravine.MaximumMargin, 1.0, C=1.0), fitted(ravine.MaximumMargin, scale, C=1.0), scale)


@given(st.floats(1e-4, 1e4))
@settings(max_examples=25, deadline=None)
def test_memberships_do_not_depend_on_the_unit(scale):
    near = fitted(ravine.MinimumDensity, scale).predict_proba(IRIS * scale)
    np.testing.assert_allclose(near, fitted(ravine.MinimumDensity, 1.0).predict_proba(IRIS), atol=1e-6)


def test_distances_and_bandwidths_are_those_of_the_rows_themselves():
    model = ravine.MinimumDensity(2, standardize=False).fit(IRIS)
    split = model.tree_.splits[0]
    assert np.linalg.norm(split.boundary.normal) == pytest.approx(1.0)
    widest = np.sqrt(np.linalg.eigvalsh(np.cov(IRIS.T, bias=True))[-1])
    assert split.facts["bandwidth"] == pytest.approx(0.9 * widest * len(IRIS) ** -0.2)
    points = model.transform(IRIS)[:, 0]
    h = split.facts["bandwidth"]
    density = np.exp(-0.5 * (points / h) ** 2).mean() / (h * np.sqrt(2 * np.pi))
    assert split.value == pytest.approx(density, rel=1e-3)


def test_a_linear_kernel_is_in_the_unit_of_the_rows():
    plain = ravine.MinimumDensity(2, standardize=False).fit(IRIS).tree_.splits[0]
    mapped = ravine.MinimumDensity(2, standardize=False, kernel="linear").fit(IRIS).tree_.splits[0]
    assert mapped.value == pytest.approx(plain.value, rel=1e-2)
    assert mapped.facts["bandwidth"] == pytest.approx(plain.facts["bandwidth"])


@pytest.mark.parametrize("scale", [1.0, 2.1])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_margin_is_that_of_a_hard_margin_machine(scale, standardize):
    X, y = make_blobs(200, 3, centers=[[0, 0, 0], [6, 6, 6]], random_state=0)
    X = X * scale
    projected = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    machine = SVC(kernel="linear", C=1e6).fit(projected, y)
    hard = 1.0 / np.linalg.norm(machine.coef_)
    C = 1e4 if standardize else 1e4 / scale**2
    margin = with_method(
        ravine.MaximumMargin(2, standardize=standardize, C=C, balance=0.9), epsilon=1e-5
    ).fit(X)
    assert margin.tree_.splits[0].facts["margin"] == pytest.approx(hard, rel=0.02)
    assert np.abs(margin.decision_function(X)).min() == pytest.approx(hard, rel=0.02)


@pytest.mark.parametrize("name", ["MinimumDensity", "SpectralConnectivity", "MaximumMargin", "mpm"])
def test_status_claims_no_gradient_that_is_not_there(name):
    for standardize in (True, False):
        model = WAYS[name](3, standardize=standardize).fit(IRIS)
        for split in model.tree_.splits:
            if split is not None and split.status == CONVERGED:
                assert not split.gradient_norm > 0.02


def test_the_eigenvalue_is_reported_and_not_theta():
    rows = IRIS[:, 2:]
    model = ravine.SpectralConnectivity(2, standardize=False).fit(rows)
    split = model.tree_.splits[0]
    line = (rows - rows.mean(axis=0)) @ split.boundary.normal
    sigma, edge = split.facts["sigma"], split.facts["beta"] * line.std()
    excess = np.maximum(np.abs(line) - edge, 0.0) / sigma
    delta, floor = 0.01, (0.01 * 0.99) ** 100
    drawn = edge + sigma * delta * ((excess + floor) ** (1 - delta) - floor ** (1 - delta))
    line = np.where(excess > 0, np.sign(line) * drawn, line)
    K = np.exp(-np.abs(line[:, None] - line[None, :]) / sigma)
    degree = K.sum(axis=1)
    L = (np.diag(degree) - K) / np.sqrt(np.outer(degree, degree))
    assert split.value == pytest.approx(np.linalg.eigvalsh(L)[1], rel=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_follows_the_unit_of_the_rows(n_classes):
    y = load_iris().target
    keep, scale = y < n_classes, 1.7
    rows = IRIS[keep]
    labels = np.where(np.arange(len(rows)) % 5 == 0, y[keep], -1)
    one, other = (
        ravine.MinimumDensityClassifier(standardize=False).fit(rows * s, labels) for s in (1.0, scale)
    )
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows * scale))
    near = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-7)
    near(other.predict_proba(rows * scale), one.predict_proba(rows))
    factor = scale if n_classes == 2 else 1.0  # distances, or votes
    near(other.decision_function(rows * scale), factor * one.decision_function(rows))
