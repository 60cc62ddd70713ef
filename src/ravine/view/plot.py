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
from ravine.exceptions import InvalidInputError, RavineError
from ravine.index.density import MinimumDensityIndex
from ravine.tree.export import names_of, strongest
from ravine.tree.tree import ClusterTree
from ravine.view import node as numbers
from ravine.view.density import densities

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
MARKERS = "osv^DPX*"  # so that color is not all that tells classes apart
MAX_POINTS = 4000  # rows drawn as points


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise RavineError('pictures need matplotlib: pip install "ravine[plot]"') from error
    return pyplot.subplots(layout="constrained")[1]


def _few(n: int) -> IntArray:
    """Return which of n rows are drawn: all, or evenly spread ones."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).astype(np.int64))


def _scatter(ax: Any, x: FloatArray, y: FloatArray, labels: Any, names: str) -> None:
    """Draw rows as points, with a color and a marker for each label."""
    kept = _few(len(x))
    labels = np.asarray(labels)[kept]
    for i, label in enumerate(np.unique(labels)):
        here = kept[labels == label]
        ax.scatter(
            x[here],
            y[here],
            s=12,
            alpha=0.7,
            linewidths=0,
            c=COLORS[i % len(COLORS)],
            marker=MARKERS[i % len(MARKERS)],
            label=f"{names} {label}",
        )


def _labels(node: numbers.Node, labels: Any) -> tuple[Any, str]:
    """Return the given labels of a node's rows, or their sides."""
    if labels is None:
        return np.where(node.distance > 0, "right", "left"), "to the"
    return np.asarray(labels)[node.members], "class"


