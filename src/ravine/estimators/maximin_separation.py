"""Clustering by maximin separation probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ravine._validate import check_choice, check_int, check_real
from ravine.data.query import RowSet
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.split.search import BaseMethod
from ravine.split.separation import SOLVERS, SeparationMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MaximinSeparation(TreeClusterer):
    r"""Divisive clustering with the highest separation probability (MSPC).

    A clustering is good if a classifier trained on its labels generalizes well. Over all distributions with
    the means and covariances of the two sides, a hyperplane puts a row on the correct side with probability
    at least MSP = kappa^2 / (1 + kappa^2), where

    .. math:: \kappa = \max_w \frac{|w'(\mu_1 - \mu_2)|}
              {\sqrt{w'(\Sigma_1 + \lambda\Lambda) w} + \sqrt{w'(\Sigma_2 + \lambda\Lambda) w}},
              \qquad \Lambda = \operatorname{diag}(\Sigma).

    Each split is the hyperplane, and with it the two sides, for which MSP is (locally) highest. The units of
    the columns do not matter. The `value` of a split is 1 - MSP.

    The parameters and attributes of all clusterers are described in
    `ravine.estimators.clusterer.TreeClusterer`: `n_clusters`, `standardize`, `kernel`, `kernel_params`,
    `min_cluster_size`, `max_depth`, `level`, `outliers`, `random_state`, `n_jobs`, `verbose`, `checkpoint`.

    Parameters
    ----------
    solver : {"mpm", "gep", "eig"}, default "mpm"
        "mpm" alternates between the minimax probability machine for two sides and the sides of its
        hyperplane, starting from 2-means. "gep" does the same with a lower bound of MSP that penalizes
        imbalance: a closed form for the direction, and the best threshold along it. "eig" is a relaxation of
        "gep" that does not iterate: a principal direction of the standardized rows, with the threshold at
        their mean (with `n_clusters="auto"`, a leaf whose mean is not in a significant valley is searched for
        one along its first principal component).
    regularization : float, default 1.0
        lambda, in units of the column variances; `ravine.select` chooses one without labels. With 0, "mpm"
        and "gep" are invariant under invertible linear maps of the rows (except for their start).
    min_share : float, default 0.05
        Minimum share of a leaf's weight on each side of a split: MSP alone is highest for a single outlier.
    n_init : int, default 4
        Number of 2-means starts, of which the best is taken: the leading principal
        directions, then combinations of two of them. For "eig", the number of principal directions that are
        compared by their MSP; 1 is the paper's solver. All starts share the passes over the data.

    Notes
    -----
    Cost per split: if there are many rows, "mpm" and "gep" search samples first. Then they need one pass with
    O(n d^2) for the moments, O(n d) per iteration and O(d^2) for every row that changed sides; a system of d
    equations is solved a few times per iteration ("gep": once in total). Both store (d, d) matrices; above
    4096 features use "eig", which does not.

    References
    ----------
    Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.

    Examples
    --------
    >>> from ravine import MaximinSeparation
    >>> from sklearn.datasets import load_iris
    >>> model = MaximinSeparation(n_clusters=2).fit(load_iris().data)
    >>> sorted(int((model.labels_ == k).sum()) for k in range(2))
    [50, 100]
    """

    solver: Literal["mpm", "gep", "eig"] = "mpm"
    regularization: float = 1.0
    min_share: float = 0.05
    n_init: int = 4

    def _method(self, rows: RowSet | None = None) -> BaseMethod:
        solver = check_choice("solver", self.solver, SOLVERS)
        if solver == "eig" and self.kernel is not None:
            raise InvalidInputError(
                f'solver="eig" cannot be used with kernel={self.kernel!r}: mapped columns are uncorrelated, '
                'so that after scaling no direction comes first; use solver="mpm" or "gep"'
            )
        regularization = check_real("regularization", self.regularization, 0, open_low=False)
        min_share = check_real("min_share", self.min_share, 0, 0.5, open_low=False)
        n_init = check_int("n_init", self.n_init, 1)
        return SeparationMethod(solver, regularization, min_share, n_init)
