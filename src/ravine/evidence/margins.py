"""Reference rows with the margins and the correlation of the rows: a table without clusters.

Latent normal scores with the rank correlation of the columns are turned into the columns' own values (a
Gaussian copula). The margin of a continuous column is the nearest unimodal one: it keeps skewness, bounds and
tails, but has no valley, because a valley is what a search looks for. A column with few different values
keeps its margin as it is: the gaps between its values are no valleys. Indicator columns that exclude each
other are one variable. Discrete columns are drawn independently of each other: what several of them say
together is structure (with their correlation the references of a table of symptoms had its diseases).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from ravine._validate import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

SETTLED_DIGITS = 9  # decimal digits of the largest value of a column that make values different
TINIEST = 1e-290  # a column whose largest value is below this counts as constant: its unit would be subnormal
FEW_VALUES = 10  # most different values of a discrete column
ROWS_PER_VALUE = 5  # least weight per value of a discrete column: ten rows have ten values of any column
BINS = 64  # bins of equal weight in which a margin is made unimodal
VISIBLE = 0.5  # spacing of values, in units of sd n^(-1/5), below which a density estimate does not show it


@dataclass(frozen=True)
class Variable:
    """One column, or indicator columns that exclude each other, as a function of a uniform number.

    A discrete variable has `levels` (m, c), the values of its c columns, and their cumulative shares. A
    continuous one has the edges of cells of constant density, their cumulative shares, and the step of the
    grid of its values (0 if there is none).
    """

    columns: IntArray
    cumulative: FloatArray
    levels: FloatArray | None = None
    edges: FloatArray | None = None
    step: float = 0.0

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the values at these cumulative shares, one row each."""
        if self.levels is not None:
            place = np.searchsorted(self.cumulative, u, side="left")
            return np.asarray(self.levels[np.minimum(place, len(self.levels) - 1)])
        assert self.edges is not None
        values = np.interp(u, self.cumulative, self.edges)
        if self.step > 0.0:
            values = self.edges[0] + self.step * (np.floor((values - self.edges[0]) / self.step) + 0.5)
        return np.asarray(values[:, None])


