"""The rows of one block: in pieces, and by the sets to which they belong."""

import numpy as np

from ravine.data.block_pass import BlockData, places_of


def test_pieces_are_float64_rows_of_any_type_also_those_of_a_whole_block():
    rng = np.random.default_rng(0)
    for kind in (np.float64, np.float32, np.int16):
        values = (100 * rng.standard_normal((20_000, 50))).astype(kind)
        for places in (np.arange(20_000), np.arange(3, 20_000, 3)):
            pieces = BlockData(values, None).pieces(places)
            found = np.concatenate([piece.dense().copy() for _, piece in pieces])
            assert found.dtype == np.float64
            np.testing.assert_array_equal(found, values[places])


def test_places_are_those_of_each_set_in_order():
    ids = np.random.default_rng(0).integers(6, size=1000).astype(np.int32)
    for sets in ([(3,)], [(0, 5), (2,)], [(1, 2), (2, 3)], [(7,), (4,)], [()], []):
        found = places_of(ids, sets)
        assert len(found) == len(sets)
        for places, some in zip(found, sets, strict=True):
            np.testing.assert_array_equal(places, np.flatnonzero(np.isin(ids, some)))
