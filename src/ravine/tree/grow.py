"""Growth: split the leaf of highest priority, until there are enough leaves or no split is left.

    open a leaf  ->  search it  ->  judge the split  ->  queue it  ->  divide the rows

The first three steps are in `leaf_search.py`, the others here.
"""

from __future__ import annotations

import heapq
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import current_thread

import numpy as np

from ravine._validate import IntArray
from ravine.data.node import LOCAL_CELLS, Labels, Node, Opened
from ravine.data.query import Query, RowSet, run, run_all
from ravine.data.standardization import Standardization
from ravine.exceptions import InterruptedWarning
from ravine.split.far import FarRows, find_far
from ravine.split.search import BaseMethod
from ravine.split.split import Split
from ravine.store.checkpoint import Checkpoint, Rank
from ravine.tree.leaf_search import Leaf, LeafSearch, Priority, bound_rank, by_neighbors, choose_tests
from ravine.tree.tree import ClusterTree

UNLIMITED = 2**31 - 1  # number of leaves or levels that no tree reaches
WATCH_SECONDS = 1.0  # least time between two calls of `verbose`, a function, that are not about a split


@dataclass(frozen=True)
class Limits:
    """How far a tree may grow.

    With `splits_always` leaves without a valley are split, too, and with `splits_far`, where nothing else is
    left, rows that were set aside from the others.
    """

    max_leaves: int
    max_depth: int
    min_weight: float
    splits_always: bool = False
    splits_far: bool = False


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


@dataclass
class GrowingTree:
    """The nodes of the tree so far, and the children of those that were divided, in the order of that."""

    nodes: list[Leaf]
    parent: list[int] = field(default_factory=lambda: [-1])
    children: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.children) + 1

    def divide(self, node: int) -> tuple[int, int]:
        """Make the children of a leaf nodes of the tree; return their numbers."""
        new = self.nodes[node].children
        assert new is not None
        self.children[node] = len(self.nodes), len(self.nodes) + 1
        self.nodes += new
        self.parent += [node, node]
        return self.children[node]

    def finish(self) -> ClusterTree:
        """Return the tree as arrays."""
        n = len(self.nodes)
        left, right, order = (np.full(n, -1, dtype=np.int64) for _ in range(3))
        splits: list[Split | None] = [None] * n
        for k, (node, both) in enumerate(self.children.items()):
            left[node], right[node] = both
            order[node], splits[node] = k, self.nodes[node].split
        refused = [
            leaf.found.split if splits[node] is None and leaf.reached and leaf.found else None
            for node, leaf in enumerate(self.nodes)
        ]
        return ClusterTree.of_leaves(
            parent=np.array(self.parent, dtype=np.int64),
            left=left,
            right=right,
            weight=np.array([leaf.total for leaf in self.nodes]),
            splits=tuple(splits),
            refused=tuple(refused),
            order=order,
        )


