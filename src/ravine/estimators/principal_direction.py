"""Clustering across principal components: PDDP and dePDDP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ravine._validate import check_choice, check_real
from ravine.data.query import RowSet
from ravine.estimators.clusterer import TreeClusterer
from ravine.split.principal import PrincipalMethod
from ravine.split.search import BaseMethod


@dataclass(eq=False, repr=False, kw_only=True)
class PrincipalDirection(TreeClusterer):
    """Principal direction divisive partitioning: PDDP and dePDDP.

    Each split is orthogonal to the first principal component of the rows of a leaf: at their mean (PDDP), or
    at the lowest minimum of their density along it (dePDDP). It is fast, and a baseline for the other
    methods.

    The parameters and attributes of all clusterers are described in
    `ravine.estimators.clusterer.TreeClusterer`: `n_clusters`, `standardize`, `kernel`, `kernel_params`,
    `min_cluster_size`, `max_depth`, `level`, `outliers`, `random_state`, `n_jobs`, `verbose`, `checkpoint`.

    Parameters
    ----------
    threshold : {"mean", "density"}, default "mean"
        Where to split along the first principal component. A valley needs 0.5 % of the rows, at least 5, on
        either side, unless `outliers="include"`. With `n_clusters="auto"`, a leaf whose mean is not in a
        significant valley is searched for one.
    bandwidth_factor : float, default 1.0
        Multiplies the bandwidth 0.9 sd n^(-1/5) of the density.

    References
    ----------
    Boley: Principal Direction Divisive Partitioning. Data Mining and Knowledge Discovery 2(4), 1998.
    Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
    43(10), 2010.

    Examples
    --------
    >>> from ravine import PrincipalDirection
    >>> from sklearn.datasets import load_iris
    >>> PrincipalDirection(2, threshold="density").fit(load_iris().data).n_clusters_
    2
    """

    threshold: Literal["mean", "density"] = "mean"
    bandwidth_factor: float = 1.0

    # that of the papers: the largest scatter for PDDP, the lowest density at the threshold for dePDDP
    _split_order: ClassVar[str] = "value"

    def _method(self, rows: RowSet | None = None) -> BaseMethod:
        return PrincipalMethod(
            check_choice("threshold", self.threshold, ("mean", "density")),
            check_real("bandwidth_factor", self.bandwidth_factor, 0),
            self.outliers == "include",
        )
