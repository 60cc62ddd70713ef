"""Choose among clusterings without labels, by their separation probability."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from ravine._validate import FloatArray, check_int, check_real, check_weights
from ravine.estimators.catalog import CLUSTERERS
from ravine.exceptions import InvalidInputError
from ravine.metrics import separation_probability

MIN_SHARE = 0.05  # minimum share of the rows in the smaller of two clusters, to rule out outliers
SCORE_REGULARIZATION = (
    0.1  # regularization of the MSP by which all candidates are compared, whatever their own
)


@dataclass(frozen=True)
class Candidate:
    """One fitted clusterer and its score.

    `separation_probability` is the minimum over all pairs of clusters, `smallest_share` the share of the rows
    in the smallest cluster, and `allowed` whether that is large enough.
    """

    name: str
    estimator: Any
    separation_probability: float
    smallest_share: float
    n_clusters: int
    allowed: bool
    seconds: float


@dataclass(frozen=True)
class Selection:
    """Candidates in the order of their rank: those with large enough clusters first, by MSP."""

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Any:
        """The fitted estimator with the highest rank."""
        return self.candidates[0].estimator

    def __str__(self) -> str:
        width = max(len(candidate.name) for candidate in self.candidates)
        lines = [f"{'':{width}}    MSP  clusters  smallest  seconds"]
        for c in self.candidates:
            note = "" if c.allowed else "  (too small to count)" if c.n_clusters > 1 else "  (no split)"
            figures = f"{c.separation_probability:.3f}  {c.n_clusters:8d}  {c.smallest_share:8.3f}"
            lines.append(f"{c.name:{width}}  {figures}  {c.seconds:7.2f}{note}")
        return "\n".join(lines)


def select(
    X: Any,
    candidates: Any,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    sample_weight: Any = None,
    min_share: float = MIN_SHARE,
) -> Selection:
    """Fit several clusterers and rank them by their separation probability (MSP), without labels.

    A grid search that needs no labels: over the parameters of a method, over starts, or over methods. Any
    estimator with `fit` and `labels_` can be a candidate, also those of scikit-learn.

    MSP alone is highest for a single outlier against the rest. So only clusterings whose smallest cluster has
    at least `min_share` of the rows are ranked by it (for K > 2 clusters, 2 / K of that); the others come
    last, ranked by the size of that cluster.

    Parameters
    ----------
    X : array, memmap or CSR matrix of shape (n_rows, n_features)
        The rows.
    candidates : estimator, sequence or mapping of estimators
        The estimators to clone and fit, with their names if it is a mapping.
    grid : mapping from parameter to values, optional
        Every combination of values is set on every candidate.
    sample_weight : array of shape (n_rows,), optional
        Used by `fit` and by the MSP.
    min_share : float, default 0.05
        Minimum share of the rows in the smaller of two clusters.

    Returns
    -------
    Selection
        `best` is the best fitted estimator, `candidates` are all of them in order; it prints as a table.

    Examples
    --------
    >>> from ravine import MaximinSeparation, select
    >>> from sklearn.datasets import load_breast_cancer
    >>> X = load_breast_cancer().data
    >>> found = select(X, MaximinSeparation(), {"regularization": [0.001, 0.1, 10.0]})
    >>> found.best.regularization
    10.0
    """
    share = check_real("min_share", min_share, 0, 0.5, open_low=False)
    weights = check_weights(sample_weight, X.shape[0] if hasattr(X, "shape") else len(X))
    fitted = [fit_candidate(name, model, X, weights, share) for name, model in _each(candidates, grid or {})]
    if not fitted:
        raise InvalidInputError("select needs at least one candidate, got none")
    if not any(candidate.allowed for candidate in fitted):
        warnings.warn(
            f"no candidate has {share:g} of the rows in its smallest cluster: the largest one wins",
            UserWarning,
            stacklevel=2,
        )
    return Selection(tuple(sorted(fitted, key=rank, reverse=True)))


def compare(
    X: Any,
    n_clusters: int = 2,
    *,
    methods: Iterable[Any] | None = None,
    sample_weight: Any = None,
    min_share: float = MIN_SHARE,
) -> Selection:
    """Run all clusterers of ravine with their defaults and rank them without labels, as `select` does.

    `methods` are other estimators to run instead; their `n_clusters` is set.

    >>> from ravine import compare
    >>> from sklearn.datasets import load_wine
    >>> 0.5 < compare(load_wine().data).candidates[0].separation_probability < 1.0
    True
    """
    k = check_int("n_clusters", n_clusters, 2)
    models = list(methods) if methods is not None else [make() for make in CLUSTERERS.values()]
    return select(X, models, {"n_clusters": [k]}, sample_weight=sample_weight, min_share=min_share)


def _each(candidates: Any, grid: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """Return every candidate with every combination of the grid, by name."""
    if hasattr(candidates, "fit"):
        candidates = [candidates]
    if not isinstance(candidates, Mapping):
        candidates = {" ".join(repr(model).split()): model for model in candidates}
    found = []
    for name, model in candidates.items():
        for parameters in ParameterGrid(grid):
            shown = [f"{key}={value!r}" for key, value in parameters.items() if len(grid[key]) > 1]
            found.append((" ".join([name, *shown]), clone(model).set_params(**parameters)))
    return found


def rank(candidate: Candidate) -> tuple[bool, float]:
    """Return the sort key of a candidate: its MSP if its clusters are large enough, otherwise their size."""
    by = candidate.separation_probability if candidate.allowed else candidate.smallest_share
    return candidate.allowed, by if candidate.n_clusters > 1 else 0.0


def fit_candidate(name: str, model: Any, X: Any, weights: FloatArray | None, min_share: float) -> Candidate:
    """Fit one candidate and compute its score."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result shows if there are fewer clusters than requested
        model.fit(X) if weights is None else model.fit(X, sample_weight=weights)
    seconds = time.perf_counter() - began
    labels = np.asarray(model.labels_)
    _, cluster = np.unique(labels, return_inverse=True)
    mass = np.bincount(cluster, weights=weights)
    mass = mass[mass > 0]
    k, share = len(mass), float(mass.min() / mass.sum())
    if k < 2:
        return Candidate(name, model, 0.0, share, k, False, seconds)
    found = separation_probability(X, labels, regularization=SCORE_REGULARIZATION, sample_weight=weights)
    return Candidate(name, model, found, share, k, share >= min_share * 2 / k, seconds)
