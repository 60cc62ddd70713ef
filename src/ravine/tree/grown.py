"""What growth is given, how far a tree may grow, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

from ravine._validate import IntArray
from ravine.data.query import RowSet
from ravine.data.standardization import Standardization
from ravine.split.far import FarRows
from ravine.tree.tree import ClusterTree


@dataclass(frozen=True)
class Limits:
    """How far a tree may grow."""

    max_leaves: int
    max_depth: int
    min_weight: float


@dataclass(frozen=True)
class Grown:
    """A tree, the label of every row, the standardization of all rows, and whether growth was interrupted.

    `far` are the rows far from all others, and `rule` finds such rows among any; both may be None.
    """

    tree: ClusterTree
    labels: IntArray
    standardization: Standardization
    interrupted: bool
    far: RowSet | None
    rule: FarRows | None
