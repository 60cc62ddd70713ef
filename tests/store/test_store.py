"""Models in files: whole, small, and never code; broken files are one clear error."""

import json
import os
import pickle
import stat
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

import ravine
from ravine import ClusterTree, InvalidModelError, MinimumDensity
from ravine.io import atomic
from tests.every_estimator import ESTIMATORS
from tests.store.model_files import damage_json, edited, unpacked
from tests.tree.test_tree import staircase

WINE = load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "wine.ravine"
    ravine.save(MinimumDensity("auto", level=0.2, min_cluster_size=5).fit(WINE), path)
    return path


@pytest.mark.parametrize("make", ESTIMATORS.values())
@pytest.mark.parametrize("n_clusters", [1, 4])
def test_a_model_comes_back_as_it_was(make, n_clusters, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(n_clusters).fit(WINE)
    path = tmp_path / "model.ravine"
    ravine.save(model, path)
    again = ravine.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.tree_ == model.tree_
    np.testing.assert_array_equal(again.predict(WINE), model.labels_)
    assert list(again.feature_names_in_) == list(WINE.columns)
    assert not hasattr(again, "labels_")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(WINE[WINE.columns[::-1]])


@pytest.mark.parametrize(
    "model",
    [
        MinimumDensity(6),
        ravine.SpectralConnectivity(3, n_directions=2),
        MinimumDensity(3, kernel="rbf"),
        MinimumDensity(1),
    ],
    ids=["hyperplanes", "nearest centers", "kernel", "one cluster"],
)
def test_a_loaded_model_labels_rows_as_the_fitted_one(model, tmp_path):
    rows = WINE.to_numpy()
    ravine.save(model.fit(rows), tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(rows), model.labels_)
    if model.n_clusters_ > 1:
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    with pytest.raises(ravine.InvalidInputError, match="NaN or infinity"):
        again.predict(np.where(rows > 1000, np.nan, rows))


def test_rows_on_the_boundary_take_the_same_side_of_a_loaded_model(tmp_path):
    rows = np.random.default_rng(0).integers(0, 4, (500, 3)).astype(float)
    model = ravine.PrincipalDirection(5, standardize=False).fit(rows)
    ravine.save(model, tmp_path / "m")
    np.testing.assert_array_equal(ravine.load(tmp_path / "m").predict(rows), model.labels_)


def test_what_json_cannot_hold_is_left_out(tmp_path):
    model = MinimumDensity(2, verbose=print, random_state=np.random.default_rng(0))
    ravine.save(model.fit(WINE), tmp_path / "m")
    again = ravine.load(tmp_path / "m")
    assert again.verbose is None
    assert again.random_state is None


def test_a_file_names_no_checkpoint_that_another_fit_would_write(tmp_path):
    model = MinimumDensity(2, checkpoint=tmp_path / "checkpoint").fit(WINE)
    ravine.save(model.set_params(checkpoint=str(tmp_path / "mine")), tmp_path / "m")
    assert "checkpoint" not in unpacked((tmp_path / "m").read_bytes())[0]

    def crafted(meta, arrays):
        meta["parameters"]["checkpoint"] = str(tmp_path / "theirs")

    (tmp_path / "crafted").write_bytes(edited((tmp_path / "m").read_bytes(), crafted))
    for name in ("m", "crafted"):
        again = ravine.load(tmp_path / name)
        assert again.checkpoint is None
        again.fit(WINE)
    assert not any((tmp_path / name).exists() for name in ("mine", "theirs"))


def test_json_and_back():
    tree = MinimumDensity("auto").fit(WINE).tree_
    assert ClusterTree.from_json(tree.to_json()) == tree
    json.loads(tree.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    for wrong in ("", "{}", "[]", "null", '{"format": "ravine tree", "version": 4}', "{", "[" * 100_000):
        with pytest.raises(InvalidModelError, match=r"not a valid ravine tree: .*to_json"):
            ClusterTree.from_json(wrong)
    with pytest.raises(InvalidModelError, match="version of the format has to be 4"):
        ClusterTree.from_json('{"format": "ravine tree", "version": 1}')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: ["a list"], "object of JSON"),
        (lambda whole: whole["arrays"].update(pivot="x" * 13), "pivot has to be lists of numbers"),
        (lambda whole: whole["arrays"].update(pivot=["x"] * 13), "pivot has to be lists of numbers"),
        (lambda whole: whole["arrays"].update(pivot=["nan"] * 13), "pivot has to be finite"),
        (lambda whole: whole["arrays"]["label"].__setitem__(0, 1.5), "label has to be int64"),
        (lambda whole: whole["arrays"].update(split_normals=[[1.0], [1.0, 2.0]]), "lists of numbers"),
    ],
)
def test_json_that_was_changed_is_refused_in_one_sentence(change, message):
    whole = json.loads(MinimumDensity(2).fit(WINE).tree_.to_json())
    with pytest.raises(InvalidModelError, match=message):
        ClusterTree.from_json(json.dumps(change(whole) or whole))


