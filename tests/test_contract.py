"""scikit-learn's own checks on every estimator."""

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator_sparse_array,
    check_estimator_sparse_matrix,
    parametrize_with_checks,
)

from ravine import AutoCluster, MaximinSeparation, MaximumMargin, MinimumDensity, PrincipalDirection
from tests.every_estimator import ESTIMATORS

MODELS = [*(make(2) for make in ESTIMATORS.values()), MinimumDensity(), AutoCluster(2)]


@parametrize_with_checks(MODELS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [PrincipalDirection, MaximumMargin, MaximinSeparation, AutoCluster])
def test_checks_of_sparse_rows_pass_with_every_default_where_one_cluster_is_found(make):
    """scikit-learn expects memberships in two clusters, or none."""
    check_estimator_sparse_array(make.__name__, make())
    check_estimator_sparse_matrix(make.__name__, make())


def test_a_model_with_one_cluster_says_why_it_has_no_memberships():
    model = PrincipalDirection(1).fit([[1.0], [2.0], [4.0]])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        model.predict_proba([[1.0]])
    assert "memberships need at least two clusters; this model has one" in str(raised.value.__cause__)
