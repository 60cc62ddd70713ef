"""The estimators, with the interface of scikit-learn: one file each, over shared bases."""

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
# the clusterers that `compare` and `AutoCluster` also run on the diffusion map of the neighbor graph
DIFFUSION = ("MinimumDensity", "SpectralConnectivity")
