"""Explanations in words and numbers: which features drive a split, and what sets a cluster apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine.tree.arrays import TreeArrays
from ravine.tree.export import ranked
from ravine.tree.summary import Means, means_by_leaf, means_of
from ravine.view.fitted import column_names, counted_rows, tree_of


@dataclass(frozen=True)
class Driver:
    """One feature's part in a split, in the user's own units.

    `contribution` is its share of the distance between the means of the two sides along the normal,
    weight * (right mean - left mean) over the sum of all; shares add up to 1 over all features. With a kernel
    `weight` is the difference of the two means in standard deviations, and `contribution` its square over the
    sum of all.
    """

    feature: str
    weight: float
    left_mean: float
    right_mean: float
    contribution: float


@dataclass(frozen=True)
class SplitExplanation:
    """What drives one split: features in the order of `export_text`, strongest first."""

    node: int
    left_weight: float
    right_weight: float
    drivers: tuple[Driver, ...]

    def words(self, n_features: int = 3) -> str:
        """Return one sentence."""
        if not (self.left_weight > 0 and self.right_weight > 0):
            return f"{self.left_weight:g} | {self.right_weight:g} rows: nothing to compare"
        parts = [
            f"{d.feature} ({d.left_mean:.4g} against {d.right_mean:.4g}, {d.contribution:.0%})"
            for d in self.drivers[:n_features]
        ]
        return f"{self.left_weight:g} | {self.right_weight:g} rows, driven by " + ", ".join(parts)


@dataclass(frozen=True)
class Trait:
    """One feature of a cluster against the rest; `difference` is in standard deviations of all rows."""

    feature: str
    mean: float
    rest_mean: float
    difference: float


@dataclass(frozen=True)
class ClusterExplanation:
    """One cluster: its rules in words, one per leaf, and the features that set it apart from the rest."""

    label: int
    weight: float
    rules: tuple[str, ...]
    traits: tuple[Trait, ...]

    def words(self, n_features: int = 3) -> str:
        """Return a few lines of text."""
        lines = [f"cluster {self.label}: {self.weight:g} rows"]
        if not self.weight > 0:
            return lines[0]
        lines += [f"  rule: {rule}" for rule in self.rules]
        lines += [
            f"  {t.feature}: {t.mean:.4g} against {t.rest_mean:.4g} elsewhere ({t.difference:+.1f} sd)"
            for t in self.traits[:n_features]
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """All splits by node, and all clusters by label."""

    splits: dict[int, SplitExplanation]
    clusters: tuple[ClusterExplanation, ...]

    def ranking(self) -> list[tuple[str, float]]:
        """Return the columns by their share in all splits, largest first; the shares add up to 1.

        A column's share in a split is weighted by the rows that reach the split; where it works against the
        split, it counts as 0.
        """
        shares: dict[str, float] = {}
        for split in self.splits.values():
            weight = split.left_weight + split.right_weight
            for driver in split.drivers:
                shares[driver.feature] = shares.get(driver.feature, 0.0) + weight * max(
                    0.0, driver.contribution
                )
        total = sum(shares.values()) or 1.0
        found = [(name, share / total) for name, share in shares.items()]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def words(self, n_features: int = 3) -> str:
        """Return everything as text."""
        lines = [f"split {node}: {split.words(n_features)}" for node, split in self.splits.items()]
        return "\n".join(lines + [cluster.words(n_features) for cluster in self.clusters])


def explain(
    tree: Any,
    X: Any,
    feature_names: Sequence[str] | None = None,
    n_features: int = 3,
    sample_weight: Any = None,
) -> Explanation:
    """Explain a tree (or a fitted clusterer) by the rows of X; two passes.

    A clusterer with a kernel has curved boundaries, which no column drives by itself: its columns are ranked
    by how far the means of the two sides differ in them (see `Driver`).

    Parameters
    ----------
    tree : ClusterTree or fitted clusterer
        What is explained.
    X : array, sparse matrix, data frame, opened file or Dask collection
        The rows, with the columns of the fit.
    feature_names : sequence of str, optional
        The names of the columns; by default those seen in `fit`.
    n_features : int, default=3
        How many features a rule names per split.
    sample_weight : array, optional
        The weights of the rows.

    Returns
    -------
    Explanation
        The features that drive every split, and the rules of every cluster.

    Examples
    --------
    >>> from ravine import MinimumDensity, explain
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> model = MinimumDensity(2).fit(wine)
    >>> print(explain(model, wine).splits[0].words(2))
    101 | 77 rows, driven by proline (552.7 against 1002, 17%), flavanoids (1.338 against 2.936, 17%)
    """
    model, tree = tree, tree_of(tree)
    rows, columns, _ = counted_rows(model, X, sample_weight)
    means = means_of(tree, rows) if columns is rows else means_by_leaf(tree, columns, tree.leaf_of(rows))
    names = column_names(model, feature_names, columns, rows)
    return explain_means(tree, means, names, n_features, surrogate=columns is not rows)


def explain_means(
    tree: TreeArrays, means: Means, names: Sequence[str], n_features: int = 3, *, surrogate: bool = False
) -> Explanation:
    """Explain a tree by the means of its nodes and clusters; rules name `n_features` features per split.

    With `surrogate` the means are in other columns than those that the tree splits.
    """
    splits = {
        node: _explain_split(tree, node, means, names, surrogate=surrogate) for node in tree.inner.tolist()
    }
    rules: list[list[str]] = [[] for _ in means.cluster_weight]
    by_node = _rules(tree, splits, n_features)
    for leaf in tree.leaves.tolist():
        rules[tree.label[leaf]] += [by_node[leaf]] if leaf in by_node else []
    clusters = (_explain_cluster(k, means, rules[k], names) for k in range(len(rules)))
    return Explanation(splits, tuple(clusters))


def _explain_split(
    tree: TreeArrays, node: int, means: Means, names: Sequence[str], *, surrogate: bool
) -> SplitExplanation:
    """Explain a split by its normal; a curved one by the difference of its sides, in standard deviations."""
    split, left, right = tree.splits[node], tree.left[node], tree.right[node]
    assert split is not None
    apart = np.nan_to_num(means.mean[right] - means.mean[left])
    if surrogate:
        weights = apart * means.standardization.inverse_scale
        parts, order = weights**2, np.argsort(-np.abs(weights), kind="stable")
    else:
        weights = split.boundary.normal
        parts, order = weights * apart, ranked(split)
    total = float(parts.sum())
    shares = parts / total if total > 0 else np.zeros_like(parts)
    columns = weights, means.mean[left], means.mean[right], shares
    drivers = tuple(Driver(names[j], *(float(column[j]) for column in columns)) for j in order)
    return SplitExplanation(node, float(means.weight[left]), float(means.weight[right]), drivers)


def _explain_cluster(
    label: int, means: Means, rules: Sequence[str], names: Sequence[str]
) -> ClusterExplanation:
    weight, mean = float(means.cluster_weight[label]), means.cluster_mean[label]
    others = means.total - weight
    overall, inverse_scale = means.standardization.mean, means.standardization.inverse_scale
    rest = overall - (mean - overall) * (weight / others if others > 0 else np.nan)
    difference = np.nan_to_num((mean - rest) * inverse_scale)
    traits = tuple(
        Trait(names[j], float(mean[j]), float(rest[j]), float(difference[j]))
        for j in np.argsort(-np.abs(difference), kind="stable")
        if inverse_scale[j] > 0
    )
    return ClusterExplanation(label, weight, tuple(rules), traits)


def _rules(tree: TreeArrays, splits: dict[int, SplitExplanation], n_features: int) -> dict[int, str]:
    """Describe the path to every leaf: at each split, whether its strongest features are high or low."""
    rules = {0: "every row"}
    for node in range(1, tree.n_nodes):
        parent = int(tree.parent[node])
        if parent < 0:  # no path leads to a class of pairs
            continue
        drivers, to_right = splits[parent].drivers[:n_features], tree.right[parent] == node
        words = (f"{'high' if (d.weight > 0) == to_right else 'low'} {d.feature}" for d in drivers)
        step = " and ".join(words)
        rules[node] = f"{rules[parent]}, then {step}" if parent else step
    return rules
