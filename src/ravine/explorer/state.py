"""What is explored, and the actions that change it: each makes another state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ravine._validate import UNLABELED, IntArray, check_choice, check_int, check_real
from ravine.data.memory import MemoryRows
from ravine.data.query import RowSet
from ravine.data.threads import Threads
from ravine.estimators.methods import CLUSTERERS
from ravine.exceptions import InvalidInputError
from ravine.tree.tree import ClusterTree
from ravine.view.fitted import columns_of, far_rows, rows_for_tree


@dataclass(frozen=True)
class State:
    """A tree with the names of its clusters, and rows marked with a class.

    `model` is the clusterer whose tree was edited; it has the kernel, where there is one. `action` and its
    `arguments` led here from the state before; the first state has none.
    """

    model: Any
    tree: ClusterTree
    names: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[int, int] = field(default_factory=dict)
    action: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def partial_labels(self, n_rows: int) -> IntArray | None:
        """Return the class of every marked row and -1 for all others; None without marks."""
        if not self.marks:
            return None
        y = np.full(n_rows, UNLABELED)
        y[list(self.marks)] = list(self.marks.values())
        return y


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
            rows = rows_for_tree(model, self.X)
            assert isinstance(rows, MemoryRows)  # the table of the page is in memory
            found = replace(rows, threads=Threads(self.n_jobs))
            # the map is kept, so that its id stays its own
            self._of_map[id(feature_map)] = feature_map, found
        return self._of_map[id(feature_map)][1]

    def far(self, model: Any) -> IntArray:
        """Return the rows far from all others, by the rule of a model; kept for the last model."""
        if self._far[0] is not model:
            self._far = model, np.flatnonzero(far_rows(model, columns_of(model, self.X, self.of(model))))
        return self._far[1]

    def leave_out_far(self, model: Any) -> tuple[MemoryRows, RowSet]:
        """Return the rows in the space of a model and in the user's columns; far rows weigh nothing."""
        rows, far = self.of(model), self.far(model)
        if len(far):
            weights = np.ones(self.n_rows)
            weights[far] = 0.0
            rows = replace(rows, weights=weights)
        return rows, columns_of(model, self.X, rows, rows.weights)


# --- actions: each takes a state, the rows and its own arguments, after `check_arguments` ---


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

    Rows that are marked with classes guide the splits.
    """
    make: Any = CLUSTERERS[method]
    estimator = make(n_clusters, kernel=kernel, n_jobs=rows.n_jobs)
    y = state.partial_labels(rows.n_rows)
    if node == 0:
        model = estimator.fit(rows.X, y)
        model.set_params(n_jobs=None)
        names = None if state.tree.mapped else state.tree.feature_names
        tree = replace(model.tree_, feature_names=model.tree_.feature_names or names)
        return _with_tree(state, rows, tree, model)
    if kernel is not None:
        raise InvalidInputError("a kernel applies to the whole tree: choose the root to split with a kernel")
    if state.tree.mapped:  # components of a kernel are not scaled
        estimator.set_params(standardize=False)
    return _with_tree(state, rows, state.tree.resplit(node, estimator, rows.of(state.model), y=y))


def move(state: State, rows: Rows, *, node: int, distance: float) -> State:
    """Move the threshold of a split."""
    return _with_tree(state, rows, state.tree.move(node, distance, rows.of(state.model)))


def merge(state: State, rows: Rows, *, a: int, b: int) -> State:
    """Make one cluster of two, which keeps the name of the first."""
    return _with_tree(state, rows, state.tree.merge(a, b), keep=a)


def prune(state: State, rows: Rows, *, node: int) -> State:
    """Remove everything below a node."""
    return _with_tree(state, rows, state.tree.prune(node))


def cut(state: State, rows: Rows, *, n_clusters: int) -> State:
    """Keep the first splits only."""
    return _with_tree(state, rows, state.tree.cut(n_clusters))


def rename(state: State, rows: Rows, *, label: int, name: str) -> State:
    """Give a cluster a name; an empty one removes it."""
    if label not in state.tree.label[state.tree.leaves]:
        raise InvalidInputError(f"there is no cluster {label!r}")
    names = {k: v for k, v in {**state.names, label: name.strip()}.items() if v}
    return replace(state, names=names)


def mark(state: State, rows: Rows, *, numbers: Sequence[int], label: int) -> State:
    """Mark rows with a class that guides the next splits; -1 takes marks away."""
    marks = {**state.marks, **dict.fromkeys(sorted(numbers), label)}
    return replace(state, marks={i: k for i, k in marks.items() if k != UNLABELED})


ACTIONS: dict[str, Callable[..., State]] = {
    action.__name__: action for action in (split, move, merge, prune, cut, rename, mark)
}


def _with_tree(
    state: State, rows: Rows, tree: ClusterTree, model: Any = None, keep: int | None = None
) -> State:
    """Return a state with another tree, in which clusters that stay the same keep their name.

    These are the ones whose rows are still one whole cluster. After a merge of cluster `keep` with another,
    the new cluster counts as the same as `keep`.
    """
    after = replace(state, model=model or state.model, tree=tree)
    if not state.names:
        return after
    old, new = (one.tree.route(rows.of(one.model)) for one in (state, after))
    pairs = np.unique(np.stack([old, new], axis=1), axis=0).tolist()
    befores, afters = [a for a, _ in pairs], [b for _, b in pairs]
    same = {a: b for a, b in pairs if befores.count(a) == 1 and (afters.count(b) == 1 or a == keep)}
    return replace(after, names={same[k]: name for k, name in state.names.items() if k in same})


# --- what comes from the page or from a file is checked before it is used ---


def check_arguments(action: Any, arguments: Any, n_rows: int) -> dict[str, Any]:
    """Return the arguments of an action, with its defaults; refuse what it does not take."""
    if action not in tuple(ACTIONS):
        raise InvalidInputError(f"there is no action {action!r}; there are {', '.join(ACTIONS)}, undo, redo")
    known = {
        name: one
        for name, one in signature(ACTIONS[action]).parameters.items()
        if one.kind is Parameter.KEYWORD_ONLY
    }
    needed = {name for name, one in known.items() if one.default is one.empty}
    if not isinstance(arguments, dict) or not needed <= set(arguments) <= set(known):
        raise InvalidInputError(f"{action} takes the arguments {', '.join(known)}, got {arguments!r}")
    given = {name: arguments.get(name, one.default) for name, one in known.items()}
    return {name: check_value(name, value, n_rows) for name, value in given.items()}


def check_value(name: str, value: Any, n_rows: int) -> Any:
    """Return the value of an argument, which is checked by its name."""
    if name == "method":
        return check_choice(name, value, tuple(CLUSTERERS))
    if name == "kernel":  # a fit knows which kernels there are; a function could not be repeated
        if value is not None and not isinstance(value, str):
            raise InvalidInputError(f"a kernel is a name, got {value!r}")
    elif name == "n_clusters":
        return value if value == "auto" else check_int(name, value, 1, or_else='"auto"')
    elif name == "distance":
        return check_real(name, value, -np.inf)
    elif name == "name":
        if not isinstance(value, str):
            raise InvalidInputError(f"a name is a text, got {value!r}")
    elif name == "numbers":
        if not isinstance(value, list) or not all(type(i) is int and 0 <= i < n_rows for i in value):
            raise InvalidInputError(f"rows are given as a list of numbers from 0 to {n_rows - 1}")
    else:
        return check_int(name, value, UNLABELED if name == "label" else 0)
    return value
