"""The boundaries between all pairs of a classifier's classes, for the views in the form of a tree's nodes.

A row belongs to the class that wins most of its pairs, so there is no path of splits to a class. What views
ask of a tree has an answer all the same: which rows a boundary divides (those of its two classes), which
boundaries a class has, and which class a row belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import Block
from ravine.data.memory import MemoryRows
from ravine.tree.arrays import TreeArrays, Visit


@dataclass(frozen=True, eq=False, repr=False)
class ClassPairs(TreeArrays):
    """One node per pair of classes, each with a split, and then one leaf per class.

    The children of a pair are its two classes, so that a leaf has several parents: `parent` is -1 for all.
    """

    model: Any = None

    @cached_property
    def leaves(self) -> IntArray:
        """The classes in order."""
        return np.flatnonzero(self.left < 0)

    def path(self, node: int) -> list[int]:
        """Return all boundaries of a class and the class itself, or a boundary alone."""
        around = np.flatnonzero((self.left == node) | (self.right == node))
        return [*around.tolist(), int(node)]

    def find(self, block: Block) -> IntArray:
        """Return the leaf of every row of a block: the class with most votes."""
        return self._winner(self._block_distances(block))

    def visit(self, rows: MemoryRows) -> Iterator[Visit]:
        """Yield every boundary with the rows of its two classes and their distances; one pass."""
        return self._visits(self.distances(rows))

    def visit_block(self, block: Block) -> Iterator[Visit]:
        """Yield every boundary with the rows of a block in its two classes."""
        return self._visits(self._block_distances(block))

    def memberships(self, rows: MemoryRows) -> FloatArray:
        """Return the memberships of the classifier's `predict_proba`."""
        return np.asarray(softmax(self.model._votes(self.distances(rows).T), axis=1))

    def _block_distances(self, block: Block) -> FloatArray:
        return np.stack([self.boundary(node).distances(block) for node in self.inner], axis=1)

    def _winner(self, distances: FloatArray) -> IntArray:
        return np.asarray(self.leaves[np.argmax(self.model._votes(distances.T), axis=1)])

    def _visits(self, distances: FloatArray) -> Iterator[Visit]:
        leaf = self._winner(distances)
        for node in self.inner.tolist():
            members = np.flatnonzero((leaf == self.left[node]) | (leaf == self.right[node]))
            if len(members):
                yield node, members, distances[members, node]


def pairs_of_classes(model: Any) -> ClassPairs:
    """Return the boundaries of a fitted classifier with "one-vs-one"; rows get the class of `predict`."""
    n_pairs, n_classes = len(model.boundaries_), len(model.classes_)
    none, mapped = np.full(n_classes, -1), model.feature_map_ is not None
    names = getattr(model, "feature_names_in_", None)
    return ClassPairs(
        parent=np.full(n_pairs + n_classes, -1),
        left=np.concatenate([[n_pairs + one.left[0] for one in model.boundaries_], none]),
        right=np.concatenate([[n_pairs + one.right[0] for one in model.boundaries_], none]),
        weight=np.zeros(n_pairs + n_classes),
        splits=(*(one.split for one in model.boundaries_), *(None,) * n_classes),
        order=np.concatenate([np.arange(n_pairs), none]),
        refused=(None,) * (n_pairs + n_classes),
        label=np.concatenate([np.full(n_pairs, -1), np.arange(n_classes)]),
        feature_names=None if names is None or mapped else tuple(map(str, names)),
        mapped=mapped,
        spread=model.spread_,
        model=model,
    )
