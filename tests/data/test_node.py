"""Nodes: what is measured, drawn and copied of their rows, in memory and in blocks."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from ravine.data import node as nodes
from ravine.data.memory import MemoryRows
from ravine.data.node import (
    Labels,
    Node,
    collect,
    draw_sample,
    labels_of,
    measure,
    open_node,
    sample,
    sample_rows,
    sample_sizes,
)
from ravine.data.query import run, run_all
from ravine.data.sample import Sample, hashes
from ravine.data.threads import Threads
from tests.engines import engine_of, in_blocks
from tests.nodes import measured, node_of

RNG = np.random.default_rng(0)
ROWS = RNG.normal(3.0, 2.0, (1200, 4)).round(2)
WEIGHTS = RNG.integers(0, 3, 1200).astype(float)


def dense(rows):
    return rows.map(lambda block: block.dense())


def in_block_node(X, weights=None, **options):
    return Node(in_blocks(X, weights), **options)


BOTH = {"memory": lambda X, weights=None, **options: Node(MemoryRows(X, weights), **options)}
BOTH["blocks"] = in_block_node


@pytest.fixture(params=BOTH)
def make(request):
    return BOTH[request.param]


def test_a_node_knows_the_size_and_the_weight_of_its_rows(make):
    node = make(ROWS, WEIGHTS)
    assert node.n_features == 4
    assert node.n_rows == (WEIGHTS > 0).sum()
    assert node.total == WEIGHTS.sum()


def test_random_numbers_come_from_seed_path_and_purpose():
    node = node_of(ROWS, seed=3)
    draws = [
        each.rng(purpose).random()
        for each, purpose in (
            (node, "starts"),
            (node, "starts"),
            (node, "landmarks"),
            (replace(node, stream=(4,)), "starts"),
            (replace(node, stream=(3, 1)), "starts"),
        )
    ]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 4
    requests = [node.sample_request(10, purpose) for purpose in ("starts", "starts", "landmarks")]
    assert requests[0] == requests[1] != requests[2]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_a_sample_is_a_measured_node_in_memory_with_the_scale_of_its_node(make, store):
    node = run(measure(make(store(ROWS), WEIGHTS, stream=(0,), min_weight=30.0)))
    drawn = run(sample(node, 200, "starts"))
    counted = np.flatnonzero(WEIGHTS > 0)
    keys = hashes(counted, node.sample_request(200, "starts").seed)
    picked = np.sort(counted[np.argsort(keys)[:200]])
    np.testing.assert_array_equal(dense(drawn.rows), ROWS[picked])
    assert sparse.issparse(drawn.rows.array) == (store is sparse.csr_array)
    np.testing.assert_array_equal(drawn.rows.own_weights, WEIGHTS[picked])
    assert drawn.total == WEIGHTS[picked].sum()
    assert drawn.min_weight == pytest.approx(30.0 * drawn.total / node.total)
    np.testing.assert_allclose(
        drawn.standardization.mean, np.average(ROWS[picked], axis=0, weights=WEIGHTS[picked]), rtol=1e-12
    )
    np.testing.assert_array_equal(drawn.standardization.inverse_scale, node.standardization.inverse_scale)
    assert drawn.root_standardization is node.measured
    np.testing.assert_array_equal(drawn.pivot, node.standardization.mean)
    assert drawn.stream != node.stream


def test_a_sample_of_rows_that_count_once_has_no_weights_to_carry(make):
    node = run(measure(make(ROWS)))
    assert run(sample(node, 50, "starts")).rows.weights is None


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_drawn_rows_are_dense_and_those_of_the_sample(make, store):
    node = run(measure(make(store(ROWS), WEIGHTS)))
    values, weights = run(sample_rows(node, 60, "landmarks"))
    drawn = run(sample(node, 60, "landmarks"))
    np.testing.assert_array_equal(values, dense(drawn.rows))
    np.testing.assert_array_equal(weights, drawn.rows.own_weights)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("below", [False, True])
def test_opening_measures_and_draws_in_one_pass(make, store, below):
    root = measured(ROWS).measured if below else None
    node = make(store(ROWS), WEIGHTS, root_standardization=root)
    found = run(open_node(node, [50, 200]))
    opened, samples = found.node, found.samples
    if isinstance(node.rows, MemoryRows):
        peek = 0 if below else nodes.FEW_ROWS
        assert node.rows.reads.rows == 1200 + nodes.FEW_ROWS + peek
    else:
        assert node.rows.engine.passes == (1 if below else 2)
    plain = run(measure(node))
    np.testing.assert_array_equal(opened.standardization.mean, plain.standardization.mean)
    np.testing.assert_array_equal(opened.standardization.inverse_scale, plain.standardization.inverse_scale)
    assert opened.rows is node.rows
    for k, (drawn, n) in enumerate(zip(samples, (50, 200), strict=True)):
        alone = run(sample(opened, n, "sample 0"))
        np.testing.assert_array_equal(dense(drawn.rows), dense(alone.rows))
        np.testing.assert_array_equal(drawn.rows.own_weights, alone.rows.own_weights)
        assert (drawn.stream == alone.stream) == (k == 0)
        np.testing.assert_array_equal(drawn.standardization.mean, alone.standardization.mean)
        np.testing.assert_array_equal(
            drawn.standardization.inverse_scale, opened.standardization.inverse_scale
        )
    assert set(map(tuple, dense(samples[0].rows))) < set(map(tuple, dense(samples[1].rows)))


def test_a_node_below_the_root_has_its_own_mean_and_the_scale_of_the_root(make):
    root = measured(ROWS)
    X = ROWS[ROWS[:, 0] > 4].copy()
    X[:, 2] = 1.5  # constant here, though it varies at the root
    below = run(measure(make(X, root_standardization=root.measured))).standardization
    np.testing.assert_allclose(below.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(below.deviation, np.where(np.arange(4) == 2, 0.0, X.std(axis=0)), rtol=1e-12)
    expected = root.standardization.inverse_scale * [1, 1, 0, 1]
    np.testing.assert_array_equal(below.inverse_scale, expected)
    np.testing.assert_array_equal(
        Node(MemoryRows(X), root_standardization=root.measured).pivot, root.standardization.mean
    )


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_collected_rows_are_a_copy_of_those_that_count(make, store):
    node = make(store(ROWS), WEIGHTS, stream=(5, 1), min_weight=7.0)
    found = run(collect(node))
    assert isinstance(found.rows, MemoryRows)
    assert found.rows.is_whole
    np.testing.assert_array_equal(dense(found.rows), ROWS[WEIGHTS > 0])
    np.testing.assert_array_equal(found.rows.own_weights, WEIGHTS[WEIGHTS > 0])
    assert replace(found, rows=node.rows) == node  # nothing else is different
    again = run(collect(found))
    assert again is found


def test_collected_rows_of_a_selection_are_numbered_anew(make):
    node = make(ROWS)
    some = np.arange(3, 1200, 5)
    part = node.rows.select(some)
    found = run(collect(replace(node, rows=part)))
    assert found.rows.is_whole
    assert found.rows.weights is None
    np.testing.assert_array_equal(dense(found.rows), ROWS[some])


def test_many_rows_are_not_copied(make, monkeypatch):
    node = make(ROWS, WEIGHTS)
    assert run(collect(node)) is not node
    monkeypatch.setattr(nodes, "LOCAL_CELLS", 1000)  # as if there were millions of values
    assert run(collect(node)) is node


def test_samples_drawn_ahead_are_those_that_a_pass_of_their_own_finds():
    wanted = Sample(50, 7), Sample(20, 9)
    engine = engine_of(ROWS, WEIGHTS)
    node = run(open_node(Node(engine.rows()), [], wanted)).node
    before = engine.passes
    for request in wanted:
        ahead = run(draw_sample(node, request))
        (alone,) = engine.answer(node.ask(request))
        for a, b in zip(ahead, alone, strict=True):
            np.testing.assert_array_equal(a, b)
    assert engine.passes == before + 2  # those of `alone`


def test_all_rows_of_an_array_are_not_copied():
    node = node_of(ROWS)
    assert run(collect(node)) is node
    assert node.rows.reads.rows == 0


def test_nodes_in_blocks_are_opened_in_shared_passes():
    every = in_blocks(ROWS, WEIGHTS)
    root = measured(ROWS, WEIGHTS).measured
    parts = [every.select(np.arange(k, 1200, 3)) for k in range(3)]
    found = run_all(
        [
            open_node(Node(rows, stream=(0, k), root_standardization=root), [20])
            for k, rows in enumerate(parts)
        ]
    )
    assert every.engine.passes == 1
    for k, opened in enumerate(found):
        rows = MemoryRows(ROWS, WEIGHTS).select(np.arange(k, 1200, 3))
        alone = run(open_node(Node(rows, stream=(0, k), root_standardization=root), [20]))
        one, other = opened.node.standardization, alone.node.standardization
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
        np.testing.assert_array_equal(dense(opened.samples[0].rows), dense(alone.samples[0].rows))


def test_weights_are_copies_in_a_measured_node(make):
    counts = WEIGHTS.astype(int)
    one, two = (run(measure(node)) for node in (make(ROWS, WEIGHTS), make(np.repeat(ROWS, counts, axis=0))))
    np.testing.assert_allclose(one.standardization.mean, two.standardization.mean, rtol=1e-12)
    np.testing.assert_allclose(
        one.standardization.inverse_scale, two.standardization.inverse_scale, rtol=1e-12
    )
    assert one.total == two.total


def test_labels_are_read_with_their_weights():
    numbers, classes = np.array([3, 70, 500]), np.array([1, 0, 1])
    labels = labels_of(MemoryRows(ROWS, 1.0 + np.arange(1200)), numbers, classes)
    np.testing.assert_array_equal(labels.rows, ROWS[numbers])
    assert labels.weights.tolist() == [4.0, 71.0, 501.0]
    assert labels.n_classes == 2
    assert labels.pick(classes == 1).weights.tolist() == [4.0, 501.0]
    assert labels.pairs_together(np.array([True, True, True])) == 4 * 71 + 71 * 501
    assert labels.pairs_together(np.array([True, False, True])) == 0.0


def test_the_sizes_of_samples_grow_with_the_rows_and_are_bounded_in_memory():
    assert sample_sizes(5000, 3) == []
    for n, d in itertools.product((20_000, 10**6, 10**9), (3, 1000, 10**6)):
        sizes = sample_sizes(n, d)
        assert all(2 * a <= b for a, b in itertools.pairwise([*sizes, n]))
        assert 0 < max(sizes) <= max(nodes.SAMPLE_CELLS // d, nodes.LARGE_SAMPLE)
    assert max(sample_sizes(10**7, 3)) > max(sample_sizes(10**6, 3))
    (whole,), (quarter,) = (sample_sizes(10**9, 100, share) for share in (1.0, 0.25))
    assert quarter == whole // 4


def test_copies_and_samples_keep_the_threads_of_their_node():
    node = run(measure(Node(MemoryRows(ROWS, WEIGHTS, Threads(2)))))
    assert run(sample(node, 100, "some")).rows.threads is node.rows.threads
    assert run(collect(node)).rows.threads is node.rows.threads


def test_a_sparse_node_is_small_if_few_values_are_stored(monkeypatch):
    monkeypatch.setattr(nodes, "LOCAL_CELLS", 3000)
    stored = sparse.random_array((1000, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    assert Node(MemoryRows(stored)).is_local  # 5000 values, below twice the limit
    assert not Node(MemoryRows(stored.toarray())).is_local
    monkeypatch.setattr(nodes, "LOCAL_CELLS", 2000)
    assert not Node(MemoryRows(stored)).is_local


def test_samples_are_drawn_again_by_the_same_stream_and_others_by_another(make):
    node = make(ROWS)
    streams, sizes = [node.stream, node.stream, (0, 1), node.stream], [50, 50, 50, 60]
    first, again, other, larger = (
        dense(run(open_node(replace(node, stream=stream), [n])).samples[0].rows)
        for stream, n in zip(streams, sizes, strict=True)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert len(larger) == 60


def test_another_attempt_has_other_labels_and_the_same_samples(make):
    labels = Labels(ROWS[:2], np.array([0, 1]), np.ones(2))
    opened = run(open_node(make(ROWS), [50]))
    again = opened.given((0, 1), labels)
    assert again.node.stream == (0, 1)
    assert again.node.labels is again.samples[0].labels is labels
    assert again.samples[0].rows is opened.samples[0].rows
