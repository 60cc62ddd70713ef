"""Clustering by spectral connectivity: SCnP2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ravine._validate import check_int, check_real
from ravine.data.query import RowSet
from ravine.estimators.clusterer import TreeClusterer
from ravine.index.connectivity import ConnectivitySchedule
from ravine.split.directions import OrthogonalDirections
from ravine.split.projection import ProjectionMethod
from ravine.split.search import BaseMethod

# More micro-clusters do not improve the splits (Section 7.4 of the paper), at a cost cubic in their number.
MICROCLUSTERS = 200


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralConnectivity(TreeClusterer):
    r"""Divisive clustering by minimum spectral connectivity projection pursuit (SCnP2).

    Each split projects the rows so that their similarity graph is as weakly connected as possible, that is,
    so that the second eigenvalue of its normalized Laplacian,

    .. math:: \lambda_2 = \min_{u \perp 1} \frac{\sum_{ij} k(|t_i - t_j| / \sigma) (u_i - u_j)^2}
              {2 \sum_i d_i u_i^2}, \qquad t = V^T x,

    is smallest over the directions V (d_i is the degree of a row). The kernel k is exp(-x), or
    (x / 0.1 + 1)^0.1 exp(-x) for several directions. Rows farther than beta standard deviations from the mean
    are moved inwards, so that outliers do not form a cluster: beta is the first of 1.5, 1 and 0.5 that leaves
    n / (2 K) of the n rows of a leaf on each side. The `value` of a split is lambda_2. The standard Laplacian
    and the limit of large margins are `ravine.papers.SCP2` and `ravine.papers.LMSC`.

    Of the ends of searches from four starts (the leading principal directions, or sets of them), the one with
    the smallest normalized cut in a neighbor graph is chosen; with a kernel, the one with the smallest
    lambda_2. The leaf that is split next has the largest product of its size and 1 minus that cut.

    The parameters and attributes of all clusterers are described in
    `ravine.estimators.clusterer.TreeClusterer`: `n_clusters`, `standardize`, `kernel`, `kernel_params`,
    `min_cluster_size`, `max_depth`, `level`, `outliers`, `random_state`, `n_jobs`, `verbose`, `checkpoint`.

    Parameters
    ----------
    n_directions : int, default 1
        Number of directions: one, over all rows, with linear boundaries; or several orthogonal ones, over
        micro-clusters, with curved boundaries.
    sigma_factor : float, default 1.0
        Multiplies the scale 0.5 sqrt(l) sd n^(-1/5) of the graph, where l is the number of directions and sd
        the standard deviation of the first principal component of the rows.

    Notes
    -----
    Cost: one direction costs O(n d) per evaluation, as for `MinimumDensity`; lambda_2 itself O(G) for G bins,
    as a path graph has the same eigenvalue. Several directions cost O(m^3) per evaluation for m = 200
    micro-clusters, and three passes over the rows; the eigenvalue reported for a split comes from 600 finer
    ones in its projection. The neighbor graph that compares results
    and leaves is computed once, for at most 2000 rows, and shared: a leaf uses its part of the graph of the
    root, or its own graph if fewer than 200 of its rows are in that.

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

    n_directions: int = 1
    sigma_factor: float = 1.0

    # The largest cluster, as in the paper, need not be the one that falls apart.
    _split_order: ClassVar[str] = "neighbors"

    def _method(self, rows: RowSet | None = None) -> BaseMethod:
        schedule = ConnectivitySchedule(
            check_real("sigma_factor", self.sigma_factor, 1e-100, 1e100, open_low=False),
            least_share=self._least_share(),
        )
        univariate = ProjectionMethod(
            schedule, neighbor_starts=self._follow_neighbors, neighbor_cut=self.kernel is None
        )
        n_directions = check_int("n_directions", self.n_directions, 1)
        if n_directions == 1:
            return univariate
        return OrthogonalDirections(univariate, n_directions, MICROCLUSTERS)

    def _least_share(self) -> float:
        """Return the share of the rows of a leaf that each side needs for a beta to be taken: 1 / (2 K)."""
        if self.n_clusters == "auto":
            return 0.25
        return 0.5 / check_int("n_clusters", self.n_clusters, 1, or_else='"auto"')
