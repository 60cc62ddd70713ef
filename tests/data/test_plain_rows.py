"""Rows routed by numpy alone have the bits of the compiled loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import ravine
from ravine.data import kernels
from ravine.data.plain_rows import PlainRows, centered_dots
from ravine.estimators.stored_model import read_model

DIGITS = load_digits().data[:600] + np.random.default_rng(0).normal(0, 1e-3, (600, 64))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 70), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-150, 1e150]))
def test_projections_have_the_same_bits(d, seed, scale):
    rng = np.random.default_rng(seed)
    X, pivot, direction = (scale * rng.standard_normal(shape) for shape in ((20, d), d, d))
    compiled = np.empty((1, 20))
    kernels.project_one(X, pivot, direction[None, :], compiled)
    np.testing.assert_array_equal(centered_dots(X, pivot, direction), compiled[0])


@pytest.mark.parametrize(
    "model",
    [
        ravine.MinimumDensity(6),
        ravine.SpectralConnectivity(3, projection="orthogonal"),
        ravine.MinimumDensity(1),
    ],
    ids=["hyperplanes", "nearest centers", "one cluster"],
)
def test_labels_and_memberships_have_the_bits_of_the_estimator(model, tmp_path):
    model.fit(DIGITS)
    ravine.save(model, tmp_path / "m.ravine")
    stored = read_model(tmp_path / "m.ravine")
    np.testing.assert_array_equal(stored.predict(DIGITS), model.predict(DIGITS))
    shares = model.predict_proba(DIGITS) if model.n_clusters_ > 1 else np.ones((len(DIGITS), 1))
    np.testing.assert_array_equal(stored.predict_proba(DIGITS), shares)
    assert stored.tree == model.tree_
    with pytest.raises(ravine.InvalidInputError, match="NaN or infinity"):
        stored.predict(np.where(DIGITS > 15, np.nan, DIGITS))


def test_rows_on_the_boundary_take_the_same_side():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (500, 3)).astype(float)
    tree = ravine.PrincipalDirection(5, standardize=False).fit(X).tree_
    np.testing.assert_array_equal(tree.route(PlainRows(X)), tree.predict(X))


def test_a_classifier_and_a_kernel_can_be_read(tmp_path):
    y = np.where(np.arange(600) % 3, -1, load_digits().target[:600] % 2)
    ravine.save(ravine.MinimumDensityClassifier().fit(DIGITS, y), tmp_path / "c.ravine")
    assert read_model(tmp_path / "c.ravine").tree is None
    ravine.save(ravine.MinimumDensity(2, kernel="rbf").fit(DIGITS[:200]), tmp_path / "k.ravine")
    assert read_model(tmp_path / "k.ravine").has_kernel