@dataclass
class Growth:
    """The growing tree, and the queue of leaves that may be split.

    A leaf waits at the place of the best split that it could have, and is searched when it is first: a light
    leaf may never be. If passes are expensive, leaves are searched at once, and so are the likely ones: the
    children of waiting splits, in the same passes. That does not change the tree, because a search depends
    only on its rows and its path.
    """

    tree: GrowingTree
    search: LeafSearch
    limits: Limits
    sets_aside: bool
    checkpoint: Checkpoint | None
    queue: list[tuple[*Rank, int]] = field(default_factory=list)
    set_aside: tuple[RowSet | None, FarRows | None] = None, None  # of the root, and the rule that found them

    @property
    def root(self) -> Leaf:
        """All rows."""
        return self.tree.nodes[0]

    @property
    def passes_are_cheap(self) -> bool:
        """Whether the rows are in memory."""
        return self.root.rows.engine.local

    @property
    def is_unfinished(self) -> bool:
        """Whether the tree has fewer leaves than the limit."""
        return self.tree.n_leaves < self.limits.max_leaves

    def may_split(self, leaf: Leaf, total: float) -> bool:
        """Return whether a leaf with rows of this weight is heavy enough, and not too deep, to be split."""
        enough = total >= 2 * self.limits.min_weight and leaf.rows.shape[0] + len(leaf.far) > 1
        return enough and len(leaf.path) < self.limits.max_depth

    def begin(self) -> None:
        """Search the root, also if it may not be split; all other searches need its standardization."""
        (opened,) = self.open_leaves([self.root])
        if self.checkpoint is not None:
            self.checkpoint.check_rows()
        self.search = run(self.search.after_root(opened))
        self.set_aside = (self.root.far[0] if self.root.far else None), self.root.rule
        run(self.find(self.root, opened))
        self.enqueue([0])

    def open_leaves(self, leaves: Sequence[Leaf]) -> list[Opened]:
        """Open leaves, without rows that are far from everything: one pass more if there are any."""
        opened = run_all([self.search.open(leaf.rows, leaf.path) for leaf in leaves])
        rules = run_all([find_far(one) for one in opened]) if self.sets_aside else []
        found = [(k, leaves[k], rule) for k, rule in enumerate(rules) if rule is not None]
        if not found:
            return opened
        parts = self.root.rows.engine.divide([(leaf.rows, rule) for _, leaf, rule in found])
        for (_, leaf, rule), (near, far) in zip(found, parts, strict=True):
            leaf.set_aside(rule, near, far)
        again = run_all([self.search.open(leaf.rows, leaf.path) for _, leaf, _ in found])
        for (k, _, _), one in zip(found, again, strict=True):
            opened[k] = one
        return opened

    def search_leaves(self, leaves: Sequence[Leaf]) -> None:
        """Open and search leaves in the same passes."""
        run_all([self.find(*both) for both in zip(leaves, self.open_leaves(leaves), strict=True)])

    def find(self, leaf: Leaf, opened: Opened) -> Query[None]:
        """Search an opened leaf for its best split, unless an earlier fit did and left the result."""
        found = None if self.checkpoint is None else self.checkpoint.found.get(leaf.path)
        if found is None:
            found = yield from self.search.search(opened, leaf.labels, leaf.path, leaf.rows.total)
            if self.checkpoint is not None:
                self.checkpoint.note(leaf.path, found)
        leaf.found = found

    def enqueue(self, nodes: Sequence[int]) -> None:
        """Put leaves in the queue; if passes are expensive, search them and others that are likely next."""
        leaves = [self.tree.nodes[node] for node in nodes]
        missing = [leaf for leaf in leaves if leaf.found is None]
        if missing and not self.passes_are_cheap:
            self.search_leaves([*missing, *self.likely_leaves()])
        for node, leaf in zip(nodes, leaves, strict=True):
            # Also a leaf that was searched waits at its bound: the order of the splits, and with it the tree,
            # must not depend on which leaves an engine searched ahead.
            bound = bound_rank(self.search.priority, leaf.rows.total, leaf.labels)
            heapq.heappush(self.queue, (*bound, node))

    def find_next(self) -> bool:
        """Search leaves until a split is first in the queue; return False if there is none."""
        while self.queue:
            *_, node = self.queue[0]
            leaf = self.tree.nodes[node]
            if leaf.reached:  # its own rank, not a bound, is first: no other leaf can have a better split
                return True
            if leaf.found is None:
                self.search_leaves([leaf])
            heapq.heappop(self.queue)
            leaf.reached = True
            if leaf.rank is not None:
                heapq.heappush(self.queue, (*leaf.rank, node))
        return self.limits.splits_always and self.find_without_valley()

    def find_without_valley(self) -> bool:
        """Put the heaviest leaf without a valley in the queue; return False if no leaf can be split."""
        leaves = [(leaf, k) for k, leaf in enumerate(self.tree.nodes) if k not in self.tree.children]
        for leaf, node in sorted(leaves, key=lambda one: (-one[0].total, one[1])):
            if leaf.exhausted or not self.may_split(leaf, leaf.total):
                continue
            leaf.exhausted = leaf.reached = True
            self.search_anyway(leaf)
            if leaf.rank is None and leaf.far and self.limits.splits_far:
                leaf.rows, leaf.far = self.root.rows.engine.union([leaf.rows, *leaf.far]), ()
                self.search_anyway(leaf)
            if leaf.rank is not None:
                heapq.heappush(self.queue, (*leaf.rank, node))
                return True
        return False

    def search_anyway(self, leaf: Leaf) -> None:
        """Search a leaf for a split without a valley."""
        opened = run(self.search.open(leaf.rows, leaf.path))
        leaf.found = run(self.search.split_without_valley(opened, leaf.total))

    def waiting_leaves(self, n_leaves: int) -> list[Leaf]:
        """Return the leaves in the queue that are likely to be split before a tree of n leaves is full."""
        ranks = [(self.tree.nodes[node].rank, node) for *_, node in self.queue]
        best = heapq.nsmallest(
            self.limits.max_leaves - n_leaves, [(rank, node) for rank, node in ranks if rank is not None]
        )
        return [self.tree.nodes[node] for _, node in best]

    def likely_leaves(self) -> list[Leaf]:
        """Return children of the splits in the queue that were not searched."""
        parents = self.waiting_leaves(self.tree.n_leaves)
        self.divide_rows(parents)
        children = [child for leaf in parents for child in leaf.children or ()]
        return [
            child for child in children if child.found is None and self.may_split(child, child.rows.total)
        ]

    def divide_rows(self, leaves: Sequence[Leaf]) -> None:
        """Divide the rows of leaves by their splits, all in one pass."""
        leaves = [leaf for leaf in leaves if leaf.children is None]
        if not leaves:
            return
        sets = [(leaf.rows, *leaf.far) for leaf in leaves]
        asked = [
            (rows, leaf.split.boundary) for leaf, some in zip(leaves, sets, strict=True) for rows in some
        ]
        parts = iter(self.root.rows.engine.divide(asked))
        for leaf, some in zip(leaves, sets, strict=True):
            leaf.make_children([next(parts) for _ in some])

    def split_next(self) -> tuple[Leaf, Sequence[int]]:
        """Make the first split of the queue; return its leaf, and the children, if no side is empty."""
        *_, node = heapq.heappop(self.queue)
        leaf = self.tree.nodes[node]
        if leaf.children is None:  # those that the next search takes along are divided in the same pass
            others = [] if self.passes_are_cheap else self.waiting_leaves(self.tree.n_leaves + 1)
            self.divide_rows([leaf, *others])
        return leaf, () if leaf.children is None else self.tree.divide(node)


