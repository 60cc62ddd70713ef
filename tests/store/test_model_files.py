"""Model files that are damaged or made up: one clear sentence or a whole model, in little memory."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans

import ravine
from ravine import (
    InvalidInputError,
    InvalidModelError,
    MinimumDensity,
    MinimumDensityClassifier,
    PrincipalDirection,
)
from tests.store import model_files
from tests.store.model_files import CHANGES, IRIS, ROWS, edited, members_of, outcome, partly, zipped

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X, Y = IRIS.data, IRIS.target.to_numpy()
MEGABYTES = 500  # limit of the memory in use, of which the imports take about 250


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model_files.write_bases(folder)
    return folder


@pytest.fixture(scope="module")
def bases(folder):
    return model_files.read_bases(folder)


def test_the_whole_models_load_and_predict(bases, tmp_path):
    assert {name: outcome(content, tmp_path / "m") for name, content in bases.items()} == dict.fromkeys(
        bases, "loaded"
    )


@pytest.mark.parametrize("name", CHANGES)
def test_a_crafted_file_is_refused_in_one_sentence(bases, tmp_path, name):
    base, change, message = CHANGES[name]
    (tmp_path / "m").write_bytes(edited(bases[base], change))
    with pytest.raises(InvalidModelError, match=message) as refusal:
        ravine.load(tmp_path / "m")
    assert str(refusal.value).startswith(str(tmp_path / "m"))
    assert "again" in str(refusal.value) or "upgrade" in str(refusal.value)


def tried(folder, n, seed):
    """Try crafted and damaged files in a process of its own."""
    command = [sys.executable, "-m", "tests.store.model_files", str(folder), str(n), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_tried(found, n):
    assert found["crafted"] >= 750
    assert found["unexpected"] == []
    assert sum(found["damaged"].values()) == n
    assert found["damaged"]["refused by a check"] > n / 3  # not only by the archive's own checks
    assert found["damaged"]["loaded"] > n / 20
    assert found["megabytes"] < MEGABYTES


def test_crafted_and_damaged_files_are_refused_or_predict_in_little_memory(folder):
    check_tried(tried(folder, 120, 0), 120)


@pytest.mark.slow
def test_ten_thousand_damaged_files(folder):
    check_tried(tried(folder, 10_000, 1), 10_000)


def test_a_large_file_of_another_kind_is_not_read(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)  # takes no place on the disk, and would take a terabyte of memory
    for path in (tmp_path / "large", "/dev/zero"):
        with pytest.raises(InvalidModelError, match="the file has to be one that ravine wrote"):
            ravine.load(path)
    with pytest.raises(IsADirectoryError):
        ravine.load(tmp_path)


def test_arrays_by_columns_and_of_the_other_byte_order_are_the_same(bases, tmp_path):
    with np.load(io.BytesIO(bases["rbf"])) as stored:
        arrays = {
            name: np.asfortranarray(array.astype(array.dtype.newbyteorder(">")) if name != "meta" else array)
            for name, array in stored.items()
        }
    np.savez(tmp_path / "other.npz", **arrays)
    (tmp_path / "m").write_bytes(bases["rbf"])
    ours, other = ravine.load(tmp_path / "m"), ravine.load(tmp_path / "other.npz")
    assert other.predict_proba(ROWS).tobytes() == ours.predict_proba(ROWS).tobytes()


def test_the_file_is_an_archive_that_numpy_reads(bases):
    assert zipped(members_of(bases["one"])) != b""
    with np.load(io.BytesIO(bases["one"]), allow_pickle=False) as stored:
        assert json.loads(bytes(stored["meta"]))["format"] == "ravine model"


# --- classifiers ---


def check_same_bits(model, again, rows):
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))
    assert again.predict(rows).dtype == model.predict(rows).dtype


@pytest.mark.parametrize("kernel", [None, "rbf", "diffusion", "precomputed"])
@pytest.mark.parametrize("scheme", ["two", "three"])
def test_a_classifier_comes_back_as_it_was(kernel, scheme, tmp_path):
    names = np.array(["setosa", "versicolor", "Virginica ü"])[np.minimum(Y, 1 if scheme == "two" else 2)]
    rows = model_files.SIMILAR if kernel == "precomputed" else X
    model = MinimumDensityClassifier(kernel=kernel).fit(rows, partly(names))
    ravine.save(model, tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    assert type(again) is MinimumDensityClassifier
    assert again.get_params() == model.get_params()
    check_same_bits(model, again, rows)
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    assert (again.n_iter_, again.n_passes_) == (model.n_iter_, model.n_passes_)
    assert len(again.boundaries_) == len(model.boundaries_) == {"two": 1, "three": 3}[scheme]
    assert not hasattr(again, "transduction_")
    if kernel != "precomputed":
        assert list(again.feature_names_in_) == list(X.columns)
        with pytest.raises(ValueError, match="feature names"):
            again.predict(X[X.columns[::-1]])


@pytest.mark.parametrize(
    "names",
    [Y, Y.astype(np.int8), Y + 0.0, Y.astype(np.uint16), Y > 0, Y.astype(str), 10**15 * Y],
    ids=lambda names: str(names.dtype),
)
def test_classes_of_every_type_come_back(names, tmp_path):
    model = MinimumDensityClassifier().fit(X, names)
    ravine.save(model, tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    assert again.classes_.dtype == model.classes_.dtype
    check_same_bits(model, again, X)


def far_away(meta, arrays):
    for split in meta["splits"]:
        split["threshold"] = -1.5e308


def test_votes_of_boundaries_very_far_away_are_numbers(bases, tmp_path):
    (tmp_path / "m").write_bytes(edited(bases["pairs"], far_away))
    model = ravine.load(tmp_path / "m")
    assert np.isfinite(model.decision_function(ROWS)).all()
    assert set(model.predict(ROWS)) == {"versicolor"}


def test_memberships_of_a_pivot_very_far_away_are_numbers(bases, tmp_path):
    (tmp_path / "m").write_bytes(edited(bases["two classes"], lambda m, a: a["pivot"].fill(-1e307)))
    share = ravine.load(tmp_path / "m").predict_proba(ROWS)
    np.testing.assert_array_equal(np.sort(share, axis=1), [[0.0, 1.0]] * len(ROWS))


# --- what is saved can be loaded ---


def test_a_pruned_tree_is_saved_with_its_splits_in_order(tmp_path):
    model = PrincipalDirection(6).fit(X)
    model.tree_ = model.tree_.prune(int(model.tree_.inner[2]))
    assert sorted(model.tree_.order[model.tree_.left >= 0]) == list(range(model.tree_.n_leaves - 1))
    ravine.save(model, tmp_path / "m")
    assert ravine.load(tmp_path / "m").tree_ == model.tree_


def test_numbers_of_numpy_in_kernel_params_are_saved(tmp_path):
    params = {"degree": np.int64(2), "gamma": np.float64(0.1), "n_components": np.int32(3)}
    model = MinimumDensity(2, kernel="polynomial", kernel_params=params).fit(X)
    ravine.save(model, tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    assert again.kernel_params == params
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


WRONG = [("n_jobs", "two"), ("n_jobs", 0), ("n_clusters", 0), ("standardize", "no"), ("verbose", "loud")]


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(InvalidInputError, match="takes estimators of ravine, got KMeans"):
        ravine.save(KMeans(2).fit(X), tmp_path / "m")
    for name, value in WRONG:
        with pytest.raises(InvalidInputError, match=f"{name} has to be .* it is not saved"):
            ravine.save(MinimumDensity(2).fit(X).set_params(**{name: value}), tmp_path / "m")
    model = MinimumDensity(2).fit(X)
    model.tree_.label[1] = 5
    with pytest.raises(InvalidInputError, match=r"label has to be .* it is not saved"):
        ravine.save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
