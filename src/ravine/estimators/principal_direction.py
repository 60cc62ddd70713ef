"""Clustering across principal components: PDDP and dePDDP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ravine._validate import check_choice, check_real
from ravine.estimators.clusterer import TreeClusterer
from ravine.split.hyperplane import Splitter
from ravine.split.principal import PrincipalSplitter
from ravine.tree.grow import Progress


class PrincipalDirection(TreeClusterer):
    """Principal direction divisive partitioning: PDDP and dePDDP.

    Each split is across the first principal component of a leaf's rows: at their mean (PDDP), or at the
    lowest valley of their density along it (dePDDP). Fast, and a yardstick for the methods that search.

    Parameters
    ----------
    n_clusters : int or "auto", default 2
        How many clusters to find ("auto" as for `MinimumDensity`); with `threshold="density"`, fewer where there
        are fewer valleys, with a warning.
    threshold : {"mean", "density"}, default "mean"
        Where to cut the first principal component.
    min_cluster_size : int, optional
        The least weight (number of rows, without weights) on either side of a split. By default 1, and 1.5
        times the square root of the number of rows for "auto", where fewer are taken for strays.
    max_leaves, max_depth : int, optional
        Bounds of the tree, also for "auto".
    level : float, default 0.01
        For "auto": the chance to split anywhere in the tree what has one mode only. A leaf with a share of
        the rows is tested at that share of it.
    split_order : {"value", "depth", "size", "neighbors"}, default "value"
        Which leaf is split next. "value" is the papers' own order: the leaf with the largest scatter for
        PDDP, with the lowest density at its cut for dePDDP. "neighbors" takes the one whose split keeps
        neighbors together best (1 less the normalized cut in a graph of ten nearest neighbors, of at most
        2000 rows), weighed by its size.
    bandwidth_factor : float, default 1.0
        Multiplies the bandwidth 0.9 sd n^(-1/5) of the density.
    standardize : bool, default True
        Scale every column to unit variance (implicitly: nothing is copied).
    kernel : str or callable, optional
        Hyperplanes in the feature space of a kernel instead: "rbf", "polynomial", "cosine", "laplacian" or
        another of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See docs/kernels.md.
    kernel_params : dict, optional
        What the kernel takes, such as gamma, and `n_components` and `landmarks` of its map.
    random_state : int, Generator or None
        For the power iterations above 256 features. None is a fixed seed.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    verbose : int, default 0
        1 prints a line a split.
    callback : callable, optional
        Called after each split with a `ravine.Progress`.

    References
    ----------
    Boley: Principal Direction Divisive Partitioning. Data Mining and Knowledge Discovery 2(4), 1998.
    Tasoulis, Tasoulis, Plagianakos: Enhancing principal direction divisive clustering. Pattern Recognition
    43(10), 2010.

    Examples
    --------
    >>> from ravine import PrincipalDirection
    >>> from sklearn.datasets import load_iris
    >>> PrincipalDirection(3, threshold="density").fit(load_iris().data).n_clusters_
    3
    """

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        threshold: str = "mean",
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "value",
        bandwidth_factor: float = 1.0,
        standardize: bool = True,
        kernel: Any = None,
        kernel_params: Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.threshold = threshold
        self.min_cluster_size = min_cluster_size
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.level = level
        self.split_order = split_order
        self.bandwidth_factor = bandwidth_factor
        self.standardize = standardize
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _splitter(self, n_features: int) -> Splitter:
        return PrincipalSplitter(
            check_choice("threshold", self.threshold, ("mean", "density")),
            check_real("bandwidth_factor", self.bandwidth_factor, 0),
            self._standardize,
        )
