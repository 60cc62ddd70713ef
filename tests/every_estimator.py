"""Every public clusterer, found by itself, and its ways that differ in kind: tests for one hold for all."""

from functools import partial

import ravine

ESTIMATORS = {
    name: getattr(ravine, name)
    for name in ravine.__all__
    if isinstance(getattr(ravine, name), type)
    and hasattr(getattr(ravine, name), "fit_predict")
    and name != "AutoCluster"  # it is made of these; test_auto_cluster.py and test_contract.py have it
}
ESTIMATORS |= {
    "orthogonal": partial(ravine.SpectralConnectivity, n_directions=2),
    "kernel": partial(
        ravine.MinimumDensity, kernel="rbf", kernel_params={"n_components": 3}
    ),  # more of them amplify rounding
    "diffusion": partial(
        ravine.MinimumDensity, kernel="diffusion", kernel_params={"landmarks": 1000, "metric": "euclidean"}
    ),  # sparse rows would be compared by angle
}
