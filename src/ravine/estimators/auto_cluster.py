"""The best clustering without labels: several methods, several judges, one winner."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ravine._validate import (
    FloatArray,
    IntArray,
    check_int,
    check_jobs,
    check_real,
    check_standardize,
    check_verbose,
    make_rng,
)
from ravine.data.blocks import NO_NUMBERS
from ravine.data.memory import MemoryRows
from ravine.data.query import RowSet
from ravine.data.rows import rows_of, scales_columns
from ravine.data.standardization import Standardization
from ravine.estimators.base import Prepared, RowsEstimator
from ravine.estimators.clusterer import TreeClusterer, has_several_clusters
from ravine.estimators.judging import MIN_SHARE, Judges
from ravine.estimators.methods import default_methods, make_method
from ravine.estimators.selection import Candidate, Fitted, Selection, judged
from ravine.exceptions import InterruptedWarning, InvalidInputError, warn_caller
from ravine.features.feature_map import measure_columns
from ravine.tree.grow import Progress
from ravine.tree.tree import ClusterTree


@dataclass(eq=False, repr=False, kw_only=True)
class AutoCluster(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    r"""The best of several clusterings, chosen without labels.

    Fits the methods of ravine, in the space of the columns and on the diffusion map of the neighbor graph,
    and keeps the clustering that three judges rank highest: the separation probability, the modularity in the
    graph of ten nearest neighbors, and the agreement with the other candidates (see `ravine.metrics`). With
    :math:`R_j(c)` the rank of candidate c by judge j (the best has the highest), the winner is

    .. math:: \operatorname{argmax}_c \, R_{MSP}(c) + R_Q(c) + R_a(c),

    unless another one separates four times fewer neighbors (two rings, for example, which no hyperplane
    separates), and either is as modular or separates none, into no fewer clusters. A clustering whose
    smallest of K clusters has less than 2 / K of `min_share` of the rows does not count. More than 5000 rows
    are judged on a sample.

    Parameters
    ----------
    n_clusters : int, "auto" or "best", default "auto"
        Number of clusters. With "auto" each method finds its own number, from significant splits. "best"
        takes one number for all methods, that of the cut of any candidate's tree that fits the neighbor graph
        best: an estimate of at least 2, not a test.
    methods : sequence, optional
        The methods to try: names, and estimators with `fit_predict` or `labels_`, also of other packages,
        which get standardized rows and the same `n_clusters`. Names are "minimum-density",
        "spectral-connectivity", "maximin-separation", "maximum-margin" and "principal-direction", also
        followed by " diffusion"; "spectral-clustering" and "hdbscan" (of scikit-learn), and "genie" (of
        genieclust). Rows that a method labels -1, such as noise, are judged as one more cluster. By default
        the first four, and the first two with diffusion; without "maximum-margin" above 2^19 values, without
        diffusion above 2^24, and without "maximin-separation" above 4096 columns.
    min_share : float, default 0.05
        Minimum share of the rows in the smaller of two clusters.
    level : float, default 0.01
        For "auto": significance level of all candidates together, of which each gets an equal part.
    standardize : bool or "auto", default "auto"
        Scale every column to unit variance; "auto" scales those of dense rows, and not those of sparse ones.
    outliers : {"assign", "label", "include"}, default "assign"
        The label of rows far from all others, as in the methods of ravine, which get it. The judges leave
        these rows out.
    verbose : bool or callable, default False
        True prints one line per candidate. A function is called with a `ravine.Progress` after each split of
        each candidate.
    random_state : int, Generator or None
        Source of samples and starts of all candidates. None is a fixed seed.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted.
    candidates_ : Selection
        All candidates, the best one first, with the figures of every judge; it prints as a table.
    labels_ : ndarray of shape (n_rows,)
        Cluster of every training row.
    tree_ : ClusterTree
        The winner's tree; a method of another package has none.
    n_clusters_ : int
        Number of clusters found.
    outliers_ : ndarray
        Numbers of the rows far from all others.
    n_features_in_, feature_names_in_
        The columns seen in `fit`.

    Notes
    -----
    Cost: that of the candidates, which share the neighbor graph, the diffusion map and the mapped rows, and
    of the judges, for at most 5000 rows: their neighbors, O(n^2 d) at most, and for each candidate one pass
    and K^2 systems of at most 100 equations.

    Examples
    --------
    >>> from ravine import AutoCluster
    >>> from ravine.metrics import v_measure
    >>> from sklearn.datasets import make_circles
    >>> X, ring = make_circles(400, noise=0.05, factor=0.4, random_state=0)
    >>> model = AutoCluster(2).fit(X)
    >>> model.candidates_[0].name, round(v_measure(ring, model.labels_), 2)
    ('minimum-density diffusion', 1.0)
    """

    n_clusters: int | Literal["auto", "best"] = field(default="auto", kw_only=False)
    methods: Sequence[Any] | None = None
    min_share: float = MIN_SHARE
    level: float = 0.01
    standardize: bool | Literal["auto"] = "auto"
    outliers: Literal["assign", "label", "include"] = "assign"
    verbose: bool | Callable[[Progress], None] = False
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None

    kernel: ClassVar[None] = None  # read by the checks of rows, below, which all estimators share
    _checked = RowsEstimator._checked
    _unchanged_on_error = RowsEstimator._unchanged_on_error

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the candidates, judge them, and keep the best one.

        Parameters
        ----------
        X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
            The rows; also a file or a dask collection, for methods of ravine. They are never modified.
        y : ignored
            For the interface of scikit-learn.
        sample_weight : array of shape (n_rows,), optional
            A weight of k counts as k copies of the row, for the candidates and the judges.
        """
        with self._unchanged_on_error():
            return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        share = check_real("min_share", self.min_share, 0, 0.5, open_low=False)
        X, weights = self._checked(X, sample_weight, reset=True)
        self._check_parameters(X.shape[1])
        candidates = self._candidates(X.shape)
        own = {name: model for name, model in candidates.items() if isinstance(model, TreeClusterer)}
        foreign = {name: model for name, model in candidates.items() if name not in own}
        if isinstance(self.n_clusters, str) and not own:
            raise InvalidInputError(
                f"n_clusters={self.n_clusters!r} needs a method of ravine among `methods`, got others only; "
                "give a number"
            )
        caught: dict[str, list[warnings.WarningMessage]] = {}
        fitted = self._fit_own(own, X, weights, caught)
        if self.n_clusters == "best":
            fitted = _with_best_number(fitted, X, weights)
        judges = Judges(rows_of(X, weights), weights, standardize=scales_columns(self.standardize, X))
        if foreign:
            k = self.n_clusters
            if isinstance(k, str):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    k = judged(judges, fitted, share)[0].n_clusters
            fitted += self._fit_foreign(foreign, X, weights, k)
        self.candidates_ = judged(judges, fitted, share)
        self._keep(self.candidates_[0], fitted)
        for warning in caught.get(self.candidates_[0].name, []):
            warn_caller(warning.message, warning.category)
        return self

    def _keep(self, best: Candidate, fitted: Sequence[Fitted]) -> None:
        """Keep the winner and its labels."""
        self.best_estimator_ = best.estimator
        own = isinstance(best.estimator, TreeClusterer)  # whose labels of a dask collection are lazy
        found = next(one.labels for one in fitted if one.name == best.name)
        self.labels_ = best.estimator.labels_ if own else found
        self.n_passes_ = float(sum(getattr(one.estimator, "n_passes_", 0.0) for one in fitted))
        self.n_iter_ = int(getattr(best.estimator, "n_iter_", 1))

    def _candidates(self, shape: tuple[int, int]) -> dict[str, Any]:
        """Return the estimators to fit by their names, with the parameters that all share."""
        found = {}
        for given in default_methods(shape) if self.methods is None else self.methods:
            by_name = isinstance(given, str)
            name, model = (given, make_method(given)) if by_name else (_name(given), clone(given))
            if name in found:
                raise InvalidInputError(f"methods has {name} twice; each can be given once")
            found[name] = model
        n_own = sum(isinstance(model, TreeClusterer) for model in found.values())
        for model in found.values():
            if isinstance(model, TreeClusterer):
                model.set_params(
                    n_clusters=self.n_clusters,
                    level=self.level / n_own,
                    standardize=self.standardize,
                    outliers=self.outliers,
                    verbose=callable(self.verbose) and self.verbose,
                    random_state=self.random_state,
                    n_jobs=self.n_jobs,
                )
        if not found:
            raise InvalidInputError("methods needs at least one method, got none")
        return found

    def _fit_own(
        self, models: dict[str, Any], X: Any, weights: FloatArray | None, caught: dict[str, Any]
    ) -> list[Fitted]:
        """Fit the methods of ravine; their warnings are kept, to be given for the winner only."""
        fitted: list[Fitted] = []
        shared: dict[str, Prepared] = {}
        names = getattr(self, "feature_names_in_", None)
        for name, model in models.items():
            began = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught[name]:
                warnings.simplefilter("always")
                _fit_shared(model, X, weights, shared)
            fitted.append(Fitted(name, model, np.asarray(model.labels_), time.perf_counter() - began))
            if names is not None:
                model.feature_names_in_ = names
                if not model.tree_.mapped:
                    model.tree_ = replace(model.tree_, feature_names=tuple(map(str, names)))
            self._say(fitted[-1])
            if any(issubclass(warning.category, InterruptedWarning) for warning in caught[name]):
                break
        return fitted

    def _fit_foreign(
        self, models: dict[str, Any], X: Any, weights: FloatArray | None, k: int
    ) -> list[Fitted]:
        """Fit clusterers of other packages to standardized rows."""
        rows = rows_of(X, weights)
        if not isinstance(rows, MemoryRows):
            raise InvalidInputError(
                f"{next(iter(models))} needs rows in memory; load them, or use methods of ravine only"
            )
        dense = not hasattr(X, "indptr")
        self.scaling_: Standardization | None = None
        if dense:
            self.scaling_ = measure_columns(X, weights, scales_columns(self.standardize, X))
        points = X if self.scaling_ is None else self.scaling_.apply_checked(X)
        fitted = []
        for name, model in models.items():
            began = time.perf_counter()
            parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
            for count in {"n_clusters", "n_components"} & set(parameters):
                model.set_params(**{count: k})
            if weights is not None and not has_fit_parameter(model, "sample_weight"):
                raise InvalidInputError(
                    f"{name} takes no sample_weight; fit without weights, or leave it out"
                )
            given = {} if weights is None else {"sample_weight": weights}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if hasattr(model, "fit_predict"):
                    labels = model.fit_predict(points, **given)
                else:
                    labels = model.fit(points, **given).labels_
            fitted.append(Fitted(name, model, np.asarray(labels), time.perf_counter() - began))
            self._say(fitted[-1])
        return fitted

    def _say(self, one: Fitted) -> None:
        if self.verbose and not callable(self.verbose):
            print(f"[AutoCluster] {one.name}: {len(np.unique(one.labels))} clusters, {one.seconds:.2f} s")

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return the cluster of every row."""
        labels: IntArray = self.fit(X, y, sample_weight).labels_
        return labels

    def _ask_winner(self, name: str, X: Any) -> Any:
        """Return the result of a method of the winner for some rows."""
        check_is_fitted(self)
        if not hasattr(self.best_estimator_, name):
            raise InvalidInputError(
                f"the best clustering is that of {self.candidates_[0].name}, which has no {name} for new "
                "rows; fit with methods that have one, such as those of ravine"
            )
        if not isinstance(self.best_estimator_, TreeClusterer):
            X, _ = self._checked(X, None, reset=False)
            X = X if self.scaling_ is None else self.scaling_.apply_checked(X)
        return getattr(self.best_estimator_, name)(X)

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row, by the winner."""
        found: IntArray = self._ask_winner("predict", X)
        return found

    @available_if(has_several_clusters)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the membership of every row in every cluster, by the winner."""
        found: FloatArray = self._ask_winner("predict_proba", X)
        return found

    def decision_function(self, X: Any) -> FloatArray:
        """Return how far every row lies inside each cluster, by the winner."""
        found: FloatArray = self._ask_winner("decision_function", X)
        return found

    def transform(self, X: Any) -> FloatArray:
        """Return the signed distance of every row to every split of the winner."""
        found: FloatArray = self._ask_winner("transform", X)
        return found

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
        return getattr(self.best_estimator_, "outliers_", NO_NUMBERS)

    @property
    def n_clusters_(self) -> int:
        """Number of clusters of the winner."""
        check_is_fitted(self)
        return self.candidates_[0].n_clusters

    @property
    def _n_features_out(self) -> int:
        return self.tree_.n_leaves - 1

    def stored_choice(self) -> dict[str, Any]:
        """Return what a model file holds besides the winner: the parameters, and the judges' figures."""
        if not isinstance(self.best_estimator_, TreeClusterer):
            raise InvalidInputError(
                f"the best clustering is that of {self.candidates_[0].name}, which a model file cannot hold; "
                "fit with methods of ravine only"
            )
        parameters = self.get_params(deep=False)
        if self.methods is not None and not all(isinstance(one, str) for one in self.methods):
            parameters["methods"] = None
        figures = [one.figures() for one in self.candidates_]
        return {"parameters": parameters, "candidates": figures}

    def _from_winner(self, winner: TreeClusterer, figures: Sequence[dict[str, Any]]) -> None:
        """Restore the choice from a model file; of the candidates, only the winner is in it."""
        if not figures:
            raise InvalidInputError("candidates has to hold the winner, got none")
        others = [Candidate(estimator=None, **one) for one in figures[1:]]
        self.candidates_ = Selection((Candidate(estimator=winner, **figures[0]), *others))
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
        if self.n_clusters not in ("auto", "best"):
            check_int("n_clusters", self.n_clusters, 1, or_else='"auto" or "best"')
        check_real("min_share", self.min_share, 0, 0.5, open_low=False)
        check_real("level", self.level, 0, 0.5)
        check_standardize(self.standardize)
        check_verbose(self.verbose)
        check_jobs(self.n_jobs)
        make_rng(0 if self.random_state is None else self.random_state)
        if isinstance(self.methods, str):
            raise InvalidInputError(f"methods has to be a list of methods, got {self.methods!r}")
        for model in self._candidates((2, n_columns)).values():
            if isinstance(model, TreeClusterer):
                model._check_parameters(n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's check of sparse input reads these tags of every estimator with predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _fit_shared(
    model: TreeClusterer, X: Any, weights: FloatArray | None, shared: dict[str, Prepared]
) -> None:
    """Fit a candidate to the rows that one with the same kernel has prepared; files are mapped again."""
    X, weights = model._checked(X, weights, reset=True)
    kernel = repr((model.kernel, model._map_params))
    if kernel not in shared:
        shared[kernel] = model._prepare(X, weights)
    elif not isinstance(shared[kernel].rows, MemoryRows):
        model.feature_map_ = shared[kernel].feature_map
        shared[kernel] = replace(shared[kernel], rows=model._blocks(X, shared[kernel].weights))
    model._fit_prepared(X, None, shared[kernel])


def _with_best_number(fitted: list[Fitted], X: Any, weights: FloatArray | None) -> list[Fitted]:
    """Cut the trees of all candidates into the number of clusters that is best for any of them."""
    values = [(value, -k) for one in fitted for k, value in one.estimator.cut_values_.items()]
    k = -max(values)[1] if values else 1
    found = []
    for one in fitted:
        model = one.estimator
        model._cut_to(min(k, model._grown.n_leaves), model._blocks(X, weights))
        found.append(replace(one, labels=np.asarray(model.labels_)))
    return found


def _name(model: Any) -> str:
    """Return how an estimator is called in the table of candidates."""
    if not hasattr(model, "fit_predict") and not hasattr(model, "fit"):
        raise InvalidInputError(f"methods takes names and clusterers with fit_predict, got {model!r}")
    return " ".join(repr(model).split())
