"""ravine clusters data by cutting it with hyperplanes that run through its ravines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ravine._validate import InterruptedWarning, InvalidInputError, InvalidModelError, RavineError
    from ravine.classify import MinimumDensityClassifier
    from ravine.cluster.maximin_separation import MaximinSeparation
    from ravine.cluster.maximum_margin import MaximumMargin
    from ravine.cluster.minimum_density import MinimumDensity
    from ravine.cluster.principal_direction import PrincipalDirection
    from ravine.cluster.spectral_connectivity import SpectralConnectivity
    from ravine.selection import Candidate, Selection, compare, select
    from ravine.tree.grow import Progress
    from ravine.tree.store import load, save
    from ravine.tree.tree import ClusterTree
    from ravine.view.explain import explain
    from ravine.view.report import report

__version__ = "0.1.0"

# Where each public name lives: it is imported when it is first asked for, so that the command line answers
# at once and `import ravine` costs nothing.
_HOMES = {
    "Candidate": "ravine.selection",
    "ClusterTree": "ravine.tree.tree",
    "InterruptedWarning": "ravine._validate",
    "InvalidInputError": "ravine._validate",
    "InvalidModelError": "ravine._validate",
    "MaximinSeparation": "ravine.cluster.maximin_separation",
    "MaximumMargin": "ravine.cluster.maximum_margin",
    "MinimumDensity": "ravine.cluster.minimum_density",
    "MinimumDensityClassifier": "ravine.classify",
    "PrincipalDirection": "ravine.cluster.principal_direction",
    "Progress": "ravine.tree.grow",
    "RavineError": "ravine._validate",
    "SpectralConnectivity": "ravine.cluster.spectral_connectivity",
    "Selection": "ravine.selection",
    "compare": "ravine.selection",
    "explain": "ravine.view.explain",
    "load": "ravine.tree.store",
    "report": "ravine.view.report",
    "save": "ravine.tree.store",
    "select": "ravine.selection",
}

__all__ = [
    "Candidate",
    "ClusterTree",
    "InterruptedWarning",
    "InvalidInputError",
    "InvalidModelError",
    "MaximinSeparation",
    "MaximumMargin",
    "MinimumDensity",
    "MinimumDensityClassifier",
    "PrincipalDirection",
    "Progress",
    "RavineError",
    "Selection",
    "SpectralConnectivity",
    "compare",
    "explain",
    "load",
    "report",
    "save",
    "select",
]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("ravine.metrics")
    if name not in _HOMES:
        raise AttributeError(f"module 'ravine' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
