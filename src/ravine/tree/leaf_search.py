"""The search of one leaf: open its node, search it, judge the split, and rank it among those of other leaves.

A search depends only on the rows and the path of the leaf, so that leaves can be searched in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine.data.node import Labels, Node, Opened, collect, open_node
from ravine.data.query import Query, RowSet
from ravine.data.sample import Sample
from ravine.data.standardization import Standardization
from ravine.evidence.discrete import discrete_samples, judge_split, prefer_valley
from ravine.evidence.significance import SignificanceTest, reference_samples
from ravine.features.neighbors import RowGraph
from ravine.split.far import FarRows
from ravine.split.neighbor_cut import graph_sample, neighbor_graph
from ravine.split.no_valley import split_without_valley
from ravine.split.search import BaseMethod, search_opened, sizes_for
from ravine.split.split import MADE_BY, Split
from ravine.store.checkpoint import Rank, SearchResult

ROWS_PER_COLUMN = 20  # least rows per column for a fallback: with fewer, tails have deep valleys by chance
# Share of the level at which a fallback is tested, because it is a second attempt. A first split that is
# significant at the level divided by this is in doubt.
FALLBACK_SHARE = 0.1

BY_LABELS, VALLEY, GAP, NO_VALLEY_LEFT = 0, 1, 2, 3  # kinds of splits, in the order in which they are made

Path = tuple[int, ...]
# The priority of a split of a leaf of this weight, whose neighbor graph is given if it is needed.
Priority = Callable[[Split, float, RowGraph | None], float]


@dataclass(eq=False)
class Leaf:
    """The rows of one node of the growing tree, and the result of their search.

    `far` are rows that were set aside, here by the `rule` or above: they are divided with the others, and not
    searched. A leaf is `reached` when the order of the splits needs its search; other searches are
    speculative. It is `exhausted` when also its split without a valley was looked for.
    """

    rows: RowSet
    path: tuple[int, ...]  # sides from the root: 1 the heavier one, else 2, whatever the order of the rows
    labels: Labels | None
    far: tuple[RowSet, ...] = ()
    rule: FarRows | None = None
    found: SearchResult | None = None
    reached: bool = False
    exhausted: bool = False
    children: tuple[Leaf, Leaf] | None = None

    @property
    def total(self) -> float:
        """The weight of all rows, with those that were set aside."""
        return self.rows.total + sum(rows.total for rows in self.far)

    @property
    def split(self) -> Split:
        """The split that was found."""
        assert self.found is not None
        assert self.found.split is not None
        return self.found.split

    @property
    def rank(self) -> Rank | None:
        """The place in the queue of a split that is to be made; None if none was found."""
        return None if self.found is None or not self.found.accepted else self.found.rank

    def set_aside(self, rule: FarRows, near: RowSet, far: RowSet) -> None:
        """Take rows out of the search that are far from all others."""
        self.rule, self.rows, self.far = rule, near, (*self.far, far)
        if self.labels is not None:
            self.labels = self.labels.pick(~rule.of_rows(self.labels.rows))

    def make_children(self, parts: Sequence[tuple[RowSet, RowSet]]) -> None:
        """Divide the leaf, given the left and the right part of its rows and of all far ones.

        Where the threshold is the outermost row, rounding may leave a side empty: then there is no split.
        """
        assert self.found is not None
        sides, *far = parts
        if min(side.n_counted for side in sides) == 0:
            self.found = self.found._replace(accepted=False)
            return
        heavier = max(sides, key=lambda side: (side.total, -side.first))
        picked: list[Labels | None] = [None, None]
        if self.labels is not None:
            right = self.split.boundary.signed_distance_of(self.labels.rows) > 0
            picked = [self.labels.pick(~right), self.labels.pick(right)]
        left, other = (
            Leaf(
                side,
                (*self.path, 1 if side is heavier else 2),
                picked[k],
                tuple(both[k] for both in far if both[k].shape[0]),
            )
            for k, side in enumerate(sides)
        )
        self.children = left, other


def by_depth(split: Split, total: float, graph: RowGraph | None) -> float:
    """Return the quality of the split times the weight of the leaf."""
    return split.quality * total


def by_size(split: Split, total: float, graph: RowGraph | None) -> float:
    """Return the weight of the leaf."""
    return total


def by_value(split: Split, total: float, graph: RowGraph | None) -> float:
    """Return the negative value of the method's objective: the lowest comes first."""
    return -split.value


