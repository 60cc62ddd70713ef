"""What holds for every request: weights are copies, and blocks, threads and storage change nothing."""

import numpy as np
import pytest
from scipy import sparse

from ravine.data.memory import MemoryRows
from ravine.data.microclusters import Compared, NearestSum
from ravine.data.node import Node
from ravine.data.principal import Covariance, CovarianceTimes
from ravine.data.profile import Grid, ProfileSum, SlopeSum
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Moments
from ravine.data.threads import Threads
from ravine.optimize.cutting_plane import ConstraintSum, LinearFunctions
from ravine.optimize.sides import LineMoments, Side, SideSums
from tests.engines import in_blocks
from tests.nodes import measured

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal([3, -1, 0], [1, 5, 0.1], (1500, 3)), np.full(1500, 2.5)]).round(6)
X[:, 1] *= RNG.integers(0, 2, 1500)
WEIGHTS = RNG.integers(0, 4, 1500).astype(float)
OWN = measured(X, WEIGHTS).standardization
UNIT = np.array([0.6, 0.64, 0.48, 0.0])
TURNED = np.array([0.8, 0.0, -0.6, 0.0])
AXES = np.array([UNIT, TURNED])
GRID = Grid.around_mean(5.0, 0.05)
SEEDS = RNG.standard_normal((9, 2))
CUT = (UNIT, 0.2)
FUNCTIONS = LinearFunctions(AXES, np.array([0.1, -0.3]))

REQUESTS = {
    "moments": Moments(OWN.mean + 0.1, np.full(4, 0.5)),
    "covariance": Covariance(OWN),
    "covariance times": CovarianceTimes(OWN, AXES),
    "profile": ProfileSum(OWN, UNIT, GRID, True),
    "profile without rows": ProfileSum(OWN, UNIT, GRID, False),
    "slope": SlopeSum(OWN, UNIT, GRID, RNG.standard_normal(GRID.n_bins)),
    "nearest": NearestSum(Compared(OWN, directions=AXES), SEEDS),
    "nearest along axes": NearestSum(Compared(OWN, AXES), SEEDS),
    "all rows": SideSums(OWN, None),
    "side": SideSums(OWN, CUT),
    "side without squares": SideSums(OWN, CUT, squares=False),
    "change of side": SideSums(OWN, CUT, (TURNED, -0.1)),
    "line moments": LineMoments(OWN, CUT),
    "constraints": ConstraintSum(
        OWN, LinearFunctions(AXES, np.array([0.1, -0.3])), LinearFunctions.one(UNIT, 0.2)
    ),
    "sample": Sample(50, 3),
}
COUNTS_ROWS = ("sample",)  # how many rows are in them depends on the rows, not on the weight


def read(request, answer):
    """What an answer means, without the order in which it was added up."""
    if isinstance(request, Sample):
        values, *rest = read_sample(answer)
        return values.toarray() if sparse.issparse(values) else values, *rest
    return answer


def ask(rows, *requests):
    answers = rows.engine.answer(Node(rows).ask(*requests))
    return [read(request, answer) for request, answer in zip(requests, answers, strict=True)]


def assert_close(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-8)


@pytest.fixture(params=REQUESTS)
def name(request):
    return request.param


@pytest.fixture
def asked(name):
    return REQUESTS[name]


def test_the_same_bits_for_any_number_of_threads(asked, monkeypatch):
    monkeypatch.setattr("ravine.data.memory.CHUNK_ROWS", 100)
    monkeypatch.setattr("ravine.data.blocks.BLOCK_BYTES", 64 * 4 * 8)
    one, two, four = (MemoryRows(X, WEIGHTS, Threads(n_jobs)).pass_over([asked])[0] for n_jobs in (1, 2, 4))
    for expected, *others in zip(read(asked, one), read(asked, two), read(asked, four), strict=True):
        for other in others:
            np.testing.assert_array_equal(other, expected)


