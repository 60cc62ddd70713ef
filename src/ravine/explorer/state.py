"""What is explored, and the actions that change it: each makes another state, and Python that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ravine._validate import FloatArray, IntArray
from ravine.data.memory import MemoryRows
from ravine.data.threads import Threads
from ravine.estimators.catalog import CLUSTERERS
from ravine.estimators.partial_labels import UNLABELED
from ravine.exceptions import InvalidInputError
from ravine.tree.tree import ClusterTree
from ravine.view.fitted import columns_of, far_rows, rows_for_tree
from ravine.view.palette import check_colors

KERNELS = ("rbf", "diffusion", "polynomial", "cosine", "laplacian")
MAX_NAME = 80  # characters of a cluster's name


@dataclass(frozen=True)
class State:
    """A tree with the names and colors of its clusters, rows marked with a class, and rows set aside.

    `model` is the clusterer whose tree was edited; it has the kernel, where there is one. `code` are the
    lines of Python that led here from the state before, and `imports` the estimators that they name.
    """

    model: Any
    tree: ClusterTree
    names: Mapping[int, str] = field(default_factory=dict)
    colors: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[int, int] = field(default_factory=dict)
    aside: tuple[int, ...] = ()
    code: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    def partial_labels(self, n_rows: int) -> IntArray | None:
        """Return the class of every marked row and -1 for all others; None without marks."""
        if not self.marks:
            return None
        y = np.full(n_rows, UNLABELED)
        y[list(self.marks)] = list(self.marks.values())
        return y

    def weights(self, n_rows: int) -> FloatArray | None:
        """Return 0 for the rows that were set aside and 1 for all others; None where there are none."""
        if not self.aside:
            return None
        w = np.ones(n_rows)
        w[list(self.aside)] = 0.0
        return w


class Rows:
    """The rows that are explored, as given and in the space of a model's tree."""

    def __init__(self, X: Any, n_jobs: int = 1) -> None:
        self.X, self.n_jobs = X, n_jobs
        self._of_map: dict[int, tuple[Any, MemoryRows]] = {}
        self._far: tuple[Any, IntArray] = (None, np.zeros(0, dtype=np.int64))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def of(self, model: Any) -> MemoryRows:
        """Return the rows in the space of a model: mapped once for each kernel."""
        feature_map = model.feature_map_
        if id(feature_map) not in self._of_map:
            found = rows_for_tree(model, self.X)
            found = replace(found, threads=Threads(self.n_jobs)) if isinstance(found, MemoryRows) else found
            # the map is kept, so that its id stays its own
            self._of_map[id(feature_map)] = feature_map, found
        return self._of_map[id(feature_map)][1]

    def far(self, model: Any) -> IntArray:
        """Return the rows far from all others, by the rule of a model; kept for the last model."""
        if self._far[0] is not model:
            self._far = model, np.flatnonzero(far_rows(model, columns_of(model, self.X, self.of(model))))
        return self._far[1]

    def counted(self, state: State) -> FloatArray | None:
        """Return 0 for the rows that are far from all others or set aside, and 1 for the rest.

        None where all rows count, or where none would.
        """
        aside = {*self.far(state.model).tolist(), *state.aside}
        return replace(state, aside=tuple(aside)).weights(self.n_rows) if len(aside) < self.n_rows else None

    def weighted(self, model: Any, weights: FloatArray | None) -> MemoryRows:
        """Return the rows in the space of a model with weights of their own."""
        rows = self.of(model)
        if weights is None:
            return rows
        is_array = isinstance(rows, MemoryRows)
        return replace(rows, weights=weights) if is_array else rows_for_tree(model, self.X, weights)


def begin(model: Any, code: Sequence[str]) -> State:
    """Return the first state: a fitted model, and how it came about."""
    lines = (*code, "tree = model.tree_", *_mapped_rows(model.tree_))
    return State(model, model.tree_, code=lines, imports=_class_of(model))


