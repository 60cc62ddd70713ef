"""A fit that was ended goes on from its checkpoint, with the same result; that of another fit is refused."""

import itertools
import json
import random
import re
import time

import numpy as np
import pytest

import ravine
from ravine import InvalidInputError, MinimumDensity, SpectralConnectivity
from ravine.store import checkpoint as checkpoints
from ravine.store.archive import read_archive, write_archive
from tests.processes import CONTEXT
from tests.store.model_files import edited

RNG = np.random.default_rng(0)
N, K = 12_000, 6
X = RNG.normal(size=(N, 5)) + 7.0 * np.random.default_rng(1).normal(size=(K, 5))[RNG.integers(K, size=N)]
WEIGHTS = RNG.integers(0, 3, N).astype(float)


def stored_in(path):
    """The content of a checkpoint."""
    with open(path, "rb") as file:
        return read_archive(file)


KINDS = ("memory", "npy", "dask")


def rows_of(kind, folder):
    """The rows as an array, as a file and as a dask array; both others have the chunks of the array."""
    if kind == "memory":
        return X
    path = folder / "rows.npy"
    np.save(path, X)
    if kind == "npy":
        return ravine.open(path)
    return pytest.importorskip("dask.array").from_array(X, chunks=(8192, 5))


@pytest.fixture(autouse=True)
def always_written(monkeypatch):
    monkeypatch.setattr(checkpoints, "WRITING_SHARE", np.inf)  # after every search
    monkeypatch.setattr("ravine.data.node.LOCAL_CELLS", 10_000)


class Ended(Exception):
    pass


def end_after(n_leaves):
    def callback(progress):
        if progress.n_leaves == n_leaves:
            raise Ended

    return callback


def ended_and_resumed(make, rows, folder, n_leaves, **fit):
    """Fit until there are some leaves, then with the same call again; return the model of the second call."""
    model = make.set_params(checkpoint=folder / "fit.checkpoint", verbose=end_after(n_leaves))
    with pytest.raises(Ended):
        model.fit(rows, **fit)
    return model.set_params(verbose=False).fit(rows, **fit)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_goes_on_where_it_ended(kind, tmp_path):
    whole = MinimumDensity(K).fit(X)
    made = []
    method = type(MinimumDensity()._method())
    original = method.starts

    def starts(self, node):
        made.append(node)
        return original(self, node)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "starts", starts)
        MinimumDensity(K).fit(rows_of(kind, tmp_path))
        n_searches = len(made)
        again = ended_and_resumed(MinimumDensity(K), rows_of(kind, tmp_path), tmp_path, 4)
        repeated = len(made) - 2 * n_searches
        made.clear()
        once_more = MinimumDensity(K, checkpoint=tmp_path / "fit.checkpoint").fit(rows_of(kind, tmp_path))
    assert again.tree_ == once_more.tree_ == whole.tree_
    np.testing.assert_array_equal(np.asarray(again.labels_), whole.labels_)
    np.testing.assert_array_equal(np.asarray(once_more.labels_), whole.labels_)
    assert repeated == 0  # no search was made twice
    assert not made  # and a finished fit is not searched again


@pytest.mark.parametrize(
    ("make", "fit"),
    [
        (MinimumDensity("auto"), {}),
        (MinimumDensity(5), {"sample_weight": WEIGHTS[:1500]}),
        (MinimumDensity(5), {"y": np.where(np.arange(1500) % 100 == 0, X[:1500, 0] > 0, -1)}),
        (SpectralConnectivity(4, n_directions=2), {}),
        (MinimumDensity(4, kernel="rbf", kernel_params={"landmarks": 50, "n_components": 5}), {}),
    ],
    ids=["auto", "weights", "labels", "several directions", "kernel"],
)
def test_everything_that_a_split_has_survives(make, fit, tmp_path):
    whole = make.fit(X[:1500], **fit)
    tree, labels = whole.tree_, whole.labels_
    again = ended_and_resumed(make, X[:1500], tmp_path, 3, **fit)
    assert again.tree_ == tree
    np.testing.assert_array_equal(again.labels_, labels)


