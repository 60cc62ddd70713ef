"""The numbers of a report, computed before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ravine._validate import FloatArray, IntArray
from ravine.data.query import RowSet
from ravine.exceptions import InvalidInputError
from ravine.metrics import purity, v_measure
from ravine.split.split import Split
from ravine.tree.arrays import TreeArrays
from ravine.tree.summary import Means, means_by_leaf, means_of, nearest_to_means
from ravine.view.density import NodeDensity, densities
from ravine.view.explain import Explanation, explain_means
from ravine.view.fitted import column_names, leave_out_far_rows, scales, tree_of
from ravine.view.row_map import ClusterQuality, RowMap, cluster_quality, map_rows

N_EXEMPLARS = 3  # typical rows shown of a cluster or a node

RowIds = Sequence[Any] | Callable[[Sequence[int]], Mapping[int, Any]]
Exemplar = tuple[int, str, dict[str, float]]  # number and id of a row, and its values by the column's name


@dataclass(frozen=True)
class Agreement:
    """How clusters agree with given classes: scores, and rows of each class (down) in each cluster."""

    classes: list[str]
    table: IntArray
    scores: dict[str, float]

    def most_frequent(self, label: int, n: int) -> list[tuple[str, int, int]]:
        """Return the most frequent classes of a cluster, each with its rows and those of all classes."""
        counts = self.table[:, label]
        order = np.argsort(-counts, kind="stable")[:n]
        return [(self.classes[i], int(counts[i]), int(counts.sum())) for i in order if counts[i] > 0]


@dataclass(frozen=True)
class Facts:
    """A tree in a set of rows: its densities and explanations, and how it agrees with classes.

    `model` is the clusterer, if the tree belongs to one. `means` are those of these rows in nodes and
    clusters. `exemplars` are the most typical rows of each cluster, and `given_names` the names that the user
    gave to clusters. `aside` are the rows far from all others, which weigh nothing. `curved` is set where a
    kernel has bent the boundaries.
    """

    tree: TreeArrays
    model: Any
    n_rows: int
    names: list[str]
    means: Means
    explained: Explanation
    curved: bool
    densities: dict[int, NodeDensity]
    row_map: RowMap
    quality: dict[int, ClusterQuality]
    aside: IntArray
    exemplars: list[list[Exemplar]]
    agreement: Agreement | None
    given_names: Mapping[int, str] = field(default_factory=dict)

    @property
    def profile(self) -> FloatArray:
        """The mean of each cluster (down) in each column (across), in standard deviations from all rows."""
        own = self.means.standardization
        return np.nan_to_num((self.means.cluster_mean - own.mean) * own.inverse_scale)

    def name(self, label: int) -> str:
        """Return what a cluster is called."""
        return self.given_names.get(label) or f"Cluster {label}"

    @property
    def first_leaves(self) -> dict[int, int]:
        """The leaf at which each cluster is described: its first, where leaves were merged."""
        return {int(self.tree.label[leaf]): int(leaf) for leaf in self.tree.leaves[::-1]}

    def nodes_in_order(self) -> list[tuple[int, int]]:
        """Return the nodes as a page lists them, each with the number of lists that end after it.

        A list of the children begins after a split.
        """
        found, stack = [], [0]
        while stack:
            node = stack.pop()
            found.append((node, self._n_ends(node)))
            if self.tree.left[node] >= 0:
                stack += [int(self.tree.right[node]), int(self.tree.left[node])]
        return found

    def _n_ends(self, node: int) -> int:
        """Return how many nodes above a leaf have it as their last one."""
        n_ends, is_leaf = 0, self.tree.left[node] < 0
        while is_leaf and node and self.tree.right[self.tree.parent[node]] == node:
            node, n_ends = int(self.tree.parent[node]), n_ends + 1
        return n_ends

    def next_split(self) -> tuple[int, Split] | None:
        """Return the label of the cluster that would be divided next, and its split; None if unknown.

        It is the one whose refused split is best, by its rows. With a given number of clusters, light leaves
        may not have been searched; one of them could come first.
        """
        tree, weight = self.tree, self.means.weight
        held = [
            (weight[leaf] * found.quality, -int(leaf), found)
            for leaf in tree.leaves
            if (found := tree.refused[leaf]) is not None
        ]
        if not held:
            return None
        first, leaf, found = max(held, key=lambda item: item[:2])
        unknown = [weight[other] for other in tree.leaves if tree.refused[other] is None]
        if found.evidence is None and first < max(unknown, default=0.0):
            return None
        return int(tree.label[-leaf]), found


def facts_of(
    model: Any,
    X: Any,
    feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    row_ids: RowIds | None = None,
    labels: Any = None,
    coordinates: Any = None,
    given_names: Mapping[int, str] | None = None,
) -> Facts:
    """Return the facts, in six passes: two for means, one each for exemplars and clusters, two for densities.

    The map and the figures of clusters are taken from a sample. A kernel costs two more, for the means in the
    user's columns, and a fit that has set rows aside one more, to find them. The blocks of a file that hold
    exemplars, or rows of the map, are read once more. The cluster of every row is held, 8 bytes each.
    """
    tree = tree_of(model)
    rows, columns, far = leave_out_far_rows(model, X, sample_weight)
    names, curved = column_names(model, feature_names, columns, rows), columns is not rows
    means = means_of(tree, rows)
    nearest = nearest_to_means(tree, rows, means, N_EXEMPLARS)
    cluster_of = tree.route(rows)
    if curved:
        means = means_by_leaf(tree, columns, tree.leaf_of(rows))
    shown = columns if curved else None
    row_map = map_rows(tree, rows, cluster_of, coordinates, standardize=scales(model), columns=shown)
    return Facts(
        tree=tree,
        model=None if model is tree else model,
        n_rows=rows.shape[0],
        names=names,
        means=means,
        explained=explain_means(tree, means, names, surrogate=curved),
        curved=curved,
        densities=densities(tree, rows),
        row_map=row_map,
        quality=cluster_quality(tree, row_map),
        aside=np.flatnonzero(far),
        exemplars=_exemplars(columns, names, nearest, row_ids),
        agreement=_compare(cluster_of, int(tree.label.max()) + 1, labels),
        given_names=given_names or {},
    )


def ids_of(row_ids: RowIds | None, numbers: Sequence[int]) -> dict[int, str]:
    """Return the names of some rows: by default their numbers."""
    found: Any = row_ids(numbers) if callable(row_ids) else row_ids
    return {i: str(i if found is None else found[i]) for i in numbers}


def _exemplars(
    rows: RowSet, names: list[str], by_cluster: list[IntArray], row_ids: RowIds | None
) -> list[list[Exemplar]]:
    """Return number, id and values of some rows of each cluster."""
    numbers = np.unique(np.concatenate(by_cluster)).tolist()
    values = rows.select(np.array(numbers, dtype=np.int64)).map(lambda block: block.dense())
    ids = ids_of(row_ids, numbers)
    found = {
        i: (i, ids[i], dict(zip(names, own.tolist(), strict=True)))
        for i, own in zip(numbers, values, strict=True)
    }
    return [[found[i] for i in members.tolist()] for members in by_cluster]


def _compare(cluster_of: IntArray, n_clusters: int, labels: Any) -> Agreement | None:
    """Compare the clusters with classes; rows whose class is None or NaN are left out."""
    if labels is None:
        return None
    given = np.asarray(labels, dtype=object)
    if given.shape != cluster_of.shape:
        raise InvalidInputError(f"labels need one class for each of the {len(cluster_of)} rows")
    labeled = np.array([label is not None and label == label for label in given])
    if not labeled.any():
        return None
    classes, class_of = np.unique(given[labeled].astype(str), return_inverse=True)
    cluster = cluster_of[labeled]
    table = np.zeros((len(classes), n_clusters), dtype=np.int64)
    np.add.at(table, (class_of, cluster), 1)
    return Agreement(classes.tolist(), table, scores_against(class_of, cluster))


def scores_against(classes: Any, clusters: Any) -> dict[str, float]:
    """Return how well clusters agree with classes, by three measures."""
    return {
        "V-measure": float(v_measure(classes, clusters)),
        "adjusted Rand index": float(adjusted_rand_score(classes, clusters)),
        "purity": float(purity(classes, clusters)),
    }
