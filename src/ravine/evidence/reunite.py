"""Join leaves that are parts of one cluster: a hyperplane high in the tree may have split it.

With many clusters in many dimensions, every hyperplane that divides them in two halves intersects some. Parts
of a cluster in different leaves are found by the criterion of a leaf: their rows together have no significant
split.
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
    have_splits: Callable[[Sequence[list[int]]], list[bool]],
    at_once: int | None,
) -> ClusterTree:
    """Give one label to leaves that are nearest to each other and together have no significant split.

    `rows` are those of every node. `have_splits` returns, for some sets of leaves, whether the rows of each
    together have such a split; so many sets are searched `at_once`, or (None) all that are likely to be asked
    about next. Costs one pass, and one search per pair of a cluster and its nearest cluster.
    """
    leaves = tree.leaves.tolist()
    found = run(gather([_sum(rows[leaf], standardization) for leaf in leaves]))
    sums = np.zeros((tree.n_nodes, len(standardization.mean)))
    sums[leaves] = found
    weight = np.array([some.total for some in rows])
    groups = [[int(leaf)] for leaf in tree.leaves]
    # below an inner node, leaves have a significant split together: that of the node
    tested = {frozenset(tree.leaves_below(node).tolist()) for node in tree.inner.tolist()}
    known: dict[frozenset[int], bool] = {}  # sets that were searched, and whether they have a split
    while True:
        pairs = _next_pairs(groups, weight, sums, tested)
        if not pairs:
            break
        a, b = pairs[0]
        joined = [groups[i] + groups[j] for i, j in pairs]
        first = frozenset(joined[0])
        tested.add(first)
        missing = [some for some in joined[:at_once] if frozenset(some) not in known]
        known |= zip(map(frozenset, missing), have_splits(missing), strict=True)
        if not known[first]:
            groups[a] = joined[0]
            del groups[b]
    label = tree.label.copy()
    for k, leaves in enumerate(groups):
        label[leaves] = k
    return number_labels(replace(tree, label=label))


def _sum(rows: RowSet, standardization: Standardization) -> Query[FloatArray]:
    """Return the sum of the standardized rows."""
    ((totals, _, _),) = yield [Asked(rows, Moments(standardization.mean, standardization.inverse_scale))]
    return np.asarray(totals[0])


def _next_pairs(
    groups: list[list[int]], weight: FloatArray, sums: FloatArray, tested: set[frozenset[int]]
) -> list[tuple[int, int]]:
    """Return pairs of a group and the one nearest to it (by their means) that were not tested together."""
    means = np.array([sums[g].sum(axis=0) / weight[g].sum() for g in groups])
    distance = np.linalg.norm(means[:, None] - means[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest: IntArray = np.argmin(distance, axis=1)
    pairs: dict[frozenset[int], tuple[int, int]] = {}
    for a in np.argsort(distance.min(axis=1)):
        b = int(nearest[a])
        together = frozenset(groups[a] + groups[b])
        if together not in tested:
            pairs.setdefault(together, (int(a), b))
    return list(pairs.values())
