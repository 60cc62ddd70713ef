"""Rows in memory: every kind of array, weights, selections, threads, and the fold."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from ravine import MinimumDensity
from ravine.data import blocks, memory
from ravine.data.blocks import DenseBlock, SparseBlock
from ravine.data.memory import IN_MEMORY, MemoryRows
from ravine.data.principal import CovarianceTimes
from ravine.data.profile import Grid, ProfileSum, SlopeSum
from ravine.data.query import fold
from ravine.data.standardization import Moments, Standardization
from ravine.data.threads import Threads, one_blas_thread

RNG = np.random.default_rng(0)
ROWS = np.ascontiguousarray(RNG.normal(size=(700, 7)).round(3) * RNG.integers(0, 2, (700, 7)))
STANDARDIZATION = Standardization(
    ROWS.mean(axis=0), ROWS.std(axis=0), 1 / ROWS.std(axis=0), 700.0, np.zeros(7, dtype=bool)
)
DIRECTION = RNG.standard_normal(7)
GRID = Grid.around_mean(8.0, 0.1)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks and chunks so small that 700 rows make many of them."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 7 * 8)
    monkeypatch.setattr(blocks, "CHUNK_ROWS", 100)
    monkeypatch.setattr(memory, "CHUNK_ROWS", 100)


def dense_profile(X, weights):
    """The oracle of a profile: plain numpy, row by row."""
    Z = (X - STANDARDIZATION.mean) * STANDARDIZATION.inverse_scale
    t = Z @ DIRECTION
    bins = np.clip(((t - GRID.low) / GRID.width).astype(int), 0, GRID.n_bins - 1)
    mass, moment, sums = np.zeros(GRID.n_bins), np.zeros(GRID.n_bins), np.zeros((GRID.n_bins, X.shape[1]))
    for i, g in enumerate(bins):
        mass[g] += weights[i]
        moment[g] += weights[i] * t[i]
        sums[g] += weights[i] * (X[i] - STANDARDIZATION.mean)
    return mass, moment, sums


KINDS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_profile_and_slope_sums_are_the_plain_sums(small_blocks, kind, weighted):
    weights = RNG.uniform(0, 2, 700) if weighted else None
    rows = MemoryRows(KINDS[kind](ROWS), weights)
    mass, moment, sums = dense_profile(ROWS, np.ones(700) if weights is None else weights)
    slope = RNG.standard_normal(GRID.n_bins)
    profile, gradient = rows.pass_over(
        [
            ProfileSum(STANDARDIZATION, DIRECTION, GRID, True),
            SlopeSum(STANDARDIZATION, DIRECTION, GRID, slope),
        ]
    )
    np.testing.assert_allclose(profile[0], mass, atol=1e-12)
    np.testing.assert_allclose(profile[1], moment, atol=1e-10)
    np.testing.assert_allclose(profile[2], sums, atol=1e-10)
    np.testing.assert_allclose(gradient[0][0], slope @ sums, atol=1e-9)
    assert rows.reads.rows == 700


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_the_plain_moments(small_blocks, kind):
    weights = np.where(np.arange(700) % 3 == 0, 0.0, RNG.uniform(0, 2, 700))
    X = ROWS.copy()
    X[0] = 1e6  # of weight 0: outside the range that counts
    pivot, scale = RNG.standard_normal(7), np.full(7, 0.5)
    ((totals, low, high),) = MemoryRows(KINDS[kind](X), weights).pass_over([Moments(pivot, scale)])
    Z = (X - pivot) * scale
    np.testing.assert_allclose(totals, [weights @ Z, weights @ Z**2], atol=1e-9)
    np.testing.assert_array_equal(low, X[weights > 0].min(axis=0))
    np.testing.assert_array_equal(high, X[weights > 0].max(axis=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_times_directions(small_blocks, kind, weighted):
    directions = RNG.standard_normal((3, 7))
    weights = RNG.uniform(0, 2, 700) if weighted else np.ones(700)
    rows = MemoryRows(KINDS[kind](ROWS), weights if weighted else None)
    ((product,),) = rows.pass_over([CovarianceTimes(STANDARDIZATION, directions)])
    Z = (ROWS - STANDARDIZATION.mean) * STANDARDIZATION.inverse_scale
    np.testing.assert_allclose(
        product * STANDARDIZATION.inverse_scale, directions @ (Z.T * weights) @ Z, atol=1e-8
    )


@pytest.mark.parametrize("n_others", [0, 1, 2, 7, 9])
def test_a_direction_has_the_same_bits_in_any_company(small_blocks, n_others):
    rows = MemoryRows(ROWS)
    others = RNG.standard_normal((n_others, 7))
    alone = rows.pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0]
    asked = [ProfileSum(STANDARDIZATION, v, GRID, True) for v in [*others, DIRECTION]]
    among = rows.pass_over(asked)[-1]
    for a, b in zip(alone, among, strict=True):
        np.testing.assert_array_equal(a, b)


def same_bits(rows, expected):
    for a, b in zip(
        rows.pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0], expected, strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_threads_share_passes_over_many_values_only(small_blocks, monkeypatch):
    expected = MemoryRows(ROWS).map(lambda block: block.dense()[:, 0])
    for least, shared in ((ROWS.size + 1, False), (ROWS.size, True)):
        monkeypatch.setattr(memory, "THREADED_VALUES", least)
        threads, began = Threads(2), []
        monkeypatch.setattr(threads, "begin", began.append)  # returns None: no thread is idle
        found = MemoryRows(ROWS, threads=threads).map(lambda block: block.dense()[:, 0])
        np.testing.assert_array_equal(found, expected)
        assert bool(began) == shared


def test_the_same_bits_for_any_threads_and_any_dense_array(small_blocks, tmp_path):
    expected = MemoryRows(ROWS).pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0]
    for n_jobs in (2, 4):
        same_bits(MemoryRows(ROWS, threads=Threads(n_jobs)), expected)
    same_bits(MemoryRows(np.asfortranarray(ROWS)), expected)
    file = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=ROWS.shape)
    file[:] = ROWS
    same_bits(
        MemoryRows(np.memmap(tmp_path / "rows", dtype=np.float64, mode="r", shape=ROWS.shape)), expected
    )
    frozen = ROWS.copy()
    frozen.flags.writeable = False
    same_bits(MemoryRows(frozen), expected)


def test_integers_and_float32_are_read_as_they_are():
    whole = RNG.integers(0, 255, (300, 7)).astype(np.uint8)
    same_bits(
        MemoryRows(whole),
        MemoryRows(whole.astype(float)).pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0],
    )
    single = ROWS.astype(np.float32)
    same_bits(
        MemoryRows(single),
        MemoryRows(single.astype(float)).pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_is_its_rows(small_blocks, kind):
    picked = np.flatnonzero(RNG.random(700) < 0.4)
    weights = RNG.uniform(0, 2, 700)
    part = MemoryRows(KINDS[kind](ROWS), weights).select(picked)
    assert part.shape == (len(picked), 7)
    assert part.total == pytest.approx(weights[picked].sum())
    np.testing.assert_array_equal(part.map(lambda block: block.dense()), ROWS[picked])
    whole = MemoryRows(ROWS)
    whole.select(picked).map(lambda block: block.weights)
    assert whole.reads.rows == len(picked)  # what a selection reads is read
    within = np.arange(0, len(picked), 3)
    np.testing.assert_array_equal(part.select(within).map(lambda block: block.dense()), ROWS[picked[within]])
    mass, _, sums = dense_profile(ROWS[picked], weights[picked])
    answer = part.pass_over([ProfileSum(STANDARDIZATION, DIRECTION, GRID, True)])[0]
    np.testing.assert_allclose(answer[2], sums, atol=1e-10)
    np.testing.assert_allclose(answer[0], mass, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_divided_united_and_labeled_by_their_numbers(small_blocks, kind):
    class Divider:
        """Rows whose first column is positive are on the right."""

        def distances(self, block):
            return block.dense()[:, 0]

    weights = RNG.uniform(0, 2, 700)
    rows = MemoryRows(KINDS[kind](ROWS), weights, Threads(2))
    some = rows.select(np.arange(1, 700, 2))
    ((left, right), (few_left, few_right)) = IN_MEMORY.divide([(rows, Divider()), (some, Divider())])
    np.testing.assert_array_equal(left.numbers, np.flatnonzero(ROWS[:, 0] <= 0))
    np.testing.assert_array_equal(right.numbers, np.flatnonzero(ROWS[:, 0] > 0))
    np.testing.assert_array_equal(few_left.numbers, np.intersect1d(left.numbers, some.numbers))
    assert left.total + right.total == pytest.approx(weights.sum())
    united = IN_MEMORY.union([few_right, few_left])
    np.testing.assert_array_equal(united.numbers, some.numbers)
    assert united.total == pytest.approx(some.total)
    labels = IN_MEMORY.assign([left, few_right, rows.select(np.array([4]))], [3, 1, 2])
    expected = np.where(ROWS[:, 0] <= 0, 3, np.where(np.arange(700) % 2 == 1, 1, 0))
    expected[4] = 2
    np.testing.assert_array_equal(labels, expected)


def test_rows_that_count_are_known_to_a_selection_too():
    weights = np.where(np.arange(700) % 5 == 0, 0.0, 1.0)
    rows = MemoryRows(ROWS, weights)
    part = rows.select(np.arange(10, 30))
    assert (rows.n_counted, rows.first, rows.is_whole) == (560, 1, False)
    assert (part.n_counted, part.first, part.is_whole) == (16, 11, False)
    assert part.counted.tolist() == [k for k in range(20) if k % 5]
    whole = MemoryRows(ROWS, weights + 1)
    assert (whole.n_counted, whole.first, whole.is_whole) == (700, 0, True)
    assert not whole.select(np.arange(700)).is_whole


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_two_matrix_products_keep_their_digits_far_from_the_origin(kind):
    rng = np.random.default_rng(0)
    near = rng.standard_normal((40, 3))
    pivot = np.full(3, 1e6 if kind == "dense" else 2.0)
    values, ones = near + pivot, np.ones(40)
    block = DenseBlock(values, ones) if kind == "dense" else SparseBlock(sparse.csr_array(values), ones)
    directions, weights = rng.standard_normal((5, 3)), rng.standard_normal((2, 40))
    np.testing.assert_allclose(block.product(pivot, directions), directions @ near.T, atol=1e-8)
    np.testing.assert_allclose(block.weighted_sums(pivot, weights), weights @ near, atol=1e-8)


def test_the_fold_is_a_tree_over_neighbors():
    def merge(a, b):
        return (f"({a[0]}{b[0]})",)

    assert fold(merge, [(c,) for c in "abcde"]) == ("(((ab)(cd))e)",)
    assert fold(merge, [None, ("b",), None, None, ("e",), ("f",)]) == ("(b(ef))",)


def test_map_keeps_the_order_of_rows_over_threads(small_blocks):
    numbers = MemoryRows(ROWS, threads=Threads(4)).map(lambda block: block.dense()[:, 0])
    np.testing.assert_array_equal(numbers, ROWS[:, 0])


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    """BLAS at two threads, as no one holds it to."""
    limit = threadpool_limits(2, "blas")
    release()
    yield
    limit.restore_original_limits()
    release()


def release():
    for library in ThreadpoolController().lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()


def test_blas_gets_its_threads_back_when_the_last_of_several_users_ends(two_blas_threads):
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_blas_gets_its_threads_back_after_fits_in_threads_that_overlap_and_fail(two_blas_threads):
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[100:] += 8
    inside, leave = ([Event(), Event()] for _ in range(2))

    def fit(k):
        def callback(progress):
            inside[k].set()
            assert leave[k].wait(60)
            if k == 1:
                raise RuntimeError("on purpose")

        MinimumDensity(2, verbose=callback).fit(X)

    with ThreadPoolExecutor(2) as pool:
        jobs = []
        for k in range(2):
            jobs.append(pool.submit(fit, k))
            assert inside[k].wait(60)
        assert blas_threads() == {1}
        leave[0].set()
        jobs[0].result()
        held = blas_threads()
        leave[1].set()
        with pytest.raises(RuntimeError, match="on purpose"):
            jobs[1].result()
    assert held == {1}
    assert blas_threads() == {2}


def test_a_tiny_bandwidth_does_not_make_any_number_of_bins():
    assert Grid.around_mean(5.0, 1e-9).n_bins == 32_768
    assert Grid.around_mean(5.0, 0.1).n_bins == 100
