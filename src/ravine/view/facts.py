"""What a page about a tree tells, computed before a word of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.blocks import RowBlocks
from ravine.exceptions import InvalidInputError
from ravine.tree.export import names_of
from ravine.tree.summary import nearest_to_means
from ravine.tree.tree import ClusterTree
from ravine.view.density import NodeDensity, densities
from ravine.view.explain import Explanation, explain

N_EXEMPLARS = 3

RowIds = Sequence[Any] | Callable[[Sequence[int]], Mapping[int, Any]]


@dataclass(frozen=True)
class Facts:
    """A tree in a set of rows: its densities and explanations, and how it agrees with classes.

    `model` is the clusterer, if the tree is of one. `weight` is that of these rows in each node, `exemplars`
    the id and the values of the most typical rows of each cluster, `table` the number of rows of each class
    (down) in each cluster (across).
    """

    tree: ClusterTree
    model: Any
    n_rows: int
    names: list[str]
    weight: FloatArray
    explained: Explanation
    seen: dict[int, NodeDensity]
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
    """Compute everything; eight passes over the rows, nine with labels."""
    tree: ClusterTree = getattr(model, "tree_", model)
    rows = tree.rows(X, sample_weight)
    names = names_of(tree, feature_names, rows.shape[1])
    explained = explain(tree, X, names, sample_weight=sample_weight)
    weight = np.zeros(tree.n_nodes)
    weight[0] = rows.total
    for node, split in explained.splits.items():
        weight[tree.left[node]], weight[tree.right[node]] = split.left_weight, split.right_weight
    classes, table, scores = _against(tree, rows, labels)
    return Facts(
        tree=tree,
        model=None if model is tree else model,
        n_rows=rows.shape[0],
        names=names,
        weight=weight,
        explained=explained,
        seen=densities(tree, rows),
        exemplars=_exemplars(tree, rows, row_ids),
        classes=classes,
        table=table,
        scores=scores,
    )


def _exemplars(
    tree: ClusterTree, rows: RowBlocks, row_ids: RowIds | None
) -> list[list[tuple[str, FloatArray]]]:
    by_cluster = nearest_to_means(tree, rows, N_EXEMPLARS)
    everyone = np.unique(np.concatenate(by_cluster)).astype(np.int64)
    values = rows.select(everyone).map(lambda block: block.dense())
    numbers = [int(i) for i in everyone]
    if row_ids is None:
        called: Mapping[int, Any] = {i: i for i in numbers}
    else:
        called = row_ids(numbers) if callable(row_ids) else {i: row_ids[i] for i in numbers}
    value_of = dict(zip(numbers, values, strict=True))
    return [[(str(called[int(i)]), value_of[int(i)]) for i in members] for members in by_cluster]


def _against(
    tree: ClusterTree, rows: RowBlocks, labels: Any
) -> tuple[list[str], IntArray | None, dict[str, float]]:
    """Compare the clusters with classes; rows whose class is None or NaN are left out."""
    if labels is None:
        return [], None, {}
    given = np.asarray(labels, dtype=object)
    if given.shape != (rows.shape[0],):
        raise InvalidInputError(f"labels need one class for each of the {rows.shape[0]} rows")
    there = np.array([label is not None and label == label for label in given])
    if not there.any():
        return [], None, {}
    classes, class_of = np.unique(given[there].astype(str), return_inverse=True)
    cluster = tree.route(rows)[there]
    table = np.zeros((len(classes), int(tree.label.max()) + 1), dtype=np.int64)
    np.add.at(table, (class_of, cluster), 1)
    return [str(name) for name in classes], table, agreement(class_of, cluster)


def agreement(classes: Any, clusters: Any) -> dict[str, float]:
    """Return how well clusters agree with classes, by three measures."""
    from sklearn.metrics import adjusted_rand_score

    from ravine import metrics

    return {
        "V-measure": float(metrics.v_measure(classes, clusters)),
        "adjusted Rand index": float(adjusted_rand_score(classes, clusters)),
        "purity": float(metrics.purity(classes, clusters)),
    }
