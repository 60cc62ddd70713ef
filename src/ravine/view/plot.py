"""Pictures with matplotlib: each function takes an Axes, or makes one, and returns it.

The projected density, the path of a pursuit and the landscape follow Figures 2 to 5 of Pavlidis, Hofmeyr,
Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016; the step of a pursuit follows Figure 1 of Yates,
Pavlidis: Minimum Density Hyperplanes in the Feature Space. IEEE SSCI, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.node import Node
from ravine.data.query import run
from ravine.exceptions import InvalidInputError, RavineError
from ravine.index.density import MinimumDensitySchedule
from ravine.split.boundary import Hyperplane
from ravine.split.projection import ProjectionMethod
from ravine.split.search import search
from ravine.tree.arrays import TreeArrays
from ravine.tree.features import names_of, strongest
from ravine.view import palette
from ravine.view.density import NodeDensity, densities
from ravine.view.draw import DISTANCE
from ravine.view.fitted import counted_rows, scales, tree_of
from ravine.view.html import many
from ravine.view.node import NodeRows, Step, landscape_values, node_rows, pursuit_path
from ravine.view.pairs import ClassPairs
from ravine.view.plane import plane_of

COLORS = ("#0072b2", "#d55e00", "#56b4e9")  # threshold, penalized density, interval
MARKERS = "osv^DPX*"  # one per label, for readers who do not see the colors
MAX_POINTS = 4000  # rows drawn as points: more hide each other


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
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).astype(np.int64))
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
    _along_normal(ax, found.step, found.step.threshold, found.distance, *_labels(found, labels))
    ax.set_xlabel(DISTANCE)
    ax.set_title(f"node {node}: {found.rows.total:g} rows, quality {found.split.quality:.2f}")
    return ax


def _along_normal(ax: Any, step: Step, origin: float, places: FloatArray, labels: Any, names: str) -> None:
    """Draw the density of a step, measured from `origin`, and its rows at some places in a band below."""
    points, top, half = step.points - origin, float(step.density.max()) or 1.0, step.half_width
    ax.fill_between(points, step.density, color="0.9", linewidth=0)
    ax.plot(points, step.density, color="0.1", label="density")
    if step.penalized is not None:
        shown = np.where(step.penalized <= 1.15 * top, step.penalized, np.nan)
        ax.plot(points, shown, color=COLORS[1], linestyle="--", label="penalized density")
        ax.axvspan(-half - origin, half - origin, color=COLORS[2], alpha=0.15, label="feasible interval")
    ax.axvline(step.threshold - origin, color=COLORS[0], linewidth=2, label="threshold")
    # Multiples of the golden ratio spread neighbors over the height of the band.
    height = 0.25 + 0.7 * np.modf(np.arange(len(places)) * 0.618033988749895)[0]
    _scatter(ax, places, -0.16 * top * height, labels, names)
    ax.set_ylim(-0.184 * top, 1.15 * top)
    ax.set_ylabel("density")
    ax.legend(fontsize="small", loc="upper right")


def step(
    model: Any,
    X: Any,
    number: int = -1,
    node: int = 0,
    start: int = 0,
    labels: Any = None,
    ax: Any = None,
    *,
    sample_weight: Any = None,
) -> Any:
    """Draw one step of a pursuit: density, penalized density, interval and threshold, with the rows below.

    Step 0 is the start, then one per width of the interval; -1 is the last. The threshold is the bottom of
    the valley, which may lie up to a bandwidth beyond the interval.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from ravine.view import plot
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> plot.step(MinimumDensity(2, kernel="rbf").fit(X), X, 0, labels=y).get_title()
    'node 0, start 0, step 0 of 10: alpha 0.01'
    """
    steps = pursuit_path(model, X, node, start, sample_weight)
    if not -len(steps) <= number < len(steps):
        raise InvalidInputError(f"number has to be one of 0 to {len(steps) - 1}, got {number}")
    ax = _axes(ax)
    found, chosen = node_rows(model, X, node, sample_weight), steps[number]
    _along_normal(ax, chosen, 0.0, found.along(chosen.direction), *_labels(found, labels))
    ax.set_xlim(chosen.points[0], chosen.points[-1])
    ax.set_xlabel("distance from the mean")
    title = f"node {node}, start {start}, step {number % len(steps)} of {len(steps) - 1}"
    ax.set_title(title if np.isinf(chosen.alpha) else f"{title}: alpha {chosen.alpha:.2f}")
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
    plane = plane_of(grown, rows, grown.route(rows), coordinates, standardize=scales(model))
    groups = grown.label[plane.leaf] if labels is None else np.asarray(labels)[plane.numbers]
    x, y = plane.points[plane.counted].T
    _scatter(ax, x, y, groups[plane.counted], "cluster" if labels is None else "class")
    limits = ax.get_xlim(), ax.get_ylim()
    if 0 in plane.lines and plane.lines[0].is_shown:
        first = plane.lines[0]
        _line(ax, (first.slope, first.offset, "first split"), limits, color="0.1", linestyle="--")
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])
    ax.set_xlabel(plane.axes[0])
    ax.set_ylabel(plane.axes[1])
    ax.legend(fontsize="small")
    return ax


def path(
    model: Any, X: Any, node: int = 0, start: int = 0, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the path of a pursuit: the density at the start, on top, and after each width of the interval.

    The bar under each density is its interval, the vertical line its threshold.
    """
    ax = _axes(ax)
    steps = pursuit_path(model, X, node, start, sample_weight)
    # the maximum is 0 where the bandwidth is so small that every curve falls between rows
    top = max(float(step.density.max()) for step in steps) or 1.0
    ticks = []
    for i, step in enumerate(steps):
        base = -float(i)
        curve = base + 0.85 * step.density / top
        ax.fill_between(step.points, base, curve, color="0.9", linewidth=0, zorder=2 * i)
        ax.plot(step.points, curve, color="0.1", linewidth=1, zorder=2 * i + 1)
        ax.plot([-step.half_width, step.half_width], [base, base], color=COLORS[2], linewidth=4, zorder=2 * i)
        at = float(np.interp(step.threshold, step.points, curve))
        ax.plot([step.threshold, step.threshold], [base, at], color=COLORS[0], linewidth=2, zorder=2 * i + 1)
        ticks.append("start" if i == 0 else f"alpha {step.alpha:.2f}, {step.n_iter} iterations")
    ax.set_yticks([-float(i) for i in range(len(steps))], ticks)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("distance from the mean")
    ax.set_title(f"node {node}: pursuit from start {start}")
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
    if isinstance(tree_of(model), ClassPairs):
        raise InvalidInputError(
            'a boundary for every pair of classes is not a tree: fit with multi_class="tree"'
        )
    ax = _axes(ax)
    grown, rows = tree_of(model), counted_rows(model, X, sample_weight)[0]
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


