"""Growth: always split the leaf that promises most, until there are enough or nothing is left to split."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ravine._validate import IntArray
from ravine.data.blocks import RowBlocks, drive
from ravine.data.frame import Frame
from ravine.split.hyperplane import Split, Splitter
from ravine.tree.tree import ClusterTree

Priority = Callable[[Split, float], float]

PRIORITIES: dict[str, Priority] = {
    "depth": lambda split, weight: split.quality * weight,
    "size": lambda split, weight: weight,
    "value": lambda split, weight: -split.value,
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each split."""

    n_leaves: int
    n_clusters: int
    weight: float
    split: Split
    n_passes: float
    seconds: float


@dataclass(frozen=True)
class Grown:
    """A tree, the label of every training row, and the frame of all rows."""

    tree: ClusterTree
    labels: IntArray
    frame: Frame


@dataclass
class _Nodes:
    """The growing tree."""

    parent: list[int] = field(default_factory=lambda: [-1])
    left: list[int] = field(default_factory=lambda: [-1])
    right: list[int] = field(default_factory=lambda: [-1])
    weight: list[float] = field(default_factory=list)
    splits: list[Split | None] = field(default_factory=lambda: [None])
    order: list[int] = field(default_factory=lambda: [-1])
    n_splits: int = 0

    def divide(self, node: int, split: Split, left: float, right: float) -> tuple[int, int]:
        """Split a leaf; return its children."""
        children = len(self.parent), len(self.parent) + 1
        self.parent += [node, node]
        self.left += [-1, -1]
        self.right += [-1, -1]
        self.weight += [left, right]
        self.splits += [None, None]
        self.order += [-1, -1]
        self.left[node], self.right[node] = children
        self.splits[node], self.order[node] = split, self.n_splits
        self.n_splits += 1
        return children

    def tree(self) -> ClusterTree:
        """Return the finished tree."""
        return ClusterTree(
            parent=np.array(self.parent, dtype=np.int64),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            weight=np.array(self.weight),
            splits=tuple(self.splits),
            order=np.array(self.order, dtype=np.int64),
        )


def grow(
    rows: RowBlocks,
    splitter: Splitter,
    n_clusters: int,
    *,
    least: float,
    priority: Priority,
    rng: np.random.Generator,
    watch: Callable[[Progress], None],
) -> Grown:
    """Grow a tree to `n_clusters` leaves, or to as many as there are valleys.

    Only leaves that may still be split are searched: the root and both children of every split but the
    last, 2 K - 3 searches for K clusters. An interrupt from the keyboard keeps the tree found so far.
    """
    began = time.perf_counter()
    frame, split = drive(rows, splitter.search(rows, None, least, rng))
    nodes = _Nodes(weight=[rows.total])
    leaf_of = np.zeros(rows.shape[0], dtype=np.int32)
    waiting: list[tuple[float, int, Split]] = []

    def consider(node: int, found: Split | None) -> None:
        if found is not None:
            heapq.heappush(waiting, (-priority(found, nodes.weight[node]), node, found))

    consider(0, split)
    try:
        while waiting and nodes.n_splits + 1 < n_clusters:
            _, node, split = heapq.heappop(waiting)
            members = np.flatnonzero(leaf_of == node)
            here = rows if node == 0 else rows.select(members)
            right = split.boundary.signed_distance(here) > 0
            sides = [members[~right], members[right]]
            weights = [rows.select(side).total for side in sides]
            children = nodes.divide(node, split, weights[0], weights[1])
            for child, side in zip(children, sides, strict=True):
                leaf_of[side] = child
            passes = rows.reads.rows / rows.shape[0]
            watch(
                Progress(
                    nodes.n_splits + 1,
                    n_clusters,
                    nodes.weight[node],
                    split,
                    passes,
                    time.perf_counter() - began,
                )
            )
            if nodes.n_splits + 1 < n_clusters:
                for child, side in zip(children, sides, strict=True):
                    if nodes.weight[child] >= 2 * least and len(side) > 1:
                        part = rows.select(side)
                        consider(child, drive(part, splitter.search(part, frame, least, rng))[1])
    except KeyboardInterrupt:
        warnings.warn(
            f"interrupted: the tree found so far is kept, with {nodes.n_splits + 1} of {n_clusters} clusters",
            stacklevel=4,
        )
    tree = nodes.tree()
    return Grown(tree, tree.label_of_node[leaf_of], frame)
