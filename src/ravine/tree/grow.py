"""Growth: always split the leaf that promises most, until there are enough or nothing is left to split."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ravine._validate import IntArray
from ravine.data.blocks import RowBlocks, run
from ravine.data.standardization import Standardization
from ravine.exceptions import InterruptedWarning
from ravine.split.hyperplane import Split, Splitter
from ravine.split.labels import Known
from ravine.split.neighbor_cut import NeighborGraph
from ravine.tree.reunite import reunite
from ravine.tree.significance import SignificanceTest
from ravine.tree.tree import ClusterTree

MANY = 20  # rows a column that a wider search needs
SECOND_TRY = 0.1  # the share of the level at which a wider search has to convince

Priority = Callable[[Split, RowBlocks, Standardization], float]

PRIORITIES: dict[str, Priority] = {
    "depth": lambda split, rows, standardization: split.quality * rows.total,
    "size": lambda split, rows, standardization: rows.total,
    "value": lambda split, rows, standardization: -split.value,
    "neighbors": lambda split, rows, standardization: (
        kept_together(split, rows, standardization) * rows.total
    ),
}


def kept_together(split: Split, rows: RowBlocks, standardization: Standardization) -> float:
    """Return 1 less the normalized cut in the graph of neighbors.

    That is 1 where none are parted, and 0 where the sides have nothing to do with the graph.
    """
    return max(0.0, 1.0 - NeighborGraph.of(rows, standardization).parted_by(split.boundary))


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
    """A tree, the label of every training row, the frame of all rows, and whether growth was interrupted."""

    tree: ClusterTree
    labels: IntArray
    standardization: Standardization
    interrupted: bool


@dataclass
class _Nodes:
    """The growing tree."""

    parent: list[int] = field(default_factory=lambda: [-1])
    left: list[int] = field(default_factory=lambda: [-1])
    right: list[int] = field(default_factory=lambda: [-1])
    weight: list[float] = field(default_factory=list)
    splits: list[Split | None] = field(default_factory=lambda: [None])
    found: list[Split | None] = field(default_factory=lambda: [None])
    depth: list[int] = field(default_factory=lambda: [0])
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
        self.found += [None, None]
        self.depth += [self.depth[node] + 1] * 2
        self.order += [-1, -1]
        self.left[node], self.right[node] = children
        self.splits[node], self.found[node], self.order[node] = split, None, self.n_splits
        self.n_splits += 1
        return children

    def tree(self) -> ClusterTree:
        """Return the finished tree."""
        return ClusterTree.of_leaves(
            parent=np.array(self.parent, dtype=np.int64),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            weight=np.array(self.weight),
            splits=tuple(self.splits),
            refused=tuple(self.found),
            order=np.array(self.order, dtype=np.int64),
        )


@dataclass(frozen=True)
class Limits:
    """How far a tree may grow."""

    max_leaves: int
    max_depth: int
    min_weight: float


class _Growth:
    """A tree while it grows: its nodes, the leaf of every row, and the splits that wait to be made."""

    def __init__(
        self,
        rows: RowBlocks,
        splitter: Splitter,
        limits: Limits,
        priority: Priority,
        level: float | None,
        known: Known | None,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.limits, self.priority, self.known = rows, limits, priority, known
        self.seed = int(rng.integers(2**63))
        self.searches: list[tuple[Splitter, SignificanceTest | None]] = [(splitter, None)]
        if level is not None:
            second = [
                SignificanceTest(wider, SECOND_TRY * level, own_tails=True) for wider in splitter.wider()
            ]
            self.searches = [
                (trial.splitter, trial) for trial in (SignificanceTest(splitter, level), *second)
            ]
        self.nodes = _Nodes(weight=[rows.total])
        self.leaf_of = np.zeros(rows.shape[0], dtype=np.int32)
        self.path: list[tuple[int, ...]] = [()]  # of every node, see `divided`
        self.waiting: list[tuple[bool, float, float, float, int, Split]] = []
        self.root: Standardization | None = None

    @property
    def unfinished(self) -> bool:
        """Whether more leaves are wanted."""
        return self.nodes.n_splits + 1 < self.limits.max_leaves

    def searches_for(self, members: IntArray | None) -> list[tuple[Splitter, SignificanceTest | None]]:
        """Return the searches of some rows, in order: first one with labels, where two classes have some."""
        if self.known is None:
            return self.searches
        labels = self.known.among(members)
        splitter, trial = self.searches[0]
        steered = splitter.steered(labels) if labels.n_classes > 1 else None
        return self.searches if steered is None else [(steered, trial), *self.searches]

    def best_split(self, members: IntArray | None, *key: int) -> tuple[Split | None, bool]:
        """Search some rows (None: all); return the best split, if any, and whether it is worth making.

        All random numbers come from the seed and the `key`, so that they do not depend on what was searched
        before.

        Where a search with labels finds nothing that convinces, the usual one may. With a level, where that
        finds nothing either, a wider one may, which looks for groups far from the middle; it is a second
        try, and has to convince at a tenth of the level.

        The level is that of the whole tree: a node with a share of the rows is tested at that share of it, so
        that the leaves of a tree of any size raise a false alarm together no more often than one (Kimes, Liu,
        Hayes, Marron: Statistical Significance for Hierarchical Clustering, 2017).
        """
        rows = self.rows if members is None else self.rows.select(members)
        share = rows.total / self.rows.total
        first: Split | None = None
        for attempt, (splitter, trial) in enumerate(self.searches_for(members)):
            if trial is not None and trial.own_tails and rows.total < MANY * rows.shape[1]:
                continue  # with few rows for the dimension, chance makes deep valleys in the tails
            rng = np.random.default_rng([self.seed, attempt, *key])
            standardization, split = run(rows, splitter.search(rows, self.root, self.limits.min_weight, rng))
            self.root = self.root or standardization
            if split is None:
                continue
            if trial is not None:
                trial = replace(trial, level=trial.level * share)
                split = trial.judge_split(rows, standardization, split, self.limits.min_weight, rng)
            if trial is None or split.convinces(trial.level):
                return split, True
            first = first or split
        return first, False

    def look(self, node: int, members: IntArray | None) -> None:
        """Search a leaf, and let its split wait if it is worth making.

        Among splits of one priority (0, say, where there is no valley) the larger leaf comes first, then the
        lower value, and only then the order of the nodes, which a mirror image changes.
        """
        split, worth = self.best_split(members, *self.path[node])
        self.nodes.found[node] = split
        if split is not None and worth:
            assert self.root is not None
            rows = self.rows if members is None else self.rows.select(members)
            priority = 0.0 if node == 0 else self.priority(split, rows, self.root)  # the root waits alone
            rank = not self.parts(members, split), -priority, -rows.total, split.value
            heapq.heappush(self.waiting, (*rank, node, split))

    def parts(self, members: IntArray | None, split: Split) -> bool:
        """Whether a split of some rows parts at least half of their labeled pairs of different classes."""
        if self.known is None:
            return False
        labels, boundary = self.known.among(members), split.boundary
        before = labels.left_together(boundary.pivot, np.zeros(len(boundary.pivot)), 0.0)
        after = labels.left_together(boundary.pivot, boundary.weights, boundary.threshold)
        return before > 0.0 and after <= before / 2.0

    def split_next(self) -> tuple[int, Split, list[tuple[int, IntArray]]]:
        """Make the most promising split; return the node, the split, and the children with their rows."""
        *_, node, split = heapq.heappop(self.waiting)
        members = np.flatnonzero(self.leaf_of == node)
        rows = self.rows if node == 0 else self.rows.select(members)
        right = split.boundary.signed_distance(rows) > 0
        sides = [members[~right], members[right]]
        left_weight, right_weight = (self.rows.select(side).total for side in sides)
        children = self.nodes.divide(node, split, left_weight, right_weight)
        self.path += self.paths_below(node, sides)
        for child, side in zip(children, sides, strict=True):
            self.leaf_of[side] = child
        return node, split, list(zip(children, sides, strict=True))

    def paths_below(self, node: int, sides: list[IntArray]) -> list[tuple[int, ...]]:
        """Return the paths of both children: 1 is the side with the first row that counts, 2 the other.

        Unlike left and right, that is the same in a mirror image.
        """
        counted = [self.rows.select(side).counted() for side in sides]
        firsts = [side[0 if c is None else c[0]] for side, c in zip(sides, counted, strict=True)]
        return [(*self.path[node], 1 if first == min(firsts) else 2) for first in firsts]

    def comes_apart(self, leaves: list[int]) -> bool:
        """Whether the rows of some leaves together have a split that is worth making."""
        key = [step for path in sorted(self.path[leaf] for leaf in leaves) for step in (*path, 0)]
        return self.best_split(np.flatnonzero(np.isin(self.leaf_of, leaves)), *key)[1]

    def may_split(self, node: int, members: IntArray) -> bool:
        """Whether a leaf is large and high enough to be searched."""
        weight, depth = self.nodes.weight[node], self.nodes.depth[node]
        return weight >= 2 * self.limits.min_weight and len(members) > 1 and depth < self.limits.max_depth


def grow(
    rows: RowBlocks,
    splitter: Splitter,
    limits: Limits,
    *,
    priority: Priority,
    level: float | None,
    rng: np.random.Generator,
    watch: Callable[[Progress], None],
    known: Known | None = None,
) -> Grown:
    """Grow a tree to as many leaves as are wanted, or to as many as there are valleys.

    Only leaves that may still be split are searched: the root and both children of every split but the
    last, 2 K - 3 searches for K clusters. With a level, a split is made only if its evidence is strong
    enough, and leaves that a hyperplane cut out of one cluster are put together again. Labels of known rows
    steer the splits of leaves that hold two classes. An interrupt from the keyboard keeps the tree found so
    far.
    """
    began = time.perf_counter()
    growth = _Growth(rows, splitter, limits, priority, level, known, rng)
    nodes, interrupted = growth.nodes, False
    try:
        growth.look(0, None)
        while growth.waiting and growth.unfinished and limits.max_depth > 0:
            node, split, children = growth.split_next()
            passes, seconds = rows.reads.rows / rows.shape[0], time.perf_counter() - began
            watch(Progress(nodes.n_splits + 1, limits.max_leaves, nodes.weight[node], split, passes, seconds))
            for child, members in children:
                if growth.unfinished and growth.may_split(child, members):
                    growth.look(child, members)
    except KeyboardInterrupt:
        if growth.root is None:
            raise
        interrupted = True
        warnings.warn(
            f"interrupted: the tree found so far is kept, with {nodes.n_splits + 1} clusters",
            InterruptedWarning,
            stacklevel=4,
        )
    assert growth.root is not None
    tree = nodes.tree()
    if level is not None:
        tree = reunite(tree, rows, growth.root, growth.comes_apart)
    return Grown(tree, tree.label[growth.leaf_of], growth.root, interrupted)
