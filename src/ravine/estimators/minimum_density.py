"""Clustering by minimum density hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from ravine._validate import check_bool, check_directions, check_int, check_real, is_random
from ravine.data.memory import MemoryRows
from ravine.estimators.clusterer import TreeClusterer
from ravine.index.density import MinimumDensitySchedule
from ravine.split.projection import ProjectionMethod
from ravine.split.search import BaseMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MinimumDensity(TreeClusterer):
    """Divisive clustering with minimum density hyperplanes (MDP2).

    Each split is the hyperplane on which the density of the rows, estimated with Gaussian kernels, is lowest
    among the hyperplanes near their mean: it runs through a ravine and avoids the clusters. It is found by
    projection pursuit from several principal directions, while the interval allowed for the threshold grows.
    The result whose valley is deepest relative to its two adjacent modes is chosen. The `value` of a split is
    the density on its hyperplane.

    Parameters
    ----------
    bandwidth_factor : float, default 1.0
        Multiplies the bandwidth 0.9 sd n^(-1/5), where sd is the standard deviation of the first principal
        component of the rows.
    alpha_max : float, default 0.9
        The threshold lies within this many standard deviations of the mean. If the density still falls at the
        end of that interval, and its minimum is at most `overshoot` bandwidths farther out, the threshold
        moves there.
    overshoot : float, default 1.0
        Bandwidths, see `alpha_max`: a density cannot resolve less than one. 0 is the paper's interval.
    n_init : int, default 4
        Number of starts: the leading principal directions, then combinations of two of them. All starts share
        the passes over the data. For every kernel except "diffusion", n_init // 2 further starts come from a
        neighbor graph of at most 1000 rows.
    init : array of shape (n_starts, n_features) or "random", optional
        Directions to start from instead, in the units of the data; or n_init random ones, which with a kernel
        are random combinations of the mapped rows.
    max_iter : int, default 15
        Maximum number of evaluations for each of the ten interval widths.
    samples : bool, default True
        Search samples of more than 16384 rows first, and all rows only from the best results. False searches
        all rows from every start, in many more passes.
    tol : float, default 0.02
        A search has converged when the norm of the gradient, relative to the density, is at most this.

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
    overshoot: float = 1.0
    n_init: int = 4
    init: Any = None
    max_iter: int = 15
    samples: bool = True
    tol: float = 0.02

    @classmethod
    def as_published(cls, n_clusters: int | Literal["auto", "best"] = 2, **params: Any) -> Self:
        """Return the method of the paper: MDP2, or with a kernel KMDH; `params` take precedence.

        MDP2 starts from two principal directions, KMDH from the first kernel principal component, or from ten
        random vectors with init="random", and has all components of the kernel. The threshold stays in its
        interval, and all rows are searched, until the descents end. docs/as-published.md lists what differs
        from the defaults, and why.

        >>> MinimumDensity.as_published().n_init
        2
        >>> MinimumDensity.as_published(kernel="rbf", init="random").n_init
        10
        """
        settings: dict[str, Any] = {"n_init": 2, "overshoot": 0.0, "tol": 1e-4, "max_iter": 100}
        settings |= {"samples": False, "outliers": "include"}
        if params.get("kernel") is not None:
            settings["n_init"] = 10 if is_random(params.get("init")) else 1
            params["kernel_params"] = {"landmarks": None, **(params.get("kernel_params") or {})}
        return cls(n_clusters, **{**settings, **params})

    @property
    def _needs_valley(self) -> bool:
        return True

    def _method(self, n_features: int, rows: MemoryRows | None = None) -> BaseMethod:

        at_random = is_random(self.init)
        return ProjectionMethod(
            MinimumDensitySchedule(
                check_real("bandwidth_factor", self.bandwidth_factor, 0),
                check_real("alpha_max", self.alpha_max, 0),
                overshoot=check_real("overshoot", self.overshoot, 0, open_low=False),
            ),
            n_init=check_int("n_init", self.n_init, 1),
            init=None if at_random or self.init is None else check_directions("init", self.init, n_features),
            random_starts=at_random,
            tol=check_real("tol", self.tol, 0, open_low=False),
            max_iter=check_int("max_iter", self.max_iter, 0),
            neighbor_starts=self._follow_neighbors,
            samples=check_bool("samples", self.samples),
        )
