"""Kernel principal components: a map of rows into the feature space of a kernel.

Yates, Pavlidis: Minimum Density Hyperplanes in the Feature Space. IEEE SSCI, 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.any_rows import length, take, weights_of
from ravine.exceptions import InvalidInputError
from ravine.features.kernel import (
    MAP_PARAMETERS,
    MAP_ROWS,
    Kernel,
    KernelFunction,
    check_components,
    scaling_of,
    with_gamma,
)

EXACT_ROWS = 2500  # most rows for exact kernel principal components; above, landmarks (Nystroem)
LANDMARKS = 500  # least number of landmarks
MOMENT_ROWS = 8192  # rows that give the mean and the components if there are landmarks; a choice
RANK_TOLERANCE = 1e-9  # share of the largest eigenvalue: components with smaller ones are rounding


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
    landmarks: Any = chosen if kernel == "precomputed" else _written_out(similar.prepare(take(X, chosen)))
    if scaling is not None:
        some = choose_landmarks(n, weights, EXACT_ROWS, 0, 0, rng)
        gamma = with_gamma(str(kernel), parameters, similar.prepare(take(X, some)), weights_of(weights, some))
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


def _written_out(landmarks: Any) -> Any:
    """Return landmarks with their zeros: they are few, and a model file stores them so."""
    return landmarks.toarray() if sparse.issparse(landmarks) else landmarks


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


def eigh_descending(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues in descending order, with their eigenvectors."""
    values, vectors = np.linalg.eigh(symmetric)
    return values[::-1], vectors[:, ::-1]


def column_signs(columns: FloatArray) -> FloatArray:
    """Return the sign of the entry of largest absolute value of every column, which fixes its orientation."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
