"""The boundaries of a classifier: one per pair of classes, or one per node of a tree of classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import UNLABELED, IntArray
from ravine.data.node import Labels, Node, Opened, collect, labels_of, measure, open_node
from ravine.data.query import AnyArray, RowSet, run
from ravine.data.standardization import Standardization
from ravine.exceptions import InvalidInputError
from ravine.split.labeled import (
    FEW_LABELS,
    SupervisedMethod,
    group_classes,
    is_better,
    support_machine,
)
from ravine.split.projection import ProjectionMethod
from ravine.split.search import search_opened, sizes_for
from ravine.split.split import Split
from ravine.store.archive import require


@dataclass(frozen=True)
class ClassBoundary:
    """A hyperplane between two sets of classes, which are given as positions in `classes_`."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    split: Split


@dataclass
class BoundarySearch:
    """The search for all boundaries of one fit.

    `node` has all rows, and `ranks` their classes as positions in `classes`, -1 if unknown. `method` returns
    the search for a boundary with some classes on its right; `factor` multiplies the bandwidth of the
    supervised boundary, which replaces a valley without clear evidence (None: never).
    """

    node: Node
    ranks: IntArray
    classes: AnyArray
    method: Callable[[tuple[int, ...] | None], ProjectionMethod]
    factor: float | None
    root_standardization: Standardization | None = None

    def __post_init__(self) -> None:
        self.labeled = np.flatnonzero(self.ranks != UNLABELED)
        self.labels = labels_of(self.rows, self.labeled, self.ranks[self.labeled])

    @property
    def rows(self) -> RowSet:
        """All rows."""
        return self.node.rows

    def boundaries(self, scheme: str) -> Iterator[ClassBoundary]:
        """Yield the boundaries between all classes: one per pair, or those of a "tree"."""
        classes = range(len(self.classes))
        if len(classes) == 2:
            yield self._between((0,), (1,), None)
            return
        self.root_standardization = standardization = run(measure(self.node)).standardization
        if not standardization.varies.any():
            raise self._all_the_same(tuple(classes))
        if scheme == "tree":
            yield from self._tree(None, tuple(classes))
            return
        guesses = self._guesses(standardization)
        for pair in itertools.combinations(classes, 2):
            yield self._between(pair[:1], pair[1:], np.flatnonzero(np.isin(guesses, pair)))

    def _tree(self, members: IntArray | None, classes: tuple[int, ...]) -> Iterator[ClassBoundary]:
        """Separate the classes of these rows (None: all) into two groups, and so on in each group."""
        if len(classes) == 1:
            return
        left, right = (classes[:1], classes[1:]) if len(classes) == 2 else self._groups(members, classes)
        between = self._between(left, right, members)
        yield between
        if len(classes) == 2:  # both sides have a single class
            return
        on_right = between.split.boundary.signed_distance(self._select(members)) > 0
        numbers = np.arange(self.rows.shape[0]) if members is None else members
        ranks = self.ranks[numbers]
        for side, inside in ((left, ~on_right), (right, on_right)):
            keep = (inside & (ranks == UNLABELED)) | np.isin(ranks, side)
            yield from self._tree(numbers[keep], side)

    def _select(self, members: IntArray | None) -> RowSet:
        return self.rows if members is None else self.rows.select(members)

    def _node(self, members: IntArray | None, classes: tuple[int, ...]) -> Node:
        """Return the node of these rows (None: all) with the labels of some classes."""
        stream = (*self.node.stream, *classes)
        rows, labels = self._select(members), self._labels(classes)
        node = replace(
            self.node, rows=rows, stream=stream, root_standardization=self.root_standardization, labels=labels
        )
        return run(collect(node))

    def _labels(self, classes: tuple[int, ...]) -> Labels:
        """Return the labeled rows of some classes."""
        return self.labels.pick(np.isin(self.labels.classes, classes))

    def _groups(
        self, members: IntArray | None, classes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Choose two groups of classes to separate."""
        node = run(measure(self._node(members, classes)))
        none = np.empty((0, node.n_features))
        right = run(group_classes(node, self.method(None), none))
        return tuple(c for c in classes if c not in right), right

    def _between(
        self, left: tuple[int, ...], right: tuple[int, ...], members: IntArray | None
    ) -> ClassBoundary:
        """Find the boundary between two sets of classes in these rows (None: all)."""
        opened, split = self._best(self._node(members, left + right), right)
        if split is None:
            raise self._all_the_same(left + right)
        self.root_standardization = self.root_standardization or opened.node.standardization
        return ClassBoundary(left, right, split)

    def _all_the_same(self, classes: tuple[int, ...]) -> InvalidInputError:
        names = ", ".join(str(self.classes[c]) for c in classes)
        return InvalidInputError(
            f"all rows of the classes {names} are the same, so no hyperplane separates them"
        )

    def _best(self, node: Node, right: tuple[int, ...]) -> tuple[Opened, Split | None]:
        """Return the opened node, and the boundary of lowest density or the supervised one."""
        method, supervised, labels = self.method(right), None, node.labels
        assert labels is not None
        opened = run(open_node(node, sizes_for(node, method), method.ahead(node)))  # once, for both searches
        if self.factor is not None:
            supervised = run(search_opened(opened, SupervisedMethod(self.factor, right)))
            # With many labels the supervised boundary is hard to beat, and no valley is sought.
            if supervised is not None and float(labels.weights.sum()) > FEW_LABELS:
                return opened, supervised
        split = run(search_opened(opened, method))
        if split is None or supervised is None or is_better(split, supervised, labels, right):
            return opened, split
        return opened, supervised

    def _guesses(self, standardization: Standardization) -> IntArray:
        """Return the label of each row, or the class that a linear support vector machine assigns to it."""
        labels, standardized = self.labels, standardization.apply(self.labels.rows)
        directions, intercepts = support_machine(standardized, labels.classes, labels.weights)
        normals = standardization.normals(directions)
        guesses = self.rows.map(
            lambda block: np.argmax(
                block.project(standardization.mean, normals) + intercepts[:, None], axis=0
            )
        )
        guesses[self.labeled] = labels.classes
        return np.asarray(guesses)


def check_scheme(boundaries: Sequence[ClassBoundary], n_classes: int) -> None:
    """Check that stored boundaries separate all pairs of classes, or form a tree of all classes."""
    expected = "-1 and 1 for the classes of every pair, in order, or for the groups of every node of a tree"
    sides = [(between.left, between.right) for between in boundaries]
    if sides == [((a,), (b,)) for a, b in itertools.combinations(range(n_classes), 2)]:
        return
    unseparated = {tuple(range(n_classes))}  # sets of classes that still need a boundary
    for left, right in sides:
        both = tuple(sorted(left + right))
        require(left and right and both in unseparated, "class_sides", expected, f"{left} and {right}")
        unseparated = unseparated - {both} | {side for side in (left, right) if len(side) > 1}
    require(not unseparated, "class_sides", expected, f"no boundary for {sorted(unseparated)}")