@pytest.mark.parametrize("size", [1, 64, 999])
def test_blocks_of_any_size_give_the_answer_of_rows_in_memory(asked, size):
    (expected,) = ask(MemoryRows(X, WEIGHTS), asked)
    (found,) = ask(in_blocks(X, WEIGHTS, size), asked)
    assert_close(found, expected)


@pytest.mark.parametrize("store", [sparse.csr_array, sparse.csr_matrix, np.asfortranarray])
@pytest.mark.parametrize("as_rows", [MemoryRows, in_blocks])
def test_storage_changes_nothing(asked, store, as_rows):
    (expected,) = ask(MemoryRows(X, WEIGHTS), asked)
    (found,) = ask(as_rows(store(X), WEIGHTS), asked)
    assert_close(found, expected)


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in COUNTS_ROWS])
def test_weights_are_copies(name):
    asked = REQUESTS[name]
    (one,) = ask(MemoryRows(X, WEIGHTS), asked)
    (two,) = ask(MemoryRows(np.repeat(X, WEIGHTS.astype(int), axis=0)), asked)
    assert_close(one, two)


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "sample"])  # drawn by row number
def test_rows_of_weight_zero_change_nothing(name):
    kept, asked = WEIGHTS > 0, REQUESTS[name]
    (one,) = ask(MemoryRows(X, WEIGHTS), asked)
    (two,) = ask(MemoryRows(X[kept], WEIGHTS[kept]), asked)
    assert_close(one, two)


def test_a_selection_is_its_rows(asked, name):
    some = np.flatnonzero(RNG.random(1500) < 0.4)
    (one,) = ask(MemoryRows(X, WEIGHTS).select(some), asked)
    (two,) = ask(in_blocks(X, WEIGHTS).select(some), asked)
    assert_close(one, two)
    if name != "sample":
        assert_close(one, ask(MemoryRows(X[some], WEIGHTS[some]), asked)[0])


def test_all_requests_are_answered_in_one_pass_as_each_alone():
    for rows in (MemoryRows(X, WEIGHTS), in_blocks(X, WEIGHTS, 200)):
        together = ask(rows, *REQUESTS.values())
        if isinstance(rows, MemoryRows):
            assert rows.reads.rows == 1500 + 50
        else:
            assert rows.engine.passes == 1
        for request, found in zip(REQUESTS.values(), together, strict=True):
            assert_close(found, ask(rows, request)[0])


# --- the sides of a plane, against plain moments ------------------------------------------------------------


def test_line_moments_are_plain_moments_of_the_distances():
    distances = OWN.apply(X) @ UNIT - 0.2
    ((found,),) = ask(in_blocks(X, WEIGHTS), LineMoments(OWN, CUT))
    for k, side in enumerate((distances <= 0, distances > 0)):
        t, w = distances[side], WEIGHTS[side]
        np.testing.assert_allclose(found[k], [w.sum(), w @ t, w @ t**2])


def test_a_side_has_the_plain_moments_and_changes_add_up_to_it():
    Z, before = OWN.apply(X), (TURNED, -0.1)
    right = Z @ UNIT > 0.2
    answers = MemoryRows(X, WEIGHTS).pass_over(
        [SideSums(OWN, before), SideSums(OWN, CUT, before), SideSums(OWN, CUT)]
    )
    switched = WEIGHTS[right != (Z @ TURNED > -0.1)].sum()
    assert answers[1][0][1] == pytest.approx(switched)
    first, change, second = (Side.of(answer) for answer in answers)
    w, varies = WEIGHTS[right], np.flatnonzero(OWN.varies)
    assert varies.tolist() == [0, 1, 2]
    for side in (second, first + change):
        assert side.weight == pytest.approx(w.sum())
        np.testing.assert_allclose(side.mean, np.average(Z[right], axis=0, weights=w), atol=1e-10)
        covariance = np.cov(Z[right][:, varies].T, aweights=w, ddof=0)
        np.testing.assert_allclose(side.covariance(varies), covariance, atol=1e-9)
