"""Dask collections: the same bits as the array for the same bounds, lazy results, partitions by name."""

import threading
import weakref
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from threadpoolctl import threadpool_info

import ravine
from ravine import (
    AutoCluster,
    MaximinSeparation,
    MaximumMargin,
    MinimumDensity,
    MinimumDensityClassifier,
    SpectralConnectivity,
)
from ravine.data.dask_engine import DaskEngine, DaskSource
from ravine.data.memory import MemoryRows, chunk_rows
from ravine.data.node import Node
from ravine.data.query import Asked, answer
from ravine.data.sample import Sample, read_sample
from ravine.data.standardization import Moments
from ravine.exceptions import InvalidInputError, RavineError
from tests.data.test_block_engine import Above, same
from tests.engines import ArraySource, engine_of

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.normal(size=(N, 4)) + 7.0 * np.eye(4)[RNG.integers(4, size=N)]
STEP = chunk_rows(N)
LAZY = ("predict", "transform", "predict_proba", "decision_function")


@pytest.fixture(autouse=True)
def few_local_rows(monkeypatch):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 10_000)


@pytest.fixture
def model():
    return MinimumDensity(4).fit(X)


def delayed_array(function, lengths, width=4):
    parts = [
        da.from_delayed(dask.delayed(function, pure=False)(i), (n, width), dtype=float)
        for i, n in enumerate(lengths)
    ]
    return da.concatenate(parts)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_an_array_gives_the_bits_of_the_ndarray_and_lazy_results(scheduler, model):
    with dask.config.set(scheduler=scheduler):
        rows = da.from_array(X, chunks=(STEP, 3))  # columns in chunks too
        two = MinimumDensity(4).fit(rows)
        assert two.tree_ == model.tree_
        assert isinstance(two.labels_, da.Array)
        np.testing.assert_array_equal(two.labels_.compute(), model.labels_)
        for name in LAZY:
            lazy = getattr(two, name)(rows)
            assert isinstance(lazy, da.Array)
            found, expected = lazy.compute(), getattr(model, name)(X)
            assert (lazy.shape, lazy.dtype) == (expected.shape, found.dtype)
            np.testing.assert_array_equal(found, expected)


def test_data_frames_have_names_unknown_lengths_and_empty_partitions(model):
    frame = pd.DataFrame(X, columns=list("abcd"))
    parts = [frame[:STEP], frame[:0], *(frame[a : a + STEP] for a in range(STEP, N, STEP))]
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])
    two = MinimumDensity(4).fit(rows)
    np.testing.assert_array_equal(two.labels_.compute(), model.labels_)
    assert two.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(two.predict(rows).compute(), model.labels_)
    np.testing.assert_array_equal(two.transform(rows.to_dask_array()).compute(), model.transform(X))
    mixed = frame.astype({"a": "Float64", "b": "double[pyarrow]"}).assign(d=frame.d > 3)
    rows = dd.from_pandas(mixed, npartitions=3)
    two = MinimumDensity(2).fit(rows)
    np.testing.assert_array_equal(two.labels_.compute(), MinimumDensity(2).fit(mixed.astype(float)).labels_)
    np.testing.assert_array_equal(two.predict(rows).compute(), two.labels_.compute())
    with pytest.raises(InvalidInputError, match=r"column 'city' .*numbers"):
        MinimumDensity(2).fit(dd.from_pandas(frame.assign(city="x"), npartitions=2))


def test_partitions_may_be_csr_and_of_different_types_and_sizes():
    values = np.where(X > 3, np.round(X, 2), 0.0)
    one = MinimumDensity(4).fit(sparse.csr_array(values))
    bounds = np.append(np.arange(0, N, STEP), N)
    rows = delayed_array(lambda i: sparse.csr_matrix(values[bounds[i] : bounds[i + 1]]), np.diff(bounds))
    two = MinimumDensity(4).fit(rows)
    np.testing.assert_array_equal(two.labels_.compute(), one.labels_)
    np.testing.assert_array_equal(two.predict(rows).compute(), one.labels_)
    whole, types = np.round(X).astype(np.int16), (np.int16, np.float32, np.float64)
    mixed = delayed_array(
        lambda i: whole[[0, 100, 30_000, N][i] : [0, 100, 30_000, N][i + 1]].astype(types[i]),
        [100, 29_900, 10_000],
    )
    again = MinimumDensity(4).fit(mixed)
    assert (again.labels_.compute() == MinimumDensity(4).fit(whole.astype(float)).labels_).mean() > 0.999


