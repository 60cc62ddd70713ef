"""Rows whose class is known, and the linear support vector machine that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import RowBlocks


@dataclass(frozen=True)
class Labels:
    """The rows whose class is known: raw and in memory, the number of each one's class, and their weights."""

    rows: FloatArray
    classes: IntArray
    weights: FloatArray

    @property
    def n_classes(self) -> int:
        """How many classes they have."""
        return len(np.unique(self.classes))

    def pick(self, which: npt.NDArray[np.bool_]) -> Labels:
        """Return some of them."""
        return Labels(self.rows[which], self.classes[which], self.weights[which])

    def left_together(self, pivot: FloatArray, weights: FloatArray, threshold: float) -> float:
        """Return the weight of the pairs of different classes on one side of weights . (x - pivot) = cut.

        >>> labels = Labels(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]), np.ones(3))
        >>> [labels.left_together(np.zeros(1), np.ones(1), threshold) for threshold in (0.5, 1.5)]
        [1.0, 0.0]
        """
        right = (self.rows - pivot) @ weights > threshold
        pairs = 0.0
        for side in (right, ~right):
            mass = np.bincount(self.classes[side], self.weights[side])
            pairs += (float(mass.sum()) ** 2 - float(mass @ mass)) / 2.0
        return pairs


@dataclass(frozen=True)
class Known:
    """The labels of some of many rows, with the numbers of these rows, in increasing order."""

    numbers: IntArray
    labels: Labels

    @classmethod
    def of(cls, rows: RowBlocks, numbers: IntArray, classes: IntArray) -> Known:
        """Return the labels of these rows, which are read and held."""
        few = rows.select(numbers)
        held = few.map(lambda block: block.dense())
        return cls(numbers, Labels(held, classes, few.map(lambda block: block.weights)))

    def among(self, members: IntArray | None) -> Labels:
        """Return the labels of those that are among some rows; None are all rows."""
        if members is None:
            return self.labels
        return self.labels.pick(np.isin(self.numbers, members, assume_unique=True))


def support_machine(
    standardized: FloatArray, classes: FloatArray | IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return normals and intercepts of a linear support vector machine on labeled rows of a frame.

    One for two classes, and for more than two one for each class against the rest.
    """
    from sklearn.svm import LinearSVC

    machine = LinearSVC(dual=False, C=1.0, tol=1e-10).fit(standardized, classes, sample_weight=weights)
    return np.asarray(machine.coef_, dtype=np.float64), np.asarray(machine.intercept_, dtype=np.float64)
