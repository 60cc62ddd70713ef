"""The boundaries of a classifier, one per pair of classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import UNLABELED, IntArray
from ravine.data.node import Node, Opened, collect, labels_of, measure, open_node
from ravine.data.query import AnyArray, RowSet, run
from ravine.data.standardization import Standardization
from ravine.exceptions import InvalidInputError
from ravine.split.labeled import FEW_LABELS, SupervisedMethod, is_better, support_machine
from ravine.split.projection import ProjectionMethod
from ravine.split.search import search_opened, sizes_for
from ravine.split.split import Split


@dataclass(frozen=True)
class ClassBoundary:
    """A hyperplane between two classes, which are given as positions in `classes_`."""

    left: int
    right: int
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
    method: Callable[[tuple[int, ...]], ProjectionMethod]
    factor: float | None
    root_standardization: Standardization | None = None

    def __post_init__(self) -> None:
        self.labeled = np.flatnonzero(self.ranks != UNLABELED)
        self.labels = labels_of(self.rows, self.labeled, self.ranks[self.labeled])

    @property
    def rows(self) -> RowSet:
        """All rows."""
        return self.node.rows

    def boundaries(self) -> Iterator[ClassBoundary]:
        """Yield the boundaries between all pairs of classes."""
        classes = range(len(self.classes))
        if len(classes) == 2:
            yield self._between(0, 1, self.rows)
            return
        self.root_standardization = standardization = run(measure(self.node)).standardization
        if not standardization.varies.any():
            raise self._all_the_same(classes)
        guesses = self._guesses(standardization)
        for pair in itertools.combinations(classes, 2):
            # The density between two classes is that of the rows which are likely to be of one of the two.
            yield self._between(*pair, self.rows.select(np.flatnonzero(np.isin(guesses, pair))))

    def _between(self, left: int, right: int, rows: RowSet) -> ClassBoundary:
        """Find the boundary between two classes in these rows."""
        stream = (*self.node.stream, left, right)
        labels = self.labels.pick(np.isin(self.labels.classes, (left, right)))
        node = replace(
            self.node, rows=rows, stream=stream, root_standardization=self.root_standardization, labels=labels
        )
        opened, split = self._best(run(collect(node)), (right,))
        if split is None:
            raise self._all_the_same((left, right))
        self.root_standardization = self.root_standardization or opened.node.standardization
        return ClassBoundary(left, right, split)

    def _all_the_same(self, classes: Sequence[int]) -> InvalidInputError:
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