def _mapped_rows(tree: ClusterTree) -> list[str]:
    """Return the Python that maps the rows, where the tree splits the feature space of a kernel."""
    return ["rows = rows_for_tree(model, X)  # in the feature space of the kernel"] if tree.mapped else []


def _class_of(model: Any) -> tuple[str, ...]:
    return (type(model).__name__,)


# --- actions: each takes a state, the rows and its own arguments ---


def split(
    state: State,
    rows: Rows,
    *,
    node: int,
    method: str = "MinimumDensity",
    n_clusters: int | str = 2,
    kernel: str | None = None,
) -> State:
    """Grow everything below a node again with a method; at the root, with a kernel as well.

    Rows that are marked with classes guide the splits, and rows that are set aside have no influence on them.
    """
    estimator, text = make_estimator(method, n_clusters, kernel)
    estimator.set_params(n_jobs=rows.n_jobs)
    y, w = state.partial_labels(rows.n_rows), state.weights(rows.n_rows)
    given = ("" if y is None else ", y=y") + ("" if w is None else ", sample_weight=w")
    if node == 0:
        model = estimator.fit(rows.X, y, sample_weight=w)
        model.set_params(n_jobs=None)
        lines = [f"model = {text}.fit(X{given})", "tree = model.tree_", *_mapped_rows(model.tree_)]
        names = None if state.tree.mapped else state.tree.feature_names
        tree = replace(model.tree_, feature_names=model.tree_.feature_names or names)
        return _followed(replace(state, model=model), rows, tree, lines, _class_of(model), before=state)
    if kernel is not None:
        raise InvalidInputError("a kernel applies to the whole tree: choose the root to split with a kernel")
    data = "X"
    if state.tree.mapped:  # components of a kernel are not scaled
        estimator.set_params(standardize=False)
        text = text[:-1] + ", standardize=False)"
        data = "rows" if w is None else "rows_for_tree(model, X, w)"
        given = given.replace(", sample_weight=w", "")
    tree = state.tree.resplit(node, estimator, rows.weighted(state.model, w), y=y)
    line = f"tree = tree.resplit({node}, {text}, {data}{given})"
    return _followed(state, rows, tree, [line], _class_of(estimator))


def make_estimator(method: str, n_clusters: int | str, kernel: str | None) -> tuple[Any, str]:
    """Return a clusterer and the Python that makes it."""
    if method not in CLUSTERERS:
        raise InvalidInputError(f"method has to be one of {', '.join(CLUSTERERS)}, got {method!r}")
    if kernel is not None and kernel not in KERNELS:
        raise InvalidInputError(f"kernel has to be one of {', '.join(KERNELS)}, got {kernel!r}")
    options: dict[str, Any] = {} if kernel is None else {"kernel": kernel}
    words = [repr(n_clusters), *(f"{name}={value!r}" for name, value in options.items())]
    return CLUSTERERS[method](n_clusters, **options), f"{method}({', '.join(words)})"


def move(state: State, rows: Rows, *, node: int, distance: float) -> State:
    """Move the threshold of a split."""
    tree = state.tree.move(node, distance, rows.of(state.model))
    data = "rows" if state.tree.mapped else "X"
    return _followed(state, rows, tree, [f"tree = tree.move({node}, {distance!r}, {data})"])


def merge(state: State, rows: Rows, *, a: int, b: int) -> State:
    """Make one cluster of two, which keeps the name of the first."""
    return _followed(state, rows, state.tree.merge(a, b), [f"tree = tree.merge({a}, {b})"], keep=a)


def prune(state: State, rows: Rows, *, node: int) -> State:
    """Remove everything below a node."""
    return _followed(state, rows, state.tree.prune(node), [f"tree = tree.prune({node})"])


def cut(state: State, rows: Rows, *, n_leaves: int) -> State:
    """Keep the first splits only."""
    return _followed(state, rows, state.tree.cut(n_leaves), [f"tree = tree.cut({n_leaves})"])


