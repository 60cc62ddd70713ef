"""Maximum margin clustering by cutting planes: the most violated constraint, CCCP and the small QP.

Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.

Rows are seen centered, so that the mean of f(x) = w.x + b is b, and the balance of the two sides,
-l <= mean of f <= l, is a bound of b. A constraint c of the rows is stored as the plane that made it (c_i = 1
where |f_k(x_i)| < 1, Equation 3.12), not as n bits: one pass linearizes all of them at the signs of another
plane.
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
from ravine.data.query import Additive, Answer, Query
from ravine.data.standardization import Standardization
from ravine.exceptions import RavineError

STEADY = 0.01  # CCCP ends when a step lowers its objective by a smaller share (the paper's alpha)
MAX_STEPS = 100  # CCCP steps in one round, at most
RIDGES = (
    1e-9,
    1e-8,
    1e-7,
    1e-6,
    1e-5,
    1e-4,
    1e-3,
)  # added to the QP's matrix: the least that lets it be solved
NOTHING = 1e-10  # share of C: a constraint with a smaller multiplier is not active
MEANS_ROUNDS = 20  # of 2-means, which is only a start


@dataclass(frozen=True)
class Planes:
    """Functions f(x) = w.x + b of framed rows, one or several: w is (k, d), b is (k,)."""

    w: FloatArray
    b: FloatArray

    @classmethod
    def zero(cls, n_features: int) -> Self:
        """Return f = 0, whose cut is all rows."""
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
    """Request for constraints, linearized at the signs of a plane (Equations 3.18, 3.19), and its own one.

    Answer, for every constraint and last for the plane's own one: the weight of the rows in it, the sum of
    their signs, and the sum of sign times centered row; and the weight on the right of the plane.
    """

    standardization: Standardization
    constraints: Planes
    plane: Planes

    def start(self, n_features: int) -> Answer:
        """Return zeros."""
        k = len(self.constraints) + 1
        return np.zeros(k), np.zeros(k), np.zeros((k, n_features)), np.zeros(1)

    @staticmethod
    def add(block: Block, requests: Sequence[ConstraintSum], answers: Sequence[Answer]) -> None:
        """Add one block: project it on all planes, then sum it with the weights that the constraints give.

        Requests in one frame (all starts) share the two matrix products.
        """
        shared: dict[bytes, list[int]] = {}
        for i, request in enumerate(requests):
            shared.setdefault(request.standardization.key, []).append(i)
        for members in shared.values():
            standardization = requests[members[0]].standardization
            planes = [requests[i].constraints + requests[i].plane for i in members]
            ends = np.cumsum([len(each) for each in planes])
            f = block.product(
                standardization.mean, standardization.normals(np.concatenate([each.w for each in planes]))
            )
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
            vectors = block.weighted_sums(standardization.mean, signed)
            for i, part in zip(members, parts, strict=True):
                answers[i][2][...] += vectors[part]


@dataclass(frozen=True)
class State:
    """Cuts at the signs of a plane, as means over the rows; the last cut is the plane's own."""

    constraints: Planes
    plane: Planes
    weight: FloatArray
    sign: FloatArray
    vector: FloatArray
    right: float

    @cached_property
    def violations(self) -> FloatArray:
        """The slack that each cut asks for at the plane: mean of c (1 - |f|), tight there."""
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
    """Average constraints at the signs of a plane; one pass."""
    own = node.standardization
    ((weight, sign, vector, right),) = yield node.ask(ConstraintSum(own, constraints, plane))
    vector *= own.inverse_scale / own.total
    return State(constraints, plane, weight / own.total, sign / own.total, vector, float(right[0]))


@dataclass(frozen=True)
class Found:
    """The end of one run: what was seen at the last plane, the objective at each CCCP step of each round.

    `active` says which constraints hold the plane up (have a positive multiplier).
    """

    state: State
    C: float
    active: npt.NDArray[np.bool_]
    history: Sequence[Sequence[float]]
    status: str

    @property
    def objective(self) -> float:
        """|w|^2 / 2 + C slack with all constraints satisfied: the number that runs are compared by."""
        return self.state.objective(self.C, self.state.slack)

    @property
    def violation(self) -> float:
        """By how much the most violated of all constraints exceeds the slack of the constraints."""
        return self.state.slack - self.state.slack_of_constraints

    @property
    def n_steps(self) -> int:
        """CCCP steps, which are passes, over all rounds."""
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
    """Solve problem 3.16 from the sides that a plane gives the rows; one pass a CCCP step.

    Each round follows CCCP to its end for the constraints at hand, and adds the most violated constraint,
    until none is violated by more than epsilon. A pass that linearizes the constraints at the newest plane
    finds that constraint, too. It is violated by more than any of those at hand, so that none is added twice.
    (Dropping constraints that are not active was tried: as the signs change, old constraints become active
    again, and without them runs go round in circles.)
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

    G being the products of the constraints' vectors. G is singular where constraints depend on each other, so
    that a ridge is added, as small as the solver takes. Given w = C p.vectors, the best b is found on the
    line.
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
            f"the QP with {k} constraints could not be solved (daqp's flag {flag}): a smaller C may help"
        )
    p = np.maximum(p[:k], 0.0)
    w = C * p @ vector
    return Planes.one(w, best_offset(weight - vector @ w, sign, balance)), p > NOTHING


def best_offset(level: FloatArray, slope: FloatArray, balance: float) -> float:
    """Return the b in [-balance, balance] with the least max(0, max of level - slope b), by bisection."""
    low, high = -balance, balance
    for _ in range(60):
        b = (low + high) / 2
        lines = level - slope * b
        top = int(np.argmax(lines))
        if lines[top] <= 0.0 or slope[top] == 0.0:
            return b
        low, high = (b, high) if slope[top] > 0.0 else (low, b)
    return (low + high) / 2


def two_means(node: Node, start: FloatArray) -> Query[Planes]:
    """Return the plane between the centers of 2-means (Lloyd's rounds) from a first direction.

    The cut of all rows at the signs of a plane says all that a round needs: how many rows are on each side,
    and the sum of each, since the rows are centered.
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
