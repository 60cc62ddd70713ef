"""The interval around the mean in which an index looks for clusters, so that outliers are not clusters.

Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised Classification.
"""

from __future__ import annotations

import numpy as np

from ravine._validate import FloatArray

FARTHEST = 1e100  # bandwidths: largest half-width of the interval, so that squares of distances are finite
DELTA = 0.01  # the paper's distance reducing parameter (Section 7.1: min(0.01, sigma^2)); sigma is 1 here
SHIFT = (DELTA * (1 - DELTA)) ** (1 / DELTA)  # makes T_Delta continuously differentiable at the edge


def contract_outliers(
    points: FloatArray, edge: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Move points outside of [-edge, edge] towards it (T_Delta, Equation 23, in units of sigma).

    Returns them, the derivative of each by its own position, and by the edge.
    """
    excess = np.maximum(np.abs(points) - edge, 0.0) / sigma
    outside, sign = excess > 0, np.sign(points)
    shortened = DELTA * ((excess + SHIFT) ** (1 - DELTA) - SHIFT ** (1 - DELTA))
    slope = np.where(outside, DELTA * (1 - DELTA) * (excess + SHIFT) ** -DELTA, 1.0)
    moved = np.where(outside, sign * (edge + sigma * shortened), points)
    return moved, slope, np.where(outside, sign * (1.0 - slope), 0.0)
