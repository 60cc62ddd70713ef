"""The numbers of a report, computed before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.exceptions import InvalidInputError
from ravine.tree.features import names_of
from ravine.tree.summary import means_of, nearest_to_means
from ravine.tree.tree import ClusterTree
from ravine.view.density import NodeDensity, densities
from ravine.view.explain import Explanation, explain_means
from ravine.view.fitted import tree_of

N_EXEMPLARS = 3  # typical rows shown per cluster

RowIds = Sequence[Any] | Callable[[Sequence[int]], Mapping[int, Any]]


@dataclass(frozen=True)
class Facts:
    """A tree in a set of rows: its densities and explanations, and how it agrees with classes.

    `model` is the clusterer, if the tree belongs to one. `weight` is that of these rows in each node,
    `exemplars` the id and the values of the most typical rows of each cluster, `table` the number of rows of
    each class (down) in each cluster (across).
    """

    tree: ClusterTree
    model: Any
    n_rows: int
    names: list[str]
    weight: FloatArray
    explained: Explanation
    densities: dict[int, NodeDensity]
    exemplars: list[list[tuple[str, FloatArray]]]
    classes: list[str]
    table: IntArray | None
    scores: dict[str, float]


def gather(
    model: Any,
    X: Any,
    feature_names: Sequence[str] | None,
    sample_weight: Any,
    row_ids: RowIds | None,
    labels: Any,
) -> Facts:
    """Take five passes over the rows: two for means, one for exemplars, two for densities."""
    tree = tree_of(model)
    rows = tree.rows(X, sample_weight)
    names = names_of(tree, feature_names, rows.shape[1])
    means = means_of(tree, rows)
    nearest, cluster_of = nearest_to_means(tree, rows, means, N_EXEMPLARS)
    explained, exemplars = explain_means(tree, means, names), _exemplars(rows, nearest, row_ids)
    numbers = means.weight, explained, densities(tree, rows), exemplars
    comparison = _compare(cluster_of, int(tree.label.max()) + 1, labels)
    return Facts(tree, None if model is tree else model, rows.shape[0], names, *numbers, *comparison)


def _exemplars(
    rows: MemoryRows, by_cluster: list[IntArray], row_ids: RowIds | None
) -> list[list[tuple[str, FloatArray]]]:
    """Return the id and the values of some rows of each cluster."""
    numbers = np.unique(np.concatenate(by_cluster)).tolist()
    values = rows.select(np.array(numbers, dtype=np.int64)).map(lambda block: block.dense())
    value_of = dict(zip(numbers, values, strict=True))
    if callable(row_ids):
        id_of = row_ids(numbers)
    else:
        id_of = {i: i if row_ids is None else row_ids[i] for i in numbers}
    return [[(str(id_of[i]), value_of[i]) for i in members.tolist()] for members in by_cluster]


def _compare(
    cluster_of: IntArray, n_clusters: int, labels: Any
) -> tuple[list[str], IntArray | None, dict[str, float]]:
    """Compare the clusters with classes; rows whose class is None or NaN are left out."""
    if labels is None:
        return [], None, {}
    given = np.asarray(labels, dtype=object)
    if given.shape != cluster_of.shape:
        raise InvalidInputError(f"labels need one class for each of the {len(cluster_of)} rows")
    labeled = np.array([label is not None and label == label for label in given])
    if not labeled.any():
        return [], None, {}
    classes, class_of = np.unique(given[labeled].astype(str), return_inverse=True)
    cluster = cluster_of[labeled]
    table = np.zeros((len(classes), n_clusters), dtype=np.int64)
    np.add.at(table, (class_of, cluster), 1)
    return classes.tolist(), table, agreement(class_of, cluster)


def agreement(classes: Any, clusters: Any) -> dict[str, float]:
    """Return how well clusters agree with classes, by three measures."""
    from sklearn.metrics import adjusted_rand_score

    from ravine.metrics import purity, v_measure

    return {
        "V-measure": float(v_measure(classes, clusters)),
        "adjusted Rand index": float(adjusted_rand_score(classes, clusters)),
        "purity": float(purity(classes, clusters)),
    }
