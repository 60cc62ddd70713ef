"""Clustering by maximin separation probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ravine._validate import check_choice, check_int, check_real
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.split.hyperplane import Splitter
from ravine.split.separation import SOLVERS, SeparationSplitter
from ravine.tree.grow import Progress


class MaximinSeparation(TreeClusterer):
    r"""Divisive clustering with the highest separation probability (MSPC).

    A good clustering is one from whose labels a classifier can be learnt that generalizes well. Of all
    distributions with the means and covariances of the two sides, take the worst: the probability that a
    hyperplane still puts a row on its right side is at least MSP = kappa^2 / (1 + kappa^2), with

    .. math:: \kappa = \max_w \frac{|w'(\mu_1 - \mu_2)|}
              {\sqrt{w'(\Sigma_1 + \lambda\Lambda) w} + \sqrt{w'(\Sigma_2 + \lambda\Lambda) w}},
              \qquad \Lambda = \operatorname{diag}(\Sigma).

    Each split is the hyperplane, and with it the two sides, for which that is (locally) highest. The units of
    the columns do not matter. A split's `value` is 1 - MSP.

    Parameters
    ----------
    n_clusters : int or "auto", default 2
        How many clusters to find; fewer come out where no hyperplane leaves enough rows on both sides, with
        a warning. "auto" stops where no leaf has a valley deeper than the same search finds by chance in rows
        with one mode and the same covariance.
    solver : {"mpm", "gep", "eig", "pursuit"}, default "mpm"
        "mpm" alternates between the minimax probability machine for two sides and the sides of its
        hyperplane, from a 2-means start. "gep" does the same with a lower bound of MSP that punishes
        imbalance, a closed form for the direction and the best threshold along it. "eig" is the relaxation
        of that, without rounds: across a principal direction of the standardized rows at their mean.
        "pursuit" maximizes MSP directly over the direction, with the best threshold of each.
    regularization : float, default 1.0
        lambda, in units of the columns' variances; `ravine.select` finds one without labels. With 0, "mpm"
        and "gep" do not change under any invertible map of the rows (from the same `init`).
    min_share : float, default 0.05
        The least share of a leaf's weight on either side of a split: MSP alone is won by one far row.
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
        with the highest MSP, or by how well its split keeps neighbors together (1 less the normalized cut
        in a graph of ten nearest neighbors, of at most 2000 rows) times its size.
    n_init : int, default 4
        How many starts of 2-means, of which the best is taken, or of the pursuit: the strongest principal
        directions, for the pursuit then others between them. For "eig", how many of those directions are
        judged by their MSP; with 1 it is the paper's solver, which takes the strongest. They share passes.
    init : array of shape (n_rows,), optional
        Labels with two values that the first split starts from instead.
    standardize : bool, default True
        Scale every column to unit variance for the start and for "pursuit" (implicitly: nothing is copied).
    kernel : str or callable, optional
        Hyperplanes in the feature space of a kernel instead: "rbf", "polynomial", "cosine", "laplacian" or
        another of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See docs/kernels.md.
    kernel_params : dict, optional
        What the kernel takes, such as gamma, and `n_components` and `landmarks` of its map.
    max_iter : int, default 50
        Rounds at most; evaluations at most for "pursuit".
    random_state : int, Generator or None
        Draws further starts, and samples for "pursuit" above 32 000 rows. None is a fixed seed: the same data
        give the same clusters.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    verbose : int, default 0
        1 prints a line a split.
    callback : callable, optional
        Called after each split with a `ravine.Progress`.

    Notes
    -----
    Cost of a split: "mpm" and "gep" one pass with O(n d^2) for the moments, then O(n d) a round and O(d^2)
    for every row that switched sides; d equations are solved a few times a round ("gep": once in all).
    Both hold (d, d) matrices, so above 4096 features there are "eig" and "pursuit", which do not.

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

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        solver: str = "mpm",
        regularization: float = 1.0,
        min_share: float = 0.05,
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "depth",
        n_init: int = 4,
        init: Any = None,
        standardize: bool = True,
        kernel: Any = None,
        kernel_params: Mapping[str, Any] | None = None,
        max_iter: int = 50,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.solver = solver
        self.regularization = regularization
        self.min_share = min_share
        self.min_cluster_size = min_cluster_size
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.level = level
        self.split_order = split_order
        self.n_init = n_init
        self.init = init
        self.standardize = standardize
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _splitter(self, n_features: int) -> Splitter:
        return SeparationSplitter(
            check_choice("solver", self.solver, SOLVERS),
            check_real("regularization", self.regularization, 0, open_low=False),
            check_real("min_share", self.min_share, 0, 0.5, open_low=False),
            standardize=self._standardize,
            n_init=check_int("n_init", self.n_init, 1),
            init=None if self.init is None else _two_labels(self.init),
            max_iter=check_int("max_iter", self.max_iter, 1),
        )


def _two_labels(init: Any) -> Any:
    """Return labels as an array; how many there are is checked where the rows are known."""
    try:
        return np.asarray(init).ravel()
    except ValueError:  # lists of different lengths
        raise InvalidInputError(f"init has to hold one of two labels for each row, got {init!r}") from None
