"""Which parameters a search of scikit-learn, such as `GridSearchCV`, is trying."""

from __future__ import annotations

import sys

CALLER = "_fit_and_score"  # the function of scikit-learn that fits and scores one candidate
MAX_FRAMES = 10  # calls between that function and `score`; there are three


def searched_parameters() -> frozenset[str]:
    """Return the parameters that vary in a search that is calling `score`, without the names of steps.

    scikit-learn does not say so to the estimator, hence a look at the callers. Empty outside of a search.
    """
    frame = sys._getframe()
    for _ in range(MAX_FRAMES):
        if frame.f_back is None:
            break
        frame = frame.f_back
        if frame.f_code.co_name == CALLER:
            return frozenset(name.rsplit("__", 1)[-1] for name in frame.f_locals.get("parameters") or ())
    return frozenset()
