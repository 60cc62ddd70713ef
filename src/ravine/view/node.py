"""The numbers behind pictures of one split: its rows along the normal, and the way a pursuit took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int, make_rng
from ravine.data.blocks import ArrayBlocks, run
from ravine.data.standardization import Covariance, in_user_units, principal, standardization_of
from ravine.exceptions import InvalidInputError
from ravine.index.base import Profile
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimize.pursuit import View, evaluate, pursue
from ravine.optimize.sphere import Curvature
from ravine.split.hyperplane import Split
from ravine.split.projection import PROGRESS, ProjectionSplitter
from ravine.tree.tree import ClusterTree

POINTS = 400  # places at which a curve is drawn


@dataclass(frozen=True)
class Node:
    """The rows that reach one split: which they are, how they are seen, their distances from the cut."""

    split: Split
    members: IntArray
    rows: ArrayBlocks
    view: View
    distance: FloatArray
    bandwidth: float
    alpha: float

    @property
    def weights(self) -> FloatArray:
        """The weight of every row."""
        return self.rows.map(lambda block: block.weights)

    @property
    def middle(self) -> float:
        """The mean of the distances."""
        return float(np.average(self.distance, weights=self.weights))

    def profile(self) -> Profile:
        """Return the distances, centered, in bins of an eighth of the bandwidth."""
        points, weights = self.distance - self.middle, self.weights
        place = np.floor(points / (self.bandwidth / 8)).astype(np.int64)
        _, bins = np.unique(place, return_inverse=True)
        mass = np.bincount(bins, weights).astype(np.float64)
        moment = np.bincount(bins, weights * points)
        std = float(np.sqrt(np.average(points**2, weights=weights)))
        full = mass > 0
        return Profile(moment[full] / mass[full], mass[full], float(mass.sum()), std)


def rows_of(model: Any, X: Any, sample_weight: Any = None) -> ArrayBlocks:
    """Return the rows of X as a fitted clusterer's tree sees them: mapped, where there is a kernel."""
    tree: ClusterTree = getattr(model, "tree_", model)
    if tree.mapped and tree is not model:
        mapped: ArrayBlocks = model._rows(X, sample_weight)
        return mapped
    return tree.rows(X, sample_weight)


def see_node(model: Any, X: Any, node: int = 0, sample_weight: Any = None) -> Node:
    """Return the rows of X that reach a split, with the bandwidth and the interval of the method.

    The bandwidth is 0.9 sd n^(-1/5), with the standard deviation of the first principal component, times the
    `bandwidth_factor` of the model.
    """
    tree: ClusterTree = getattr(model, "tree_", model)
    split = tree.splits[node] if check_int("node", node, 0) < tree.n_nodes else None
    if split is None:
        inner = ", ".join(map(str, sorted(tree.inner)))
        raise InvalidInputError(f"node {node} has no split to show; those that have are {inner or 'none'}")
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    everyone = rows_of(model, X, sample_weight)
    standardize = bool(parameters.get("standardize", True)) and not tree.mapped
    root = run(everyone, standardization_of(everyone, None, standardize))
    members = np.flatnonzero(np.asarray(tree.decision_path(everyone)[:, [node]].todense()).ravel())
    if len(members) < 2:
        raise InvalidInputError(f"{len(members)} rows reach node {node}; two are needed")
    rows = everyone.select(members)
    standardization = in_user_units(run(rows, standardization_of(rows, root, standardize)))
    widest = float(run(rows, principal(rows, standardization, 1, make_rng(0))).deviations[0])
    h = bandwidth(widest, standardization.total, float(parameters.get("bandwidth_factor", 1.0)))
    alpha = float(parameters.get("alpha_max", np.inf))
    distance = split.boundary.signed_distance(rows)
    return Node(split, members, rows, View(standardization, widest), distance, h, alpha)


