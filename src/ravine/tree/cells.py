"""The nodes of a growing tree: their rows, their splits, and the order in which they were divided.

A `Cell` is a node of the growing tree with its rows; a `Node` (data/node.py) is what a search may know about
these rows; a node number is a place in the finished tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ravine.data.node import Labels, Node
from ravine.data.query import RowSet
from ravine.split.split import Split
from ravine.tree.tree import ClusterTree

Rank = tuple[bool, float, float, float]  # the place of a split in the queue, see `priorities.rank`


@dataclass(eq=False)
class Cell:
    """The rows of one node of the growing tree, and the result of their search.

    `far` are rows that were set aside, here or above: they are divided with the others, and not searched.
    """

    rows: RowSet
    path: tuple[
        int, ...
    ]  # sides from the root: 1 for the heavier one, else 2, whatever the order of the rows
    depth: int
    labels: Labels | None
    far: tuple[RowSet, ...] = ()
    opened: Node | None = None  # measured, but not yet searched
    searched: bool = False
    reached: bool = False  # whether the best-first order needs the search; others are speculative
    split: Split | None = None
    worth: bool = False  # whether the split is significant (without a level: whether there is one)
    rank: Rank = (True, 0.0, 0.0, 0.0)
    children: tuple[Cell, Cell] | None = None

    @property
    def total(self) -> float:
        """The weight of all rows, with those that were set aside."""
        return self.rows.total + sum(rows.total for rows in self.far)


@dataclass
class Nodes:
    """The growing tree, as lists with one entry per node."""

    cells: list[Cell]
    parent: list[int] = field(default_factory=lambda: [-1])
    left: list[int] = field(default_factory=lambda: [-1])
    right: list[int] = field(default_factory=lambda: [-1])
    splits: list[Split | None] = field(default_factory=lambda: [None])
    order: list[int] = field(default_factory=lambda: [-1])
    n_splits: int = 0

    def divide(self, node: int) -> tuple[int, int]:
        """Split a leaf; return its children."""
        cell = self.cells[node]
        assert cell.children is not None
        children = len(self.parent), len(self.parent) + 1
        self.cells += cell.children
        self.parent += [node, node]
        self.left += [-1, -1]
        self.right += [-1, -1]
        self.splits += [None, None]
        self.order += [-1, -1]
        self.left[node], self.right[node] = children
        self.splits[node], self.order[node] = cell.split, self.n_splits
        self.n_splits += 1
        return children

    def tree(self) -> ClusterTree:
        """Return the finished tree."""
        refused = [
            cell.split if split is None and cell.reached else None
            for cell, split in zip(self.cells, self.splits, strict=True)
        ]
        return ClusterTree.of_leaves(
            parent=np.array(self.parent, dtype=np.int64),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            weight=np.array([cell.total for cell in self.cells]),
            splits=tuple(self.splits),
            refused=tuple(refused),
            order=np.array(self.order, dtype=np.int64),
        )
