"""Clustering by spectral connectivity: SCP2, SCnP2 and LMSC."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ravine._validate import check_bool, check_choice, check_directions, check_int, check_real
from ravine.data.memory import MemoryRows
from ravine.estimators.clusterer import SplitOrder, TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.index.connectivity import BETAS, ConnectivitySchedule
from ravine.index.graph import SIMILARITIES
from ravine.split.connectivity import LargeMarginMethod, SeveralMethod
from ravine.split.projection import ProjectionMethod
from ravine.split.published_connectivity import PublishedConnectivity
from ravine.split.search import BaseMethod

# More micro-clusters do not improve the splits (Section 7.4 of the paper), at a cost cubic in their number.
MICROCLUSTERS = 200
DIRECTIONS = {"univariate": 1, "orthogonal": 2, "correlated": 3}  # number of directions by default


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralConnectivity(TreeClusterer):
    r"""Divisive clustering by minimum spectral connectivity projection pursuit (SCP2, SCnP2, LMSC).

    Each split projects the rows so that their similarity graph is as weakly connected as possible, that is,
    so that the second eigenvalue of its Laplacian,

    .. math:: \lambda_2 = \min_{u \perp 1} \frac{\sum_{ij} k(|t_i - t_j| / \sigma) (u_i - u_j)^2}
              {2 \sum_i d_i u_i^2}, \qquad t = V^T x,

    is smallest over the directions V (d_i is the degree for the normalized Laplacian, 1 for the standard
    one). Rows farther than beta standard deviations from the mean are moved inwards, so that outliers do not
    form a cluster. The `value` of a split is lambda_2.

    Parameters
    ----------
    laplacian : {"normalized", "standard"}, default "normalized"
        SCnP2 or SCP2.
    projection : {"univariate", "orthogonal", "correlated"}, default "univariate"
        One direction, over all rows; several orthogonal directions, over micro-clusters, with curved
        boundaries; or several directions that attract each other and converge to one.
    n_directions : int, optional
        Number of directions; by default 2 orthogonal or 3 correlated ones.
    omega : float, default 0.3
        Strength of the attraction between correlated directions, in units of log lambda_2. (Orthogonal ones
        need no penalty: they are orthonormal by construction.) With the published formulation, the size of
        the paper's omega, in units of lambda_2, for orthogonal directions too.
    large_margin : bool, default False
        LMSC: let sigma go to zero, with the standard Laplacian, towards the hyperplane of largest margin.
    beta : float, sequence of float or "auto", default "auto"
        Half the width of the interval beyond which rows are moved inwards, in standard deviations. Of several
        the first is taken that leaves n / (2 K) of the n rows of a leaf on each side. "auto" is 1.5, 1, 0.5.
    sigma_factor : float, default 1.0
        Multiplies the scale 0.5 sqrt(l) sd n^(-1/5) of the graph, where l is the number of directions and sd
        the standard deviation of the first principal component of the rows.
    similarity : {"auto", "laplace", "near-laplace", "gaussian"}, default "auto"
        The kernel k: exp(-x), (x / 0.1 + 1)^0.1 exp(-x) or exp(-x^2 / 2). "auto" is the first for one
        direction, the second for several. Only "laplace" is exact for any number of rows: with the others,
        one direction is searched over micro-clusters too.
    n_microclusters : int or "auto", default "auto"
        Number of centers that represent the rows when several directions are searched; "auto" is 200. The
        eigenvalue reported for a split comes from 600 finer ones in its projection; `facts` has the bound on
        its error (Corollary 7 of the paper).
    exact_rows : int, default 0
        If there are at most this many rows, every row is its own micro-cluster. A search costs O(n^3) then.
    split_order : {"neighbors", "size", "depth", "value"}, default "neighbors"
        Which leaf is split next: the one with the largest product of its size and 1 minus the normalized cut
        of its split in a graph of ten nearest neighbors among at most 2000 rows ("neighbors"), the largest
        ("size", as in the paper), the one with the largest product of its size and the depth of its valley
        ("depth"), or the one with the smallest lambda_2 ("value").
    formulation : {"scale-free", "published"}, default "scale-free"
        "published" follows the paper to the letter: it minimizes lambda_2 itself plus omega times the squared
        cosines of the directions (Equation 26), with BFGS; sides come from 2-means of the first two
        eigenvectors; and n in the balance n / (2 K) is the number of all rows. "scale-free" minimizes
        log lambda_2 over orthonormal or attracted directions, and sides are the signs of the second
        eigenvector.
    n_init : int, default 4
        Number of starts: the leading principal directions (or sets of them), then combinations of two. Of the
        results with large enough sides, the one with the smallest normalized cut in the neighbor graph is
        chosen; with a kernel, the one with the smallest lambda_2. For every kernel except "diffusion",
        n_init // 2 further starts come from a neighbor graph of at most 1000 rows.
    init : array of shape (n_starts, n_features), optional
        Directions to start from instead, in the units of the data; for one direction only.
    max_iter : int, default 15
        Maximum number of evaluations for each beta.
    samples : bool, default True
        In one direction, search samples of more than 16384 rows first, and all rows only from the best
        results. False searches all rows from every start, in many more passes.
    tol : float, default 0.02
        A search has converged when the norm of the gradient of log lambda_2 is at most this.

    Notes
    -----
    Cost: one direction costs O(n d) per evaluation, as for `MinimumDensity`; lambda_2 itself O(G) for G bins,
    as a path graph has the same eigenvalue. Several directions cost O(m^3) per evaluation for m
    micro-clusters, and three passes over the rows. The neighbor graph that compares results and leaves is
    computed once, for at most 2000 rows, and shared: a leaf uses its part of the graph of the root, or its
    own graph if fewer than 200 of its rows are in that.

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

    laplacian: Literal["normalized", "standard"] = "normalized"
    projection: Literal["univariate", "orthogonal", "correlated"] = "univariate"
    n_directions: int | None = None
    omega: float = 0.3
    large_margin: bool = False
    beta: float | Sequence[float] | Literal["auto"] = "auto"
    sigma_factor: float = 1.0
    similarity: Literal["auto", "laplace", "near-laplace", "gaussian"] = "auto"
    n_microclusters: int | Literal["auto"] = "auto"
    exact_rows: int = 0
    split_order: SplitOrder = "neighbors"
    formulation: Literal["scale-free", "published"] = "scale-free"
    n_init: int = 4
    init: Any = None
    max_iter: int = 15
    samples: bool = True
    tol: float = 0.02

    @classmethod
    def as_published(cls, n_clusters: int | Literal["auto", "best"] = 2, **params: Any) -> Self:
        """Return the method of the paper: SCnP2, SCP2 or LMSC by the parameters, which take precedence.

        By default the projection is orthogonal. The scale, the kernel, the first principal components as the
        only start, the sides, the balance and the order of splits are the paper's; omega and the first beta,
        which it does not state, were inferred. docs/as-published.md lists what differs from the defaults.

        >>> SpectralConnectivity.as_published(3).sigma_factor
        2.0
        """
        settings = {
            "projection": "orthogonal",
            "sigma_factor": 2.0,
            "similarity": "near-laplace",
            "beta": (2.0, 1.5, 1.0, 0.5),
            "omega": 0.5,
            "formulation": "published",
            "n_init": 1,
            "max_iter": 100,
            "tol": 1e-6,
            "split_order": "size",
            "exact_rows": 1000,
            "samples": False,
            "outliers": "include",
        }
        return cls(n_clusters, **{**settings, **params})

    def _method(self, n_features: int, rows: MemoryRows | None = None) -> BaseMethod:

        large_margin = check_bool("large_margin", self.large_margin)
        laplacian = check_choice("laplacian", self.laplacian, ("normalized", "standard"))
        normalized = laplacian == "normalized" and not large_margin
        projection = self._check_projection(large_margin)
        similarity = check_choice("similarity", self.similarity, ("auto", *SIMILARITIES))
        factor = check_real("sigma_factor", self.sigma_factor, 1e-100, 1e100, open_low=False)
        betas, share = _check_betas(self.beta), self._least_share()
        univariate = self._univariate(ConnectivitySchedule(normalized, factor, betas, share), n_features)
        omega = check_real("omega", self.omega, 0, open_low=False)
        n_directions, n_centers = self._n_directions(projection), self._n_centers(rows)
        formulation = check_choice("formulation", self.formulation, ("scale-free", "published"))
        if formulation == "scale-free" and projection == "univariate" and similarity in ("auto", "laplace"):
            return _with_large_margin(univariate, share) if large_margin else univariate
        make = SeveralMethod
        attraction = omega if projection == "correlated" else None
        if formulation == "published":
            make, attraction = PublishedConnectivity, -omega if projection == "correlated" else omega
        return make(
            univariate,
            normalized,
            "near-laplace" if similarity == "auto" else similarity,
            n_directions,
            attraction,
            factor,
            betas,
            share,
            n_centers,
            large_margin,
        )

    def _check_projection(self, large_margin: bool) -> str:
        projection = check_choice("projection", self.projection, tuple(DIRECTIONS))
        if projection == "correlated" and large_margin:
            raise InvalidInputError(
                'large_margin needs projection="univariate" or "orthogonal", got "correlated"; '
                'correlated directions converge to one, so use "univariate"'
            )
        return projection

    def _least_share(self) -> float:
        """Return the share of the rows of a leaf that each side needs for a beta to be taken: 1 / (2 K)."""
        if self.n_clusters in ("auto", "best"):
            return 0.25
        return 0.5 / check_int("n_clusters", self.n_clusters, 1, or_else='"auto" or "best"')

    def _univariate(self, schedule: ConnectivitySchedule, n_features: int) -> ProjectionMethod:
        """Return the search in one direction."""

        return ProjectionMethod(
            schedule,
            n_init=check_int("n_init", self.n_init, 1),
            init=None if self.init is None else check_directions("init", self.init, n_features),
            tol=check_real("tol", self.tol, 0, open_low=False),
            max_iter=check_int("max_iter", self.max_iter, 0),
            neighbor_starts=self._follow_neighbors,
            neighbor_cut=self.kernel is None,
            samples=check_bool("samples", self.samples),
        )

    def _n_directions(self, projection: str) -> int:
        if self.n_directions is None:
            return DIRECTIONS[projection]
        return check_int("n_directions", self.n_directions, 1)

    def _n_centers(self, rows: MemoryRows | None) -> int:
        """Return the number of micro-clusters: all rows, if there are at most `exact_rows`."""
        n_centers, exact_rows = MICROCLUSTERS, check_int("exact_rows", self.exact_rows, 0)
        if self.n_microclusters != "auto":
            n_centers = check_int("n_microclusters", self.n_microclusters, 3, or_else='"auto"')
        if rows is not None and rows.shape[0] <= exact_rows:
            n_centers = max(n_centers, rows.shape[0])
        return n_centers


def _check_betas(beta: Any) -> tuple[float, ...]:
    """Return the half-widths of the interval in the order of their use."""

    if isinstance(beta, str) and beta == "auto":
        return BETAS
    several = isinstance(beta, Sequence | np.ndarray) and not isinstance(beta, str) and len(beta) > 0
    other = 'several, or "auto"'
    return tuple(check_real("beta", value, 0, or_else=other) for value in (beta if several else [beta]))


def _with_large_margin(univariate: ProjectionMethod, least_share: float) -> LargeMarginMethod:
    """Return the univariate method that goes on to the hyperplane of large margin."""

    fields = {field.name: getattr(univariate, field.name) for field in dataclasses.fields(univariate)}
    del fields["full_steps"]  # the large margin has its own
    return LargeMarginMethod(**fields, least_share=least_share)