# --- the progress that `verbose` sees ---


@dataclass(frozen=True)
class Progress:
    """What a function as `verbose` gets: after each split, and between splits if passes are long.

    Attributes
    ----------
    n_leaves : int
        Number of leaves so far.
    n_clusters : int
        Number of leaves at which growth stops.
    weight : float
        Weight of the rows that were split; between splits, that of all rows.
    split : Split or None
        The split that was made; None between splits.
    n_passes : float
        `rows_read` divided by the number of rows.
    seconds : float
        Time so far.
    rows_read : int
        Number of rows read so far.
    seconds_left : float
        Estimate from the time so far; NaN if there is none.
    """

    n_leaves: int
    n_clusters: int
    weight: float
    split: Split | None
    n_passes: float
    seconds: float
    rows_read: int = 0
    seconds_left: float = math.nan


@dataclass
class Watcher:
    """Calls the callback after every split, and between splits if it was not called for a while."""

    callback: Callable[[Progress], None]
    rows: RowSet
    n_clusters: int
    began: float
    n_leaves: int = 1

    def __post_init__(self) -> None:
        self.last, self.thread = time.perf_counter(), current_thread()

    def tell(self, n_leaves: int, split: Split | None, weight: float) -> None:
        """Call the callback."""
        self.last, self.n_leaves = time.perf_counter(), n_leaves
        seconds, rows_read = self.last - self.began, self.rows.reads.rows
        self.callback(
            Progress(
                n_leaves=n_leaves,
                n_clusters=self.n_clusters,
                weight=weight,
                split=split,
                n_passes=rows_read / self.rows.shape[0],
                seconds=seconds,
                rows_read=rows_read,
                seconds_left=seconds_left(seconds, n_leaves, self.n_clusters),
            )
        )

    def after_read(self) -> None:
        """Call the callback if it was not called for a while, always in the thread of the fit."""
        if time.perf_counter() - self.last >= WATCH_SECONDS and current_thread() is self.thread:
            self.tell(self.n_leaves, None, self.rows.total)


