"""From a method that makes two clusters to one that makes K: split one cluster after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def divide(
    X: Array,
    n_clusters: int,
    split: Callable[[Array], Array | None],
    priority: Callable[[Array], float] = len,
) -> Array:
    """Return labels after up to `n_clusters - 1` splits of the cluster with the highest priority.

    `split` returns a boolean side for every row it gets, or None; a cluster that it cannot split stays whole.
    By default the largest cluster is split, as in Hofmeyr, Pavlidis, Eckley, Section 7.1.
    """
    labels = np.zeros(len(X), dtype=np.int64)
    open_ = {0: priority(X)}
    next_label = 1
    while next_label < n_clusters and open_:
        chosen = max(open_, key=lambda label: open_[label])
        del open_[chosen]
        members = np.flatnonzero(labels == chosen)
        sides = split(X[members])
        if sides is None or sides.all() or not sides.any():
            continue
        labels[members[sides]] = next_label
        for label in (chosen, next_label):
            rows = X[labels == label]
            if len(rows) > 2:
                open_[label] = priority(rows)
        next_label += 1
    return labels
