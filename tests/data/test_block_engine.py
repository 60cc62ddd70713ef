"""Rows in blocks: the same bits as in memory, few reads, and sources that change are refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from ravine.data.memory import MemoryRows
from ravine.data.query import Asked, answer
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Moments
from ravine.exceptions import InvalidInputError, RavineError
from tests.engines import ArraySource, engine_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40_000, 3))
WEIGHTS = RNG.integers(0, 3, len(X)) * RNG.uniform(size=len(X))
MOMENTS = Moments(np.zeros(3), np.ones(3))


@dataclass(frozen=True)
class Above:
    """Rows with a large value in one column are on the right."""

    column: int
    threshold: float = 0.0

    def distances(self, block):
        return block.dense()[:, self.column] - self.threshold


def same(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_divided_rows_have_the_same_bits_as_in_memory(weights, is_sparse, n_jobs):
    values = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)) if is_sparse else X
    memory, blocks = MemoryRows(values, weights), engine_of(values, weights, n_jobs=n_jobs).rows()
    (one,) = memory.engine.divide([(memory, Above(0))])
    (two,) = blocks.engine.divide([(blocks, Above(0))])
    for a, b in zip((memory, *one), (blocks, *two), strict=True):
        assert (a.shape, a.total, a.n_counted, a.first) == (b.shape, b.total, b.n_counted, b.first)
    asked = [
        [Asked(some, request) for some in (rows, *sides) for request in (MOMENTS, Sample(100, 3))]
        for rows, sides in ((memory, one), (blocks, two))
    ]
    for a, b in zip(*map(answer, asked), strict=True):
        same(a, b) if len(a) == 3 else same(map(np.asarray, read_sample(a)[1:]), read_sample(b)[1:])


def test_one_pass_reads_every_block_once_for_all_leaves_and_skips_others():
    values = np.sort(X[:, :1], axis=0)  # so that each side is in some blocks only
    engine = engine_of(values)
    ((left, right),) = engine.divide([(engine.rows(), Above(0))])
    moments = Moments(np.zeros(1), np.ones(1))
    engine.source.reads.clear()
    engine.answer([Asked(engine.rows(), moments), Asked(left, moments), Asked(right, Sample(5))])
    assert sorted(engine.source.reads) == list(range(len(engine.source.lengths)))
    engine.source.reads.clear()
    before = engine.reads.rows
    engine.answer([Asked(left, moments)])
    assert sorted(engine.source.reads) == [0, 1, 2]
    assert engine.reads.rows - before == sum(engine.source.lengths[:3])
    assert engine.passes == 3


def test_rows_that_were_divided_stay_reachable_through_their_descendants():
    engine = engine_of(X, WEIGHTS)
    root = engine.rows()
    (before,) = engine.answer([Asked(root, MOMENTS)])
    ((left, right),) = engine.divide([(root, Above(0))])
    ((_, inner),) = engine.divide([(left, Above(1))])
    assert inner.shape[0] == ((X[:, 0] <= 0) & (X[:, 1] > 0)).sum()
    both = engine.union([inner, right])
    picked = MemoryRows(X, WEIGHTS, picked=both.numbers)
    assert (both.shape, both.total, both.first) == (picked.shape, picked.total, picked.first)
    after, of_union = engine.answer([Asked(root, MOMENTS), Asked(both, MOMENTS)])
    same(before, after)
    same(of_union, answer([Asked(picked, MOMENTS)])[0])
    labels = engine.assign([left, right], [1, 2])
    np.testing.assert_array_equal(labels, np.where(X[:, 0] > 0, 2, 1))


def test_rows_in_some_chunks_have_the_same_bits_as_in_memory():
    values = X[np.argsort(X[:, 0])]
    memory, blocks = MemoryRows(values, WEIGHTS), engine_of(values, WEIGHTS).rows()
    numbers = np.concatenate([np.arange(3, 20), np.arange(9000, 12_000), np.arange(25_000, 40_000)])
    one, two = memory.select(numbers), blocks.select(numbers)
    assert one.total == two.total
    same(*(answer([Asked(rows, MOMENTS)])[0] for rows in (one, two)))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_picked_rows_are_a_set_of_their_own(weights):
    numbers = np.flatnonzero(X[:, 2] > 1)
    one, two = MemoryRows(X, weights).select(numbers), engine_of(X, weights).rows().select(numbers)
    assert (one.shape, one.total, one.n_counted, one.first) == (
        two.shape,
        two.total,
        two.n_counted,
        two.first,
    )
    same(*(answer([Asked(rows, MOMENTS)])[0] for rows in (one, two)))
    same([one.map(lambda block: block.dense())], [two.map(lambda block: block.dense())])


@pytest.mark.parametrize("n", [1, 50, 5000, 50_000])
def test_samples_do_not_depend_on_bounds_and_blocks_answer_with_few_rows(n):
    bounds = np.array([0, 7, 7, 30_000, 40_000])
    one, two = (
        read_sample(answer([Asked(rows, Sample(n, 9))])[0])
        for rows in (MemoryRows(X), engine_of(X, bounds=bounds).rows())
    )
    same(one, two)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_source_that_changes_is_refused_by_name(is_sparse):
    values = sparse.csr_array(X) if is_sparse else X.copy()
    engine = engine_of(values)
    engine.answer([Asked(engine.rows(), MOMENTS)])
    rows = values.data.reshape(values.shape) if is_sparse else values
    rows[[8192, 8193]] = rows[[8193, 8192]]  # the same sum, another order
    with pytest.raises(InvalidInputError, match=r"block 1 \(rows 8192 to 16383\) changed"):
        engine.answer([Asked(engine.rows(), MOMENTS)])


def test_errors_name_the_block():
    class Broken(ArraySource):
        def read(self, block):
            if block == 2:
                raise OSError("no such file")
            return super().read(block)[:, : 3 - (block == 3)]

    engine = engine_of(X)
    engine.source = Broken(X)
    with pytest.raises(RavineError, match=r"block 2 .*16384 to 24575.*no such file"):
        engine.answer([Asked(engine.rows(), MOMENTS)])
    with pytest.raises(InvalidInputError, match=r"block 3 .*shape \(8192, 2\)"):
        engine.answer([Asked(engine.rows().select(np.array([30_000])), MOMENTS)])


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_division_that_fails_leaves_all_rows_where_they_were(n_jobs):
    class FailsLater(Above):
        def distances(self, block):
            if block.numbers[0] >= 3 * 8192:
                raise KeyboardInterrupt
            return super().distances(block)

    engine = engine_of(X, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        engine.divide([(engine.rows(), FailsLater(0))])
    assert all((ids == 0).all() for ids in engine.ids)
    ((left, right),) = engine.divide([(engine.rows(), Above(0))])
    assert (left.shape[0], right.shape[0]) == ((X[:, 0] <= 0).sum(), (X[:, 0] > 0).sum())
