"""What the tasks of a Dask graph do, on the workers: they open, answer, merge and divide partitions.

Nothing here knows of Dask; `dask_engine.py` builds the graphs on the client. Every task checks that its
partition is the one that the opening pass found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from ravine._validate import IntArray, not_finite
from ravine.data.block_pass import (
    BlockData,
    Group,
    LeafIds,
    Part,
    answer_block,
    divide_block,
    map_block,
)
from ravine.data.blocks import checksum
from ravine.data.query import AnyArray, run
from ravine.data.sample import HIGHEST, OnSample, Short
from ravine.data.threads import one_blas_thread
from ravine.exceptions import InvalidInputError, RavineError


@dataclass(frozen=True)
class Opened:
    """What the opening pass found in a partition; later passes have to find the same."""

    number: int
    n_rows: int
    n_columns: int
    checksum: int
    is_sparse: bool
    n_values: int


class Constant:
    """An object that dask does not look into for keys."""

    def __init__(self, content: Any) -> None:
        self.content = content


def content(constant: Constant) -> Any:
    """Return an object that came with the graph."""
    return constant.content


@dataclass(frozen=True)
class Seen:
    """What the opening pass found in a partition, and the number of its first row."""

    opened: Opened
    start: int


def look_up(ids: LeafIds, label_of: IntArray) -> IntArray:
    """Return the label of every row by that of its leaf."""
    return np.asarray(label_of[ids])


@dataclass(frozen=True)
class Failed:
    """A request that failed, by its place: objects have other identities on other machines."""

    error: Exception
    group: int
    request: int


def _values(partition: Any) -> Any:
    """Return a partition as an array or a CSR matrix."""
    if sparse.issparse(partition):
        rows = sparse.csr_array(partition)
        rows.sum_duplicates()
        return rows
    values = np.asarray(partition)
    if values.dtype.kind == "O" and hasattr(partition, "columns"):  # nullable, Arrow, or of several kinds
        return partition.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def of_partition(number: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a task of the user's that a partition needs; an error names the partition."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if is_of_cluster(error):
            raise
        raise RavineError(f"partition {number} of X cannot be computed: {error}") from error


def is_of_cluster(error: Exception) -> bool:
    """Whether an error comes from Dask's cluster, such as a lost connection, and not from a computation."""
    return type(error).__module__.startswith("distributed.")


def matrix(partition: Any, number: int, width: int | None = None) -> Any:
    """Return a partition as an array or a CSR matrix of numbers; refuse another one."""
    values = _values(partition)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"partition {number} of X has to be a matrix of numbers, got type {values.dtype} and shape "
            f"{values.shape}"
        )
    if width is not None and values.shape[1] != width:
        raise InvalidInputError(
            f"partition {number} of X has {values.shape[1]} columns, but X has {width}; all partitions need "
            "the same number"
        )
    return values


def open_partition(partition: Any, number: int) -> Opened:
    """Return length, width and checksum of a partition; refuse what is not a matrix of finite numbers."""
    values = matrix(partition, number)
    if len(bad := _not_finite(values)):
        raise not_finite(bad, what=f"partition {number} of X")
    return _facts(values, number)


def _facts(values: Any, number: int) -> Opened:
    is_sparse = sparse.issparse(values)
    n_values = values.nnz if is_sparse else values.size
    return Opened(number, values.shape[0], values.shape[1], checksum(values), is_sparse, n_values)


def _not_finite(values: Any) -> IntArray:
    """Return the columns that have NaN or infinity; a sum tells whether there are any."""
    stored = values.data if sparse.issparse(values) else values
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(stored.sum(dtype=np.float64)):
            return np.zeros(0, dtype=np.int64)
    if sparse.issparse(values):
        return np.unique(values.indices[~np.isfinite(stored)])
    return np.flatnonzero(~np.isfinite(values).all(axis=0))


def _checked(partition: Any, opened: Opened) -> Any:
    values = _values(partition)
    if _facts(values, opened.number) != opened:
        raise InvalidInputError(
            f"partition {opened.number} of X changed since it was computed before: a fit needs the same rows "
            "in every pass; persist X, or fix the seed of its computation"
        )
    return values


def take(partition: Any, opened: Opened, places: IntArray) -> Any:
    """Return some rows of a partition."""
    return _checked(partition, opened)[places]


def _data(partition: Any, weights: Any, seen: Seen, feature_map: Any) -> BlockData:
    opened, start = seen.opened, seen.start
    values = _checked(partition, opened)
    if feature_map is not None:
        from ravine.features.feature_map import MappedRows, held

        nothing = np.empty((0, feature_map.n_components))
        values = held(MappedRows(values, feature_map)) if opened.n_rows else nothing
    return BlockData(values, weights, start)