def test_sparse_nodes_are_small_by_their_stored_values_in_memory_and_on_dask():
    values = np.where(X > 6, X, 0.0)
    csr = sparse.csr_array(values)
    bounds = np.append(np.arange(0, N, STEP), N)
    rows = delayed_array(lambda i: csr[bounds[i] : bounds[i + 1]], np.diff(bounds))
    own = DaskSource(rows).rows_in_place(None)
    assert own.values_per_row == MemoryRows(csr).values_per_row == csr.nnz / N < 2
    assert Node(own).is_local == Node(MemoryRows(csr)).is_local
    assert MemoryRows(values).values_per_row == DaskSource(da.from_array(X)).values_per_row == 4


def test_weights_labels_kernels_and_other_methods():
    rows = da.from_array(X, chunks=(STEP, 4))
    weights = RNG.integers(0, 3, N) * 0.7
    y = np.full(N, -1)
    y[::1000] = X[::1000].argmax(axis=1)
    for estimator, args in (
        (MinimumDensity(3), {"sample_weight": weights}),
        (MinimumDensity(3), {"y": y}),
        (MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 50, "n_components": 5}), {}),
        (MaximumMargin(2), {}),
        (MaximinSeparation(3), {}),
    ):
        one = estimator.fit(X, **args).labels_
        np.testing.assert_array_equal(estimator.fit(rows, **args).labels_.compute(), one)
    lazy = MinimumDensity(3).fit(rows, sample_weight=da.from_array(weights, chunks=500)).labels_
    np.testing.assert_array_equal(lazy.compute(), MinimumDensity(3).fit(X, sample_weight=weights).labels_)
    one, two = (MinimumDensityClassifier().fit(some, y) for some in (X, rows))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(two.predict(rows).compute(), one.predict(X))


@pytest.mark.parametrize(
    "estimator",
    [
        MinimumDensity(2, kernel="diffusion", kernel_params={"landmarks": 300, "n_components": 3}),
        MinimumDensity("auto"),
        SpectralConnectivity(2),
        SpectralConnectivity(2, n_directions=2),
    ],
    ids=["diffusion", "auto", "connectivity", "several directions"],
)
def test_other_estimators_give_the_same_labels(estimator):
    few = X[: 2 * STEP]
    one = estimator.fit(few).labels_
    two = estimator.fit(da.from_array(few, chunks=(STEP, 4))).labels_
    np.testing.assert_array_equal(two.compute(), one)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
