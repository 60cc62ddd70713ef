"""BFGS with a line search that only shortens steps, a method for `scipy.optimize.minimize`.

Nash: Compact Numerical Methods for Computers, Algorithm 21, the "BFGS" of `optim` in R. On an objective with
many optima its steps lead elsewhere than those of a line search that also lengthens them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ravine._validate import FloatArray

SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to reach: Armijo's rule, its usual value
SHORTER = 0.2  # factor of a step that does not lower the value enough
SMALLEST_STEP = 1e-15  # largest change of a coordinate with which a line search ends
SAME_VALUE = 1.5e-8  # relative gain that ends the descent, the default of `optim`


def variable_metric(
    fun: Callable[..., float],
    x0: FloatArray,
    args: tuple[Any, ...] = (),
    *,
    jac: Callable[..., FloatArray],
    maxiter: int,
    gtol: float,
    **_: Any,
) -> OptimizeResult:
    """Minimize a function by BFGS with steps of at most full length.

    After a step that gains nothing, or twice as many steps as coordinates, the next one follows the gradient;
    if that one gains nothing either, it is the end.
    """
    x, value = np.asarray(x0, dtype=np.float64), float(fun(x0, *args))
    gradient, inverse, n_updates, n_iter = jac(x0, *args), np.eye(len(x0)), 0, 0
    while n_iter < maxiter and np.abs(gradient).max() > gtol:
        step = -inverse @ gradient
        slope, scale, low = float(step @ gradient), 1.0, np.inf
        while slope < 0.0 and scale * np.abs(step).max() > SMALLEST_STEP:
            low = float(fun(x + scale * step, *args))
            if low <= value + SUFFICIENT * scale * slope:
                break
            scale *= SHORTER
        gains = low < value - SAME_VALUE * (abs(value) + SAME_VALUE)
        if not gains and n_updates == 0:
            break
        if gains:
            step, old = scale * step, gradient
            x, value, n_iter, n_updates = x + step, low, n_iter + 1, n_updates + 1
            gradient = jac(x, *args)
            if float(step @ (gradient - old)) > 0.0 and n_updates <= 2 * len(x):
                inverse = updated(inverse, step, gradient - old)
                continue
        inverse, n_updates = np.eye(len(x)), 0
    return OptimizeResult(x=x, fun=value, jac=gradient, nit=n_iter, status=int(n_iter >= maxiter))


def updated(inverse: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the inverse Hessian after a step that changed the gradient by `change` (BFGS).

    >>> updated(np.eye(2), np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    along, moved = float(step @ change), inverse @ change
    cross = np.outer(moved, step)
    stretch = 1.0 + float(moved @ change) / along
    return np.asarray(inverse + (stretch * np.outer(step, step) - cross - cross.T) / along)
