"""A hyperplane between two classes of which some rows are known: low density, labels on their sides.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016 (Section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Asker, RowBlocks, together
from ravine.data.frame import Frame, frame_of, principal
from ravine.index.base import ProjectionIndex
from ravine.index.labels import LabelledIndex
from ravine.optimise.pursuit import Evaluated, Pursued, View, evaluate, project
from ravine.split.hyperplane import Hyperplane, Split
from ravine.split.projection import EXACT, PROGRESS, IndexFamily, MinimumDensityFamily, ProjectionSplitter

ALPHAS = 5  # widths of the interval, on the way to the largest


@dataclass(frozen=True)
class Labels:
    """The rows whose class is known: raw and in memory, -1 or 1 for the side of each, and their weights."""

    rows: FloatArray
    sides: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class LabelledFamily:
    """Another family's indices with the first gamma, then its last index with every further gamma."""

    family: IndexFamily
    labels: Labels
    gammas: Sequence[float]

    @property
    def name(self) -> str:
        """The family's own name, with labels."""
        return f"{self.family.name} with labels"

    def wider(self) -> Sequence[IndexFamily]:
        """Return nothing: the labels say where to look."""
        return ()

    def indices(self, view: View) -> Sequence[ProjectionIndex]:
        """Return the sequence for rows seen in this way."""
        frame = view.frame
        varies = frame.inverse_scale > 0
        unit = float(np.sqrt(np.mean((frame.deviation * frame.inverse_scale)[varies] ** 2)))
        plain = self.family.indices(view)
        pairs = [(index, self.gammas[0]) for index in plain]
        pairs += [(plain[-1], gamma) for gamma in self.gammas[1:]]
        sides, weights = self.labels.sides, self.labels.weights
        return [LabelledIndex(index, sides, weights, gamma, unit) for index, gamma in pairs]

    def accepts(self, point: Evaluated) -> bool:
        """Follow all gammas."""
        return False

    def facts(self, index: LabelledIndex, width: float) -> Mapping[str, float]:
        """Return what the family tells, and gamma."""
        return {**self.family.facts(index.index, width), "gamma": index.gamma}


@dataclass(frozen=True, kw_only=True)
class LabelledSplitter(ProjectionSplitter):
    """Pursues an index with labels; rows of side 1 are to come out on the right.

    The starts are principal directions and the normal of a linear support vector machine on the labelled
    rows, each with the sign that has the lower value; the end with the lowest value is kept.
    """

    family: LabelledFamily

    def _look(
        self, rows: RowBlocks, frame: Frame, rng: np.random.Generator
    ) -> Asker[tuple[View, FloatArray]]:
        """Add the labelled rows to the view, and their support vector machine to the starts."""
        plain, starts = yield from super()._look(rows, frame, rng)
        view = View(frame, plain.widest, self.family.labels.rows)
        normal = support_normal(view.framed, self.family.labels)
        length = float(np.linalg.norm(normal))
        return view, starts if length == 0.0 else np.vstack([starts, normal / length])

    def _choose(self, view: View, starts: FloatArray, least: float) -> Asker[Pursued | None]:
        """Pursue every start with its better sign, and keep the end with the lowest value."""
        indices = self.family.indices(view)
        both = np.concatenate([starts, -starts])
        looks = yield from together([evaluate(view, indices[0], start) for start in both])
        values = np.array([look.value for look in looks]).reshape(2, -1)
        signed = np.where((values[0] <= values[1])[:, None], starts, -starts)
        ends = yield from together([self._pursue(view, start, indices) for start in signed])
        reached = np.array([end.point.value for end in ends])
        return ends[int(np.argmax(reached <= reached.min() + PROGRESS))]  # the first of those that tie

    def _finish(self, view: View, best: Pursued, least: float, pivot: FloatArray) -> Asker[Split | None]:
        """Measure the winner again with fine bins; its sign is the labels' own."""
        point = yield from evaluate(view, best.index, best.point.direction, fineness=EXACT)
        cut = point.index_value.cut
        weights = view.frame.weights(point.direction)
        return Split(
            boundary=Hyperplane(weights, pivot, cut + float(weights @ (view.frame.mean - pivot))),
            direction=point.direction,
            method=self.family.name,
            value=float(np.exp(point.value)),
            quality=best.index.quality(point.profile, cut),
            gradient_norm=float(np.linalg.norm(point.gradient)),
            status=best.status,
            n_iter=best.n_iter,
            facts=self.family.facts(best.index, best.index.resolution / EXACT),  # type: ignore[arg-type]
        )


def support_normal(framed: FloatArray, labels: Labels) -> FloatArray:
    """Return the normal of a linear support vector machine on the labelled rows of a frame."""
    from sklearn.svm import LinearSVC

    machine = LinearSVC(dual=False, C=1.0, tol=1e-10).fit(framed, labels.sides, sample_weight=labels.weights)
    return np.asarray(machine.coef_[0], dtype=np.float64)


def labelled_density(
    labels: Labels,
    *,
    gammas: Sequence[float],
    bandwidth_factor: float,
    alpha_max: float,
    n_init: int,
    standardize: bool,
    tol: float,
    max_iter: int,
) -> LabelledSplitter:
    """Return the splitter for minimum density with labels."""
    density = MinimumDensityFamily(bandwidth_factor, alpha_max, n_alphas=ALPHAS)
    return LabelledSplitter(
        family=LabelledFamily(density, labels, gammas),
        standardize=standardize,
        n_init=n_init,
        tol=tol,
        max_iter=max_iter,
    )


def group(
    rows: RowBlocks,
    root: Frame,
    labels: Labels,
    splitter: Callable[[Labels], LabelledSplitter],
    rng: np.random.Generator,
) -> Asker[FloatArray]:
    """Return the classes to put on the right, of more than two: those parted at the lowest phi_SSC.

    `labels.sides` are the classes here. Along each start, classes are sorted by the mean of their labelled
    rows; every place between two of them makes two groups. All are judged in one pass, with the last gamma.
    """
    classes = np.unique(labels.sides)
    frame = yield from frame_of(rows, root, True)
    first = splitter(replace(labels, sides=np.where(labels.sides == classes[0], -1.0, 1.0)))
    found = yield from principal(frame, 2 * len(classes), rng)
    view = View(frame, float(found.deviations[0]), labels.rows)
    index = first.family.indices(view)[-1]
    assert isinstance(index, LabelledIndex)
    seen = yield from together([project(view, index.resolution, v) for v in found.directions])
    best, lowest = classes[1:], np.inf
    for look in seen:
        points = look.profile.labelled
        assert points is not None
        means = [
            np.average(points[labels.sides == c], weights=labels.weights[labels.sides == c]) for c in classes
        ]
        order = classes[np.argsort(means)]
        for k in range(1, len(classes)):
            sides = np.where(np.isin(labels.sides, order[k:]), 1.0, -1.0)
            value = replace(index, sides=sides).evaluate(look.profile).value
            if value < lowest:
                best, lowest = order[k:], value
    return np.asarray(best)
