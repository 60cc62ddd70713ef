"""The clusterers by name, and the methods that `AutoCluster` can try."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from ravine.data.node import SAMPLE_CELLS
from ravine.estimators.clusterer import TreeClusterer
from ravine.estimators.maximin_separation import MaximinSeparation
from ravine.estimators.maximum_margin import MaximumMargin
from ravine.estimators.minimum_density import MinimumDensity
from ravine.estimators.principal_direction import PrincipalDirection
from ravine.estimators.spectral_connectivity import SpectralConnectivity
from ravine.exceptions import InvalidInputError
from ravine.optimize.minimax import MAX_FEATURES

CLUSTERERS: dict[str, type[TreeClusterer]] = {
    make.__name__: make
    for make in (MaximinSeparation, MaximumMargin, MinimumDensity, PrincipalDirection, SpectralConnectivity)
}
# the clusterers that `compare` and `AutoCluster` also run on the diffusion map of the neighbor graph
DIFFUSION = ("MinimumDensity", "SpectralConnectivity")
FOREIGN: dict[str, tuple[str, str, dict[str, Any]]] = {  # of other packages: where, and with which parameters
    "spectral-clustering": ("sklearn.cluster", "SpectralClustering", {"affinity": "nearest_neighbors"}),
    "hdbscan": ("sklearn.cluster", "HDBSCAN", {"copy": True}),
    "genie": ("genieclust", "Genie", {}),
}
MARGIN_CELLS = 1 << 19  # most values (rows x columns) for maximum margins, whose passes are many


def default_methods(shape: tuple[int, int]) -> list[str]:
    """Return the names of the methods that are tried on so many rows and columns.

    >>> default_methods((10_000_000, 5000))
    ['minimum-density', 'spectral-connectivity']
    """
    cells = shape[0] * shape[1]
    found = ["minimum-density", "spectral-connectivity"]
    found += ["maximin-separation"] if shape[1] <= MAX_FEATURES else []
    found += ["maximum-margin"] if cells <= MARGIN_CELLS else []
    mapped = [f"{name_of(make)} diffusion" for make in DIFFUSION]
    return found + (mapped if cells <= SAMPLE_CELLS else [])  # neighbors are searched in memory


def name_of(make: str) -> str:
    """Return the name of a clusterer among the methods.

    >>> name_of("MinimumDensity")
    'minimum-density'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", make).lower()


def make_method(name: str) -> Any:
    """Return a method by its name: that of a clusterer, also followed by "diffusion", or a foreign one."""
    own = {name_of(make): make for make in CLUSTERERS}
    plain, _, kernel = name.partition(" ")
    if plain in own and kernel in ("", "diffusion"):
        return CLUSTERERS[own[plain]](kernel=kernel or None)
    if name not in FOREIGN:
        known = ", ".join(map(repr, (*own, *FOREIGN)))
        raise InvalidInputError(
            f'methods may name {known}, the first five also followed by " diffusion", got {name!r}; '
            "or give an estimator"
        )
    module, make, parameters = FOREIGN[name]
    try:
        return getattr(import_module(module), make)(**parameters)
    except ImportError:
        raise InvalidInputError(f"{name!r} needs the package {module}; install it, or leave it out") from None
