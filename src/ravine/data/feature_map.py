"""Maps of rows into the feature space of a kernel: hyperplanes there are curved boundaries between rows.

A map is fitted once, at the root. Every method then works on mapped rows, computed block by block, and does
not know about kernels. Yates, Pavlidis: Minimum Density Hyperplanes in the Feature Space. IEEE SSCI, 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray, check_int, check_real
from ravine.data.block_engine import BlockSource, rows_of
from ravine.data.memory import MemoryRows
from ravine.data.neighbors import nth_nearest, weighted_median
from ravine.data.node import Node, measure
from ravine.data.query import run
from ravine.data.standardization import LARGEST
from ravine.exceptions import InvalidInputError
from ravine.io.block_file import is_block_source

EXACT_ROWS = 2500  # most rows for exact kernel principal components; above, landmarks (Nystroem)
LANDMARKS = 500  # least number of landmarks
MOMENT_ROWS = 8192  # rows that give the mean and the components if there are landmarks; a choice
HELD_BYTES = 1 << 28  # most bytes of mapped rows that are kept in memory; else mapped again in every pass
MAP_ROWS = 1024  # rows that are mapped at a time, which bounds the memory of the kernel matrix
RANK_TOLERANCE = 1e-9  # share of the largest eigenvalue: components with smaller ones are rounding
NEIGHBORS = 10  # the width of the RBF kernel comes from the distance to this neighbor

KernelFunction = Callable[..., Any]
MAP_PARAMETERS = ("n_components", "landmarks")  # parameters of the map, which every kernel takes
NOT_NEGATIVE = ("chi2", "additive_chi2")  # kernels that need values of at least 0


class FeatureMap(Protocol):
    """Maps rows to points of a Euclidean space, training rows and new ones alike."""

    @property
    def n_components(self) -> int:
        """The dimension of the space."""

    @property
    def nbytes(self) -> int:
        """The memory of the map."""

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """The columns that are constant, and have no effect."""

    def __call__(self, rows: Any) -> FloatArray:
        """Return the points of raw rows."""

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the map as values for JSON and as arrays."""


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
            bad = np.flatnonzero(~usable.all(axis=0))
            raise InvalidInputError(
                f"Input X contains NaN or infinity (or values beyond {LARGEST:.0e}) in column"
                f"{'s' * (len(bad) > 1)} {', '.join(map(str, bad[:5]))}; remove those rows or fill them in"
            )
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
        """Return rows in the form that the kernel takes: scaled, or raw."""
        if self.scaling is None:
            return rows
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
            raise InvalidInputError(
                "Input X contains NaN or infinity, or the kernel returned one or a value beyond "
                f"{LARGEST:.0e}; scale X, for instance with standardize=True"
            )
        return np.asarray(matrix, dtype=np.float64)


@dataclass(frozen=True)
class KernelMap:
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

    @property
    def n_components(self) -> int:
        return len(self.shift)

    @property
    def nbytes(self) -> int:
        """The memory of landmarks and coefficients (0 for landmarks that are not numbers)."""
        return int(getattr(self.landmarks, "nbytes", 0) + self.coefficients.nbytes + self.shift.nbytes)

    def __call__(self, rows: Any) -> FloatArray:
        """Return the components of some rows."""
        similar = self.kernel(self.kernel.prepare(rows), self.landmarks)
        return np.asarray(similar @ self.coefficients - self.shift)

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """The columns that are constant; empty if rows are not vectors."""
        scaling = self.kernel.scaling
        return np.zeros(0, dtype=bool) if scaling is None else scaling.inverse_scale == 0

    def __repr__(self) -> str:
        return (
            f"KernelMap({self.kernel.kind!r}, {length(self.landmarks)} landmarks, "
            f"{self.n_components} components, {self.nbytes / 1e6:.2f} MB)"
        )

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if not isinstance(self.kernel.kind, str):
            raise InvalidInputError(
                "a model whose kernel is a function cannot be saved: use a named kernel of scikit-learn, or "
                'fit with kernel="precomputed"'
            )
        arrays = {
            "map_landmarks": self.landmarks,
            "map_coefficients": self.coefficients,
            "map_shift": self.shift,
        }
        if self.kernel.scaling is not None:
            arrays["map_mean"] = self.kernel.scaling.mean
            arrays["map_inverse_scale"] = self.kernel.scaling.inverse_scale
        return {"kind": self.kernel.kind, "parameters": dict(self.kernel.parameters)}, arrays


def length(rows: Any) -> int:
    """Return the number of rows of an array, a matrix, a data frame or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take(rows: Any, where: slice | IntArray) -> Any:
    """Return some of the rows of an array, a matrix, a data frame or a list."""
    return rows.iloc[where] if hasattr(rows, "iloc") else rows[where]


def weights_of(weights: FloatArray | None, rows: IntArray) -> FloatArray:
    """Return the weights of some rows; None means that all weights are 1."""
    return np.ones(len(rows)) if weights is None else weights[rows]


class MappedRows:
    """An array of mapped rows that are computed when they are indexed."""

    def __init__(self, rows: Any, feature_map: FeatureMap) -> None:
        self.rows, self.map = rows, feature_map
        self.shape = (length(rows), feature_map.n_components)
        self.dtype = np.dtype(np.float64)
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: Any) -> FloatArray:
        return self.map(take(self.rows, where))


def held(points: Any, picked: IntArray | None = None) -> FloatArray:
    """Return mapped rows as an array, computed a few at a time."""
    where = np.arange(len(points)) if picked is None else picked
    return np.concatenate([points[where[a : a + MAP_ROWS]] for a in range(0, len(where), MAP_ROWS)])


@dataclass(frozen=True)
class MappedSource:
    """Rows in blocks, mapped whenever a block is read."""

    source: BlockSource
    map: FeatureMap

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of components."""
        return self.source.shape[0], self.map.n_components

    @property
    def lengths(self) -> Sequence[int]:
        """The number of rows of every block."""
        return self.source.lengths

    def read(self, block: int) -> FloatArray:
        """Return the points of one block, made a few at a time."""
        return held(MappedRows(self.source.read(block), self.map))


