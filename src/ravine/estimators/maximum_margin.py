"""Clustering by maximum margin hyperplanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ravine._validate import check_int, check_real
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.split.hyperplane import Splitter
from ravine.split.margin import MarginSplitter
from ravine.tree.grow import Progress


class MaximumMargin(TreeClusterer):
    r"""Divisive clustering with maximum margin hyperplanes (CPMMC), for dense and sparse rows.

    Each split is the hyperplane f(x) = w.x + b = 0 with the widest margin between the two sides that it makes
    itself:

    .. math:: \min_{w, b} \tfrac12 |w|^2 + C \frac1n \sum_i \max\{0, 1 - |f(x_i)|\}
        \quad \text{with} \quad -l \le \frac1n \sum_i f(x_i) \le l

    (Equation 3.7 with the balance 3.15). It is solved by cutting planes: 2^n constraints share one slack, the
    most violated one is added until none is violated by more than epsilon, and each small problem is solved
    by the concave-convex procedure. The result is a local optimum; the best of several starts is kept.

    Parameters
    ----------
    n_clusters : int or "auto", default 2
        How many clusters to find. "auto" stops where no leaf's split runs through a valley deeper than the
        same search finds by chance in rows with one mode and the same covariance.
    C : float or "auto", default "auto"
        The price of the mean slack, in units of the (standardized) rows. "auto" is 10 over the variance of
        the first principal component, so that the units do not matter. Where C is so small that w = 0 is
        better than what is found, there is no split.
    balance : float or "auto", default "auto"
        l, the bound of the mean of f over the rows, in [0, 1); the margin is at f = 1 and -1. "auto" is 0.03.
    epsilon : float, default 0.01
        By how much a constraint may be violated, in units of the mean slack, which lies in [0, 1].
    min_cluster_size : int, optional
        The least weight (number of rows, without weights) on either side of a split. By default 1, and 1.5
        times the square root of the number of rows for "auto", where fewer are taken for strays.
    max_leaves, max_depth : int, optional
        Bounds of the tree, also for "auto".
    level : float, default 0.01
        For "auto": the chance to split anywhere in the tree what has one mode only. A leaf with a share of
        the rows is tested at that share of it.
    split_order : {"depth", "size", "value", "neighbors"}, default "depth"
        Which leaf is split next: by the bounded relative depth of the density at its cut times its size, the
        largest, the one with the least objective over C, or by how well its split keeps neighbors together
        (1 less the normalized cut in a graph of ten nearest neighbors, of at most 2000 rows) times its size.
    n_init : int, default 4
        How many starts: 2-means, the strongest principal directions, then others between them. They share
        passes.
    standardize : bool, default True
        Scale every column to unit variance (implicitly: nothing is copied). For text and images, whose
        columns share a unit, False is often better.
    kernel : str or callable, optional
        Hyperplanes in the feature space of a kernel instead: "rbf", "polynomial", "cosine", "laplacian" or
        another of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See docs/kernels.md.
    kernel_params : dict, optional
        What the kernel takes, such as gamma, and `n_components` and `landmarks` of its map.
    max_iter : int, default 50
        Rounds of a run, at most. Where that ends it, `status` says so, and `violation` by how much the most
        violated constraint still is; 5 to 20 rounds are usual, more where C is large or the margin empty.
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
    Cost: a pass over the rows for each step of the procedure up to 32 000 rows, about a dozen passes a split
    above; O(n s k) time a pass, s being the stored entries of a row and k the cuts. A split's `facts` hold
    `margin` (1 / |w|), `support` (the share of rows inside the margin), `slack` (the mean of
    max(0, 1 - abs f)), `violation` (of the most violated constraint), `C` and `rounds`;
    `value` is the objective over C.

    References
    ----------
    Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.

    Examples
    --------
    >>> from ravine import MaximumMargin
    >>> from sklearn.datasets import load_iris
    >>> model = MaximumMargin(n_clusters=2).fit(load_iris().data)
    >>> sorted(int((model.labels_ == k).sum()) for k in range(2))
    [50, 100]
    >>> model.tree_.splits[0].facts["violation"] <= 0.01
    True
    """

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        C: float | str = "auto",
        balance: float | str = "auto",
        epsilon: float = 0.01,
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "depth",
        n_init: int = 4,
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
        self.C = C
        self.balance = balance
        self.epsilon = epsilon
        self.min_cluster_size = min_cluster_size
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.level = level
        self.split_order = split_order
        self.n_init = n_init
        self.standardize = standardize
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _splitter(self, n_features: int) -> Splitter:
        return MarginSplitter(
            C=None if self.C == "auto" else check_real("C", self.C, 0, or_else='"auto"'),
            balance=None if self.balance == "auto" else _check_balance(self.balance),
            epsilon=check_real("epsilon", self.epsilon, 0, 1),
            n_init=check_int("n_init", self.n_init, 1),
            max_iter=check_int("max_iter", self.max_iter, 1),
            standardize=self._standardize,
        )


def _check_balance(value: Any) -> float:
    """Return a balance in [0, 1): from 1 on, w = 0 with b = 1 puts all rows on one side at no cost."""
    balance = check_real("balance", value, 0, 1, open_low=False, or_else='"auto"')
    if balance == 1.0:
        raise InvalidInputError("balance has to be below 1: at 1, all rows on one side cost nothing")
    return balance
