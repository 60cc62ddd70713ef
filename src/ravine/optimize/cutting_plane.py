"""Maximum margin clustering by cutting planes: the most violated constraint, CCCP and the small QP.

Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.

Rows are centered, so that the mean of f(x) = w.x + b is b, and the balance constraint, -l <= mean of f <= l,
is a bound on b. A constraint c, one bit per row, is stored as the plane f_k from which it was made (c_i = 1
if |f_k(x_i)| < 1, Equation 3.12). One pass linearizes all constraints at the signs of another plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.blocks import Block
from ravine.data.node import Node
from ravine.data.query import Additive, Answer, Query, places_by
from ravine.data.standardization import Standardization
from ravine.exceptions import RavineError

STEADY = 0.01  # relative decrease of the objective below which CCCP ends (the paper's alpha)
MAX_STEPS = 100  # most CCCP steps per round
# Ridges of the QP's matrix, relative to its mean diagonal; the first with which daqp solves it is used.
RIDGES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
ACTIVE_SHARE = 1e-10  # share of C: a constraint with a larger multiplier is active
MEANS_ROUNDS = 20  # most iterations of 2-means, which only gives a start


@dataclass(frozen=True)
class Planes:
    """One or several functions f(x) = w.x + b of standardized rows: w is (k, d), b is (k,)."""

    w: FloatArray
    b: FloatArray

    @classmethod
    def zero(cls, n_features: int) -> Self:
        """Return f = 0, whose constraint contains all rows."""
        return cls(np.zeros((1, n_features)), np.zeros(1))

    @classmethod
    def one(cls, w: FloatArray, b: float) -> Self:
        """Return a single plane."""
        return cls(w[None, :], np.array([b]))

    def __len__(self) -> int:
        return len(self.b)

    def __add__(self, other: Planes) -> Planes:
        return Planes(np.concatenate([self.w, other.w]), np.concatenate([self.b, other.b]))

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Planes:
        return Planes(self.w[chosen], self.b[chosen])


@dataclass(frozen=True)
class ConstraintSum(Additive):
    """Request for constraints linearized at the signs of a plane (Equations 3.18, 3.19).

    Answer, for every constraint and last for the one that the plane itself makes: the weight of the rows in
    it, the sum of their signs, and the sum of sign times centered row; then the weight right of the plane.
    """

    standardization: Standardization
    constraints: Planes
    plane: Planes

    def start(self, n_features: int) -> Answer:
        k = len(self.constraints) + 1
        return np.zeros(k), np.zeros(k), np.zeros((k, n_features)), np.zeros(1)

    @staticmethod
    def add_many(block: Block, requests: Sequence[ConstraintSum], answers: Sequence[Answer]) -> None:
        """Add one block; requests with the same standardization (all starts) share two matrix products."""
        for members in places_by(request.standardization.key for request in requests).values():
            own = requests[members[0]].standardization
            planes = [requests[i].constraints + requests[i].plane for i in members]
            ends = np.cumsum([len(each) for each in planes])
            f = block.product(own.mean, own.normals(np.concatenate([each.w for each in planes])))
            f += np.concatenate([each.b for each in planes])[:, None]
            signed = np.where(np.abs(f) < 1.0, block.weights, 0.0)
            parts = [slice(end - len(each), end) for end, each in zip(ends, planes, strict=True)]
            for i, part in zip(members, parts, strict=True):
                weight, sign, _, right = answers[i]
                last = f[part][-1]
                weight += signed[part].sum(axis=1)
                right += block.weights[last > 0.0].sum()
                signed[part] *= np.where(last >= 0.0, 1.0, -1.0)
                sign += signed[part].sum(axis=1)
            vectors = block.weighted_sums(own.mean, signed)
            for i, part in zip(members, parts, strict=True):
                answers[i][2][...] += vectors[part]


@dataclass(frozen=True)
class State:
    """Constraints linearized at the signs of a plane, as means over the rows; the last is the plane's own."""

    constraints: Planes
    plane: Planes
    weight: FloatArray
    sign: FloatArray
    vector: FloatArray
    right: float

    @cached_property
    def violations(self) -> FloatArray:
        """The slack that each constraint needs at the plane: the mean of c (1 - |f|)."""
        return np.asarray(self.weight - self.vector @ self.plane.w[0] - self.sign * self.plane.b[0])

    @property
    def slack(self) -> float:
        """The least slack that satisfies all 2^n constraints: the mean of max(0, 1 - |f|)."""
        return max(0.0, float(self.violations[-1]))

    @property
    def slack_of_constraints(self) -> float:
        """The least slack that satisfies the constraints without the plane's own."""
        return max(0.0, float(self.violations[:-1].max()))

    def objective(self, C: float, slack: float) -> float:
        """Return |w|^2 / 2 + C slack."""
        w = self.plane.w[0]
        return 0.5 * float(w @ w) + C * slack


def linearize(node: Node, constraints: Planes, plane: Planes) -> Query[State]:
    """Linearize constraints at the signs of a plane; one pass."""
    own = node.standardization
    ((weight, sign, vector, right),) = yield node.ask(ConstraintSum(own, constraints, plane))
    vector *= own.inverse_scale / own.total
    return State(constraints, plane, weight / own.total, sign / own.total, vector, float(right[0]))