def by_neighbors(split: Split, total: float, graph: RowGraph | None) -> float:
    """Return 1 minus the normalized cut in the neighbor graph, times the weight of the leaf.

    The first factor is 1 if no neighbors are separated, and 0 for sides unrelated to the graph.
    """
    assert graph is not None
    return max(0.0, 1.0 - graph.cut_by(split.boundary)) * total


PRIORITIES: dict[str, Priority] = {  # by `_split_order`; the leaf of highest priority is split first
    "depth": by_depth,
    "size": by_size,
    "value": by_value,
    "neighbors": by_neighbors,
}


def rank_split(split: Split, priority: float, total: float, labels: Labels | None) -> Rank:
    """Return the place of a split in the queue: the lowest comes first.

    Splits that separate classes of partial labels come first, and gaps of discrete columns last. Among splits
    of equal priority (such as 0 without a valley) the heavier leaf comes first, then the lower value, and
    only then, in the queue, the number of the node, which depends on signs of directions.
    """
    kind = BY_LABELS if divides_labels(labels, split) else GAP if MADE_BY in split.facts else VALLEY
    return kind, -priority, -total, split.value


def bound_rank(priority: Priority, total: float, labels: Labels | None) -> Rank:
    """Return a rank that is lower than that of any split of a leaf of this weight.

    All priorities but that by value are at most the weight.
    """
    first = BY_LABELS if labels is not None else VALLEY
    highest = np.inf if labels is not None or priority is by_value else total
    return first, -highest, -total, -np.inf


def divides_labels(labels: Labels | None, split: Split) -> bool:
    """Return whether a split separates at least half of the weight of labeled pairs of different classes."""
    if labels is None:
        return False
    before = labels.pairs_together(np.zeros(len(labels.rows), dtype=bool))
    after = labels.pairs_together(split.boundary.signed_distance_of(labels.rows) > 0)
    return before > 0.0 and after <= before / 2.0


def choose_tests(method: BaseMethod, level: float) -> Sequence[SignificanceTest]:
    """Return the tests of a method and its fallbacks at a level."""
    further = [
        SignificanceTest(other, FALLBACK_SHARE * level, own_tails=True) for other in method.fallbacks()
    ]
    return [SignificanceTest(method, level), *further]


