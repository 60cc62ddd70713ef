"""The numbers behind pictures of one split: its rows along the normal, and the path of a pursuit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.memory import MemoryRows
from ravine.data.node import Node, measure
from ravine.data.principal import Covariance, principal
from ravine.data.query import run
from ravine.data.standardization import Standardization, in_user_units
from ravine.exceptions import InvalidInputError
from ravine.index.base import Profile
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimize.pursuit import Curvature, Limits, evaluate, pursue
from ravine.split.projection import PROGRESS, ProjectionMethod
from ravine.split.split import Split
from ravine.tree.arrays import as_rows
from ravine.tree.score import profile_of
from ravine.view.density import bandwidth_of
from ravine.view.fitted import counted_rows, is_standardized, scales, tree_of

N_POINTS = 400  # points at which a curve is drawn


@dataclass(frozen=True)
class Step:
    """A direction with its density: a stage of a pursuit, or the split that was found.

    Positions are measured from the mean. `half_width` is that of the interval, alpha standard deviations, and
    `penalized` the penalized density where the index has one.
    """

    direction: FloatArray
    n_iter: int
    value: float
    threshold: float
    alpha: float
    half_width: float
    bandwidth: float
    points: FloatArray
    density: FloatArray
    penalized: FloatArray | None


@dataclass(frozen=True)
class NodeRows:
    """The rows that reach one split: their numbers, their standardization, their distances from the split."""

    split: Split
    members: IntArray
    rows: MemoryRows
    standardization: Standardization
    distance: FloatArray

    @cached_property
    def step(self) -> Step:
        """The density of the distances, with the bandwidth and the interval of the fit."""
        split = self.split
        profile, mean = profile_of(self.distance, self.rows.map(lambda block: block.weights))
        h = bandwidth_of(split, profile.std, profile.total)
        points = np.linspace(profile.points[0] - 3 * h, profile.points[-1] + 3 * h, N_POINTS)
        index = MinimumDensityIndex(h, float(split.facts.get("alpha", np.inf)))
        return Step(split.direction, split.n_iter, split.value, -mean, *_curves(index, h, profile, points))

    def along(self, direction: FloatArray) -> FloatArray:
        """Return the position of every row along a direction of the search, from the mean."""
        normal = self.standardization.normals(direction)[None, :]
        return self.rows.map(lambda block: block.project(self.standardization.mean, normal)[0])

    def across(self) -> FloatArray:
        """Return the position of every row in the direction of greatest variance orthogonal to the normal."""
        v = self.split.direction
        (matrix,) = self.rows.pass_over([Covariance(self.standardization)])[0]
        keep = np.eye(len(v)) - np.outer(v, v) / (v @ v)
        return self.along(np.linalg.eigh(keep @ matrix @ keep)[1][:, -1])


def node_rows(model: Any, X: Any, node: int = 0, sample_weight: Any = None) -> NodeRows:
    """Return the rows of X that reach a split, in the user's units."""
    tree = tree_of(model)
    split = tree.splits[node] if check_int("node", node, 0) < tree.n_nodes else None
    if split is None:
        inner = ", ".join(map(str, sorted(tree.inner))) or "none"
        raise InvalidInputError(f"node {node} has no split to show; the nodes with a split are: {inner}")
    all_rows, _, far = counted_rows(model, X, sample_weight)
    root = run(measure(Node(all_rows, standardize=scales(model)))).standardization
    reached = ((members, distance) for at, members, distance in tree.visit(all_rows) if at == node)
    members, distance = next(reached, (np.zeros(0, dtype=np.int64), np.zeros(0)))
    members, distance = members[~far[members]], distance[~far[members]]
    if len(members) < 2:
        raise InvalidInputError(f"{len(members)} rows reach node {node}; two are needed")
    rows = all_rows.select(members)
    standardization = in_user_units(run(measure(Node(rows, root=root))).standardization)
    return NodeRows(split, members, rows, standardization, distance)


def pursuit_path(model: Any, X: Any, node: int = 0, start: int = 0, sample_weight: Any = None) -> list[Step]:
    """Follow the pursuit of a split from a start: the start itself, then the end for each interval.

    All rows take part, whereas a fit of many rows begins with samples.
    """
    found = node_rows(model, X, node, sample_weight)
    return [_evaluated(found, *place) for place in _pursuit(model, found, start)]


def _pursuit(model: Any, found: NodeRows, start: int) -> Iterator[tuple[Node, Any, FloatArray, int]]:
    """Pursue from one start as the fit does; yield node, index, direction and iterations at every stage."""
    method = model._method() if hasattr(model, "_method") else None
    if not isinstance(method, ProjectionMethod):
        raise InvalidInputError("only methods that pursue a direction, such as MinimumDensity, have a path")
    node, starts = run(method.starts(Node(found.rows, measured=found.standardization)))
    if not 0 <= start < len(starts):
        raise InvalidInputError(f"start has to be one of 0 to {len(starts) - 1}, got {start}")
    indices = method.indices(node)
    direction, n_iter = starts[start], 0
    curvature: Curvature | None = None
    yield node, indices[0], direction, 0
    limits = Limits(method.tol, method.max_iter, PROGRESS)
    for index in indices:
        end = run(pursue(node, direction, [index], limits, curvature))
        direction, curvature, n_iter = end.point.direction, end.curvature, n_iter + end.n_iter
        yield node, index, direction, n_iter


def _evaluated(found: NodeRows, node: Node, index: Any, direction: FloatArray, n_iter: int) -> Step:
    """Evaluate an index at a direction; its density has the bandwidth of the index, if it has one."""
    point = run(evaluate(node, index, direction, fineness=4))
    profile, value, threshold = point.profile, float(np.exp(point.value)), float(point.index_value.threshold)
    points = np.linspace(-3.5 * profile.std, 3.5 * profile.std, N_POINTS)
    h = getattr(index, "bandwidth", 0.0) or bandwidth_of(found.split, profile.std, profile.total)
    return Step(direction, n_iter, value, threshold, *_curves(index, h, profile, points))


def _curves(index: Any, h: float, profile: Profile, points: FloatArray) -> tuple[Any, ...]:
    """Return the fields of a `Step` that are drawn."""
    alpha, penalized = float(getattr(index, "alpha", np.inf)), None
    if isinstance(index, MinimumDensityIndex) and np.isfinite(alpha):
        penalized = np.exp(index.curve(profile, points))
    density = np.exp(MinimumDensityIndex(h, np.inf).curve(profile, points))
    return alpha, alpha * profile.std, h, points, density, penalized


def landscape_values(
    X: Any, angles: FloatArray, model: Any, bandwidth_factor: float, alpha: float
) -> FloatArray:
    """Return the lowest density over all thresholds for each angle of a direction in the plane.

    Columns, bandwidth and interval are those of the first split of the model, where there is one.
    """
    rows = as_rows(X)
    if rows.shape[1] != 2:
        raise InvalidInputError(f"a landscape is drawn of two columns, got {rows.shape[1]}")
    standardize = model is None or is_standardized(model)
    plain = in_user_units(run(measure(Node(rows, standardize=standardize))).standardization)
    node = Node(rows, measured=plain)
    widest = float(run(principal(node, 1)).deviations[0])
    split = None if model is None else tree_of(model).splits[0]
    fitted = {} if split is None else split.facts
    h = fitted.get("bandwidth", bandwidth(widest, rows.total, bandwidth_factor))
    index, node = MinimumDensityIndex(h, fitted.get("alpha", alpha)), replace(node, deviation=widest)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.exp([run(evaluate(node, index, direction)).value for direction in directions])
