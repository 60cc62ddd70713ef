"""What a split cuts in a graph of neighbours: a judge between splits that sees all columns at once.

An index sees rows along its own direction, the one in which they look best, and among many directions some
show a gap by chance. Such a gap runs between rows that are neighbours in the whole space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import FloatArray
from ravine.data.blocks import ArrayBlocks, RowBlocks
from ravine.data.frame import Frame
from ravine.data.neighbours import Nearest, distinct
from ravine.split.hyperplane import Boundary

GRAPH_ROWS = 2000  # rows at most that the graph is made of
GRAPH_CELLS = 1 << 23  # cells of them at most, so that very wide rows do not fill the memory
FEWEST = 100  # rows, however wide
NEIGHBOURS = 10  # of a row in the graph


@dataclass(frozen=True)
class NeighbourGraph:
    """Some rows, their points in a frame, and the weights of the edges between neighbours.

    Rows are neighbours if fewer than ten rows are nearer to one than the other is. A row of weight k is k
    copies, each a neighbour of the others.
    """

    rows: FloatArray
    points: FloatArray
    edges: sparse.csr_array

    @classmethod
    def of(cls, rows: RowBlocks, frame: Frame) -> Self:
        """Return the graph of at most 2000 rows, the same ones whatever is drawn elsewhere."""
        most = min(GRAPH_ROWS, max(FEWEST, GRAPH_CELLS // rows.shape[1]))
        raw, points, weights = distinct(rows.sample(most, np.random.default_rng(0)), frame)
        m = len(points)
        near = Nearest(points, NEIGHBOURS + 1, weights).graph(points).tocoo()  # + 1: a row is its own nearest
        here, there = (index[near.row != near.col] for index in (near.row, near.col))
        one_way = sparse.csr_array((weights[here] * weights[there], (here, there)), shape=(m, m))
        copies = sparse.diags_array(weights * np.maximum(weights - 1.0, 0.0))
        return cls(raw, points, sparse.csr_array(one_way.maximum(one_way.T) + copies))

    def parted_by(self, boundary: Boundary) -> float:
        """Return the normalised cut between the sides of a boundary."""
        return self.cut(boundary.signed_distance(ArrayBlocks(self.rows)) > 0)

    def cut(self, right: npt.NDArray[np.bool_]) -> float:
        r"""Return the normalised cut of the points on the right from the others, in [0, 2].

        .. math:: \frac{W(A, B)}{W(A, A \cup B)} + \frac{W(A, B)}{W(B, A \cup B)}

        with W the weight of the edges between two sets: 0 where no neighbours are parted, about 1 where the
        sides have nothing to do with the graph, and 2 for a side without edges.
        """
        side = right.astype(np.float64)
        degree = self.edges.sum(axis=1)
        volumes = float(degree @ side), float(degree @ (1.0 - side))
        if min(volumes) <= 0.0:
            return 2.0
        parted = float((self.edges @ side) @ (1.0 - side))
        return parted / volumes[0] + parted / volumes[1]
