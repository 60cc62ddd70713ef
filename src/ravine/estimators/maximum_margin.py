"""Clustering by maximum margin hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ravine._validate import check_int, check_real
from ravine.data.query import RowSet
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.split.margin import MarginMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MaximumMargin(TreeClusterer):
    r"""Divisive clustering with maximum margin hyperplanes (CPMMC), for dense and sparse rows.

    Each split is the hyperplane f(x) = w.x + b = 0 with the widest margin between its own two sides:

    .. math:: \min_{w, b} \tfrac12 |w|^2 + C \frac1n \sum_i \max\{0, 1 - |f(x_i)|\}
        \quad \text{with} \quad -l \le \frac1n \sum_i f(x_i) \le l

    (Equation 3.7 with the balance constraint 3.15). It is solved by cutting planes: 2^n constraints share one
    slack variable, and the most violated constraint is added until none is violated by more than 0.01. The
    concave-convex procedure turns each reduced problem into a quadratic program. This finds a local optimum;
    the best of several starts is chosen. The `value` of a split is the objective divided by C.

    The parameters and attributes of all clusterers are described in
    `ravine.estimators.clusterer.TreeClusterer`: `n_clusters`, `standardize`, `kernel`, `kernel_params`,
    `min_cluster_size`, `max_depth`, `level`, `outliers`, `random_state`, `n_jobs`, `verbose`, `checkpoint`.

    Parameters
    ----------
    C : float or "auto", default "auto"
        Weight of the mean slack, in units of the (standardized) rows. "auto" is 10 divided by the variance of
        the first principal component, so that the units do not matter. If C is so small that w = 0 has a
        lower objective than every hyperplane found, there is no split.
    balance : float or "auto", default "auto"
        l, the bound on the mean of f over the rows, in [0, 1); the margin is at f = 1 and -1. "auto" is 0.03.
    n_init : int, default 4
        Number of starts: 2-means, the leading principal directions, then combinations of two of them. All
        starts share the passes over the data.
    max_iter : int, default 50
        Maximum number of iterations per start; 3 to 15 are usual, more if C is large or the margin empty. If
        the limit is reached, `status` says so and `violation` is above 0.01.

    Notes
    -----
    For images and dense counts, whose columns share a unit, `standardize=False` is often better.

    Cost: one pass over the rows per iteration, in O(n s) time for s stored entries per row: old constraints
    are updated by the rows that change sides. If there are many rows, samples are searched first, and all
    rows need about two iterations. The `facts` of a split are `margin` (1 over the norm of w), `support`
    (the share of rows inside the margin), `slack` (the mean of max(0, 1 - abs f)), `violation` (by how much
    a constraint may exceed the slack of the reduced problem), `C` and `rounds` (iterations that lowered the
    objective).

    References
    ----------
    Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.

    Examples
    --------
    >>> from ravine import MaximumMargin
    >>> from sklearn.datasets import load_iris
    >>> model = MaximumMargin(n_clusters=2).fit(load_iris().data)
    >>> sorted(int((model.labels_ == k).sum()) for k in range(2))
    [50, 100]
    >>> model.tree_.splits[0].facts["violation"] <= 0.01
    True
    """

    C: float | Literal["auto"] = "auto"
    balance: float | Literal["auto"] = "auto"
    n_init: int = 4
    max_iter: int = 50

    def _method(self, rows: RowSet | None = None) -> MarginMethod:
        return MarginMethod(
            C=None if self.C == "auto" else check_real("C", self.C, 0, or_else='"auto"'),
            balance=None if self.balance == "auto" else self._check_balance(),
            n_init=check_int("n_init", self.n_init, 1),
            max_iter=check_int("max_iter", self.max_iter, 1),
        )

    def _check_balance(self) -> float:
        """Return a balance in [0, 1): with 1 or more, w = 0 and b = 1 put all rows on one side at no cost."""
        balance = check_real("balance", self.balance, 0, 1, open_low=False, or_else='"auto"')
        if balance == 1.0:
            raise InvalidInputError(
                "balance has to be below 1: at 1, a split with all rows on one side has no cost"
            )
        return balance
