"""A tree whose splits use few features, wherever almost all rows stay on their side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray, check_int, check_real
from ravine.data.node import SAMPLE_CELLS, Node, draw_sample, measure
from ravine.data.query import RowSet, run
from ravine.data.sample import Sample
from ravine.data.standardization import Standardization
from ravine.split.boundary import Hyperplane
from ravine.split.split import Split
from ravine.tree.arrays import Tree
from ravine.tree.edit import node_weights
from ravine.tree.export import ranked
from ravine.tree.score import measure_valley

EXACT_ROWS = 1 << 17  # rows up to which all are measured, and not a sample; a choice

BoolArray = npt.NDArray[np.bool_]


def simplify(
    tree: Tree, X: Any, max_features: int = 3, agreement: float = 0.95, sample_weight: Any = None
) -> Tree:
    """Return the tree with every split refitted to its strongest features, where that changes little.

    A split is replaced if enough of the rows of X that reach it (through the simplified splits above) stay on
    their side; its `status` gives the share. The weights of the features are refitted by least squares to the
    two sides, and the threshold is the one that keeps the most rows on their side. Weights of nodes and the
    quality of a new split are those of the rows of X. Costs four passes over the rows; of more than 131 072
    rows, a sample of at most that size decides.

    Parameters
    ----------
    X : rows with the columns of the tree, as in `predict`
    max_features : int, default 3
        Number of features of a simplified split.
    agreement : float, default 0.95
        Minimum share of the rows that stay on their side.
    sample_weight : array of shape (n_rows,), optional
        A weight of k counts as k copies of the row.
    """
    max_features = check_int("max_features", max_features, 1)
    agreement = check_real("agreement", agreement, 0, 1)
    rows = tree.rows(X, sample_weight)
    simpler = replace(tree, splits=_simpler_splits(tree, _some_rows(rows), max_features, agreement))
    return replace(simpler, weight=node_weights(simpler, rows))


def _some_rows(rows: RowSet) -> Any:
    """Return the rows themselves, or of more than EXACT_ROWS a sample in memory."""
    if rows.shape[0] <= EXACT_ROWS:
        return rows
    # wide rows are fewer, so that the copy has a bounded size
    n = max(1, min(EXACT_ROWS, SAMPLE_CELLS // rows.shape[1]))
    node = run(measure(Node(rows)))  # refuses NaN, also in rows that are not drawn
    return node.copy_rows(run(draw_sample(node, Sample(n))))


def _simpler_splits(tree: Tree, rows: Any, max_features: int, agreement: float) -> tuple[Split | None, ...]:
    """Return the splits of a tree, each refitted to the rows that the splits above it send there."""
    standardization, splits = run(measure(Node(rows))).standardization, list(tree.splits)

    def distances(node: int, members: IntArray) -> FloatArray:
        split, part = splits[node], rows.select(members)
        assert split is not None
        simpler = splits[node] = _simpler(split, part, standardization, max_features, agreement)
        return simpler.boundary.signed_distance(part)

    # The walk takes the sides of the simplified splits, so that those below see the rows they will get.
    for _ in tree.walk(rows.shape[0], distances):
        pass
    return tuple(splits)


def _simpler(
    split: Split, rows: RowSet, standardization: Standardization, max_features: int, agreement: float
) -> Split:
    """Return the split with fewer features, or itself if too many rows would change sides."""
    right = split.boundary.signed_distance(rows) > 0
    top = np.sort(ranked(split)[:max_features])
    if (split.direction != 0).sum() <= max_features or right.all() or not right.any():
        return split
    standardization = replace(standardization, inverse_scale=_scale(split))
    mean, scale = standardization.mean[top], standardization.inverse_scale[top]
    kept = rows.map(lambda block: (block.dense()[:, top] - mean) * scale)
    weight = rows.map(lambda block: block.weights)
    coefficients = _least_squares(kept, np.where(right, 1.0, -1.0), weight)
    if not coefficients.any():
        return split
    direction = np.zeros_like(split.direction)
    direction[top] = coefficients / np.linalg.norm(coefficients)
    points = kept @ direction[top]
    threshold, share = _best_threshold(points, right, weight)
    if share < agreement:
        return split
    status = f"simplified to {len(top)} of {len(direction)} features: {share:.1%} of the rows keep their side"
    quality, log_odds = measure_valley(points - threshold, weight)
    return replace(
        split,
        boundary=Hyperplane.of(standardization, direction, threshold, split.boundary.pivot),
        direction=direction,
        status=status,
        quality=quality,
        log_odds=log_odds,
        value=np.nan,
        evidence=None,
        facts={},
    )


def _least_squares(X: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the coefficients of a weighted linear regression with an intercept."""
    root = np.sqrt(weight)
    centered = (X - weight @ X / weight.sum()) * root[:, None]
    return np.asarray(
        np.linalg.lstsq(centered, (target - weight @ target / weight.sum()) * root, rcond=None)[0]
    )


def _scale(split: Split) -> FloatArray:
    """Return the factor of each column in the search that found a split; 0 where it is not known."""
    known = split.direction != 0
    return np.asarray(split.boundary.normal / np.where(known, split.direction, np.inf))


def _best_threshold(points: FloatArray, right: BoolArray, weight: FloatArray) -> tuple[float, float]:
    """Return the threshold that keeps the most weight on its side, and the share of that weight."""
    order = np.argsort(points, kind="stable")
    ordered, on_right, mass = points[order], right[order], weight[order]
    left_of = np.concatenate([[0.0], np.cumsum(np.where(on_right, 0.0, mass))])
    right_of = np.concatenate([[0.0], np.cumsum(np.where(on_right, mass, 0.0))])
    stay = left_of + right_of[-1] - right_of
    distinct = np.concatenate([[True], np.diff(ordered) > 0, [True]])
    k = int(np.argmax(np.where(distinct, stay, -1.0)))
    share = float(stay[k] / mass.sum())
    if k in (0, len(points)):
        return float(ordered[0] - 1.0 if k == 0 else ordered[-1] + 1.0), share
    return float(ordered[k - 1] / 2 + ordered[k] / 2), share
