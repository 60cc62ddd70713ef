"""Methods of rows that return lazy arrays where the rows are a dask collection."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ravine.data.rows import is_dask


def lazily(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method with one result per row return a lazy array of the same chunks for a dask collection."""

    @wraps(method)
    def of_rows(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        from ravine.data.dask_engine import map_rows

        check_is_fitted(self)
        return map_rows(X, getattr(_without_rows(self), method.__name__))

    return of_rows


def _without_rows(model: Any) -> Any:
    """Return a copy of a model without what it has for every training row: tasks need only the rest."""
    light = copy.copy(model)
    for name in ("labels_", "transduction_"):
        light.__dict__.pop(name, None)
    return light