def test_further_facts_of_a_split_come_back(tmp_path):
    model = MinimumDensity(3).fit(WINE)
    tree = replace(
        model.tree_,
        splits=tuple(split and replace(split, facts={}) for split in model.tree_.splits),
        refused=tuple(split and replace(split, facts={}) for split in model.tree_.refused),
    )
    first = replace(tree.splits[0], facts={"margin": 0.5, "slack": np.inf})
    model.tree_ = replace(tree, splits=(first, *tree.splits[1:]))
    ravine.save(model, tmp_path / "m")
    assert ravine.load(tmp_path / "m").tree_.splits[0].facts == {"margin": 0.5, "slack": np.inf}
    text = model.tree_.to_json()
    assert ClusterTree.from_json(text) == model.tree_ != tree
    fewer = json.loads(text)
    fewer["splits"].pop()
    with pytest.raises(InvalidModelError, match="split_directions has to be"):
        ClusterTree.from_json(json.dumps(fewer))


def test_only_a_fitted_model_is_saved(tmp_path):
    with pytest.raises(NotFittedError):
        ravine.save(MinimumDensity(2), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_large_tree_is_small_and_quick(tmp_path):
    import time

    rng = np.random.default_rng(0)
    tree = staircase(1000, d=50)
    model = MinimumDensity(2).fit(rng.standard_normal((50, 50)) + 20 * np.arange(50)[:, None] // 25)
    model.tree_ = tree
    ravine.save(model, tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 2_000_000
    times = []
    for _ in range(5):
        began = time.perf_counter()
        again = ravine.load(tmp_path / "m")
        times.append(time.perf_counter() - began)
    assert min(times) < 0.05
    assert again.tree_ == tree


def test_the_file_is_written_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m"
    model = MinimumDensity(2).fit(WINE)
    ravine.save(model, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        ravine.save(MinimumDensity(3).fit(WINE), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_the_file_has_the_users_own_permissions(tmp_path):
    ravine.save(MinimumDensity(2).fit(WINE), tmp_path / "m")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~umask


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code from the file was run",))


def test_a_link_is_followed_and_a_pipe_is_not_replaced(tmp_path):
    model = MinimumDensity(2).fit(WINE)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ravine.InvalidInputError, match="pipe is a pipe, not a regular file"):
        ravine.save(model, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").symlink_to("model.ravine")
    ravine.save(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ravine.load(tmp_path / "model.ravine").tree_ == model.tree_


def test_code_in_a_file_is_never_run(tmp_path, saved):
    path = tmp_path / "bomb"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InvalidModelError):
        ravine.load(path)
    with np.load(saved) as stored:
        arrays = dict(stored)
    arrays["weight"] = np.array([Bomb()] * len(arrays["weight"]), dtype=object)
    np.savez(tmp_path / "bomb.npz", **arrays)
    with pytest.raises(InvalidModelError):
        ravine.load(tmp_path / "bomb.npz")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(saved, tmp_path, share):
    content = saved.read_bytes()
    (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidModelError, match="not a valid ravine model"):
        ravine.load(tmp_path / "cut")


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ravine.load(tmp_path / "none")


def test_damaged_json_is_refused_or_a_whole_tree():
    rng = np.random.default_rng(0)
    text = MinimumDensity(4).fit(WINE).tree_.to_json()
    whole, counts = json.loads(text), {"refused": 0, "loaded": 0}
    for _ in range(500):
        changed = json.loads(text)
        damage_json(rng, changed, {})
        try:
            tree = ClusterTree.from_json(json.dumps(changed))
        except InvalidModelError as error:
            counts["refused"] += str(error).startswith("the text ")
            continue
        counts["loaded"] += 1
        if not tree.mapped:
            assert set(tree.predict(WINE.to_numpy())) <= set(range(tree.n_clusters))
    assert sum(counts.values()) == 500
    assert min(counts.values()) > 20
    assert json.loads(ClusterTree.from_json(text).to_json()) == whole


def test_a_node_that_no_earlier_split_has_made_is_refused():
    parts = json.loads(MinimumDensity(3).fit(WINE).tree_.to_json())
    assert parts["splits"][1]["node"] in (1, 2)
    parts["splits"][1]["node"] = 3  # which is its own child
    with pytest.raises(InvalidModelError, match=r"splits\.node has to be each node once"):
        ClusterTree.from_json(json.dumps(parts))


def test_what_a_file_has_beyond_this_edition_is_ignored(tmp_path, saved):
    def add(meta, arrays):
        meta["note"] = {"of": "a later edition"}
        meta["splits"][0]["note"] = 1
        arrays["further"] = np.zeros(3)

    (tmp_path / "m").write_bytes(edited(saved.read_bytes(), add))
    assert ravine.load(tmp_path / "m").tree_ == ravine.load(saved).tree_


def test_a_file_that_was_read_is_closed(tmp_path, saved):
    opened = []

    def noting(*arguments):
        opened.append(open(*arguments))  # noqa: SIM115
        return opened[-1]

    (tmp_path / "no model").write_text("text")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ravine.store.model_file.open", noting, raising=False)
        ravine.load(saved)
        with pytest.raises(InvalidModelError):
            ravine.load(tmp_path / "no model")
    assert [file.closed for file in opened] == [True, True]
