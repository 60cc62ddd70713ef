"""The maximum margin split: cutting planes from several starts, samples that grow, the exact end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Query, RowBlocks, gather
from ravine.data.standardization import Standardization, fix_sign, principal, standardization_of
from ravine.index.density import MinimumDensityIndex, bandwidth, relative_depth
from ravine.optimize.cutting_plane import Found, Planes, cutting_planes, two_means
from ravine.optimize.pursuit import View, project
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.labels import Labels, support_machine
from ravine.split.samples import through_samples
from ravine.split.starts import between_directions

AUTO_C = 10.0  # C, in units of one over the variance of the first principal component
AUTO_BALANCE = 0.03  # the bound of the mean of f, where rows on the margin have f = 1


@dataclass(frozen=True)
class MarginSplitter:
    """Solves the maximum margin problem from 2-means and principal directions, in the same passes.

    The best objective wins among the ends with enough rows on both sides. Up to about 32 000 rows every start
    sees all rows; above, all starts run on a sample (see `through_samples`), and the winner goes on, to a
    larger one and to all rows, with the cuts that hold it up.

    Labels add starts, the hyperplanes of a support vector machine on the labeled rows, and come first in the
    choice of an end: the one that leaves the fewest pairs of different classes on one side.
    """

    C: float | None = None
    balance: float | None = None
    epsilon: float = 0.01
    n_init: int = 4
    max_iter: int = 50
    standardize: bool = True
    labels: Labels | None = None

    def wider(self) -> tuple[()]:
        """Return nothing: the balance bounds the search."""
        return ()

    def steered(self, labels: Labels) -> MarginSplitter:
        """Return the same search with labels among its starts and in the choice of its end."""
        return replace(self, labels=labels)

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the best split; a pass for each CCCP step, or about a dozen in all for many rows."""
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
        if found is None or not self._splits(found[1], standardization, min_weight):
            return standardization, None
        return standardization, (yield from self._finish(*found, (root or standardization).mean))

    def _choose(
        self, rows: RowBlocks, standardization: Standardization, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[View, Found] | None]:
        """Run from all starts side by side; return the view and the best end that is a split."""
        found = yield from principal(rows, standardization, max(1, self.n_init - 1), rng)
        widest = float(found.deviations[0])
        C = AUTO_C / widest**2 if self.C is None else self.C * standardization.unit * standardization.unit
        first = found.directions[0]
        useful = found.directions[found.deviations > 1e-6 * widest]
        more = between_directions(useful, self.n_init - 1 - len(useful), rng)
        directions = [*useful, *more] if self.n_init > 1 else []
        ends = yield from gather(
            [
                self._from_two_means(standardization, first, C),
                *(self._run(standardization, Planes.one(direction, 0.0), C) for direction in directions),
                *(self._run(standardization, start, C) for start in self._labeled_starts(standardization)),
            ]
        )
        allowed = [end for end in ends if self._splits(end, standardization, min_weight)]
        if not allowed:
            return None
        return View(standardization, widest), min(allowed, key=lambda end: self._rank(end, standardization))

    def _labeled_starts(self, standardization: Standardization) -> list[Planes]:
        """Return the planes of a support vector machine on the labeled rows."""
        if self.labels is None:
            return []
        standardized = (self.labels.rows - standardization.mean) * standardization.inverse_scale
        normals, intercepts = support_machine(standardized, self.labels.classes, self.labels.weights)
        return [Planes.one(w, float(b)) for w, b in zip(normals, intercepts, strict=True) if w.any()]

    def _rank(self, end: Found, standardization: Standardization) -> tuple[float, float]:
        """Return what ends are compared by: labeled pairs left together, then the objective."""
        plane = end.projected.plane
        pairs = 0.0
        if self.labels is not None:
            pairs = self.labels.left_together(
                standardization.mean, standardization.weights(plane.w[0]), -float(plane.b[0])
            )
        return pairs, end.objective

    def _from_two_means(
        self, standardization: Standardization, direction: FloatArray, C: float
    ) -> Query[Found]:
        start = yield from two_means(standardization, direction)
        return (yield from self._run(standardization, start, C))

    def _continue(
        self, standardization: Standardization, found: tuple[View, Found], last: bool
    ) -> Query[tuple[View, Found]]:
        """Go on from a smaller sample's end with the cuts that hold it up: they mean the same in any rows."""
        view, best = found
        end = yield from self._run(
            standardization, best.projected.plane, best.C, best.projected.cuts[best.useful]
        )
        return View(standardization, view.widest), end

    def _run(
        self, standardization: Standardization, start: Planes, C: float, cuts: Planes | None = None
    ) -> Query[Found]:
        return (
            yield from cutting_planes(
                standardization,
                start,
                Planes.zero(len(standardization.mean)) if cuts is None else cuts,
                C=C,
                balance=self._balance,
                epsilon=self.epsilon,
                max_iter=self.max_iter,
            )
        )

    @property
    def _balance(self) -> float:
        return AUTO_BALANCE if self.balance is None else self.balance

    def _splits(self, end: Found, standardization: Standardization, min_weight: float) -> bool:
        """Whether an end has enough on both sides, and is better than w = 0, which is no split."""
        trivial = end.C * (1.0 - self._balance)
        right = end.projected.right
        return end.objective < trivial and min(right, standardization.total - right) >= min_weight

    def _finish(self, view: View, best: Found, pivot: FloatArray) -> Query[Split]:
        """Measure the depth of the density at the cut, fix the sign, tell the cut from the common pivot."""
        w, b = best.projected.plane.w[0], float(best.projected.plane.b[0])
        length = float(np.linalg.norm(w))
        direction = fix_sign(w / length)
        cut = -b / length if direction[np.argmax(np.abs(w))] * w[np.argmax(np.abs(w))] > 0 else b / length
        index = MinimumDensityIndex(bandwidth(view.widest, view.standardization.total), alpha=np.inf)
        projected = yield from project(view, index.resolution, direction)
        unit = view.standardization.unit
        return Split(
            boundary=Hyperplane.of(view.standardization, direction, cut, pivot),
            direction=direction,
            method="maximum margin",
            value=best.objective / best.C,
            quality=relative_depth(projected.profile, cut, index.bandwidth),
            gradient_norm=np.nan,
            status=best.status,
            n_iter=best.n_steps,
            facts={
                "margin": unit / length,
                "support": float(best.projected.weight[-1]),
                "slack": best.projected.slack,
                "violation": best.violation,
                "C": best.C / unit / unit,
                "rounds": float(len(best.history)),
            },
        )
