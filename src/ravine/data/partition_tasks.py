"""What the tasks of a Dask graph do, on the workers: they open, answer, merge and divide partitions.

Nothing here knows of Dask; `dask_engine.py` builds the graphs on the client. Every task checks that its
partition is the one that the opening pass found: what is not persisted is computed again in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import IntArray, not_finite
from ravine.data.block_pass import (
    BlockData,
    Count,
    LeafIds,
    answer_block,
    count,
    divide_block,
    map_block,
)
from ravine.data.blocks import checksum
from ravine.data.query import Answer, AnyArray
from ravine.data.threads import one_blas_thread
from ravine.exceptions import InvalidInputError


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
    values = _checked(partition, seen.opened)
    if feature_map is not None:
        values = feature_map.content.map_all(values)
    return BlockData(values, weights, seen.start)


def answer(
    partition: Any, ids: LeafIds, weights: Any, seen: Seen, feature_map: Any, work: Constant
) -> list[list[Answer] | None]:
    """Return what a partition adds to the answers of every group.

    An error says by its place which request failed: objects have other identities on other machines.
    """
    block, groups = _data(partition, weights, seen, feature_map), work.content
    with one_blas_thread():
        try:
            return answer_block(block, ids, groups)
        except Exception as error:
            blamed = error.__dict__.pop("request", None)
            for g, group in enumerate(groups):
                for k, request in enumerate(group.requests):
                    if request is blamed:
                        error.place = g, k  # type: ignore[attr-defined]
            error.add_note(f"in partition {seen.opened.number}")
            raise


def merge(work: Constant, parts: Sequence[Any]) -> list[list[Answer] | None]:
    """Merge the answers of consecutive partitions, None for one that was not read, in the tree of `fold`.

    The parts are not changed: the scheduler may need them again.
    """
    return [
        group.merge_all([None if part is None else part[k] for part in parts])
        for k, group in enumerate(work.content)
    ]


def count_leaves(ids: LeafIds, weights: Any, start: int, sets: Constant) -> dict[int, Count]:
    """Count the rows of sets of leaves in a partition."""
    return count(ids, weights, start, sets.content)


def look_up(ids: LeafIds, label_of: Constant) -> IntArray:
    """Return the label of every row by that of its leaf."""
    return np.asarray(label_of.content[ids])


def divide(
    partition: Any, ids: LeafIds, weights: Any, seen: Seen, feature_map: Any, work: Constant
) -> LeafIds:
    """Return the leaf ids of a partition after dividing some leaves."""
    with one_blas_thread():
        return divide_block(_data(partition, weights, seen, feature_map), ids, work.content)[0]


def each(
    partition: Any, ids: LeafIds, weights: Any, seen: Seen, feature_map: Any, work: Constant
) -> AnyArray:
    """Apply a function to all rows of a partition."""
    with one_blas_thread():
        return _apply(work.content, _data(partition, weights, seen, feature_map).values)


def map_partition(
    partition: Any, ids: LeafIds, weights: Any, seen: Seen, feature_map: Any, work: Constant
) -> list[AnyArray]:
    """Apply a function to the rows of a group in a partition, piece by piece."""
    with one_blas_thread():
        return map_block(_data(partition, weights, seen, feature_map), ids, *work.content)


def apply_to(work: Constant, partition: Any, number: int) -> AnyArray:
    """Apply a function to a partition that no pass opened; an error names the partition."""
    try:
        return _apply(work.content, partition)
    except Exception as error:
        error.add_note(f"in partition {number} of X")
        raise


def _apply(work: tuple[Callable[[Any], AnyArray], AnyArray], partition: Any) -> AnyArray:
    """Apply a function to a partition; one without rows gives none."""
    function, nothing = work
    return np.asarray(function(partition)) if partition.shape[0] else nothing
