"""Files as rows: the same model as from the array in memory, whatever the format."""

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ravine
from ravine import MaximinSeparation, MinimumDensity, MinimumDensityClassifier, SpectralConnectivity
from ravine.data.memory import chunk_rows
from ravine.data.node import LOCAL_CELLS
from ravine.exceptions import InvalidInputError, RavineError

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.normal(size=(N, 4)) + 7.0 * np.eye(4)[RNG.integers(4, size=N)]
NAMES = list("abcd")


def npy(folder, values):
    np.save(folder / "rows.npy", values)
    return folder / "rows.npy"


def fortran(folder, values):
    return npy(folder, np.asfortranarray(values))


def table_of(values):
    return pa.table(dict(zip(NAMES, values.T, strict=True)))


def parquet(folder, values):
    pq.write_table(table_of(values), folder / "rows.parquet", row_group_size=chunk_rows(len(values)))
    return folder / "rows.parquet"


def arrow(folder, values):
    table = table_of(values)
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    return folder / "rows.arrow"


def directory(folder, values):
    (folder / "parts").mkdir()
    step = chunk_rows(len(values))
    for i, start in enumerate(range(0, len(values), step)):
        pq.write_table(table_of(values[start : start + step]), folder / "parts" / f"{i:03}.parquet")
    return folder / "parts"


def csv(folder, values):
    pd.DataFrame(values, columns=NAMES).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


FORMATS = (npy, fortran, parquet, arrow, directory, csv)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)
def test_every_format_gives_the_bits_of_the_array(write, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 10_000)
    values = X.astype(dtype)
    if write in (arrow, csv):  # converted to float64
        values = values.astype(np.float64)
    one = MinimumDensity(4).fit(values)
    two = MinimumDensity(4).fit(file := ravine.open(write(tmp_path, values)))
    assert file.shape == values.shape
    assert len(file.lengths) > 2
    assert file.lengths[0] == chunk_rows(N)  # as in memory, unless the limit or the row groups are smaller
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.transform(values), two.transform(file))
    np.testing.assert_array_equal(two.predict(file), one.labels_)
    assert two.n_passes_ > 1


def test_other_parts_of_an_estimator_stream_too(tmp_path):
    file, model = ravine.open(npy(tmp_path, X), memory_limit=1 << 20), MinimumDensity(4).fit(X)
    assert len(file.lengths) > 8
    np.testing.assert_array_equal(model.predict_proba(file), model.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(file), model.decision_function(X))
    np.testing.assert_array_equal(model.tree_.predict(file), model.labels_)
    np.testing.assert_array_equal(MinimumDensity(4).fit(file).labels_, model.labels_)


def test_weights_labels_kernels_and_the_classifier(tmp_path):
    file = ravine.open(npy(tmp_path, X))
    weights = RNG.integers(0, 3, N) * 0.7
    y = np.full(N, -1)
    y[::1000] = X[::1000].argmax(axis=1)
    for model, args in (
        (MinimumDensity(3), {"sample_weight": weights}),
        (MinimumDensity(3), {"y": y}),
        (MinimumDensity(2, kernel="rbf", kernel_params={"landmarks": 50}), {}),
        (SpectralConnectivity(3), {}),
        (MaximinSeparation(2), {}),
    ):
        one = model.fit(X, **args).labels_
        np.testing.assert_array_equal(model.fit(file, **args).labels_, one)
    one = MinimumDensityClassifier().fit(X, y)
    two = MinimumDensityClassifier().fit(file, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.predict(X), two.predict(file))


