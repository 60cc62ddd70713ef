"""Clustering by maximum margin hyperplanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ravine._validate import InvalidInputError, check_int, check_real
from ravine.cluster.base import TreeClusterer
from ravine.split.hyperplane import Splitter
from ravine.split.margin import MarginSplitter
from ravine.tree.grow import Progress


class MaximumMargin(TreeClusterer):
    """todo"""

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        C: float | str = "auto",
        balance: float | str = "auto",
        epsilon: float = 0.01,
        min_cluster_size: int | None = None,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        level: float = 0.01,
        split_order: str = "depth",
        n_init: int = 4,
        standardize: bool = True,
        max_iter: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], None] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.epsilon = epsilon
        self.min_cluster_size = min_cluster_size
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.level = level
        self.split_order = split_order
        self.n_init = n_init
        self.standardize = standardize
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _splitter(self, n_features: int) -> Splitter:
        return MarginSplitter(
            C=None if self.C == "auto" else check_real("C", self.C, 0),
            balance=None if self.balance == "auto" else _check_balance(self.balance),
            epsilon=check_real("epsilon", self.epsilon, 0, 1),
            n_init=check_int("n_init", self.n_init, 1),
            max_iter=check_int("max_iter", self.max_iter, 1),
            standardize=bool(self.standardize),
        )


def _check_balance(value: Any) -> float:
    """Return a balance in [0, 1): from 1 on, w = 0 with b = 1 puts all rows on one side at no cost."""
    balance = check_real("balance", value, 0, 1, open_low=False)
    if balance == 1.0:
        raise InvalidInputError("balance has to be below 1: at 1, all rows on one side cost nothing")
    return balance
