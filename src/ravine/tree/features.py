"""Features by name, and which of them drive a split: one ranking for text, report, explanations and edits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ravine._validate import IntArray
from ravine.exceptions import InvalidInputError
from ravine.split.split import Split
from ravine.tree.arrays import TreeArrays


def names_of(tree: TreeArrays, names: Sequence[str] | None, n_features: int | None = None) -> list[str]:
    """Return the names of the columns: those given, those seen in `fit`, or x0, x1, ...

    Without `n_features` they are counted in the first split; a tree without splits needs no names.
    """
    if n_features is None:
        n_features = next((len(split.direction) for split in tree.splits if split is not None), None)
    found = names if names is not None else tree.feature_names
    if found is None or n_features is None:
        return [f"x{j}" for j in range(n_features or 0)]
    if len(found) != n_features:
        raise InvalidInputError(f"{n_features} feature names are needed, got {len(found)}")
    return [str(name) for name in found]


def ranked(split: Split) -> IntArray:
    """Return the features of a split, the one with the largest weight in its direction first.

    Weights are those of the search, of standardized columns unless the method was asked not to standardize.
    """
    order = np.argsort(-np.abs(split.direction), kind="stable")
    return np.asarray(order[split.direction[order] != 0])


def strongest(split: Split, names: Sequence[str], n_features: int) -> str:
    """Name the first features of the ranking with the signs of their weights, as in "+proline, -hue"."""
    return ", ".join(
        f"{'+' if split.direction[j] > 0 else '-'}{names[j]}" for j in ranked(split)[:n_features]
    )