@dataclass(frozen=True)
class Margins:
    """The variables of a table, and a root of the correlation of their normal scores."""

    variables: Sequence[Variable]
    root: FloatArray
    deviations: FloatArray

    @property
    def has_gaps(self) -> bool:
        """Whether a column has gaps between its values."""
        return any(variable.levels is not None or variable.step > 0 for variable in self.variables)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n rows."""
        shares = ndtr(rng.standard_normal((n, len(self.root))) @ self.root)
        rows = np.zeros((n, len(self.deviations)))
        for k, variable in enumerate(self.variables):
            rows[:, variable.columns] = variable.quantile(shares[:, k])
        rows -= rows.mean(axis=0)
        drawn = np.sqrt((rows**2).mean(axis=0))
        return np.asarray(rows * (self.deviations / np.where(drawn > 0.0, drawn, 1.0)))


def explained(values: IntArray, weights: FloatArray, right: BoolArray) -> float:
    """Return the share of a division of rows in two sides that a variable of these values explains.

    With every value on the side where most of its rows are, this is 1 minus the weight of the rows on the
    wrong side over the weight of the smaller side.

    >>> right = np.array([False, False, True, True])
    >>> [explained(np.array(values), np.ones(4), right) for values in ([0, 0, 1, 1], [0, 1, 1, 1])]
    [1.0, 0.5]
    """
    sides = np.array([np.bincount(values, weights * side) for side in (~right, right)])
    smaller = float(sides.sum(axis=1).min())
    return 1.0 - float(sides.min(axis=0).sum()) / smaller if smaller > 0.0 else 0.0


def settled(rows: FloatArray) -> FloatArray:
    """Return rows without the digits that rounding decides: equal values stay equal after a perturbation.

    Values of a column that follow each other within the tenth digit of the largest become the least of them.
    (Rounding to that digit would part equal values that rounding puts on both sides of a half.)

    >>> settled(np.array([[5.0], [5.000000000001], [0.0]])).ravel().tolist()
    [5.0, 5.0, 0.0]
    """
    if not len(rows):
        return rows
    largest = np.abs(rows).max(axis=0)
    digits = np.floor(np.log10(np.where(largest > TINIEST, largest, 1.0)))
    order = np.argsort(rows, axis=0, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=0)
    place = np.zeros(rows.shape, dtype=np.int64)
    differs = np.diff(ordered, axis=0) > 10.0 ** (digits - SETTLED_DIGITS)
    place[1:] = np.where(differs, np.arange(1, len(rows))[:, None], 0)
    least = np.take_along_axis(ordered, np.maximum.accumulate(place, axis=0), axis=0)
    found = np.empty(rows.shape)
    np.put_along_axis(found, order, least, axis=0)
    return found


def margins(rows: FloatArray, weights: FloatArray, n: float | None = None) -> Margins:
    """Return the margins of weighted rows, and the correlation of their scores; no column is constant.

    `n` is how many different rows there are; by default their weight.
    """
    rows = settled(rows)
    total = float(weights.sum())
    n = n or total
    found, scores, spread = [], [], []
    for columns in grouped(rows, weights, np.arange(rows.shape[1])):
        one, score = _variable(rows, weights / total, n, columns)
        found.append(one)
        scores.append(score)
        spread.append(float(weights @ score**2) / total)
    z = np.array(scores).T
    covariance = (z.T * (weights / total)) @ z
    discrete = np.array([variable.levels is not None for variable in found])
    covariance[np.outer(discrete, discrete)] = 0.0  # what several discrete columns say together is structure
    # The scores of few values vary less than the latent normal numbers: to first order in the correlation,
    # the covariance of two scores is the correlation times both their variances.
    deviations = np.sqrt(weights @ (rows - weights @ rows / total) ** 2 / total)
    return Margins(found, _root(covariance / np.outer(spread, spread), n), deviations)


def _root(correlation: FloatArray, total: float) -> FloatArray:
    """Return the symmetric root of the shrunk correlation, with the nearest diagonal of ones."""
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(np.clip(correlation, -1.0, 1.0))
    values = shrink(values, total)
    root = (vectors * np.sqrt(values)) @ vectors.T
    return np.asarray(root / np.linalg.norm(root, axis=0))


def shrink(values: FloatArray, n: float, p: int | None = None) -> FloatArray:
    """Shrink the eigenvalues of the covariance of n rows toward their mean; of p, those not given are 0.

    >>> shrink(np.array([3.0, 1.0]), 2.0, 4).tolist()
    [1.0, 1.0]
    """
    p = p or len(values)
    values = np.maximum(values, 0.0)
    squares, square = float((values**2).sum()), float(values.sum() ** 2)
    spread = (n + 1 - 2 / p) * (squares - square / p)
    share = 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squares + square) / spread)
    return np.asarray((1 - share) * values + share * values.sum() / p)


def grouped(rows: FloatArray, weights: FloatArray, varies: IntArray) -> list[IntArray]:
    """Return the columns of each variable: those with two values that exclude each other belong together.

    Two indicators exclude each other if no row has the rarer value of both; so negated indicators are the
    same variable. An indicator whose rarer value is that of all the others together belongs to them: its
    other value is the category of most rows. Larger shares come first, so that the order of the columns
    matters only among equal ones.
    """
    two = [j for j in varies if _n_values(rows[:, j], 2) == 2]
    rare = {j: _rarer(rows[:, j], weights) for j in two}
    share = {j: round(float(weights[rare[j]].sum() / weights.sum()), SETTLED_DIGITS) for j in two}
    groups: list[tuple[list[int], BoolArray]] = []
    for j in sorted(two, key=lambda j: -share[j]):
        for group, taken in groups:
            if not (taken & rare[j]).any():
                group.append(j)
                taken |= rare[j]
                break
        else:
            groups.append(([j], rare[j].copy()))
    whole = _with_complements(groups)
    return [np.array([j]) for j in varies if j not in rare] + [np.array(sorted(g)) for g in whole]


def _with_complements(groups: list[tuple[list[int], BoolArray]]) -> list[list[int]]:
    """Return the groups, those that take the same rows as one, unless each takes all rows by itself."""
    found: dict[bytes, list[int]] = {}
    complete = [group for group, taken in groups if taken.all()]
    for group, taken in groups:
        if not taken.all():
            found.setdefault(taken.tobytes(), []).extend(group)
    return [*complete, *found.values()]


def _rarer(column: FloatArray, weights: FloatArray) -> BoolArray:
    """Return the rows that have the rarer of two values; of equally frequent ones, that of the first row."""
    first: BoolArray = np.equal(column, column[0])
    return first if round(float(weights[first].sum() / weights.sum()), SETTLED_DIGITS) <= 0.5 else ~first


def _n_values(column: FloatArray, most: int) -> int:
    """Return the number of different values, or `most` + 1 if there are more; looks at few rows first."""
    few = len(np.unique(column[: 4 * most + 4]))
    return most + 1 if few > most else min(len(np.unique(column)), most + 1)


def _variable(
    rows: FloatArray, share: FloatArray, total: float, columns: IntArray
) -> tuple[Variable, FloatArray]:
    """Return the variable of some columns, and the normal score of every row."""
    if len(columns) > 1:
        levels, place = np.unique(rows[:, columns], axis=0, return_inverse=True)
    else:
        values, place = np.unique(rows[:, columns[0]], return_inverse=True)
        levels = values[:, None]
    place = place.reshape(-1)
    mass: FloatArray = np.bincount(place, share).astype(np.float64)
    score = normal_scores(mass)[place]
    few = len(levels) == 1 or (len(levels) <= FEW_VALUES and len(levels) * ROWS_PER_VALUE <= total)
    if len(columns) > 1 or few:
        return Variable(columns, np.cumsum(mass), levels=levels), score
    values = levels[:, 0]
    step = float(np.diff(values).min()) if total >= 2 * len(values) else 0.0
    apart = values - mass @ values
    widest = float(np.abs(apart).max())
    deviation = widest * math.sqrt(float(mass @ (apart / widest) ** 2))
    step = step if step > VISIBLE * deviation * total**-0.2 else 0.0
    edges, density = unimodal_margin(values, mass, step)
    cumulative = np.concatenate([[0.0], np.cumsum(density * np.diff(edges))])
    return Variable(columns, cumulative / cumulative[-1], edges=edges, step=step), score


def normal_scores(mass: FloatArray) -> FloatArray:
    """Return the mean of a standard normal number between the quantiles of each value.

    >>> normal_scores(np.array([0.5, 0.5])).round(3).tolist()
    [-0.798, 0.798]
    """
    ends = ndtri(np.clip(np.concatenate([[0.0], np.cumsum(mass)]), 0.0, 1.0))
    density = np.exp(-0.5 * ends**2) / math.sqrt(2 * math.pi)
    return np.asarray((density[:-1] - density[1:]) / mass)


def unimodal_margin(values: FloatArray, mass: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the edges of bins of about equal weight, and the nearest unimodal density in them.

    Cells reach to the middle between neighboring values; the outer ones are as wide as half a step, or as on
    their inner side.
    """
    middle = (values[:-1] + values[1:]) / 2
    first, last = (step / 2, step / 2) if step > 0 else (middle[0] - values[0], values[-1] - middle[-1])
    edges = np.concatenate([[values[0] - first], middle, [values[-1] + last]])
    cumulative = np.cumsum(mass)
    wanted = np.arange(1, BINS) / BINS
    inner = np.unique(np.searchsorted(cumulative, wanted * cumulative[-1])) + 1
    bounds = np.unique(np.concatenate([[0], inner, [len(values)]]))
    width = np.diff(edges[bounds])
    return edges[bounds], unimodal(np.add.reduceat(mass, bounds[:-1]) / width, width)


