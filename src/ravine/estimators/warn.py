"""What a fit warns about, and what to try: weights, discrete columns, missing clusters.

Levels of the stack are those of the call of `fit`, so that a warning names the line of the user.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ravine._validate import listed
from ravine.data.memory import MemoryRows
from ravine.exceptions import DiscreteColumnWarning, OneClusterWarning
from ravine.split.split import MADE_BY
from ravine.tree.export import names_of
from ravine.tree.summary import why_one_cluster
from ravine.tree.tree import ClusterTree

HEAVY = 100.0  # mean weight of the rows above which "auto" warns that they look like copies


def warn_about_weights(rows: MemoryRows, min_weight: float, *, auto: bool) -> None:
    """Warn about weights that are no counts: a weight of k stands for k copies of a row."""
    n_rows, mean = rows.shape[0], rows.total / rows.shape[0]
    if rows.total < 2 * min_weight <= n_rows:
        message = f"the weights add up to {rows.total:g} rows, too few to split: a weight of k counts as k "
        message += "copies of a row; scale the weights to a mean of 1"
    elif auto and mean > HEAVY:
        message = f"the weights have a mean of {mean:.3g}: a weight of k counts as k copies of a row, and "
        message += "between many copies of few rows everything looks like a gap; if they are not counts, "
        message += "scale the weights to a mean of 1"
    else:
        return
    warnings.warn(message, UserWarning, stacklevel=5)


def warn_about_splits(model: Any, interrupted: bool) -> None:
    """Warn about splits of one discrete column, about a single cluster, and about fewer than requested."""
    _warn_discrete(model.tree_)
    is_limited = model.max_leaves is not None or model.max_depth is not None
    if interrupted or is_limited:
        return
    if model.n_clusters == "auto" and model.n_clusters_ == 1:
        reason = why_one_cluster(model.tree_, model.level)
        warnings.warn(OneClusterWarning(reason, _next_step(model)), stacklevel=5)
    elif not isinstance(model.n_clusters, str) and model.n_clusters_ < model.n_clusters:
        finer = [
            name for name in ("bandwidth_factor", "sigma_factor", "min_cluster_size") if hasattr(model, name)
        ]
        missing, other = "split", ""
        if model._needs_valley:
            missing, other = "valley", ", SpectralConnectivity needs none"
        warnings.warn(
            f"found {model.n_clusters_} of {model.n_clusters} clusters: no other leaf has a {missing} with "
            f"enough rows on both sides; a smaller {' or '.join(finer)} may find one{other}",
            ConvergenceWarning,
            stacklevel=5,
        )


def _next_step(model: Any) -> str:
    """Return what to try where one cluster was found."""
    others = [name for name in ("MinimumDensity", "SpectralConnectivity") if name != type(model).__name__]
    kernel = ' or kernel="diffusion"' if model.kernel is None else ""
    return f"set n_clusters, try {others[0]}{kernel}, or look at the data with ravine.check"


def _warn_discrete(tree: ClusterTree) -> None:
    """Warn about splits that one discrete column makes, and name the columns."""
    made = [split for split in tree.splits if split is not None and MADE_BY in split.facts]
    if not made:
        return
    names = names_of(tree, None)
    columns = list(dict.fromkeys(int(split.facts[MADE_BY]) for split in made))
    reason = f"{len(made)} of {tree.n_leaves - 1} splits run between the values of one discrete column"
    shown = listed([names[j] for j in columns])
    warnings.warn(DiscreteColumnWarning(reason, columns, shown), stacklevel=6)