def _fit(kind, folder):
    checkpoints.WRITING_SHARE = np.inf
    ravine.data.node.LOCAL_CELLS = 10_000
    model = MinimumDensity(K, checkpoint=folder / "fit.checkpoint").fit(rows_of(kind, folder))
    np.save(folder / "labels.npy", np.asarray(model.labels_))


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_is_killed_at_random_moments_ends_with_the_same_labels(kind, tmp_path):
    chance, n_killed = random.Random(kind), 0
    for attempt in range(50):
        process = CONTEXT.Process(target=_fit, args=(kind, tmp_path))
        process.start()
        process.join(chance.uniform(0.0, 0.3) * 1.4**attempt)
        if process.exitcode is None:
            process.kill()
            n_killed += 1
        process.join()
        if process.exitcode == 0:
            break
    assert n_killed > 0
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), MinimumDensity(K).fit(X).labels_)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "fit.checkpoint"
    MinimumDensity(3, random_state=0, checkpoint=path).fit(X[:2000])
    return path


def refused(path, model, rows, **fit):
    before = path.read_bytes()
    with pytest.raises(InvalidInputError) as refusal:
        model.set_params(checkpoint=path).fit(rows, **fit)
    assert path.read_bytes() == before
    return str(refusal.value)


CHANGED = X[:2000].copy()
CHANGED[1234, 3] = np.nextafter(CHANGED[1234, 3], np.inf)


@pytest.mark.parametrize(
    ("model", "rows", "fit", "reason"),
    [
        (MinimumDensity(4, random_state=0), X[:2000], {}, "n_clusters was 3 and is 4"),
        (MinimumDensity(3, random_state=1), X[:2000], {}, "random_state was 0, with the seed"),
        (SpectralConnectivity(3, random_state=0), X[:2000], {}, "kernel|bandwidth|class|alpha"),
        (MinimumDensity(3, random_state=0), CHANGED, {}, "rows, weights or labels are not the same"),
        (MinimumDensity(3, random_state=0), X[:1999], {}, "rows, weights or labels are not the same"),
        (
            MinimumDensity(3, random_state=0),
            X[:2000],
            {"sample_weight": WEIGHTS[:2000]},
            "rows, weights or labels are not",
        ),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused_and_not_touched(written, model, rows, fit, reason):
    text = refused(written, model, rows, **fit)
    assert f"{written} belongs to another fit" in text
    assert "give another path, or delete" in text
    assert re.search(reason, text)


def test_the_same_rows_in_other_blocks_are_refused_with_that_reason(tmp_path):
    """Checksums are by block, and so is the rounding of sums."""
    lazy = pytest.importorskip("dask.array").from_array(X, chunks=(5000, 5))
    for i, (first, second) in enumerate(((X, lazy), (lazy, X))):
        model = MinimumDensity(3, random_state=0, checkpoint=tmp_path / f"{i}").fit(first)
        for rows in (second, second[:-1], first + 1.0):
            text = refused(model.checkpoint, model, rows)
            assert "are not the same, or the rows are not in the same blocks; give" in text
        model.fit(lazy.rechunk((8192, 5)) if first is X else first)


def test_changed_rows_of_a_file_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", X[:2000])
    model = MinimumDensity(3, checkpoint=tmp_path / "fit.checkpoint")
    model.fit(ravine.open(tmp_path / "rows.npy"))
    np.save(tmp_path / "rows.npy", CHANGED)
    assert "rows, weights or labels are not the same" in refused(
        model.checkpoint, model, ravine.open(tmp_path / "rows.npy")
    )


def test_another_version_is_refused(written, monkeypatch):
    monkeypatch.setattr(ravine, "__version__", "9.9")
    text = refused(written, MinimumDensity(3, random_state=0), X[:2000])
    assert "ravine was 0.1.0 and is 9.9" in text
    monkeypatch.undo()
    stored = stored_in(written)
    other = written.with_name("other")
    other.write_bytes(write_archive({**stored.facts, "version": 1}, stored.arrays))
    with pytest.raises(ravine.RavineError, match=r"version of the format has to be 4.*got 1; give another"):
        MinimumDensity(3, random_state=0, checkpoint=other).fit(X[:2000])


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 and nothing else"])
def test_a_file_that_is_no_checkpoint_is_refused_and_not_overwritten(content, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"not a valid.*give another path, or delete"):
        MinimumDensity(3, checkpoint=path).fit(X[:2000])
    assert path.read_bytes() == content


def test_damaged_checkpoints_are_refused_with_one_sentence(written, tmp_path):
    """Any byte changed: the file is refused, or the byte means nothing, as that of a date."""
    content, chance = written.read_bytes(), random.Random(0)
    expected = MinimumDensity(3, random_state=0).fit(X[:2000]).labels_
    path = tmp_path / "damaged"
    for _ in range(60):
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(damaged))
        sentence, found = "", expected
        try:
            found = MinimumDensity(3, random_state=0, checkpoint=path).fit(X[:2000]).labels_
        except ravine.RavineError as error:
            sentence = str(error)
        assert "\n" not in sentence
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda meta, arrays: meta["fit"].update(level=True), r"fit\.\w+ has to be a text"),
        (lambda meta, arrays: meta["fit"].update(more=[1]), r"fit\.\w+ has to be a text"),
        (
            lambda meta, arrays: meta.update(data=10**400),
            "data has to be a whole number of at least 0 and at most",
        ),
    ],
)
def test_crafted_checkpoints_are_refused(written, tmp_path, change, reason):
    path = tmp_path / "crafted"
    path.write_bytes(edited(written.read_bytes(), change))
    with pytest.raises(ravine.RavineError, match=reason):
        MinimumDensity(3, random_state=0, checkpoint=path).fit(X[:2000])