def answer(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, groups: Sequence[Group]
) -> Any:
    """Return what a partition adds to the answers of every group, or the request that failed."""
    block = _data(partition, weights, seen, feature_map)
    with one_blas_thread():
        try:
            return answer_block(block, ids, groups)
        except Exception as error:
            places = [(g, k) for g, group in enumerate(groups) for k in range(len(group.requests))]
            blamed = getattr(error, "request", None)
            found = [(g, k) for g, k in places if groups[g].requests[k] is blamed]
            if not found:
                raise
            del error.request  # type: ignore[attr-defined]
            error.add_note(f"in partition {seen.opened.number}")
            return Failed(error, *found[0])


def merge(groups: Sequence[Group], parts: Sequence[Any]) -> Any:
    """Merge the answers of consecutive partitions, None for one that was not read, in the tree of `fold`.

    The parts are not changed: the scheduler may need them again.
    """
    for part in parts:
        if isinstance(part, Failed):
            return part
    return [
        group.merge_all([None if part is None else part[k] for part in parts])
        for k, group in enumerate(_plain(groups))
    ]


def _plain(groups: Sequence[Group]) -> list[Group]:
    """Return the groups without the requests that search samples."""
    return [
        group._replace(requests=tuple(one for one in group.requests if not isinstance(one, OnSample)))
        for group in groups
    ]


def searches_of(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """Return the group and the place in it of every request that searches a sample."""
    return [
        (g, k)
        for g, group in enumerate(groups)
        for k, request in enumerate(group.requests)
        if isinstance(request, OnSample)
    ]


def sums(groups: Sequence[Group], found: Any) -> Any:
    """Return the answers of a partition without the samples that are searched, which stay on the worker."""
    if isinstance(found, Failed):
        return found
    away = set(searches_of(groups))
    return [own and [one for k, one in enumerate(own) if (g, k) not in away] for g, own in enumerate(found)]


def drawn(groups: Sequence[Group], found: Any) -> Any:
    """Return the samples of a partition that are searched; None for a group without rows there."""
    return found if isinstance(found, Failed) else [found[g] and found[g][k] for g, k in searches_of(groups)]


def with_ends(merged: Sequence[Any], searches: Sequence[tuple[int, int]], ends: Sequence[Any]) -> list[Any]:
    """Return merged answers with the ends of the searches at their places."""
    found = [None if own is None else list(own) for own in merged]
    for (g, k), end in zip(searches, ends, strict=True):  # in the order of their places
        found[g].insert(k, end)  # type: ignore[union-attr]
    return found


def search(groups: Sequence[Group], number: int, parts: Sequence[Any]) -> Any:
    """Return what a query finds on a sample, whose rows come from the partitions; or that it failed."""
    for part in parts:
        if isinstance(part, Failed):
            return part
    g, k = searches_of(groups)[number]
    request = cast(OnSample, groups[g].requests[k])
    sample = request.sample
    rows = sample.merge_all([part[number] for part in parts])
    if len(rows[0]) < sample.n and sample.highest < HIGHEST:
        return Short()
    with one_blas_thread():
        try:
            return run(request.query(rows))
        except Exception as error:
            error.add_note("in the search of a sample")
            return Failed(error, g, k)


def divide(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, parts: Sequence[Part]
) -> LeafIds:
    """Return the leaf ids of a partition after dividing some leaves."""
    with one_blas_thread():
        return divide_block(_data(partition, weights, seen, feature_map), ids, parts)[0]


def each(partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, work: Any) -> AnyArray:
    """Apply a function to all rows of a partition."""
    with one_blas_thread():
        return _apply(work, _data(partition, weights, seen, feature_map).values)


def map_partition(
    partition: Any, ids: LeafIds, weights: Any, seen: Any, feature_map: Any, work: tuple[Group, Any]
) -> list[AnyArray]:
    """Apply a function to the rows of a group in a partition, piece by piece."""
    with one_blas_thread():
        return map_block(_data(partition, weights, seen, feature_map), ids, *work)


def apply_to(work: Any, partition: Any, number: int) -> AnyArray:
    """Apply a function to a partition that no pass opened; an error names the partition."""
    try:
        return _apply(work, partition)
    except Exception as error:
        error.add_note(f"in partition {number} of X")
        raise


def _apply(work: tuple[Callable[[Any], AnyArray], AnyArray], partition: Any) -> AnyArray:
    """Apply a function to a partition; one without rows gives none."""
    function, nothing = work
    return np.asarray(function(partition)) if partition.shape[0] else nothing
