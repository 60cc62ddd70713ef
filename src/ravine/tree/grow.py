"""Growth: split the leaf of highest priority, until there are enough leaves or no split is left."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ravine._validate import IntArray
from ravine.data.node import Labels, Node, collect
from ravine.data.query import Query, RowSet, run, run_all
from ravine.data.standardization import Standardization
from ravine.exceptions import InterruptedWarning
from ravine.split.neighbor_cut import neighbor_graph
from ravine.split.search import Method, search
from ravine.split.split import Split
from ravine.tree.reunite import reunite
from ravine.tree.significance import SignificanceTest, significance_tests
from ravine.tree.tree import ClusterTree

ROWS_PER_COLUMN = 20  # least rows per column for a fallback: with fewer, tails have deep valleys by chance
FALLBACK_SHARE = 0.1  # share of the level at which a fallback is tested, because it is a second attempt


@dataclass(frozen=True)
class Progress:
    """The argument of the callback after each split."""

    n_leaves: int
    n_clusters: int
    weight: float
    split: Split
    n_passes: float
    seconds: float


@dataclass(frozen=True)
class Grown:
    """A tree, the label of every row, the standardization of all rows, and whether growth was interrupted."""

    tree: ClusterTree
    labels: IntArray
    standardization: Standardization
    interrupted: bool


@dataclass(frozen=True)
class Limits:
    """How far a tree may grow."""

    max_leaves: int
    max_depth: int
    min_weight: float


Priority = Callable[[Split, Node], Query[float]]


def _depth(split: Split, node: Node) -> Query[float]:
    yield from ()
    return split.quality * node.total


def _size(split: Split, node: Node) -> Query[float]:
    yield from ()
    return node.total


def _value(split: Split, node: Node) -> Query[float]:
    yield from ()
    return -split.value


def _neighbors(split: Split, node: Node) -> Query[float]:
    """1 minus the normalized cut: 1 if no neighbors are separated, 0 for sides unrelated to the graph."""
    graph = yield from neighbor_graph(node)
    return max(0.0, 1.0 - graph.cut_by(split.boundary)) * node.total


PRIORITIES: dict[str, Priority] = {
    "depth": _depth,
    "size": _size,
    "value": _value,
    "neighbors": _neighbors,
}


@dataclass(eq=False)
class Cell:
    """The rows of one node of the growing tree, and the result of their search."""

    rows: RowSet
    path: tuple[int, ...]  # sides from the root: 1 for that with the first row of positive weight, else 2
    depth: int
    labels: Labels | None
    searched: bool = False
    reached: bool = False  # whether the best-first order needs the search; others are speculative
    split: Split | None = None
    worth: bool = False  # whether the split is significant (without a level: whether there is one)
    rank: tuple[bool, float, float, float] = (True, 0.0, 0.0, 0.0)
    children: tuple[Cell, Cell] | None = None


@dataclass
class _Nodes:
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
            weight=np.array([cell.rows.total for cell in self.cells]),
            splits=tuple(self.splits),
            refused=tuple(refused),
            order=np.array(self.order, dtype=np.int64),
        )


@dataclass
class _Growth:
    """The state of growth: the nodes, and the splits that wait in a queue to be made.

    If passes are expensive, the children of waiting splits are searched speculatively, in the same passes as
    the leaves that the best-first order needs now. That does not change the tree, because a search depends
    only on its rows and its path.
    """

    root: Node
    method: Method
    limits: Limits
    priority: Priority
    tests: Sequence[SignificanceTest]
    labels: Labels | None

    def __post_init__(self) -> None:
        self.nodes = _Nodes([Cell(self.root.rows, (), 0, self.labels)])
        self.waiting: list[tuple[bool, float, float, float, int]] = []
        self.standardization: Standardization | None = None

    @property
    def unfinished(self) -> bool:
        """Whether the tree has fewer leaves than the limit."""
        return self.nodes.n_splits + 1 < self.limits.max_leaves

    def may_split(self, cell: Cell) -> bool:
        """Return whether a cell is heavy enough, and not too deep, to be split."""
        enough = cell.rows.total >= 2 * self.limits.min_weight and cell.rows.shape[0] > 1
        return enough and cell.depth < self.limits.max_depth

    def look(self, nodes: Sequence[int]) -> None:
        """Search leaves, and put their splits in the queue if they are worth making.

        Among splits of equal priority (such as 0 without a valley) the heavier leaf comes first, then the
        lower value, and only then the number of the node, which depends on signs of directions.
        """
        cells = [self.nodes.cells[node] for node in nodes]
        missing = [cell for cell in cells if not cell.searched]
        if missing:
            self.search(missing)
        for node, cell in zip(nodes, cells, strict=True):
            cell.reached = True
            if cell.split is not None and cell.worth:
                heapq.heappush(self.waiting, (*cell.rank, node))

    def search(self, cells: list[Cell]) -> None:
        """Search cells; if passes are expensive, also those that are likely to be needed next."""
        if self.root.rows.engine.local:
            for cell in cells:
                run(self.find(cell))
        else:
            run_all([self.find(cell) for cell in [*cells, *self.likely()]])

    def likely(self) -> list[Cell]:
        """Return children of the splits in the queue, of as many as the limit of leaves still allows."""
        wanted = min(self.limits.max_leaves - self.nodes.n_splits - 1, len(self.waiting))
        parents = [self.nodes.cells[node] for *_, node in heapq.nsmallest(wanted, self.waiting)]
        self.divide(parents)
        children = [child for cell in parents for child in cell.children or ()]
        return [child for child in children if not child.searched and self.may_split(child)]

    def find(self, cell: Cell) -> Query[None]:
        """Search a cell for its best split, and compute the rank of the split in the queue."""
        cell.split, cell.worth, node = yield from self.best_split(cell.rows, cell.labels, *cell.path)
        cell.searched = True
        if cell.split is None or not cell.worth:
            return
        priority = 0.0
        if cell.path:  # the root needs no priority: nothing else is in the queue
            priority = yield from self.priority(cell.split, node)
        divides = _divides_labels(cell.labels, cell.split)
        cell.rank = not divides, -priority, -cell.rows.total, cell.split.value

    def best_split(
        self, rows: RowSet, labels: Labels | None, *path: int
    ) -> Query[tuple[Split | None, bool, Node]]:
        """Search some rows; return the best split, if any, whether it is worth making, and the node.

        If a search with labels finds nothing significant, one without labels follows. With a level, if that
        finds nothing either, the fallbacks of the method follow, which search far from the mean.

        The level is that of the whole tree: a node with a share of the rows is tested at that share of it, so
        that the probability of any false split among the leaves is at most the level (Kimes, Liu, Hayes,
        Marron: Statistical Significance for Hierarchical Clustering, 2017).
        """
        root, share = self.standardization, rows.total / self.root.total
        node = yield from collect(replace(self.root, rows=rows, root=root, memo={}))
        with_labels = labels is not None and labels.n_classes > 1 and self.method.takes_labels
        tests: list[SignificanceTest | None] = [*self.tests] or [None]
        attempts = [(labels, tests[0])] if with_labels else []
        attempts += [(None, test) for test in tests]
        first: Split | None = None
        for k, (some, test) in enumerate(attempts):
            if test is not None and test.own_tails and rows.total < ROWS_PER_COLUMN * rows.shape[1]:
                continue
            stream = (*self.root.stream, k, *path)
            method = self.method if test is None else test.method
            searched, split = yield from search(replace(node, stream=stream, labels=some), method)
            self.standardization = self.standardization or searched.standardization
            node = replace(node, measured=searched.measured)
            if split is None:
                continue
            if test is not None:
                test = replace(test, level=test.level * share)
                split = yield from test.run(replace(searched, labels=None), split)
            if test is None or split.is_significant(test.level):
                return split, True, node
            first = first or split
        return first, False, node

    def divide(self, cells: Sequence[Cell]) -> None:
        """Divide cells by their splits, all in one pass."""
        cells = [cell for cell in cells if cell.children is None]
        if not cells:
            return
        boundaries = [cell.split.boundary for cell in cells if cell.split is not None]
        parts = self.root.rows.engine.divide(
            [(cell.rows, boundary) for cell, boundary in zip(cells, boundaries, strict=True)]
        )
        for cell, boundary, sides in zip(cells, boundaries, parts, strict=True):
            if min(side.n_counted for side in sides) == 0:  # the threshold is the outermost row, but rounded
                cell.worth = False
                continue
            labels = (None, None)
            if cell.labels is not None:
                right = boundary.signed_distance_of(cell.labels.rows) > 0
                labels = cell.labels.pick(~right), cell.labels.pick(right)  # type: ignore[assignment]
            first = min(side.first for side in sides)
            left, right_cell = (
                Cell(side, (*cell.path, 1 if side.first == first else 2), cell.depth + 1, some)
                for side, some in zip(sides, labels, strict=True)
            )
            cell.children = left, right_cell

    def split_next(self) -> tuple[Cell, Sequence[int]]:
        """Make the split of highest priority; return its cell, and the nodes of its children.

        There are no children if rounding left one side empty.
        """
        *_, node = heapq.heappop(self.waiting)
        cell = self.nodes.cells[node]
        self.divide([cell])
        return cell, () if cell.children is None else self.nodes.divide(node)

    def comes_apart(self, nodes: list[int]) -> bool:
        """Return whether the rows of some leaves together have a split worth making."""
        cells = [self.nodes.cells[node] for node in nodes]
        path = [step for cell in sorted(cells, key=lambda cell: cell.path) for step in (*cell.path, 0)]
        rows = self.root.rows.engine.union([cell.rows for cell in cells])
        return run(self.best_split(rows, None, *path))[1]


def _divides_labels(labels: Labels | None, split: Split) -> bool:
    """Return whether a split separates at least half of the weight of labeled pairs of different classes."""
    if labels is None:
        return False
    before = labels.pairs_together(np.zeros(len(labels.rows), dtype=bool))
    after = labels.pairs_together(split.boundary.signed_distance_of(labels.rows) > 0)
    return before > 0.0 and after <= before / 2.0


def grow(
    root: Node,
    method: Method,
    limits: Limits,
    *,
    priority: Priority,
    level: float | None,
    watch: Callable[[Progress], None],
    passes: Callable[[], float],
    labels: Labels | None = None,
) -> Grown:
    """Grow a tree up to the limit of leaves, or as long as there are significant splits.

    Only leaves that may still be split are searched: the root and both children of every split except the
    last, 2 K - 3 searches for K clusters. With a level, a split is made only if it is significant, and leaves
    that are parts of one cluster get one label. Partial labels guide the splits of leaves with labels of two
    or more classes. After a keyboard interrupt, the tree found so far is returned.
    """
    began = time.perf_counter()
    tests = [] if level is None else significance_tests(method, level, FALLBACK_SHARE)
    growth = _Growth(root, method, limits, priority, tests, labels)
    nodes, interrupted = growth.nodes, False
    try:
        growth.look([0])
        while growth.waiting and growth.unfinished and limits.max_depth > 0:
            cell, children = growth.split_next()
            if cell.split is None or not children:
                continue
            n_leaves, seconds = nodes.n_splits + 1, time.perf_counter() - began
            watch(Progress(n_leaves, limits.max_leaves, cell.rows.total, cell.split, passes(), seconds))
            if growth.unfinished:
                growth.look([child for child in children if growth.may_split(nodes.cells[child])])
    except KeyboardInterrupt:
        if growth.standardization is None:
            raise
        interrupted = True
        warnings.warn(
            f"interrupted: the tree found so far is kept, with {nodes.n_splits + 1} clusters",
            InterruptedWarning,
            stacklevel=4,
        )
    assert growth.standardization is not None
    tree = nodes.tree()
    if level is not None and tree.n_leaves > 2:
        tree = reunite(tree, [cell.rows for cell in nodes.cells], growth.standardization, growth.comes_apart)
    leaves = [nodes.cells[leaf] for leaf in tree.leaves]
    labels_of = root.rows.engine.assign(
        [cell.rows for cell in leaves], [int(tree.label[leaf]) for leaf in tree.leaves]
    )
    return Grown(tree, labels_of, growth.standardization, interrupted)
