"""The hyperplane of large margin as the limit of weak connectivity: one step of a shrinking scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ravine._validate import FloatArray
from ravine.data.frame import Frame
from ravine.data.microclusters import MicroClusters
from ravine.index.connectivity import ConnectivityIndex
from ravine.optimise.pursuit import Evaluated, View, judge, project_exactly
from ravine.optimise.sphere import CONVERGED, NO_PROGRESS, OUT_OF_PASSES

MOST_ITERATIONS = 200  # they cost no pass over the data
TOL = 1e-6  # of the gradient of sigma log lambda_2, which tends to minus the width of the margin


@dataclass(frozen=True)
class Widened:
    """Where the search ended, with what gradient (of sigma log lambda_2), after how many steps, and why."""

    point: Evaluated
    gradient_norm: float
    n_iter: int
    status: str


def widen(rows: MicroClusters, start: FloatArray, index: ConnectivityIndex) -> Widened:
    """Minimise the connectivity of rows in memory, sorted along each direction and not binned.

    As its scale goes to zero the minimiser becomes the normal of the hyperplane of largest margin (Theorem 4
    of the paper).
    """
    view = View(Frame.identity(rows.centres.shape[1], float(rows.weights.sum())), np.nan)

    def look(free: FloatArray) -> Evaluated:
        seen = project_exactly(view, rows.centres, rows.weights, free / np.linalg.norm(free))
        try:
            next(judge(view, index, seen))
        except StopIteration as stop:
            said: Evaluated = stop.value
            return said
        raise AssertionError("rows in memory need no pass")

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        said = look(free)
        return index.sigma * said.value, index.sigma * said.gradient / np.linalg.norm(free)

    options = {"maxiter": MOST_ITERATIONS, "maxcor": 20, "gtol": TOL, "ftol": 1e-12}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    status, norm = OUT_OF_PASSES if found.status == 1 else NO_PROGRESS, float(np.linalg.norm(found.jac))
    if float(np.abs(found.jac).max()) <= TOL:
        status = CONVERGED
    return Widened(look(found.x), norm, int(found.nit), status)