def density(
    model: Any, X: Any, node: int = 0, labels: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the density of the rows along the normal of a split, its penalized form, the interval and the cut.

    Distances are measured from the cut; rows lie below the axis, colored by label or by side.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from ravine.view import plot
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot.density(MinimumDensity(2).fit(X), X, labels=y)
    >>> ax.get_xlabel()
    'distance from the cut'
    """
    ax = _axes(ax)
    seen = numbers.see_node(model, X, node, sample_weight)
    profile, middle = seen.profile(), seen.middle
    points = np.linspace(profile.points[0] - seen.bandwidth * 3, profile.points[-1] + seen.bandwidth * 3, 400)
    curve = np.exp(MinimumDensityIndex(seen.bandwidth, np.inf).curve(profile, points))
    penalized = None
    if np.isfinite(seen.alpha):
        penalized = np.exp(MinimumDensityIndex(seen.bandwidth, seen.alpha).curve(profile, points))
    half = seen.alpha * profile.std
    _along_a_normal(ax, points + middle, curve, penalized, (middle - half, middle + half), 0.0)
    _rows_below(ax, seen.distance, float(curve.max()) or 1.0, *_labels(seen, labels))
    ax.set_xlabel("distance from the cut")
    ax.set_title(f"node {node}: {seen.view.standardization.total:g} rows, quality {seen.split.quality:.2f}")
    ax.legend(fontsize="small", loc="upper right")
    return ax


def _along_a_normal(
    ax: Any,
    points: FloatArray,
    curve: FloatArray,
    penalized: FloatArray | None,
    interval: tuple[float, float],
    threshold: float,
) -> None:
    """Draw a density, its penalized form and the interval where there are those, and the cut."""
    ax.fill_between(points, curve, color="0.9", linewidth=0)
    ax.plot(points, curve, color="0.1", label="density")
    if penalized is not None:
        shown = np.where(penalized <= 1.15 * float(curve.max()), penalized, np.nan)
        ax.plot(points, shown, color=COLORS[1], linestyle="--", label="penalized density")
        ax.axvspan(*interval, color=COLORS[5], alpha=0.15, label="feasible interval")
    ax.axvline(threshold, color=COLORS[0], linewidth=2, label="cut")


def _rows_below(ax: Any, places: FloatArray, top: float, given: Any, what: str) -> None:
    """Draw rows below the axis of a density with this top, spread over a band."""
    low = -0.16 * top
    height = low * (0.25 + 0.7 * np.modf(np.arange(len(places)) * 0.618033988749895)[0])
    _scatter(ax, places, height, given, what)
    ax.set_ylim(1.15 * low, 1.15 * top)
    ax.set_ylabel("density")


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
    """Draw one step of a pursuit: density, penalized objective, interval and cut, with the rows below.

    Step 0 is the start, then one for each width of the interval; -1 is the last. The cut is the foot of the
    valley, which may lie up to a bandwidth beyond the interval.

    Examples
    --------
    >>> from ravine import MinimumDensity
    >>> from ravine.view import plot
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> plot.step(MinimumDensity(2, kernel="rbf").fit(X), X, 0, labels=y).get_title()
    'node 0, start 0, step 0 of 10: alpha 0.01'
    """
    steps = numbers.pursuit_path(model, X, node, start, sample_weight)
    if not -len(steps) <= number < len(steps):
        raise InvalidInputError(f"number has to be one of 0 to {len(steps) - 1}, got {number}")
    ax = _axes(ax)
    seen, chosen = numbers.see_node(model, X, node, sample_weight), steps[number]
    interval = (-chosen.half_width, chosen.half_width)
    _along_a_normal(ax, chosen.points, chosen.density, chosen.penalized, interval, chosen.threshold)
    given = _labels(seen, labels)
    _rows_below(ax, numbers.along(seen, chosen.direction), float(chosen.density.max()) or 1.0, *given)
    ax.set_xlim(chosen.points[0], chosen.points[-1])
    ax.set_xlabel("distance from the mean")
    told = f"node {node}, start {start}, step {number % len(steps)} of {len(steps) - 1}"
    ax.set_title(told if np.isinf(chosen.alpha) else f"{told}: alpha {chosen.alpha:.2f}")
    ax.legend(fontsize="small", loc="upper right")
    return ax


def split(
    model: Any, X: Any, node: int = 0, labels: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the rows of a split in two dimensions: along its normal, and across it where they vary most."""
    ax = _axes(ax)
    seen = numbers.see_node(model, X, node, sample_weight)
    given, what = _labels(seen, labels)
    _scatter(ax, seen.distance, numbers.across(seen), given, what)
    ax.axvline(0.0, color="0.1", linewidth=2, label="cut")
    ax.set_xlabel("distance from the cut")
    ax.set_ylabel("greatest variance across")
    ax.set_title(f"node {node}: {seen.view.standardization.total:g} rows")
    ax.legend(fontsize="small")
    return ax


def path(
    model: Any, X: Any, node: int = 0, start: int = 0, ax: Any = None, *, sample_weight: Any = None
) -> Any:
    """Draw the way of a pursuit: the density at the start, at the top, and after each width of the interval.

    The bar under each density is its interval, the mark the cut.
    """
    ax = _axes(ax)
    steps = numbers.pursuit_path(model, X, node, start, sample_weight)
    top = max(float(step.density.max()) for step in steps) or 1.0  # 0 where no curve comes near a row
    ticks = []
    for i, step in enumerate(steps):
        base = -float(i)
        curve = base + 0.85 * step.density / top
        ax.fill_between(step.points, base, curve, color="0.9", linewidth=0, zorder=2 * i)
        ax.plot(step.points, curve, color="0.1", linewidth=1, zorder=2 * i + 1)
        ax.plot([-step.half_width, step.half_width], [base, base], color=COLORS[5], linewidth=4, zorder=2 * i)
        at = float(np.interp(step.threshold, step.points, curve))
        ax.plot([step.threshold, step.threshold], [base, at], color=COLORS[0], linewidth=2, zorder=2 * i + 1)
        ticks.append("start" if i == 0 else f"alpha {step.alpha:.2f}, {step.n_iter} steps")
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
    """Draw the tree with the density of its rows in each split, the strongest features, and the clusters."""
    ax = _axes(ax)
    grown: ClusterTree = getattr(model, "tree_", model)
    rows = numbers.rows_of(model, X, sample_weight)
    seen = densities(grown, rows)
    names = names_of(grown, feature_names, rows.shape[1])
    x = _places(grown)
    y = -grown.depth.astype(float)
    size = 9 if grown.n_leaves <= 12 else 6
    for node in range(grown.n_nodes):
        parent = int(grown.parent[node])
        if parent >= 0:
            ax.plot([x[parent], x[node]], [y[parent] - 0.25, y[node] + 0.25], color="0.6", zorder=1)
        made = grown.splits[node]
        if made is None:
            text = f"{grown.label[node]}\n{grown.weight[node]:g}"
            color = COLORS[int(grown.label[node]) % 7]
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color, "linewidth": 2}
            ax.text(x[node], y[node], text, ha="center", va="center", fontsize=size, bbox=box, zorder=3)
            continue
        if node in seen:
            _small_density(ax, seen[node], x[node], y[node])
        words = f"{strongest(made, names, 1)}\n{made.quality:.2f}"
        ax.text(x[node] + 0.48, y[node] + 0.1, words, fontsize=size, va="center", zorder=3)
    ax.set_xlim(-0.7, grown.n_leaves - 0.1)
    ax.set_ylim(float(y.min()) - 0.5, 0.6)
    ax.set_axis_off()
    ax.set_title(f"{grown.n_clusters} clusters of {grown.weight[0]:g} rows")
    return ax


