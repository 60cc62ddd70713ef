"""What the tasks of a Dask graph do, on the workers: they open, answer, merge and divide partitions.

Nothing here knows of Dask; `dask_engine.py` builds the graphs on the client. Every task checks that its
partition is the one that the opening pass found: what is not persisted is computed again in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ravine._validate import IntArray
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
    """What the opening pass found in a partition, and the number of its first row.

    Later passes have to find the same.
    """

    number: int
    n_rows: int
    n_columns: int
    checksum: int
    is_sparse: bool
    n_values: int
    start: int = field(default=0, compare=False)  # known when all partitions were opened


class Constant:
    """An object that dask does not look into for keys."""

    def __init__(self, content: Any) -> None:
        self.content = content


def content(constant: Constant) -> Any:
    """Return an object that came with the graph."""
    return constant.content


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
    """Return length, width and checksum of a partition; refuse what is not a matrix of numbers."""
    return _facts(matrix(partition, number), number)


def _facts(values: Any, number: int) -> Opened:
    is_sparse = sparse.issparse(values)
    n_values = values.nnz if is_sparse else values.size
    return Opened(number, values.shape[0], values.shape[1], checksum(values), is_sparse, n_values)


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


def _data(partition: Any, weights: Any, opened: Opened, feature_map: Any) -> BlockData:
    values = _checked(partition, opened)
    if feature_map is not None:
        values = feature_map.content.map_all(values)
    return BlockData(values, weights, opened.start)


def answer(
    partition: Any, ids: LeafIds, weights: Any, opened: Opened, feature_map: Any, work: Constant
) -> list[list[Answer] | None]:
    """Return what a partition adds to the answers of every group; an error names the partition."""
    with one_blas_thread():
        try:
            return answer_block(_data(partition, weights, opened, feature_map), ids, work.content)
        except Exception as error:
            error.add_note(f"in partition {opened.number}")
            raise


def merge(work: Constant, parts: Sequence[Any]) -> list[list[Answer] | None]:
    """Merge the answers of consecutive partitions, None for one that was not read, in the tree of `fold`."""
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
    partition: Any, ids: LeafIds, weights: Any, opened: Opened, feature_map: Any, work: Constant
) -> LeafIds:
    """Return the leaf ids of a partition after dividing some leaves."""
    with one_blas_thread():
        return divide_block(_data(partition, weights, opened, feature_map), ids, work.content)[0]


def map_partition(
    partition: Any, ids: LeafIds, weights: Any, opened: Opened, feature_map: Any, work: Constant
) -> list[AnyArray]:
    """Apply a function to the rows of a group in a partition, piece by piece."""
    with one_blas_thread():
        return map_block(_data(partition, weights, opened, feature_map), ids, *work.content)


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
