"""Minimum density hyperplanes as published: MDP2, with labels, and in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from ravine._validate import check_choice
from ravine.data.query import RowSet
from ravine.estimators.classifier import MinimumDensityClassifier
from ravine.estimators.minimum_density import MinimumDensity
from ravine.index.density import MinimumDensitySchedule
from ravine.split.projection import ProjectionMethod

RANDOM_STARTS = 10  # of KMDH (Rand), Section 3.2


@dataclass(eq=False, repr=False, kw_only=True)
class MDP2(MinimumDensity):
    """Minimum density projection pursuit, as published.

    It starts from two principal directions, the threshold stays in its interval, and all rows are searched
    until the descents end. The parameters are those of `MinimumDensity`, with other defaults.

    References
    ----------
    Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.

    Examples
    --------
    >>> from ravine.papers import MDP2
    >>> from sklearn.datasets import load_wine
    >>> MDP2().fit(load_wine().data).n_clusters_
    2
    """

    n_clusters: int | Literal["auto"] = field(default=2, kw_only=False)
    n_init: int = 2
    max_iter: int = 100
    outliers: Literal["assign", "label", "include"] = "include"

    _as_published: ClassVar[bool] = True

    def _method(self, rows: RowSet | None = None) -> ProjectionMethod:
        found = super()._method(rows)
        schedule = MinimumDensitySchedule(self.bandwidth_factor, self.alpha_max, overshoot=0.0)
        # The paper does not say when its descents end: chosen by the printed figures, as is `max_iter`.
        return replace(found, schedule=schedule, tol=1e-4, samples=False)


@dataclass(eq=False, repr=False, kw_only=True)
class KMDH(MDP2):
    """Minimum density hyperplanes in the feature space of a kernel, as published, with all its components.

    The paper does not give the width of the kernel: set `gamma` in `kernel_params`. The other parameters are
    those of `MinimumDensity`, without `n_init`.

    Parameters
    ----------
    init : {"principal", "random"}, default "principal"
        Start from the first kernel principal component, KMDH (PCA), or from ten random combinations of the
        mapped rows, KMDH (Rand).

    References
    ----------
    Yates, Pavlidis: Minimum Density Hyperplanes in the Feature Space. IEEE SSCI, 2016.
    """

    kernel: str | Callable[..., Any] | None = "rbf"
    init: Literal["principal", "random"] = "principal"

    # As a class variable it is no parameter: `init` says how many starts there are.
    n_init: ClassVar[int] = 1  # type: ignore[misc]

    @property
    def _map_params(self) -> Mapping[str, Any]:
        return {"landmarks": None, **(self.kernel_params or {})}

    def _method(self, rows: RowSet | None = None) -> ProjectionMethod:
        found = super()._method(rows)
        if check_choice("init", self.init, ("principal", "random")) == "principal":
            return found
        return replace(found, n_init=RANDOM_STARTS, random_starts=True)


@dataclass(eq=False, repr=False, kw_only=True)
class SKMDH(KMDH):
    """KMDH with the components that have 90 % of the variance, S-KMDH in the paper."""

    @property
    def _map_params(self) -> Mapping[str, Any]:
        return {"n_components": 0.9, **super()._map_params}


@dataclass(eq=False, repr=False, kw_only=True)
class SemiSupervisedMDP2(MinimumDensityClassifier):
    """Minimum density projection pursuit with labels, as published: the paper has two classes.

    Only the start with the lowest value is followed, and the boundary always has low density. The parameters
    are those of `MinimumDensityClassifier`, with other defaults.

    References
    ----------
    Pavlidis, Hofmeyr, Tasoulis: Minimum Density Hyperplanes. JMLR 17(156), 2016.
    """

    gammas: Sequence[float] = (0.1, 1.0, 10.0)
    bandwidth_factor: float = 1.0
    outliers: Literal["assign", "include"] = "include"
    supervised_fallback: bool = False

    def _method(self, right: tuple[int, ...]) -> ProjectionMethod:
        found = super()._method(right)
        schedule = MinimumDensitySchedule(self.bandwidth_factor, self.alpha_max)
        return replace(found, schedule=schedule, lowest_start=True, samples=False)
