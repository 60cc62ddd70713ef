"""The clusterers by name."""

from __future__ import annotations

from ravine.estimators.clusterer import TreeClusterer
from ravine.estimators.maximin_separation import MaximinSeparation
from ravine.estimators.maximum_margin import MaximumMargin
from ravine.estimators.minimum_density import MinimumDensity
from ravine.estimators.principal_direction import PrincipalDirection
from ravine.estimators.spectral_connectivity import SpectralConnectivity

CLUSTERERS: dict[str, type[TreeClusterer]] = {
    make.__name__: make
    for make in (MaximinSeparation, MaximumMargin, MinimumDensity, PrincipalDirection, SpectralConnectivity)
}
# the clusterers that `compare` also runs on the diffusion map of the neighbor graph
DIFFUSION = ("MinimumDensity", "SpectralConnectivity")
