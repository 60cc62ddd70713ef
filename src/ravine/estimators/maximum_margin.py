"""Clustering by maximum margin hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from ravine._validate import check_bool, check_choice, check_int, check_real
from ravine.data.memory import MemoryRows
from ravine.estimators.clusterer import TreeClusterer
from ravine.exceptions import InvalidInputError
from ravine.split.margin import MarginMethod
from ravine.split.search import BaseMethod


@dataclass(eq=False, repr=False, kw_only=True)
class MaximumMargin(TreeClusterer):
    r"""Divisive clustering with maximum margin hyperplanes (CPMMC), for dense and sparse rows.

    Each split is the hyperplane f(x) = w.x + b = 0 with the widest margin between its own two sides:

    .. math:: \min_{w, b} \tfrac12 |w|^2 + C \frac1n \sum_i \max\{0, 1 - |f(x_i)|\}
        \quad \text{with} \quad -l \le \frac1n \sum_i f(x_i) \le l

    (Equation 3.7 with the balance constraint 3.15). It is solved by cutting planes: 2^n constraints share one
    slack variable, and the most violated constraint is added until none is violated by more than epsilon. The
    concave-convex procedure turns each reduced problem into a quadratic program. This finds a local optimum;
    the best of several starts is chosen. The `value` of a split is the objective divided by C.

    Parameters
    ----------
    C : float or "auto", default "auto"
        Weight of the mean slack, in units of the (standardized) rows. "auto" is 10 divided by the variance of
        the first principal component, so that the units do not matter. If C is so small that w = 0 has a
        lower objective than every hyperplane found, there is no split.
    balance : float or "auto", default "auto"
        l, the bound on the mean of f over the rows, in [0, 1); the margin is at f = 1 and -1. "auto" is 0.03.
    balance_of : {"mean", "sum"}, default "mean"
        What `balance` bounds: the mean of f, which means the same for any number of rows, or its sum over the
        rows of a leaf, as Equation 3.15 has it. ("auto" is always a mean.)
    epsilon : float, default 0.01
        Allowed violation of a constraint, in units of the mean slack, which lies in [0, 1]: the objective is
        within C epsilon of its minimum for the two sides.
    n_init : int, default 4
        Number of starts: 2-means, the leading principal directions, then combinations of two of them. All
        starts share the passes over the data.
    init : {"2-means", "random"}, default "2-means"
        "random" starts from planes through the mean with random normals instead.
    standardize : bool or "auto", default "auto"
        Scale every column to unit variance. The data are not copied. "auto" does so unless the rows are a
        sparse matrix. For images and dense counts, whose columns share a unit, False is often better.
    max_iter : int, default 50
        Maximum number of iterations per start; 3 to 15 are usual, more if C is large or the margin empty. If
        the limit is reached, `status` says so and `violation` is above epsilon.
    samples : bool, default True
        Search samples of more than 16384 rows first, and all rows only from the best results. False searches
        all rows from every start, in many more passes.

    Notes
    -----
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
    balance_of: Literal["mean", "sum"] = "mean"
    epsilon: float = 0.01
    n_init: int = 4
    init: Literal["2-means", "random"] = "2-means"
    max_iter: int = 50
    samples: bool = True

    @classmethod
    def as_published(cls, n_clusters: int | Literal["auto", "best"] = 2, **params: Any) -> Self:
        """Return the method of the paper, CPMMC; `params` take precedence.

        It starts from one random plane, in the columns as given, and `balance` bounds the sum of f. The paper
        chooses C and the balance l by a grid search with the classes; here they are parameters.
        docs/as-published.md lists what differs from the defaults, and why.

        >>> MaximumMargin.as_published(C=0.1, balance=5.0).init
        'random'
        """
        settings = {
            "standardize": False,
            "balance_of": "sum",
            "init": "random",
            "n_init": 1,
            "max_iter": 200,
            "samples": False,
            "outliers": "include",
        }
        return cls(n_clusters, **{**settings, **params})

    def _method(self, n_features: int, rows: MemoryRows | None = None) -> BaseMethod:

        is_sum = check_choice("balance_of", self.balance_of, ("mean", "sum")) == "sum"
        return MarginMethod(
            C=None if self.C == "auto" else check_real("C", self.C, 0, or_else='"auto"'),
            balance=None if self.balance == "auto" else _check_balance(self.balance, is_sum),
            balance_of_sum=is_sum,
            epsilon=check_real("epsilon", self.epsilon, 0, 1),
            n_init=check_int("n_init", self.n_init, 1),
            random_starts=check_choice("init", self.init, ("2-means", "random")) == "random",
            max_iter=check_int("max_iter", self.max_iter, 1),
            samples=check_bool("samples", self.samples),
        )


def _check_balance(value: Any, is_sum: bool) -> float:
    """Return a balance in [0, 1): with 1 or more, w = 0 and b = 1 put all rows on one side at no cost.

    A sum has no such bound, as it grows with the number of rows.
    """
    if is_sum:
        return check_real("balance", value, 0, open_low=False, or_else='"auto"')
    balance = check_real("balance", value, 0, 1, open_low=False, or_else='"auto"')
    if balance == 1.0:
        raise InvalidInputError(
            "balance has to be below 1: at 1, a split with all rows on one side has no cost"
        )
    return balance
