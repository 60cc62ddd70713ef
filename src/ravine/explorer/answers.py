"""What the page asks for: the tree, the map, one node, two methods side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ravine._validate import FloatArray, IntArray, check_int
from ravine.data.memory import MemoryRows
from ravine.data.query import RowSet
from ravine.estimators.methods import CLUSTERERS
from ravine.exceptions import InvalidInputError
from ravine.explorer.session import Session
from ravine.explorer.state import ACTIONS, KERNELS, State, check_arguments
from ravine.split.boundary import Hyperplane
from ravine.split.split import Split
from ravine.tree.edit import node_at_same_place
from ravine.tree.summary import Means, means_by_leaf, means_of
from ravine.tree.tree import ClusterTree
from ravine.view import palette
from ravine.view.density import NodeDensity, density_of
from ravine.view.explain import Explanation, explain_means
from ravine.view.facts import N_EXEMPLARS
from ravine.view.fitted import column_names, columns_of, scales
from ravine.view.row_map import MAP_ROWS, RowMap, map_rows

N_COLUMNS = 8  # columns that the page shows of a split or a cluster
N_PLACES = 601  # of a threshold that is dragged: finer than the pixels of its picture


class StateView:
    """One state with everything that is computed of it, each at its first use.

    Rows that are far from all others or set aside weigh nothing in it: they would hide the others.
    """

    def __init__(self, session: Session, state: State, row_map: RowMap) -> None:
        self.session, self.state, self.tree = session, state, state.tree
        self.weight = session.rows.counted(state)
        self.rows: MemoryRows = session.rows.weighted(state.model, self.weight)
        self.row_map = row_map.of(state.tree)

    def with_state(self, state: State) -> StateView:
        """Return the same for a state with the same tree and weights; what was computed stays."""
        other = copy(self)
        other.state = state
        return other

    @cached_property
    def leaf(self) -> IntArray:
        """The leaf of every row."""
        return self.tree.leaf_of(self.rows)

    @cached_property
    def columns(self) -> RowSet:
        """The rows in the user's columns."""
        return columns_of(self.state.model, self.session.rows.X, self.rows, self.weight)

    @cached_property
    def names(self) -> list[str]:
        """The names of these columns."""
        return column_names(self.state.model, self.session.names, self.columns, self.rows)

    @cached_property
    def means(self) -> Means:
        """The means of nodes and clusters in the user's columns."""
        if self.columns is self.rows:
            return means_of(self.tree, self.rows)
        return means_by_leaf(self.tree, self.columns, self.leaf)

    @cached_property
    def explained(self) -> Explanation:
        """What drives splits, and what sets clusters apart."""
        return explain_means(self.tree, self.means, self.names, surrogate=self.columns is not self.rows)

    def members(self, node: int) -> IntArray:
        """Return the rows that reach a node."""
        return np.flatnonzero(np.isin(self.leaf, self.tree.leaves_below(node)))

    def along(self, node: int, split: Split) -> tuple[FloatArray, FloatArray]:
        """Return the signed distances of the rows of a split, and their weights."""
        part = self.rows.select(self.members(node))
        weight = part.map(lambda block: block.weights)
        # in a node whose rows are all set aside, all count
        return split.boundary.signed_distance(part), weight if weight.any() else np.ones_like(weight)


