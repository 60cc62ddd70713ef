"""Memory that a thread keeps: reused by the same thread, never shared, and not kept if it is large."""

import threading

import numpy as np

from ravine.data.block_pass import BlockData, places_of
from ravine.data.scratch import BLOCK_BYTES, scratch


def test_a_thread_gets_the_same_memory_again_and_another_thread_its_own():
    first, found = scratch("test", (30, 4)), []
    assert np.shares_memory(first, scratch("test", (7, 2)))
    assert not np.shares_memory(first, scratch("another purpose", (30, 4)))
    assert not np.shares_memory(first, scratch("test", (30, 4), np.float32))
    thread = threading.Thread(target=lambda: found.append(scratch("test", (30, 4))))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, found[0])


def test_large_memory_is_not_kept():
    large = BLOCK_BYTES // 8 + 1
    assert not np.shares_memory(scratch("test", (large,)), scratch("test", (large,)))


def test_pieces_are_float64_rows_of_any_type_also_those_of_a_whole_block():
    rng = np.random.default_rng(0)
    for kind in (np.float64, np.float32, np.int16):
        values = (100 * rng.standard_normal((20_000, 50))).astype(kind)
        for places in (np.arange(20_000), np.arange(3, 20_000, 3)):
            pieces = BlockData(values, None, 0).pieces(places, reuse=True)
            found = np.concatenate([piece.dense().copy() for _, piece in pieces])
            assert found.dtype == np.float64
            np.testing.assert_array_equal(found, values[places])


def test_places_are_those_of_each_set_in_order():
    ids = np.random.default_rng(0).integers(6, size=1000).astype(np.int32)
    for sets in ([(3,)], [(0, 5), (2,)], [(1, 2), (2, 3)], [(7,), (4,)], [()], []):
        for reuse in (False, True):
            found = places_of(ids, sets, reuse=reuse)
            assert len(found) == len(sets)
            for places, some in zip(found, sets, strict=True):
                np.testing.assert_array_equal(places, np.flatnonzero(np.isin(ids, some)))
