"""Semi-supervised classification: minimum density hyperplanes with labeled rows on the correct sides."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ravine._validate import (
    UNLABELED,
    FloatArray,
    check_bool,
    check_choice,
    check_int,
    check_real,
    not_finite,
)
from ravine.data.query import RowSet
from ravine.data.rows import length
from ravine.data.standardization import LARGEST
from ravine.data.threads import one_blas_thread
from ravine.estimators.base import RowsEstimator, lazy_for_dask, warn_about_constants
from ravine.estimators.class_boundaries import BoundarySearch, ClassBoundary
from ravine.estimators.partial_labels import (
    check_classes,
    check_labels,
    classes_from,
)
from ravine.exceptions import InvalidInputError
from ravine.index.density import MinimumDensitySchedule
from ravine.split.boundary import Hyperplane
from ravine.split.projection import ProjectionMethod
from ravine.store.archive import Stored, require
from ravine.store.parts import Parts, splits_from, splits_to_parts

OUTLIERS = ("assign", "include")
N_ALPHAS = 5  # interval widths, half of those for clustering: half the time, nearly the same result


@dataclass(eq=False, repr=False, kw_only=True)
class MinimumDensityClassifier(ClassifierMixin, RowsEstimator):  # type: ignore[misc]
    r"""Semi-supervised classification with minimum density hyperplanes (MDP2).

    The boundary between two classes is the hyperplane with the lowest density of all rows, labeled or not,
    among those near their mean, with a penalty for labeled rows on the wrong side:

    .. math:: \min_{v, b} \hat I(v, b) + \frac{L}{\eta}\max\{0, |b - \mu_v| - \alpha\sigma_v\}^2
              + \gamma \sum_{i \le l} \max\{0, -y_i (v \cdot x_i - b)\}^2

    It is found by projection pursuit from two principal directions and from a linear support vector machine
    (SVM) on the labeled rows. First gamma is small while the interval of width alpha grows, so that the
    density decides; then gamma grows.

    More than two classes are separated by one hyperplane per pair of classes, and a vote; the density is that
    of the rows which the machine assigns to one of the two.

    Unlabeled rows can mislead. So the default boundary is a supervised one, a logistic regression on the
    labeled rows. The hyperplane of lowest density replaces it only if at most 20 labels are known, the
    density is clearly lower there, and no more labeled rows are on the wrong side; `split.method` of
    `boundaries_` says which it is.

    The parameters `standardize`, `kernel`, `kernel_params`, `random_state` and `n_jobs`, and the attributes
    that all estimators have, are described in `ravine.estimators.base.RowsEstimator`.

    Parameters
    ----------
    gammas : sequence of float, default (0.3, 1)
        Weights of the labels, in the order of their use, for columns of unit variance; the interval grows
        with the first. (The paper has 0.1, 1, 10. If classes overlap and many rows are labeled, a larger last
        weight overfits the labels, in directions in which the rows hardly vary.)
    bandwidth_factor : float, default 0.5
        Multiplies the bandwidth 0.9 sd n^(-1/5), where sd is the standard deviation of the first principal
        component of the rows. (Half the default of `MinimumDensity`: labels rule out valleys that are due
        to chance, and a smaller bandwidth is closer to the maximum margin.)
    alpha_max : float, default 0.9
        The threshold lies within this many standard deviations of the mean, unless the labels demand
        otherwise.
    n_init : int, default 2
        Number of principal directions to start from, in addition to the support vector machine.
    outliers : {"assign", "include"}, default "assign"
        "assign" leaves rows far from everything (`outliers_`) out of the searches; "include" does not look
        for such rows.
    max_iter : int, default 15
        Maximum number of evaluations for each step of alpha and gamma.
    supervised_fallback : bool, default True
        Use the supervised boundary where the evidence for the valley is not clear. False: always the
        boundary of lowest density, as in the paper.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes of the labeled rows, sorted.
    transduction_ : ndarray of shape (n_rows,)
        Class of every training row: the given one, or the predicted one.
    boundaries_ : list of ClassBoundary
        The hyperplanes, and which classes each of them separates.
    coef_, intercept_ : ndarrays of shape (n_boundaries, n_features) and (n_boundaries,)
        The hyperplanes in the units of the data; with a kernel, of the components of its map.
    spread_ : float
        Root mean square of the columns' standard deviations, the unit of memberships: 1 if columns are
        standardized.

    Notes
    -----
    Cost: a boundary costs as much as a split of `MinimumDensity`: one pass over the rows per evaluation up to
    16384 rows, a few passes above that. Only the labeled rows are copied to memory.

    References
    ----------
    Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from ravine import MinimumDensityClassifier
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> partial = np.full(len(y), -1)
    >>> partial[::30] = y[::30]
    >>> model = MinimumDensityClassifier().fit(X, partial)
    >>> int((partial >= 0).sum()), bool((model.transduction_ == y).mean() > 0.9)
    (6, True)
    """

    gammas: Sequence[float] = (0.3, 1.0)
    bandwidth_factor: float = 0.5
    alpha_max: float = 0.9
    n_init: int = 2
    outliers: Literal["assign", "include"] = "assign"
    max_iter: int = 15
    supervised_fallback: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the boundaries.

        Parameters
        ----------
        X : array, memmap, CSR matrix or data frame of shape (n_rows, n_features)
            The rows, labeled or not. They are never modified; only the labeled ones are copied.
        y : array of shape (n_rows,)
            Their classes, whole numbers or strings; for a row without a label -1 (among strings also "-1"),
            None, NaN or pandas' NA.
        sample_weight : array of shape (n_rows,), optional
            A weight of k counts as k copies of the row; the label of a row of weight 0 is ignored.
        """
        with self._unchanged_on_error():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        X, weights = self._checked(X, sample_weight, reset=True)
        given, labeled = check_labels(y, length(X))
        counted = labeled if weights is None else labeled & (weights > 0)
        self.classes_ = check_classes(given, labeled, counted)
        ranks = np.full(len(given), UNLABELED)
        ranks[counted] = np.searchsorted(self.classes_, given[counted])
        include = check_choice("outliers", self.outliers, OUTLIERS) == "include"
        weights, rule, far = self._set_aside(X, weights, kept=labeled, include=include)
        self._note_outliers(rule, far)
        self._fit_map(X, weights, len(self.classes_))
        rows = self._blocks(X, weights)
        fallback = check_bool("supervised_fallback", self.supervised_fallback)
        factor = self.bandwidth_factor if fallback else None
        fitting = BoundarySearch(self._root(X, rows, 0.0), ranks, self.classes_, self._method, factor)
        with one_blas_thread():
            self.boundaries_ = list(fitting.boundaries())
        assert fitting.root_standardization is not None
        self.spread_ = fitting.root_standardization.spread
        self._set_planes()
        self.n_iter_ = max(1, sum(between.split.n_iter for between in self.boundaries_))
        self.n_passes_ = rows.reads.rows / rows.shape[0]
        self.transduction_ = self.classes_[np.argmax(self._scores(rows), axis=1)]
        self.transduction_[counted] = self.classes_[ranks[counted]]
        constant = (
            fitting.root_standardization.constant if self.feature_map_ is None else self.feature_map_.constant
        )
        warn_about_constants(constant)
        return self

    def _set_planes(self) -> None:
        """Set the coefficients of the boundaries, in the units of the data."""
        planes = [between.split.boundary for between in self.boundaries_]
        self.coef_ = np.array([plane.normal for plane in planes])
        self.intercept_ = np.array([plane.intercept for plane in planes if isinstance(plane, Hyperplane)])

    @lazy_for_dask
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of every row; one pass."""
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self._scores(self._rows(X)), axis=1)])

    @lazy_for_dask
    def decision_function(self, X: Any) -> FloatArray:
        """Return how far every row lies inside each class.

        For two classes, the signed distance to the boundary, positive for the second. For more, an array
        (n_rows, n_classes) that is largest at `predict(X)`: the votes of all pairs of classes, plus fractions
        from the distances that break ties.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X))
        return scores[:, 1] if len(self.classes_) == 2 else scores

    @lazy_for_dask
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the membership of every row in every class, largest at `predict(X)`.

        The softmax of `decision_function`, with distances in units of `spread_`: 1/2 each on a boundary
        between two classes, and close to 1 a few standard deviations away from it. It is not calibrated.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X))
        if len(self.classes_) == 2:
            with np.errstate(over="ignore"):  # of distances near the largest number, whose share is 0 or 1
                scores = np.clip(scores / self.spread_, -LARGEST, LARGEST)
        return np.asarray(softmax(scores, axis=1))

    def _scores(self, rows: RowSet) -> FloatArray:
        """Return the scores of `decision_function`, of shape (n_rows, n_classes)."""
        planes = [between.split.boundary for between in self.boundaries_]
        distances = rows.map(lambda block: np.stack([plane.distances(block) for plane in planes], axis=1)).T
        if not np.isfinite(distances).all():
            raise not_finite()
        if len(self.classes_) == 2:
            return np.column_stack([-distances[0], distances[0]])
        return self.votes(distances)

    def votes(self, distances: FloatArray) -> FloatArray:
        """Return the votes of `decision_function` from the distances (pairs, rows) to all boundaries."""
        votes = np.zeros((distances.shape[1], len(self.classes_)))
        distances = np.clip(distances, -LARGEST, LARGEST)  # three times their sum is finite
        sums = np.zeros_like(votes)
        for between, distance in zip(self.boundaries_, distances, strict=True):
            a, b = between.left, between.right
            votes[:, a] += distance <= 0
            votes[:, b] += distance > 0
            sums[:, a] -= distance
            sums[:, b] += distance
        sums /= self.spread_
        return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))

    def _to_parts(self) -> Parts:
        """Return what a model file stores: the boundaries, but not the classes of the training rows."""
        facts, arrays = splits_to_parts([between.split for between in self.boundaries_])
        return {**facts, "spread": self.spread_}, {**arrays, "classes": self.classes_}

    def _from_parts(self, stored: Stored, n_columns: int) -> None:
        """Restore the boundaries from a model file; the rows or mapped rows have `n_columns`."""
        self.classes_ = classes_from(stored)
        self.spread_ = stored.number("spread", low=sys.float_info.min)
        splits = splits_from(stored, n_columns)
        planes = all(isinstance(split.boundary, Hyperplane) for split in splits)
        require(planes, "splits", "hyperplanes in a classifier", "other boundaries")
        n_classes = len(self.classes_)
        n_pairs = n_classes * (n_classes - 1) // 2
        require(len(splits) == n_pairs, "splits", f"{n_pairs}, one per pair of classes", f"{len(splits)}")
        pairs = itertools.combinations(range(n_classes), 2)
        self.boundaries_ = [ClassBoundary(*pair, split) for pair, split in zip(pairs, splits, strict=True)]
        self._set_planes()

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, without rows."""
        super()._check_parameters(n_columns)
        check_choice("outliers", self.outliers, OUTLIERS)
        check_bool("supervised_fallback", self.supervised_fallback)
        self._method((0,))

    def _method(self, right: tuple[int, ...]) -> ProjectionMethod:
        """Check the parameters of a search and return it; it has these classes on the right."""
        given = np.ravel(np.array(self.gammas, dtype=object)).tolist()
        gammas = [check_real("gammas", gamma, 0) for gamma in given]
        if not gammas:
            raise InvalidInputError("gammas is empty; give at least one weight for the labels")
        schedule = MinimumDensitySchedule(
            check_real("bandwidth_factor", self.bandwidth_factor, 0),
            check_real("alpha_max", self.alpha_max, 0),
            n_alphas=N_ALPHAS,
        )
        return ProjectionMethod(
            schedule,
            right=right,
            named_sides=True,
            gammas=gammas,
            n_init=check_int("n_init", self.n_init, 1),
            max_iter=check_int("max_iter", self.max_iter, 0),
        )