def landscape(
    X: Any, model: Any = None, ax: Any = None, *, bandwidth_factor: float = 1.0, alpha: float = 0.9
) -> Any:
    """Draw the lowest density of a hyperplane against the angle of its normal, for two columns.

    Columns are standardized. With a model, the angle of its first split is marked, and columns, bandwidth and
    interval are those of its fit.
    """
    ax = _axes(ax)
    angles = np.linspace(0.0, np.pi, 361)
    values = landscape_values(X, angles, model, bandwidth_factor, alpha)
    ax.plot(angles, values, color="0.1", label="projection index")
    found = None if model is None else tree_of(model).splits[0]
    if found is not None:
        angle = float(np.arctan2(found.direction[1], found.direction[0]) % np.pi)
        ax.axvline(angle, color=COLORS[0], linewidth=2, label="split of the model")
        ax.legend(fontsize="small")
    ax.set_xticks(np.linspace(0, np.pi, 5), ["0", "π/4", "π/2", "3π/4", "π"])
    ax.set_xlabel("angle of the normal")
    ax.set_ylabel("density on the best hyperplane")
    ax.set_ylim(bottom=0.0)
    return ax


Line = tuple[FloatArray, float, str]  # normal, intercept and name of a hyperplane in the plane


def convergence(X: Any, factors: Sequence[float] = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02), ax: Any = None) -> Any:
    """Draw minimum density hyperplanes of two columns for falling bandwidths, and the maximum margin one.

    Each search starts where the last one ended; the maximum margin hyperplane is that of the last partition.
    As the bandwidth falls, they become one (Theorem 5 of Minimum Density Hyperplanes).
    """
    ax = _axes(ax)
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidInputError(f"two columns are drawn, got shape {points.shape}")
    lines, labels = _falling_bandwidths(points, factors)
    _scatter(ax, points[:, 0], points[:, 1], labels, "cluster")
    limits = ax.get_xlim(), ax.get_ylim()
    for i, line in enumerate(lines):
        _line(ax, line, limits, color=str(0.75 - 0.6 * i / (len(lines) + 1)))
    _line(ax, _maximum_margin(points, labels), limits, color=COLORS[1], linestyle="--", linewidth=2)
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])
    ax.legend(fontsize="small")
    return ax


def _falling_bandwidths(points: FloatArray, factors: Sequence[float]) -> tuple[list[Line], IntArray]:
    """Return the minimum density hyperplane for each bandwidth, and the clusters of the last one."""
    rows, init = MemoryRows(points), None
    labels = np.zeros(len(points), dtype=np.int64)
    lines: list[Line] = []
    for factor in factors:
        method = ProjectionMethod(MinimumDensitySchedule(factor), init=init, max_iter=60, tol=1e-4)
        _, found = run(search(Node(rows, standardize=True), method))
        if found is None or not isinstance(found.boundary, Hyperplane):
            break
        init = found.boundary.normal[None, :]
        labels = (found.boundary.signed_distance(rows) > 0).astype(np.int64)
        lines.append((found.boundary.normal, found.boundary.intercept, f"bandwidth factor {factor:g}"))
    if not lines:
        raise InvalidInputError("the density of these rows has no valley for a hyperplane")
    return lines, labels


def _maximum_margin(points: FloatArray, labels: IntArray) -> Line:
    from sklearn.svm import SVC

    scale = points.std(axis=0)
    fitted = SVC(kernel="linear", C=1e6).fit(points / scale, labels)  # a large C leaves no row in the margin
    return fitted.coef_[0] / scale, float(fitted.intercept_[0]), "maximum margin"


def _line(ax: Any, line: Line, limits: Any, **style: Any) -> None:
    """Draw the points of the plane with normal . x + intercept = 0."""
    (normal, intercept, name), ((left, right), (low, high)) = line, limits
    if abs(normal[1]) * (high - low) >= abs(normal[0]) * (right - left):
        x = np.array([left, right])
        ax.plot(x, -(normal[0] * x + intercept) / normal[1], label=name, **style)
    else:
        y = np.array([low, high])
        ax.plot(-(normal[1] * y + intercept) / normal[0], y, label=name, **style)
