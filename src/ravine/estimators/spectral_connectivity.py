"""Clustering by spectral connectivity: SCP2, SCnP2 and LMSC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ravine._validate import check_bool, check_choice, check_directions, check_int, check_real
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.index.connectivity import BETAS, ConnectivitySchedule
from ravine.index.graph import SIMILARITIES
from ravine.split.connectivity import LargeMarginSplitter, SeveralSplitter
from ravine.split.hyperplane import Splitter
from ravine.split.projection import ProjectionSplitter
from ravine.tree.grow import Progress

MICROCLUSTERS = 200  # more make no better splits (the paper's Section 7.4), and cost their cube
OMEGA = 0.3


class SpectralConnectivity(TreeClusterer):
    r"""Divisive clustering by minimum spectral connectivity projection pursuit (SCP2, SCnP2, LMSC).

    Each split projects the rows where their graph is weakest: where the second eigenvalue of its Laplacian,

    .. math:: \lambda_2 = \min_{u \perp 1} \frac{\sum_{ij} k(|t_i - t_j| / \sigma) (u_i - u_j)^2}
              {2 \sum_i d_i u_i^2}, \qquad t = V^T x,

    is smallest over the directions V (d_i the degree for the normalized Laplacian, 1 for the standard one).
    Rows farther than beta standard deviations from the mean are drawn in, so that outliers are no cluster.

    Parameters
    ----------
    n_clusters : int or "auto", default 2
        How many clusters to find; "auto" stops where no leaf is weaker than rows with one mode and the same
        covariance are.
    laplacian : {"normalized", "standard"}, default "normalized"
        SCnP2 or SCP2.
    projection : {"univariate", "orthogonal", "correlated"}, default "univariate"
        One direction, over all rows; several orthogonal ones, over micro-clusters, with curved boundaries; or
        several that are drawn to one another and end as one.
    n_directions : int, optional
        For several directions: 2 orthogonal or 3 correlated ones by default.
    omega : float, default 0.3
        How strongly correlated directions are drawn together, in units of log lambda_2. (Orthogonal ones need
        no such penalty: they are orthonormal by construction.)
    large_margin : bool, default False
        LMSC: follow sigma to zero, with the standard Laplacian, towards the hyperplane of largest margin.
    beta : float or "auto", default "auto"
        Half the width of the interval beyond which rows are drawn in, in standard deviations. "auto" takes
        the first of 1.5, 1 and 0.5 that leaves n / (2 K) of the n rows of a leaf on both sides.
    sigma_factor : float, default 1.0
        Multiplies the scale 0.5 sqrt(l) sd n^(-1/5) of the graph, l being the number of directions and sd the
        standard deviation of the rows' first principal component.
    similarity : {"auto", "laplace", "near-laplace", "gaussian"}, default "auto"
        The kernel k: exp(-x), (x / 0.1 + 1)^0.1 exp(-x) or exp(-x^2 / 2). "auto" is the first for one
        direction (and only that one is exact for any number of rows), the second for several. With another
        kernel, one direction is searched over micro-clusters too.
    n_microclusters : int or "auto", default "auto"
        How many centers stand for the rows where several directions are sought: 200. The eigenvalue that a
        split reports is made of 600 finer ones in its projection; `facts` tells the bound of the paper's
        Corollary 7 on its error.
    min_cluster_size : int, optional
        The least weight on either side of a split. By default 1, and 1.5 times the square root of the number
        of rows for "auto".
    max_leaves, max_depth : int, optional
        Bounds of the tree, also for "auto".
    level : float, default 0.01
        For "auto": the chance to split anywhere in the tree what has one mode only. A leaf with a share of
        the rows is tested at that share of it.
    split_order : {"neighbors", "size", "depth", "value"}, default "neighbors"
        Which leaf is split next: by how well its split keeps neighbors together (1 less the normalized cut
        in a graph of ten nearest neighbors, of at most 2000 rows) times its size, the largest (as in the
        paper), by 1 - lambda_2 times its size, or the one with the least lambda_2.
    n_init : int, default 4
        How many starts: the strongest principal directions (or sets of them), then others between them. Of
        their ends with large enough sides the one is kept whose cut in the graph of neighbors is smallest;
        with a kernel, which tells itself what is near, the one with the least lambda_2. With a kernel (but
        "diffusion"), half as many starts more follow a graph of at most 1000 rows.
    init : array of shape (n_starts, n_features), optional
        Directions to start from instead, in the units of the data; for one direction only.
    standardize : bool, default True
        Scale every column to unit variance (implicitly: nothing is copied).
    kernel : str or callable, optional
        Hyperplanes in the feature space of a kernel instead: "rbf", "polynomial", "cosine", "laplacian" or
        another of scikit-learn, "diffusion", "precomputed", or a function kernel(A, B). See docs/kernels.md.
    kernel_params : dict, optional
        What the kernel takes, such as gamma, and `n_components` and `landmarks` of its map.
    max_iter : int, default 15
        Evaluations for each beta.
    tol : float, default 0.02
        A pursuit ends when the gradient of log lambda_2 is at most this.
    random_state : int, Generator or None
        Draws samples (above 32 000 rows), micro-clusters and further starts. None is a fixed seed.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    verbose : int, default 0
        1 prints a line a split.
    callback : callable, optional
        Called after each split with a `ravine.Progress`.

    Notes
    -----
    Cost: one direction costs O(n d) an evaluation, as for `MinimumDensity`; lambda_2 itself O(G) for G bins,
    by a path with the same eigenvalue. Several directions cost O(m^3) an evaluation for m micro-clusters,
    and three passes over the rows. The graph that judges between ends and between leaves costs the ten
    nearest neighbors among at most 2000 rows, twice a leaf.

    References
    ----------
    Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised
    Classification.

    Examples
    --------
    >>> from ravine import SpectralConnectivity
    >>> from sklearn.datasets import load_iris
    >>> model = SpectralConnectivity(n_clusters=2).fit(load_iris().data)
    >>> sorted(int((model.labels_ == k).sum()) for k in range(2))
    [50, 100]
    """

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        laplacian: str = "normalized",
        projection: str = "univariate",
        n_directions: int | None = None,
        omega: float = OMEGA,
        large_margin: bool = False,
        beta: float | str = "auto",
        sigma_factor: float = 1.0,
        similarity: str = "auto",
        n_microclusters: int | str = "auto",
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "neighbors",
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
        self.laplacian = laplacian
        self.projection = projection
        self.n_directions = n_directions
        self.omega = omega
        self.large_margin = large_margin
        self.beta = beta
        self.sigma_factor = sigma_factor
        self.similarity = similarity
        self.n_microclusters = n_microclusters
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
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _check_parameters(self, n_columns: int) -> None:
        """Check every parameter as `fit` does, without rows."""
        check_bool("large_margin", self.large_margin)
        super()._check_parameters(n_columns)

    def _splitter(self, n_features: int) -> Splitter:
        laplacian = check_choice("laplacian", self.laplacian, ("normalized", "standard"))
        large_margin = check_bool("large_margin", self.large_margin)
        normalized = laplacian == "normalized" and not large_margin
        projection = check_choice("projection", self.projection, ("univariate", "orthogonal", "correlated"))
        if projection == "correlated" and large_margin:
            raise InvalidInputError(
                'large_margin goes with projection="univariate" or "orthogonal", got "correlated": '
                "directions drawn together end as one, so take univariate"
            )
        similarity = check_choice("similarity", self.similarity, ("auto", *SIMILARITIES))
        betas = BETAS if self.beta == "auto" else (check_real("beta", self.beta, 0, or_else='"auto"'),)
        n_clusters: int | str = self.n_clusters
        if n_clusters != "auto":
            n_clusters = check_int("n_clusters", n_clusters, 1, or_else='"auto"')
        share = 0.25 if isinstance(n_clusters, str) else 0.5 / n_clusters
        factor = check_real("sigma_factor", self.sigma_factor, 1e-100, 1e100, open_low=False)
        univariate = ProjectionSplitter(
            ConnectivitySchedule(normalized, factor, betas, share),
            standardize=self._standardize,
            n_init=check_int("n_init", self.n_init, 1),
            init=None if self.init is None else check_directions("init", self.init, n_features),
            tol=check_real("tol", self.tol, 0, open_low=False),
            max_iter=check_int("max_iter", self.max_iter, 0),
            follow_neighbors=self._follow_neighbors,
            spare_neighbors=self.kernel is None,
        )
        omega = check_real("omega", self.omega, 0, open_low=False)
        n_centers = MICROCLUSTERS
        if self.n_microclusters != "auto":
            n_centers = check_int("n_microclusters", self.n_microclusters, 3, or_else='"auto"')
        usual = {"univariate": 1, "orthogonal": 2, "correlated": 3}[projection]
        n_directions = usual if self.n_directions is None else check_int("n_directions", self.n_directions, 1)
        if projection == "univariate" and similarity in ("auto", "laplace"):
            return LargeMarginSplitter(univariate, share) if large_margin else univariate
        return SeveralSplitter(
            univariate,
            normalized,
            "near-laplace" if similarity == "auto" else similarity,
            n_directions,
            omega if projection == "correlated" else None,
            factor,
            betas,
            share,
            n_centers,
            large_margin,
        )