def seconds_left(seconds: float, n_leaves: int, n_clusters: int) -> float:
    """Return an estimate of the time until there are enough clusters; NaN before the first split.

    From n to 2 n leaves of a balanced tree, all rows are searched once.

    >>> seconds_left(10.0, 4, 16), seconds_left(10.0, 1, 16)
    (10.0, nan)
    """
    if n_leaves < 2 or n_clusters == UNLIMITED:
        return math.nan
    return seconds * (math.log(n_clusters) / math.log(n_leaves) - 1.0)


# --- all steps together ---


def grow(
    root: Node,
    method: BaseMethod,
    limits: Limits,
    *,
    priority: Priority,
    level: float,
    auto: bool,
    watch: Callable[[Progress], None],
    labels: Labels | None = None,
    in_columns: bool = True,
    sets_aside: bool = True,
    checkpoint: Checkpoint | None = None,
) -> Grown:
    """Grow a tree up to the limit of leaves, or as long as there are significant splits.

    Only leaves that may be split next are searched: for K clusters at most 2 K - 3, the root and both
    children of every split except the last, and fewer where light leaves cannot come before the splits of
    heavier ones. With `auto`, a split is made only if it is significant. Partial labels guide the splits of
    leaves with labels of two or more classes.
    `in_columns` is whether the columns are the user's, not components of a kernel map: then gaps of single
    discrete columns are not counted with `auto`, and come last without. With `sets_aside` also, rows far from
    everything are set aside at every node, see `split/far.py`. After a keyboard interrupt, the tree found so
    far is returned. The results of searches are noted in the checkpoint, and those that it has are not
    searched again.
    """
    search = LeafSearch(
        replace(root, labels=labels),
        method,
        choose_tests(method, level) if auto else (),
        priority,
        level,
        in_columns,
        needs_graph=method.uses_graph or (priority is by_neighbors and limits.max_leaves > 2),
    )
    tree = GrowingTree([Leaf(root.rows, (), labels)])
    growth = Growth(tree, search, limits, in_columns and sets_aside, checkpoint)
    watcher = Watcher(watch, root.rows, limits.max_leaves, time.perf_counter())
    if root.n_rows * root.n_features > LOCAL_CELLS:  # passes over fewer values are too short to report
        root.rows.reads.watch = watcher.after_read
    try:
        interrupted = _grow(growth, watcher)
        found = tree.finish()
    finally:
        root.rows.reads.watch = None
        if checkpoint is not None:
            checkpoint.write()
    return _label_rows(growth, found, interrupted)


def _grow(growth: Growth, watcher: Watcher) -> bool:
    """Split leaves in their order; return whether this was interrupted."""
    tree, limits = growth.tree, growth.limits
    try:
        growth.begin()
        growth.find_next()  # also for one cluster: the refused split of the root is part of the result
        while growth.is_unfinished and limits.max_depth > 0 and growth.find_next():
            leaf, children = growth.split_next()
            if not children:
                continue
            watcher.tell(tree.n_leaves, leaf.split, leaf.rows.total)
            if growth.is_unfinished:
                nodes = {child: tree.nodes[child] for child in children}
                growth.enqueue([k for k, leaf in nodes.items() if growth.may_split(leaf, leaf.rows.total)])
    except KeyboardInterrupt:
        if growth.root.found is None:  # there is nothing yet that could be kept
            raise
        warnings.warn(
            f"interrupted: the tree found so far is kept, with {tree.n_leaves} clusters",
            InterruptedWarning,
            stacklevel=5,
        )
        return True
    return False


def _label_rows(growth: Growth, tree: ClusterTree, interrupted: bool) -> Grown:
    """Return a finished tree with the label of every row, also of those that were set aside."""
    nodes, root = growth.tree.nodes, growth.root
    assert growth.search.standardization is not None
    parts = [
        (rows, int(tree.label[leaf])) for leaf in tree.leaves for rows in (nodes[leaf].rows, *nodes[leaf].far)
    ]
    labels = root.rows.engine.assign([rows for rows, _ in parts], [label for _, label in parts])
    return Grown(tree, labels, growth.search.standardization, interrupted, *growth.set_aside)
