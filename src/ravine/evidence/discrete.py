"""Splits that one discrete column makes: the gap between its values is no valley, however deep it is.

With a given number of clusters such a split is made and noted. With "auto" it is not: the rows are searched
again without the column, so that a group which other columns show as well is still found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ravine._validate import FloatArray, IntArray
from ravine.data.node import Node, Opened, sample_rows
from ravine.data.principal import FULL_COVARIANCE
from ravine.data.query import Query
from ravine.data.sample import Sample
from ravine.evidence.margins import (
    FEW_VALUES,
    SETTLED_DIGITS,
    BoolArray,
    Variable,
    discrete_variables,
    explained,
)
from ravine.evidence.orientation import orientation
from ravine.evidence.significance import SignificanceTest
from ravine.split.search import BaseMethod, search
from ravine.split.split import MADE_BY, Split

DISCRETE = "discrete columns"  # the purpose of the random numbers of that sample
CAUSE_ROWS = 2048  # rows of the sample from which the cause of a split is found
EXPLAINED = 0.75  # share of a split that the values of a discrete column have to explain to be its cause
AGREED = 0.75  # share of a split that has to be found again without its cause to be more than that column


@dataclass(frozen=True)
class DiscreteTable:
    """Sampled rows, their weights, and the variables among their columns that are discrete."""

    rows: FloatArray
    weights: FloatArray
    variables: Sequence[Variable]

    @property
    def columns(self) -> IntArray:
        """The columns of all variables."""
        return np.array([column for one in self.variables for column in one.columns], dtype=np.int64)

    def right_of(self, split: Split) -> BoolArray:
        """Return which rows are on the right of a split."""
        return np.asarray(split.boundary.signed_distance_of(self.rows) > 0)

    def find_cause(self, split: Split) -> Variable | None:
        """Return the variable whose values explain most of a split, if one does."""
        if not self.variables:
            return None
        right = self.right_of(split)
        shares = [
            round(explained(v.levels_of(self.rows), self.weights, right), SETTLED_DIGITS)
            for v in self.variables
        ]
        best = int(np.argmax(shares))
        return self.variables[best] if shares[best] >= EXPLAINED else None


def discrete_samples(node: Node) -> list[Sample]:
    """Return the sample that `discrete_table` asks for, if any."""
    return [node.sample_request(CAUSE_ROWS, DISCRETE)] if node.n_features <= FULL_COVARIANCE else []


def discrete_table(opened: Opened) -> Query[DiscreteTable]:
    """Return the discrete variables of an opened node; at most one sample.

    None are looked for above 256 columns, or if the few known rows leave no column that may be discrete.
    """
    node, own = opened.node, opened.node.standardization
    if node.n_features > FULL_COVARIANCE or not _may_have_discrete(opened):
        return DiscreteTable(np.empty((0, node.n_features)), np.empty(0), ())
    rows, weights = yield from sample_rows(node, CAUSE_ROWS, DISCRETE)
    columns = orientation(own.apply(rows), np.flatnonzero(own.varies)).order
    return DiscreteTable(rows, weights, discrete_variables(rows, weights, columns))


def _may_have_discrete(opened: Opened) -> bool:
    (rows, _), varies = opened.few, opened.node.standardization.varies
    largest = np.maximum(np.abs(opened.low), np.abs(opened.high))
    return sparse.issparse(rows) or may_be_discrete(rows[:, varies], largest[varies])


def may_be_discrete(rows: FloatArray, largest: FloatArray) -> bool:
    """Return whether some column may have few values, from a few rows; cheap, because every node asks.

    `largest` is the largest absolute value of every column, among all rows.

    >>> rows, largest = np.arange(40.0).reshape(20, 2), np.array([38.0, 39.0])
    >>> may_be_discrete(rows, largest), may_be_discrete(rows // 8, largest)
    (False, True)
    """
    ordered = np.sort(rows[: 4 * FEW_VALUES + 4].T, axis=1)
    unit = largest * 10.0**-SETTLED_DIGITS  # at least that of `settled`
    different = (np.diff(ordered, axis=1) > unit[:, None]).sum(axis=1) + 1
    return bool((different <= FEW_VALUES).any())


def find_cause(opened: Opened, split: Split) -> Query[Variable | None]:
    """Return the discrete variable whose values explain most of a split, if one does."""
    return (yield from discrete_table(opened)).find_cause(split)


def name_cause(split: Split, variable: Variable) -> Split:
    """Return the split with the number of the column that makes it, the heaviest of its variable."""
    columns = variable.columns
    column = columns[int(np.argmax(np.abs(split.direction[columns])))]
    return replace(split, facts={**split.facts, MADE_BY: float(column)})


def judge_split(opened: Opened, split: Split, test: SignificanceTest, method: BaseMethod) -> Query[Split]:
    """Test a split, or the best one that is left without the discrete columns that make it.

    A split that is not significant may hide another one: the gaps between the values of discrete columns hide
    valleys of the other columns, which are then searched and tested alone. `method` is that of the test, with
    the neighbor graph of the node.
    """
    table = yield from discrete_table(opened)
    made_by = table.find_cause(split)
    found: Split | None = split
    if made_by is not None:
        opened, found = yield from beyond_one_column(opened, split, made_by, table, method)
        table = yield from discrete_table(opened)
        if found is None:
            return name_cause(split, made_by)
    assert found is not None
    found = yield from test.run(opened.node, found)
    if found.is_significant(test.level) or not len(table.columns):
        return found
    masked, other = yield from search(leave_out(opened.node, table.columns), method)
    if other is None:
        return found
    other = yield from test.run(masked.node, other)
    return other if other.is_significant(test.level) else found


def beyond_one_column(
    opened: Opened, split: Split, made_by: Variable, table: DiscreteTable, method: BaseMethod
) -> Query[tuple[Opened, Split | None]]:
    """Return the node without the variable that makes a split, and the best split that is left, if any.

    If that is another split, and another discrete variable makes it, all of them are left out. A split that
    the other columns find again is more than the gap of one column. Costs at most two searches.
    """
    right = table.right_of(split)
    for columns in (made_by.columns, table.columns):
        masked, other = yield from search(leave_out(opened.node, columns), method)
        if other is None:
            continue
        if agree(table.weights, right, table.right_of(other)) or not (yield from find_cause(masked, other)):
            return masked, other
    return opened, None


def agree(weights: FloatArray, right: BoolArray, again: BoolArray) -> bool:
    """Return whether two divisions of the rows in two sides are nearly the same."""
    return explained(again.astype(np.int64), weights, right) >= AGREED


def leave_out(node: Node, columns: IntArray) -> Node:
    """Return the node as if some columns were constant."""
    root = node.root_standardization or node.standardization
    inverse = root.inverse_scale.copy()
    inverse[columns] = 0.0
    return replace(
        node, root_standardization=replace(root, inverse_scale=inverse), measured=None, deviation=np.nan
    )
