"""The numbers behind a picture: which features drive a split, and what sets a cluster apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.tree.export import names_of
from ravine.tree.summary import NodeMeans, label_means, node_means
from ravine.tree.tree import ClusterTree


@dataclass(frozen=True)
class Driver:
    """One feature's part in a split, in the user's own units.

    `contribution` is its share of the distance between the two sides' means along the normal,
    weight * (right mean - left mean) over the sum of all; shares add up to 1 over all features.
    """

    feature: str
    weight: float
    left_mean: float
    right_mean: float
    contribution: float


@dataclass(frozen=True)
class SplitExplanation:
    """What drives one split: features by contribution, largest first."""

    node: int
    left_weight: float
    right_weight: float
    drivers: tuple[Driver, ...]

    def words(self, n_features: int = 3) -> str:
        """Say it in a sentence."""
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
    """One cluster: its rules in words, one a leaf, and the features that set it apart from the rest."""

    label: int
    weight: float
    rules: tuple[str, ...]
    traits: tuple[Trait, ...]

    def words(self, n_features: int = 3) -> str:
        """Say it in a few lines."""
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

    def words(self, n_features: int = 3) -> str:
        """Say it all as text."""
        lines = [f"split {node}: {split.words(n_features)}" for node, split in self.splits.items()]
        return "\n".join(lines + [cluster.words(n_features) for cluster in self.clusters])


def explain(
    tree: ClusterTree,
    X: Any,
    feature_names: Sequence[str] | None = None,
    n_features: int = 3,
    sample_weight: Any = None,
) -> Explanation:
    """Explain a tree (or a fitted clusterer) by the rows of X; two passes.

    Examples
    --------
    >>> from ravine import MinimumDensity, explain
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> model = MinimumDensity(2).fit(wine)
    >>> print(explain(model, wine).splits[0].words(2))
    101 | 77 rows, driven by flavanoids (1.338 against 2.936, 17%), proline (552.7 against 1002, 17%)
    """
    tree = getattr(tree, "tree_", tree)
    rows = tree.rows(X, sample_weight)
    names = names_of(tree, feature_names, rows.shape[1])
    means = node_means(tree, rows)
    splits = {int(node): _explain_split(tree, int(node), means, names) for node in tree.inner}
    weight, mean = label_means(tree, means)
    clusters = tuple(
        _explain_cluster(tree, k, float(weight[k]), mean[k], means, splits, names, n_features)
        for k in range(len(weight))
    )
    return Explanation(splits, clusters)


def _explain_split(tree: ClusterTree, node: int, means: NodeMeans, names: Sequence[str]) -> SplitExplanation:
    split = tree.splits[node]
    assert split is not None
    left, right = tree.left[node], tree.right[node]
    parts = np.nan_to_num(split.boundary.weights * (means.mean[right] - means.mean[left]))
    total = float(parts.sum())
    shares = parts / total if total > 0 else np.zeros_like(parts)
    order = np.argsort(-shares, kind="stable")
    drivers = tuple(
        Driver(
            names[j],
            float(split.boundary.weights[j]),
            float(means.mean[left, j]),
            float(means.mean[right, j]),
            float(shares[j]),
        )
        for j in order
        if split.boundary.weights[j] != 0
    )
    return SplitExplanation(node, float(means.weight[left]), float(means.weight[right]), drivers)


def _explain_cluster(
    tree: ClusterTree,
    label: int,
    weight: float,
    mean: FloatArray,
    means: NodeMeans,
    splits: dict[int, SplitExplanation],
    names: Sequence[str],
    n_features: int,
) -> ClusterExplanation:
    rules = tuple(
        _rule(tree, int(leaf), splits, n_features) for leaf in tree.leaves if tree.label[leaf] == label
    )
    others = means.weight[0] - weight
    overall = means.standardization.mean
    rest = overall - (mean - overall) * (weight / others if others > 0 else np.nan)
    difference = np.nan_to_num((mean - rest) * means.standardization.inverse_scale)
    order = np.argsort(-np.abs(difference), kind="stable")
    traits = tuple(
        Trait(names[j], float(mean[j]), float(rest[j]), float(difference[j]))
        for j in order
        if means.standardization.inverse_scale[j] > 0
    )
    return ClusterExplanation(label, weight, rules, traits)


def _rule(tree: ClusterTree, leaf: int, splits: dict[int, SplitExplanation], n_features: int) -> str:
    """Say the way to a leaf: at each split, whether its strongest features are high or low."""
    steps = []
    while leaf:
        parent = int(tree.parent[leaf])
        to_right = tree.right[parent] == leaf
        words = [
            f"{'high' if (d.weight > 0) == to_right else 'low'} {d.feature}"
            for d in splits[parent].drivers[:n_features]
        ]
        steps.append(" and ".join(words))
        leaf = parent
    return ", then ".join(reversed(steps)) if steps else "every row"
