"""The numbers of a report, computed before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.exceptions import InvalidInputError
from ravine.metrics import purity, v_measure
from ravine.tree.arrays import TreeArrays
from ravine.tree.summary import means_by_leaf, means_of, nearest_to_means
from ravine.view.density import NodeDensity, densities
from ravine.view.explain import Explanation, explain_means
from ravine.view.fitted import column_names, counted_rows, scales, tree_of
from ravine.view.pairs import ClassPairs
from ravine.view.plane import ClusterQuality, Plane, cluster_quality, plane_of

N_EXEMPLARS = 3  # typical rows shown per cluster

RowIds = Sequence[Any] | Callable[[Sequence[int]], Mapping[int, Any]]
Exemplar = tuple[int, str, FloatArray]  # number, id and values of a row


@dataclass(frozen=True)
class Facts:
    """A tree in a set of rows: its densities and explanations, and how it agrees with classes.

    `model` is the clusterer, if the tree belongs to one. `weight` is that of these rows in each node, `total`
    that of all, `profile` the mean of each cluster (down) in each column (across), in standard deviations
    from all rows. `exemplars` are the most typical rows of each cluster, `table` has the number of rows of
    each class (down) in each cluster (across). `groups` are the names of a classifier's classes, which are
    its clusters, and `given_names` those that the user gave to clusters. `aside` are the rows far from all
    others, which weigh nothing. `curved` is set where a kernel has bent the boundaries.
    """

    tree: TreeArrays
    model: Any
    n_rows: int
    names: list[str]
    weight: FloatArray
    total: float
    profile: FloatArray
    explained: Explanation
    curved: bool
    densities: dict[int, NodeDensity]
    plane: Plane
    quality: list[ClusterQuality]
    cluster_of: IntArray
    aside: IntArray
    exemplars: list[list[Exemplar]]
    groups: list[str]
    classes: list[str]
    table: IntArray | None
    scores: dict[str, float]
    given_names: Mapping[int, str] = field(default_factory=dict)

    @property
    def labels(self) -> IntArray:
        """The label of every row: its cluster, or -1 for rows set aside with outliers="label"."""
        labels = self.cluster_of.copy()
        if getattr(self.model, "outliers", "") == "label":
            labels[self.aside] = -1
        return labels

    def name(self, label: int) -> str:
        """Return what a cluster is called."""
        if self.groups:
            return f"Class {self.groups[label]}"
        return self.given_names.get(label, f"Cluster {label}")

    def beside_number(self, label: int) -> str:
        """Return the name that stands beside the number of a cluster, if it has one."""
        return self.groups[label] if self.groups else self.given_names.get(label, "")

    @property
    def word(self) -> str:
        """What a leaf of the tree is: a cluster, or a class."""
        return "class" if self.groups else "cluster"

    @property
    def words(self) -> str:
        """What several leaves are."""
        return "classes" if self.groups else "clusters"

    @property
    def in_pairs(self) -> bool:
        """Whether there is one boundary per pair of classes instead of a tree."""
        return isinstance(self.tree, ClassPairs)


def facts_of(
    model: Any,
    X: Any,
    feature_names: Sequence[str] | None,
    sample_weight: Any,
    row_ids: RowIds | None,
    labels: Any,
    coordinates: Any = None,
) -> Facts:
    """Return the facts, in six passes: two for means, one each for exemplars and clusters, two for densities.

    The map and the figures of clusters are taken from a sample. A kernel costs two more, for the means in the
    user's columns, and a fit that has set rows aside one more, to find them. The blocks of a file that hold
    exemplars, or rows of the map, are read once more. The cluster of every row is held, 8 bytes each.
    """
    tree = tree_of(model)
    rows, columns, far = counted_rows(model, X, sample_weight)
    names, curved = column_names(model, feature_names, columns, rows), columns is not rows
    means = means_of(tree, rows)
    nearest = nearest_to_means(tree, rows, means, N_EXEMPLARS)
    cluster_of = tree.route(rows)
    if curved:
        means = means_by_leaf(tree, columns, tree.leaf_of(rows))
    shown = columns if curved else None
    plane = plane_of(tree, rows, cluster_of, coordinates, standardize=scales(model), columns=shown)
    own = means.standardization
    return Facts(
        tree=tree,
        model=None if model is tree else model,
        n_rows=rows.shape[0],
        names=names,
        weight=means.weight,
        total=means.total,
        profile=np.nan_to_num((means.cluster_mean - own.mean) * own.inverse_scale),
        explained=explain_means(tree, means, names, surrogate=curved),
        curved=curved,
        densities=densities(tree, rows),
        plane=plane,
        quality=cluster_quality(tree, plane, standardize=scales(model)),
        cluster_of=cluster_of,
        aside=np.flatnonzero(far),
        groups=[str(name) for name in getattr(model, "classes_", ())],
        exemplars=_exemplars(columns, nearest, row_ids),
        **_compare(cluster_of, int(tree.label.max()) + 1, labels),
    )


def _exemplars(rows: MemoryRows, by_cluster: list[IntArray], row_ids: RowIds | None) -> list[list[Exemplar]]:
    """Return number, id and values of some rows of each cluster."""
    numbers = np.unique(np.concatenate(by_cluster)).tolist()
    values = rows.select(np.array(numbers, dtype=np.int64)).map(lambda block: block.dense())
    value_of = dict(zip(numbers, values, strict=True))
    if callable(row_ids):
        id_of = row_ids(numbers)
    else:
        id_of = {i: i if row_ids is None else row_ids[i] for i in numbers}
    return [[(i, str(id_of[i]), value_of[i]) for i in members.tolist()] for members in by_cluster]


def _compare(cluster_of: IntArray, n_clusters: int, labels: Any) -> dict[str, Any]:
    """Compare the clusters with classes; rows whose class is None or NaN are left out."""
    if labels is None:
        return {"classes": [], "table": None, "scores": {}}
    given = np.asarray(labels, dtype=object)
    if given.shape != cluster_of.shape:
        raise InvalidInputError(f"labels need one class for each of the {len(cluster_of)} rows")
    labeled = np.array([label is not None and label == label for label in given])
    if not labeled.any():
        return {"classes": [], "table": None, "scores": {}}
    classes, class_of = np.unique(given[labeled].astype(str), return_inverse=True)
    cluster = cluster_of[labeled]
    table = np.zeros((len(classes), n_clusters), dtype=np.int64)
    np.add.at(table, (class_of, cluster), 1)
    return {"classes": classes.tolist(), "table": table, "scores": scores_against(class_of, cluster)}


def scores_against(classes: Any, clusters: Any) -> dict[str, float]:
    """Return how well clusters agree with classes, by three measures."""

    return {
        "V-measure": float(v_measure(classes, clusters)),
        "adjusted Rand index": float(adjusted_rand_score(classes, clusters)),
        "purity": float(purity(classes, clusters)),
    }
