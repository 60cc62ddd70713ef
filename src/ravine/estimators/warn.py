"""What a fit warns about, and what to try: weights, rows, columns, missing clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ravine._validate import IntArray, listed
from ravine.data.query import RowSet
from ravine.exceptions import DiscreteColumnWarning, OneClusterWarning, OutlierWarning, warn_caller
from ravine.split.split import MADE_BY
from ravine.tree.export import names_of
from ravine.tree.summary import why_one_cluster
from ravine.tree.tree import ClusterTree

HEAVY = 100.0  # mean weight of the rows above which "auto" warns that they look like copies; a choice


def warn_about_weights(rows: RowSet, min_weight: float, *, auto: bool) -> None:
    """Warn about weights that are no counts: a weight of k stands for k copies of a row."""
    n_rows, mean = rows.shape[0], rows.total / rows.shape[0]
    if rows.total < 2 * min_weight <= n_rows:
        warn_caller(
            f"the weights add up to {rows.total:g} rows, too few to split: a weight of k counts as k copies "
            "of a row; scale the weights to a mean of 1"
        )
    elif auto and mean > HEAVY:
        warn_caller(
            f"the weights have a mean of {mean:.3g}: a weight of k counts as k copies of a row, and between "
            "many copies of few rows everything looks like a gap; if they are not counts, scale the weights "
            "to a mean of 1"
        )


def warn_about_outliers(numbers: IntArray) -> None:
    """Warn about rows far from all others."""
    if len(numbers) == 0:
        return
    which = f"row {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} rows ({listed(numbers)}) are"
    warn_caller(
        f"{which} far from all others, and left out of the searches; see outliers_, and check for "
        "missing values that are coded as a number, or for a small cluster",
        OutlierWarning,
    )


def warn_about_constants(constant: npt.NDArray[np.bool_]) -> None:
    """Warn about columns that have the same value in all rows."""
    if constant.any():
        warn_caller(f"{int(constant.sum())} of {len(constant)} columns are constant and were ignored")


def warn_about_splits(model: Any, interrupted: bool) -> None:
    """Warn about splits of one discrete column, about a single cluster, and about fewer than requested."""
    _warn_discrete(model.tree_)
    if interrupted or model.max_depth is not None:
        return
    if model.n_clusters == "auto" and model.n_clusters_ == 1:
        warn_caller(OneClusterWarning(why_one_cluster(model.tree_, model.level), _next_step(model)))
    elif not isinstance(model.n_clusters, str) and model.n_clusters_ < model.n_clusters:
        finer = [
            name for name in ("bandwidth_factor", "sigma_factor", "min_cluster_size") if hasattr(model, name)
        ]
        other = ", and SpectralConnectivity needs no valley" if "bandwidth_factor" in finer else ""
        warn_caller(
            f"found {model.n_clusters_} of {model.n_clusters} clusters: no other leaf has a split with "
            f"enough rows on both sides; a smaller {' or '.join(finer)} may find one{other}",
            ConvergenceWarning,
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
    warn_caller(DiscreteColumnWarning(reason, columns, listed([names[j] for j in columns])))
