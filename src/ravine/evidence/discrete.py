"""Splits that one discrete column makes: the gap between its values is no valley, however deep it is.

The rows are searched again without the column, so that a group which other columns show as well is still
found. With "auto" the gap itself is never a split; with a given number of clusters it is made, and noted,
where no valley is left.
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
    ROWS_PER_VALUE,
    SETTLED_DIGITS,
    BoolArray,
    explained,
    grouped,
    settled,
)
from ravine.evidence.significance import SignificanceTest
from ravine.split.search import BaseMethod, search
from ravine.split.split import MADE_BY, Split

DISCRETE = "discrete columns"  # the purpose of the random numbers of that sample
CAUSE_ROWS = 2048  # rows of the sample from which the cause of a split is found
EXPLAINED = 0.75  # share of a split that the values of a discrete column have to explain to be its cause
AGREED = 0.75  # share of a split that has to be found again without its cause to be more than that column


@dataclass(frozen=True)
class DiscreteVariable:
    """A column with few values, or indicator columns that exclude each other, and the level of every row."""

    columns: IntArray
    level: IntArray


@dataclass(frozen=True)
class DiscreteTable:
    """Sampled rows, their weights, and the variables among their columns that are discrete."""

    rows: FloatArray
    weights: FloatArray
    variables: Sequence[DiscreteVariable]

    @property
    def columns(self) -> IntArray:
        """The columns of all variables."""
        return np.array([column for one in self.variables for column in one.columns], dtype=np.int64)

    def right_of(self, split: Split) -> BoolArray:
        """Return which rows are on the right of a split."""
        return np.asarray(split.boundary.signed_distance_of(self.rows) > 0)

    def without(self, columns: IntArray) -> DiscreteTable:
        """Return the table without the variables of some columns."""
        return replace(self, variables=[v for v in self.variables if not np.isin(v.columns, columns).any()])

    def find_cause(self, split: Split) -> DiscreteVariable | None:
        """Return the variable whose values explain most of a split, if one does."""
        if not self.variables:
            return None
        right = self.right_of(split)
        shares = [round(explained(v.level, self.weights, right), SETTLED_DIGITS) for v in self.variables]
        best = int(np.argmax(shares))
        return self.variables[best] if shares[best] >= EXPLAINED else None


def discrete_samples(node: Node) -> list[Sample]:
    """Return the sample that `discrete_table` asks for, if any."""
    return [node.sample_request(CAUSE_ROWS, DISCRETE)] if node.n_features <= FULL_COVARIANCE else []


def discrete_table(opened: Opened) -> Query[DiscreteTable]:
    """Return the discrete variables of an opened node; at most one sample.

    None are looked for above 256 columns, or if the few known rows leave no column that may be discrete.
    """
    node = opened.node
    candidates = (
        _may_be_discrete(opened) if node.n_features <= FULL_COVARIANCE else np.zeros(0, dtype=np.int64)
    )
    if not len(candidates):
        return DiscreteTable(np.empty((0, node.n_features)), np.empty(0), ())
    rows, weights = yield from sample_rows(node, CAUSE_ROWS, DISCRETE)
    return DiscreteTable(rows, weights, discrete_variables(rows, weights, candidates))


def discrete_variables(rows: FloatArray, weights: FloatArray, columns: IntArray) -> list[DiscreteVariable]:
    """Return the discrete variables among some columns."""
    values, found = settled(rows[:, columns]), []
    for group in grouped(values, weights, np.arange(len(columns))):
        key, most = values[:, group[0]], float(FEW_VALUES)
        if (
            len(group) > 1
        ):  # indicators that exclude each other: in which of them a row differs from the first one
            key, most = (values[:, group] != values[0, group]) @ np.arange(1.0, len(group) + 1.0), np.inf
        levels, level = np.unique(key, return_inverse=True)
        if len(levels) <= min(most, float(weights.sum()) / ROWS_PER_VALUE):
            found.append(DiscreteVariable(columns[group], level))
    return found


def _may_be_discrete(opened: Opened) -> IntArray:
    """Return the columns that may have few values, from a few rows; cheap, because every node asks."""
    (rows, _), varies = opened.few, np.flatnonzero(opened.node.standardization.varies)
    if sparse.issparse(rows):
        return varies
    largest = np.maximum(np.abs(opened.low), np.abs(opened.high))
    return varies[few_values(rows[:, varies], largest[varies])]


def few_values(rows: FloatArray, largest: FloatArray) -> BoolArray:
    """Return which columns have few values in the first rows.

    `largest` is the largest absolute value of every column, among all rows.

    >>> rows, largest = np.arange(40.0).reshape(20, 2), np.array([38.0, 39.0])
    >>> few_values(rows, largest).tolist(), few_values(rows // 8, largest).tolist()
    ([False, False], [True, True])
    """
    ordered = np.sort(rows[: 4 * FEW_VALUES + 4].T, axis=1)
    unit = largest * 10.0**-SETTLED_DIGITS  # at least that of `settled`
    different = (np.diff(ordered, axis=1) > unit[:, None]).sum(axis=1) + 1
    return np.asarray(different <= FEW_VALUES)


def name_cause(split: Split, variable: DiscreteVariable) -> Split:
    """Return the split with the number of the column that makes it, the heaviest of its variable."""
    columns = variable.columns
    column = columns[int(np.argmax(np.abs(split.direction[columns])))]
    return replace(split, facts={**split.facts, MADE_BY: float(column)})


def prefer_valley(opened: Opened, split: Split, test: SignificanceTest, method: BaseMethod) -> Query[Split]:
    """Return a split, or where discrete columns make it, the best other one that has a valley.

    Where one column makes it, and there is no such valley, the split has the name of the column. Where
    several make it together, it stays if it is significant: gaps of unrelated columns add up to gaps, too.
    """
    table = yield from discrete_table(opened)
    made_by = table.find_cause(split)
    if made_by is not None:
        _, other = yield from beyond_one_column(opened, split, made_by, table, method)
        return name_cause(split, made_by) if other is None or other.quality == 0.0 else other
    if float((split.direction[table.columns] ** 2).sum()) < EXPLAINED:
        return split
    tested = yield from test.run(opened.node, split)
    if tested.is_significant(test.level):
        return split
    _, other = yield from search(leave_out(opened.node, table.columns), method)
    return split if other is None or other.quality == 0.0 else other


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
    opened: Opened, split: Split, made_by: DiscreteVariable, table: DiscreteTable, method: BaseMethod
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
        if (
            agree(table.weights, right, table.right_of(other))
            or table.without(columns).find_cause(other) is None
        ):
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
