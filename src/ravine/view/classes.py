"""The boundaries of a classifier in the form of a tree, so that views can show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows
from ravine.tree.arrays import TreeArrays, Visit
from ravine.tree.tree import ClusterTree


def tree_of_classes(model: Any) -> TreeArrays:
    """Return the boundaries of a classifier as a tree of two classes, or as pairs; it predicts the same.

    The label of a leaf is the place of its class in `classes_`. Weights are 0, as the rows are not known.
    """
    if len(model.classes_) > 2:
        return _pairs(model)
    splits = [model.boundaries_[0].split, None, None]
    return ClusterTree(**_fields(model, [-1, 0, 0], [1, -1, -1], [2, -1, -1], splits, [-1, 0, 1]))


def _fields(model: Any, parent: Any, left: Any, right: Any, splits: Any, labels: Any) -> dict[str, Any]:
    """Return the fields of a tree."""
    names, mapped, n = getattr(model, "feature_names_in_", None), model.feature_map_ is not None, len(parent)
    made = np.array([split is not None for split in splits])
    return {
        "parent": np.array(parent),
        "left": np.array(left),
        "right": np.array(right),
        "weight": np.zeros(n),
        "splits": tuple(splits),
        "order": np.where(made, np.cumsum(made) - 1, -1),
        "refused": (None,) * n,
        "label": np.array(labels),
        "feature_names": None if names is None or mapped else tuple(map(str, names)),
        "mapped": mapped,
        "spread": model.spread_,
    }


@dataclass(frozen=True, eq=False, repr=False)
class ClassPairs(TreeArrays):
    """One node per pair of classes, each with a split, and then one leaf per class.

    A row belongs to the class with most `votes`, so that no path of splits leads to a class: `parent` is -1
    for all nodes, and `walk` leads nowhere. The children of a pair are its two classes.
    """

    votes: Callable[[FloatArray], FloatArray] = field(kw_only=True)

    @cached_property
    def leaves(self) -> IntArray:
        """The classes in order."""
        return np.flatnonzero(self.left < 0)

    def path(self, node: int) -> list[int]:
        """Return all boundaries of a class and the class itself, or a boundary alone."""
        around = np.flatnonzero((self.left == node) | (self.right == node))
        return [*around.tolist(), int(node)]

    def walk(self, n_rows: int, distances: Callable[[int, IntArray], FloatArray]) -> Iterator[Visit]:
        """Yield nothing."""
        return iter(())

    def find(self, block: Block) -> IntArray:
        """Return the leaf of every row of a block."""
        distances = np.stack([self.boundary(node).distances(block) for node in self.inner])
        return np.asarray(self.leaves[np.argmax(self.votes(distances), axis=1)])

    def memberships(self, rows: MemoryRows) -> FloatArray:
        """Return the memberships of the classifier's `predict_proba`."""
        return np.asarray(softmax(self.votes(self.distances(rows).T), axis=1))


def _pairs(model: Any) -> ClassPairs:
    """Return the boundaries of a classifier of more than two classes."""
    n_pairs, n_classes = len(model.boundaries_), len(model.classes_)
    none = [-1] * n_classes
    left = [n_pairs + one.left for one in model.boundaries_] + none
    right = [n_pairs + one.right for one in model.boundaries_] + none
    splits = [one.split for one in model.boundaries_] + [None] * n_classes
    labels = [-1] * n_pairs + list(range(n_classes))
    return ClassPairs(**_fields(model, [-1] * len(left), left, right, splits, labels), votes=model.votes)
