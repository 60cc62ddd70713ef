"""The base of all estimators: parameters of all of them, checked rows, kernel maps, warnings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ravine._validate import (
    FloatArray,
    IntArray,
    check_jobs,
    check_rows,
    check_standardize,
    check_weights,
    listed,
    make_rng,
)
from ravine.data.blocks import NO_NUMBERS
from ravine.data.node import Node, open_node
from ravine.data.query import RowSet, run
from ravine.data.rows import is_dask, length, rows_of, scales_columns
from ravine.data.threads import one_blas_thread
from ravine.exceptions import (
    DiscreteColumnWarning,
    InvalidInputError,
    OneClusterWarning,
    OutlierWarning,
    warn_caller,
)
from ravine.features.diffusion import fit_diffusion_map
from ravine.features.feature_map import FeatureMap, make_mapped_rows
from ravine.features.kernel_map import check_kernel, fit_kernel_map
from ravine.split.far import FarRows, find_far
from ravine.split.split import MADE_BY, NO_VALLEY
from ravine.tree.export import names_of
from ravine.tree.summary import why_one_cluster
from ravine.tree.tree import ClusterTree


@dataclass(eq=False, repr=False, kw_only=True)
class RowsEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of all estimators: rows of numbers, or rows mapped into the feature space of a kernel.

    Subclasses are dataclasses, with the parameters as fields. What they share is described here only.

    Parameters
    ----------
    standardize : bool or "auto", default "auto"
        Scale every column to unit variance. The data are not copied. "auto" does so unless the rows are a
        sparse matrix: its columns, such as the words of a text, share a unit, and scaling would give the
        rarest of them the largest values.
    kernel : str or callable, optional
        Search for hyperplanes in the feature space of a kernel: "rbf", "polynomial", "cosine", "laplacian" or
        another kernel of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See
        docs/kernels.md.
    kernel_params : dict, optional
        Parameters of the kernel, such as gamma, and `n_components` and `landmarks` of its feature map.
    random_state : int, Generator or None
        Source of samples (above 16384 rows), of starts and of power iterations (above 256 features). None is
        a fixed seed: the same data give the same result.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    feature_map_ : FeatureMap or None
        With a kernel, the map from rows to the feature space. It stores its landmarks; `nbytes` is its size.
    outliers_ : ndarray of int
        Numbers of the rows far from all others, which were left out of the searches: rows more than ten
        scales from the median of a column, alone or in a group of less than 2 % of the rows, if they would
        distort the scales of the columns. A warning says if they lie together.
    n_iter_ : int
        Iterations of the searches that were chosen, over all splits.
    n_passes_ : float
        Rows read during the fit, divided by the number of rows. It may vary with several threads, which also
        read leaves that turn out not to be divided.
    n_features_in_, feature_names_in_
        The columns seen in `fit`.
    """

    standardize: bool | Literal["auto"] = "auto"
    kernel: str | Callable[..., Any] | None = None
    kernel_params: Mapping[str, Any] | None = None
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None

    @property
    def _map_params(self) -> Mapping[str, Any] | None:
        """The parameters of the kernel and its map, to which a subclass may add."""
        return self.kernel_params

    @property
    def _follow_neighbors(self) -> bool:
        """Whether searches also start from a neighbor graph, as feature spaces have many dimensions.

        The components of "diffusion" already come from such a graph.
        """
        return self.kernel is not None and not (isinstance(self.kernel, str) and self.kernel == "diffusion")

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Restore the result of the previous fit, the attributes that end with "_", if this one fails."""
        state = self.__dict__
        before = {name: value for name, value in state.items() if name.endswith("_")}
        try:
            yield
        except BaseException:
            for name in [name for name in state if name.endswith("_")]:
                del state[name]
            state.update(before)
            raise

    def _root(self, X: Any, rows: RowSet, min_weight: float) -> Node:
        """Return the node of all rows, with the seed of this fit.

        With a kernel the search does not scale columns: rows were scaled before they were mapped.
        """
        standardize = self.kernel is None and scales_columns(self.standardize, X)
        seed = int(self._rng().integers(2**63))
        return Node(rows, (seed,), min_weight, standardize)

    def _rng(self) -> np.random.Generator:
        """Return the generator for samples and random starts, with a fixed seed by default."""
        return make_rng(0 if self.random_state is None else self.random_state)

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, but without rows; the rows or mapped rows have `n_columns`.

        Used when a model file is loaded. Each estimator adds its own parameters.
        """
        check_standardize(self.standardize)
        self._check_kernel()
        self._rng()
        check_jobs(self.n_jobs)

    def _check_kernel(self) -> Mapping[str, Any]:
        """Check the kernel and its parameters, and return these; none without a kernel."""
        if self.kernel_params is not None and not isinstance(self.kernel_params, Mapping):
            raise InvalidInputError(f"kernel_params has to be a dict, got {self.kernel_params!r}")
        return {} if self.kernel is None else check_kernel(self.kernel, self._map_params)

    def _checked(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, FloatArray | None]:
        """Check rows and weights without reading the rows: the first pass finds NaN and infinity."""
        if is_dask(X):
            from ravine.data.dask_engine import DaskSource

            X = DaskSource(X)
        X = self._check_objects(X, reset) if callable(self.kernel) else check_rows(X, self, reset=reset)
        if reset:
            for name in ("cut_values_", "fill_"):  # of an earlier fit: not every one sets them
                self.__dict__.pop(name, None)
        n_rows, needed = length(X), 2 if reset else 1
        if n_rows < needed:
            raise InvalidInputError(
                f"X has {n_rows} sample(s), but {type(self).__name__} needs at least {needed}; add more rows"
            )
        if is_dask(sample_weight):
            sample_weight = sample_weight.compute()
        return X, check_weights(sample_weight, n_rows)

    def _check_objects(self, X: Any, reset: bool) -> Any:
        """Return rows that only the user's kernel can read: strings, records, a data frame."""
        if not hasattr(X, "shape"):
            rows = np.empty(len(X), dtype=object)
            rows[:] = list(X)
            X = rows
        if reset:
            self.n_features_in_ = int(X.shape[1]) if len(X.shape) > 1 else 1
            self.__dict__.pop("feature_names_in_", None)  # those of an earlier fit
        return X

    def _fit_map(self, X: Any, weights: FloatArray | None, n_groups: int | str) -> None:
        """Fit the feature map of the kernel, if there is one, for this number of clusters or classes."""
        self.feature_map_: FeatureMap | None = None
        standardize = scales_columns(self.standardize, X)
        given = self._check_kernel()
        if self.kernel is None:
            return
        rng = self._rng()
        with one_blas_thread():
            if isinstance(self.kernel, str) and self.kernel == "diffusion":
                self.feature_map_ = fit_diffusion_map(
                    X,
                    weights,
                    given,
                    standardize=standardize,
                    weight_counts=check_standardize(self.standardize) is not False,
                    n_clusters=n_groups,
                    rng=rng,
                )
            else:
                self.feature_map_ = fit_kernel_map(
                    X, weights, self.kernel, given, standardize=standardize, rng=rng
                )

    def _set_aside(
        self,
        X: Any,
        weights: FloatArray | None,
        kept: npt.NDArray[np.bool_] | None = None,
        *,
        include: bool = False,
    ) -> tuple[FloatArray | None, FarRows | None, IntArray]:
        """Find the rows far from everything, and return the weights with 0 for them, except where `kept`.

        Also returns the rule for such rows, and their numbers. With `include` no row is far.
        """
        if include or callable(self.kernel) or self.kernel == "precomputed":
            return weights, None, NO_NUMBERS
        with one_blas_thread():
            node = Node(rows_of(X, weights), (0,), standardize=scales_columns(self.standardize, X))
            rule = run(find_far(run(open_node(node, []))))
        if rule is None:
            return weights, None, NO_NUMBERS
        far = self._far(X, rule)
        if kept is not None:
            far &= ~kept
        return np.where(far, 0.0, 1.0 if weights is None else weights), rule, np.flatnonzero(far)

    def _note_outliers(self, rule: FarRows | None, numbers: IntArray) -> None:
        """Store which rows are far from everything, with a warning if there are any."""
        self.outlier_rule_, self.outliers_ = rule, numbers
        warn_about_outliers(numbers)

    def _far(self, X: Any, rule: FarRows) -> npt.NDArray[np.bool_]:
        """Return which rows are far from everything; one pass."""
        return np.asarray(rows_of(X, None).map(lambda block: rule.distances(block) > 0))

    def _blocks(self, X: Any, weights: FloatArray | None) -> RowSet:
        """Return checked rows as blocks, mapped if there is a kernel."""
        n_jobs = effective_n_jobs(check_jobs(self.n_jobs))
        if self.feature_map_ is None:
            return rows_of(X, weights, n_jobs)
        with one_blas_thread():
            return make_mapped_rows(X, weights, self.feature_map_, n_jobs)

    def _rows(self, X: Any, sample_weight: Any = None) -> RowSet:
        """Return new rows as blocks, for a fitted estimator."""
        return self._blocks(*self._checked(X, sample_weight, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def lazy_for_dask(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method with one result per row return a lazy array of the same chunks for a dask collection."""

    @wraps(method)
    def of_rows(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        from ravine.data.dask_engine import map_rows

        check_is_fitted(self)
        light = copy.copy(self)
        for name in ("labels_", "transduction_"):  # tasks do not need what there is for every training row
            light.__dict__.pop(name, None)
        return map_rows(X, getattr(light, method.__name__))

    return of_rows


# --- what a fit warns about, and what to try ---


def warn_about_weights(rows: RowSet, min_weight: float) -> None:
    """Warn about weights that are no counts: a weight of k stands for k copies of a row."""
    if rows.total < 2 * min_weight <= rows.shape[0]:
        warn_caller(
            f"the weights add up to {rows.total:g} rows, too few to split: a weight of k counts as k copies "
            "of a row; scale the weights to a mean of 1"
        )


def warn_about_outliers(numbers: IntArray) -> None:
    """Warn about rows far from all others."""
    if len(numbers) == 0:
        return
    which = f"row {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} rows ({listed(numbers)}) are"
    warn_caller(
        f"{which} far from all others, and left out of the searches; see outliers_, and check for "
        "missing values that are coded as a number, or for a small cluster",
        OutlierWarning,
    )


def warn_about_constants(constant: npt.NDArray[np.bool_]) -> None:
    """Warn about columns that have the same value in all rows."""
    if constant.any():
        warn_caller(f"{int(constant.sum())} of {len(constant)} columns are constant and were ignored")


def warn_about_splits(model: Any, interrupted: bool) -> None:
    """Warn about splits of one discrete column or without a valley, one cluster, or fewer than requested."""
    _warn_discrete(model.tree_)
    if interrupted:
        return
    if model.n_clusters == "auto":
        if model.n_clusters_ == 1 and model.max_depth is None:
            warn_caller(OneClusterWarning(why_one_cluster(model.tree_, model.level), _next_step(model)))
        return
    forced = sum(split is not None and NO_VALLEY in split.facts for split in model.tree_.splits)
    if forced:
        warn_caller(
            f"{forced} of {model.n_clusters_ - 1} splits have no valley: the rows show fewer than "
            f"{model.n_clusters} clusters; see the tree",
            ConvergenceWarning,
        )
    if model.n_clusters_ < model.n_clusters:
        warn_caller(
            f"found {model.n_clusters_} of {model.n_clusters} clusters: {_limit_of(model)}",
            ConvergenceWarning,
        )


def _limit_of(model: Any) -> str:
    """Return what kept a tree from having as many clusters as were asked for."""
    for name in ("max_depth", "min_cluster_size"):
        if getattr(model, name) is not None:
            return f"{name}={getattr(model, name)} allows no further split"
    if model.outliers == "label" and len(model.outliers_):
        return "rows far from all others are no clusters with outliers='label'"
    return "no other leaf has rows that differ, or a split with enough rows on both sides"


def _next_step(model: Any) -> str:
    """Return what to try where one cluster was found."""
    others = [name for name in ("MinimumDensity", "SpectralConnectivity") if name != type(model).__name__]
    kernel = ' or kernel="diffusion"' if model.kernel is None else ""
    return f"set n_clusters, try {others[0]}{kernel}, or look at the data with ravine.check"


def _warn_discrete(tree: ClusterTree) -> None:
    """Warn about splits that one discrete column makes, and name the columns."""
    made = [split for split in tree.splits if split is not None and MADE_BY in split.facts]
    if not made:
        return
    names = names_of(tree, None)
    columns = list(dict.fromkeys(int(split.facts[MADE_BY]) for split in made))
    reason = f"{len(made)} of {tree.n_leaves - 1} splits run between the values of one discrete column"
    warn_caller(DiscreteColumnWarning(reason, columns, listed([names[j] for j in columns])))
