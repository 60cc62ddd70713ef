"""The clustering for a table that nobody knows: in the columns, or along the neighbor graph."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ravine._validate import FloatArray, IntArray, check_int, check_verbose
from ravine.data.node import SAMPLE_CELLS, Node, open_node
from ravine.data.query import AnyArray, RowSet, run
from ravine.data.rows import rows_of, scales_columns
from ravine.data.threads import one_blas_thread
from ravine.estimators.base import RowsEstimator
from ravine.estimators.clusterer import TreeClusterer, has_several_clusters
from ravine.estimators.minimum_density import MinimumDensity
from ravine.estimators.spectral_connectivity import SpectralConnectivity
from ravine.estimators.stability import measure_stability
from ravine.evidence.discrete import discrete_table
from ravine.exceptions import InterruptedWarning, InvalidInputError, warn_caller
from ravine.features.neighbors import row_graph
from ravine.metrics import modularity_of
from ravine.split.far import bulk_and_far
from ravine.tree.grow import Progress
from ravine.tree.tree import ClusterTree

IN_COLUMNS, ALONG_NEIGHBORS = "in the columns", "along neighbors"  # the names of the candidates


@dataclass(frozen=True)
class Candidate:
    """One clustering that `AutoCluster` tried.

    Attributes
    ----------
    name : str
        "in the columns": hyperplanes in the space of the columns; "along neighbors": in that of the diffusion
        map of the neighbor graph, where long and curved clusters are apart.
    n_clusters : int
        Number of clusters found.
    figure : float
        By which it was judged: the stability, or the modularity in the neighbor graph.
    seconds : float
        Time of the fit and of the stability.
    verdict : str
        Why it was kept or not.
    """

    name: str
    n_clusters: int
    figure: float
    seconds: float
    verdict: str


class Candidates(tuple[Candidate, ...]):
    """What `AutoCluster` tried, the winner first; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [f"{'':15}  clusters  figure  seconds"]
        lines += [
            f"{one.name:15}  {one.n_clusters:8d}  {one.figure:6.2f}  {one.seconds:7.2f}  {one.verdict}"
            for one in self
        ]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(eq=False, repr=False, kw_only=True)
