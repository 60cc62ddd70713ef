"""Growth: split the leaf of highest priority, until there are enough leaves or no split is left."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ravine.data.node import LOCAL_CELLS, Labels, Node, collect, measure, open_node
from ravine.data.query import Query, RowSet, run, run_all
from ravine.data.sample import Sample
from ravine.data.standardization import Standardization
from ravine.evidence.discrete import cause, cause_samples, noted, tested
from ravine.evidence.graph_test import GraphTest, graph_tests
from ravine.evidence.reunite import reunite
from ravine.evidence.significance import SignificanceTest, reference_samples, significance_tests
from ravine.exceptions import InterruptedWarning
from ravine.features.neighbors import RowGraph
from ravine.split.boundary import Boundary
from ravine.split.far import FarRows, find_far
from ravine.split.neighbor_cut import graph_sample, neighbor_graph
from ravine.split.search import Method, search, sizes_here
from ravine.split.split import Split
from ravine.store.checkpoint import Checkpoint, SearchResult
from ravine.tree.background import Background
from ravine.tree.cells import Cell, Nodes
from ravine.tree.grown import Grown, Limits
from ravine.tree.priorities import Priority, best_rank, by_neighbors, rank
from ravine.tree.progress import Progress, Watcher

ROWS_PER_COLUMN = 20  # least rows per column for a fallback: with fewer, tails have deep valleys by chance
FALLBACK_SHARE = 0.1  # share of the level at which a fallback is tested, because it is a second attempt


AnyTest = SignificanceTest | GraphTest


@dataclass
class _Growth:
    """The state of growth: the nodes, and the splits that wait in a queue to be made.

    If passes are expensive, the children of waiting splits are searched speculatively, in the same passes as
    the leaves that the best-first order needs now. That does not change the tree, because a search depends
    only on its rows and its path.

    The methods call each other in this order:

        enqueue -> set_aside -> examine -> open
        is_ready -> find -> remember -> search_cell -> best_split -> attempts, judge

    `best_split` calls `search` of split/search.py. `split_next` takes a split out of the queue and makes it
    (`divide`), and the children are enqueued. `comes_apart` searches leaves together, after the growth.

    A leaf waits at the place of the best split that it could have (`best_rank`), and is searched when it is
    first: a light leaf may never be.
    """

    root: Node
    method: Method
    limits: Limits
    priority: Priority
    tests: Sequence[AnyTest]
    labels: Labels | None
    in_columns: bool
    sets_aside: bool
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        self.nodes = Nodes([Cell(self.root.rows, (), 0, self.labels)])
        self.rule: FarRows | None = None
        self.waiting: list[tuple[bool, float, float, float, int]] = []
        self.examined: Sequence[Cell] = ()  # leaves that were last enqueued
        self.apart: dict[frozenset[int], bool] = {}  # sets of leaves, and whether they have a split together
        self.background = Background(self.root.rows.threads, self.method.compiled)
        self.standardization: Standardization | None = None

    @property
    def unfinished(self) -> bool:
        """Whether the tree has fewer leaves than the limit."""
        return self.nodes.n_splits + 1 < self.limits.max_leaves

    def may_split(self, cell: Cell) -> bool:
        """Return whether a cell is heavy enough, and not too deep, to be split."""
        enough = cell.rows.total >= 2 * self.limits.min_weight and cell.rows.shape[0] > 1
        return enough and cell.depth < self.limits.max_depth

    def enqueue(self, nodes: Sequence[int]) -> None:
        """Put leaves in the queue, after what is far from their bulk is known.

        If passes are expensive, they are also searched, in the same passes as leaves that are likely to be
        needed next.
        """
        cells = [self.nodes.cells[node] for node in nodes]
        missing = [cell for cell in cells if not cell.searched]
        if self.root.rows.engine.local:
            self.background.map(lambda cell: self.set_aside([cell]), missing)
        elif missing:
            self.search_together([*missing, *self.likely()])
        for node, cell in zip(nodes, cells, strict=True):
            heapq.heappush(self.waiting, (*best_rank(cell, self.priority), node))
        self.examined = missing

    def is_ready(self) -> bool:
        """Search leaves until a split comes first in the queue; return False if there is none."""
        while self.waiting and not self.nodes.cells[self.waiting[0][-1]].reached:
            *_, node = heapq.heappop(self.waiting)
            cell = self.nodes.cells[node]
            self.search_ahead()
            run(self.find(cell))
            cell.reached = True
            if cell.split is not None and cell.worth:
                heapq.heappush(self.waiting, (*cell.rank, node))
        if self.root.n_rows * self.root.rows.values_per_row > LOCAL_CELLS:
            for cell in self.examined:  # what is known of leaves that wait adds up to all rows
                cell.opened = None
        return bool(self.waiting)

    def search_ahead(self) -> None:
        """Begin searches of the leaves that come next in the queue, in as many threads as are idle."""
        if self.background.threads.n > 1 and self.root.rows.engine.local:
            cells = [self.nodes.cells[node] for *_, node in sorted(self.waiting)]
            new = [cell for cell in cells if not cell.reached and cell.path not in self.remembered]
            self.background.begin(new, self.search_opened)

    def search_together(self, cells: Sequence[Cell]) -> None:
        """Search cells in the same passes."""
        self.set_aside(cells)
        run_all([self.find(cell) for cell in cells])

    def set_aside(self, cells: Sequence[Cell]) -> None:
        """Set the rows of cells aside that are far from everything: one pass more if there are any."""
        if not self.sets_aside:
            return
        rules = run_all([self.examine(cell) for cell in cells])
        found = [(cell, rule) for cell, rule in zip(cells, rules, strict=True) if rule is not None]
        if not found:
            return
        parts = self.root.rows.engine.divide([(cell.rows, rule) for cell, rule in found])
        for (cell, rule), (near, far) in zip(found, parts, strict=True):
            cell.rows, cell.far, cell.opened = near, (*cell.far, far), None
            if cell.labels is not None:
                cell.labels = cell.labels.pick(~rule.of_rows(cell.labels.rows))
            if not cell.path:
                self.rule, self.root = rule, replace(self.root, rows=near)

    def examine(self, cell: Cell) -> Query[FarRows | None]:
        """Open the node of a cell, and return which of its rows are far from everything."""
        cell.opened = yield from self.open(cell.rows, cell.path)
        return (yield from find_far(cell.opened))

    def open(self, rows: RowSet, path: tuple[int, ...]) -> Query[Node]:
        """Return the node of some rows, measured, with all samples that will be asked for; one pass."""
        node = yield from collect(self.node_of(rows, *path))
        known = replace(node, labels=self.labels)
        return (yield from open_node(node, sizes_here(known, self.method), self.ahead(known)))[0]

    def ahead(self, node: Node) -> list[Sample]:
        """Return the samples that the search, the test and the priority of a node ask for."""
        found: list[Sample] = [*self.method.ahead(node), *cause_samples(node)]
        found += reference_samples(node) if self.tests else []
        return [*found, graph_sample(node)] if self.priority is by_neighbors else found

    def node_of(self, rows: RowSet, *path: int) -> Node:
        """Return the node of some rows."""
        stream = (*self.root.stream, 0, *path)
        known = self.standardization
        return replace(self.root, rows=rows, root=known, is_root=not path, stream=stream, memo={})

    def waiting_cells(self, n_splits: int) -> list[Cell]:
        """Return the cells in the queue that the limit of leaves still allows to split after so many.

        Only those count that are searched and have a split.
        """
        nodes = [node for *_, node in self.waiting if self.nodes.cells[node].worth]
        best = heapq.nsmallest(
            self.limits.max_leaves - n_splits - 1, nodes, key=lambda node: (self.nodes.cells[node].rank, node)
        )
        return [self.nodes.cells[node] for node in best]

    def likely(self) -> list[Cell]:
        """Return children of the splits in the queue, of as many as the limit of leaves still allows."""
        parents = self.waiting_cells(self.nodes.n_splits)
        self.divide(parents)
        children = [child for cell in parents for child in cell.children or ()]
        return [child for child in children if not child.searched and self.may_split(child)]

    def resume(self) -> None:
        """Divide the cells that an earlier fit divided, some passes per level."""
        if not self.checkpoint:
            return
        cells = self.nodes.cells[:1]
        self.set_aside(cells)
        if self.standardization is None:
            self.standardization = run(_standardization(replace(self.root, memo={})))
        self.checkpoint.check_rows()
        if self.priority is by_neighbors:  # leaves share the graph of the root, whose search is not repeated
            run(neighbor_graph(replace(self.root, measured=self.standardization, memo={})))
        while cells := [cell for cell in cells if self.checkpoint.is_divided(cell.path)]:
            self.set_aside([cell for cell in cells if cell.path])
            for cell in cells:
                run(self.find(cell))
            self.divide(cells)
            cells = [child for cell in cells for child in cell.children or ()]

    def find(self, cell: Cell) -> Query[None]:
        """Search a cell for its best split, unless an earlier fit did."""
        if not cell.searched:
            found = yield from self.remember(cell.path, self.search_cell(cell))
            cell.split, cell.worth, cell.rank = found
            cell.searched = True

    @property
    def remembered(self) -> dict[tuple[int, ...], SearchResult]:
        """What an earlier fit found."""
        return {} if self.checkpoint is None else self.checkpoint.found

    def remember(self, path: tuple[int, ...], search: Query[SearchResult]) -> Query[SearchResult]:
        """Return the result of an earlier fit, if there is one, or else search and note the result."""
        if path in self.remembered:
            return self.remembered[path]
        found = self.background.result(path) if path in self.background.begun else (yield from search)
        if self.checkpoint is not None:
            self.checkpoint.note(path, found)
        return found

    def search_cell(self, cell: Cell) -> Query[SearchResult]:
        """Search a cell for its best split, and compute the rank of the split in the queue."""
        opened, cell.opened = cell.opened, None
        return (yield from self.search_opened(cell, opened))

    def search_opened(self, cell: Cell, opened: Node | None) -> Query[SearchResult]:
        """Search a cell whose node may have been opened before."""
        node = opened or (yield from self.open(cell.rows, cell.path))
        split, worth, node = yield from self.best_split(node, cell.labels, *cell.path)
        if split is None or not worth:
            return SearchResult(split, worth)
        priority = 0.0
        if cell.path:  # the root needs no priority: nothing else is in the queue
            priority = yield from self.priority(split, node)
        return SearchResult(split, worth, rank(cell, split, priority))

    def best_split(
        self, node: Node, labels: Labels | None, *path: int
    ) -> Query[tuple[Split | None, bool, Node]]:
        """Search a node; return the best split, if any, whether it is worth making, and the measured node.

        If a search with labels finds nothing significant, one without labels follows. With a level, if that
        finds nothing either, the fallbacks of the method follow, which search far from the mean.

        The level is that of the whole tree: a node with a share of the rows is tested at that share of it, so
        that the probability of any false split among the leaves is at most the level (Kimes, Liu, Hayes,
        Marron: Statistical Significance for Hierarchical Clustering, 2017).
        """
        first: Split | None = None
        for k, (some, test) in enumerate(self.attempts(labels)):
            if test is not None and test.own_tails and node.total < ROWS_PER_COLUMN * node.n_features:
                continue
            stream = (*self.root.stream, k, *path)
            method = self.method if test is None else test.method
            searched, split = yield from search(replace(node, stream=stream, labels=some), method)
            self.standardization = self.standardization or searched.standardization
            node = replace(node, measured=searched.measured)
            if split is None:
                continue
            split, worth = yield from self.judge(searched, split, test)
            if worth:
                return split, True, node
            first = first or split
        return first, False, node

    def attempts(self, labels: Labels | None) -> list[tuple[Labels | None, AnyTest | None]]:
        """Return the labels and the test of every search that a node may need, in their order."""
        tests: list[AnyTest | None] = [*self.tests] or [None]
        with_labels = labels is not None and labels.n_classes > 1 and self.method.takes_labels
        first = [(labels, tests[0])] if with_labels else []
        return first + [(None, test) for test in tests]

    def judge(self, node: Node, split: Split, test: AnyTest | None) -> Query[tuple[Split, bool]]:
        """Return a split with its evidence, and whether it is worth making: any split is, without a test."""
        if test is None:
            made_by = (yield from cause(node, split)) if self.in_columns else None
            return split if made_by is None else noted(split, made_by), True
        share = node.total / self.root.total
        test, plain = replace(test, level=test.level * share), replace(node, labels=None)
        if isinstance(test, GraphTest):
            split = yield from test.run(plain, split)
        else:
            split = yield from tested(plain, split, test)
        return split, split.is_significant(test.level)

    def divide(self, cells: Sequence[Cell]) -> None:
        """Divide cells by their splits, all in one pass."""
        cells = [cell for cell in cells if cell.children is None]
        if not cells:
            return
        boundaries = [cell.split.boundary for cell in cells if cell.split is not None]
        sets = [(cell.rows, *cell.far) for cell in cells]
        asked = [(rows, b) for some, b in zip(sets, boundaries, strict=True) for rows in some]
        parts = iter(self.root.rows.engine.divide(asked))
        for cell, boundary, some in zip(cells, boundaries, sets, strict=True):
            (left, right), *far = [next(parts) for _ in some]
            if min(left.n_counted, right.n_counted) == 0:  # the threshold is the outermost row, but rounded
                cell.worth = False
                continue
            cell.children = self.children_of(cell, boundary, (left, right), far)

    def children_of(
        self,
        cell: Cell,
        boundary: Boundary,
        sides: tuple[RowSet, RowSet],
        far: Sequence[tuple[RowSet, RowSet]],
    ) -> tuple[Cell, Cell]:
        """Return the cells of both sides, with their labels and the far rows that lie there."""
        heavier = max(sides, key=lambda side: (side.total, -side.first))
        picked: list[Labels | None] = [None, None]
        if cell.labels is not None:
            right = boundary.signed_distance_of(cell.labels.rows) > 0
            picked = [cell.labels.pick(~right), cell.labels.pick(right)]
        left, other = (
            Cell(
                side,
                (*cell.path, 1 if side is heavier else 2),
                cell.depth + 1,
                picked[k],
                tuple(both[k] for both in far if both[k].shape[0]),
            )
            for k, side in enumerate(sides)
        )
        return left, other

    def split_next(self) -> tuple[Cell, Sequence[int]]:
        """Make the split of highest priority; return its cell, and the nodes of its children.

        There are no children if rounding left one side empty.
        """
        *_, node = heapq.heappop(self.waiting)
        cell = self.nodes.cells[node]
        if cell.children is None:  # those that the next search takes along are divided in the same pass
            expensive = not self.root.rows.engine.local
            self.divide([cell, *(self.waiting_cells(self.nodes.n_splits + 1) if expensive else ())])
        return cell, () if cell.children is None else self.nodes.divide(node)

    def comes_apart(self, sets: Sequence[list[int]]) -> bool:
        """Return whether the rows of some leaves, the first set, together have a split worth making.

        If passes are expensive, the rows of the other sets are searched in the same ones.
        """
        unions = {frozenset(some): some for some in sets[: 1 if self.root.rows.engine.local else None]}
        missing = [key for key in unions if key not in self.apart]
        found = run_all([self.search_union(unions[key]) for key in missing])
        self.apart.update(zip(missing, (one.worth for one in found), strict=True))
        return self.apart[frozenset(sets[0])]

    def search_union(self, nodes: list[int]) -> Query[SearchResult]:
        """Search the rows of some leaves together."""
        cells = [self.nodes.cells[node] for node in nodes]
        path = tuple(step for cell in sorted(cells, key=lambda cell: cell.path) for step in (*cell.path, 0))
        rows = self.root.rows.engine.union([cell.rows for cell in cells])
        return (yield from self.remember(path, self.search_rows(rows, path)))

    def search_rows(self, rows: RowSet, path: tuple[int, ...]) -> Query[SearchResult]:
        """Search some rows that are not those of one cell."""
        node = yield from self.open(rows, path)
        split, worth, _ = yield from self.best_split(node, None, *path)
        return SearchResult(split, worth)


def _standardization(root: Node) -> Query[Standardization]:
    """Return means and scales of all rows, as the search of the root finds them."""
    node = yield from collect(root)
    return (yield from measure(node)).standardization


def grow(
    root: Node,
    method: Method,
    limits: Limits,
    *,
    priority: Priority,
    level: float | None,
    watch: Callable[[Progress], None],
    labels: Labels | None = None,
    in_columns: bool = True,
    sets_aside: bool = True,
    graph: RowGraph | None = None,
    checkpoint: Checkpoint | None = None,
) -> Grown:
    """Grow a tree up to the limit of leaves, or as long as there are significant splits.

    Only leaves that may be split next are searched: for K clusters at most 2 K - 3, the root and both
    children of every split except the last, and fewer where light leaves cannot come before the splits of
    heavier ones. With a level, a split is made only if it is significant, and leaves that are parts of one
    cluster get one label. Partial labels guide the splits of leaves with labels of two or more classes.
    `in_columns` is whether the columns are the user's, not components of a kernel map: then gaps of single
    discrete columns are not counted with a level, and noted without. With `sets_aside` also, rows far from
    everything are set aside at every node, see `split/far.py`. With a `graph`, splits are tested in it: that
    of the rows before they were mapped. After a keyboard interrupt, the tree found so far is returned. The
    results of searches are noted in the checkpoint, and those that it has are not searched again.
    """
    began = time.perf_counter() - (0.0 if checkpoint is None else checkpoint.seconds)
    tests: Sequence[AnyTest] = []
    if level is not None and graph is not None:
        tests = graph_tests(method, level, FALLBACK_SHARE, graph)
    elif level is not None:
        tests = significance_tests(method, level, FALLBACK_SHARE)
    sets_aside = in_columns and sets_aside
    growth = _Growth(root, method, limits, priority, tests, labels, in_columns, sets_aside, checkpoint)
    watcher = Watcher(watch, root.rows, limits.max_leaves, began)
    if root.n_rows * root.n_features > LOCAL_CELLS:
        root.rows.reads.watch = watcher.after_read
    try:
        interrupted = _grow(growth, watcher)
        tree = growth.nodes.tree()
        assert growth.standardization is not None
        if level is not None and tree.n_leaves > 2 and not interrupted:  # it searches again
            rows = [cell.rows for cell in growth.nodes.cells]
            tree = reunite(tree, rows, growth.standardization, growth.comes_apart)
    finally:
        growth.background.stop()
        root.rows.reads.watch = None
        if checkpoint is not None:
            checkpoint.write()
    cells = growth.nodes.cells
    parts = [
        (rows, int(tree.label[leaf])) for leaf in tree.leaves for rows in (cells[leaf].rows, *cells[leaf].far)
    ]
    labels_of = root.rows.engine.assign([rows for rows, _ in parts], [label for _, label in parts])
    far = cells[0].far[0] if growth.rule is not None else None
    return Grown(tree, labels_of, growth.standardization, interrupted, far, growth.rule)


def _grow(growth: _Growth, watcher: Watcher) -> bool:
    """Split leaves in their order; return whether this was interrupted."""
    nodes, limits = growth.nodes, growth.limits
    try:
        growth.resume()
        growth.enqueue([0])
        growth.is_ready()  # the root is searched even if it may not be split
        while growth.unfinished and limits.max_depth > 0 and growth.is_ready():
            cell, children = growth.split_next()
            if cell.split is None or not children:
                continue
            watcher.tell(nodes.n_splits + 1, cell.split, cell.rows.total)
            if growth.unfinished:
                growth.enqueue([child for child in children if growth.may_split(nodes.cells[child])])
    except KeyboardInterrupt:
        if growth.standardization is None:
            raise
        warnings.warn(
            f"interrupted: the tree found so far is kept, with {nodes.n_splits + 1} clusters",
            InterruptedWarning,
            stacklevel=5,
        )
        return True
    return False
