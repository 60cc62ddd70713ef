"""Clustering with hyperplanes that run through the ravines of the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ravine.estimators.auto_cluster import AutoCluster as AutoCluster
    from ravine.estimators.classifier import MinimumDensityClassifier as MinimumDensityClassifier
    from ravine.estimators.maximin_separation import MaximinSeparation as MaximinSeparation
    from ravine.estimators.maximum_margin import MaximumMargin as MaximumMargin
    from ravine.estimators.minimum_density import MinimumDensity as MinimumDensity
    from ravine.estimators.principal_direction import PrincipalDirection as PrincipalDirection
    from ravine.estimators.selection import Candidate as Candidate
    from ravine.estimators.selection import Selection as Selection
    from ravine.estimators.selection import compare as compare
    from ravine.estimators.selection import select as select
    from ravine.estimators.spectral_connectivity import SpectralConnectivity as SpectralConnectivity
    from ravine.exceptions import DiscreteColumnWarning as DiscreteColumnWarning
    from ravine.exceptions import InterruptedWarning as InterruptedWarning
    from ravine.exceptions import InvalidInputError as InvalidInputError
    from ravine.exceptions import InvalidModelError as InvalidModelError
    from ravine.exceptions import OneClusterWarning as OneClusterWarning
    from ravine.exceptions import OutlierWarning as OutlierWarning
    from ravine.exceptions import RavineError as RavineError
    from ravine.explorer.start import Explorer as Explorer
    from ravine.explorer.start import explore as explore
    from ravine.io.open_file import open as open
    from ravine.store.model_file import load as load
    from ravine.store.model_file import save as save
    from ravine.tree.grow import Progress as Progress
    from ravine.tree.tree import ClusterTree as ClusterTree
    from ravine.view.check import check as check
    from ravine.view.explain import explain as explain
    from ravine.view.report import report as report


__version__ = "0.1.0"

# The public names of each module, which is imported at their first use, so that `import ravine` is quick.
_NAMES = {
    "estimators.auto_cluster": ["AutoCluster"],
    "estimators.classifier": ["MinimumDensityClassifier"],
    "estimators.maximin_separation": ["MaximinSeparation"],
    "estimators.maximum_margin": ["MaximumMargin"],
    "estimators.minimum_density": ["MinimumDensity"],
    "estimators.principal_direction": ["PrincipalDirection"],
    "estimators.selection": ["Candidate", "Selection", "compare", "select"],
    "estimators.spectral_connectivity": ["SpectralConnectivity"],
    "exceptions": [
        *("DiscreteColumnWarning", "InterruptedWarning", "OneClusterWarning", "OutlierWarning"),
        *("InvalidInputError", "InvalidModelError", "RavineError"),
    ],
    "explorer.start": ["Explorer", "explore"],
    "io.open_file": ["open"],
    "store.model_file": ["load", "save"],
    "tree.grow": ["Progress"],
    "tree.tree": ["ClusterTree"],
    "view.check": ["check"],
    "view.explain": ["explain"],
    "view.report": ["report"],
}
_HOMES = {name: f"ravine.{module}" for module, names in _NAMES.items() for name in names}

# without `open`: `from ravine import *` leaves the built-in function in place
__all__ = sorted(set(_HOMES) - {"open"})


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("ravine.metrics")
    if name not in _HOMES:
        raise AttributeError(f"module 'ravine' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
