"""Leaves that are parts of one cluster: a hyperplane high in the tree may have cut through it.

Where many clusters lie in many dimensions, every hyperplane that divides them in two halves meets one or the
other. Its parts end in different leaves, and are one cluster by the same rule as any leaf: their rows, taken
together, have no significant split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.query import Asked, Query, RowSet, gather, run
from ravine.data.standardization import Moments, Standardization
from ravine.tree.edit import number_labels
from ravine.tree.tree import ClusterTree


def reunite(
    tree: ClusterTree,
    rows: Sequence[RowSet],
    standardization: Standardization,
    comes_apart: Callable[[list[int]], bool],
) -> ClusterTree:
    """Give one label to leaves that are nearest to each other and together have no significant split.

    `rows` are those of every node; `comes_apart` returns whether the rows of some leaves have such a split.
    Costs a pass, and one search for each cluster and its nearest.
    """
    leaves = tree.leaves.tolist()
    found = run(gather([_sum(rows[leaf], standardization) for leaf in leaves]))
    sums = np.zeros((tree.n_nodes, len(standardization.mean)))
    sums[leaves] = found
    weight = np.array([some.total for some in rows])
    groups = [[int(leaf)] for leaf in tree.leaves]
    asked = set(_leaves_below(tree))
    while True:
        pair = _next_pair(groups, weight, sums, asked)
        if pair is None:
            break
        a, b = pair
        joined = groups[a] + groups[b]
        asked.add(frozenset(joined))
        if not comes_apart(joined):
            groups[a] = joined
            del groups[b]
    label = tree.label.copy()
    for k, leaves in enumerate(groups):
        label[leaves] = k
    return number_labels(replace(tree, label=label))


def _sum(rows: RowSet, standardization: Standardization) -> Query[FloatArray]:
    """Return the sum of the standardized rows."""
    ((totals, _, _),) = yield [Asked(rows, Moments(standardization.mean, standardization.inverse_scale))]
    return np.asarray(totals[0])


def _leaves_below(tree: ClusterTree) -> list[frozenset[int]]:
    """Return the leaves below each inner node: they have a significant split, the node's own."""
    below: dict[int, frozenset[int]] = {int(leaf): frozenset([int(leaf)]) for leaf in tree.leaves}
    for node in sorted(tree.inner.tolist(), reverse=True):
        below[node] = below[int(tree.left[node])] | below[int(tree.right[node])]
    return [below[node] for node in tree.inner.tolist()]


def _next_pair(
    groups: list[list[int]], weight: FloatArray, sums: FloatArray, asked: set[frozenset[int]]
) -> tuple[int, int] | None:
    """Return a group and its nearest, by their means, of which it was not yet asked whether they are one."""
    means = np.array([sums[g].sum(axis=0) / weight[g].sum() for g in groups])
    distance = np.linalg.norm(means[:, None] - means[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest: IntArray = np.argmin(distance, axis=1)
    for a in np.argsort(distance.min(axis=1)):
        b = int(nearest[a])
        if frozenset(groups[a] + groups[b]) not in asked:
            return int(a), b
    return None
