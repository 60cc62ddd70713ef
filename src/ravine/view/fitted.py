"""What views are drawn of: a fitted clusterer or its tree, and rows in the space that the tree splits."""

from __future__ import annotations

from typing import Any

from ravine.data.memory import MemoryRows
from ravine.tree.tree import ClusterTree


def tree_of(model: Any) -> ClusterTree:
    """Return the tree of a fitted clusterer, or the tree itself."""
    tree: ClusterTree = getattr(model, "tree_", model)
    return tree


def rows_of(model: Any, X: Any, sample_weight: Any = None) -> MemoryRows:
    """Return the rows of X in the space of the tree: mapped, where the model has a kernel."""
    tree = tree_of(model)
    if tree.mapped and tree is not model:
        mapped: MemoryRows = model._rows(X, sample_weight)
        return mapped
    return tree.rows(X, sample_weight)
