"""The numbers behind plots of one split: its rows along the normal and across it, and their density."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.node import Node, measure
from ravine.data.principal import Covariance
from ravine.data.query import Asked, RowSet, answer, run
from ravine.data.standardization import Standardization, in_user_units
from ravine.exceptions import InvalidInputError
from ravine.index.density import MinimumDensityIndex
from ravine.split.split import Split
from ravine.tree.score import profile_of
from ravine.view.density import bandwidth_of
from ravine.view.fitted import counted_rows, scales, walked_tree


@dataclass(frozen=True)
class Curves:
    """The density along a normal, at signed distances from the split.

    `penalized` is the density with the penalty of a search in an interval, (low, high), where there was one.
    """

    bandwidth: float
    points: FloatArray
    density: FloatArray
    penalized: FloatArray | None
    interval: tuple[float, float]


@dataclass(frozen=True)
class NodeRows:
    """The rows that reach one split: their numbers, their standardization, their distances from the split."""

    split: Split
    members: IntArray
    rows: RowSet
    standardization: Standardization
    distance: FloatArray

    @cached_property
    def curves(self) -> Curves:
        """The density of the distances, with the bandwidth and the interval of the fit."""
        profile, mean = profile_of(self.distance, self.rows.map(lambda block: block.weights))
        h = bandwidth_of(self.split, profile.std, profile.total)
        points = np.linspace(profile.points[0] - 3 * h, profile.points[-1] + 3 * h, 400)
        alpha, penalized = float(self.split.facts.get("alpha", np.inf)), None
        if np.isfinite(alpha):
            penalized = np.exp(MinimumDensityIndex(h, alpha).curve(profile, points))
        density = np.exp(MinimumDensityIndex(h, np.inf).curve(profile, points))
        half = alpha * profile.std
        return Curves(h, points + mean, density, penalized, (mean - half, mean + half))

    def across(self) -> FloatArray:
        """Return the position of every row in the direction of greatest variance orthogonal to the normal."""
        own, v = self.standardization, self.split.direction
        ((matrix,),) = answer([Asked(self.rows, Covariance(own))])
        keep = np.eye(len(v)) - np.outer(v, v) / (v @ v)
        normal = own.normals(np.linalg.eigh(keep @ matrix @ keep)[1][:, -1])
        return self.rows.map(lambda block: block.project(own.mean, normal[None, :])[0])


def node_rows(model: Any, X: Any, node: int = 0, sample_weight: Any = None) -> NodeRows:
    """Return the rows of X that reach a split, in the user's units."""
    tree = walked_tree(model)
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
    standardization = in_user_units(run(measure(Node(rows, root_standardization=root))).standardization)
    return NodeRows(split, members, rows, standardization, distance)