def _places(grown: ClusterTree) -> FloatArray:
    """Return where each node stands: leaves from left to right, the others between their children."""
    x = np.zeros(grown.n_nodes)
    x[grown.leaves] = np.arange(grown.n_leaves)
    for node in range(grown.n_nodes - 1, -1, -1):
        if grown.left[node] >= 0:
            x[node] = (x[grown.left[node]] + x[grown.right[node]]) / 2
    return x


def _small_density(ax: Any, seen: Any, x: float, y: float) -> None:
    span = seen.points[-1] - seen.points[0]
    along = x - 0.42 + 0.84 * (seen.points - seen.points[0]) / span
    height = y - 0.22 + 0.44 * seen.density / seen.density.max()
    for side, color in ((seen.points <= 0, COLORS[0]), (seen.points > 0, COLORS[1])):
        ax.fill_between(along[side], y - 0.22, height[side], color=color, linewidth=0, zorder=2)
    ax.plot(along, height, color="0.1", linewidth=0.8, zorder=2)


def landscape(
    X: Any, model: Any = None, ax: Any = None, *, bandwidth_factor: float = 1.0, alpha: float = 0.9
) -> Any:
    """Draw the lowest density that a cut can have against the angle of its normal, for two columns.

    Columns are standardized. With a model, the angle of its first split is marked; its bandwidth factor and
    interval take the place of those given.
    """
    ax = _axes(ax)
    if model is not None:
        parameters = model.get_params(deep=False)
        bandwidth_factor = parameters.get("bandwidth_factor", bandwidth_factor)
        alpha = parameters.get("alpha_max", alpha)
    angles = np.linspace(0.0, np.pi, 361)
    values, _ = numbers.landscape(X, angles, bandwidth_factor, alpha)
    ax.plot(angles, values, color="0.1", label="projection index")
    found = None if model is None else model.tree_.splits[0]
    if found is not None:
        angle = float(np.arctan2(found.direction[1], found.direction[0]) % np.pi)
        ax.axvline(angle, color=COLORS[0], linewidth=2, label="the split that was found")
        ax.legend(fontsize="small")
    ax.set_xticks(np.linspace(0, np.pi, 5), ["0", "π/4", "π/2", "3π/4", "π"])
    ax.set_xlabel("angle of the normal")
    ax.set_ylabel("density on the best cut")
    ax.set_ylim(bottom=0.0)
    return ax


def convergence(X: Any, factors: Sequence[float] = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02), ax: Any = None) -> Any:
    """Draw minimum density hyperplanes of two columns for falling bandwidths, and the maximum margin one.

    Each search starts where the last one ended; the maximum margin hyperplane is that of the last partition.
    As the bandwidth falls, they become one (Theorem 5 of Minimum Density Hyperplanes).
    """
    from sklearn.svm import SVC

    from ravine import InvalidInputError, MinimumDensity
    from ravine.split.hyperplane import Hyperplane

    ax = _axes(ax)
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidInputError(f"two columns are drawn, got shape {points.shape}")
    init: FloatArray | None = None
    labels = np.zeros(len(points), dtype=np.int64)
    lines: list[tuple[FloatArray, float, str]] = []
    for factor in factors:
        model = MinimumDensity(2, bandwidth_factor=factor, init=init, max_iter=60, tol=1e-4).fit(points)
        found = model.tree_.splits[0]
        if found is None or not isinstance(found.boundary, Hyperplane):
            break
        init, labels = found.boundary.weights[None, :], model.labels_
        lines.append((found.boundary.weights, found.boundary.intercept, f"bandwidth factor {factor:g}"))
    if not lines:
        raise InvalidInputError("these rows have no valley to cut through")
    scale = points.std(axis=0)
    margin = SVC(kernel="linear", C=1e6).fit(points / scale, labels)
    lines.append((margin.coef_[0] / scale, float(margin.intercept_[0]), "maximum margin"))
    _scatter(ax, points[:, 0], points[:, 1], labels, "cluster")
    limits = ax.get_xlim(), ax.get_ylim()
    for i, (weights, intercept, name) in enumerate(lines):
        last = i == len(lines) - 1
        shade = str(0.75 - 0.6 * i / len(lines))
        style = {"color": COLORS[1], "linestyle": "--", "linewidth": 2} if last else {"color": shade}
        _line(ax, weights, intercept, limits, label=name, **style)
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])
    ax.legend(fontsize="small")
    return ax


def _line(ax: Any, weights: FloatArray, intercept: float, limits: Any, **style: Any) -> None:
    """Draw the points of the plane with weights . x + intercept = 0."""
    (left, right), (low, high) = limits
    if abs(weights[1]) * (high - low) >= abs(weights[0]) * (right - left):
        x = np.array([left, right])
        ax.plot(x, -(weights[0] * x + intercept) / weights[1], **style)
    else:
        y = np.array([low, high])
        ax.plot(-(weights[1] * y + intercept) / weights[0], y, **style)
