"""Samples: the rows whose number has the smallest hash. So a sample does not depend on blocks or threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ravine._validate import IntArray
from ravine.data.blocks import Block, SparseBlock
from ravine.data.query import Answer, AnyArray, Request

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits in no pattern: 2^64 over the golden ratio

UnsignedArray = npt.NDArray[np.uint64]


def hashes(numbers: IntArray, seed: int) -> UnsignedArray:
    """Return a random-looking number per row number and seed (the finalizer of splitmix64).

    >>> one, again, other = (hashes(np.arange(2), seed).tolist() for seed in (0, 0, 1))
    >>> one == again != other
    True
    """
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64)
        x *= MULTIPLIER
        x += np.uint64(seed % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x ^= x >> np.uint64(shift)
            x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x


@dataclass(frozen=True)
class Sample(Request):
    """Request for `n` random rows of positive weight, or for all if there are fewer.

    Answer: hash, row number and weight of each, then the rows, dense (float32 if the data are) or CSR.
    `read_sample` reads it. Rows with a hash above `highest` are left out.
    """

    n: int
    seed: int = 0
    highest: int = int(np.iinfo(np.uint64).max)

    def start(self, n_features: int) -> Answer:
        empty = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), np.empty(0)
        return [*empty, np.empty((0, n_features))]  # type: ignore[return-value]  # a list: replaced in place

    def add(self, block: Block, answer: Answer) -> None:
        counted = np.flatnonzero(block.weights > 0)
        few = block.take(counted[self.pick(block.numbers[counted])])
        values = few.matrix if isinstance(few, SparseBlock) else few.dense()
        answer[:] = self.merge(answer, self.draw(values, few.weights, few.numbers))  # type: ignore[index]

    def draw(self, values: Any, weights: AnyArray, numbers: IntArray) -> Answer:
        """Return the answer of picked rows, dense or CSR; float32 stays, and takes half the space."""
        if sparse.issparse(values):
            values = sparse.csr_array(values, dtype=np.float64)
        elif values.dtype != np.float32:
            with np.errstate(over="ignore"):  # as in a block: what float64 cannot hold becomes infinite
                values = values.astype(np.float64, copy=False)
        return hashes(numbers, self.seed), numbers, weights, values

    def pick(self, numbers: IntArray) -> IntArray:
        """Return which rows of positive weight with these numbers are drawn, in the order of the numbers."""
        keys = hashes(numbers, self.seed)
        low = np.flatnonzero(keys <= np.uint64(self.highest))
        return np.asarray(low[smallest(keys[low], numbers[low], self.n)])

    def merge(self, left: Answer, right: Answer) -> Answer:
        return self.merge_all([left, right])

    def merge_all(self, parts: Sequence[Answer | None]) -> Answer:
        """Return the rows of smallest hash among all parts: no order of merging changes them."""
        some = [part for part in parts if part is not None]
        full = [part for part in some if len(part[0])]
        if len(full) < 2:
            return (full or some)[0]
        keys, numbers, weights = (np.concatenate([part[i] for part in full]) for i in range(3))
        few = smallest(keys, numbers, self.n)
        rows = [part[3] for part in full]
        values = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
        return keys[few], numbers[few], weights[few], values[few]


def bound_samples(requests: Sequence[Request], n_rows: int) -> list[Request]:
    """Return requests about n_rows rows, samples with a bound on the hashes: a block reads few rows more.

    The number of rows under the bound is binomial with mean n + 7 sqrt(n) + 40, more than six standard
    deviations above n: one of 10^9 samples has fewer rows than asked for.
    """
    found = list(requests)
    for i, request in enumerate(requests):
        if isinstance(request, Sample) and (expected := request.n + 7.0 * request.n**0.5 + 40.0) < n_rows:
            found[i] = replace(request, highest=int(expected / n_rows * 2.0**64))
    return found


def read_sample(answer: Answer) -> tuple[Any, AnyArray, IntArray]:
    """Return the rows of a sample in the order of their numbers, their weights and numbers.

    Those of an engine have that order: large samples are copied only from float32.
    """
    _, numbers, weights, values = answer
    if not (numbers[1:] > numbers[:-1]).all():
        order = np.argsort(numbers, kind="stable")
        values, weights, numbers = values[order], weights[order], numbers[order]
    return values.astype(np.float64, copy=False), weights, numbers


def part_of(answer: Answer, n: int) -> Answer:
    """Return the sample of n rows that a larger one with the same seed contains."""
    if len(answer[0]) <= n:
        return answer
    few = smallest(answer[0], answer[1], n)
    return tuple(part[few] for part in answer)


def smallest(keys: UnsignedArray, numbers: IntArray, n: int) -> IntArray:
    """Return the places of the n smallest keys, in the order of the numbers.

    There are no ties: different numbers have different hashes, since every step of the hash is invertible.
    """
    few = np.arange(len(keys)) if len(keys) <= n else np.argpartition(keys, n)[:n]
    return np.asarray(few[np.argsort(numbers[few], kind="stable")])
