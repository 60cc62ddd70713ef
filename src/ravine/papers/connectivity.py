"""Spectral connectivity as published: SCnP2, SCP2 and LMSC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ravine._validate import check_bool, check_int, check_real
from ravine.data.query import RowSet
from ravine.estimators.spectral_connectivity import MICROCLUSTERS, SpectralConnectivity
from ravine.index.connectivity import ConnectivitySchedule
from ravine.papers.published_connectivity import PublishedConnectivity
from ravine.split.projection import ProjectionMethod

EXACT_ROWS = 1000  # rows up to which every row is its own micro-cluster, Section 7.2.3
BETAS = (2.0, 1.5, 1.0, 0.5)  # Section 7.1: from a large value, inferred, down in steps of 0.5
OMEGA = 0.5  # of Equation 26, which counts each pair of directions twice: 1 in the authors' package


@dataclass(eq=False, repr=False, kw_only=True)
class SCnP2(SpectralConnectivity):
    """Spectral connectivity projection pursuit with the normalized Laplacian, as published.

    The scale, the kernel, the first principal components as the only start, the sides, the balance and the
    order of splits are the paper's. The parameters are those of `SpectralConnectivity`.

    Parameters
    ----------
    n_directions : int, default 2
        Number of directions; the paper has three correlated ones.
    correlated : bool, default False
        Let the directions attract each other instead of being nearly orthogonal.

    References
    ----------
    Hofmeyr, Pavlidis, Eckley: Minimum Spectral Connectivity Projection Pursuit for Unsupervised
    Classification.

    Examples
    --------
    >>> from ravine.papers import SCnP2
    >>> from sklearn.datasets import load_iris
    >>> SCnP2(3).fit(load_iris().data).n_clusters_
    3
    """

    n_clusters: int | Literal["auto"] = field(default=2, kw_only=False)
    n_directions: int = 2
    correlated: bool = False
    sigma_factor: float = 2.0
    outliers: Literal["assign", "label", "include"] = "include"

    _normalized: ClassVar[bool] = True
    _large_margin: ClassVar[bool] = False
    _split_order: ClassVar[str] = "size"

    _as_published: ClassVar[bool] = True

    def _method(self, rows: RowSet | None = None) -> PublishedConnectivity:
        schedule = ConnectivitySchedule(
            check_real("sigma_factor", self.sigma_factor, 1e-100, 1e100, open_low=False),
            BETAS,
            self._least_share(),
        )
        univariate = ProjectionMethod(
            schedule,
            n_init=1,
            tol=1e-6,
            max_iter=100,
            neighbor_starts=self._follow_neighbors,
            neighbor_cut=self.kernel is None,
            samples=False,
        )
        exact = rows is not None and rows.shape[0] <= EXACT_ROWS
        return PublishedConnectivity(
            univariate,
            check_int("n_directions", self.n_directions, 1),
            max(MICROCLUSTERS, rows.shape[0]) if rows is not None and exact else MICROCLUSTERS,
            omega=-OMEGA if check_bool("correlated", self.correlated) else OMEGA,
            normalized=self._normalized,
            large_margin=self._large_margin,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class SCP2(SCnP2):
    """Spectral connectivity projection pursuit with the standard Laplacian, as published; see `SCnP2`."""

    _normalized: ClassVar[bool] = False


@dataclass(eq=False, repr=False, kw_only=True)
class LMSC(SCP2):
    """Large margin spectral connectivity, as published: sigma goes to zero; see `SCnP2`.

    The paper has one direction, and with two, orthogonal ones, the method that it calls LMSC_o.
    """

    n_directions: int = 1
    _large_margin: ClassVar[bool] = True
