"""What every estimator does at its door: check the rows, fit the map of a kernel, and see rows as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ravine._validate import FloatArray, check_bool, check_jobs, check_weights, checked_csr, make_rng
from ravine.data.blocks import ArrayBlocks, one_blas_thread
from ravine.data.feature_map import FeatureMap, check_kernel, length, mapped_blocks
from ravine.exceptions import InvalidInputError
from ravine.io.on_disk import FileMatrix


class RowsEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator of rows, seen as they are or through the feature map of a kernel."""

    feature_map_: FeatureMap | None
    n_features_in_: int

    standardize: bool
    kernel: Any
    kernel_params: Mapping[str, Any] | None
    random_state: Any
    n_jobs: int | None

    @property
    def _standardize(self) -> bool:
        """Whether the splitter scales columns: with a kernel, rows are scaled before they are mapped."""
        return check_bool("standardize", self.standardize) and self.kernel is None

    @property
    def _follow_neighbors(self) -> bool:
        """Whether pursuits also start from a graph of neighbors: in a feature space, which is wide.

        The components of "diffusion" come from such a graph already.
        """
        return self.kernel is not None and not (isinstance(self.kernel, str) and self.kernel == "diffusion")

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Leave what was fitted before as it was, where a fit is refused or fails."""
        before = self._fitted()
        try:
            yield
        except BaseException:
            for name in self._fitted():
                delattr(self, name)
            for name, value in before.items():
                setattr(self, name, value)
            raise

    def _fitted(self) -> dict[str, Any]:
        """Return what a fit leaves on the estimator: all names that end with an underscore."""
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def _rng(self) -> np.random.Generator:
        """Return the source of samples and further starts: a fixed one by default."""
        return make_rng(0 if self.random_state is None else self.random_state)

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, without rows, for so many columns of these or of their map.

        A model file is not trusted. Each estimator adds its own parameters.
        """
        check_bool("standardize", self.standardize)
        if self.kernel is not None:
            check_kernel(self.kernel, self.kernel_params)
        elif self.kernel_params is not None and not isinstance(self.kernel_params, Mapping):
            raise InvalidInputError(f"kernel_params has to be a dict, got {self.kernel_params!r}")
        self._rng()
        check_jobs(self.n_jobs)

    def _checked(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, FloatArray | None]:
        """Check rows and weights without reading all rows: NaN and infinity are found in the first pass."""
        X = self._checked_objects(X, reset) if callable(self.kernel) else self._checked_numbers(X, reset)
        n_rows, needed = length(X), 2 if reset else 1
        if n_rows < needed:
            raise InvalidInputError(
                f"found {n_rows} sample(s), and {type(self).__name__} needs at least {needed}: bring more rows"
            )
        return X, check_weights(sample_weight, n_rows)

    def _fit_map(self, X: Any, weights: FloatArray | None, n_groups: int | str) -> None:
        """Fit the map of the kernel, where there is one, to checked rows that fall into so many groups."""
        from ravine.data.diffusion import fit_diffusion_map
        from ravine.data.feature_map import fit_kernel_map

        self.feature_map_ = None
        standardize = check_bool("standardize", self.standardize)
        given = check_kernel(self.kernel, self.kernel_params)
        if self.kernel is None:
            return
        rng = self._rng()
        with one_blas_thread():
            if isinstance(self.kernel, str) and self.kernel == "diffusion":
                self.feature_map_ = fit_diffusion_map(
                    X, weights, given, standardize=standardize, n_clusters=n_groups, rng=rng
                )
            else:
                self.feature_map_ = fit_kernel_map(
                    X, weights, self.kernel, given, standardize=standardize, rng=rng
                )

    def _blocks(self, X: Any, weights: FloatArray | None) -> ArrayBlocks:
        """Return checked rows as blocks, mapped where there is a kernel."""
        n_jobs = effective_n_jobs(check_jobs(self.n_jobs))
        if self.feature_map_ is None:
            return ArrayBlocks(X, weights, n_jobs)
        with one_blas_thread():
            return mapped_blocks(X, weights, self.feature_map_, n_jobs)

    def _rows(self, X: Any, sample_weight: Any = None) -> ArrayBlocks:
        """Return new rows as blocks, for a fitted estimator."""
        return self._blocks(*self._checked(X, sample_weight, reset=False))

    def _checked_objects(self, X: Any, reset: bool) -> Any:
        """Return rows that only the user's kernel understands: strings, records, a data frame."""
        if not hasattr(X, "shape"):
            rows = np.empty(len(X), dtype=object)
            rows[:] = list(X)
            X = rows
        if reset:
            self.n_features_in_ = int(X.shape[1]) if len(X.shape) > 1 else 1
        return X

    def _checked_numbers(self, X: Any, reset: bool) -> Any:
        """Return rows of numbers; a CSR matrix has its entries in order and once."""
        if isinstance(X, FileMatrix):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        try:
            return validate_data(
                self,
                checked_csr(X) if sparse.issparse(X) else X,
                reset=reset,
                accept_sparse="csr",
                dtype="numeric",
                ensure_all_finite=False,
                ensure_min_samples=0,  # `_checked` says it for rows of every kind
            )
        except ValueError as error:
            raise InvalidInputError(str(error)) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
