"""The hyperplane of large margin as the limit of weak connectivity: one step of a shrinking scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray
from ravine.data.microclusters import MicroClusters
from ravine.data.standardization import Standardization
from ravine.index.connectivity import ConnectivityIndex
from ravine.optimize.pursuit import Evaluated, View, evaluate_projected, project_exactly
from ravine.optimize.sphere import CONVERGED, NO_PROGRESS, OUT_OF_PASSES

MAX_ITERATIONS = 200  # they cost no pass over the data
TOL = 1e-6  # of the gradient of sigma log lambda_2, which tends to minus the width of the margin


@dataclass(frozen=True)
class Widened:
    """Where the search ended, with what gradient (of sigma log lambda_2), after how many steps, and why."""

    point: Evaluated
    gradient_norm: float
    n_iter: int
    status: str


def widen(rows: MicroClusters, start: FloatArray, index: ConnectivityIndex) -> Widened:
    """Minimize the connectivity of rows in memory, sorted along each direction and not binned.

    As its scale goes to zero the minimizer becomes the normal of the hyperplane of largest margin (Theorem 4
    of the paper).
    """
    view = View(Standardization.identity(rows.centers.shape[1], float(rows.weights.sum())), np.nan)

    def look(free: FloatArray) -> Evaluated:
        projected = project_exactly(view, rows.centers, rows.weights, free / np.linalg.norm(free))
        try:
            next(evaluate_projected(view, index, projected))
        except StopIteration as stop:
            result: Evaluated = stop.value
            return result
        raise AssertionError("rows in memory need no pass")

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        result = look(free)
        return index.sigma * result.value, index.sigma * result.gradient / np.linalg.norm(free)

    options = {"maxiter": MAX_ITERATIONS, "maxcor": 20, "gtol": TOL, "ftol": 1e-12}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    status, norm = OUT_OF_PASSES if found.status == 1 else NO_PROGRESS, float(np.linalg.norm(found.jac))
    if float(np.abs(found.jac).max()) <= TOL:
        status = CONVERGED
    return Widened(look(found.x), norm, int(found.nit), status)
