"""The map of a kernel, read from a model file and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.standardization import Standardization
from ravine.features.diffusion import DiffusionMap
from ravine.features.feature_map import FeatureMap
from ravine.features.kernel_map import (
    NOT_NEGATIVE,
    Kernel,
    KernelMap,
    check_kernel_parameter,
    kernel_names,
    kernel_parameters,
)
from ravine.store.archive import Stored, require, shorten_value


def map_from(stored: Stored, n_features: int, kernel: Any) -> FeatureMap | None:
    """Take the map of a kernel out of a file, or None where there is no kernel."""
    if kernel is None:
        require(stored.fact("map") is None, "map", "null for a model without a kernel", "an object")
        return None
    facts = stored.inner("map")
    kind = facts.text("kind", kernel_names())
    require(kind == kernel, "map.kind", f"the kernel of the parameters, {shorten_value(kernel)}", kind)
    return (_diffusion_from if kind == "diffusion" else _kernel_from)(stored, facts, kind, n_features)


def _coefficients_from(stored: Stored) -> FloatArray:
    found = stored.floats("map_coefficients", None, None)
    require(found.size, "map_coefficients", "of a landmark and a component at least", f"shape {found.shape}")
    return found


def _standardization_from(stored: Stored, n_features: int) -> Standardization:
    mean = stored.floats("map_mean", n_features)
    return Standardization.of_scales(mean, stored.floats("map_inverse_scale", n_features, low=0))


def _kernel_from(stored: Stored, facts: Stored, kind: str, n_features: int) -> FeatureMap:
    coefficients = _coefficients_from(stored)
    n, n_components = coefficients.shape
    given, known = facts.inner("parameters").facts, kernel_parameters(kind)
    require(set(given) <= set(known), "map.parameters", f"those of kernel={kind!r}", sorted(given))
    require("gamma" in given or "gamma" not in known, "map.parameters", "with gamma", sorted(given))
    parameters = {name: check_kernel_parameter(name, value) for name, value in given.items()}
    if kind == "precomputed":
        own: Standardization | None = None
        landmarks: Any = stored.integers("map_landmarks", n, low=0, high=n_features - 1)
    else:
        own = _standardization_from(stored, n_features)
        low = 0.0 if kind in NOT_NEGATIVE else -np.inf
        landmarks = stored.floats("map_landmarks", n, n_features, low=low)
    shift = stored.floats("map_shift", n_components)
    return KernelMap(Kernel(kind, parameters, own), landmarks, coefficients, shift)


def _diffusion_from(stored: Stored, facts: Stored, kind: str, n_features: int) -> FeatureMap:
    coefficients = _coefficients_from(stored)
    n = len(coefficients)
    masses = stored.floats("map_masses", n, low=0, high=np.finfo(np.float64).max / n)
    require((masses > 0).all(), "map_masses", "above 0", "0")
    metric = facts.text("metric", ["euclidean", "cosine"])
    is_sparse = metric == "cosine" and "map_landmarks_data" in stored.arrays
    landmarks = (
        _sparse_from(stored, n, n_features) if is_sparse else stored.floats("map_landmarks", n, n_features)
    )
    own = _standardization_from(stored, n_features)
    return DiffusionMap(own, landmarks, masses, coefficients, facts.integer("n_neighbors", low=2), metric)


def _sparse_from(stored: Stored, n: int, n_features: int) -> sparse.csr_array:
    """Take sparse landmarks out of a file; their index arrays are checked before they are used."""
    data = stored.floats("map_landmarks_data", None)
    columns = stored.integers("map_landmarks_indices", len(data), low=0, high=n_features - 1)
    starts = stored.integers("map_landmarks_indptr", n + 1, low=0, high=len(data))
    ordered = starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all()
    require(ordered, "map_landmarks_indptr", "not decreasing, from 0 to the number of values", starts[:3])
    found = sparse.csr_array((data, columns, starts), shape=(n, n_features))
    found.sort_indices()
    return found
