"""Judges of clusterings without labels, and their combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from ravine._validate import FloatArray
from ravine.data.node import Node
from ravine.data.query import RowSet
from ravine.data.threads import one_blas_thread
from ravine.features.neighbors import row_graph
from ravine.metrics import modularity_of, normalized_cut_of, separation_probability
from ravine.split.far import bulk_and_far

MIN_SHARE = 0.05  # minimum share of the rows in the smaller of two clusters, to rule out outliers
SCORE_REGULARIZATION = (
    0.1  # regularization of the MSP by which all candidates are compared, whatever their own
)
MSP_COLUMNS = 100  # most columns for the MSP; of more, as many principal components of the judged rows
SAME_FIGURE = 1e-9  # figures that differ by less have the same rank, so that rounding decides nothing


@dataclass(frozen=True)
class Judgment:
    """The figures of one clustering by which it is ranked; see `ravine.metrics`.

    `cut_ratio` is the number of neighbors in different clusters, divided by that for labels of the same sizes
    that are unrelated to the graph: 0 if none are separated, about 1 for unrelated labels.
    """

    separation_probability: float
    modularity: float
    normalized_cut: float
    cut_ratio: float
    smallest_share: float
    n_clusters: int

    def allowed(self, min_share: float) -> bool:
        """Whether there are clusters, and the smallest has 2 / K of `min_share` of the rows."""
        return self.n_clusters > 1 and self.smallest_share >= min_share * 2 / self.n_clusters


class Judges:
    """Judges clusterings of the same rows, on the same sample of at most 5000 of them.

    Rows far from everything have no part in it: a single one would make the covariances of its cluster so
    large that nothing is separated.
    """

    def __init__(self, rows: RowSet, weights: FloatArray | None, *, standardize: bool = True) -> None:
        with one_blas_thread():
            bulk, far = bulk_and_far(Node(rows, standardize=standardize))
            self.graph = row_graph(bulk, standardize=standardize)
        self.weights = _without(far, weights, rows.shape[0])

    @cached_property
    def _columns(self) -> Any:
        """The sampled rows for the MSP: as they are, or their leading principal components if wide."""
        if self.graph.values.shape[1] <= MSP_COLUMNS:
            return self.graph.values

        n = min(MSP_COLUMNS, self.graph.points.shape[0] - 1)
        left, values, _ = randomized_svd(self.graph.points, n, random_state=0)
        return left * values

    def __call__(self, labels: Any) -> Judgment:
        """Judge the labels of all rows."""
        clusters = np.unique(np.asarray(labels), return_inverse=True)[1]
        mass = np.bincount(clusters, weights=self.weights)
        n_clusters = int((mass > 0).sum())
        share = float(mass[mass > 0].min() / mass.sum())
        few = np.unique(clusters[self.graph.numbers], return_inverse=True)[1]
        if few.max() == 0:
            return Judgment(0.0, 0.0, 0.0, 1.0, share, n_clusters)
        with one_blas_thread():
            probability = separation_probability(
                self._columns, few, regularization=SCORE_REGULARIZATION, sample_weight=self.graph.weights
            )
        edges = self.graph.between(few)
        modularity, highest = modularity_of(edges), _highest_modularity(edges)
        ratio = max(0.0, 1.0 - modularity / highest) if highest > 0 else 1.0
        return Judgment(probability, modularity, normalized_cut_of(edges), ratio, share, n_clusters)


def _without(far: RowSet | None, weights: FloatArray | None, n: int) -> FloatArray | None:
    """Return the weights of n rows, with 0 for some of them."""
    if far is None:
        return weights
    found = np.ones(n) if weights is None else weights.copy()
    found[far.numbers] = 0.0
    return found


def _highest_modularity(edges: FloatArray) -> float:
    """Return the modularity that clusters of these sizes have if no neighbors are separated."""
    volumes = edges.sum(axis=1) / max(float(edges.sum()), 1e-300)
    return 1.0 - float(volumes @ volumes)


def rank_sums(judged: Sequence[Judgment], agreement: FloatArray) -> FloatArray:
    """Return the sum of the ranks of MSP, modularity and agreement; the highest figure has the highest rank.

    >>> one = Judgment(0.9, 0.4, 0.1, 0.1, 0.3, 2)
    >>> rank_sums([one, Judgment(0.8, 0.5, 0.1, 0.1, 0.3, 2)], np.array([0.7, 0.7])).tolist()
    [4.5, 4.5]
    """
    figures = (
        np.array([one.separation_probability for one in judged]),
        np.array([one.modularity for one in judged]),
        np.asarray(agreement),
    )
    return np.asarray(sum(ranks(figure) for figure in figures))


def ranks(figures: FloatArray) -> FloatArray:
    """Return ranks from 1 for the lowest figure; equal figures share the mean of their ranks.

    >>> ranks(np.array([0.5, 0.1, 0.5 + 1e-12, 0.9])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    order = np.argsort(figures, kind="stable")
    step = np.diff(figures[order]) > SAME_FIGURE
    group = np.concatenate([[0], np.cumsum(step)])
    counts = np.bincount(group)
    last = np.cumsum(counts)
    found = np.empty(len(figures))
    found[order] = (last - (counts - 1) / 2)[group]
    return found


def best_first(judged: Sequence[Judgment], sums: FloatArray, min_share: float) -> list[int]:
    """Return the candidates in order, the best one first.

    Those whose smallest cluster is too small come last, by its size. The others are in the order of their
    rank sums; ties are broken by their places.
    """
    key = [
        (ok, float(sums[i]) if ok else one.smallest_share * (one.n_clusters > 1), -i)
        for i, one in enumerate(judged)
        for ok in [one.allowed(min_share)]
    ]
    return sorted(range(len(judged)), key=key.__getitem__, reverse=True)