class Answers:
    """Answers about the session; what is computed of a state is kept until another one is shown."""

    def __init__(
        self,
        session: Session,
        row_ids: Sequence[Any] | None = None,
        title: str = "",
        row_html: Callable[[int], str] | None = None,
    ) -> None:
        self.session, self.row_ids, self.title, self.row_html = session, row_ids, title, row_html
        self._last: StateView | None = None
        self._map: tuple[MemoryRows, RowMap] | None = None

    def shown(self) -> StateView:
        """Return the present state with what is known of it."""
        with self.session.lock:
            state, last = self.session.state, self._last
            if last is None or last.tree is not state.tree or last.state.aside != state.aside:
                last = StateView(self.session, state, self.row_map(state))
            elif last.state is not state:  # names, colors and marks change nothing that is computed
                last = last.with_state(state)
            self._last = last
            return last

    def row_map(self, state: State) -> RowMap:
        """Return the map of a model's rows, which stays the same while its tree is edited."""
        rows, first = self.session.rows, self.session.states[0]
        own = rows.of(state.model)
        if self._map is None or self._map[0] is not own:
            weight = rows.counted(state)
            counted = rows.weighted(state.model, weight)
            columns = columns_of(state.model, rows.X, counted, weight)
            found = map_rows(
                state.tree,
                counted,
                first.tree.route(rows.of(first.model)),
                standardize=scales(state.model),
                columns=None if columns is counted else columns,
            )
            self._map = own, found
        return self._map[1]

    def name_row(self, number: int) -> str:
        """Return the id of a row, or its number."""
        return str(number if self.row_ids is None else self.row_ids[number])

    # --- the whole ---

    def summary(self) -> dict[str, Any]:
        """Return the tree, its clusters and the script."""
        with self.session.lock:
            shown, session = self.shown(), self.session
            state, tree = shown.state, shown.tree
            return {
                "version": session.version,
                "title": self.title,
                "n_rows": session.rows.n_rows,
                "undo": session.position > 0,
                "redo": session.position < len(session.states) - 1,
                "code": session.code(),
                "script": session.script(),
                "nodes": [_node(tree, shown.means.weight, node) for node in range(tree.n_nodes)],
                "leaves": tree.leaves.tolist(),
                "most_clusters": session.most_clusters,
                "clusters": _clusters(shown),
                "leaf": shown.row_map.leaf.tolist(),
                "tags": shown.row_map.tags(tree.label[shown.row_map.leaf]),
                "marks": [[int(i), k] for i, k in state.marks.items()],
                "aside": list(state.aside),
                "far": session.rows.far(state.model).tolist(),
                "mapped": tree.mapped,
                "methods": list(CLUSTERERS),
                "kernels": KERNELS,
            }

    def places(self) -> dict[str, Any]:
        """Return the rows of the map."""
        row_map = self.shown().row_map
        (x, y), half = row_map.frame
        return {
            "points": row_map.points.tolist(),
            "numbers": row_map.numbers.tolist(),
            "ids": [self.name_row(number) for number in row_map.numbers.tolist()],
            "axes": row_map.axes,
            "frame": {"x": float(x), "y": float(y), "half": half},
        }

    # --- one node ---

    def node(self, node: int) -> dict[str, Any]:
        """Return one node: its density and drivers, or what sets its cluster apart, and typical rows."""
        shown = self.shown()
        split = shown.tree.splits[_known_node(shown.tree, node)]
        if split is None:
            traits = shown.explained.clusters[shown.tree.label[node]].traits[:N_COLUMNS]
            columns = [t.feature for t in traits]
            found: dict[str, Any] = {
                "traits": [[t.feature, t.mean, t.rest_mean, t.difference] for t in traits]
            }
        else:
            drivers = shown.explained.splits[node].drivers[:N_COLUMNS]
            columns = [d.feature for d in drivers]
            found = {
                "drivers": [[d.feature, d.left_mean, d.right_mean, d.contribution] for d in drivers],
                **_split(shown, node, split),
            }
        return {"node": node, **found, "exemplars": self._exemplars(shown, node, columns)}

    def _exemplars(self, shown: StateView, node: int, columns: list[str]) -> dict[str, Any]:
        """Return the rows of a node that are nearest to its mean, with the columns that matter there."""
        members = shown.members(node)
        members = members[:: max(1, -(-len(members) // MAP_ROWS))]  # of many, some
        values = shown.columns.select(members).map(lambda block: block.dense())
        own = shown.means.standardization
        distance = (((values - shown.means.mean[node]) * own.inverse_scale) ** 2).sum(axis=1)
        nearest = np.argsort(distance, kind="stable")[:N_EXEMPLARS]
        at, numbers = [shown.names.index(name) for name in columns], members[nearest].tolist()
        cells = values[nearest][:, at].tolist()
        return {
            "columns": columns,
            "rows": [[i, self.name_row(i), *own] for i, own in zip(numbers, cells, strict=True)],
            "html": None if self.row_html is None else [self.row_html(number) for number in numbers],
        }

    # --- two methods ---

    def compare(self, node: int, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
        """Return what two methods would make of a node, and how much they agree."""
        with self.session.lock:
            shown, rows, found, labels = self.shown(), self.session.rows, [], []
            splits = [
                check_arguments("split", {"node": node, **wanted}, rows.n_rows) for wanted in (first, second)
            ]
            members = shown.members(_known_node(shown.tree, node))
            for split in splits:
                state = ACTIONS["split"](shown.state, rows, **split)
                other = StateView(self.session, state, self.row_map(state))
                label = other.tree.label[other.leaf]
                labels.append(label[members])
                at = node_at_same_place(shown.tree, other.tree, node)
                found.append(_candidate(other, at, label[shown.row_map.numbers]))
            return {"candidates": found, "agreement": float(adjusted_rand_score(*labels))}


def _known_node(tree: ClusterTree, node: int) -> int:
    if check_int("node", node, 0) >= tree.n_nodes:
        raise InvalidInputError(f"the tree has nodes 0 to {tree.n_nodes - 1}, got {node}")
    return node


def _split(shown: StateView, node: int, split: Split) -> dict[str, Any]:
    """Return the sides of a split, its density and its line on the map."""
    sides, line = shown.explained.splits[node], shown.row_map.lines.get(node)
    distance, weight = shown.along(node, split)
    curve = density_of(split, distance, weight)
    return {
        "quality": split.quality,
        "p": None if split.evidence is None else split.evidence.p_value,
        "left": sides.left_weight,
        "right": sides.right_weight,
        "curve": _curve(curve),
        "places": _places(curve, distance, weight),
        "movable": isinstance(split.boundary, Hyperplane),
        "line": None if line is None else [*line.normal.tolist(), line.intercept],
    }


def _places(curve: NodeDensity, distance: FloatArray, weight: FloatArray) -> dict[str, Any]:
    """Return what a threshold at each place would divide: the weight on its left, and the fall of the curve.

    Places have the digits of a move.
    """
    order = np.argsort(distance, kind="stable")
    at = np.array([float(f"{x:.6g}") for x in np.linspace(curve.points[0], curve.points[-1], N_PLACES)])
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    left = below[np.searchsorted(distance[order], at, side="right")]
    here = np.interp(at, curve.points, curve.density)
    beside = np.minimum(np.maximum.accumulate(here), np.maximum.accumulate(here[::-1])[::-1])
    quality = 1.0 - here / np.maximum(beside, np.finfo(float).tiny)
    return {"at": at.tolist(), "left": left.tolist(), "quality": quality.round(3).tolist()}


def _candidate(other: StateView, node: int, labels: IntArray) -> dict[str, Any]:
    """Return the first split that a method would make of a node, the sizes of its clusters, and the map."""
    tree, split = other.tree, other.tree.splits[node]
    return {
        "sizes": other.means.weight[tree.leaves_below(node)].tolist(),
        "quality": None if split is None else split.quality,
        "curve": None if split is None else _curve(density_of(split, *other.along(node, split))),
        "labels": labels.tolist(),
        "clusters": _clusters(other),
    }


def _curve(curve: NodeDensity) -> dict[str, Any]:
    return {"points": curve.points.tolist(), "density": curve.density.tolist()}


def _node(tree: ClusterTree, weight: FloatArray, node: int) -> dict[str, Any]:
    split = tree.splits[node]
    return {
        "parent": int(tree.parent[node]),
        "left": int(tree.left[node]),
        "right": int(tree.right[node]),
        "label": int(tree.label[node]),
        "weight": float(weight[node]),
        "quality": None if split is None else split.quality,
    }


def _clusters(shown: StateView) -> list[dict[str, Any]]:
    """Return every cluster with its name, color and size, and what sets it apart in a few words."""
    found = []
    for label in np.unique(shown.tree.label[shown.tree.leaves]).tolist():
        color = shown.state.colors.get(label, palette.cluster(label))
        traits = [trait for trait in shown.explained.clusters[label].traits[:2] if trait.difference]
        found.append(
            {
                "label": label,
                "name": shown.state.names.get(label, ""),
                "color": color,
                "text": palette.text_on(color),
                "weight": float(shown.means.cluster_weight[label]),
                "words": ", ".join(f"{'high' if t.difference > 0 else 'low'} {t.feature}" for t in traits),
            }
        )
    return found
