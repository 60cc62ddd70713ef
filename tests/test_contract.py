"""scikit-learn's own checks on every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.every_estimator import ESTIMATORS


@parametrize_with_checks([make() for make in ESTIMATORS.values()])
def test_scikit_learn_check(estimator, check):
    check(estimator)