class AutoCluster(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters in the columns or along the neighbor graph, whichever fit the rows better.

    `MinimumDensity` is fitted in the space of the columns and (`kernel="diffusion"`) in that of the neighbor
    graph, where long and curved clusters are apart. Each finds its own number of clusters, and the clustering
    of higher stability is kept: fits to halves of the rows find it again (docs/number-of-clusters.md).

    With a given number, the clusters in the columns are those of `SpectralConnectivity`, and the clustering
    of higher modularity in the graph of ten nearest neighbors is kept. Where there are discrete columns, it
    is the one in the columns, because no neighbors cross the gap between two values.

    Parameters
    ----------
    n_clusters : int or "auto", default "auto"
        Number of clusters.
    standardize : bool or "auto", default "auto"
        Scale every column to unit variance; "auto" scales those of dense rows, and not those of sparse ones.
    outliers : {"assign", "label", "include"}, default "assign"
        The label of rows far from all others, as in the other clusterers.
    verbose : bool or callable, default False
        True prints one line per candidate. A function is called with a `ravine.Progress` after each split of
        each candidate.
    random_state : int, Generator or None
        Source of samples and starts of all candidates. None is a fixed seed.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : MinimumDensity or SpectralConnectivity
        The winner, fitted.
    candidates_ : Candidates
        What was tried, the winner first, with the figure that decided and a verdict; it prints as a table.
    labels_ : ndarray of shape (n_rows,)
        Cluster of every training row.
    tree_ : ClusterTree
        The winner's tree.
    n_clusters_ : int
        Number of clusters found.
    outliers_ : ndarray
        Numbers of the rows far from all others.
    n_features_in_, feature_names_in_
        The columns seen in `fit`.

    Notes
    -----
    Cost: that of two fits, and with "auto" of thirty to halves of at most 8192 rows. Above 2^24 values (rows
    x columns) there is no neighbor graph, and clusters are those in the columns.

    Examples
    --------
    >>> from ravine import AutoCluster
    >>> from ravine.metrics import v_measure
    >>> from sklearn.datasets import make_circles
    >>> X, ring = make_circles(400, noise=0.05, factor=0.4, random_state=0)
    >>> model = AutoCluster().fit(X)
    >>> model.candidates_[0].name, model.n_clusters_, round(v_measure(ring, model.labels_), 2)
    ('along neighbors', 2, 1.0)
    """

    n_clusters: int | Literal["auto"] = field(default="auto", kw_only=False)
    standardize: bool | Literal["auto"] = "auto"
    outliers: Literal["assign", "label", "include"] = "assign"
    verbose: bool | Callable[[Progress], None] = False
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None

    kernel: ClassVar[None] = None  # read by the checks of rows, below, which all estimators share
    _checked = RowsEstimator._checked
    _unchanged_on_error = RowsEstimator._unchanged_on_error

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the candidates and keep the better one.

        Parameters
        ----------
        X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
            The rows; also a file or a dask collection. They are never modified.
        y : ignored
            For the interface of scikit-learn.
        sample_weight : array of shape (n_rows,), optional
            A weight of k counts as k copies of the row.
        """
        with self._unchanged_on_error():
            X, weights = self._checked(X, sample_weight, reset=True)
            self._check_parameters(X.shape[1])
            return self._keep(*self._choose(X, weights))

    def _choose(self, X: Any, weights: FloatArray | None) -> tuple[_Try, list[_Try]]:
        """Return the best clustering, and the others."""
        auto = self.n_clusters == "auto"
        columns = MinimumDensity if auto else SpectralConnectivity
        tried = [
            _Try(ALONG_NEIGHBORS, self._candidate(MinimumDensity, "diffusion")),
            _Try(IN_COLUMNS, self._candidate(columns, None)),
        ]
        # Neighbors are searched in memory, and none cross the gap between two values of a discrete column.
        if X.shape[0] * X.shape[1] > SAMPLE_CELLS or not (auto or _are_continuous(X, weights)):
            tried = tried[1:]
        for one in tried:
            self._fit_candidate(one, X, weights)
            if one.interrupted or len(tried) == 1:
                one.verdict = f"kept: {'the fit was interrupted' if one.interrupted else 'the only one'}"
                return one, []
        if auto:
            for one in tried:
                one.measure(X, weights)
            why = "found again more often", "found again less often"
        else:
            _judge_by_neighbors(tried, X, weights, standardize=scales_columns(self.standardize, X))
            why = "separates fewer neighbors", "separates more neighbors"
        best, other = sorted(tried, key=lambda one: (-one.figure, one.name == ALONG_NEIGHBORS))
        best.verdict = f"kept: {why[0] if best.n_clusters > 1 else 'no clusters'}"
        other.verdict = why[1] if other.n_clusters > 1 else "no clusters"
        return best, [other]

    def _keep(self, best: _Try, others: Sequence[_Try]) -> Self:
        """Keep the winner and its labels, and warn as it did."""
        self.best_estimator_ = best.model
        self.candidates_ = Candidates(one.candidate() for one in (best, *others))
        self.labels_ = best.model.labels_
        self.n_passes_ = float(sum(one.model.n_passes_ for one in (best, *others)))
        self.n_iter_ = int(best.model.n_iter_)
        for warning in best.warnings:
            warn_caller(warning.message, warning.category)
        return self

    def _candidate(self, make: type[TreeClusterer], kernel: str | None) -> TreeClusterer:
        """Return an estimator with the parameters that all share."""
        shared = self.get_params(deep=False)
        verbose = callable(self.verbose) and self.verbose
        return make(**{**shared, "kernel": kernel, "verbose": verbose})

    def _fit_candidate(self, one: _Try, X: Any, weights: FloatArray | None) -> None:
        """Fit one candidate; its warnings are kept, to be given for the winner only."""
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one.model.fit(X, sample_weight=weights)
        one.warnings, one.seconds = caught, time.perf_counter() - began
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            one.model.feature_names_in_ = names
            if not one.model.tree_.mapped:
                one.model.tree_ = replace(one.model.tree_, feature_names=tuple(map(str, names)))
        if self.verbose and not callable(self.verbose):
            print(f"[AutoCluster] {one.name}: {one.n_clusters} clusters, {one.seconds:.2f} s")

    def _ask_winner(self, name: str, X: Any) -> AnyArray:
        """Return the result of a method of the winner for some rows."""
        check_is_fitted(self)
        found: AnyArray = getattr(self.best_estimator_, name)(X)
        return found

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row, by the winner."""
        return self._ask_winner("predict", X)

    @available_if(has_several_clusters)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the membership of every row in every cluster, by the winner."""
        return self._ask_winner("predict_proba", X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return how far every row lies inside each cluster, by the winner."""
        return self._ask_winner("decision_function", X)

    def transform(self, X: Any) -> FloatArray:
        """Return the signed distance of every row to every split of the winner."""
        return self._ask_winner("transform", X)

    @property
    def tree_(self) -> ClusterTree:
        """The winner's tree."""
        if "best_estimator_" not in self.__dict__ or not hasattr(self.best_estimator_, "tree_"):
            raise AttributeError("no tree_: AutoCluster is not fitted, or its best clustering has none")
        tree: ClusterTree = self.best_estimator_.tree_
        return tree

    @property
    def feature_map_(self) -> Any:
        """The feature map of the winner, None without a kernel."""
        check_is_fitted(self)
        return getattr(self.best_estimator_, "feature_map_", None)

    @property
    def outliers_(self) -> Any:
        """Numbers of the rows that the winner found far from all others."""
        check_is_fitted(self)
        return self.best_estimator_.outliers_

    @property
    def n_clusters_(self) -> int:
        """Number of clusters of the winner."""
        check_is_fitted(self)
        return self.candidates_[0].n_clusters

    @property
    def _n_features_out(self) -> int:
        return self.tree_.n_leaves - 1

    def stored_choice(self) -> dict[str, Any]:
        """Return what a model file holds besides the winner: the parameters and the candidates."""
        return {
            "parameters": self.get_params(deep=False),
            "candidates": [vars(one) for one in self.candidates_],
        }

    def _from_winner(self, winner: TreeClusterer, figures: Sequence[dict[str, Any]]) -> None:
        """Restore the choice from a model file; of the candidates, only the winner is in it."""
        if not figures:
            raise InvalidInputError("candidates has to hold the winner, got none")
        self.candidates_ = Candidates(Candidate(**one) for one in figures)
        self.best_estimator_ = winner
        for name in ("n_features_in_", "feature_names_in_", "n_passes_", "n_iter_", "fill_"):
            if hasattr(winner, name):
                setattr(self, name, getattr(winner, name))

    def _rows(self, X: Any, sample_weight: Any = None) -> RowSet:
        """Return rows in the space of the winner's tree, for pictures and the report."""
        rows: RowSet = self.best_estimator_._rows(X, sample_weight)
        return rows

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, without rows."""
        if self.n_clusters != "auto":
            check_int("n_clusters", self.n_clusters, 1, or_else='"auto"')
        check_verbose(self.verbose)
        self._candidate(MinimumDensity, None)._check_parameters(n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's check of sparse input reads these tags of every estimator with predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _are_continuous(X: Any, weights: FloatArray | None) -> bool:
    """Return whether no column is discrete."""
    opened = run(open_node(Node(rows_of(X, weights)), []))
    return sparse.issparse(X) or not run(discrete_table(opened)).variables


def _judge_by_neighbors(
    tried: Sequence[_Try], X: Any, weights: FloatArray | None, *, standardize: bool
) -> None:
    """Judge clusterings by their modularity in the neighbor graph of (a sample of) the rows."""
    with one_blas_thread():
        bulk, _ = bulk_and_far(Node(rows_of(X, weights), standardize=standardize))
        graph = row_graph(bulk, standardize=standardize)
    for one in tried:
        few = np.unique(np.asarray(one.model.labels_)[graph.numbers], return_inverse=True)[1]
        one.figure = modularity_of(graph.between(few))


@dataclass
class _Try:
    """A candidate while it is fitted and judged."""

    name: str
    model: TreeClusterer
    seconds: float = 0.0
    figure: float = 0.0
    verdict: str = ""
    warnings: Sequence[warnings.WarningMessage] = ()

    @property
    def n_clusters(self) -> int:
        """The number of clusters found."""
        return self.model.n_clusters_

    @property
    def interrupted(self) -> bool:
        """Whether the fit was interrupted."""
        return any(issubclass(warning.category, InterruptedWarning) for warning in self.warnings)

    def measure(self, X: Any, weights: FloatArray | None) -> None:
        """Measure the stability of the clusters found, unless the fit did; one cluster has none."""
        if self.n_clusters == 1:
            return
        began = time.perf_counter()
        found = self.model.stability_ or measure_stability(self.model, X, weights, by_chance=False)
        self.figure = found.by_number.get(self.n_clusters, 0.0)
        self.seconds += time.perf_counter() - began

    def candidate(self) -> Candidate:
        """Return what is kept of it."""
        return Candidate(self.name, self.n_clusters, self.figure, self.seconds, self.verdict)
