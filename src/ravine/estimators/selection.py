"""Choose among clusterings without labels: separation probability, modularity and agreement."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from ravine._validate import FloatArray, check_int, check_real, check_rows, check_weights
from ravine.data.rows import rows_of
from ravine.estimators.judging import MIN_SHARE, Judges, Judgment, best_first, rank_sums
from ravine.estimators.methods import CLUSTERERS, DIFFUSION
from ravine.exceptions import InvalidInputError, warn_caller
from ravine.metrics import agreement


@dataclass(frozen=True)
class Fitted:
    """One fitted clusterer, its labels, and the seconds that it took."""

    name: str
    estimator: Any
    labels: Any
    seconds: float


@dataclass(frozen=True)
class Candidate:
    """One fitted clusterer with the figures of the judges.

    Attributes
    ----------
    name : str
        Name of the candidate, with the parameters that differ.
    estimator : estimator
        The fitted clusterer.
    separation_probability : float
        Minimum of MSP over all pairs of clusters.
    modularity, normalized_cut : float
        Those of the clusters in the graph of ten nearest neighbors.
    cut_ratio : float
        Share of neighbors in different clusters, relative to that of unrelated labels of the same sizes.
    agreement : float
        Mean V-measure against the labels of the other candidates.
    rank_sum : float
        Sum of the ranks by separation probability, modularity and agreement; the highest is best.
    smallest_share : float
        Share of the rows in the smallest cluster.
    n_clusters : int
        Number of clusters.
    allowed : bool
        Whether the smallest cluster is large enough to be ranked.
    seconds : float
        Time of the fit.
    """

    name: str
    estimator: Any
    separation_probability: float
    modularity: float
    normalized_cut: float
    cut_ratio: float
    agreement: float
    rank_sum: float
    smallest_share: float
    n_clusters: int
    allowed: bool
    seconds: float

    def figures(self) -> dict[str, Any]:
        """Return all figures by name, without the estimator."""
        return {key: value for key, value in self.__dict__.items() if key != "estimator"}


class Selection(tuple[Candidate, ...]):
    """Candidates, the best one first; a tuple that prints as a table.

    Attributes
    ----------
    candidates : tuple of Candidate
        All candidates, the best one first.
    """

    __slots__ = ()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, the best one first."""
        return self

    @property
    def best(self) -> Any:
        """The fitted estimator of the best candidate."""
        return self[0].estimator

    def __str__(self) -> str:
        width = max(len(candidate.name) for candidate in self)
        lines = [f"{'':{width}}    MSP  modularity    cut  agreement  ranks  clusters  smallest  seconds"]
        for c in self:
            note = "" if c.allowed else "  (too small to count)" if c.n_clusters > 1 else "  (no split)"
            judged = f"{c.separation_probability:.3f}  {c.modularity:10.3f}  {c.normalized_cut:5.3f}"
            ranked = f"{c.agreement:9.3f}  {c.rank_sum:5.1f}  {c.n_clusters:8d}  {c.smallest_share:8.3f}"
            lines.append(f"{c.name:{width}}  {judged}  {ranked}  {c.seconds:7.2f}{note}")
        return "\n".join(lines)

    __repr__ = __str__


