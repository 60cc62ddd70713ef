"""Projection pursuit as a method, for every index that has a schedule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.node import Labels, Node, Opened
from ravine.data.principal import principal
from ravine.data.query import Query, gather
from ravine.data.sample import Sample
from ravine.features.neighbors import RowGraph
from ravine.index.base import ProjectionIndex, Schedule
from ravine.optimize.descent import CONVERGED, ITERATION_LIMIT
from ravine.optimize.pursuit import (
    FULL_STEPS,
    PASS_LIMIT,
    Evaluated,
    Optimum,
    StoppingRule,
    distinct,
    evaluate,
    keeps_row_sums,
    limit_steps,
    project,
    pursue,
    pursue_all,
)
from ravine.split.labeled import (
    group_classes,
    labeled_indices,
    sides_of,
    support_planes,
    weight_of_mistakes,
)
from ravine.split.neighbor_cut import graph_sample, neighbor_graph
from ravine.split.search import BaseMethod, Outcome, search
from ravine.split.split import Split
from ravine.split.starts import neighbor_starts, random_directions

PROGRESS = 1e-3  # a descent ends at a step that decreases the log of the index by less
EXACT = 8  # factor by which the bins of the reported figures are finer: an error of about 1e-5
USEFUL = 1e-6  # share of the first principal deviation: directions with smaller ones are rounding

CONVERGED_COARSELY = "converged (gradient) in the bins of the search; the gradient is above tol in finer ones"


@dataclass(frozen=True)
class ProjectionMethod(BaseMethod):
    """Minimize an index from several starts, all in the same passes, and choose the best end.

    The starts are principal directions, then others between them, or `init` (normals in the raw columns), or
    random ones.
    With `neighbor_starts`, `n_init // 2` more come from a neighbor graph. The best end is the one that the
    schedule ranks highest, or, with `neighbor_cut`, the one with the smallest normalized cut in a neighbor
    graph.

    With partial labels, the normal of their support vector machine is a further start, each start has the
    sign with the lower value, and the end with the lowest value is chosen (with `lowest_start`, only the
    start with the lowest value is followed). `right` are the classes that
    belong on the right; if it is None and there are more than two classes, a search without labels groups
    them first. With `named_sides` these classes stay on the right, and there is always a boundary, as a
    classifier needs it.
    """

    schedule: Schedule
    n_init: int = 4
    init: FloatArray | None = None
    random_starts: bool = False
    tol: float = 0.02
    max_iter: int = 15
    neighbor_starts: bool = False
    neighbor_cut: bool = False
    gammas: Sequence[float] | None = None
    lowest_start: bool = False
    right: tuple[int, ...] | None = None
    named_sides: bool = False
    samples: bool = True
    graph: RowGraph | None = field(default=None, compare=False, repr=False)  # of the node, if known

    takes_labels = True

    @property
    def name(self) -> str:
        return self.schedule.name + (" with labels" if self.right is not None else "")

    @property
    def uses_graph(self) -> bool:  # type: ignore[override]
        return self.neighbor_cut

    def with_graph(self, graph: RowGraph | None) -> ProjectionMethod:
        return replace(self, graph=graph)

    def make_graph(self, opened: Opened) -> Query[ProjectionMethod]:
        """Return the method with the neighbor graph of the node, if ends are compared by it."""
        if not self.neighbor_cut or self.graph is not None:
            return self
        return self.with_graph((yield from neighbor_graph(opened.node)))

    def fallbacks(self) -> Sequence[ProjectionMethod]:
        """Return the method with the schedule's fallbacks."""
        return [replace(self, schedule=schedule) for schedule in self.schedule.fallbacks()]

    def test_quality(self, split: Split, total: float) -> float:
        """Return what the schedule compares, or the depth."""
        own = self.schedule.test_quality(split.value)
        return split.quality if own is None else own

    def ahead(self, node: Node) -> Sequence[Sample]:
        """Return the sample of the neighbor graph, if ends are compared by it."""
        return [graph_sample(node)] if self.neighbor_cut else []

    def prepare(self, opened: Opened) -> Query[ProjectionMethod | None]:
        """Make the neighbor graph, if it is needed, and with labels choose the classes on the right."""
        method, labels = (yield from self.make_graph(opened)), opened.node.labels
        if labels is None or self.right is not None:
            return method
        classes = np.unique(labels.classes)
        if len(classes) == 2:
            return replace(method, right=(int(classes[1]),))
        few = opened.finest_sample  # the groups of classes are only a start
        plain = replace(few, labels=None, stream=(*opened.node.stream, 1))
        _, split = yield from search(plain, method)
        if split is None:
            return None
        right = yield from group_classes(few, method, split.direction[None, :])
        return replace(method, right=right, init=split.boundary.normal[None, :])

    def indices(self, node: Node) -> Sequence[ProjectionIndex]:
        """Return the indices to minimize in order, with a penalty for the labels of the node."""
        own = node.standardization
        plain = self.schedule.indices(node.deviation, own.total, own.mean_variance)
        if node.labels is None:
            return plain
        gammas = self.gammas or self.schedule.gammas
        return labeled_indices(plain, node, self.right, gammas)

    def starts(self, node: Node) -> Query[tuple[Node, list[FloatArray]]]:
        """Return `init`, or principal directions, directions between them, and those of a neighbor graph."""
        found = yield from principal(node, self.n_init if self.init is None else 1)
        node = replace(node, deviation=float(found.deviations[0]))
        if self.init is not None:
            starts = node.standardization.directions(self.init)
        elif self.random_starts:
            starts = random_directions(node, self.n_init)
        else:
            useful = found.directions[found.deviations > USEFUL * node.deviation]
            further = between_directions(useful, self.n_init - len(useful), node.rng("starts"))
            starts = np.concatenate([useful, further])
            if node.standardization.varies.sum() == 1:
                starts = starts[:1]
            elif self.neighbor_starts and self.n_init > 1:
                more = yield from neighbor_starts(node, self.n_init // 2)
                starts = np.concatenate([starts, more])
        vectors = list(starts)
        if node.labels is not None:
            vectors += [w for w, _ in support_planes(_with_sides(node, node.labels, self.right))]
        lengths = [float(np.linalg.norm(v)) for v in vectors]
        unit = [v / length for v, length in zip(vectors, lengths, strict=True) if length > 0]
        if node.labels is None or not self.lowest_start:
            return node, unit
        signed = yield from gather([self._better_sign(node, v) for v in unit])
        return node, [min(signed, key=lambda start: start[1])[0]]

    def solve_all(self, node: Node, starts: Sequence[FloatArray]) -> Query[list[Optimum]]:
        """Minimize all indices in order from every start; with labels, from its better sign."""
        if node.labels is not None:
            signed = yield from gather([self._better_sign(node, start) for start in starts])
            starts = [start for start, _ in signed]
        schedule, nested = self.schedule, self.schedule.nested and node.labels is None
        rule = StoppingRule(self.tol, self.max_iter, PROGRESS, schedule.least_share, nested, schedule.behind)
        return (yield from pursue_all(node, starts, self.indices(node), rule))

    def _better_sign(self, node: Node, start: FloatArray) -> Query[tuple[FloatArray, float]]:
        """Return a start with labels, with the sign of the lower value, and that value; one pass."""
        first = self.indices(node)[0]
        projected = yield from project(node, first.resolution, start)
        mirrored = replace(first, sides=-first.sides)  # type: ignore[type-var, attr-defined]
        here, there = (index.evaluate(projected.profile).value for index in (first, mirrored))
        return (start, here) if here <= there else (-start, there)

    def choose(self, node: Node, ends: Sequence[Optimum]) -> Query[list[Optimum]]:
        """Return the valid ends that leave enough on both sides, the best first.

        Ends that the schedule accepts are preferred. With labels and `neighbor_cut`, only the ends with the
        fewest labeled rows on the wrong side are compared; with labels alone, the lowest value decides.
        """
        ranks: dict[int, float] = {}
        if not self.named_sides:  # otherwise the labels decide
            enough = [end for end in ends if end.point.smaller_side >= node.min_weight]
            ranks = {id(end): self.rank(end) for end in enough}
            ends = [end for end in enough if ranks[id(end)] > 0.0]
        if len(ends) < 2:
            return list(ends)
        if self.neighbor_cut:
            return (yield from self._by_cut(node, ends))
        if node.labels is not None:
            return _by_value(ends)
        return distinct(sorted(ends, key=lambda end: (self._refused(end), -ranks[id(end)])))

    def _by_cut(self, node: Node, ends: Sequence[Optimum]) -> Query[list[Optimum]]:
        """Return different ends, those of the smallest normalized cut first.

        Before the cut, with labels the fewest mistakes decide, and without them whether the schedule accepts.
        """
        yield from ()
        assert self.graph is not None
        if node.labels is None:
            first = [self._refused(end) for end in ends]
        else:
            first = [weight_of_mistakes(node.labels, self.right, end.point) for end in ends]
        costs = list(zip(first, _cuts(self.graph, node, ends), strict=True))
        return distinct([ends[k] for k in sorted(range(len(ends)), key=costs.__getitem__)])

    def _refused(self, end: Optimum) -> float:
        """Return 0 for an end that the schedule accepts, otherwise 1."""
        return float(not self.schedule.accepts(end.point.index_value, end.point.profile))

    def rank(self, end: Optimum) -> float:
        """Return the rank of an end by the schedule, the higher the better; 0 for an invalid one."""
        if not end.point.index_value.valid:
            return 0.0
        index = getattr(end.index, "index", end.index)  # without the labels' penalty
        return self.schedule.rank(index, end.point.profile, end.point.index_value)

    def resume(self, node: Node, end: Optimum, last: bool) -> Query[Optimum]:
        """Continue with the known curvature, at the bandwidth of more rows."""
        index = self.indices(node)[end.stage]
        most = FULL_STEPS if keeps_row_sums(node, index.resolution) else 1  # each takes two passes
        max_iter = limit_steps(node, FULL_STEPS if last else self.max_iter, most)
        rule = StoppingRule(self.tol, max_iter, PROGRESS)
        more = yield from pursue(node, end.point.direction, [index], rule, end.curvature)
        status = PASS_LIMIT if last and more.status == ITERATION_LIMIT else more.status
        return replace(more, stage=end.stage, n_iter=end.n_iter + more.n_iter, status=status)

    def finish(self, node: Node, end: Optimum) -> Query[Outcome | None]:
        """Evaluate the index again at the end, with fine bins."""
        point = yield from _evaluate_finely(node, end)
        if not point.index_value.valid:
            return None
        unit = node.standardization.unit
        index = getattr(end.index, "index", end.index)
        norm = float(np.linalg.norm(point.gradient))
        facts = dict(self.schedule.facts(index, unit))
        if node.labels is not None:
            facts["gamma"] = end.index.gamma  # type: ignore[attr-defined]
        return Outcome(
            direction=point.direction,
            threshold=point.index_value.threshold,
            value=self.schedule.value(index, point.profile, point.index_value, unit),
            status=CONVERGED_COARSELY if end.status == CONVERGED and norm > self.tol else end.status,
            n_iter=end.n_iter,
            gradient_norm=norm,
            facts=facts,
            profile=point.profile,
            bandwidth=getattr(index, "bandwidth", None),
            named_sides=self.named_sides,
        )


def between_directions(directions: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return at least n further starts between pairs of directions (none if there is only one direction).

    cos a v_i + sin a v_j and cos a v_i - sin a v_j, the strongest i and j first, with a = 45 degrees and then
    random angles. Both signs are used, because the sign of a principal direction is arbitrary.
    """
    pairs = sorted(itertools.combinations(range(len(directions)), 2), key=lambda pair: (sum(pair), pair))
    starts: list[FloatArray] = []
    angle = math.pi / 4
    while pairs and len(starts) < n:
        for i, j in pairs[: -(-(n - len(starts)) // 2)]:
            first, second = math.cos(angle) * directions[i], math.sin(angle) * directions[j]
            starts += [first + second, first - second]
        angle = math.pi / 2 * rng.random()
    return np.array(starts).reshape(-1, directions.shape[1])


def _evaluate_finely(node: Node, end: Optimum) -> Query[Evaluated]:
    """Return the index with fine bins, and the gradient: that of the search if it needs another pass."""
    direction, fine = end.point.direction, end.index.resolution / EXACT
    if node.is_local or keeps_row_sums(node, fine):
        return (yield from evaluate(node, end.index, direction, fineness=EXACT))
    projected = yield from project(node, fine, direction)
    return Evaluated(projected, end.index.evaluate(projected.profile), end.point.gradient)


def _by_value(ends: Sequence[Optimum]) -> list[Optimum]:
    """Return ends by their values; the first of those that tie is the best."""
    lowest = min(end.point.value for end in ends)
    return sorted(ends, key=lambda end: max(0.0, end.point.value - lowest - PROGRESS))


def _with_sides(node: Node, labels: Labels, right: tuple[int, ...] | None) -> Node:
    """Return the node with two classes of labels: left and right."""
    sides = (sides_of(labels, right) > 0).astype(np.int64)
    return replace(node, labels=replace(labels, classes=sides))


def _cuts(graph: RowGraph, node: Node, ends: Sequence[Optimum]) -> list[float]:
    """Return the normalized cut of the two sides of every end."""
    points = graph.project(node.standardization, np.array([end.point.direction for end in ends]))
    thresholds = [end.point.index_value.threshold for end in ends]
    return [graph.cut(points[:, k] > threshold) for k, threshold in enumerate(thresholds)]
