"""The minimax probability machine: the direction with the best worst-case separation of two distributions.

Only means and covariances of the two are known.

Lanckriet, El Ghaoui, Bhattacharyya, Jordan: A robust minimax approach to classification. JMLR 3, 2003.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ravine._validate import FloatArray

ROUNDS = 100  # most fixed-point iterations; about five are usual
EXACT = 1e-5  # error of the balance at which iterations end: the error of kappa is of the order of its square
SINGULAR = 1e-12  # share of the largest eigenvalue: smaller ones count as 0
MAX_FEATURES = 4096  # most columns: matrices of n_features x n_features have to fit into memory


@dataclass(frozen=True)
class Machine:
    """The best direction, its kappa, and the distance (`reach`) of its threshold to the right side's mean.

    `balance` is the left side's deviation over the sum of both: the solution is a fixed point in it.
    `slope` is the derivative of the fixed-point error with respect to the balance.
    """

    direction: FloatArray
    kappa: float
    reach: float
    balance: float
    slope: float = -1.0

    @property
    def probability(self) -> float:
        """The worst-case probability of a correct classification: kappa^2 / (1 + kappa^2)."""
        return 1.0 - 1.0 / (1.0 + self.kappa**2)


def minimax(
    left: FloatArray, right: FloatArray, apart: FloatArray, balance: float = 0.5, slope: float = -1.0
) -> Machine:
    r"""Maximize :math:`\kappa(w) = w'\delta / (\sqrt{w' A w} + \sqrt{w' B w})` over w.

    `left` and `right` are the covariances A and B, `apart` is the right mean minus the left. The maximum is
    at :math:`w = ((1 - t) A + t B)^{-1} \delta` with t = sqrt(w'Aw) / (sqrt(w'Aw) + sqrt(w'Bw)): a fixed
    point in one number, found by secant steps with one linear system each. t starts at `balance`, and `slope`
    is the slope of the first step; both may come from the solution for similar moments.

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
    return Machine(found.direction, found.kappa, found.reach, found.balance, slope)


def _at(left: FloatArray, right: FloatArray, apart: FloatArray, balance: float) -> Machine:
    """Solve for the direction at one balance."""
    mixed = (1.0 - balance) * left + balance * right
    try:
        factor = cho_factor(mixed.T, check_finite=False)  # the transpose is in the order of LAPACK
        w = cho_solve(factor, apart, check_finite=False)
    except np.linalg.LinAlgError:
        w = _solve_singular(mixed, apart)
    spread = [math.sqrt(max(float(w @ matrix @ w), 0.0)) for matrix in (left, right)]
    both = spread[0] + spread[1]
    length = float(w @ apart)
    if both <= 1e-12 * abs(length):
        return Machine(w, math.inf if length > 0 else 0.0, length / 2, 0.5)
    return Machine(w, length / both, length * spread[1] / both, spread[0] / both)


def _solve_singular(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve a singular system given by its lower triangle.

    If the right-hand side has a part outside the range of the matrix, that part is returned: along it neither
    side varies while the means differ, so that kappa is infinite.
    """
    values, vectors = np.linalg.eigh(matrix)
    inside = values > SINGULAR * max(float(values[-1]), np.finfo(float).tiny)
    parts = vectors.T @ vector
    free = np.where(inside, 0.0, parts)
    if np.linalg.norm(free) > 1e-6 * np.linalg.norm(parts):
        return np.asarray(vectors @ free)
    return np.asarray(vectors @ np.where(inside, parts / np.where(inside, values, 1.0), 0.0))
