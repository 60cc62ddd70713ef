"""The maximum margin split: cutting planes from several starts, samples that grow, the exact end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Asker, RowBlocks, together
from ravine.data.frame import Frame, fix_sign, frame_of, principal
from ravine.index.density import MinimumDensityIndex, bandwidth
from ravine.optimise.cutting_plane import Found, Planes, cutting_planes, two_means
from ravine.optimise.pursuit import View, project
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

    Labels add starts, the hyperplanes of a support vector machine on the labelled rows, and come first in the
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
        self, rows: RowBlocks, root: Frame | None, least: float, rng: np.random.Generator
    ) -> Asker[tuple[Frame, Split | None]]:
        """Find the best split; a pass for each CCCP step, or about a dozen in all for many rows."""
        frame = yield from frame_of(rows, root, self.standardize)
        if not (frame.inverse_scale > 0).any():
            return frame, None
        found = yield from through_samples(
            rows,
            frame,
            root,
            least,
            rng,
            standardize=self.standardize,
            choose=lambda some, own, enough: self._choose(some, own, enough, rng),
            go_on=self._continue,
        )
        if found is None or not self._splits(found[1], frame, least):
            return frame, None
        return frame, (yield from self._finish(*found, (root or frame).mean))

    def _choose(
        self, rows: RowBlocks, frame: Frame, least: float, rng: np.random.Generator
    ) -> Asker[tuple[View, Found] | None]:
        """Run from all starts side by side; return the view and the best end that is a split."""
        found = yield from principal(rows, frame, max(1, self.n_init - 1), rng)
        widest = float(found.deviations[0])
        C = AUTO_C / widest**2 if self.C is None else self.C * frame.unit * frame.unit
        first = found.directions[0]
        useful = found.directions[found.deviations > 1e-6 * widest]
        more = between_directions(useful, self.n_init - 1 - len(useful), rng)
        directions = [*useful, *more] if self.n_init > 1 else []
        ends = yield from together(
            [
                self._from_two_means(frame, first, C),
                *(self._run(frame, Planes.one(direction, 0.0), C) for direction in directions),
                *(self._run(frame, start, C) for start in self._labelled_starts(frame)),
            ]
        )
        allowed = [end for end in ends if self._splits(end, frame, least)]
        if not allowed:
            return None
        return View(frame, widest), min(allowed, key=lambda end: self._rank(end, frame))

    def _labelled_starts(self, frame: Frame) -> list[Planes]:
        """Return the planes of a support vector machine on the labelled rows."""
        if self.labels is None:
            return []
        framed = (self.labels.rows - frame.mean) * frame.inverse_scale
        normals, intercepts = support_machine(framed, self.labels.classes, self.labels.weights)
        return [Planes.one(w, float(b)) for w, b in zip(normals, intercepts, strict=True) if w.any()]

    def _rank(self, end: Found, frame: Frame) -> tuple[float, float]:
        """Return what ends are compared by: labelled pairs left together, then the objective."""
        plane = end.seen.plane
        pairs = 0.0
        if self.labels is not None:
            pairs = self.labels.left_together(frame.mean, frame.weights(plane.w[0]), -float(plane.b[0]))
        return pairs, end.objective

    def _from_two_means(self, frame: Frame, direction: FloatArray, C: float) -> Asker[Found]:
        start = yield from two_means(frame, direction)
        return (yield from self._run(frame, start, C))

    def _continue(self, frame: Frame, found: tuple[View, Found], last: bool) -> Asker[tuple[View, Found]]:
        """Go on from a smaller sample's end with the cuts that hold it up: they mean the same in any rows."""
        view, best = found
        end = yield from self._run(frame, best.seen.plane, best.C, best.seen.cuts[best.useful])
        return View(frame, view.widest), end

    def _run(self, frame: Frame, start: Planes, C: float, cuts: Planes | None = None) -> Asker[Found]:
        return (
            yield from cutting_planes(
                frame,
                start,
                Planes.zero(len(frame.mean)) if cuts is None else cuts,
                C=C,
                balance=self._balance,
                epsilon=self.epsilon,
                max_iter=self.max_iter,
            )
        )

    @property
    def _balance(self) -> float:
        return AUTO_BALANCE if self.balance is None else self.balance

    def _splits(self, end: Found, frame: Frame, least: float) -> bool:
        """Whether an end has enough on both sides, and is better than w = 0, which is no split."""
        trivial = end.C * (1.0 - self._balance)
        right = end.seen.right
        return end.objective < trivial and min(right, frame.total - right) >= least

    def _finish(self, view: View, best: Found, pivot: FloatArray) -> Asker[Split]:
        """Measure the depth of the density at the cut, fix the sign, tell the cut from the common pivot."""
        w, b = best.seen.plane.w[0], float(best.seen.plane.b[0])
        length = float(np.linalg.norm(w))
        direction = fix_sign(w / length)
        cut = -b / length if direction[np.argmax(np.abs(w))] * w[np.argmax(np.abs(w))] > 0 else b / length
        index = MinimumDensityIndex(bandwidth(view.widest, view.frame.total), alpha=np.inf)
        seen = yield from project(view, index.resolution, direction)
        unit = view.frame.unit
        return Split(
            boundary=Hyperplane.of(view.frame, direction, cut, pivot),
            direction=direction,
            method="maximum margin",
            value=best.objective / best.C,
            quality=index.quality(seen.profile, cut),
            gradient_norm=np.nan,
            status=best.status,
            n_iter=best.n_steps,
            facts={
                "margin": unit / length,
                "support": float(best.seen.weight[-1]),
                "slack": best.seen.slack,
                "violation": best.violation,
                "C": best.C / unit / unit,
                "rounds": float(len(best.history)),
            },
        )
