"""Maximum margin clustering by cutting planes: the most violated constraint, CCCP and the small QP.

Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.

Rows are centered, so that the mean of f(x) = w.x + b is b, and the balance constraint, -l <= mean of f <= l,
is a bound on b. A constraint c, one bit per row, is stored as the plane f_k from which it was made (c_i = 1
if |f_k(x_i)| < 1, Equation 3.12). One pass linearizes all constraints at the signs of another plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray
from ravine.data.blocks import Block, SparseBlock
from ravine.data.node import Node
from ravine.data.query import Additive, Answer, Query
from ravine.data.standardization import Standardization
from ravine.exceptions import RavineError
from ravine.optimize.cutting_plane_loops import best_offset, constraint_sums, constraint_sums_csr
from ravine.optimize.descent import ITERATION_LIMIT

# Ridges of the QP's matrix, relative to its mean diagonal; the first with which daqp solves it is used.
RIDGES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
UNBOUNDED = 1e30  # a bound that daqp takes as none


@dataclass(frozen=True)
class LinearFunctions:
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

    def towards(self, other: LinearFunctions, share: float) -> LinearFunctions:
        """Return the plane a share of the way to another one."""
        return LinearFunctions(self.w + share * (other.w - self.w), self.b + share * (other.b - self.b))

    def __len__(self) -> int:
        return len(self.b)

    def __add__(self, other: LinearFunctions) -> LinearFunctions:
        return LinearFunctions(np.concatenate([self.w, other.w]), np.concatenate([self.b, other.b]))

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> LinearFunctions:
        return LinearFunctions(self.w[chosen], self.b[chosen])


@dataclass(frozen=True)
class ConstraintSum(Additive):
    """Request for constraints linearized at the signs of a plane (Equations 3.18, 3.19).

    Answer, for every constraint and last for the one that the plane itself makes: the weight of the rows in
    it, the sum of their signs, and the sum of sign times centered row; then the weight right of the plane.

    With `before`, the answer for the constraints is the difference to the sums at the signs of that plane:
    only rows that change sign are added, so that the cost hardly depends on the number of constraints.
    """

    standardization: Standardization
    constraints: LinearFunctions
    plane: LinearFunctions
    before: LinearFunctions | None = None

    def start(self, n_features: int) -> Answer:
        k = len(self.constraints) + 1
        return np.zeros(k), np.zeros(k), np.zeros((k, n_features)), np.zeros(1)

    def add(self, block: Block, answer: Answer) -> None:
        own, (normals, offsets) = self.standardization, self._raw
        k, (weight, sign, vector, right) = len(self.constraints), answer
        if isinstance(block, SparseBlock):
            offsets, here = offsets - normals @ own.mean, np.zeros(k + 1)
            constraint_sums_csr(*block.parts, block.weights, normals, offsets, k, weight, here, vector, right)
            sign += here
            vector -= here[:, None] * own.mean
        else:
            values = block.dense()
            constraint_sums(values, own.mean, block.weights, normals, offsets, k, weight, sign, vector, right)

    @cached_property
    def _raw(self) -> tuple[FloatArray, FloatArray]:
        """The constraints, the plane, and the one before if there is one: normals in raw columns, offsets."""
        planes = self.constraints + self.plane
        if self.before is not None:
            planes = planes + self.before
        return self.standardization.normals(planes.w), planes.b


@dataclass(frozen=True)
class State:
    """Constraints linearized at the signs of a plane, as means over the rows; `own` is that of the plane."""

    constraints: LinearFunctions
    plane: LinearFunctions
    weight: FloatArray
    sign: FloatArray
    vector: FloatArray
    right: float
    own: int

    @cached_property
    def violations(self) -> FloatArray:
        """The slack that each constraint needs at the plane: the mean of c (1 - |f|)."""
        return np.asarray(self.weight - self.vector @ self.plane.w[0] - self.sign * self.plane.b[0])

    @property
    def slack(self) -> float:
        """The least slack that satisfies all 2^n constraints: the mean of max(0, 1 - |f|)."""
        return max(0.0, float(self.violations[self.own]))

    def objective(self, C: float) -> float:
        """Return |w|^2 / 2 + C slack with all 2^n constraints satisfied."""
        w = self.plane.w[0]
        return 0.5 * float(w @ w) + C * self.slack


def linearize(node: Node, constraints: LinearFunctions, plane: LinearFunctions) -> Query[State]:
    """Linearize constraints, and last the plane's own one, at the signs of a plane; one pass."""
    own = node.standardization
    ((weight, sign, vector, right),) = yield node.ask(ConstraintSum(own, constraints, plane))
    vector *= own.inverse_scale  # not both factors at once, whose product may overflow
    vector /= own.total
    means, k = (weight / own.total, sign / own.total, vector), len(constraints)
    return State(constraints + plane, plane, *means, float(right[0]), k)


def move(node: Node, state: State, plane: LinearFunctions) -> Query[tuple[State, State]]:
    """Add the constraint of a plane; return the states at its signs and at those of the state; one pass.

    Sums are updated by the rows whose signs differ.
    """
    own, k = node.standardization, len(state.constraints)
    constraints = state.constraints + plane
    ((weight, sign, vector, right),) = yield node.ask(ConstraintSum(own, constraints, plane, state.plane))
    vector *= own.inverse_scale
    vector /= own.total
    weight, sign = weight / own.total, sign / own.total
    weight[:k] = state.weight
    weight[k] = weight[-1]
    stay_sign = np.append(state.sign, sign[-1] - sign[k])
    stay_vector = np.concatenate([state.vector, vector[None, -1] - vector[None, k]])
    stay = replace(state, constraints=constraints, weight=weight[:-1], sign=stay_sign, vector=stay_vector)
    there = State(
        constraints, plane, weight[:-1], stay_sign + sign[:-1], stay_vector + vector[:-1], float(right[0]), k
    )
    return there, stay


