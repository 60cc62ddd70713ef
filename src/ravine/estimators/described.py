"""What a fit is, as texts by name: two fits with the same texts and the same rows have the same result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import ravine
from ravine._validate import WITHOUT_EFFECT


def describe(estimator: Any, stream: Sequence[int]) -> dict[str, str]:
    """Return version, class and parameters of an estimator; `stream` is the seed of its random numbers.

    >>> from ravine import MinimumDensity
    >>> described = describe(MinimumDensity(3), (7,))
    >>> described["class"], described["n_clusters"], described["random_state"]
    ('MinimumDensity', '3', 'null, with the seed 7')
    """
    parameters = estimator.get_params(deep=False)
    found = {name: _text(value) for name, value in parameters.items() if name not in WITHOUT_EFFECT}
    seed = ", ".join(map(str, stream))
    return {
        **found,
        "random_state": f"{found['random_state']}, with the seed {seed}",
        "ravine": ravine.__version__,
        "class": type(estimator).__name__,
    }


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    """Return what JSON has no value for: arrays as lists, functions and others by their names."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
