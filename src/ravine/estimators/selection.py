"""Choose among clusterings without labels: the one with the highest separation probability wins."""

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
from ravine.exceptions import InvalidInputError
from ravine.metrics import separation_probability

MIN_SHARE = 0.05  # of the rows in the smaller of two clusters: fewer are no cluster to the judge
JUDGE = 0.1  # the regularization under which all candidates are judged, whatever their own


@dataclass(frozen=True)
class Candidate:
    """One fitted clusterer, and how it was judged.

    `separation_probability` is that of the pair of clusters that is told apart worst; `smallest_share` the
    share of the rows in the smallest cluster. `allowed` says whether that is large enough to count.
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
        """The fitted estimator of the highest rank."""
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

    Takes the place of a grid search against classes, which nobody has: for a method's parameters, for
    starts, or between methods. Any estimator with `fit` and `labels_` may take part, also scikit-learn's.

    MSP alone is won by one far row against the rest. So only clusterings whose smallest cluster has at least
    `min_share` of the rows are ranked by it (for K > 2 clusters, 2 / K of that); the others come last, by
    the size of that cluster.

    Parameters
    ----------
    X : array, memmap or CSR matrix of shape (n_rows, n_features)
        The rows.
    candidates : estimator, sequence or mapping of estimators
        What to fit; a mapping gives names. They are cloned.
    grid : mapping from parameter to values, optional
        Every combination is set on every candidate.
    sample_weight : array of shape (n_rows,), optional
        Handed to `fit`, and to the judge.
    min_share : float, default 0.05
        The least share of the smaller side.

    Returns
    -------
    Selection
        `best` is the fitted winner, `candidates` all of them in order; printing it shows a table.

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
    judged = [
        evaluate_projected(name, model, X, weights, share) for name, model in _each(candidates, grid or {})
    ]
    if not judged:
        raise InvalidInputError("select needs at least one candidate, got none")
    if not any(candidate.allowed for candidate in judged):
        warnings.warn(
            f"no candidate has {share:g} of the rows in its smallest cluster: the one with most is taken",
            UserWarning,
            stacklevel=2,
        )
    return Selection(tuple(sorted(judged, key=rank, reverse=True)))


def compare(
    X: Any,
    n_clusters: int = 2,
    *,
    methods: Iterable[Any] | None = None,
    sample_weight: Any = None,
    min_share: float = MIN_SHARE,
) -> Selection:
    """Run all clusterers of this library with their defaults and rank them without labels, as `select` does.

    `methods` may name other estimators to run instead, to which `n_clusters` is set.

    >>> from ravine import compare
    >>> from sklearn.datasets import load_wine
    >>> 0.5 < compare(load_wine().data).candidates[0].separation_probability < 1.0
    True
    """
    k = check_int("n_clusters", n_clusters, 2)
    models = list(methods) if methods is not None else [make() for make in clusterers().values()]
    return select(X, models, {"n_clusters": [k]}, sample_weight=sample_weight, min_share=min_share)


def clusterers() -> dict[str, Any]:
    """Return every public clusterer by its name."""
    import ravine
    from ravine.estimators.clusterer import TreeClusterer

    public = {name: getattr(ravine, name) for name in ravine.__all__}
    return {
        name: thing
        for name, thing in public.items()
        if isinstance(thing, type) and issubclass(thing, TreeClusterer)
    }


def _each(candidates: Any, grid: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """Return every candidate with every combination of the grid set, and a name for each."""
    if hasattr(candidates, "fit"):
        candidates = [candidates]
    if not isinstance(candidates, Mapping):
        candidates = {_name(model): model for model in candidates}
    found = []
    for name, model in candidates.items():
        for parameters in ParameterGrid(grid):
            shown = [f"{key}={value!r}" for key, value in parameters.items() if len(grid[key]) > 1]
            found.append((" ".join([name, *shown]), clone(model).set_params(**parameters)))
    return found


def _name(model: Any) -> str:
    """Return an estimator as one line."""
    return " ".join(repr(model).split())


def rank(candidate: Candidate) -> tuple[bool, float]:
    """Return what candidates are ordered by: MSP where the clusters are large enough, else their size."""
    by = candidate.separation_probability if candidate.allowed else candidate.smallest_share
    return candidate.allowed, by if candidate.n_clusters > 1 else 0.0


def evaluate_projected(
    name: str, model: Any, X: Any, weights: FloatArray | None, min_share: float
) -> Candidate:
    """Fit one candidate and measure what came out."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer clusters than asked for show in the result
        model.fit(X) if weights is None else model.fit(X, sample_weight=weights)
    seconds = time.perf_counter() - began
    labels = np.asarray(model.labels_)
    _, cluster = np.unique(labels, return_inverse=True)
    mass = np.bincount(cluster, weights=weights)
    mass = mass[mass > 0]
    k, share = len(mass), float(mass.min() / mass.sum())
    if k < 2:
        return Candidate(name, model, 0.0, share, k, False, seconds)
    found = separation_probability(X, labels, regularization=JUDGE, sample_weight=weights)
    return Candidate(name, model, found, share, k, share >= min_share * 2 / k, seconds)