@dataclass(frozen=True)
class CuttingPlaneEnd:
    """The end of one run: the state at the best plane, and the objective at each plane that was best so far.

    `active` are the active constraints, those with a positive multiplier. `violation` is by how much the
    objective, divided by C, may exceed the least one for these sides.
    """

    state: State
    C: float
    active: npt.NDArray[np.bool_]
    violation: float
    history: Sequence[float]
    n_steps: int
    status: str

    @property
    def objective(self) -> float:
        """|w|^2 / 2 + C slack with all 2^n constraints satisfied, by which runs are compared."""
        return self.state.objective(self.C)


def cutting_planes(
    node: Node,
    start: LinearFunctions,
    constraints: LinearFunctions,
    *,
    C: float,
    balance: float,
    epsilon: float,
    max_iter: int,
) -> Query[CuttingPlaneEnd]:
    """Solve problem 3.16, starting with the signs of a plane; one pass per step.

    CCCP linearizes all constraints at the signs of the best plane so far, and the QP with the constraints at
    hand has an optimum at another plane, with an objective that is not above the least one for these signs. A
    step goes from the best plane a share of the way to that optimum. There, one pass finds the most violated
    constraint, which is added, and the objective: if it is lower, the new plane is the best one, and the
    share is doubled, otherwise it is halved. A run ends when the best objective is within C epsilon of that
    of the QP, so that no constraint needs a slack that is larger by more than epsilon.

    So the objective never rises. (The paper goes to the optimum of the QP itself, and runs CCCP to its end
    before it adds a constraint. That takes twenty times as many steps to the same objectives, because a few
    constraints allow planes that are far from any solution. Dropping inactive constraints was tried: they
    become active again as signs change, and runs cycle without them.)
    """
    state = yield from linearize(node, constraints, start)
    history: list[float] = []
    share = 1.0
    n_steps = 0
    while True:
        plane, active, least = solve(state.weight, state.sign, state.vector, C, balance)
        violation = max(0.0, state.objective(C) - least) / C
        done = violation <= epsilon
        if history and (done or n_steps >= max_iter):
            status = f"no constraint is violated by more than {epsilon:g}" if done else ITERATION_LIMIT
            return CuttingPlaneEnd(state, C, active, violation, history, n_steps, status)
        if history:
            plane = state.plane.towards(plane, share)
        there, stay = yield from move(node, state, plane)
        n_steps += 1
        objective = there.objective(C)
        if not history:  # the start gives signs; its length and offset mean nothing
            state, share = there, share / 2.0
            history.append(objective)
        elif objective < history[-1]:
            state, share = there, min(1.0, 2.0 * share)
            history.append(objective)
        else:
            state, share = stay, share / 2.0


def solve(
    weight: FloatArray, sign: FloatArray, vector: FloatArray, C: float, balance: float
) -> tuple[LinearFunctions, npt.NDArray[np.bool_], float]:
    """Solve the QP of one CCCP step (Equation 3.21) by its dual.

    Returns the plane, the active constraints, and the least objective.

    In centered rows the dual 3.22 is, for multipliers C p,

        min over p, m >= 0 of C p'Gp / 2 - weight.p + balance m   with sum p <= 1 and -m <= sign.p <= m,

    G being the inner products of the constraints' vectors. G is singular if constraints are linearly
    dependent, so the smallest ridge is added with which the solver succeeds. Given w = C p.vectors, the best
    b is a minimum over one variable.
    """
    try:
        import daqp
    except ImportError as error:
        raise RavineError("MaximumMargin solves quadratic programs by daqp: pip install daqp") from error
    k = len(weight)
    matrix, linear, rows, low, high = _dual_problem(C * (vector @ vector.T), weight, sign, balance)
    diagonal = matrix.ravel()[:: k + 2]  # a view
    size, plain = max(1.0, float(diagonal.sum()) / k), diagonal.copy()
    for ridge in RIDGES:
        diagonal[:] = plain + ridge * size
        p, _, flag, _ = daqp.solve(matrix, linear, rows, high, low, np.zeros(k + 4, dtype=np.int32))
        if flag == 1:
            break
    else:
        raise RavineError(
            f"the QP with {k} constraints could not be solved (exit flag {flag} of daqp): try a smaller C"
        )
    p = np.maximum(p[:k], 0.0)
    w = C * p @ vector
    level = weight - vector @ w
    b = best_offset(level, sign, balance)
    least = 0.5 * float(w @ w) + C * max(0.0, float((level - sign * b).max()))
    return LinearFunctions.one(w, b), p > 0.0, least


def _dual_problem(
    gram: FloatArray, weight: FloatArray, sign: FloatArray, balance: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return matrix, linear term, constraint rows, and bounds below and above of the QP in `solve`.

    The variables are p, then m. The rows are sum p, m - sign.p and m + sign.p; the first bounds are those of
    the variables.
    """
    k = len(weight)
    matrix, rows = np.zeros((k + 1, k + 1)), np.zeros((3, k + 1))
    matrix[:k, :k] = gram
    rows[:, :k] = np.ones(k), -sign, sign
    rows[1:, k] = 1.0
    low, high = np.zeros(k + 4), np.full(k + 4, UNBOUNDED)
    low[k + 1], high[k + 1] = -UNBOUNDED, 1.0
    return matrix, np.append(-weight, balance), rows, low, high
