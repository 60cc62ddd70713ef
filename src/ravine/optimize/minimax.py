"""The minimax probability machine: the direction that tells two sets of moments apart most surely.

Lanckriet, El Ghaoui, Bhattacharyya, Jordan: A robust minimax approach to classification. JMLR 3, 2003.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray

ROUNDS = 100  # of the fixed point iteration at most; a handful is usual
EXACT = 1e-5  # error of the balance that ends the rounds: kappa changes with its square
SINGULAR = 1e-12  # eigenvalues below this share of the largest are zero

MAX_FEATURES = 4096  # features: above, matrices of n_features x n_features no longer fit


@dataclass(frozen=True)
class Machine:
    """The best direction, its kappa, and how far its threshold lies below the right side's mean.

    `balance` is the left side's deviation over the sum of both: the solution is a fixed point in it, and
    `slope` is how fast the error of a balance grows with it.
    """

    direction: FloatArray
    kappa: float
    reach: float
    balance: float
    slope: float = -1.0

    @property
    def probability(self) -> float:
        """The least probability of a right answer: kappa^2 / (1 + kappa^2)."""
        return 1.0 - 1.0 / (1.0 + self.kappa**2)


def minimax(
    left: FloatArray, right: FloatArray, apart: FloatArray, balance: float = 0.5, slope: float = -1.0
) -> Machine:
    r"""Maximize :math:`\kappa(w) = w'\delta / (\sqrt{w' A w} + \sqrt{w' B w})` over w.

    `left` and `right` are the covariances A and B, of which the lower triangles are read, `apart` the right
    mean less the left. The maximum is at
    :math:`w = ((1 - t) A + t B)^{-1} \delta` with t = sqrt(w'Aw) / (sqrt(w'Aw) + sqrt(w'Bw)): a fixed point
    in one number, found by solving d equations a few times. t starts at `balance`, and its first step is
    Newton's with `slope`, which a machine of similar moments knows.

    >>> machine = minimax(np.eye(2), 4 * np.eye(2), np.array([6.0, 0.0]))
    >>> round(machine.kappa, 6), round(machine.probability, 6)
    (2.0, 0.8)
    """
    found = _at(left, right, apart, balance)
    for _ in range(ROUNDS):
        error = found.balance - balance
        if not math.isfinite(found.kappa) or abs(error) <= EXACT:
            break
        following = balance - error / slope
        if not 0.0 < following < 1.0:
            following = found.balance
        before, balance = balance, following
        found = _at(left, right, apart, balance)
        secant = (found.balance - balance - error) / (balance - before)
        slope = secant if secant < 0.0 else -1.0
    return replace(found, slope=slope)


def _at(left: FloatArray, right: FloatArray, apart: FloatArray, balance: float) -> Machine:
    """Solve for the direction at one balance."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.linalg.blas import dsymv

    try:  # on the upper triangle of the transposed matrix, as LAPACK stores it
        factor = cho_factor(_mixed(left, right, balance).T, overwrite_a=True, check_finite=False)
        w = np.asarray(cho_solve(factor, apart, check_finite=False))
    except LinAlgError:
        w = _solve_singular(_mixed(left, right, balance), apart)
    spread = [math.sqrt(max(float(w @ dsymv(1.0, matrix.T, w)), 0.0)) for matrix in (left, right)]
    both = spread[0] + spread[1]
    length = float(w @ apart)
    if both <= 1e-12 * abs(length):
        return Machine(w, math.inf if length > 0 else 0.0, length / 2, 0.5)
    return Machine(w, length / both, length * spread[1] / both, spread[0] / both)


def _mixed(left: FloatArray, right: FloatArray, balance: float) -> FloatArray:
    """Return (1 - balance) left + balance right with one new matrix."""
    from scipy.linalg.blas import daxpy

    mixed = balance * right
    daxpy(left.ravel(), mixed.ravel(), a=1.0 - balance)
    return mixed


def _solve_singular(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve a singular system given by its lower triangle: what lies outside its range is preferred."""
    values, vectors = np.linalg.eigh(matrix)
    inside = values > SINGULAR * max(float(values[-1]), np.finfo(float).tiny)
    parts = vectors.T @ vector
    free = np.where(inside, 0.0, parts)
    if np.linalg.norm(free) > 1e-6 * np.linalg.norm(parts):
        return np.asarray(vectors @ free)
    return np.asarray(vectors @ np.where(inside, parts / np.where(inside, values, 1.0), 0.0))