def mapped_blocks(rows: Any, weights: FloatArray | None, feature_map: FeatureMap, n_jobs: int = 1) -> Any:
    """Return the points of the rows as blocks: held where they are small, else made anew in every pass."""
    if callable(getattr(rows, "mapped", None)):  # a source with an engine of its own
        return rows_of(rows.mapped(feature_map), weights)
    if is_block_source(rows):
        return rows_of(MappedSource(rows, feature_map), weights, n_jobs)
    points: Any = MappedRows(rows, feature_map)
    if points.shape[0] * points.shape[1] * 8 <= HELD_BYTES:
        points = held(points)
    return MemoryRows(points, weights, n_jobs)


def kernel_names() -> list[str]:
    """Return the names of all kernels."""
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return sorted([*PAIRWISE_KERNEL_FUNCTIONS, "diffusion", "precomputed"])


def kernel_parameters(kernel: str) -> tuple[str, ...]:
    """Return the names of the parameters of a named kernel, without those of the map."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS

    if kernel == "diffusion":
        return "n_neighbors", "diffusion_time"
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
    if name == "n_components":
        return check_components(value)
    return None if value is None else check_int(name, value, 2, or_else='"auto" or None (all rows)')


def check_components(value: Any) -> int | float | None:
    """Return None (all), a number of components, or the share of the variance that they explain."""
    if value is None:
        return None
    if isinstance(value, float | np.floating):
        return check_real("n_components", value, 0, 1, or_else="a whole number, or None")
    return check_int("n_components", value, 1, or_else="a share below 1, or None")


def n_kept(eigenvalues: FloatArray, n_components: int | float | None) -> int:
    """Return how many components to keep, from eigenvalues in descending order."""
    rank = int((eigenvalues > RANK_TOLERANCE * max(eigenvalues[0], 0.0)).sum())
    if rank == 0 or n_components is None:
        return rank
    if isinstance(n_components, float):
        share = np.cumsum(eigenvalues[:rank]) / eigenvalues[:rank].sum()
        return min(rank, int(np.searchsorted(share, n_components - 1e-12)) + 1)
    return min(rank, n_components)


def choose_landmarks(
    n_rows: int, weights: FloatArray | None, landmarks: Any, most: int, usual: int, rng: np.random.Generator
) -> IntArray:
    """Return the landmarks: all rows of positive weight if they are at most `most`, else a random `usual`."""
    counted = np.arange(n_rows) if weights is None else np.flatnonzero(weights > 0)
    if isinstance(landmarks, str) and landmarks == "auto":
        wanted = len(counted) if len(counted) <= most else usual
    elif landmarks is None:
        wanted = len(counted)
    else:
        wanted = check_int("landmarks", landmarks, 2, or_else='"auto" or None (all rows)')
    if wanted >= len(counted):
        return counted
    return np.sort(rng.choice(counted, wanted, replace=False))


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
    n_components = check_components(given.get("n_components"))
    n = length(X)
    if kernel == "precomputed" and X.shape[1] != n:
        raise InvalidInputError(
            f'kernel="precomputed" is fitted on a square matrix k(row, row), got shape {X.shape}'
        )
    counted = n if weights is None else int(np.count_nonzero(weights > 0))
    usual = max(LANDMARKS, EXACT_ROWS**2 // counted)  # a pass computes no more similarities than if exact
    chosen = choose_landmarks(n, weights, given.get("landmarks", "auto"), EXACT_ROWS, usual, rng)
    named = isinstance(kernel, str) and kernel != "precomputed"
    scaling = scaling_of(X, weights, standardize) if named else None
    similar = Kernel(kernel, parameters, scaling)
    landmarks: Any = chosen if kernel == "precomputed" else similar.prepare(take(X, chosen))
    if scaling is not None:
        some = choose_landmarks(n, weights, EXACT_ROWS, 0, 0, rng)
        gamma = with_gamma(str(kernel), parameters, scaling(take(X, some)), weights_of(weights, some))
        similar = Kernel(kernel, gamma, scaling)
    prepared = similar.prepare(take(X, chosen)) if kernel == "precomputed" else landmarks
    matrix = similar(prepared, landmarks)
    matrix = (matrix + matrix.T) / 2
    if len(chosen) == counted:
        coefficients, shift = exact_components(matrix, weights_of(weights, chosen), n_components)
    else:
        rows = choose_landmarks(n, weights, MOMENT_ROWS, 0, 0, rng)
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


def eigh_descending(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues in descending order, with their eigenvectors."""
    values, vectors = np.linalg.eigh(symmetric)
    return values[::-1], vectors[:, ::-1]


def column_signs(columns: FloatArray) -> FloatArray:
    """Return the sign of the entry of largest absolute value of every column, which fixes its orientation."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def with_gamma(
    kernel: str, parameters: Mapping[str, Any], points: FloatArray, weights: FloatArray
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


def rbf_width(points: FloatArray, weights: FloatArray) -> float:
    """Return the width sigma of exp(-|x - y|^2 / (2 sigma^2)) that is used without labels.

    Twice the median distance to the tenth nearest row (a row of weight k has k - 1 copies at distance 0), or,
    if that is 0 because most rows have ten copies, the square root of the number of columns.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    nearest = np.empty(len(points))
    for a in range(0, len(points), MAP_ROWS):
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