def rename(state: State, rows: Rows, *, label: int, name: str) -> State:
    """Give a cluster a name; an empty one removes it."""
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise InvalidInputError(f"a name has at most {MAX_NAME} characters, got {name!r}")
    names = {k: v for k, v in {**state.names, _known(state, label): name.strip()}.items() if v}
    return replace(state, names=names, code=(f"names = {names!r}",), imports=())


def color(state: State, rows: Rows, *, label: int, color: str) -> State:
    """Give a cluster a color."""
    check_colors([color])
    colors = {**state.colors, _known(state, label): color}
    return replace(state, colors=colors, code=(f"colors = {colors!r}",), imports=())


def _known(state: State, label: int) -> int:
    if type(label) is not int or label not in state.tree.label[state.tree.leaves]:
        raise InvalidInputError(f"there is no cluster {label!r}")
    return label


def mark(state: State, rows: Rows, *, numbers: Sequence[int], label: int) -> State:
    """Mark rows with a class that guides the next splits; -1 takes marks away."""
    _check_numbers(numbers, rows)
    if type(label) is not int or label < UNLABELED:
        raise InvalidInputError(f"a class is a whole number of at least 0, or -1 for none, got {label!r}")
    marks = {i: k for i, k in {**state.marks, **dict.fromkeys(sorted(numbers), label)}.items() if k >= 0}
    lines = [] if state.marks else [f"y = np.full(X.shape[0], {UNLABELED})"]
    lines.append(f"y[{sorted(numbers)}] = {label}")
    return replace(state, marks=marks, code=tuple(lines), imports=())


def set_aside(state: State, rows: Rows, *, numbers: Sequence[int]) -> State:
    """Set rows aside, besides those that are: they get a label, but no influence. No rows take all back."""
    _check_numbers(numbers, rows)
    aside = tuple(sorted({*state.aside, *numbers})) if numbers else ()
    lines = ["w = np.ones(X.shape[0])"] if not (numbers and state.aside) else []
    lines += [f"w[{sorted(numbers)}] = 0"] if numbers else []
    return replace(state, aside=aside, code=tuple(lines), imports=())


def _check_numbers(numbers: Sequence[int], rows: Rows) -> None:
    if not all(type(i) is int and 0 <= i < rows.n_rows for i in numbers):
        raise InvalidInputError(f"rows have the numbers 0 to {rows.n_rows - 1}")


ACTIONS: dict[str, Callable[..., State]] = {
    action.__name__: action for action in (split, move, merge, prune, cut, rename, color, mark, set_aside)
}


def _followed(
    state: State,
    rows: Rows,
    tree: ClusterTree,
    lines: Sequence[str],
    imports: tuple[str, ...] = (),
    *,
    before: State | None = None,
    keep: int | None = None,
) -> State:
    """Return the state with another tree, in which clusters that stay the same keep their name and color."""
    before = before or state
    renumbered = _same_clusters(before, tree, rows, state.model, keep)
    names, colors = (
        {renumbered[k]: value for k, value in given.items() if k in renumbered}
        for given in (before.names, before.colors)
    )
    more = [f"names = {names!r}"] if names != before.names else []
    more += [f"colors = {colors!r}"] if colors != before.colors else []
    return replace(state, tree=tree, names=names, colors=colors, code=(*lines, *more), imports=imports)


def _same_clusters(
    before: State, tree: ClusterTree, rows: Rows, model: Any, keep: int | None
) -> dict[int, int]:
    """Return the new number of each old cluster whose rows are still one whole cluster.

    After a merge of cluster `keep` with another, the new cluster counts as the same as `keep`.
    """
    if not (before.names or before.colors):
        return {}
    old, new = before.tree.route(rows.of(before.model)), tree.route(rows.of(model))
    pairs = np.unique(np.stack([old, new], axis=1), axis=0).tolist()
    befores, afters = [a for a, _ in pairs], [b for _, b in pairs]
    return {a: b for a, b in pairs if befores.count(a) == 1 and (afters.count(b) == 1 or a == keep)}
