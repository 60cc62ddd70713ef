"""Maximum margin and maximin separation as published: CPMMC and MSPC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from ravine._validate import check_choice, check_real
from ravine.data.query import RowSet
from ravine.estimators.maximin_separation import MaximinSeparation
from ravine.estimators.maximum_margin import MaximumMargin
from ravine.split.margin import MarginMethod
from ravine.split.search import BaseMethod
from ravine.split.separation import SeparationMethod


@dataclass(eq=False, repr=False, kw_only=True)
class CPMMC(MaximumMargin):
    """Cutting plane maximum margin clustering, as published.

    It starts from one random plane, in the columns as given, and `balance` bounds the sum of f, not its mean.
    The paper chooses `C` and `balance` by a grid search with the classes. The parameters are those of
    `MaximumMargin`, with other defaults.

    References
    ----------
    Zhao, Wang, Zhang: Efficient Maximum Margin Clustering via Cutting Plane Algorithm. SIAM SDM, 2008.
    """

    n_clusters: int | Literal["auto"] = field(default=2, kw_only=False)
    standardize: bool | Literal["auto"] = False
    n_init: int = 1
    max_iter: int = 200
    outliers: Literal["assign", "label", "include"] = "include"

    _as_published: ClassVar[bool] = True

    def _method(self, rows: RowSet | None = None) -> MarginMethod:
        found = super()._method(rows)
        return replace(found, balance_of_sum=True, random_starts=True, samples=False)

    def _check_balance(self) -> float:
        """Return a bound on a sum, which grows with the number of rows."""
        return check_real("balance", self.balance, 0, open_low=False, or_else='"auto"')


@dataclass(eq=False, repr=False, kw_only=True)
class MSPC(MaximinSeparation):
    """Maximin separation probability clustering, as published: MSPC-MPM, MSPC-GEP or MSPC-EIG by `solver`.

    2-means starts from the columns as given (the paper scales them to [-1, 1]), any share of the rows may be
    a side, and "eig" has one eigenvector, whatever `n_init` is. The paper chooses lambda, `regularization`,
    by the classes. The parameters are those of `MaximinSeparation`, with other defaults.

    References
    ----------
    Huang, Zhang, Song, Chen: Maximin Separation Probability Clustering. AAAI, 2015.
    """

    n_clusters: int | Literal["auto"] = field(default=2, kw_only=False)
    standardize: bool | Literal["auto"] = False
    solver: Literal["mpm", "gep", "eig"] = "mpm"
    min_share: float = 0.0
    outliers: Literal["assign", "label", "include"] = "include"

    _as_published: ClassVar[bool] = True

    def _method(self, rows: RowSet | None = None) -> BaseMethod:
        check_choice("solver", self.solver, ("mpm", "gep", "eig"))
        found = super()._method(rows)
        assert isinstance(found, SeparationMethod)
        n_init = 1 if self.solver == "eig" else found.n_init
        return replace(found, n_init=n_init, samples=False, budget=False)
