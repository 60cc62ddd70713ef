"""Clustering by minimum density hyperplanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ravine._validate import check_directions, check_int, check_real
from ravine.estimators.clusterer import TreeClusterer
from ravine.index.density import MinimumDensitySchedule
from ravine.split.hyperplane import Splitter
from ravine.split.projection import ProjectionSplitter
from ravine.tree.grow import Progress


class MinimumDensity(TreeClusterer):
    """Divisive clustering with minimum density hyperplanes (MDP2).

    Each split is the hyperplane on which the density of the rows, estimated with Gaussian kernels, is
    lowest, among those near the middle of the rows: it runs through a ravine and avoids the clusters. It is
    found by projection pursuit from several principal directions, while the interval in which the cut may
    lie grows; the start whose valley is deepest relative to its two neighboring modes wins.

    Parameters
    ----------
    n_clusters : int or "auto", default 2
        How many clusters to find; fewer come out where there are fewer valleys, with a warning. "auto" stops
        where no leaf has a valley deeper than the same search finds by chance in rows with one mode and the
        same covariance; it costs at most eight more searches a leaf, of at most 8192 rows.
    min_cluster_size : int, optional
        The least weight (number of rows, without weights) on either side of a split. By default 1, and 1.5
        times the square root of the number of rows for "auto", where fewer are taken for strays.
    max_leaves, max_depth : int, optional
        Bounds of the tree, also for "auto".
    level : float, default 0.01
        For "auto": the chance to split anywhere in the tree what has one mode only. A leaf with a share of
        the rows is tested at that share of it.
    split_order : {"depth", "size", "value", "neighbors"}, default "depth"
        Which leaf is split next: by its valley's bounded relative depth times its size, the largest, the one
        with the lowest density on its hyperplane, or by how well its split keeps neighbors together (1 less
        the normalized cut in a graph of ten nearest neighbors, of at most 2000 rows) times its size.
    bandwidth_factor : float, default 1.0
        Multiplies the bandwidth 0.9 sd n^(-1/5), sd being the standard deviation of the rows' first
        principal component.
    alpha_max : float, default 0.9
        Cuts are sought within this many standard deviations of the mean. Where the density still falls at
        the edge of that interval and the foot of the valley lies within one bandwidth beyond it, the cut is
        put there.
    n_init : int, default 4
        How many starts: the strongest principal directions, then others between them. They share passes. With
        a kernel (but "diffusion"), half as many more follow a graph of neighbors of at most 1000 rows.
    init : array of shape (n_starts, n_features), optional
        Directions to start from instead, in the units of the data.
    standardize : bool, default True
        Scale every column to unit variance (implicitly: nothing is copied).
    kernel : str or callable, optional
        Hyperplanes in the feature space of a kernel instead: "rbf", "polynomial", "cosine", "laplacian" or
        another of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See docs/kernels.md.
    kernel_params : dict, optional
        What the kernel takes, such as gamma, and `n_components` and `landmarks` of its map.
    max_iter : int, default 15
        Evaluations for each of the ten widths of the interval.
    tol : float, default 0.02
        A pursuit ends when the gradient, relative to the density, is at most this.
    random_state : int, Generator or None
        Draws samples (above 32 000 rows) and further starts. None is a fixed seed: the same data give the
        same clusters.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    verbose : int, default 0
        1 prints a line a split.
    callback : callable, optional
        Called after each split with a `ravine.Progress`, for a progress bar.

    Notes
    -----
    Cost: a pass over the rows for each evaluation up to 32 000 rows, at most 12 passes a split above; O(n d)
    time a pass and no copy of the data.

    References
    ----------
    Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from sklearn.datasets import load_iris
    >>> model = MinimumDensity(n_clusters=2).fit(load_iris().data)
    >>> sorted(int((model.labels_ == k).sum()) for k in range(2))
    [50, 100]
    """

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "depth",
        bandwidth_factor: float = 1.0,
        alpha_max: float = 0.9,
        n_init: int = 4,
        init: Any = None,
        standardize: bool = True,
        kernel: Any = None,
        kernel_params: Mapping[str, Any] | None = None,
        max_iter: int = 15,
        tol: float = 0.02,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_cluster_size = min_cluster_size
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.level = level
        self.split_order = split_order
        self.bandwidth_factor = bandwidth_factor
        self.alpha_max = alpha_max
        self.n_init = n_init
        self.init = init
        self.standardize = standardize
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _splitter(self, n_features: int) -> Splitter:
        return ProjectionSplitter(
            MinimumDensitySchedule(
                check_real("bandwidth_factor", self.bandwidth_factor, 0),
                check_real("alpha_max", self.alpha_max, 0),
            ),
            standardize=self._standardize,
            n_init=check_int("n_init", self.n_init, 1),
            init=None if self.init is None else check_directions("init", self.init, n_features),
            tol=check_real("tol", self.tol, 0, open_low=False),
            max_iter=check_int("max_iter", self.max_iter, 0),
            follow_neighbors=self._follow_neighbors,
        )
