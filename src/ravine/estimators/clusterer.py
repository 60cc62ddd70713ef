"""The base of all clusterers: check the input, grow a tree with the method, expose it."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ravine._validate import (
    UNLABELED,
    FloatArray,
    IntArray,
    check_choice,
    check_int,
    check_real,
    check_verbose,
)
from ravine.data.blocks import NO_NUMBERS
from ravine.data.node import Labels, Node
from ravine.data.query import RowSet
from ravine.data.threads import one_blas_thread
from ravine.estimators.base import (
    RowsEstimator,
    lazy_for_dask,
    warn_about_constants,
    warn_about_splits,
    warn_about_weights,
)
from ravine.estimators.partial_labels import partial_labels
from ravine.estimators.stability import Stability, measure_stability
from ravine.exceptions import InvalidInputError, warn_caller
from ravine.split.search import BaseMethod
from ravine.store.archive import Stored, require
from ravine.store.checkpoint import Checkpoint, check_path, describe
from ravine.store.parts import Parts, tree_from, tree_to_parts
from ravine.tree.grow import UNLIMITED, Grown, Limits, Progress, grow
from ravine.tree.leaf_search import FALLBACK_SHARE, PRIORITIES
from ravine.tree.tree import ClusterTree

AUTO_MIN_SIZE = 1.5  # minimum cluster size with "auto", in square roots of the number of rows
OUTLIERS = ("assign", "label", "include")


def has_several_clusters(model: Any) -> bool:
    """Return whether a model has memberships: scikit-learn expects at least two columns of them."""
    if model.n_clusters_ > 1:  # before `fit`, an AttributeError of its own
        return True
    raise AttributeError("memberships need at least two clusters; this model has one, that of every row")


@dataclass(eq=False, repr=False, kw_only=True)
class TreeClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, RowsEstimator):  # type: ignore[misc]
    """The base of all clusterers: everything except the search for one split.

    The parameters `standardize`, `kernel`, `kernel_params`, `random_state` and `n_jobs` are those of
    `ravine.estimators.base.RowsEstimator`.

    Parameters
    ----------
    n_clusters : int or "auto", default "auto"
        Number of clusters. There are as many wherever enough rows differ: where no leaf has a valley, one is
        split without, with a warning. "auto" splits a leaf only if the split is significantly better than
        those that the same search finds in rows without clusters: unimodal rows of the same covariance, and
        rows with the marginal distributions of the columns. This takes at most eight more searches of at most
        8192 rows per leaf. The gap between two values of one discrete column does not count: such a leaf is
        searched again without the column, and if necessary without all discrete columns. If no split is
        significant, but the first would be at ten times the level, and with a kernel, the number is the one
        that fits to halves of the rows find again (see `stability_`).
    min_cluster_size : int, optional
        Minimum weight (number of rows, without weights) on each side of a split. The default is 1; for "auto"
        it is 1.5 times the square root of the number of rows, because smaller groups may be tails.
    max_depth : int, optional
        Most splits from the root to a leaf, also for "auto". (For at most so many leaves, cut the tree.)
    level : float, default 0.01
        For "auto": significance level of the whole tree, that is, the probability of any split of unimodal
        rows. A leaf with 20 % of the rows is tested at 20 % of the level.
    outliers : {"assign", "label", "include"}, default "assign"
        The label of rows far from all others (`outliers_`) in `labels_` and `predict`: the cluster on whose
        side they lie ("assign"), or -1 as in HDBSCAN ("label"). They are left out of the searches in both
        cases. With "include" no such rows are looked for: searches see all rows, as in the papers.
    verbose : bool or callable, default False
        True prints one line per split. A function is called with a `ravine.Progress` after each split, and
        for large data about once per second between splits, for example to show a progress bar.
    checkpoint : path, optional
        File in which the results of finished searches are saved. If the fit is interrupted, the same call
        resumes it; the file of another fit is refused. The file is not deleted at the end. See docs/scale.md.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Cluster of every training row, numbered from left to right in the tree. Lazy for a Dask collection.
    tree_ : ClusterTree
        The splits, with the evidence for each.
    n_clusters_ : int
        Number of clusters found.
    stability_ : Stability or None
        With "auto", where no split was significant or tested: how well cuts into 2, 3, ... clusters are found
        again, and the number that follows.
    """

    n_clusters: int | Literal["auto"] = field(default="auto", kw_only=False)
    min_cluster_size: int | None = None
    max_depth: int | None = None
    level: float = 0.01
    outliers: Literal["assign", "label", "include"] = "assign"
    verbose: bool | Callable[[Progress], None] = False
    checkpoint: str | os.PathLike[str] | None = None

    # Which leaf is split next, a name of `tree.priorities`. Most methods: the one with the largest product of
    # its size and the bounded relative depth of its split, the best of ten rules on the papers' sets.
    _split_order: ClassVar[str] = "depth"
    # Whether a given number of clusters is reached with splits that have no valley.
    _splits_always: ClassVar[bool] = True
    # Whether splits are as in a paper: none without a valley, and gaps of discrete columns like all others.
    _as_published: ClassVar[bool] = False

    @abstractmethod
    def _method(self, rows: RowSet | None = None) -> BaseMethod:
        """Check the parameters of the method and return it."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
            The rows. They are never modified, and copied only if they are not an array or CSR matrix. Also a
            file, as `ravine.open(path)`, or a dask array or data frame, see docs/scale.md.
        y : array of shape (n_rows,), optional
            Partial labels: the classes of some rows, and for all others -1 (among strings also "-1"), None,
            NaN or pandas' NA. Labeled rows of different classes are separated where the method finds a split
            that does so (see docs/semi-supervised.md). A y without any of these is ignored, as in
            scikit-learn's clusterers.
        sample_weight : array of shape (n_rows,), optional
            A weight of k counts as k copies of the row. A row of weight 0 has no influence but gets a label.
        """
        with self._unchanged_on_error():
            X, weights = self._checked(X, sample_weight, reset=True)
            return self._fit(X, y, weights)

    def _fit(self, X: Any, y: Any, weights: FloatArray | None) -> Self:
        """Map checked rows into the space of the kernel, if there is one, and grow the tree.

        With "auto", the number of clusters is that of the significant splits; where the first one is in
        doubt, or splits cannot be tested, because they run in a feature space, it is the one that is found
        again.
        """
        check_verbose(self.verbose)
        include = check_choice("outliers", self.outliers, OUTLIERS) == "include"
        if self.kernel is not None:
            weights, rule, outliers = self._set_aside(X, weights, include=include)
        self._fit_map(X, weights, self.n_clusters)
        rows = self._blocks(X, weights)
        if self.kernel is not None:
            self._note_outliers(rule, outliers)
        self.stability_: Stability | None = None
        auto, interrupted = self.n_clusters == "auto", False
        if not auto or self.kernel is None:
            interrupted = self._grow(X, y, rows, self.n_clusters)
        if auto and (self.kernel is not None or (self._is_in_doubt() and not interrupted)):
            self.stability_ = measure_stability(self, X, weights)
            if self.kernel is not None or self.stability_.n_clusters > 1:
                interrupted = self._grow(X, y, rows, self.stability_.n_clusters)
        warn_about_splits(self, interrupted)
        return self

    def _is_in_doubt(self) -> bool:
        """Return whether the first split is not significant, but would be at ten times the level.

        In one column there is one direction, and the p-value says everything.
        """
        first = self.tree_.refused[0]
        several = first is not None and len(first.direction) > 1
        return first is not None and several and first.is_significant(self.level / FALLBACK_SHARE)

    def _set_labels(self, labels: IntArray) -> None:
        """Keep the labels of the training rows; with `outliers="label"`, -1 for those far from all others."""
        labeled = self.outliers == "label" and len(self.outliers_)
        self.labels_: IntArray = _with_outliers(labels, self.outliers_) if labeled else labels

    def _grow(self, X: Any, y: Any, rows: RowSet, n_clusters: int | str) -> bool:
        """Grow the tree, set the attributes that it gives, and return whether this was interrupted."""
        before = rows.reads.rows
        method = self._method(rows)
        labels = self._partial_labels(y, rows, method)
        limits = self._limits(rows.shape[0], rows.total, n_clusters)
        warn_about_weights(rows, limits.min_weight)
        root = self._root(X, rows, limits.min_weight)
        with one_blas_thread():
            grown = grow(
                root,
                method,
                limits,
                priority=PRIORITIES[self._split_order],
                level=check_real("level", self.level, 0, 0.5),
                auto=n_clusters == "auto",
                watch=self._watch,
                labels=labels,
                in_columns=self.feature_map_ is None and not self._as_published,
                sets_aside=self.outliers != "include",
                checkpoint=self._checkpoint(root, labels) if n_clusters == self.n_clusters else None,
            )
        if self.kernel is None:
            self._note_outliers(grown.rule, NO_NUMBERS if grown.far is None else grown.far.numbers)
        self.n_passes_ = (rows.reads.rows - before) / rows.shape[0]
        self._expose(grown)
        constant = grown.standardization.constant if self.feature_map_ is None else self.feature_map_.constant
        warn_about_constants(constant)
        return grown.interrupted

    def _expose(self, grown: Grown) -> None:
        """Set the attributes that the grown tree gives."""
        names = getattr(self, "feature_names_in_", None)
        if self.feature_map_ is not None:
            names = [f"component {i + 1}" for i in range(self.feature_map_.n_components)]
        self.tree_ = replace(
            grown.tree,
            feature_names=None if names is None else tuple(map(str, names)),
            mapped=self.feature_map_ is not None,
            spread=grown.standardization.spread,
        )
        self._set_labels(grown.labels)
        self.n_iter_ = max(1, sum(split.n_iter for split in grown.tree.splits if split is not None))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Find the clusters and return the cluster of every row."""
        return self.fit(X, y, sample_weight).labels_

    @lazy_for_dask
    def predict(self, X: Any) -> IntArray:
        """Return the cluster of every row; one pass.

        With `outliers="label"`, -1 for rows that are far from everything by the rule of the training rows.
        """
        check_is_fitted(self)
        X, _ = self._checked(X, None, reset=False)
        labels = self.tree_.route(self._blocks(X, None))
        if self.outliers == "label" and self.outlier_rule_ is not None:
            labels[self._far(X, self.outlier_rule_)] = UNLABELED
        return labels

    @lazy_for_dask
    def decision_function(self, X: Any) -> FloatArray:
        """Return how far every row lies inside each cluster.

        For two clusters, the signed distance to the boundary, positive for cluster 1. For more, an array
        (n_rows, n_clusters) with the minimum signed distance along the path to each leaf, which is positive
        only for the row's own cluster, so that the largest entry is at `predict(X)`.
        """
        check_is_fitted(self)
        scores = self.tree_.scores(self.tree_.distances(self._rows(X)))
        if self.n_clusters_ == 2:
            return np.asarray(np.where(scores[:, 1] > 0, scores[:, 1], -scores[:, 0]))
        return scores

    @available_if(has_several_clusters)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the membership of every row in every cluster, largest at `predict(X)`; two passes.

        The product of the shares of the sides on the path of a row, which follow from the densities of the
        two sides next to each boundary: see `ClusterTree.predict_proba`.
        """
        check_is_fitted(self)
        return self.tree_.memberships(self._rows(X))

    @property
    def n_clusters_(self) -> int:
        """Number of clusters of the tree."""
        check_is_fitted(self)
        return self.tree_.n_clusters

    @property
    def _n_features_out(self) -> int:
        return self.tree_.n_leaves - 1

    @lazy_for_dask
    def transform(self, X: Any) -> FloatArray:
        """Return the signed distance of every row to every split, in the order of the splits."""
        check_is_fitted(self)
        rows = self._rows(X)
        if self.tree_.n_leaves == 1:
            self.tree_.route(rows)  # there is no distance to compute, but NaN is refused all the same
        return self.tree_.distances(rows)

    def _to_parts(self) -> Parts:
        """Return what a model file stores: the tree, but not the labels of the training rows."""
        return tree_to_parts(self.tree_)

    def _from_parts(self, stored: Stored, n_columns: int) -> None:
        """Restore the tree from a model file; the rows or mapped rows have `n_columns`."""
        self.tree_ = tree_from(ClusterTree, stored, n_columns)
        mapped = self.feature_map_ is not None
        require(self.tree_.mapped == mapped, "mapped", "true with a kernel, and false without", not mapped)

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, without rows."""
        super()._check_parameters(n_columns)
        self._method()
        self._limits(UNLIMITED, UNLIMITED, self.n_clusters)
        check_choice("outliers", self.outliers, OUTLIERS)
        check_real("level", self.level, 0, 0.5)
        check_verbose(self.verbose)
        if self.checkpoint is not None:
            check_path(self.checkpoint)

    def _partial_labels(self, y: Any, rows: RowSet, method: BaseMethod) -> Labels | None:
        """Return the partial labels in y, or None, with a warning if the method does not support them."""
        labels = None if y is None else partial_labels(y, rows)
        if labels is None or method.takes_labels:
            return labels
        warn_caller(
            f"{type(self).__name__} with these parameters ignores the partial labels in y; "
            "MinimumDensity supports them"
        )
        return None

    def _checkpoint(self, root: Node, labels: Labels | None) -> Checkpoint | None:
        """Return the checkpoint of this fit, if one is wanted."""
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, describe(self, root.stream), root.rows, labels)

    def _watch(self, progress: Progress) -> None:
        if callable(self.verbose):
            self.verbose(progress)
        elif self.verbose and progress.split is not None:
            print(
                f"[{type(self).__name__}] {progress.n_leaves}"
                f"{'' if isinstance(self.n_clusters, str) else f'/{progress.n_clusters}'} clusters: "
                f"split {progress.weight:g} rows with quality {progress.split.quality:.3f} "
                f"({progress.n_passes:.1f} passes, {progress.seconds:.2f} s)"
            )

    def _limits(self, n_rows: int, total: float, n_clusters: int | str) -> Limits:
        """Check the limits of the tree and return them, for rows of this total weight."""
        wanted, min_weight = UNLIMITED, 1.0
        if n_clusters != "auto":
            wanted = check_int("n_clusters", n_clusters, 1, or_else='"auto"')
        if self.n_clusters == "auto":
            min_weight = AUTO_MIN_SIZE * math.sqrt(total)
        elif wanted > n_rows:
            raise InvalidInputError(
                f"n_clusters={wanted} is more than n_samples={n_rows}; use fewer clusters or more rows"
            )
        if self.min_cluster_size is not None:
            min_weight = check_int("min_cluster_size", self.min_cluster_size, 1)
        depth = UNLIMITED if self.max_depth is None else check_int("max_depth", self.max_depth, 0)
        always = self._splits_always and not self._as_published and self.n_clusters != "auto"
        return Limits(wanted, depth, min_weight, always, always and self.outliers == "assign")

    def _repr_html_inner(self) -> str:
        """Show the tree of a fitted estimator below scikit-learn's view of it."""
        from ravine.view.notebook import show  # a fit draws nothing

        shown: str = super()._repr_html_inner()
        return shown + show(self) if hasattr(self, "tree_") else shown

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of sparse input reads these tags of every estimator with predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _with_outliers(labels: Any, outliers: IntArray) -> IntArray:
    """Return labels, also lazy ones, with -1 for the rows of some numbers."""
    far = np.zeros(labels.shape[0], dtype=bool)
    far[outliers] = True
    found: IntArray = np.where(far, UNLABELED, labels)
    return found
