"""A hyperplane between classes of which some rows are known: a projection index, labels on their sides.

Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016 (Section 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.data.blocks import Query, RowBlocks, gather
from ravine.data.standardization import Standardization, principal
from ravine.index.base import IndexValue, Profile, ProjectionIndex, Schedule
from ravine.index.density import MinimumDensitySchedule
from ravine.index.labels import LabeledIndex
from ravine.optimize.pursuit import Evaluated, Pursued, View, project
from ravine.split.hyperplane import Split
from ravine.split.labels import Labels, support_machine
from ravine.split.projection import (
    PROGRESS,
    ProjectionSplitter,
    fewest_parted,
    mean_variance,
)

MISTAKES = 4.0  # of a support vector machine on its own rows, above which labels count less
ALPHAS = 5  # widths of the interval, on the way to the largest
GAMMAS = (0.1, 1.0)  # the weights of labels that steer a clusterer, against the density
GAMMA = 10.0  # the same against the logarithm of another index


@dataclass(frozen=True)
class LabeledFamily:
    """Another family's indices with the first gamma, then its last index with every further gamma.

    `right` are the classes whose rows are to come out on the right; None where that is still to be chosen.
    """

    family: Schedule
    labels: Labels
    gammas: Sequence[float]
    right: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The family's own name, with labels."""
        return f"{self.family.name} with labels"

    def fallbacks(self) -> Sequence[Schedule]:
        """Return nothing: the labels say where to look."""
        return ()

    @property
    def sides(self) -> FloatArray:
        """1 for the labeled rows that belong on the right, -1 for the others."""
        return self.sides_with(self.right or ())

    def sides_with(self, right: Sequence[int]) -> FloatArray:
        """Return the sides for other classes on the right."""
        return np.where(np.isin(self.labels.classes, right), 1.0, -1.0)

    def indices(
        self, deviation: float, total: float, mean_variance: float, overlap: float = 1.0
    ) -> Sequence[ProjectionIndex]:
        """Return the sequence for rows seen in this way, with labels that count less where they overlap."""
        unit = float(np.sqrt(mean_variance))
        plain = self.family.indices(deviation, total, mean_variance)
        pairs = [(index, self.gammas[0]) for index in plain]
        pairs += [(plain[-1], gamma) for gamma in self.gammas[1:]]
        weights = self.labels.weights / overlap
        return [LabeledIndex(index, self.sides, weights, gamma, unit) for index, gamma in pairs]

    def overlap(self, standardized: FloatArray) -> float:
        """Return by how much a label counts less, because classes overlap.

        The labeled rows that a support vector machine trained on them has on the wrong side show that: with
        many of them, hyperplanes that make the penalty small follow the noise, into directions in which rows
        hardly vary. As many rows as columns, or fewer, are not asked: a hyperplane parts them anyway.
        """
        if self.right is None or len(standardized) <= standardized.shape[1]:
            return 1.0
        normals, intercepts = support_machine(standardized, self.sides, self.labels.weights)
        wrong = (standardized @ normals[0] + intercepts[0] > 0) != (self.sides > 0)
        return max(1.0, float(self.labels.weights @ wrong) / MISTAKES)

    def accepts(self, value: IndexValue, profile: Profile) -> bool:
        """Ask the family itself; one that accepts nothing early is followed through all gammas."""
        return self.family.accepts(value, profile)

    def rank(self, index: LabeledIndex, profile: Profile, value: IndexValue) -> float:
        """Return the family's own rank, without the labels' penalty."""
        return self.family.rank(index.index, profile, value)

    def mistakes(self, point: Evaluated) -> float:
        """Return the weight of the labeled rows on the wrong side of a cut."""
        assert point.profile.labeled is not None
        right = point.profile.labeled > point.index_value.threshold
        return float(self.labels.weights @ (right != (self.sides > 0)))

    def value(self, index: LabeledIndex, profile: Profile, value: IndexValue, unit: float) -> float:
        """Return the family's own figure, without the labels' penalty."""
        return self.family.value(index.index, profile, value, unit)

    def facts(self, index: LabeledIndex, width: float, unit: float) -> Mapping[str, float]:
        """Return what the family does, and gamma."""
        return {**self.family.facts(index.index, width, unit), "gamma": index.gamma}


