"""The two sides of a hyperplane: their weights, sums and second moments, updated by the rows that switch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data import loops
from ravine.data.blocks import Block
from ravine.data.query import Additive, Answer, Request
from ravine.data.standardization import Standardization

SIGNS = (1.0, -1.0)  # signs of rows that move to the right side, and of rows that leave it
BUFFER_ROWS = 256  # rows that are collected before their second moments are added in one matrix product


@dataclass(frozen=True)
class Plane:
    """The rows x with normal . (x - pivot) = threshold; the right side lies above."""

    normal: FloatArray
    pivot: FloatArray
    threshold: float

    @classmethod
    def across(cls, standardization: Standardization, direction: FloatArray, threshold: float) -> Plane:
        """Return the plane across a direction of the standardized space."""
        return cls(standardization.normals(direction), standardization.mean, threshold)

    def distances(self, block: Block) -> FloatArray:
        """Return normal . (x - pivot) - threshold for every row of a block."""
        return np.asarray(block.project(self.pivot, self.normal[None, :])[0] - self.threshold)


def varying(standardization: Standardization) -> IntArray:
    """Return the columns that vary."""
    return np.flatnonzero(standardization.varies)


@dataclass(frozen=True)
class SideSums(Request):
    """Request for the weight, the sum and the second moments of the standardized rows right of a hyperplane.

    Without a hyperplane: of all rows. With `before`, the answer is the difference to the sums right of that
    hyperplane: only the rows that switch sides are summed.

    Adding the second moments of a few rows costs O(d^2) writes, whatever their number. So rows that switch
    are first collected in a buffer, one for each sign, whose second moments are added when it is full.

    Answer: the weight, and the weight of the rows that switched (2,); the sum (d,); the
    second moments of the columns that vary (empty without `squares`); the two buffers (2, BUFFER_ROWS, d) and
    the number of rows in each (2,). `Side.of` empties the buffers and reads the answer.
    """

    standardization: Standardization
    plane: Plane | None
    before: Plane | None = None
    squares: bool = True

    def start(self, n_features: int) -> Answer:
        d = len(varying(self.standardization)) if self.squares else 0
        buffers = np.empty((2, BUFFER_ROWS, d)), np.zeros(2, dtype=np.int64)
        return np.zeros(2), np.zeros(n_features), np.zeros((d, d)), *buffers

    def merge(self, left: Answer, right: Answer) -> Answer:
        for a, b in zip(left[:3], right[:3], strict=True):
            a += b
        for side in range(2):
            _buffer(left, side, right[3][side, : right[4][side]])
        return left

    @staticmethod
    def add_many(block: Block, requests: Sequence[SideSums], answers: Sequence[Answer]) -> None:
        """Add one block: the rows that move to the right, minus those that leave it."""
        planes = [plane for request in requests for plane in (request.plane, request.before)]
        distances = _distances(block, planes)
        for request, answer in zip(requests, answers, strict=True):
            rows, change = _changes(block, request, distances)
            if len(rows) == 0:
                continue
            own, few = request.standardization, block if len(rows) == len(block) else block.take(rows)
            answer[0][...] += change.sum(), np.abs(change).sum()
            if not request.squares:  # sparse rows are not written out
                total = np.zeros((1, len(own.mean)))
                few.group_sums(own.mean, change, np.zeros(len(rows), dtype=np.int64), total)
                answer[1][...] += total[0] * own.inverse_scale
                continue
            standardized = few.dense() - own.mean
            standardized *= own.inverse_scale
            answer[1][...] += change @ standardized
            varies = varying(own)
            part = standardized if len(varies) == standardized.shape[1] else standardized[:, varies]
            part *= np.sqrt(np.abs(change))[:, None]
            for side, sign in enumerate(SIGNS):
                moving = sign * change > 0
                if moving.any():
                    _buffer(answer, side, part if moving.all() else part[moving])


def _distances(block: Block, planes: Sequence[Plane | None]) -> dict[int, FloatArray]:
    """Return the signed distances to each plane; planes with the same pivot share a projection."""
    found: dict[int, FloatArray] = {}
    about: dict[bytes, dict[int, Plane]] = {}
    for plane in planes:
        if plane is not None:
            about.setdefault(plane.pivot.tobytes(), {})[id(plane)] = plane
    for members in about.values():
        (first, *_) = members.values()
        points = block.project(first.pivot, np.array([plane.normal for plane in members.values()]))
        for t, (key, plane) in zip(points, members.items(), strict=True):
            found[key] = t - plane.threshold
    return found


def _changes(
    block: Block, request: SideSums, distances: dict[int, FloatArray]
) -> tuple[IntArray, FloatArray]:
    """Return the rows that a request sums, and their weights, negative for rows that leave the right side."""
    if request.plane is None:
        rows = np.flatnonzero(block.weights > 0)
        return rows, block.weights[rows]
    rows, change = np.empty(len(block), dtype=np.int64), np.empty(len(block))
    now = distances[id(request.plane)]
    if request.before is None:
        n = loops.right_rows(now, block.weights, rows, change)
    else:
        n = loops.switched_rows(now, distances[id(request.before)], block.weights, rows, change)
    return rows[:n], change[:n]


def _buffer(answer: Answer, side: int, rows: FloatArray) -> None:
    """Collect rows (times the root of their weights) whose second moments are to be added."""
    buffer, count = answer[3][side], answer[4]
    if count[side] + len(rows) > BUFFER_ROWS:
        _flush(answer, side)
    if len(rows) > BUFFER_ROWS:
        _add_squares(answer[2], rows, SIGNS[side])
    else:
        buffer[count[side] : count[side] + len(rows)] = rows
        count[side] += len(rows)


def _flush(answer: Answer, side: int) -> None:
    """Add the rows in a buffer to the second moments, and empty it."""
    count = answer[4]
    _add_squares(answer[2], answer[3][side, : count[side]], SIGNS[side])
    count[side] = 0


def _add_squares(square: FloatArray, rows: FloatArray, sign: float) -> None:
    """Add sign times the second moments of some rows to `square`, in place."""
    if rows.size:
        square += sign * (rows.T @ rows)  # by dsyrk; that of scipy would hold the interpreter's lock


@dataclass(frozen=True)
class LineMoments(Additive):
    """Request for weight, sum and sum of squares of the signed distances, left and right: (2, 3)."""

    plane: Plane

    def start(self, n_features: int) -> Answer:
        return (np.zeros((2, 3)),)

    def add(self, block: Block, answer: Answer) -> None:
        loops.line_moments(self.plane.distances(block), block.weights, answer[0])


@dataclass(frozen=True)
class Side:
    """The standardized rows on one side: their weight, sum and second moments."""

    weight: float
    total: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, answer: Answer) -> Side:
        """Read the answer of `SideSums`."""
        for side in range(2):
            _flush(answer, side)
        return cls(float(answer[0][0]), answer[1], answer[2])

    def __add__(self, other: Side) -> Side:
        return Side(self.weight + other.weight, self.total + other.total, self.square + other.square)

    def __sub__(self, other: Side) -> Side:
        return Side(self.weight - other.weight, self.total - other.total, self.square - other.square)

    @property
    def mean(self) -> FloatArray:
        """The mean of the side's rows."""
        return self.total / self.weight

    def covariance(self, varies: IntArray) -> FloatArray:
        """Return the covariance of the columns that vary (divided by the weight)."""
        mean = self.mean[varies]
        return np.asarray(self.square / self.weight - np.outer(mean, mean))


def variance(sums: FloatArray) -> float:
    """Return the variance from weight, sum and sum of squares."""
    return float(sums[2] / sums[0] - (sums[1] / sums[0]) ** 2)


def kappa(sides: FloatArray, ridge: float) -> float:
    """Return kappa, the distance of two means over the sum of the deviations (variance plus ridge).

    `sides` has weight, sum and sum of squares of each side on a line.
    """
    spread = sum(math.sqrt(max(variance(side), 0.0) + ridge) for side in sides)
    apart = float(sides[1, 1] / sides[1, 0] - sides[0, 1] / sides[0, 0])
    return apart / spread if spread > 0.0 else math.inf
