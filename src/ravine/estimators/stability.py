"""Stability: how well clusters are found again, from fits to halves of the rows.

Two fits, each to one half of the rows, assign all rows; how much they agree is the stability of a cut into k
clusters. It finds the number of clusters where no single split can be tested: a first split may run anywhere
between ten clusters, and the ten are the same all the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node, draw_sample, measure
from ravine.data.principal import FULL_COVARIANCE
from ravine.data.query import RowSet, run
from ravine.data.rows import rows_of, scales_columns
from ravine.data.sample import Sample, read_sample
from ravine.evidence.discrete import EXPLAINED, discrete_variables
from ravine.evidence.margins import explained, margins
from ravine.evidence.orientation import orientation
from ravine.features.diffusion import UNKNOWN_CLUSTERS
from ravine.metrics import adjusted_rand_index
from ravine.split.split import MADE_BY

# Chosen on 41 labeled sets and 95 tables without clusters (`benchmarks/number.py`).
REPEATS = 5  # pairs of halves
MOST_ROWS = 8192  # of the sample that is halved
MOST_CLUSTERS = 20
LEAST = 0.55  # least stability of clusters, where 0 is that of a table without clusters and 1 the highest
WITHIN = 0.05  # of the best stability: the largest number of clusters is taken


@dataclass(frozen=True)
class Stability:
    r"""The stability of the cuts of a tree into 2, 3, ... clusters, from 0 by chance to 1.

    .. math:: S_k = \frac{1}{R} \sum_r \operatorname{ARI}\left(C_k(H_r), C_k(X \setminus H_r)\right),

    with ARI the adjusted Rand index on all rows, and :math:`C_k(H)` the clusters of all rows by a fit to the
    rows H, a random half.

    Attributes
    ----------
    by_number : dict
        The stability of each number of clusters.
    by_chance : float
        The highest stability in a table without clusters: of rows with the same margins and correlation.
    n_clusters : int
        The largest number whose stability is within 0.05 of the best; 1 if the best is less than 0.55 of the
        way from that by chance to 1.
    """

    by_number: dict[int, float]
    by_chance: float

    @property
    def best(self) -> float:
        """The highest stability."""
        return max(self.by_number.values(), default=0.0)

    @property
    def n_clusters(self) -> int:
        """The number of clusters that follows."""
        if self.best - self.by_chance <= LEAST * (1.0 - self.by_chance):
            return 1
        return max(k for k, value in self.by_number.items() if value >= self.best - WITHIN)


def measure_stability(model: Any, X: Any, weights: FloatArray | None, *, by_chance: bool = True) -> Stability:
    """Return the stability of a clusterer on checked rows, from a sample of at most 8192 of them in memory.

    Costs ten fits to halves of the sample, and with `by_chance` ten to halves of rows without clusters.
    """
    rng = np.random.default_rng([0, *model._rng().bit_generator.random_raw(2).tolist()])
    few, few_weights = draw_rows(rows_of(X, weights), rng, square=model.kernel == "precomputed")
    found = [_agreements(model, few, few_weights, rng) for _ in range(REPEATS)]
    n = max(map(len, found))
    table = np.array([[*some, *[np.nan] * (n - len(some))] for some in found]).reshape(REPEATS, n)
    by_number = {k + 2: float(np.nanmean(table[:, k])) for k in range(n)}
    asked = by_chance and model.kernel != "precomputed" and max(by_number.values(), default=0.0) >= LEAST
    if not asked or sparse.issparse(few) or few.shape[1] > FULL_COVARIANCE:
        return Stability(by_number, 0.0)  # with many columns, cuts by chance are not stable
    draw = _without_clusters(few, few_weights, standardize=scales_columns(model.standardize, few))
    chance = [max(_agreements(model, draw(rng), np.ones(len(few)), rng), default=0.0) for _ in range(REPEATS)]
    return Stability(by_number, float(np.mean(chance)))


def draw_rows(rows: RowSet, rng: np.random.Generator, *, square: bool) -> tuple[Any, FloatArray]:
    """Return raw values, dense or CSR, and weights of some rows; of a kernel matrix a square part."""
    request = Sample(min(MOST_ROWS, rows.shape[0]), int(rng.integers(1 << 63)))
    values, weights, numbers = read_sample(run(draw_sample(run(measure(Node(rows))), request)))
    return (values[:, numbers] if square else values), weights


def _agreements(model: Any, X: Any, weights: FloatArray, rng: np.random.Generator) -> list[float]:
    """Return how much fits to two halves agree about 2, 3, ... clusters."""
    order = rng.permutation(X.shape[0])
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    square = model.kernel == "precomputed"
    given = {**model.get_params(deep=False), "verbose": False, "checkpoint": None}
    one, other = (
        _cuts(
            type(model)(**{**given, "n_clusters": min(MOST_CLUSTERS, len(half) // 10)}),
            X[np.ix_(half, half)] if square else X[half],
            weights[half],
            X[:, half] if square else X,
        )
        for half in halves
    )
    if not one or not other:
        return [0.0] if one or other else []
    return [
        adjusted_rand_index(one[min(k, len(one) - 1)], other[min(k, len(other) - 1)], sample_weight=weights)
        for k in range(max(len(one), len(other)))
    ]


def _cuts(model: Any, X: Any, weights: FloatArray, everything: Any) -> Sequence[IntArray]:
    """Return the clusters of all rows by the cuts into 2, 3, ... of a tree that is fitted to some."""
    if model.n_clusters < 2:
        return []
    if model.kernel == "diffusion":  # as many components as "auto" has, which knows no number
        model.set_params(kernel_params={"n_components": 2 * UNKNOWN_CLUSTERS, **(model.kernel_params or {})})
    model._splits_always = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = model.fit(X, sample_weight=weights).tree_
    rows = model._rows(everything)
    return [tree.cut(k).route(rows) for k in range(2, count_splits(model, X, weights) + 2)]


def count_splits(model: Any, X: Any, weights: FloatArray) -> int:
    """Return how many splits a fitted clusterer made of rows in memory before one of a discrete column."""
    tree = model.tree_
    if not tree.mapped:  # such splits are known, and come last
        return sum(split is not None and MADE_BY not in split.facts for split in tree.splits)
    if sparse.issparse(X) or model.kernel == "precomputed":
        return int(tree.n_leaves) - 1
    variables = discrete_variables(X, weights, np.flatnonzero(np.ptp(X, axis=0) > 0.0))
    gaps = [
        int(tree.order[node])
        for node, members, distance in (tree.visit(model._rows(X)) if variables else ())
        if any(explained(v.level[members], weights[members], distance > 0) >= EXPLAINED for v in variables)
    ]
    return min(gaps, default=int(tree.n_leaves) - 1)


def _without_clusters(
    X: FloatArray, weights: FloatArray, *, standardize: bool
) -> Callable[[np.random.Generator], FloatArray]:
    """Return how as many rows without clusters are drawn, with the margins and correlations of these."""
    own = run(measure(Node(rows_of(X, weights), standardize=standardize))).standardization
    values = own.apply(X)
    columns = orientation(values, np.flatnonzero(own.varies))
    table = margins(columns.apply(values), weights)
    return lambda rng: columns.undo(table.draw(len(X), rng))
