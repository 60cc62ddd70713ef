"""Kernels between rows: their names, their parameters, and the matrix of similarities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, check_choice, check_int, check_real, not_finite
from ravine.data.any_rows import length
from ravine.data.block_engine import rows_of
from ravine.data.node import Node, measure
from ravine.data.query import run
from ravine.data.standardization import LARGEST
from ravine.exceptions import InvalidInputError
from ravine.features.neighbors import nth_nearest, weighted_median

MAP_ROWS = 1024  # rows that are mapped at a time, which bounds the memory of the kernel matrix
WIDTH_NEIGHBORS = 10  # the width of the RBF kernel comes from the distance to this neighbor
KernelFunction = Callable[..., Any]
MAP_PARAMETERS = ("n_components", "landmarks")  # parameters of the map, which every kernel takes
TAKE_SPARSE = ("rbf", "polynomial", "poly", "linear", "cosine", "sigmoid")  # kernels of CSR rows
NOT_NEGATIVE = ("chi2", "additive_chi2")  # kernels that need values of at least 0


@dataclass(frozen=True)
class Scaling:
    """z = (x - mean) * inverse_scale; constant columns have inverse_scale 0."""

    mean: FloatArray
    inverse_scale: FloatArray

    def __call__(self, rows: Any) -> FloatArray:
        """Return scaled rows as an array."""
        dense = rows.toarray() if sparse.issparse(rows) else rows
        with np.errstate(over="ignore", invalid="ignore"):  # raises below
            scaled = (np.asarray(dense, dtype=np.float64) - self.mean) * self.inverse_scale
        usable = np.abs(scaled) <= LARGEST
        if not usable.all():
            raise not_finite(np.flatnonzero(~usable.all(axis=0)), limit=LARGEST)
        return scaled

    def sparse(self, rows: Any) -> Any:
        """Return scaled CSR rows as CSR, without their means, which have to be 0."""
        scaled = sparse.csr_array(rows @ sparse.diags_array(self.inverse_scale), dtype=np.float64)
        usable = np.abs(scaled.data) <= LARGEST
        if not usable.all():
            raise not_finite(np.unique(scaled.indices[~usable]), limit=LARGEST)
        return scaled


def scaling_of(X: Any, weights: FloatArray | None, standardize: bool) -> Scaling:
    """Return the scaling of the weighted rows: standardization, or only without constant columns.

    Raises on NaN and infinity.
    """
    standardization = run(measure(Node(rows_of(X, weights)))).standardization
    if standardize:
        return Scaling(standardization.mean, standardization.inverse_scale)
    return Scaling(np.zeros(len(standardization.mean)), np.where(standardization.constant, 0.0, 1.0))


@dataclass(frozen=True)
class Kernel:
    """A kernel between rows and landmarks.

    Named kernels take scaled rows; a callable takes raw rows and returns the matrix k(row, landmark). For
    "precomputed", rows are similarities to the training rows, and landmarks are column numbers.
    """

    kind: str | KernelFunction
    parameters: Mapping[str, Any]
    scaling: Scaling | None

    def prepare(self, rows: Any) -> Any:
        """Return rows in the form that the kernel takes: scaled, or raw; CSR where the kernel takes that."""
        if self.scaling is None:
            return rows
        if sparse.issparse(rows) and self.kind in TAKE_SPARSE and not self.scaling.mean.any():
            return self.scaling.sparse(rows)
        scaled = self.scaling(rows)
        if self.kind in NOT_NEGATIVE and scaled.min(initial=0.0) < 0:
            hint = (
                "standardized columns have negative ones: fit with standardize=False"
                if self.scaling.mean.any()
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
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInputError(f"kernel_params has to be a dict, got {given!r}")
    given = dict(given or {})
    if kernel is None or callable(kernel):
        return given
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
    for name, value in given.items():
        if not (name in ("gamma", "landmarks") and isinstance(value, str) and value == "auto"):
            check_kernel_parameter(name, value)
    return given


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


def with_gamma(
    kernel: str, parameters: Mapping[str, Any], points: Any, weights: FloatArray
) -> dict[str, Any]:
    """Return the parameters with a number for gamma if it is "auto"."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS

    found = dict(parameters)
    if "gamma" not in KERNEL_PARAMS.get(kernel, ()):
        return found
    if isinstance(found.get("gamma", "auto"), str):
        if found.get("gamma", "auto") != "auto":
            raise InvalidInputError(f'gamma has to be a number above 0 or "auto", got {found["gamma"]!r}')
        if kernel == "rbf":
            found["gamma"] = 0.5 / rbf_width(points, weights) ** 2
        else:
            found["gamma"] = 1.0 / points.shape[1]
    else:
        found["gamma"] = check_real("gamma", found["gamma"], 0, or_else='"auto"')
    return found


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
        nearest[a : a + MAP_ROWS] = nth_nearest(distances, weights, WIDTH_NEIGHBORS)
    width = 2.0 * weighted_median(nearest, weights)
    if width != 0 and not np.sqrt(1.0 / LARGEST) < width < np.sqrt(LARGEST):
        raise InvalidInputError(
            f"distances between rows are about {width / 2:.3g}, and their squares are out of the range of "
            "floats; scale X, for instance with standardize=True"
        )
    return width if width > 0 else float(np.sqrt(points.shape[1]))