@pytest.mark.parametrize(
    ("path", "reason"), [(3, "has to be the path"), ("/nowhere/at/all", "no folder"), ("/tmp", "is a folder")]
)
def test_a_path_that_cannot_be_written_is_refused_before_the_fit(path, reason):
    with pytest.raises(InvalidInputError, match=reason):
        MinimumDensity(3, checkpoint=path).fit(X[:2000])


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_atomically", full)
    with pytest.warns(UserWarning, match="cannot be written .No space left") as caught:
        model = MinimumDensity(3, checkpoint=tmp_path / "fit.checkpoint").fit(X[:2000])
    assert len(caught) == 1
    np.testing.assert_array_equal(model.labels_, MinimumDensity(3).fit(X[:2000]).labels_)


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "WRITING_SHARE", 0.05)
    times = []

    def slow(path, content):
        times.append(time.perf_counter())
        time.sleep(0.01)

    monkeypatch.setattr(checkpoints, "write_atomically", slow)
    MinimumDensity(K, checkpoint=tmp_path / "fit.checkpoint").fit(X)
    pauses = [b - a for a, b in itertools.pairwise(times[:-1])]  # the last is written at the end
    assert all(pause >= 0.2 for pause in pauses)


def test_the_file_has_no_code_and_its_meta_is_json(written):
    stored = stored_in(written)
    assert json.dumps(stored.facts)
    assert stored.facts["format"] == "ravine checkpoint"


def test_the_rank_of_a_split_does_not_depend_on_what_was_searched_before_a_break(tmp_path):
    """Leaves are compared in the neighbor graph of all rows, which a resumed fit has not searched."""
    rows = np.random.default_rng(5).normal(size=(3000, 3)) * (
        3.0,
        2.0,
        1.0,
    )  # no valley, so that edges are cut

    def ranks(path):
        stored = stored_in(path)
        return dict(zip(stored.facts["paths"], stored.arrays["rank"].reshape(-1, 4).tolist(), strict=True))

    def model(path=None):
        return SpectralConnectivity(K, checkpoint=path)

    whole = model(tmp_path / "whole").fit(rows)
    for n_leaves in (2, 3, 4):
        folder = tmp_path / str(n_leaves)
        folder.mkdir()
        assert ended_and_resumed(model(), rows, folder, n_leaves).tree_ == whole.tree_
        assert ranks(folder / "fit.checkpoint") == ranks(tmp_path / "whole")
