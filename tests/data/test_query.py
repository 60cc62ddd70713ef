"""Queries side by side: shared passes, results in order, and errors that end the run."""

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from ravine.data.memory import IN_MEMORY, MemoryRows
from ravine.data.query import Additive, Asked, answer, fold, gather, run, run_all
from ravine.data.standardization import Moments
from tests.data.test_block_engine import same
from tests.engines import in_blocks

ROWS = np.random.default_rng(0).normal(size=(700, 3))


@dataclass(frozen=True)
class Weight(Additive):
    """The weight of the rows, or an error."""

    fails: bool = False

    def start(self, n_features):
        return (np.zeros(1),)

    def add(self, block, answer):
        (total,) = answer
        if self.fails:
            raise ArithmeticError("on purpose")
        total += block.weights.sum()


def weigh(rows, rounds):
    """Ask a few times, one request after the other."""
    total = 0.0
    for _ in range(rounds):
        ((weight,),) = yield [Asked(rows, Weight())]
        total += weight[0]
    return total


def fail(rows, before=0):
    """Ask for something that fails, after a few requests that do not."""
    yield from weigh(rows, before)
    yield [Asked(rows, Weight(fails=True))]


KINDS = {"memory": MemoryRows, "blocks": in_blocks}
RUNNERS = {"gather": lambda queries: run(gather(queries)), "run_all": run_all}


@pytest.fixture(params=KINDS)
def rows(request):
    return KINDS[request.param](ROWS)


@pytest.fixture(params=RUNNERS)
def run_several(request):
    return RUNNERS[request.param]


def test_gather_asks_in_one_pass_and_returns_in_order():
    rows = MemoryRows(ROWS)
    assert run(gather([weigh(rows, 3), weigh(rows, 0), weigh(rows, 5)])) == [2100.0, 0.0, 3500.0]
    assert rows.reads.rows == 5 * 700


def test_gather_of_nothing_and_gathers_within_gathers(rows):
    assert run(gather([])) == []
    inner = [gather([weigh(rows, 1), weigh(rows, 2)]), gather([]), gather([weigh(rows, 3)])]
    assert run(gather(inner)) == [[700.0, 1400.0], [], [2100.0]]


def test_run_returns_what_a_query_returns_even_if_it_asks_for_nothing(rows):
    assert run(weigh(rows, 2)) == 1400.0
    assert run(weigh(rows, 0)) == 0.0


def test_several_queries_over_blocks_share_every_pass():
    rows = in_blocks(ROWS)
    assert run_all([weigh(rows, 3), weigh(rows, 5)]) == [2100.0, 3500.0]
    assert rows.engine.passes == 5


def test_one_pass_serves_all_sets_of_rows_of_an_engine():
    every = in_blocks(ROWS)
    sets = [every.select(np.arange(start, 700, 7)) for start in range(7)]
    assert run_all([weigh(rows, 2) for rows in sets]) == [200.0] * 7
    assert every.engine.passes == 2


def test_local_rows_are_served_between_the_passes_of_others():
    near, far = MemoryRows(ROWS), in_blocks(ROWS)

    def first_near_then_far():
        total = yield from weigh(near, 10)
        return total + (yield from weigh(far, 2))

    assert run_all([first_near_then_far(), weigh(far, 3)]) == [8400.0, 2100.0]
    assert far.engine.passes == 3
    assert near.reads.rows == 10 * 700


def test_every_engine_answers_its_own_requests_in_the_order_asked():
    near, far = MemoryRows(ROWS[:10]), in_blocks(ROWS[:300])
    asked = [Asked(far, Weight()), Asked(near, Weight()), Asked(far, Weight()), Asked(near, Weight())]
    assert [float(total[0]) for (total,) in answer(asked)] == [300.0, 10.0, 300.0, 10.0]
    assert far.engine.passes == 1
    assert near.reads.rows == 10
    assert near.engine is IN_MEMORY


def test_a_request_that_fails_ends_the_run(rows, run_several):
    with pytest.raises(ArithmeticError, match="on purpose"):
        run(fail(rows))
    with pytest.raises(ArithmeticError, match="on purpose"):
        run_several([weigh(rows, 4), gather([weigh(rows, 4), fail(rows, before=2)])])


def test_an_error_of_the_engine_itself_ends_the_run(rows, run_several, monkeypatch):
    def broken(asked):
        raise OSError("the disk is gone")

    monkeypatch.setattr(rows.engine, "answer", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        run_several([weigh(rows, 2), weigh(rows, 1)])


@pytest.mark.parametrize("missing", [(), (0,), (1, 2, 6), (0, 1, 2), tuple(range(1, 9))])
def test_many_answers_are_merged_as_by_pairs_and_are_not_changed(missing):
    moments, rng = Moments(np.zeros(3), np.ones(3)), np.random.default_rng(0)
    for one, shapes in ((moments, [(2, 3), (3,), (3,)]), (Weight(), [(4000,), (4000, 3)])):
        parts = [
            None if k in missing else tuple(rng.standard_normal(shape) for shape in shapes) for k in range(9)
        ]
        parts[3] = None if 3 in missing else tuple(np.asfortranarray(array) for array in parts[3])
        before = copy.deepcopy(parts)
        found = one.merge_all(parts)
        for a, b in zip(parts, before, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                same(a, b)
        same(found, fold(one.merge, before))
