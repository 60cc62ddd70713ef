"""Pictures with matplotlib: each function takes an Axes, or makes one, and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.exceptions import RavineError
from ravine.tree.arrays import TreeArrays
from ravine.tree.export import names_of, strongest
from ravine.view import palette
from ravine.view.density import NodeDensity, densities
from ravine.view.fitted import counted_rows, scales, tree_of, walked_tree
from ravine.view.node import NodeRows, node_rows
from ravine.view.row_map import MAP_ROWS, map_rows
from ravine.view.words import many

DISTANCE = "signed distance from the split"  # the axis along a normal
MARKERS = "osv^DPX*"  # one per label, for readers who do not see the colors


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise RavineError('pictures need matplotlib: pip install "ravine[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]


def _scatter(ax: Any, x: FloatArray, y: FloatArray, labels: Any, names: str) -> None:
    """Draw rows as points, with a color and a marker for each label."""
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAP_ROWS)).astype(np.int64))
    labels = np.asarray(labels)[shown]
    for i, label in enumerate(np.unique(labels)):
        here, marker = shown[labels == label], MARKERS[i % len(MARKERS)]
        color = {"left": palette.LEFT, "right": palette.RIGHT}.get(str(label), palette.cluster(i))
        style = {"s": 12, "alpha": 0.7, "linewidths": 0, "c": color, "marker": marker}
        ax.scatter(x[here], y[here], label=f"{names} {label}", **style)


def _labels(node: NodeRows, labels: Any) -> tuple[Any, str]:
    """Return the given labels of a node's rows, or their sides."""
    if labels is None:
        return np.where(node.distance > 0, "right", "left"), "rows to the"
    return np.asarray(labels)[node.members], "class"