@dataclass(frozen=True)
class LeafSearch:
    """How the leaves of a tree are searched.

    `root` has what all nodes share: the seed, the least weight of a side, the partial labels. What is known
    of all rows once the root is opened, `standardization` and the neighbor `graph`, comes with `after_root`.
    """

    root: Node
    method: BaseMethod
    tests: Sequence[SignificanceTest]
    priority: Priority
    level: float
    in_columns: bool
    needs_graph: bool
    standardization: Standardization | None = None
    graph: RowGraph | None = None

    def after_root(self, opened: Opened) -> Query[LeafSearch]:
        """Return the search of leaves below an opened root, and of the root itself."""
        known = replace(self, standardization=opened.node.standardization)
        return replace(known, graph=(yield from known.find_graph(opened)))

    def open(self, rows: RowSet, path: Path) -> Query[Opened]:
        """Return some rows, measured, with all samples that will be asked for; one pass."""
        stream = (*self.root.stream, 0, *path)
        node = replace(
            self.root, rows=rows, root_standardization=self.standardization, is_root=not path, stream=stream
        )
        node = yield from collect(node)
        return (yield from open_node(node, sizes_for(node, self.method), self._samples_ahead(node)))

    def _samples_ahead(self, node: Node) -> list[Sample]:
        """Return the samples that the search, the test and the priority of a node ask for."""
        found: list[Sample] = [*self.method.ahead(node), *discrete_samples(node)]
        found += reference_samples(node) if self.tests else []
        return [*found, graph_sample(node)] if self.needs_graph else found

    def search(self, opened: Opened, labels: Labels | None, path: Path, total: float) -> Query[SearchResult]:
        """Search opened rows of this total weight for their best split, and rank it."""
        graph = yield from self.find_graph(opened)
        split, accepted = yield from self._best_split(opened, labels, path, graph)
        if split is None or not accepted:
            return SearchResult(split, accepted)
        priority = self.priority(split, total, graph) if path else 0.0  # nothing is beside the root
        return SearchResult(split, True, rank_split(split, priority, total, labels))

    def split_without_valley(self, opened: Opened, total: float) -> Query[SearchResult]:
        """Return the split of an opened leaf of this total weight that was found to have no valley."""
        split = yield from split_without_valley(opened)
        return SearchResult(split, split is not None, (NO_VALLEY_LEFT, 0.0, -total, 0.0))

    def find_graph(self, opened: Opened) -> Query[RowGraph | None]:
        """Return the neighbor graph of opened rows, if searches or priorities need one."""
        node = opened.node
        if not self.needs_graph or not node.standardization.varies.any():
            return None
        if node.is_root and self.graph is not None:
            return self.graph
        return (yield from neighbor_graph(node, self.graph))

    def _best_split(
        self, opened: Opened, labels: Labels | None, path: Path, graph: RowGraph | None
    ) -> Query[tuple[Split | None, bool]]:
        """Return the best split, if there is any, and whether it is to be made.

        If a search with labels finds nothing significant, one without labels follows. With a level, if that
        finds nothing either, the fallbacks of the method follow, which search far from the mean.
        """
        first: Split | None = None
        for k, (some, test) in enumerate(self._attempts(labels)):
            node = opened.node
            if test is not None and test.own_tails and node.total < ROWS_PER_COLUMN * node.n_features:
                continue
            attempt = opened.given((*self.root.stream, k, *path), some)
            method = (self.method if test is None else test.method).with_graph(graph)
            split = yield from search_opened(attempt, method)
            if split is None:
                continue
            split, accepted = yield from self._judge(attempt, split, test, method)
            if accepted:
                return split, True
            first = first or split
        return first, False

    def _attempts(self, labels: Labels | None) -> list[tuple[Labels | None, SignificanceTest | None]]:
        """Return the labels and the test of every search that a leaf may need, in their order."""
        tests: list[SignificanceTest | None] = [*self.tests] or [None]
        with_labels = labels is not None and labels.n_classes > 1 and self.method.takes_labels
        first = [(labels, tests[0])] if with_labels else []
        return first + [(None, test) for test in tests]

    def _judge(
        self, opened: Opened, split: Split, test: SignificanceTest | None, method: BaseMethod
    ) -> Query[tuple[Split, bool]]:
        """Return a split with its evidence, and whether it is to be made: any split is, without a test.

        The level is that of the whole tree: a node with a share of the rows is tested at that share of it, so
        that the probability of any false split among the leaves is at most the level (Kimes, Liu, Hayes,
        Marron: Statistical Significance for Hierarchical Clustering, 2017).
        """
        assert self.standardization is not None
        node, share = opened.node, opened.node.total / self.standardization.total
        plain = opened.given(node.stream, None)  # references have no labels
        if test is None:
            known = SignificanceTest(self.method, self.level * share)
            return (
                (yield from prefer_valley(plain, split, known, method)) if self.in_columns else split
            ), True
        test = replace(test, level=test.level * share)
        split = yield from judge_split(plain, split, test, method)
        return split, split.is_significant(test.level)
