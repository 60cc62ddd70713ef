"""The boundaries of a classifier as a tree whose leaves are its classes, so that every view can show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ravine.split.split import Split
from ravine.tree.tree import ClusterTree


def tree_of_classes(model: Any) -> ClusterTree:
    """Return the tree of a fitted classifier whose boundaries are one; it predicts the same.

    The label of a leaf is the place of its class in `classes_`. Weights are 0, as the rows are not known.
    """
    between = {frozenset(one.left + one.right): one for one in model.boundaries_}
    everything = frozenset(range(len(model.classes_)))
    sets, parent, left, right = [everything], [-1], [], []
    splits: list[Split | None] = []
    for node, classes in enumerate(sets):  # grows while it is read: children come after their parents
        one = between.get(classes)
        splits.append(None if one is None else one.split)
        left.append(-1 if one is None else len(sets))
        right.append(-1 if one is None else len(sets) + 1)
        if one is not None:
            sets += [frozenset(one.left), frozenset(one.right)]
            parent += [node, node]
    order = np.full(len(sets), -1)
    inner = [node for node, split in enumerate(splits) if split is not None]
    order[inner] = np.arange(len(inner))
    names = getattr(model, "feature_names_in_", None)
    mapped = model.feature_map_ is not None
    return ClusterTree(
        parent=np.array(parent),
        left=np.array(left),
        right=np.array(right),
        weight=np.zeros(len(sets)),
        splits=tuple(splits),
        order=order,
        refused=(None,) * len(sets),
        label=np.array([next(iter(one)) if len(one) == 1 else -1 for one in sets]),
        feature_names=None if names is None or mapped else tuple(map(str, names)),
        mapped=mapped,
        spread=model.spread_,
    )