def density(
    model: Any, X: Any, node: int = 0, labels: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the density along the normal of a split, its penalized form, the interval and the threshold.

    The bandwidth is that of the fit. Distances are measured from the split; rows lie below the axis, colored
    by label or by side.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from ravine.view import plot
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot.density(MinimumDensity(2).fit(X), X, labels=y)
    >>> ax.get_xlabel()
    'signed distance from the split'
    """
    ax = _axes(ax)
    found = node_rows(model, X, node, sample_weight)
    curves, top = found.curves, float(found.curves.density.max()) or 1.0
    ax.fill_between(curves.points, curves.density, color="0.9", linewidth=0)
    ax.plot(curves.points, curves.density, color="0.1", label="density")
    if curves.penalized is not None:
        shown = np.where(curves.penalized <= 1.15 * top, curves.penalized, np.nan)
        ax.plot(curves.points, shown, color="#d55e00", linestyle="--", label="penalized density")
        ax.axvspan(*curves.interval, color="#56b4e9", alpha=0.15, label="feasible interval")
    ax.axvline(0.0, color="#0072b2", linewidth=2, label="threshold")
    # Multiples of the golden ratio spread neighbors over the height of the band below the axis.
    height = 0.25 + 0.7 * np.modf(np.arange(len(found.distance)) * 0.618033988749895)[0]
    _scatter(ax, found.distance, -0.16 * top * height, *_labels(found, labels))
    ax.set_ylim(-0.184 * top, 1.15 * top)
    ax.legend(fontsize="small", loc="upper right")
    ax.set_ylabel("density")
    ax.set_xlabel(DISTANCE)
    ax.set_title(f"node {node}: {found.rows.total:g} rows, quality {found.split.quality:.2f}")
    return ax


def split(
    model: Any, X: Any, node: int = 0, labels: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the rows of a split in two dimensions: along its normal, and their widest orthogonal direction."""
    ax = _axes(ax)
    found = node_rows(model, X, node, sample_weight)
    _scatter(ax, found.distance, found.across(), *_labels(found, labels))
    ax.axvline(0.0, color="0.1", linewidth=2, label="threshold")
    ax.set_xlabel(DISTANCE)
    ax.set_ylabel("direction of greatest variance within the hyperplane")
    ax.set_title(f"node {node}: {found.rows.total:g} rows")
    ax.legend(fontsize="small")
    return ax


def map(
    model: Any,
    X: Any,
    labels: Any = None,
    ax: Any = None,
    *,
    coordinates: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the rows by their first two principal components, or by given coordinates, colored by cluster.

    `labels` are other groups to color by. The line is the first split, where the plane shows it. Rows
    far from all others are not drawn.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from ravine.view import plot
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> plot.map(MinimumDensity(2).fit(X), X).get_xlabel()
    'principal component 1 (73 % of the variance)'
    """
    ax = _axes(ax)
    grown, rows = tree_of(model), counted_rows(model, X, sample_weight)[0]
    shown = map_rows(grown, rows, grown.route(rows), coordinates, standardize=scales(model))
    groups = grown.label[shown.leaf] if labels is None else np.asarray(labels)[shown.numbers]
    x, y = shown.points[shown.counted].T
    _scatter(ax, x, y, groups[shown.counted], "cluster" if labels is None else "class")
    if 0 in shown.lines:
        limits = ax.get_xlim(), ax.get_ylim()
        first = shown.lines[0]
        along = np.array([-first.normal[1], first.normal[0]])
        foot = first.pivot + first.normal * first.threshold / (first.normal @ first.normal)
        ax.axline(foot, foot + along, color="0.1", linestyle="--", label="first split")
        ax.set(xlim=limits[0], ylim=limits[1])
    ax.set_xlabel(shown.axes[0])
    ax.set_ylabel(shown.axes[1])
    ax.legend(fontsize="small")
    return ax


def tree(
    model: Any,
    X: Any,
    ax: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the tree with the density of the rows at each split, the strongest feature, and the clusters."""
    grown, ax = walked_tree(model), _axes(ax)
    rows = counted_rows(model, X, sample_weight)[0]
    curves, names = densities(grown, rows), names_of(grown, feature_names, rows.shape[1])
    x, y = _places(grown), -grown.depth.astype(float)
    style = {"fontsize": 9 if grown.n_leaves <= 12 else 6, "va": "center", "zorder": 3}
    for node, made in enumerate(grown.splits):
        parent = int(grown.parent[node])
        if parent >= 0:
            ax.plot([x[parent], x[node]], [y[parent] - 0.25, y[node] + 0.25], color="0.6", zorder=1)
        if made is None:
            text, color = (
                f"{grown.label[node]}\n{grown.weight[node]:g}",
                palette.cluster(int(grown.label[node])),
            )
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color, "linewidth": 2}
            ax.text(x[node], y[node], text, ha="center", bbox=box, **style)
            continue
        if node in curves:
            _small_density(ax, curves[node], x[node], y[node])
        words = f"{strongest(made, names, 1)}\n{made.quality:.2f}"
        ax.text(x[node] + 0.48, y[node] + 0.1, words, **style)
    ax.set_xlim(-0.7, grown.n_leaves - 0.1)
    ax.set_ylim(float(y.min()) - 0.5, 0.6)
    ax.set_axis_off()
    ax.set_title(f"{many(grown.n_clusters, 'cluster')} of {grown.weight[0]:g} rows")
    return ax


def _places(grown: TreeArrays) -> FloatArray:
    """Return the horizontal position of each node: leaves in order, others between their children."""
    x = np.zeros(grown.n_nodes)
    x[grown.leaves] = np.arange(grown.n_leaves)
    for node in range(grown.n_nodes - 1, -1, -1):
        if grown.left[node] >= 0:
            x[node] = (x[grown.left[node]] + x[grown.right[node]]) / 2
    return x


def _small_density(ax: Any, curve: NodeDensity, x: float, y: float) -> None:
    span = curve.points[-1] - curve.points[0]
    along = x - 0.42 + 0.84 * (curve.points - curve.points[0]) / span
    height = y - 0.22 + 0.44 * curve.density / curve.density.max()
    for side, color in ((curve.points <= 0, palette.LEFT), (curve.points > 0, palette.RIGHT)):
        ax.fill_between(along[side], y - 0.22, height[side], color=color, linewidth=0, zorder=2)
    ax.plot(along, height, color="0.1", linewidth=0.8, zorder=2)
