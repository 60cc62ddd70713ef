"""Splits that one discrete column makes: the gap between its values is no valley, however deep it is.

With a given number of clusters such a split is made and noted. With "auto" it is not: the rows are searched
again without the column, so that a group which other columns show as well is still found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node, sample_rows
from ravine.data.principal import FULL_COVARIANCE
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.evidence.margins import (
    SETTLED_DIGITS,
    BoolArray,
    Variable,
    discrete_variables,
    explained,
    may_be_discrete,
)
from ravine.evidence.orientation import orientation
from ravine.evidence.significance import SignificanceTest
from ravine.split.search import Method, search
from ravine.split.split import MADE_BY, Split

DISCRETE = "discrete columns"  # the purpose of the random numbers of that sample
CAUSE_ROWS = 2048  # rows of the sample from which the cause of a split is found
EXPLAINED = 0.75  # share of a split that the values of a discrete column have to explain to be its cause
AGREED = 0.75  # share of a split that has to be found again without its cause to be more than that column


def cause(node: Node, split: Split) -> Query[Variable | None]:
    """Return the discrete variable whose values explain most of a split, if one does; at most one sample.

    Above 256 columns no single one is looked for.
    """
    if node.n_features > FULL_COVARIANCE or not _may_have_discrete(node):
        return None
    rows, weights, variables = yield from _table(node)
    right = split.boundary.signed_distance_of(rows) > 0
    shares = [round(explained(v.levels_of(rows), weights, right), SETTLED_DIGITS) for v in variables]
    best = int(np.argmax(shares)) if shares else 0
    return variables[best] if shares and shares[best] >= EXPLAINED else None


def cause_samples(node: Node) -> list[Sample]:
    """Return the sample that `cause` asks for, if any."""
    return [node.sample_request(CAUSE_ROWS, DISCRETE)] if node.n_features <= FULL_COVARIANCE else []


def _table(node: Node) -> Query[tuple[FloatArray, FloatArray, list[Variable]]]:
    """Return sampled rows, their weights, and their discrete variables; asked for once per node."""
    if "discrete" not in node.memo:
        rows, weights = yield from sample_rows(node, CAUSE_ROWS, DISCRETE)
        own = node.standardization
        columns = orientation(own.apply(rows), np.flatnonzero(own.varies)).order
        node.memo["discrete"] = rows, weights, discrete_variables(rows, weights, columns)
    found: tuple[FloatArray, FloatArray, list[Variable]] = node.memo["discrete"]
    return found


def _may_have_discrete(node: Node) -> bool:
    """Return whether the few rows of an opened node leave a column that may be discrete."""
    (rows, _), varies = node.few, node.standardization.varies
    largest = np.abs(node.range).max(axis=0)
    return sparse.issparse(rows) or may_be_discrete(rows[:, varies], largest[varies])


def noted(split: Split, variable: Variable | None) -> Split:
    """Return the split with the number of the column that makes it, the heaviest of its variable."""
    assert variable is not None
    columns = variable.columns
    column = columns[int(np.argmax(np.abs(split.direction[columns])))]
    return replace(split, facts={**split.facts, MADE_BY: float(column)})


def tested(node: Node, split: Split, test: SignificanceTest) -> Query[Split]:
    """Test a split, or the best one that is left without the discrete columns that make it.

    A split that is not significant may hide another one: the gaps between the values of discrete columns hide
    valleys of the other columns, which are then searched and tested alone.
    """
    made_by = yield from cause(node, split)
    found: Split | None = split
    if made_by is not None:
        node, found = yield from beyond_one_column(node, split, made_by, test.method)
    if found is None:
        return noted(split, made_by)
    found = yield from test.run(node, found)
    columns = yield from _discrete_columns(node)
    if found.is_significant(test.level) or not len(columns):
        return found
    node, other = yield from search(without(node, columns), test.method)
    if other is None:
        return found
    other = yield from test.run(node, other)
    return other if other.is_significant(test.level) else found


def beyond_one_column(
    node: Node, split: Split, made_by: Variable, method: Method
) -> Query[tuple[Node, Split | None]]:
    """Return the node without the variable that makes a split, and the best split that is left, if any.

    If that is another split, and another discrete variable makes it, all of them are left out. A split that
    the other columns find again is more than the gap of one column. Costs at most two searches.
    """
    rows, weights, _ = yield from _table(node)
    right = split.boundary.signed_distance_of(rows) > 0
    every = yield from _discrete_columns(node)
    for columns in (made_by.columns, every):
        masked, other = yield from search(without(node, columns), method)
        if other is None:
            continue
        again = other.boundary.signed_distance_of(rows) > 0
        if agreed(weights, right, again) or (yield from cause(masked, other)) is None:
            return masked, other
    return node, None


def _discrete_columns(node: Node) -> Query[IntArray]:
    """Return the columns of all discrete variables; none above 256 columns."""
    if node.n_features > FULL_COVARIANCE or not _may_have_discrete(node):
        return np.zeros(0, dtype=np.int64)
    _, _, variables = yield from _table(node)
    return np.concatenate([np.zeros(0, dtype=np.int64), *(variable.columns for variable in variables)])


def agreed(weights: FloatArray, right: BoolArray, again: BoolArray) -> bool:
    """Return whether two divisions of the rows in two sides are nearly the same."""
    return explained(again.astype(np.int64), weights, right) >= AGREED


def without(node: Node, columns: IntArray) -> Node:
    """Return the node as if some columns were constant."""
    root = node.root or node.standardization
    inverse = root.inverse_scale.copy()
    inverse[columns] = 0.0
    return replace(node, root=replace(root, inverse_scale=inverse), measured=None, deviation=np.nan, memo={})
