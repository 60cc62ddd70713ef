"""Samples are the rows of smallest hash: the same rows however the data are stored, cut and merged."""

import itertools

import numpy as np
import pytest
from scipy import sparse, stats

from ravine.data.memory import MemoryRows
from ravine.data.query import Asked, fold, run
from ravine.data.sample import Sample, hashes, read_sample, smallest
from tests.engines import block_of, in_blocks

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(1000, 3)).round(2) * RNG.integers(0, 2, (1000, 3))
WEIGHTS = RNG.integers(0, 3, 1000).astype(float)
KINDS = {"dense": np.asarray, "csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}


def ask(rows, request):
    def query():
        return (yield [Asked(rows, request)])[0]

    return run(query())


def drawn(rows, n, seed=0):
    """The numbers of the rows of a sample."""
    return read_sample(ask(rows, Sample(n, seed)))[2]


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


def assert_same(answer, other):
    assert len(answer) == len(other)
    assert sparse.issparse(answer[3]) == sparse.issparse(other[3])
    for a, b in zip(map(dense, answer), map(dense, other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_hashes_are_those_of_the_published_finalizer():
    """The splitmix64 generator of seed s returns finalizer(s + k golden), k = 1, 2, ..., by whole numbers."""

    def finalizer(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    numbers = np.array([0, 1, 2, 77, 10**12])
    for seed in (0, 5, 2**63 + 11, 2**64 - 1):
        plain = [finalizer((seed + int(k) * 0x9E3779B97F4A7C15) % 2**64) for k in numbers]
        assert hashes(numbers, seed).tolist() == plain
    assert hashes(np.array([1, 2, 3]), 1234567).tolist() == [  # of the reference implementation in C
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_hashes_differ_by_row_and_by_seed_and_are_spread_evenly():
    found = [hashes(np.arange(20_000), seed) for seed in (3, 4)]
    assert len(np.unique(np.concatenate(found))) == 40_000
    for each in found:
        assert stats.kstest(each / 2.0**64, "uniform").pvalue > 1e-3
        assert abs(stats.spearmanr(each, np.arange(20_000)).statistic) < 0.03
    assert abs(stats.spearmanr(*found).statistic) < 0.03


@pytest.mark.parametrize("n", [0, 1, 3, 10, 40, 99, 100, 200])
def test_the_smallest_are_those_of_sorting_in_the_order_of_their_numbers(n):
    numbers = RNG.permutation(5000)[:100]
    keys = hashes(numbers, 7)
    found = smallest(keys, numbers, n)
    assert sorted(keys[found]) == sorted(keys)[:n]
    assert (np.diff(numbers[found]) > 0).all()


@pytest.mark.parametrize("n", [1, 30, 400, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_holds_the_rows_of_smallest_hash_in_order(kind, n):
    counted = np.flatnonzero(WEIGHTS > 0)
    expected = np.sort(counted[np.argsort(hashes(counted, 5))[:n]])
    for rows in (MemoryRows(KINDS[kind](ROWS), WEIGHTS), in_blocks(KINDS[kind](ROWS), WEIGHTS)):
        values, weights, numbers = read_sample(ask(rows, Sample(n, 5)))
        assert sparse.issparse(values) == (kind != "dense")
        np.testing.assert_array_equal(numbers, expected)
        np.testing.assert_array_equal(dense(values), ROWS[expected])
        np.testing.assert_array_equal(weights, WEIGHTS[expected])


@pytest.mark.parametrize("n", [1, 30, 400, 5000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_rows_in_memory_give_the_answer_of_blocks_of_any_size(kind, n, size):
    X = KINDS[kind](ROWS)
    assert_same(ask(in_blocks(X, WEIGHTS, size), Sample(n, 5)), ask(MemoryRows(X, WEIGHTS), Sample(n, 5)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_some_rows_is_the_same_in_memory_and_in_blocks(kind):
    X, some = KINDS[kind](ROWS), np.flatnonzero(RNG.random(1000) < 0.3)
    in_memory = MemoryRows(X, WEIGHTS).select(some)
    assert_same(
        ask(in_blocks(X, WEIGHTS).select(some), Sample(50, 1)),
        ask(in_memory, Sample(50, 1)),
    )
    assert np.isin(drawn(in_memory, 50), some).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_blocks_and_of_merges_does_not_matter(kind):
    X, request = KINDS[kind](ROWS), Sample(20, 2)
    engine = in_blocks(X, WEIGHTS).engine
    parts = [np.arange(1000)[k::4] for k in range(4)]
    expected = ask(MemoryRows(X, WEIGHTS), request)

    def answer_of(numbers, so_far=None):
        found = request.start(3) if so_far is None else so_far
        request.add(block_of(engine, numbers), found)
        return found

    for order in itertools.permutations(range(4)):
        in_a_row = request.start(3)
        for k in order:
            answer_of(parts[k], in_a_row)
        assert_same(in_a_row, expected)
        assert_same(fold(request.merge, [answer_of(parts[k]) for k in order]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_part_changes_nothing(kind):
    request, engine = Sample(20, 2), in_blocks(KINDS[kind](ROWS), WEIGHTS).engine
    found, nothing, weightless = (request.start(3) for _ in range(3))
    request.add(block_of(engine, np.arange(300)), found)
    request.add(block_of(engine, np.flatnonzero(WEIGHTS == 0)[:9]), weightless)
    before = [part.copy() for part in found]
    for empty in (nothing, weightless):
        assert_same(request.merge(list(found), empty), before)
        assert_same(request.merge(empty, list(found)), before)
    request.add(block_of(engine, np.flatnonzero(WEIGHTS == 0)), found)
    assert_same(found, before)


def test_samples_of_several_sizes_and_seeds_share_a_pass():
    rows = in_blocks(ROWS, WEIGHTS)
    requests = [Sample(10, 1), Sample(25, 1), Sample(10, 2)]

    def query():
        return (yield [Asked(rows, request) for request in requests])

    together = run(query())
    assert rows.engine.passes == 1
    for request, answer in zip(requests, together, strict=True):
        assert_same(answer, ask(MemoryRows(ROWS, WEIGHTS), request))
    assert set(together[0][1]) < set(together[1][1])  # a larger sample of one seed holds the smaller


@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
def test_a_sample_has_only_rows_of_positive_weight(as_rows):
    weights = np.zeros(1000)
    weights[[3, 700, 701]] = 1.0
    rows = as_rows(np.arange(1000.0)[:, None], weights)
    assert rows.n_counted == 3
    assert rows.first == 3
    assert np.isin(drawn(rows, 2), [3, 700, 701]).all()
    assert drawn(rows, 50).tolist() == [3, 700, 701]


def test_a_sample_of_no_rows_is_empty():
    for rows in (MemoryRows(ROWS), in_blocks(ROWS), MemoryRows(ROWS, np.zeros(1000))):
        values, weights, numbers = read_sample(ask(rows, Sample(0 if rows.n_counted else 5)))
        assert values.shape == (0, 3)
        assert len(weights) == len(numbers) == 0


def test_a_sample_depends_on_its_seed_and_is_spread_over_the_rows():
    rows = MemoryRows(np.arange(1000.0)[:, None], 1 + np.arange(1000.0))
    first, again, other = (drawn(rows, 100, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert len(np.intersect1d(first, other)) < 30
    often = np.bincount(np.concatenate([drawn(rows, 100, seed) for seed in range(300)]), minlength=1000)
    assert often.sum() == 30_000
    assert stats.chisquare(often).pvalue > 1e-3  # every row is drawn as often
    assert (often > 0).all()


def test_only_the_rows_drawn_are_read_in_memory():
    rows = MemoryRows(ROWS, WEIGHTS)
    drawn(rows, 40)
    assert rows.reads.rows == 40


@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
def test_integers_and_float32_are_drawn_as_they_are(as_rows):
    for X in (RNG.integers(0, 255, (300, 4)).astype(np.uint8), ROWS.astype(np.float32)):
        values, _, numbers = read_sample(ask(as_rows(X), Sample(30)))
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, X[numbers])
        held = read_sample(ask(as_rows(sparse.csr_array(X)), Sample(30)))[0]
        assert held.dtype == np.float64
        np.testing.assert_array_equal(held.toarray(), values)