@dataclass(frozen=True)
class Found:
    """The end of one run: the state at the last plane, and the objective at each CCCP step of each round.

    `active` are the active constraints, those with a positive multiplier.
    """

    state: State
    C: float
    active: npt.NDArray[np.bool_]
    history: Sequence[Sequence[float]]
    status: str

    @property
    def objective(self) -> float:
        """|w|^2 / 2 + C slack with all 2^n constraints satisfied, by which runs are compared."""
        return self.state.objective(self.C, self.state.slack)

    @property
    def violation(self) -> float:
        """By how much the most violated of all 2^n constraints exceeds the slack of those at hand."""
        return self.state.slack - self.state.slack_of_constraints

    @property
    def n_steps(self) -> int:
        """The number of CCCP steps, one pass each, over all rounds."""
        return sum(len(steps) - 1 for steps in self.history)


def cutting_planes(
    node: Node,
    start: Planes,
    constraints: Planes,
    *,
    C: float,
    balance: float,
    epsilon: float,
    max_iter: int,
) -> Query[Found]:
    """Solve problem 3.16, starting with the signs of a plane; one pass per CCCP step.

    Each round runs CCCP to its end for the constraints at hand, then adds the most violated constraint, until
    none is violated by more than epsilon. The pass that linearizes the constraints at the newest plane finds
    that constraint, too. It is violated by more than all those at hand, so none is added twice. (Dropping
    inactive constraints was tried: they become active again as signs change, and runs cycle without them.)
    """
    state = yield from linearize(node, constraints, start)
    history: list[list[float]] = [[np.inf]]
    while True:
        k = len(constraints)
        plane, active = solve(state.weight[:k], state.sign[:k], state.vector[:k], C, balance)
        state = yield from linearize(node, constraints, plane)
        steps = history[-1]
        steps.append(state.objective(C, state.slack_of_constraints))
        if steps[-1] < (1 - STEADY) * steps[-2] and len(steps) <= MAX_STEPS:
            continue
        done = state.slack <= state.slack_of_constraints + epsilon
        if done or len(history) >= max_iter:
            status = f"no constraint is violated by more than {epsilon:g}"
            return Found(state, C, active, history, status if done else "iteration limit")
        constraints = constraints + plane
        history.append([state.objective(C, state.slack)])


def solve(
    weight: FloatArray, sign: FloatArray, vector: FloatArray, C: float, balance: float
) -> tuple[Planes, npt.NDArray[np.bool_]]:
    """Solve the QP of one CCCP step (Equation 3.21) by its dual; return the plane and the active constraints.

    In centered rows the dual 3.22 is, for multipliers C p,

        min over p, m >= 0 of C p'Gp / 2 - weight.p + balance m   with sum p <= 1 and -m <= sign.p <= m,

    G being the inner products of the constraints' vectors. G is singular if constraints are linearly
    dependent, so the smallest ridge is added with which the solver succeeds. Given w = C p.vectors, the best
    b is a minimum over one variable.
    """
    import daqp

    k = len(weight)
    matrix = np.zeros((k + 1, k + 1))
    matrix[:k, :k] = C * (vector @ vector.T)
    size = max(1.0, np.trace(matrix) / k)
    rows = np.zeros((3, k + 1))
    rows[0, :k], rows[1, :k], rows[2, :k] = 1.0, -sign, sign
    rows[1:, k] = 1.0
    low = np.concatenate([np.zeros(k + 1), [-1e30, 0.0, 0.0]])
    high = np.concatenate([np.full(k + 1, 1e30), [1.0, 1e30, 1e30]])
    for ridge in RIDGES:
        regular = matrix + ridge * size * np.eye(k + 1)
        linear = np.append(-weight, balance)
        p, _, flag, _ = daqp.solve(regular, linear, rows, high, low, np.zeros(k + 4, dtype=np.int32))
        if flag == 1:
            break
    else:
        raise RavineError(
            f"the QP with {k} constraints could not be solved (exit flag {flag} of daqp): try a smaller C"
        )
    p = np.maximum(p[:k], 0.0)
    w = C * p @ vector
    return Planes.one(w, best_offset(weight - vector @ w, sign, balance)), p > ACTIVE_SHARE


def best_offset(level: FloatArray, slope: FloatArray, balance: float) -> float:
    """Return the b in [-balance, balance] that minimizes max(0, max of level - slope b).

    The function is convex and piecewise linear: where a line of positive slope is on top, it decreases, and
    the minimum is at a larger b; so bisection on the sign of that slope finds it.
    """
    low, high = -balance, balance
    for _ in range(60):  # halvings until the interval is shorter than the rounding of b
        b = (low + high) / 2
        lines = level - slope * b
        top = int(np.argmax(lines))
        if lines[top] <= 0.0 or slope[top] == 0.0:
            return b
        low, high = (b, high) if slope[top] > 0.0 else (low, b)
    return (low + high) / 2


def two_means(node: Node, start: FloatArray) -> Query[Planes]:
    """Return the plane between the centers of 2-means (Lloyd's iterations) from a first direction.

    The constraint that contains all rows, linearized at the signs of a plane, has all that an iteration
    needs: the weight of each side and, since the rows are centered, the sum of each.
    """
    everything = Planes.zero(len(start))
    plane = Planes.one(start, 0.0)
    before = 0.0
    for _ in range(MEANS_ROUNDS):
        state = yield from linearize(node, everything, plane)
        share = (1.0 + state.sign[0]) / 2
        inertia = float(state.vector[0] @ state.vector[0]) / (share * (1.0 - share)) if 0 < share < 1 else 0.0
        if inertia <= before * (1 + 1e-9):
            break
        right, left = state.vector[0] / (2 * share), -state.vector[0] / (2 * (1.0 - share))
        plane = Planes.one(right - left, -float((right - left) @ (right + left)) / 2)
        before = inertia
    return plane