@dataclass(frozen=True, kw_only=True)
class LabeledSplitter(ProjectionSplitter):
    """Pursues an index with labels.

    The starts are those of the index itself and the normal of a linear support vector machine on the
    labeled rows, each with the sign that has the lower value; `_best` says which end is kept. Which
    of more than two classes come out on the right is chosen first (see `group`), with the split that the
    index finds without labels among the choices; the pursuit then starts from that split.

    With `named` sides, those on the right are what `right` says, and there is always a boundary. Without, the
    sides are clusters: their order is fixed, and a boundary has to run through a valley.
    """

    family: LabeledFamily
    named: bool = False

    def indices(self, view: View) -> Sequence[ProjectionIndex]:
        """Return the indices to follow, with labels that count less where they overlap."""
        standardization = view.standardization
        varies = standardization.inverse_scale > 0
        overlap = self.family.overlap(view.standardized[:, varies])
        return self.family.indices(
            view.widest, standardization.total, mean_variance(standardization), overlap
        )

    def search(
        self, rows: RowBlocks, root: Standardization | None, min_weight: float, rng: np.random.Generator
    ) -> Query[tuple[Standardization, Split | None]]:
        """Find the best split; for more than two classes after the search without labels."""
        if self.family.right is not None:
            return (yield from super().search(rows, root, min_weight, rng))
        plain = ProjectionSplitter(**{**_shared(self), "family": self.family.family})
        standardization, split = yield from plain.search(rows, root, min_weight, rng)
        if split is None:
            return standardization, None
        right = yield from group(rows, self.family, standardization, split.direction[None, :], rng)
        init = split.boundary.weights[None, :]
        decided = replace(self, family=replace(self.family, right=right), init=init)
        return (yield from decided.search(rows, root, min_weight, rng))

    def _look(
        self, rows: RowBlocks, standardization: Standardization, rng: np.random.Generator
    ) -> Query[tuple[View, FloatArray]]:
        """Add the labeled rows to the view, and their support vector machine to the starts."""
        plain, starts = yield from super()._look(rows, standardization, rng)
        view = View(standardization, plain.widest, self.family.labels.rows)
        normals = support_machine(view.standardized, self.family.sides, self.family.labels.weights)[0]
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        return view, np.vstack([starts, (normals / np.where(lengths > 0, lengths, 1.0))[lengths[:, 0] > 0]])

    def _best(
        self, rows: RowBlocks, view: View, starts: FloatArray, min_weight: float
    ) -> Query[Pursued | None]:
        """Pursue every start with its better sign, and keep the end with the lowest value.

        With `spare_neighbors`, of the ends with the fewest labeled rows on the wrong side, the one that
        parts the fewest neighbors.
        """
        indices = self.indices(view)
        index = indices[0]
        assert isinstance(index, LabeledIndex)
        mirrored = replace(index, sides=-index.sides)  # of -v says what the index says of v
        looks = yield from gather([project(view, index.resolution, start) for start in starts])
        signs = [
            1.0 if index.evaluate(look.profile).value <= mirrored.evaluate(look.profile).value else -1.0
            for look in looks
        ]
        ends = yield from gather(
            [self._pursue(view, sign * start, indices) for sign, start in zip(signs, starts, strict=True)]
        )
        if not self.named:
            ends = [end for end in ends if end.point.smaller_side >= min_weight and self.rank(end) > 0.0]
        if not ends:
            return None
        if self.spare_neighbors:
            mistakes = [self.family.mistakes(end.point) for end in ends]
            least_wrong = [end for end, wrong in zip(ends, mistakes, strict=True) if wrong == min(mistakes)]
            return fewest_parted(rows, view.standardization, least_wrong)
        reached = np.array([end.point.value for end in ends])
        return ends[int(np.argmax(reached <= reached.min() + PROGRESS))]  # the first of those that tie

    def _signed(self, direction: FloatArray) -> FloatArray:
        """Keep the sign of the labels where sides have names."""
        return direction if self.named else super()._signed(direction)


def steered(splitter: ProjectionSplitter, labels: Labels) -> LabeledSplitter:
    """Return a clusterer's splitter with labels that steer it."""
    classes = np.unique(labels.classes)
    right = (int(classes[1]),) if len(classes) == 2 else None
    gammas = GAMMAS if isinstance(splitter.family, MinimumDensitySchedule) else (GAMMA,)
    return LabeledSplitter(
        **{**_shared(splitter), "family": LabeledFamily(splitter.family, labels, gammas, right)}
    )


def _shared(splitter: ProjectionSplitter) -> dict[str, Any]:
    """Return what splitters with labels and without have in common."""
    return {field.name: getattr(splitter, field.name) for field in fields(ProjectionSplitter)}


def labeled_density(
    labels: Labels,
    right: tuple[int, ...] | None,
    *,
    gammas: Sequence[float],
    bandwidth_factor: float,
    alpha_max: float,
    n_init: int,
    standardize: bool,
    tol: float,
    max_iter: int,
) -> LabeledSplitter:
    """Return the splitter for minimum density between classes that have names."""
    density = MinimumDensitySchedule(bandwidth_factor, alpha_max, n_alphas=ALPHAS)
    return LabeledSplitter(
        family=LabeledFamily(density, labels, gammas, right),
        standardize=standardize,
        n_init=n_init,
        tol=tol,
        max_iter=max_iter,
        named=True,
    )


def group(
    rows: RowBlocks,
    family: LabeledFamily,
    standardization: Standardization,
    directions: FloatArray,
    rng: np.random.Generator,
) -> Query[tuple[int, ...]]:
    """Return the classes to put on the right, of more than two: those parted at the lowest phi_SSC.

    Along each of some directions and of the principal ones, classes are sorted by the mean of their labeled
    rows; every place between two of them makes two groups. All are judged in one pass, with the last gamma.
    """
    labels = family.labels
    classes = np.unique(labels.classes)
    found = yield from principal(rows, standardization, 2 * len(classes), rng)
    view = View(standardization, float(found.deviations[0]), labels.rows)
    index = family.indices(view.widest, standardization.total, mean_variance(standardization))[-1]
    assert isinstance(index, LabeledIndex)
    candidates = np.concatenate([directions, found.directions])
    projected = yield from gather([project(view, index.resolution, v) for v in candidates])
    best, lowest = classes[1:], np.inf
    for look in projected:
        points = look.profile.labeled
        assert points is not None
        means = [
            np.average(points[labels.classes == c], weights=labels.weights[labels.classes == c])
            for c in classes
        ]
        order = classes[np.argsort(means)]
        for k in range(1, len(classes)):
            judged = replace(index, sides=family.sides_with(order[k:].tolist())).evaluate(look.profile)
            if judged.value < lowest:
                best, lowest = order[k:], judged.value
    return tuple(sorted(best.tolist()))