def across(node: Node) -> FloatArray:
    """Return where every row lies in the direction of greatest variance orthogonal to the normal."""
    standardization, v = node.view.standardization, node.split.direction
    (matrix,) = node.rows.pass_over([Covariance(standardization)])[0]
    keep = np.eye(len(v)) - np.outer(v, v) / (v @ v)
    return along(node, np.linalg.eigh(keep @ matrix @ keep)[1][:, -1])


def along(node: Node, direction: FloatArray) -> FloatArray:
    """Return where every row lies along a direction of the frame, from the mean."""
    standardization = node.view.standardization
    weights = standardization.weights(direction)[None, :]
    return node.rows.map(lambda block: block.project(standardization.mean, weights)[0])


@dataclass(frozen=True)
class Step:
    """A direction on the way of a pursuit: the interval it is judged with, its value, density and cut.

    `penalized` is the objective over all cuts, for an index that has one.
    """

    direction: FloatArray
    alpha: float
    n_iter: int
    value: float
    threshold: float
    half_width: float
    points: FloatArray
    density: FloatArray
    penalized: FloatArray | None


def pursuit_path(model: Any, X: Any, node: int = 0, start: int = 0, sample_weight: Any = None) -> list[Step]:
    """Follow the pursuit of a split from a start: the start itself, then the end for each interval.

    All rows take part, where a fit of many rows would begin with samples.
    """
    seen = see_node(model, X, node, sample_weight)
    splitter = model._splitter(seen.rows.shape[1]) if hasattr(model, "_splitter") else None
    if not isinstance(splitter, ProjectionSplitter):
        raise InvalidInputError("a path is there for methods that pursue a direction, such as MinimumDensity")
    view, starts = run(seen.rows, splitter._look(seen.rows, seen.view.standardization, make_rng(0)))
    if not 0 <= start < len(starts):
        raise InvalidInputError(f"start has to be one of 0 to {len(starts) - 1}, got {start}")
    indices = splitter.indices(view)
    curvature, direction, n_iter = Curvature(), starts[start], 0
    steps = [_step(seen, view, indices[0], direction, 0)]
    for index in indices:
        asker = pursue(
            view,
            direction,
            [index],
            tol=splitter.tol,
            max_iter=splitter.max_iter,
            progress=PROGRESS,
            curvature=curvature,
        )
        end = run(seen.rows, asker)
        direction, curvature, n_iter = end.point.direction, end.curvature, n_iter + end.n_iter
        steps.append(_step(seen, view, index, direction, n_iter))
    return steps


def _step(node: Node, view: View, index: Any, direction: FloatArray, n_iter: int) -> Step:
    point = run(node.rows, evaluate(view, index, direction, fineness=4))
    profile = point.profile
    alpha = float(getattr(index, "alpha", np.inf))
    points = np.linspace(-3.5 * profile.std, 3.5 * profile.std, POINTS)
    curve = np.exp(MinimumDensityIndex(node.bandwidth, np.inf).curve(profile, points))
    value, threshold = float(np.exp(point.value)), float(point.index_value.threshold)
    penalized = np.exp(index.curve(profile, points)) if isinstance(index, MinimumDensityIndex) else None
    return Step(direction, alpha, n_iter, value, threshold, alpha * profile.std, points, curve, penalized)


def landscape(X: Any, angles: FloatArray, bandwidth_factor: float, alpha: float) -> tuple[FloatArray, View]:
    """Return the minimum density over all cuts for each angle of a direction in the plane (standardized)."""
    from ravine.tree.tree import as_rows

    rows = as_rows(X)
    if rows.shape[1] != 2:
        raise InvalidInputError(f"a landscape is drawn of two columns, got {rows.shape[1]}")
    standardization = run(rows, standardization_of(rows, None, True))
    view = View(
        standardization, float(run(rows, principal(rows, standardization, 1, make_rng(0))).deviations[0])
    )
    index = MinimumDensityIndex(bandwidth(view.widest, standardization.total, bandwidth_factor), alpha)
    directions: Sequence[FloatArray] = [np.array([np.cos(a), np.sin(a)]) for a in angles]
    values = [float(np.exp(run(rows, evaluate(view, index, v)).value)) for v in directions]
    return np.array(values), view