def test_columns_are_chosen_by_name_and_checked(tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(city="x", whole=np.arange(N))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=3000)
    with pytest.warns(UserWarning, match=r"columns of text are left out \(city\)"):
        assert ravine.open(tmp_path / "t.parquet").names == ("a", "b", "c", "d", "whole")
    file = ravine.open(tmp_path / "t.parquet", columns=["c", "a"])
    model = MinimumDensity(2).fit(file)
    assert model.feature_names_in_.tolist() == ["c", "a"]
    np.testing.assert_array_equal(model.labels_, MinimumDensity(2).fit(frame[["c", "a"]]).labels_)
    with pytest.raises(InvalidInputError, match=r"columns a, c, but .*fitted on c, a"):
        model.predict(ravine.open(tmp_path / "t.parquet", columns=["a", "c"]))
    with pytest.raises(RavineError, match="column 'city' holds text"):
        ravine.open(tmp_path / "t.parquet", columns=["city"])
    for write in (fortran, npy):
        two = ravine.open(write(tmp_path, X), columns=[2, "x0"])
        np.testing.assert_array_equal(two[10:12], X[10:12][:, [2, 0]])
        np.testing.assert_array_equal(two.read(1), X[two.bounds[1] : two.bounds[2]][:, [2, 0]])
    with pytest.raises(InvalidInputError, match="has no column 'x9'; it has x0, x1, x2, x3"):
        ravine.open(tmp_path / "rows.npy", columns=[9])


def test_a_data_frame_may_have_columns_of_any_name():
    frame = pd.DataFrame(X[:500], columns=["lengths", "read", "mapped", "rows_in_place"])
    labels = MinimumDensity(2).fit(X[:500]).labels_
    np.testing.assert_array_equal(MinimumDensity(2).fit(frame).labels_, labels)
    kernel = MinimumDensity(2, kernel=lambda A, B: np.asarray(A) @ np.asarray(B).T).fit(frame)
    assert kernel.n_clusters_ == 2


def test_missing_values_and_damaged_files_are_refused(tmp_path):
    values = X.copy()
    values[17, 2] = np.nan
    with pytest.raises(InvalidInputError, match="NaN or infinity in column 2"):
        MinimumDensity(2).fit(ravine.open(parquet(tmp_path, values)))
    file = ravine.open(npy(tmp_path, X))
    with open(file.path, "r+b") as raw:
        raw.truncate(N * 16)
    with pytest.raises(RavineError, match=r"block \d of .*rows.npy .* became shorter"):
        MinimumDensity(2).fit(file)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RavineError, match="has no Parquet files"):
        ravine.open(tmp_path / "empty")


def test_a_fit_holds_a_few_blocks_and_no_more(tmp_path):
    values = np.repeat(X, LOCAL_CELLS // X.size + 1, axis=0)  # 35 MB: fewer are copied
    path = npy(tmp_path, values)
    MinimumDensity(2).fit(X)  # loads modules
    gc.collect()
    tracemalloc.start()
    MinimumDensity(2).fit(ravine.open(path, memory_limit=1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < values.nbytes


INDICES = [
    X[:, 0] > 5.0,
    [-1],
    [3, 1, 3, N - 1, -N],
    np.array([7, 200], dtype=np.uint8),
    slice(None, None, -1),
    slice(50, 2, -7),
    slice(5, 5),
    slice(9, N, 8000),
    [],
    3,
    -1,
]


@pytest.mark.parametrize("write", [npy, fortran, parquet, arrow, csv])
def test_rows_of_a_file_are_selected_as_those_of_an_array(tmp_path, write):
    file = ravine.open(write(tmp_path, X))
    for index in INDICES:
        np.testing.assert_array_equal(file[index], X[index])
    for index in ([N], [-N - 1], N, [True, False], [0.5], None, (slice(0, 2), 1), [[1, 2]], True):
        with pytest.raises(IndexError):
            file[index]
    with pytest.raises(IndexError):
        file[:, 0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_becomes_shorter_is_an_error_and_no_signal(tmp_path, order):
    path = npy(tmp_path, np.asarray(X, order=order))
    code = (
        "import os, sys, ravine\n"
        "file = ravine.open(sys.argv[1])\n"
        "os.truncate(sys.argv[1], 200_000)\n"
        "try: ravine.MinimumDensity(2).fit(file)\n"
        "except ravine.exceptions.RavineError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "became shorter" in run.stdout
