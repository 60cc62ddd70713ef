"""One splitter for every projection index: starts, continuation, samples that grow, the exact end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Query, RowBlocks, gather
from ravine.data.standardization import Standardization, fix_sign, principal, standardization_of
from ravine.index.base import ProjectionIndex, Schedule
from ravine.optimize.pursuit import Evaluated, Pursued, View, evaluate, pursue
from ravine.optimize.sphere import CONVERGED
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.labels import Labels
from ravine.split.neighbor_cut import NeighborGraph
from ravine.split.samples import through_samples
from ravine.split.starts import between_directions, neighbor_starts

SAMPLE_EVALUATIONS = 20  # on a larger sample, which costs little
FULL_EVALUATIONS = 3  # on all rows after the samples: more change the value by 1 %, and no label
PROGRESS = 1e-3  # a step that lowers log phi by less ends a descent
EXACT = 8  # bins this much finer give the reported figures: an error of about 1e-5

CONVERGED_COARSELY = (
    "the relative gradient is within tol in the bins of the search, and above it in fine ones"
)


@dataclass(frozen=True)
class ProjectionSplitter:
    """Pursues an index from several starts, all in the same passes, and keeps the best end.

    Up to about 32 000 rows every start sees all rows. Above, all starts are pursued on a sample (see
    `through_samples`), and only the winner goes on, to a larger one and to all rows, each with its own
    bandwidth. With `follow_neighbors`, half as many starts again come from a graph of neighbors. The best
    end is the one of highest quality, or, with `spare_neighbors`, the one that parts the fewest of them.
    """

    family: Schedule
    standardize: bool = True
    n_init: int = 4
    init: FloatArray | None = None
    tol: float = 0.02
    max_iter: int = 15
    follow_neighbors: bool = False
    spare_neighbors: bool = False

    def wider(self) -> list[ProjectionSplitter]:
        """Return this splitter with an index that looks farther from the middle."""
        return [replace(self, family=family) for family in self.family.fallbacks()]

    def steered(self, labels: Labels) -> ProjectionSplitter:
        """Return this splitter with a penalty for labeled rows on the wrong side."""
        from ravine.split.labeled import steered

        return steered(self, labels)

    def indices(self, view: View) -> Sequence[ProjectionIndex]:
        """Return the indices to follow, for rows seen in this way."""
        standardization = view.standardization
        return self.family.indices(view.widest, standardization.total, mean_variance(standardization))

    def rank(self, end: Pursued) -> float:
        """Return how good an end is among those of other starts; 0 for an invalid one."""
        value = end.point.index_value
        return self.family.rank(end.index, end.point.profile, value) if value.valid else 0.0

    def _accepts(self, point: Evaluated) -> bool:
        return self.family.accepts(point.index_value, point.profile)

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the best split; a pass for each evaluation, or about a dozen in all for many rows."""
        standardization = yield from standardization_of(rows, root, self.standardize)
        if not (standardization.inverse_scale > 0).any():
            return standardization, None
        found = yield from through_samples(
            rows,
            standardization,
            root,
            min_weight,
            rng,
            standardize=self.standardize,
            choose=lambda some, own, enough: self._choose(some, own, enough, rng),
            go_on=self._continue,
        )
        if found is None:
            return standardization, None
        return standardization, (yield from self._finish(*found, min_weight, (root or standardization).mean))

    def _look(
        self, rows: RowBlocks, standardization: Standardization, rng: np.random.Generator
    ) -> Query[tuple[View, FloatArray]]:
        """Return the view of these rows and the starts.

        Those are the given ones, or principal directions, then others between them, then those of neighbors.
        """
        wanted = self.n_init if self.init is None else 1
        found = yield from principal(rows, standardization, wanted, rng)
        view = View(standardization, float(found.deviations[0]))
        if self.init is not None:
            starts = self.init / np.where(
                standardization.inverse_scale > 0, standardization.inverse_scale, np.inf
            )
        else:
            useful = found.directions[found.deviations > 1e-6 * found.deviations[0]]
            further = between_directions(useful, self.n_init - len(useful), rng)
            starts = np.concatenate([useful, further])
            if (standardization.inverse_scale > 0).sum() == 1:
                starts = starts[:1]
            elif self.follow_neighbors and self.n_init > 1:
                starts = np.concatenate(
                    [starts, neighbor_starts(rows, standardization, self.n_init // 2, rng)]
                )
        lengths = np.linalg.norm(starts, axis=1, keepdims=True)
        return view, starts[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]

    def _choose(
        self, rows: RowBlocks, standardization: Standardization, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[View, Pursued] | None]:
        """Find starts and pursue them; return the view of these rows and the best end, if there is one."""
        view, starts = yield from self._look(rows, standardization, rng)
        best = yield from self._best(rows, view, starts, min_weight)
        return None if best is None else (view, best)

    def _best(
        self, rows: RowBlocks, view: View, starts: FloatArray, min_weight: float
    ) -> Query[Pursued | None]:
        """Pursue all starts side by side; return the best valid cut that leaves enough on each side.

        Ends that the family accepts come before others.
        """
        indices = self.indices(view)
        ends = yield from gather([self._pursue(view, start, indices) for start in starts])
        ends = [end for end in ends if end.point.smaller_side >= min_weight and self.rank(end) > 0.0]
        ends = [end for end in ends if self._accepts(end.point)] or ends
        if not ends:
            return None
        if self.spare_neighbors:
            return fewest_parted(rows, view.standardization, ends)
        return max(ends, key=self.rank)

    def _pursue(self, view: View, start: FloatArray, indices: Sequence[ProjectionIndex]) -> Query[Pursued]:
        end = yield from pursue(
            view,
            start,
            indices,
            tol=self.tol,
            max_iter=self.max_iter,
            progress=PROGRESS,
            enough=self._accepts,
        )
        return end

    def _continue(
        self, standardization: Standardization, found: tuple[View, Pursued], last: bool
    ) -> Query[tuple[View, Pursued]]:
        """Go on from a smaller sample's winner with the curvature that is known, at another bandwidth."""
        view, best = replace(found[0], standardization=standardization), found[1]
        end = yield from pursue(
            view,
            best.point.direction,
            [self.indices(view)[best.rank]],
            tol=self.tol,
            max_iter=FULL_EVALUATIONS if last else SAMPLE_EVALUATIONS,
            progress=PROGRESS,
            curvature=best.curvature,
        )
        return view, replace(end, rank=best.rank, n_iter=best.n_iter + end.n_iter)

    def _finish(self, view: View, best: Pursued, min_weight: float, pivot: FloatArray) -> Query[Split | None]:
        """Measure the winner again with fine bins, fix its sign, and tell its cut from the common pivot."""
        point = yield from evaluate(view, best.index, best.point.direction, fineness=EXACT)
        if not point.index_value.valid or point.smaller_side < min_weight:
            return None
        direction = self._signed(point.direction)
        sign = 1.0 if direction is point.direction else -1.0
        threshold, unit = point.index_value.threshold, view.standardization.unit
        norm = float(np.linalg.norm(point.gradient))
        return Split(
            boundary=Hyperplane.of(view.standardization, direction, sign * threshold, pivot),
            direction=direction,
            method=self.family.name,
            value=self.family.value(best.index, point.profile, point.index_value, unit),
            quality=self.family.rank(best.index, point.profile, point.index_value),
            gradient_norm=norm,
            status=CONVERGED_COARSELY if best.status == CONVERGED and norm > self.tol else best.status,
            n_iter=best.n_iter,
            facts=self.family.facts(best.index, best.index.resolution / EXACT, unit),
        )

    def _signed(self, direction: FloatArray) -> FloatArray:
        """Return a direction or its negative, so that the same rows have the same side on the right."""
        return fix_sign(direction)


def mean_variance(standardization: Standardization) -> float:
    """Return the mean variance of the standardized columns that vary."""
    varies = standardization.inverse_scale > 0
    return float(np.mean((standardization.deviation * standardization.inverse_scale)[varies] ** 2))


def fewest_parted(rows: RowBlocks, standardization: Standardization, ends: Sequence[Pursued]) -> Pursued:
    """Return the end whose cut is smallest in the graph of neighbors."""
    if len(ends) == 1:
        return ends[0]
    graph = NeighborGraph.of(rows, standardization)
    return min(
        ends,
        key=lambda e: graph.cut(
            graph.project(e.point.direction[None, :])[:, 0] > e.point.index_value.threshold
        ),
    )
