"""Memory that a thread keeps from one block to the next: writing to new memory for the first time takes long.

Worker processes of Dask return freed memory to the system at once, by the settings of their allocator.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 1 << 22  # bytes of a block, which a thread reads at a time: with fewer, threads wait for Python

AnyArray = npt.NDArray[Any]


class _Kept(threading.local):
    def __init__(self) -> None:
        self.arrays: dict[tuple[str, np.dtype[Any]], AnyArray] = {}


_kept = _Kept()


def scratch(purpose: str, shape: tuple[int, ...], dtype: Any = np.float64) -> AnyArray:
    """Return memory of any content, which is valid until the thread asks for the same purpose again."""
    kind, size = np.dtype(dtype), math.prod(shape)
    if size * kind.itemsize > BLOCK_BYTES:
        return np.empty(shape, dtype=kind)
    kept = _kept.arrays.get((purpose, kind))
    if kept is None or len(kept) < size:
        kept = _kept.arrays[purpose, kind] = np.empty(size, dtype=kind)
    return kept[:size].reshape(shape)
