"""Samples that grow: many starts see few rows, and only the best of them sees all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ravine.data.blocks import Query, RowBlocks, run
from ravine.data.standardization import Standardization, standardization_of

LEAST_SAMPLE = 8192  # the rows of the smallest sample that all starts are pursued on

Best = TypeVar("Best")


def through_samples(
    rows: RowBlocks,
    standardization: Standardization,
    root: Standardization | None,
    min_weight: float,
    rng: np.random.Generator,
    *,
    standardize: bool,
    choose: Callable[[RowBlocks, Standardization, float], Query[Best | None]],
    go_on: Callable[[Standardization, Best, bool], Query[Best]],
) -> Query[Best | None]:
    """Search all rows, or, where they are many, samples of them that grow, and all rows at the end.

    `choose(rows, frame, least)` searches from all starts and returns the best end that leaves `least` weight
    on both sides, if there is one. `go_on(frame, best, last)` goes on from the best end of fewer rows.
    """
    counted = rows.counted()
    sizes = sample_sizes(rows.shape[0] if counted is None else len(counted))
    if not sizes:
        return (yield from choose(rows, standardization, min_weight))
    best: Best | None = None
    for size in sizes:
        sample = rows.sample(size, rng)
        own = run(sample, standardization_of(sample, root or standardization, standardize))
        if best is None:
            best = run(sample, choose(sample, own, min_weight * sample.total / rows.total))
        else:
            best = run(sample, go_on(own, best, False))
        if best is None:
            return None
    assert best is not None
    return (yield from go_on(standardization, best, True))


def sample_sizes(n: int) -> list[int]:
    """Return the sizes of the samples that come before all n rows: about n/64, then n/16.

    (A stage of n/4 rows was tried: the optimum moves with the bandwidth, so that its passes are better
    spent on all rows.)

    >>> sample_sizes(10_000), sample_sizes(100_000), sample_sizes(1_000_000)
    ([], [8192], [15625, 62500])
    """
    if n < 4 * LEAST_SAMPLE:
        return []
    first = max(n // 64, LEAST_SAMPLE)
    return [first, n // 16] if n // 16 >= 2 * first else [first]
