"""scikit-learn's own checks on every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from ravine import AutoCluster, MinimumDensity
from tests.every_estimator import ESTIMATORS

FEW = ("minimum-density", "maximin-separation", "minimum-density diffusion")  # all six would take minutes
MODELS = [*(make(2) for make in ESTIMATORS.values()), MinimumDensity(), AutoCluster(2, methods=FEW)]


def expected_failures(estimator):
    """Sparse random rows are one cluster by default, and scikit-learn expects a membership in two."""
    if isinstance(estimator, MinimumDensity) and estimator.n_clusters == "auto":
        checks = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
        return dict.fromkeys(checks, "one cluster has one column of memberships")
    return {}


@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
