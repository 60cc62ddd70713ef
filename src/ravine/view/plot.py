"""Pictures with matplotlib: each function takes an Axes, or makes one, and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.node import Node, measure
from ravine.data.principal import Covariance
from ravine.data.query import Asked, RowSet, answer, run
from ravine.data.standardization import Standardization, in_user_units
from ravine.exceptions import InvalidInputError, RavineError
from ravine.index.density import MinimumDensityIndex
from ravine.split.split import Split
from ravine.tree.export import names_of, strongest
from ravine.tree.score import profile_of
from ravine.view import palette
from ravine.view.density import bandwidth_of
from ravine.view.fitted import leave_out_far_rows, scales, tree_of
from ravine.view.pictures import place_nodes
from ravine.view.row_map import MAP_ROWS, map_rows
from ravine.view.words import many

MARKERS = "osv^DPX*"  # one per label, for readers who do not see the colors


@dataclass(frozen=True)
class NodeRows:
    """The rows that reach one split: their numbers, their standardization, their distances from the split."""

    split: Split
    members: IntArray
    rows: RowSet
    standardization: Standardization
    distance: FloatArray

    def across(self) -> FloatArray:
        """Return the position of every row in the direction of greatest variance orthogonal to the normal."""
        # The covariance is projected instead of the rows, which are not copied.
        own, v = self.standardization, self.split.direction
        ((matrix,),) = answer([Asked(self.rows, Covariance(own))])
        keep = np.eye(len(v)) - np.outer(v, v) / (v @ v)
        normal = own.normals(np.linalg.eigh(keep @ matrix @ keep)[1][:, -1])
        return self.rows.map(lambda block: block.project(own.mean, normal[None, :])[0])


def node_rows(model: Any, X: Any, node: int = 0, sample_weight: Any = None) -> NodeRows:
    """Return the rows of X that reach a split, in the user's units."""
    tree = tree_of(model)
    split = tree.splits[node] if check_int("node", node, 0) < tree.n_nodes else None
    if split is None:
        inner = ", ".join(str(one) for one in sorted(tree.inner)) or "none"
        raise InvalidInputError(f"node {node} has no split to show; the nodes with a split are: {inner}")
    # As in the fit: columns are scaled by all rows, and then the rows of the node are measured.
    all_rows, _, far = leave_out_far_rows(model, X, sample_weight)
    root = run(measure(Node(all_rows, standardize=scales(model)))).standardization
    reached = ((members, distance) for at, members, distance in tree.visit(all_rows) if at == node)
    members, distance = next(reached, (np.zeros(0, dtype=np.int64), np.zeros(0)))
    members, distance = members[~far[members]], distance[~far[members]]
    if len(members) < 2:
        raise InvalidInputError(f"{len(members)} rows reach node {node}; two are needed")
    rows = all_rows.select(members)
    standardization = in_user_units(run(measure(Node(rows, root_standardization=root))).standardization)
    return NodeRows(split, members, rows, standardization, distance)


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


def _name_axis(ax: Any, node: int, found: NodeRows) -> Any:
    """Draw the threshold of a split, and name what is drawn along its normal."""
    ax.axvline(0.0, color="#0072b2", linewidth=2, label="threshold")
    ax.set_xlabel("signed distance from the split")
    ax.set_title(f"node {node}: {found.rows.total:g} rows, quality {found.split.quality:.2f}")
    ax.legend(fontsize="small", loc="upper right")
    return ax


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
    profile, mean = profile_of(found.distance, found.rows.map(lambda block: block.weights))
    h = bandwidth_of(found.split, profile.std, profile.total)
    points = np.linspace(profile.points[0] - 3 * h, profile.points[-1] + 3 * h, 400)
    curve = np.exp(MinimumDensityIndex(h, np.inf).curve(profile, points))
    top = float(curve.max()) or 1.0
    ax.fill_between(points + mean, curve, color="0.9", linewidth=0)
    ax.plot(points + mean, curve, color="0.1", label="density")
    if np.isfinite(alpha := float(found.split.facts.get("alpha", np.inf))):
        penalized = np.exp(MinimumDensityIndex(h, alpha).curve(profile, points))
        shown = np.where(penalized <= 1.15 * top, penalized, np.nan)
        ax.plot(points + mean, shown, color="#d55e00", linestyle="--", label="penalized density")
        half = alpha * profile.std
        ax.axvspan(mean - half, mean + half, color="#56b4e9", alpha=0.15, label="feasible interval")
    # Multiples of the golden ratio spread neighbors over the height of the band below the axis.
    height = 0.25 + 0.7 * np.modf(np.arange(len(found.distance)) * 0.618033988749895)[0]
    _scatter(ax, found.distance, -0.16 * top * height, *_labels(found, labels))
    ax.set_ylim(-0.184 * top, 1.15 * top)
    ax.set_ylabel("density")
    return _name_axis(ax, node, found)


def split(
    model: Any, X: Any, node: int = 0, labels: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the rows of a split in two dimensions: along its normal, and their widest orthogonal direction."""
    ax = _axes(ax)
    found = node_rows(model, X, node, sample_weight)
    _scatter(ax, found.distance, found.across(), *_labels(found, labels))
    ax.set_ylabel("direction of greatest variance within the hyperplane")
    return _name_axis(ax, node, found)


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
    grown, rows = tree_of(model), leave_out_far_rows(model, X, sample_weight)[0]
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


def tree(model: Any, ax: Any = None, *, feature_names: Sequence[str] | None = None) -> Any:
    """Draw the tree as the report does: width is a share of the rows, height the depth of a valley.

    A split is named by its strongest feature and its quality, a leaf by its cluster and its rows.
    """
    grown, ax = tree_of(model), _axes(ax)
    names = names_of(grown, feature_names)
    style = {"fontsize": 9 if grown.n_leaves <= 12 else 6, "ha": "center"}
    for box in place_nodes(grown, grown.weight):
        middle, made = box.x + box.width / 2, grown.splits[box.node]
        if made is None:  # a leaf has no height: it is the label below its last split
            color = palette.cluster(box.label)
            label = {"boxstyle": "round", "facecolor": color, "edgecolor": "none"}
            words = f"{box.label}\n{grown.weight[box.node]:g}"
            ax.text(middle, -box.y, words, va="top", color=palette.text_on(color), bbox=label, **style)
        else:
            ax.bar(middle, -box.height, box.width, -box.y, color="0.85", edgecolor="white")
            words = f"{strongest(made, names, 1)}\n{made.quality:.2f}"
            ax.text(middle, -box.y - box.height / 2, words, va="center", **style)
    ax.set_axis_off()
    ax.set_title(f"{many(grown.n_clusters, 'cluster')} of {grown.weight[0]:g} rows")
    return ax