def unimodal(heights: FloatArray, widths: FloatArray) -> FloatArray:
    """Return the unimodal heights that are nearest in the mean square, with these widths as weights.

    >>> unimodal(np.array([1.0, 3.0, 1.0, 2.0]), np.ones(4)).tolist()
    [1.0, 3.0, 1.5, 1.5]
    """
    unit = float(heights.max())
    heights = heights / unit  # squares of densities of tiny values would overflow
    up, down = _blocks(heights, widths)[1], _blocks(heights[::-1], widths[::-1])[1][::-1]
    cost = np.round((up + down) / widths.sum(), SETTLED_DIGITS)  # rounding decides no tie
    top = int(np.argmin(cost))  # bins before the first of the fall
    rise = _rise(heights[:top], widths[:top])
    fall = _rise(heights[top:][::-1], widths[top:][::-1])[::-1]
    return np.asarray(np.concatenate([rise, fall]) * unit)


def _blocks(heights: FloatArray, widths: FloatArray) -> tuple[list[list[float]], FloatArray]:
    """Return the blocks (height, width, number) of the nearest rising heights.

    Also returns the squared error of the nearest rising heights of every prefix, from that of length 0.
    """
    blocks: list[list[float]] = []
    errors = np.zeros(len(heights) + 1)
    error = 0.0
    for k, (height, width) in enumerate(zip(heights.tolist(), widths.tolist(), strict=True)):
        blocks.append([height, width, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            b, a = blocks.pop(), blocks.pop()
            both = a[1] + b[1]
            error += a[1] * b[1] / both * (a[0] - b[0]) ** 2
            blocks.append([(a[0] * a[1] + b[0] * b[1]) / both, both, a[2] + b[2]])
        errors[k + 1] = error
    return blocks, errors


def _rise(heights: FloatArray, widths: FloatArray) -> FloatArray:
    """Return the nearest rising heights (pooling adjacent violators)."""
    blocks, _ = _blocks(heights, widths)
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])
