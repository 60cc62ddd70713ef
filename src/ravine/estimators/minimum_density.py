"""Clustering by minimum density hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass

from ravine._validate import check_int, check_real
from ravine.data.query import RowSet
from ravine.estimators.clusterer import TreeClusterer
from ravine.index.density import MinimumDensitySchedule
from ravine.split.projection import ProjectionMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MinimumDensity(TreeClusterer):
    """Divisive clustering with minimum density hyperplanes (MDP2).

    Each split is the hyperplane on which the density of the rows, estimated with Gaussian kernels, is lowest
    among the hyperplanes near their mean: it runs through a ravine and avoids the clusters. It is found by
    projection pursuit from several principal directions, while the interval allowed for the threshold grows.
    The result whose valley is deepest relative to its two adjacent modes is chosen. The `value` of a split is
    the density on its hyperplane.

    The parameters and attributes of all clusterers are described in
    `ravine.estimators.clusterer.TreeClusterer`: `n_clusters`, `standardize`, `kernel`, `kernel_params`,
    `min_cluster_size`, `max_depth`, `level`, `outliers`, `random_state`, `n_jobs`, `verbose`, `checkpoint`.

    Parameters
    ----------
    bandwidth_factor : float, default 1.0
        Multiplies the bandwidth 0.9 sd n^(-1/5), where sd is the standard deviation of the first principal
        component of the rows.
    alpha_max : float, default 0.9
        The threshold lies within this many standard deviations of the mean. If the density still falls at the
        end of that interval, and its minimum is at most one bandwidth farther out, the threshold moves there:
        a density cannot resolve less.
    n_init : int, default 4
        Number of starts: the leading principal directions, then combinations of two of them. All starts share
        the passes over the data. For every kernel except "diffusion", n_init // 2 further starts come from a
        neighbor graph of at most 1000 rows.
    max_iter : int, default 15
        Maximum number of evaluations for each of the ten interval widths.

    Notes
    -----
    Cost: one pass over the rows per evaluation up to 16384 rows, at most 12 passes per split above that; O(n
    d) time per pass and no copy of the data.

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

    bandwidth_factor: float = 1.0
    alpha_max: float = 0.9
    n_init: int = 4
    max_iter: int = 15

    def _method(self, rows: RowSet | None = None) -> ProjectionMethod:
        return ProjectionMethod(
            MinimumDensitySchedule(
                check_real("bandwidth_factor", self.bandwidth_factor, 0),
                check_real("alpha_max", self.alpha_max, 0),
            ),
            n_init=check_int("n_init", self.n_init, 1),
            max_iter=check_int("max_iter", self.max_iter, 0),
            neighbor_starts=self._follow_neighbors,
        )
