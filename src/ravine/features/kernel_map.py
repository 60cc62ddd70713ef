"""Kernels between rows, and kernel principal components: a map of rows into the feature space of a kernel.

Yates, Pavlidis: Minimum Density Hyperplanes in the Feature Space. IEEE SSCI, 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, check_choice, check_int, check_real, not_finite
from ravine.data.rows import length, take, weights_of
from ravine.data.standardization import LARGEST, Standardization
from ravine.exceptions import InvalidInputError
from ravine.features.feature_map import (
    MAP_ROWS,
    FeatureMap,
    choose_rows,
    column_signs,
    eigh_descending,
    measure_columns,
)
from ravine.features.neighbors import NEIGHBORS, nth_nearest, weighted_median

EXACT_ROWS = 2500  # most rows for exact kernel principal components; above, landmarks (Nystroem)
LANDMARKS = 500  # least number of landmarks
MOMENT_ROWS = 8192  # rows that give the mean and the components if there are landmarks; a choice
RANK_TOLERANCE = 1e-9  # share of the largest eigenvalue: components with smaller ones are rounding
MAP_PARAMETERS = ("n_components", "landmarks")  # parameters of the map, which every kernel takes
TAKE_SPARSE = ("rbf", "polynomial", "poly", "linear", "cosine", "sigmoid")  # kernels of CSR rows
NOT_NEGATIVE = ("chi2", "additive_chi2")  # kernels that need values of at least 0

KernelFunction = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """A kernel between rows and landmarks.

    Named kernels take scaled rows; a callable takes raw rows and returns the matrix k(row, landmark). For
    "precomputed", rows are similarities to the training rows, and landmarks are column numbers.
    """

    kind: str | KernelFunction
    parameters: Mapping[str, Any]
    standardization: Standardization | None

    def prepare(self, rows: Any) -> Any:
        """Return rows in the form that the kernel takes: scaled, or raw; CSR where the kernel takes that."""
        own = self.standardization
        if own is None:
            return rows
        writes_out = sparse.issparse(rows) and self.kind not in TAKE_SPARSE
        scaled = own.apply_checked(rows.toarray() if writes_out else rows)
        if self.kind in NOT_NEGATIVE and scaled.min(initial=0.0) < 0:
            hint = (
                "standardized columns have negative ones: fit with standardize=False"
                if own.mean.any()
                else "X has negative ones: shift them, or use another kernel such as rbf"
            )
            raise InvalidInputError(f"kernel={self.kind!r} needs values of at least 0, and {hint}")
        return scaled

    def __call__(self, prepared: Any, landmarks: Any) -> FloatArray:
        """Return the similarity of every row to every landmark."""
        if isinstance(self.kind, str):
            if self.kind == "precomputed":
                columns = prepared[:, landmarks]
                columns = columns.toarray() if sparse.issparse(columns) else columns
                matrix = np.asarray(columns, dtype=np.float64)
            else:
                from sklearn.metrics.pairwise import pairwise_kernels

                with np.errstate(over="ignore", invalid="ignore"):  # raises below
                    matrix = pairwise_kernels(prepared, landmarks, metric=self.kind, **self.parameters)
        else:
            matrix = np.asarray(self.kind(prepared, landmarks, **self.parameters), dtype=np.float64)
            if matrix.shape != (length(prepared), length(landmarks)):
                raise InvalidInputError(
                    f"kernel(A, B) has to return an array of shape {(length(prepared), length(landmarks))}, "
                    f"one row for each of A and one column for each of B, got shape {matrix.shape}"
                )
        if not (np.abs(matrix) <= LARGEST).all():
            raise not_finite(what="Input X, or the kernel matrix of X,", limit=LARGEST)
        return np.asarray(matrix, dtype=np.float64)

    def with_gamma(self, points: Any, weights: FloatArray) -> Kernel:
        """Return the kernel with a number for gamma, if it has one and it is "auto"."""
        if "gamma" not in kernel_parameters(str(self.kind)) or self.parameters.get("gamma", "auto") != "auto":
            return self
        if self.kind == "rbf":
            gamma = 0.5 / rbf_width(points, weights) ** 2
        else:
            gamma = 1.0 / points.shape[1]
        return replace(self, parameters={**self.parameters, "gamma": gamma})


@dataclass(frozen=True, repr=False)
class KernelMap(FeatureMap):
    r"""Kernel principal components: phi(x) = k(x, landmarks) A - shift.

    With all training rows as landmarks, of weights p (sum 1), the weighted centered kernel matrix
    diag(p)^(1/2) K_c diag(p)^(1/2) = U L U' gives A = diag(p)^(1/2) U L^(-1/2): then phi has mean 0 and
    covariance L over the training rows. Each column of A sums to 0, so the mean of k(x, .), which centering
    subtracts for a new row, cancels. With fewer landmarks (Nystroem), K_mm = V S V' gives psi(x) =
    k(x, landmarks) V S^(-1/2), and A = V S^(-1/2) Q rotates it to its principal components.
    """

    kernel: Kernel
    landmarks: Any
    coefficients: FloatArray
    shift: FloatArray

    def __call__(self, rows: Any) -> FloatArray:
        """Return the components of some rows."""
        similar = self.kernel(self.kernel.prepare(rows), self.landmarks)
        return np.asarray(similar @ self.coefficients - self.shift)

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        own = self.kernel.standardization
        return np.zeros(0, dtype=bool) if own is None else own.constant

    def facts(self) -> dict[str, Any]:
        if not isinstance(self.kernel.kind, str):
            raise InvalidInputError(
                "a model whose kernel is a function cannot be saved: use a named kernel of scikit-learn, or "
                'fit with kernel="precomputed"'
            )
        return {"kind": self.kernel.kind, "parameters": dict(self.kernel.parameters)}

    def arrays(self) -> dict[str, Any]:
        found = {
            "map_landmarks": self.landmarks,
            "map_coefficients": self.coefficients,
            "map_shift": self.shift,
        }
        own = self.kernel.standardization
        return (
            found if own is None else {**found, "map_mean": own.mean, "map_inverse_scale": own.inverse_scale}
        )


def fit_kernel_map(
    X: Any,
    weights: FloatArray | None,
    kernel: str | KernelFunction,
    given: Mapping[str, Any],
    *,
    standardize: bool,
    rng: np.random.Generator,
) -> KernelMap:
    """Fit kernel principal components: exactly for few rows, by Nystroem's approximation for many."""
    parameters = {name: value for name, value in given.items() if name not in MAP_PARAMETERS}
    n = length(X)
    if kernel == "precomputed" and X.shape[1] != n:
        raise InvalidInputError(
            f'kernel="precomputed" is fitted on a square matrix k(row, row), got shape {X.shape}'
        )
    counted = n if weights is None else int(np.count_nonzero(weights > 0))
    wanted = given.get("landmarks", "auto")
    if isinstance(wanted, str):  # a pass computes no more similarities than if exact
        wanted = counted if counted <= EXACT_ROWS else max(LANDMARKS, EXACT_ROWS**2 // counted)
    chosen = choose_rows(n, weights, wanted, rng)
    named = isinstance(kernel, str) and kernel != "precomputed"
    similar = Kernel(kernel, parameters, measure_columns(X, weights, standardize) if named else None)
    prepared = similar.prepare(take(X, chosen))
    landmarks: Any = chosen
    if kernel != "precomputed":  # few, so their zeros are written out: a model file stores them so
        landmarks = prepared = prepared.toarray() if sparse.issparse(prepared) else prepared
    if named:
        some = choose_rows(n, weights, EXACT_ROWS, rng)
        similar = similar.with_gamma(similar.prepare(take(X, some)), weights_of(weights, some))
    matrix = similar(prepared, landmarks)
    matrix = (matrix + matrix.T) / 2
    n_components = given.get("n_components")
    if len(chosen) == counted:
        coefficients, shift = exact_components(matrix, weights_of(weights, chosen), n_components)
    else:
        rows = choose_rows(n, weights, MOMENT_ROWS, rng)
        pieces = (rows[a : a + MAP_ROWS] for a in range(0, len(rows), MAP_ROWS))
        across = np.concatenate([similar(similar.prepare(take(X, some)), landmarks) for some in pieces])
        coefficients, shift = nystroem_components(matrix, across, weights_of(weights, rows), n_components)
    return KernelMap(similar, landmarks, coefficients, shift)


def exact_components(
    matrix: FloatArray, weights: FloatArray, n_components: int | float | None
) -> tuple[FloatArray, FloatArray]:
    """Return A and the shift of `KernelMap` for a kernel matrix between all (weighted) rows."""
    p = weights / weights.sum()
    mean = p @ matrix
    centered = matrix - mean[:, None] - mean[None, :] + p @ mean
    root = np.sqrt(p)
    values, vectors = eigh_descending(root[:, None] * centered * root[None, :])
    r = n_kept(values, n_components)
    if r == 0:
        return np.zeros((len(p), 1)), np.zeros(1)
    points = vectors[:, :r] / root[:, None]  # up to a factor; their signs are the same for copies and weights
    coefficients = root[:, None] * vectors[:, :r] / np.sqrt(values[:r]) * column_signs(points)
    coefficients -= p[:, None] * coefficients.sum(axis=0)  # the sum is 0 up to rounding
    return coefficients, mean @ coefficients


def nystroem_components(
    matrix: FloatArray, across: FloatArray, weights: FloatArray, n_components: int | float | None
) -> tuple[FloatArray, FloatArray]:
    """Return A and the shift from the kernel between landmarks, and between some rows and the landmarks."""
    values, vectors = eigh_descending(matrix)
    r = n_kept(values, None)
    if r == 0:
        return np.zeros((len(matrix), 1)), np.zeros(1)
    to_psi = vectors[:, :r] / np.sqrt(values[:r])
    psi = across @ to_psi
    p = weights / weights.sum()
    mean = p @ psi
    psi -= mean
    variances, turned = eigh_descending((psi.T * p) @ psi)
    r = max(1, n_kept(variances, n_components))
    turned = turned[:, :r] * column_signs(turned[:, :r])
    return to_psi @ turned, mean @ turned


def n_kept(eigenvalues: FloatArray, n_components: int | float | None) -> int:
    """Return how many components to keep, from eigenvalues in descending order."""
    rank = int((eigenvalues > RANK_TOLERANCE * max(eigenvalues[0], 0.0)).sum())
    if rank == 0 or n_components is None:
        return rank
    if isinstance(n_components, float):
        share = np.cumsum(eigenvalues[:rank]) / eigenvalues[:rank].sum()
        return min(rank, int(np.searchsorted(share, n_components - 1e-12)) + 1)
    return min(rank, n_components)


def kernel_names() -> list[str]:
    """Return the names of all kernels."""
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return sorted([*PAIRWISE_KERNEL_FUNCTIONS, "diffusion", "precomputed"])


def kernel_parameters(kernel: str) -> tuple[str, ...]:
    """Return the names of the parameters of a named kernel, without those of the map."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS

    if kernel == "diffusion":
        return "n_neighbors", "diffusion_time", "metric"
    return tuple(sorted(KERNEL_PARAMS.get(kernel, ())))


def check_kernel(kernel: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the parameters of a kernel and return them."""
    given = given or {}
    if callable(kernel):  # its own parameters are not known here
        return {
            **given,
            **{name: _check_given(name, given[name]) for name in MAP_PARAMETERS if name in given},
        }
    if kernel not in kernel_names():
        raise InvalidInputError(
            f"kernel has to be None, a function or one of {', '.join(map(repr, kernel_names()))}, "
            f"got {kernel!r}"
        )
    known = (*kernel_parameters(kernel), *MAP_PARAMETERS)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidInputError(
            f"kernel_params for kernel={kernel!r} may hold {', '.join(map(repr, known))}, got {unknown[0]!r}"
        )
    return {name: _check_given(name, value) for name, value in given.items()}


def _check_given(name: str, value: Any) -> Any:
    is_auto = name in ("gamma", "landmarks") and isinstance(value, str) and value == "auto"
    return value if is_auto else check_kernel_parameter(name, value)


def check_kernel_parameter(name: str, value: Any) -> Any:
    """Check a parameter of a named kernel or of its map, other than "auto", and return it."""
    if name == "gamma":
        return check_real(name, value, 0, or_else='"auto"')
    if name == "degree":
        return check_real(name, value, 1, open_low=False)
    if name == "coef0":
        return check_real(name, value, -np.inf)
    if name == "n_neighbors":
        return check_int(name, value, 2)
    if name == "diffusion_time":
        return check_real(name, value, 0, open_low=False)
    if name == "metric":
        return check_metric(value)
    if name == "n_components":
        return check_components(value)
    return None if value is None else check_int(name, value, 2, or_else='"auto" or None (all rows)')


def check_metric(value: Any) -> str:
    """Return how the neighbors of kernel="diffusion" are compared: by distance, or by angle."""
    return check_choice("metric", value, ("euclidean", "cosine"))


def check_components(value: Any) -> int | float | None:
    """Return None (all), a number of components, or the share of the variance that they explain."""
    if value is None:
        return None
    if isinstance(value, float | np.floating):
        return check_real("n_components", value, 0, 1, or_else="a whole number, or None")
    return check_int("n_components", value, 1, or_else="a share below 1, or None")


def rbf_width(points: Any, weights: FloatArray) -> float:
    """Return the width sigma of exp(-|x - y|^2 / (2 sigma^2)) that is used without labels.

    Twice the median distance to the tenth nearest row (a row of weight k has k - 1 copies at distance 0), or,
    if that is 0 because most rows have ten copies, the square root of the number of columns.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    nearest = np.empty(points.shape[0])
    for a in range(0, len(nearest), MAP_ROWS):
        with np.errstate(over="ignore", invalid="ignore"):  # raises below
            distances = euclidean_distances(points[a : a + MAP_ROWS], points)
        distances[np.arange(len(distances)), np.arange(a, a + len(distances))] = 0.0
        nearest[a : a + MAP_ROWS] = nth_nearest(distances, weights, NEIGHBORS)
    width = 2.0 * weighted_median(nearest, weights)
    if width != 0 and not np.sqrt(1.0 / LARGEST) < width < np.sqrt(LARGEST):
        raise InvalidInputError(
            f"distances between rows are about {width / 2:.3g}, and their squares are out of the range of "
            "floats; scale X, for instance with standardize=True"
        )
    return width if width > 0 else float(np.sqrt(points.shape[1]))