def test_other_bounds_give_the_same_labels_on_real_data(load):
    values = load().data
    n, d = values.shape
    bounds = np.append(np.arange(0, n, n // 11), n)
    one = MinimumDensity(3).fit(values).labels_
    for rows in (da.from_array(values, chunks=(n // 7, d // 3)), ArraySource(values, bounds)):
        np.testing.assert_array_equal(np.asarray(MinimumDensity(3).fit(rows).labels_), one)


def test_arrays_of_unknown_lengths(model):
    rows = dd.from_pandas(pd.DataFrame(X), npartitions=4).to_dask_array()
    assert np.isnan(rows.shape[0])
    labels = MinimumDensity(4).fit(rows).labels_
    np.testing.assert_array_equal(labels.compute(), model.labels_)
    assert labels.shape == (N,)


def test_other_processes_with_one_blas_thread_give_the_same_bits():
    few = X[: 2 * STEP]
    rows = da.from_array(few, chunks=(STEP, 4))
    own = MinimumDensity(2).fit(few)
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        two = MinimumDensity(2).fit(rows)
        np.testing.assert_array_equal(two.labels_.compute(), own.labels_)
        engine = DaskEngine(DaskSource(rows))
        assert engine.map(engine.rows(), blas_threads).tolist() == [1] * len(few)
    assert two.tree_ == own.tree_


def blas_threads(block):
    """One value per row: the number of threads of BLAS where the rows are."""
    most = max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
    return np.full(len(block), most)


def test_labels_are_lazy():
    few, lengths = X[: 2 * STEP], [STEP, 0, STEP]
    rows = delayed_array(lambda i: few[[0, STEP, STEP][i] : [STEP, STEP, 2 * STEP][i]], lengths)
    for model in (MinimumDensity(), MinimumDensity(kernel="diffusion"), AutoCluster(2), AutoCluster()):
        one = model.fit(few).labels_
        lazy = model.fit(rows).labels_
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy.compute(), one)
        lazy = model.predict(rows)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy.compute(), one)


def test_rows_that_differ_from_pass_to_pass_are_refused():
    rng = np.random.default_rng()
    lock = threading.Lock()

    def shuffled(i):
        with lock:
            return rng.permutation(X[i * STEP : (i + 1) * STEP]) if i == 1 else X[i * STEP : (i + 1) * STEP]

    rows = delayed_array(shuffled, [STEP] * 3)
    with pytest.raises(InvalidInputError, match="partition 1 of X changed"):
        MinimumDensity(2).fit(rows)
    assert MinimumDensity(2).fit(rows.persist()).n_clusters_ == 2


def test_errors_name_the_partition():
    def broken(i):
        if i == 2:
            raise OSError("disk on fire")
        return X[i * STEP : (i + 1) * STEP]

    with pytest.raises(OSError, match="disk on fire"):  # of the user's own tasks, as it is
        MinimumDensity(2).fit(delayed_array(broken, [STEP] * 3))
    holes = np.where(X[:100] > 5, np.nan, 1.0)
    for kind in (np.asarray, sparse.csr_array):
        rows = delayed_array(lambda i, kind=kind: kind(holes if i == 1 else X[:100]), [100] * 3)
        with pytest.raises(InvalidInputError, match=r"NaN .*in columns 0"):
            MinimumDensity(2).fit(rows)
    with pytest.raises(ValueError, match="contains NaN or infinity") as error:
        MinimumDensity(2).fit(X[:500]).predict(rows).compute(scheduler="synchronous")
    assert "in partition 1 of X" in error.value.__notes__
    text = delayed_array(lambda i: np.array([["a", "b"]]), [1, 1], 2)
    with pytest.raises(InvalidInputError, match=r"partition \d .*matrix of numbers"):
        MinimumDensity(2).fit(text)
    with pytest.raises(InvalidInputError, match="has to have rows and columns"):
        MinimumDensity(2).fit(da.zeros(5))


def test_errors_of_a_cluster_are_not_those_of_the_rows():
    error = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})("all workers died")

    def broken(i):
        raise error

    rows = delayed_array(broken, [STEP])
    with pytest.raises(RavineError, match=r"cluster of Dask .*all workers died"):
        MinimumDensity(2).fit(rows)


def test_columns_of_one_name_are_refused_as_in_memory():
    frame = pd.DataFrame(X[:100], columns=list("abca"))
    model = MinimumDensity(2).fit(X[:100])
    for call in (MinimumDensity(2).fit, model.predict, ravine.check):
        for rows in (frame, dd.from_pandas(frame, npartitions=2)):
            with pytest.raises(InvalidInputError, match=r"several columns .*name a; rename"):
                call(rows)


def test_requests_are_one_key_and_a_pass_is_one_tree():
    engine = DaskEngine(DaskSource(da.from_array(X, chunks=(1000, 4))))
    group = engine.rows().group([Moments(np.zeros(4), np.ones(4))])
    tree = engine._tree(range(40), [group])
    names = [str(name) for name in dict(tree.dask)]
    assert sum(name.startswith("Constant") for name in names) == 1
    assert sum(name.startswith("answer") for name in names) == 40
    assert sum(name.startswith("merge") for name in names) == 10 + 3 + 1
    before = engine.passes
    found = engine.answer([Asked(engine.rows(), Moments(np.zeros(4), np.ones(4)))])[0]
    expected = answer([Asked(MemoryRows(X), Moments(np.zeros(4), np.ones(4)))])[0]
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    assert engine.passes == before + 1


def test_leaves_in_some_of_many_partitions_have_the_bits_of_blocks():
    """Sums are merged in a tree of block numbers: it does not matter which blocks have rows of a leaf."""
    ordered, weights = X[np.argsort(X[:, 0])], RNG.uniform(size=N)
    blocks = engine_of(ordered, weights, np.arange(0, N + 1, 1000))
    lazy = DaskEngine(DaskSource(da.from_array(ordered, chunks=(1000, 4))), weights)
    answers = []
    for engine in (blocks, lazy):
        ((left, right),) = engine.divide([(engine.rows(), Above(0, ordered[4500, 0]))])
        sets = [left, right, engine.union([left, right]), right.select(np.arange(0, 35_000, 7001))]
        asked = [Asked(some, Moments(np.zeros(4), np.ones(4))) for some in sets]
        answers.append([*engine.answer(asked[:3]), *(engine.answer([one])[0] for one in asked)])
        answers[-1].append([np.array([some.total for some in sets])])
    for one, two in zip(*answers, strict=True):
        same(one, two)


def counted(step=1000):
    """The rows in partitions, and a list of the most partitions that were in memory at the same time."""
    alive, most, lock = [0], [0], threading.Lock()

    def gone():
        alive[0] -= 1

    def load(i):
        rows = X[i * step : (i + 1) * step].copy()
        with lock:
            alive[0] += 1
            most[0] = max(most[0], alive[0])
        weakref.finalize(rows, gone)
        return rows

    return delayed_array(load, [step] * (N // step)), most


@pytest.mark.parametrize("n_workers", [1, 2])
def test_no_more_partitions_are_in_memory_than_workers_need(n_workers):
    rows, most = counted()
    with dask.config.set(scheduler="threads", num_workers=n_workers):
        two = MinimumDensity(3).fit(rows)
        two.predict(rows).sum().compute()
    assert most[0] <= 4 * n_workers


def test_a_check_has_one_partition_in_memory_and_a_report_as_many_as_workers_need(model):
    rows, most = counted()
    assert ravine.check(rows) == ravine.check(X)
    assert 1 <= most[0] <= 2  # the next one is loaded while the last is still referred to
    with dask.config.set(scheduler="threads", num_workers=1):
        page = ravine.report(model, rows)
    assert most[0] <= 4
    assert page == ravine.report(model, X)


def test_a_check_finds_in_partitions_of_all_kinds_what_it_finds_in_memory():
    values = np.where(X[:3000] > 6, np.round(X[:3000], 2), 0.0)
    values[:, 3] = values[:, 2]
    values[7, 0], values[2500, 1] = np.nan, np.inf
    bounds = [0, 1000, 1000, 3000]
    for kind in (np.asarray, sparse.csr_array, sparse.coo_matrix):
        rows = delayed_array(lambda i, kind=kind: kind(values[bounds[i] : bounds[i + 1]]), [1000, 0, 2000])
        expected = ravine.check(kind(values))
        assert {"missing", "infinite"} <= {one.kind for one in expected}
        assert ravine.check(rows) == expected
    words = pd.DataFrame({"word": list("abcd") * 10})
    assert ravine.check(dd.from_pandas(words, npartitions=3)) == ravine.check(words)
    other = delayed_array(lambda i: X[:10, : 4 - i], [10, 10])
    with pytest.raises(InvalidInputError, match=r"partition 1 .*3 columns, but X has 4"):
        ravine.check(other)
    with pytest.raises(InvalidInputError, match=r"number of columns .*not known"):
        ravine.check(da.from_delayed(dask.delayed(X), (N, np.nan), dtype=float))


def test_a_pass_over_some_partitions_reads_only_these():
    ordered = X[np.argsort(X[:, 0])]
    engine = DaskEngine(DaskSource(da.from_array(ordered, chunks=(5000, 4))))
    ((left, right),) = engine.divide([(engine.rows(), Above(0, ordered[10_000, 0] - 1e-9))])
    assert (left.shape[0], right.shape[0]) == (10_000, 30_000)
    before = engine.reads.rows
    engine.answer([Asked(left, Moments(np.zeros(4), np.ones(4)))])
    assert engine.reads.rows - before == 10_000


def test_a_division_that_fails_leaves_the_rows_in_their_leaves(monkeypatch):
    """On a cluster, ids are computed in the background: a failure shows when they are counted."""
    engine = DaskEngine(DaskSource(da.from_array(X, chunks=(5000, 4))))
    rows = engine.rows()
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_count", lambda sets: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            engine.divide([(rows, Above(0))])
    (again,) = engine.answer([Asked(rows, Moments(np.zeros(4), np.ones(4)))])
    np.testing.assert_allclose(again[0][0], X.sum(axis=0))
    ((left, right),) = engine.divide([(rows, Above(0))])
    assert (left.shape[0], right.shape[0]) == ((X[:, 0] <= 0).sum(), (X[:, 0] > 0).sum())


def test_samples_of_float32_rows_are_not_widened_on_their_way():
    narrow = X.astype(np.float32)
    engine = DaskEngine(DaskSource(da.from_array(narrow, chunks=(5000, 4))))
    (found,) = engine.answer([Asked(engine.rows(), Sample(1000))])
    assert found[3].dtype == np.float32
    values, _, numbers = read_sample(found)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, narrow[numbers])
