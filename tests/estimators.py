"""Every public estimator, found by itself: tests that are written for one hold for all."""

import ravine

ESTIMATORS = {
    name: getattr(ravine, name)
    for name in ravine.__all__
    if isinstance(getattr(ravine, name), type) and hasattr(getattr(ravine, name), "fit")
}
