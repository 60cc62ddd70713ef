"""Dimensionality reduction for spectral clustering (DRSC)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.baselines.spectral import affinity, eigenvectors, embedding, representatives

Array = np.ndarray[Any, Any]


def drsc(
    X: Array, n_clusters: int, scale: float, *, rounds: int = 10, steps: int = 5, most: int = 400
) -> Array:
    r"""Return the labels of DRSC: spectral clustering in a subspace that is learned with it.

    .. math:: \max_{U, W} \operatorname{tr}(U^T D^{-1/2} A D^{-1/2} U), \quad
              A_{ij} = \exp(-|W^T (x_i - x_j)|^2 / (2 \sigma^2)), \quad W^T W = I

    in turns: U by the eigenvectors for a given subspace of K - 1 directions, W by gradient steps with U and D
    held, starting from the principal components. Above `most` rows, as many representatives are clustered.

    Niu, Dy, Jordan: Dimensionality reduction for spectral clustering. AISTATS, 2011.
    """
    rows, follows = representatives(X - X.mean(axis=0), most)
    W = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, : max(n_clusters - 1, 1)]
    value = -np.inf
    for _ in range(rounds):
        similar = affinity(rows @ W, scale)
        root = 1 / np.sqrt(np.maximum(similar.sum(axis=1), 1e-300))
        scaled = root[:, None] * eigenvectors(similar, n_clusters, normalized=True)
        now = objective(similar, scaled)
        if now - value <= 1e-4 * abs(now):
            break
        value = now
        W = ascend(rows, W, scaled, scale, steps)
    points = embedding(affinity(rows @ W, scale), n_clusters, normalized=True)
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=0).fit_predict(points)[follows])


def objective(similar: Array, scaled: Array) -> float:
    """Return tr(Q' A Q) with Q = D^(-1/2) U."""
    return float(np.sum(scaled * (similar @ scaled)))


def slope(rows: Array, W: Array, scaled: Array, scale: float) -> Array:
    """Return the gradient of the objective by W, with Q held.

    With B the product of A and Q Q' entry by entry, it is -2 X' (diag(B e) - B) X W / sigma^2.
    """
    B = affinity(rows @ W, scale) * (scaled @ scaled.T)
    images = rows @ W
    return np.asarray(-2 / scale**2 * rows.T @ (B.sum(axis=1)[:, None] * images - B @ images))


def ascend(rows: Array, W: Array, scaled: Array, scale: float, steps: int) -> Array:
    """Return W after a few gradient steps that keep its columns orthonormal and never lower the objective."""
    value = objective(affinity(rows @ W, scale), scaled)
    size = 1.0
    for _ in range(steps):
        gradient = slope(rows, W, scaled, scale)
        gradient -= W @ (W.T @ gradient)
        length = float(np.linalg.norm(gradient))
        while length > 0 and size > 1e-4:
            tried = np.linalg.qr(W + size / length * gradient)[0]
            now = objective(affinity(rows @ tried, scale), scaled)
            if now > value:
                W, value = tried, now
                break
            size /= 2
    return W