def select(
    X: Any,
    candidates: Any,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    sample_weight: Any = None,
    min_share: float = MIN_SHARE,
) -> Selection:
    """Fit several clusterers and rank them without labels.

    A grid search that needs no labels: over the parameters of a method, over starts, or over methods. Any
    estimator with `fit` and `labels_` can be a candidate, also those of scikit-learn.

    Three judges rank the candidates: the separation probability (MSP), the modularity in the graph of nearest
    neighbors, and the agreement with the other candidates (see `ravine.metrics`). The highest sum of the
    ranks wins, unless another candidate is as modular and separates four times fewer neighbors. More than
    5000 rows are judged on a sample.

    MSP is highest for a single outlier against the rest. So only clusterings whose smallest cluster has
    at least `min_share` of the rows are ranked (for K > 2 clusters, 2 / K of that); the others come
    last, by the size of that cluster. Rows far from all others are not judged, and do not count here.

    Parameters
    ----------
    X : array, memmap or CSR matrix of shape (n_rows, n_features)
        The rows.
    candidates : estimator, sequence or mapping of estimators
        The estimators to clone and fit, with their names if it is a mapping.
    grid : mapping from parameter to values, optional
        Every combination of values is set on every candidate.
    sample_weight : array of shape (n_rows,), optional
        Used by `fit` and by the judges.
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
    >>> found = select(X, MaximinSeparation(2), {"regularization": [0.001, 0.1, 10.0]})
    >>> found.best.regularization
    10.0
    """
    share = check_real("min_share", min_share, 0, 0.5, open_low=False)
    weights = check_weights(sample_weight, X.shape[0] if hasattr(X, "shape") else len(X))
    fitted = [fit_candidate(name, model, X, weights) for name, model in _each(candidates, grid or {})]
    if not fitted:
        raise InvalidInputError("select needs at least one candidate, got none")
    judges = Judges(rows_of(check_rows(X, min_rows=1), weights), weights)
    return judged(judges, fitted, share)


def judged(judges: Judges, fitted: Sequence[Fitted], min_share: float) -> Selection:
    """Return fitted candidates with the figures of the judges, the best one first."""
    found: list[Judgment] = [judges(one.labels) for one in fitted]
    agree = agreement([one.labels for one in fitted], sample_weight=judges.weights)
    sums = rank_sums(found, agree)
    if not any(one.allowed(min_share) for one in found):
        warn_caller(
            f"no candidate has {min_share:g} of the rows in its smallest cluster; the largest of these wins"
        )
    return Selection(
        Candidate(
            name=fitted[i].name,
            estimator=fitted[i].estimator,
            agreement=float(agree[i]),
            rank_sum=float(sums[i]),
            allowed=found[i].allowed(min_share),
            seconds=fitted[i].seconds,
            **vars(found[i]),
        )
        for i in best_first(found, sums, min_share)
    )


def compare(
    X: Any,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    methods: Iterable[Any] | None = None,
    sample_weight: Any = None,
    min_share: float = MIN_SHARE,
) -> Selection:
    """Run all clusterers of ravine with their defaults and rank them without labels, as `select` does.

    Two of the clusterers also run on the diffusion map of the neighbor graph (kernel="diffusion").

    Parameters
    ----------
    X : array, memmap or CSR matrix of shape (n_rows, n_features)
        The rows.
    n_clusters : int or "auto", default "auto"
        The number of clusters of all; with "auto" every clusterer finds it by itself.
    methods : iterable of estimators, optional
        Other estimators to run instead; their `n_clusters` is set as well.
    sample_weight : array of shape (n_rows,), optional
        Used by `fit` and by the judges.
    min_share : float, default 0.05
        Minimum share of the rows in the smaller of two clusters, see `select`.

    Returns
    -------
    Selection
        `best` is the best fitted estimator, `candidates` are all of them in order; it prints as a table.

    Examples
    --------
    >>> from ravine import compare
    >>> from sklearn.datasets import load_wine
    >>> 0.5 < compare(load_wine().data, 3).candidates[0].separation_probability < 1.0
    True
    """
    k = n_clusters if n_clusters == "auto" else check_int("n_clusters", n_clusters, 2, or_else='"auto"')
    models = list(methods) if methods is not None else [make() for make in CLUSTERERS.values()]
    if methods is None:
        models += [CLUSTERERS[name](kernel="diffusion") for name in DIFFUSION]
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


def fit_candidate(name: str, model: Any, X: Any, weights: FloatArray | None) -> Fitted:
    """Fit one candidate, and return it with its labels."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result shows if there are fewer clusters than requested
        model.fit(X) if weights is None else model.fit(X, sample_weight=weights)
    return Fitted(name, model, np.asarray(model.labels_), time.perf_counter() - began)
