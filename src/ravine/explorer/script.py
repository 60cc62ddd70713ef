"""The Python that repeats the actions of a session: made of checked values, never of stored text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ravine._validate import UNLABELED
from ravine.estimators.methods import CLUSTERERS
from ravine.explorer.state import State
from ravine.tree.tree import ClusterTree


def code_of(start: Sequence[str], states: Sequence[State]) -> list[list[str]]:
    """Return the lines of every state: the first makes X and the model, the others follow by actions."""
    first = [*start, "tree = model.tree_", *_mapped_rows(states[0].tree)]
    return [first, *(_lines(before, after) for before, after in pairwise(states))]


def script_of(start: Sequence[str], states: Sequence[State]) -> str:
    """Return Python that, run alone, gives the labels of the last state."""
    code = [line for lines in code_of(start, states) for line in lines]
    used = [name for name in CLUSTERERS if re.search(rf"(?<![.\w]){name}\(", "\n".join(code))]
    lines = ['"""Made with ravine explore: the clusters of these rows, step by step."""', ""]
    lines += ["import numpy as np", "", "import ravine"]
    lines += [f"from ravine import {', '.join(used)}"] if used else []
    if any(state.tree.mapped for state in states):
        lines.append("from ravine.view.fitted import rows_for_tree")
    labels = "tree.route(rows)" if states[-1].tree.mapped else "tree.predict(X)"
    lines += ["", *code, "", f"labels = {labels}"]
    lines += ['with open("labels.csv", "x") as file:  # "x": a file that exists is not overwritten']
    return "\n".join([*lines, '    np.savetxt(file, labels, fmt="%d")', ""])


def _lines(before: State, after: State) -> list[str]:
    """Return the lines of one action."""
    given, rows = after.arguments, "rows" if before.tree.mapped else "X"
    match after.action:
        case "split":
            lines = _split_lines(before, after, rows)
        case "move":
            lines = [f"tree = tree.move({given['node']}, {given['distance']!r}, {rows})"]
        case "merge" | "prune" | "cut":
            lines = [f"tree = tree.{after.action}({', '.join(map(str, given.values()))})"]
        case "mark":  # y begins with the first mark, so that scripts without marks do not have it
            lines = [] if before.marks else [f"y = np.full(X.shape[0], {UNLABELED})"]
            lines.append(f"y[{sorted(given['numbers'])}] = {given['label']}")
        case _:
            lines = []
    if after.action == "rename" or after.names != before.names:
        lines.append(f"names = {after.names!r}")
    return lines


def _split_lines(before: State, after: State, rows: str) -> list[str]:
    """Return the lines of a split, with the rows that resplit takes."""
    given = after.arguments
    words = [repr(given["n_clusters"])] + ([f"kernel={given['kernel']!r}"] if given["kernel"] else [])
    y = ", y=y" if before.marks else ""
    if given["node"] == 0:
        fit = f"model = {given['method']}({', '.join(words)}).fit(X{y})"
        return [fit, "tree = model.tree_", *_mapped_rows(after.tree)]
    if before.tree.mapped:  # components of a kernel are not scaled
        words.append("standardize=False")
    return [f"tree = tree.resplit({given['node']}, {given['method']}({', '.join(words)}), {rows}{y})"]


def _mapped_rows(tree: ClusterTree) -> list[str]:
    """Return the Python that maps the rows, where the tree splits the feature space of a kernel."""
    return ["rows = rows_for_tree(model, X)  # in the feature space of the kernel"] if tree.mapped else []
